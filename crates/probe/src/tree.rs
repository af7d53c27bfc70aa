//! Small files under a root.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A root with `proc` and `sys` in it: `/`, or a fixture.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(crate) fn new(root: PathBuf) -> Tree {
        Tree { root }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative.trim_start_matches('/'))
    }

    /// The text of a file without the white space and NULs around it; `None` when it cannot be read or is empty.
    pub(crate) fn text(&self, relative: &str) -> Option<String> {
        let bytes = std::fs::read(self.path(relative)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A file that holds one value.
    pub(crate) fn value<T: FromStr>(&self, relative: &str) -> Option<T> {
        self.text(relative)?.parse().ok()
    }

    /// Names in a folder, in order.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let mut names = list(&self.path(folder));
        names.sort_unstable();
        names
    }

    /// Names in a folder that are `prefix` and a number, by that number.
    pub(crate) fn numbered(&self, folder: &str, prefix: &str) -> Vec<String> {
        let mut found: Vec<(u32, String)> = list(&self.path(folder))
            .into_iter()
            .filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect()
    }
}

fn list(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}
