//! Python packages that matter here, from their metadata. Nothing is imported and no Python is run.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::PythonPackage;

/// Names in the normal form of Python's registry: lower case, single hyphens.
const PACKAGES: &[&str] = &[
    "cuda-python",
    "jetson-stats",
    "numpy",
    "nvidia-modelopt",
    "onnx",
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-openvino",
    "onnxsim",
    "opencv-python",
    "opencv-python-headless",
    "openvino",
    "polygraphy",
    "pycuda",
    "tensorrt",
    "tensorrt-dispatch",
    "tensorrt-lean",
    "torch",
    "torchvision",
    "ultralytics",
];

/// What the environment of a process says about where Python is.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Prefixes of environments that are switched on: `VIRTUAL_ENV`, `CONDA_PREFIX`.
    pub(crate) active: Vec<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    /// `PATH`.
    pub(crate) path: Option<OsString>,
}

impl Hints {
    /// Those of this process.
    pub(crate) fn here() -> Hints {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Hints {
            active: ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(folder).collect(),
            home: folder("HOME"),
            path: std::env::var_os("PATH"),
        }
    }

    /// Prefixes, the nearest to the user first.
    fn prefixes(&self, root: &Path) -> Vec<PathBuf> {
        // Environments in the current folder count where they are activated: the others are not used for anything.
        let mut prefixes = self.active.clone();
        prefixes.extend(self.path.iter().flat_map(interpreter_prefixes));
        prefixes.extend(self.home.iter().map(|home| home.join(".local")));
        prefixes.extend(["usr/local", "usr"].map(|prefix| root.join(prefix)));
        prefixes
    }
}

/// Prefixes of the first `python3` on a search path: as it is called, and as its links lead.
fn interpreter_prefixes(path: &OsString) -> Vec<PathBuf> {
    let mut programs = std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|f| f.join("python3"));
    let Some(program) = programs.find(|program| program.is_file()) else { return Vec::new() };
    let prefix = |program: &Path| program.parent().and_then(Path::parent).map(Path::to_owned);
    let Some(called) = prefix(&program) else { return Vec::new() };
    let mut prefixes = Vec::new();
    if program.parent().is_some_and(|folder| folder.ends_with("shims")) {
        // A script of pyenv that picks one of its versions.
        prefixes.extend(folders(&called.join("versions"), |_| true));
    }
    prefixes.insert(0, called);
    prefixes.extend(fs::canonicalize(&program).ok().as_deref().and_then(prefix));
    prefixes
}

/// Folders that hold packages, each once.
fn site_packages(root: &Path, hints: &Hints) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for prefix in hints.prefixes(root) {
        for lib in ["lib", "lib64"] {
            for python in folders(&prefix.join(lib), |name| name.starts_with("python3")) {
                for site in ["site-packages", "dist-packages"] {
                    // `lib64` is a link to `lib` as often as not.
                    let Ok(site) = fs::canonicalize(python.join(site)) else { continue };
                    if !found.contains(&site) {
                        found.push(site);
                    }
                }
            }
        }
    }
    found
}

/// The packages of every place, by name; the nearest place first.
pub(crate) fn packages(root: &Path, hints: &Hints) -> Vec<PythonPackage> {
    let mut found: Vec<PythonPackage> = Vec::new();
    for site in site_packages(root, hints) {
        let mut here: Vec<PythonPackage> = entries(&site).iter().filter_map(|entry| package(&site, entry)).collect();
        here.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.version.cmp(&b.version)));
        here.dedup();
        found.extend(here);
    }
    // Stable: places keep their order.
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// A package by its `NAME-VERSION.dist-info` folder, or Debian's `.egg-info`, which may be a file.
fn package(site: &Path, entry: &str) -> Option<PythonPackage> {
    let stem = entry.strip_suffix(".dist-info").or_else(|| entry.strip_suffix(".egg-info"))?;
    let (name, version) = stem.split_once('-').unwrap_or((stem, ""));
    if !matters(&normal(name)) {
        return None;
    }
    let metadata = ["METADATA", "PKG-INFO", ""].iter().find_map(|file| {
        let path = site.join(entry);
        let path = if file.is_empty() { path } else { path.join(file) };
        prony_files::read(&path, Kind::Sidecar).ok()
    });
    let metadata = String::from_utf8_lossy(&metadata.unwrap_or_default()).into_owned();
    let field = |key: &str| header(&metadata, key).map(str::to_owned);
    Some(PythonPackage {
        name: normal(&field("Name:").unwrap_or_else(|| name.to_owned())),
        version: field("Version:").or_else(|| Some(version.split("-py3").next()?.to_owned()))?,
        place: site.display().to_string(),
    })
    .filter(|package| !package.version.is_empty())
}

/// A field of the headers; the description after the first empty line may say anything.
fn header<'a>(metadata: &'a str, key: &str) -> Option<&'a str> {
    let mut headers = metadata.lines().take_while(|line| !line.trim().is_empty());
    headers.find_map(|line| line.strip_prefix(key)).map(str::trim).filter(|value| !value.is_empty())
}

/// PEP 503: runs of `-`, `_` and `.` are one hyphen.
fn normal(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// `tensorrt-cu12` is TensorRT too.
fn matters(name: &str) -> bool {
    let plain = match name.rsplit_once("-cu") {
        Some((plain, cuda)) if !cuda.is_empty() && cuda.bytes().all(|b| b.is_ascii_digit()) => plain,
        _ => name,
    };
    PACKAGES.contains(&plain)
}

fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

/// Entries of a folder by name, in order.
fn folders(parent: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut names = entries(parent);
    names.retain(|name| wanted(name));
    names.sort_unstable();
    names.into_iter().map(|name| parent.join(name)).collect()
}

#[cfg(test)]
#[path = "python_tests.rs"]
mod tests;
