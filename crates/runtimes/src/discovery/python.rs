//! Where Python packages lie. Python itself is never run: it may be slow, broken or a trap.

use std::fs;
use std::path::{Path, PathBuf};

use super::places::{Places, expand};

impl Places {
    /// The folders of Python packages that exist here, the nearest first: the active environment, the Python on `PATH`, the
    /// user's own, the system's.
    pub fn site_packages(&self) -> Vec<PathBuf> {
        let mut seen = Vec::new();
        let existing = self.site_patterns().into_iter().flat_map(|pattern| expand(&pattern));
        existing
            .filter(|folder| {
                let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
                let fresh = !seen.contains(&real);
                seen.push(real);
                fresh
            })
            .collect()
    }

    /// Patterns of those folders, in order.
    pub(super) fn site_patterns(&self) -> Vec<PathBuf> {
        let mut prefixes: Vec<PathBuf> = Vec::new();
        prefixes.extend(self.folder_in("VIRTUAL_ENV"));
        prefixes.extend(self.folder_in("CONDA_PREFIX"));
        prefixes.extend(self.python_on_path());
        prefixes.extend(self.folder_in("HOME").map(|home| home.join(".local")));
        let mut patterns: Vec<PathBuf> = prefixes.iter().flat_map(|prefix| in_prefix(prefix)).collect();
        patterns.push(self.at("/usr/lib/python3/dist-packages"));
        patterns.push(self.at("/usr/lib/python3*/site-packages"));
        patterns.push(self.at("/usr/local/lib/python3*/site-packages"));
        patterns.push(self.at("/usr/local/lib/python3*/dist-packages"));
        let mut seen = std::collections::BTreeSet::new();
        patterns.retain(|pattern| seen.insert(pattern.clone()));
        patterns
    }

    /// The same for the virtual environments in the current folder, which nobody activated.
    pub(super) fn inactive_site_patterns(&self) -> Vec<PathBuf> {
        let prefixes = self.current.iter().flat_map(|folder| [folder.join(".venv"), folder.join("venv")]);
        prefixes.flat_map(|prefix| in_prefix(&prefix)).collect()
    }

    /// Prefixes of the `python3` that a shell would run: its environment, and what that was made from.
    fn python_on_path(&self) -> Vec<PathBuf> {
        let Some(python) =
            self.folders_in("PATH").into_iter().map(|folder| folder.join("python3")).find(|path| path.is_file())
        else {
            return Vec::new();
        };
        let mut prefixes = Vec::new();
        let own = prefix_of(&python);
        if let Some(own) = &own {
            // A shim of pyenv is a script that chooses among these; which one, only it knows.
            if own.join("shims").is_dir() && python.parent().is_some_and(|folder| folder.ends_with("shims")) {
                return expand(&own.join("versions/*"));
            }
            prefixes.push(own.clone());
            prefixes.extend(base_of(own));
        }
        prefixes.extend(fs::canonicalize(&python).ok().as_deref().and_then(prefix_of));
        let root = self.at("/usr");
        // The system's Python has its folders listed anyway, in the system's own layout.
        prefixes.retain(|prefix| *prefix != root);
        prefixes
    }
}

fn in_prefix(prefix: &Path) -> [PathBuf; 2] {
    [prefix.join("lib/python3*/site-packages"), prefix.join("lib64/python3*/site-packages")]
}

/// `/x` of `/x/bin/python3`.
fn prefix_of(python: &Path) -> Option<PathBuf> {
    python.parent()?.parent().map(Path::to_owned)
}

/// The prefix that a virtual environment was made from, where it may use that one's packages.
fn base_of(prefix: &Path) -> Option<PathBuf> {
    let text = prony_files::read_text(&prefix.join("pyvenv.cfg"), prony_files::Kind::Sidecar).ok()?;
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    let shares = value("include-system-site-packages").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let folder = PathBuf::from(value("home")?);
    folder.parent().filter(|_| shares && folder.is_absolute()).map(Path::to_owned)
}
