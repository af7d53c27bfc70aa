//! Our own sources, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// Source files in a folder, without those that are tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if name != "tests" {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") && !["tests.rs", "fixture.rs"].contains(&name) {
            found.push(path);
        }
    }
}

/// Without comments, and without the tests at its foot.
pub(crate) fn code_of(text: &str) -> String {
    let foot = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\npub(crate) mod tests {"];
    let code = &text[..foot.iter().filter_map(|start| text.find(start)).min().unwrap_or(text.len())];
    code.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// The code of every source file of the house, by its name below `crates`. Crates that only tests use are left out.
pub(crate) fn code() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    let named = files.iter().map(|path| (path.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned(), path));
    let ours = |name: &str| name.contains("/src/") && !name.starts_with("standin/") && !name.starts_with("fuzz/");
    let code: Vec<(String, String)> = named
        .filter(|(name, _)| ours(name))
        .map(|(name, path)| (name, code_of(&fs::read_to_string(path).unwrap())))
        .collect();
    assert!(code.len() > 300, "{}", code.len());
    code
}
