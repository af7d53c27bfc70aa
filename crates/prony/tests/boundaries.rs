//! What crosses the boundary of a crate can be told apart: errors have types, and what cannot be written as JSON is one. This
//! reads our own sources.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates whose public functions give errors that can be told apart.
const CRATES: [&str; 4] = ["model", "source", "backend", "forge"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// Sources of some crates by their paths, without comments and without the tests at their feet.
fn code(of: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        if of(folder.file_name().unwrap().to_str().unwrap()) && folder.join("src").is_dir() {
            sources(&folder.join("src"), &mut files);
        }
    }
    let read = |path: PathBuf| {
        let name = path.strip_prefix(crates()).unwrap().to_str().unwrap().to_owned();
        (name, without_tests(&fs::read_to_string(path).unwrap()))
    };
    files.into_iter().map(read).collect()
}

fn without_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = code.split("#[cfg(test)]\npub(crate) mod tests {").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Everything up to the bracket that closes the one before it.
fn enclosed(text: &str, open: char, close: char) -> &str {
    let mut depth = 1;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        // The arrow of a return type closes nothing.
        depth += i32::from(letter == open) - i32::from(letter == close && before != '-');
        if depth == 0 {
            return &text[..at];
        }
        before = letter;
    }
    text
}

/// Whether a `Result` stands in the text whose error is a `String`.
fn gives_text(signature: &str) -> bool {
    signature.match_indices("Result<").any(|(at, found)| {
        let inner = enclosed(&signature[at + found.len()..], '<', '>').trim_end().trim_end_matches(',');
        let depth =
            |text: &str| text.matches(['<', '(', '[']).count() as i64 - text.matches(['>', ')', ']']).count() as i64;
        inner.rsplit_once(',').is_some_and(|(value, error)| error.trim() == "String" && depth(value) == 0)
    })
}

/// Names of this file's own types for results whose error is a `String`.
fn aliases(code: &str) -> Vec<&str> {
    let own = code.lines().filter_map(|line| line.trim_start().trim_start_matches("pub ").strip_prefix("type "));
    let text = own.filter(|alias| alias.split_once('=').is_some_and(|(_, target)| gives_text(target)));
    text.filter_map(|alias| alias.split(['<', '=', ' ']).next()).collect()
}

/// What of a file other crates can see: functions, methods of public traits, types and fields.
fn public(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("pub ") {
        let item = &code[at..];
        let words: Vec<&str> = item.split_whitespace().take(4).collect();
        if words.contains(&"trait") {
            let body = item.split_once('{').map_or("", |(_, body)| enclosed(body, '{', '}'));
            found.extend(body.match_indices("fn ").map(|(at, _)| signature(&body[at..])));
        } else if words.contains(&"fn") {
            found.push(signature(item));
        } else {
            found.push(item.lines().next().unwrap_or_default().to_owned());
        }
    }
    found
}

/// Without its body, on one line.
fn signature(item: &str) -> String {
    item.split(['{', ';']).next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn errors_of_public_functions_were_sentences() {
    let mut wrong = Vec::new();
    let mut functions = 0;
    for (name, code) in code(|name| CRATES.contains(&name)) {
        let aliases = aliases(&code);
        for item in public(&code) {
            functions += usize::from(item.contains("fn "));
            let returned = item.rsplit_once("-> ").map(|(_, returned)| returned.split('<').next().unwrap_or_default());
            if gives_text(&item) || returned.is_some_and(|returned| aliases.contains(&returned.trim())) {
                wrong.push(format!("{name}: {item}"));
            }
        }
    }
    assert!(functions > 200, "only {functions} public functions were seen");
    assert!(wrong.is_empty(), "give these an error type of the crate:\n{}", wrong.join("\n"));
}

/// Whether something is made JSON of and becomes nothing where that fails.
fn writes_nothing(code: &str) -> bool {
    code.match_indices("serde_json::to_").any(|(at, _)| {
        let mut rest = code[at..].split_once('(').map_or("", |(_, arguments)| arguments);
        loop {
            rest = rest[enclosed(rest, '(', ')').len()..].trim_start_matches(')').trim_start();
            let Some((method, arguments)) = rest.strip_prefix('.').and_then(|call| call.split_once('(')) else {
                return false;
            };
            if method.starts_with("unwrap_or") {
                return true;
            }
            rest = arguments;
        }
    })
}

#[test]
fn what_cannot_be_written_was_taken_for_nothing() {
    let found: BTreeSet<String> = code(|name| !["fuzz", "standin"].contains(&name))
        .into_iter()
        .filter(|(_, code)| writes_nothing(code))
        .map(|(name, _)| name)
        .collect();
    assert!(found.is_empty(), "make these an error: {found:?}");
}

#[test]
fn what_is_looked_for_is_found() {
    for text in [
        "pub fn a() -> Result<(), String>",
        "pub fn a(f: impl Fn(u8) -> Result<u8, String>) -> u8",
        "pub a: Result<Vec<(u8, String)>, String>,",
        "pub fn a() -> Result<Result<u8, E>, String>",
    ] {
        assert!(gives_text(text), "{text}");
    }
    for text in
        ["pub fn a() -> Result<BTreeMap<String, String>, E>", "pub fn a() -> Option<String>", "Result<String, E>"]
    {
        assert!(!gives_text(text), "{text}");
    }
    assert_eq!(aliases("type Step<T = ()> = Result<T, String>;\ntype Other = Result<u8, E>;\n"), ["Step"]);
    let code = "pub trait T {\n    fn f(\n        &self,\n    ) -> u8;\n}\npub(crate) fn g() {}\n";
    assert_eq!(public(code), ["fn f( &self, ) -> u8"]);
    assert!(writes_nothing("sha(&serde_json::to_vec(&(a, b))\n    .map(|x| x)\n    .unwrap_or_default())[..32]"));
    assert!(!writes_nothing("serde_json::to_vec(a)?; b.unwrap_or_default()"));
}
