//! Who else could decide what runs when a library is opened: whoever owns it or may write to it, to what it brings along, or
//! to a folder above any of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use prony_files::owner_problem;
use prony_types::RuntimeName;

use super::places::{Places, list};
use super::{elf, names};

/// Why a file is listed and not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is in an environment in or above the current folder that nobody activated.
    NotActivated,
    /// Somebody else owns it or may write to it, or to something that decides what is opened.
    Foreign(String),
}

/// Looks at libraries with all that they bring along, each file once.
pub(super) struct Inspector {
    /// Where the loader looks beside the folders that a library names.
    loader: Vec<PathBuf>,
    known: HashMap<PathBuf, Option<String>>,
}

impl Inspector {
    pub(super) fn new(places: &Places) -> Inspector {
        Inspector { loader: places.loader_folders(), known: HashMap::new() }
    }

    /// What somebody else has a say in. `None` also where the file cannot be looked at: then it cannot be opened either, and the
    /// reason for that is reported elsewhere.
    pub(super) fn problem(&mut self, name: RuntimeName, path: &Path) -> Option<String> {
        if names::is_program(name) {
            return owner_problem(path).ok().flatten();
        }
        let problem = owner_problem(path).ok().flatten();
        // What the loader sees is the real file: `$ORIGIN` is its folder.
        let real = std::fs::canonicalize(path).ok()?;
        problem.or_else(|| self.file(&real)).or_else(|| self.companions(name, &real))
    }

    /// Files beside a library that it opens by itself.
    fn companions(&mut self, name: RuntimeName, path: &Path) -> Option<String> {
        let prefixes: &[&str] = match name {
            RuntimeName::Onnxruntime => &["libonnxruntime_providers_"],
            RuntimeName::Openvino => &["libopenvino", "plugins.xml"],
            RuntimeName::Nvinfer | RuntimeName::NvinferLean => &["libnvinfer"],
            RuntimeName::Cudnn => &["libcudnn"],
            _ => &[],
        };
        let folder = path.parent()?;
        let mut beside = list(folder);
        beside.retain(|file| prefixes.iter().any(|prefix| file.starts_with(prefix)));
        beside.sort_unstable();
        beside.iter().find_map(|file| self.file(&folder.join(file)))
    }

    fn file(&mut self, path: &Path) -> Option<String> {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        // Libraries may need each other.
        self.known.insert(path.to_owned(), None);
        let problem = owner_problem(path).ok().flatten().or_else(|| self.needed(path));
        self.known.insert(path.to_owned(), problem.clone());
        problem
    }

    /// What the loader opens before the library itself.
    fn needed(&mut self, path: &Path) -> Option<String> {
        let needs = elf::needs(path)?;
        let origin = path.parent()?.to_string_lossy().into_owned();
        let mut folders = Vec::new();
        for folder in &needs.folders {
            let whole = folder.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", &origin);
            if !whole.starts_with(['/', '$']) {
                return Some(relative(path, if folder.is_empty() { "an empty entry" } else { folder }));
            }
            folders.push(PathBuf::from(whole));
        }
        for name in &needs.needed {
            if name.contains('/') && !name.starts_with(['/', '$']) {
                return Some(relative(path, name));
            }
            let mut places = folders.iter().chain(&self.loader).map(|folder| folder.join(name));
            let Some(found) = places.find(|path| path.exists()) else { continue };
            if let Some(problem) = self.file(&found) {
                return Some(problem);
            }
        }
        None
    }
}

/// The loader would look in the current folder, whichever that is.
fn relative(path: &Path, what: &str) -> String {
    format!("{} looks for libraries in the current folder ({what} in its header)", path.display())
}
