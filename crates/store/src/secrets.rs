//! What must not be seen in a text: known paths, whatever is in their names, paths that nobody knew of, and names of the
//! user and the host.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

/// Words that mean something in a report. A user or a host that is called so cannot be told from them.
const PLAIN: [&str; 34] = [
    "root",
    "localhost",
    "localdomain",
    "user",
    "host",
    "ms",
    "us",
    "ns",
    "fps",
    "mib",
    "gib",
    "mb",
    "gb",
    "hz",
    "cpu",
    "gpu",
    "cuda",
    "rten",
    "ort",
    "onnx",
    "onnxruntime",
    "openvino",
    "tensorrt",
    "trtexec",
    "prony",
    "bench",
    "model",
    "worker",
    "cell",
    "run",
    "data",
    "images",
    "scenes",
    "none",
];
/// Keys whose values are places, not sentences.
const PLACES: [&str; 12] =
    ["path", "paths", "library", "file", "files", "folder", "place", "looked", "search", "dir", "source", "detections"];
/// Folders of the system: what lies there says nothing about who runs it.
const SYSTEM: [&str; 9] = ["usr", "lib", "lib64", "bin", "sbin", "etc", "proc", "sys", "dev"];

/// Values that must not be seen, and what stands for them.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// Paths and what is left of them.
    paths: BTreeMap<String, String>,
    words: BTreeMap<String, &'static str>,
}

impl Secrets {
    /// A path: as it was given, made absolute, and with its links resolved, and every folder on the way to it.
    pub fn add_path(&mut self, path: &Path) {
        let mut forms = vec![path.to_owned()];
        forms.extend(std::path::absolute(path).ok());
        forms.extend(std::fs::canonicalize(path).ok());
        // A file that is to be made has no links yet; its folder may have some.
        forms.extend(
            path.parent()
                .and_then(|parent| std::fs::canonicalize(parent).ok())
                .zip(path.file_name())
                .map(|(parent, name)| parent.join(name)),
        );
        forms.iter().for_each(|form| self.add_form(form));
    }

    /// A path of another machine: only as it is written.
    pub fn add_written(&mut self, path: &str) {
        self.add_form(Path::new(path));
    }

    fn add_form(&mut self, path: &Path) {
        for part in path.ancestors() {
            let names: Vec<Component<'_>> = part.components().filter(|part| *part != Component::RootDir).collect();
            // `/home` and `runs` are no secrets; `/home/ann` and `ann/runs` are. What was given itself counts from `/data` on.
            let least = if part.has_root() && part == path { 1 } else { 2 };
            let is = |at: usize, known: &[&str]| {
                names.get(at).is_some_and(|it| known.iter().any(|known| it.as_os_str() == *known))
            };
            let system = part.has_root() && names.len() < 3 && is(0, &SYSTEM);
            if names.len() < least || system {
                continue;
            }
            if part.has_root() && names.len() == 2 && is(0, &["home", "Users"]) {
                self.add_user(&names[1].as_os_str().to_string_lossy());
            }
            let text = part.to_string_lossy();
            let text = text.trim_end_matches('/');
            let name = file_name(text);
            // As `{:?}` has it, where that differs.
            let quoted = text.escape_debug().to_string();
            for needle in [text.to_owned(), quoted] {
                self.paths.insert(format!("{needle}/"), String::new());
                self.paths.insert(needle, name.clone());
            }
        }
    }

    /// Everything in a command line that is a path.
    pub fn add_argument(&mut self, word: &str) {
        let value = value_of(word).1;
        if value.contains('/') {
            // `--library onnxruntime=/opt/x.so`.
            value.split('=').filter(|part| part.contains('/')).for_each(|part| self.add_path(Path::new(part)));
        }
    }

    /// What the user is called.
    pub fn add_user(&mut self, name: &str) {
        self.add_word(name, "(user)");
    }

    /// What the machine is called; of a full name also the first part.
    pub fn add_host(&mut self, name: &str) {
        self.add_word(name, "(host)");
        if let Some((short, _)) = name.split_once('.') {
            self.add_word(short, "(host)");
        }
    }

    fn add_word(&mut self, word: &str, stand_in: &'static str) {
        if word.chars().count() > 1
            && !word.chars().all(|c| c.is_ascii_digit())
            && !PLAIN.contains(&word.to_lowercase().as_str())
        {
            self.words.insert(word.to_owned(), stand_in);
        }
    }

    /// All of another.
    pub fn extend(&mut self, other: &Secrets) {
        self.paths.extend(other.paths.clone());
        self.words.extend(other.words.clone());
    }

    /// A sentence or a log without them.
    pub fn text(&self, text: &str) -> String {
        self.without_words(&without_absolute_paths(&self.without_known(text)))
    }

    /// A single path or name: what is left of it.
    pub fn place(&self, text: &str) -> String {
        let known = self.without_known(text);
        let rest = if Path::new(&known).has_root() || known.starts_with('~') { file_name(&known) } else { known };
        self.without_words(&rest)
    }

    /// Known paths replaced. They may hold blanks, so they are looked for as a whole.
    pub(crate) fn without_known(&self, text: &str) -> String {
        if !text.contains('/') {
            return text.to_owned();
        }
        let mut needles: Vec<(&String, &String)> =
            self.paths.iter().filter(|(needle, _)| text.contains(*needle)).collect();
        // A folder must not be cut out of the middle of a longer path that is known too.
        needles.sort_by_key(|(needle, _)| std::cmp::Reverse(needle.len()));
        needles.into_iter().fold(text.to_owned(), |text, (needle, left)| replace(&text, needle, left))
    }

    pub(crate) fn without_words(&self, text: &str) -> String {
        let mut words: Vec<_> = self.words.iter().filter(|(word, _)| text.contains(*word)).collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        words.into_iter().fold(text.to_owned(), |text, (word, stand_in)| without_word(&text, word, stand_in))
    }

    /// A value as JSON without them. Numbers and names of things stay as they are: only places and sentences are read.
    pub fn json(&self, value: &mut Value) {
        self.scrub(value, "");
    }

    fn scrub(&self, value: &mut Value, key: &str) {
        match value {
            Value::String(text) if PLACES.contains(&key) && !text.contains(char::is_whitespace) => {
                *text = self.place(text);
            }
            Value::String(text) if text.contains(char::is_whitespace) => *text = self.text(text),
            Value::String(text) => *text = self.without_known(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub(item, key)),
            Value::Object(fields) => {
                let renamed = std::mem::take(fields).into_iter().map(|(name, mut field)| {
                    self.scrub(&mut field, &name);
                    (self.without_known(&name), field)
                });
                fields.extend(renamed);
            }
            _ => {}
        }
    }
}

/// `--flag=value` apart; a plain word is all value.
pub(crate) fn value_of(word: &str) -> (&str, &str) {
    match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => (&word[..flag.len() + 1], value),
        _ => ("", word),
    }
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> String {
    path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(".").to_owned()
}

/// A path without its folders.
pub(crate) fn bare(path: &Path) -> PathBuf {
    PathBuf::from(file_name(&path.to_string_lossy()))
}

fn inside_name(c: char) -> bool {
    c.is_alphanumeric() || "-_.".contains(c)
}

/// Replaces a path where it stands as a whole, not where it is the beginning of a longer name. What follows a folder's path
/// up to the next blank goes too, but for the last name.
fn replace(text: &str, needle: &str, left: &str) -> String {
    let folder = needle.ends_with('/');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(needle) {
        let (before, found) = rest.split_at(at);
        let mut after = &found[needle.len()..];
        let begins = !before.ends_with(inside_name);
        // A full stop behind a path is the sentence's, unless a name goes on behind it.
        let ends = folder || !after.trim_start_matches('.').starts_with(inside_name);
        out.push_str(before);
        if begins && ends {
            out.push_str(left);
            if folder {
                let word = &after[..after.find(ends_path).unwrap_or(after.len())];
                after = &after[word.rfind('/').filter(|at| at + 1 < word.len()).map_or(0, |at| at + 1)..];
            }
        } else {
            out.push_str(needle);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn ends_path(c: char) -> bool {
    c.is_whitespace() || "\"'`()[]<>,;=|".contains(c)
}

/// Cuts every absolute path in a text down to its file name. A path begins where a word does; `frames/s` is none. In quotes
/// it ends where they do. Elsewhere it ends at a blank, unless a later word of the same part of the sentence has a slash
/// in it too: then the blank may be one of a name.
fn without_absolute_paths(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = begin_of_path(rest) {
        let (before, path) = rest.split_at(at);
        out.push_str(before.strip_suffix('~').unwrap_or(before));
        let quote = before.chars().next_back().filter(|c| "\"'`".contains(*c));
        let length = match quote.and_then(|quote| path.find(quote)).filter(|end| !path[..*end].contains('\n')) {
            Some(end) => end,
            None => length_of_path(path),
        };
        let (path, after) = path.split_at(length);
        let trail = path.len() - path.trim_end_matches([':', '.']).len();
        let (path, trail) = path.split_at(path.len() - trail);
        // A `/` alone is a sign, not a place.
        out.push_str(&if path.len() > 1 { file_name(path) } else { path.to_owned() });
        out.push_str(trail);
        rest = after;
    }
    out + rest
}

/// Where the first absolute path begins.
fn begin_of_path(text: &str) -> Option<usize> {
    text.match_indices('/').map(|(at, _)| at).find(|&at| {
        let before = &text[..at];
        let begins = before.is_empty() || before.ends_with(ends_path) || before.ends_with([':', '~', '{']);
        // `http://host/path` is no place on this machine, and `//` is how comments begin.
        begins && text[at + 1..].starts_with(|c: char| !c.is_whitespace() && c != '/')
    })
}

fn length_of_path(path: &str) -> usize {
    let word_end = |text: &str| text.find(ends_path).unwrap_or(text.len());
    let mut length = word_end(path);
    // Up to the end of this part of the sentence.
    let part = path.find(['\n', '"', '`', ',', ';', '(', ')', '<', '>', '|']).unwrap_or(path.len());
    let part = path[..part].find(": ").unwrap_or(part);
    let mut at = length;
    while at < part {
        let blanks = path[at..part].len() - path[at..part].trim_start_matches([' ', '\'']).len();
        let word = &path[at + blanks..part];
        let word = &word[..word_end(word)];
        if blanks == 0 && word.is_empty() || word.starts_with('/') || word.starts_with("~/") {
            break;
        }
        at += blanks + word.len();
        if word.contains('/') && !is_ratio(word) {
            length = at;
        }
        if blanks + word.len() == 0 {
            break;
        }
    }
    length
}

/// `3/4`, `frames/s`, `n/a`: a slash that is no path's.
fn is_ratio(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ':']);
    match word.split_once('/') {
        Some((_, "s" | "a" | "or")) => true,
        Some((one, other)) => [one, other].iter().all(|part| part.chars().all(|c| c.is_ascii_digit() || c == '.')),
        None => false,
    }
}

/// Replaces a name where it stands as a word of its own.
fn without_word(text: &str, name: &str, stand_in: &str) -> String {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in text.match_indices(name) {
        let end = at + name.len();
        let alone = !text[..at].ends_with(part_of_word) && !text[end..].starts_with(part_of_word);
        if alone && at >= done {
            out.push_str(&text[done..at]);
            out.push_str(stand_in);
            done = end;
        }
    }
    out + &text[done..]
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
