//! What must be known by name: every file with `unsafe` in it, and where dependencies come from.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether code, not a comment, has the keyword. Its name in a lint or a string is no use of it.
fn has_unsafe(code: &str) -> bool {
    let code: String = code.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
    code.match_indices("unsafe").any(|(at, word)| {
        let before = code[..at].chars().next_back();
        let rest = &code[at + word.len()..];
        let follows = |start: &str| rest.trim_start().starts_with(start);
        let is_word = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '"' && c != '`');
        let used = ["{", "fn ", "impl", "extern", "trait", "(no_mangle", "(export_name", "(link_section"];
        is_word
            && (rest.starts_with(char::is_whitespace) || rest.starts_with('('))
            && used.iter().any(|start| follows(start))
    })
}

/// Rust files under a folder, by their path from the root of the repository.
fn rust_files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
        }
    }
}

/// The first column of the table under a heading.
fn table_of(text: &str, heading: &str) -> BTreeSet<String> {
    let (_, section) = text.split_once(heading).unwrap_or_else(|| panic!("no section {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    rows.map(|(file, _)| file.to_owned()).collect()
}

#[test]
fn every_file_with_unsafe_is_in_the_table_and_no_other() {
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        rust_files(&root().join(folder), &mut files);
    }
    assert!(files.len() > 300, "{}", files.len());
    // This one has it in its examples alone.
    files.retain(|file| file != "crates/prony/tests/inventory.rs");
    let found: Vec<&String> =
        files.iter().filter(|file| has_unsafe(&fs::read_to_string(root().join(file)).unwrap())).collect();
    let listed = table_of(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap(), "## Where `unsafe` is");
    let covers = |row: &String, file: &String| row == file || row.ends_with('/') && file.starts_with(row.as_str());
    let missing: Vec<_> = found.iter().filter(|file| !listed.iter().any(|row| covers(row, file))).collect();
    assert!(missing.is_empty(), "not in the table of ARCHITECTURE.md: {missing:?}");
    let stale: Vec<_> = listed.iter().filter(|row| !found.iter().any(|file| covers(row, file))).collect();
    assert!(stale.is_empty(), "in the table of ARCHITECTURE.md without any unsafe: {stale:?}");
    // Only a crate that is nothing but an interface to C++ is listed as a whole.
    let whole: Vec<_> = listed.iter().filter(|row| row.ends_with('/')).collect();
    assert_eq!(whole, ["crates/nvinfer/"]);
}

#[test]
fn unsafe_is_found_in_code_and_not_in_words() {
    for code in ["let x = unsafe { f() };", "pub unsafe fn f()", "unsafe impl Send for X {}", "unsafe\n{ f() }"] {
        assert!(has_unsafe(code), "{code}");
    }
    assert!(has_unsafe("#[unsafe(no_mangle)]") && has_unsafe("unsafe extern \"C\" fn f()"));
    for words in ["// unsafe { }", "#![expect(unsafe_code)]", "\"unsafe { }\"", "an_unsafe fn", "is unsafe, really"] {
        assert!(!has_unsafe(words), "{words}");
    }
}

#[test]
fn a_table_is_read_from_its_own_section() {
    let text =
        "## A\n| `x` | 1 |\n## B\n\n| file | why |\n|---|---|\n| `y/` | 2 |\n| `z.rs` | 3 |\n\n## C\n| `w` | 4 |\n";
    assert_eq!(table_of(text, "## B"), BTreeSet::from(["y/".to_owned(), "z.rs".to_owned()]));
}

/// What `cargo deny check sources` would look at.
#[test]
fn every_dependency_comes_from_one_registry() {
    let lock: Table = fs::read_to_string(root().join("Cargo.lock")).unwrap().parse().unwrap();
    let sources: BTreeSet<&str> =
        lock["package"].as_array().unwrap().iter().filter_map(|package| package.get("source")?.as_str()).collect();
    assert_eq!(sources.len(), 1, "{sources:?}");
    assert!(sources.iter().all(|source| source.starts_with("registry+")), "{sources:?}");
    let unchecked: Vec<&Value> = lock["package"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| package.get("source").is_some() && package.get("checksum").is_none())
        .collect();
    assert!(unchecked.is_empty(), "without a checksum: {unchecked:?}");
}

/// What `cargo deny check bans` would refuse: a dependency of any version.
#[test]
fn no_dependency_is_of_any_version() {
    let manifest: Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let dependencies = manifest["workspace"]["dependencies"].as_table().unwrap();
    assert!(dependencies.len() > 20);
    for (name, spec) in dependencies {
        let version = spec.as_str().or_else(|| spec.get("version")?.as_str());
        let ours = spec.get("path").is_some();
        assert!(ours || version.is_some_and(|version| !version.contains('*')), "{name}: {spec}");
    }
}
