//! The search for one runtime in a folder, in Prony's own folder, and where someone pointed.

use std::path::{Component, Path, PathBuf};

use prony_types::RuntimeName;

use super::names::{fits, natural};
use super::places::{expand, list};

/// How deep a folder is searched that is known to hold the runtime somewhere.
const DEPTH: u32 = 2;

/// Files in a folder that may be the runtime: the plain name first, then the highest version.
pub(super) fn in_folder(name: RuntimeName, folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<String> = list(folder).into_iter().filter(|file| fits(name, file)).collect();
    files.sort_by(|a, b| a.contains(".so.").cmp(&b.contains(".so.")).then_with(|| natural(b, a)));
    files.into_iter().map(|file| folder.join(file)).filter(|path| !path.is_dir()).collect()
}

/// The same, in the folders below it too.
pub(super) fn in_tree(name: RuntimeName, folder: &Path) -> Vec<PathBuf> {
    search(name, folder, DEPTH)
}

fn search(name: RuntimeName, folder: &Path, depth: u32) -> Vec<PathBuf> {
    let found = in_folder(name, folder);
    if !found.is_empty() || depth == 0 {
        return found;
    }
    let mut below = list(folder);
    below.sort_by(|a, b| natural(a, b));
    let folders = below.into_iter().map(|entry| folder.join(entry)).filter(|path| path.is_dir());
    folders.flat_map(|folder| search(name, &folder, depth - 1)).collect()
}

/// Folders below Prony's own in which a runtime may be installed.
pub(super) fn installed_patterns(name: RuntimeName, home: &Path) -> Vec<PathBuf> {
    let names: &[&str] = match name {
        RuntimeName::Onnxruntime => &["onnxruntime", "onnxruntime-gpu"],
        RuntimeName::Openvino => &["openvino"],
        RuntimeName::Ffmpeg => &["ffmpeg"],
        _ => &[],
    };
    names.iter().map(|name| home.join("runtimes").join(name)).collect()
}

/// What is installed in Prony's own folder, the newest version first: a file, or a folder in which it is missing.
pub(super) fn installed(name: RuntimeName, home: &Path) -> Vec<Result<PathBuf, (PathBuf, String)>> {
    let versions = installed_patterns(name, home).into_iter().flat_map(|folder| expand(&folder.join("*")));
    // An install under way has no record yet, and is no finding.
    versions
        .filter(|folder| folder.is_dir())
        .map(|folder| match main_file(&folder) {
            Some(file) if !is_inside(&file) => {
                Err((folder, format!("its runtime.json names {file}, which is outside its folder")))
            }
            Some(file) if folder.join(&file).exists() => Ok(folder.join(file)),
            Some(file) => Err((folder, format!("its runtime.json names {file}, which is not there"))),
            None => match in_tree(name, &folder).into_iter().next() {
                Some(file) => Ok(file),
                None => Err((folder, format!("holds no {}", super::file_name(name)))),
            },
        })
        .collect()
}

/// The library or program that an installed runtime's record names, relative to its folder.
fn main_file(folder: &Path) -> Option<String> {
    let record = prony_files::read(&folder.join("runtime.json"), prony_files::Kind::Sidecar).ok()?;
    let record: serde_json::Value = serde_json::from_slice(&record).ok()?;
    let file = ["main", "library"].into_iter().find_map(|key| record.get(key))?.as_str()?;
    Some(file.to_owned())
}

/// Whether a path stays below the folder that it is relative to.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
