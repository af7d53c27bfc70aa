//! The libraries that tests can use: named in the environment, or installed under `PRONY_HOME`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use prony_backend::backend;
use prony_backend::conformance::Subject;
use prony_types::{BackendName, RuntimeName, RuntimeSpec};

/// A backend with its library. Where that is not there the test says so, or fails if `PRONY_TEST_REQUIRE` is set.
pub(crate) fn subject(name: BackendName) -> Option<Subject> {
    let Some((runtime, _)) = name.needs() else {
        return Some(Subject { backend: backend(name), runtime: None });
    };
    let found = find(runtime);
    if found.is_none() {
        prony_standin::skip(&format!("{name} has no library; run `prony runtime install {runtime}`"));
    }
    found.map(|spec| Subject { backend: backend(name), runtime: Some(spec) })
}

fn find(runtime: RuntimeName) -> Option<RuntimeSpec> {
    let variable = format!("PRONY_{}", runtime.name().to_uppercase().replace('-', "_"));
    if let Some(library) = env::var_os(&variable).map(PathBuf::from) {
        assert!(library.is_file(), "{variable}: {} is not a file", library.display());
        return Some(RuntimeSpec::new(library, format!("from {variable}")));
    }
    let mut folders: Vec<PathBuf> = fs::read_dir(home()?.join("runtimes").join(runtime.name()))
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort_by_key(|folder| version_of(folder).split('.').map(|n| n.parse().unwrap_or(0)).collect::<Vec<u64>>());
    folders.iter().rev().find_map(|folder| Some(RuntimeSpec::new(library_in(folder, runtime)?, version_of(folder))))
}

fn home() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PRONY_HOME")
        .or_else(|| Some(set("XDG_DATA_HOME")?.join("prony")))
        .or_else(|| Some(set("HOME")?.join(".local/share/prony")))
}

fn version_of(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The main library of an installed runtime: as its `runtime.json` says, else by its name.
fn library_in(folder: &Path, runtime: RuntimeName) -> Option<PathBuf> {
    let recorded = fs::read(folder.join("runtime.json")).ok();
    let recorded = recorded.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    if let Some(relative) = recorded.as_ref().and_then(|record| record["library"].as_str()) {
        return Some(folder.join(relative)).filter(|path| path.is_file());
    }
    let stem = if runtime == RuntimeName::Openvino { "libopenvino_c.so" } else { "libonnxruntime.so" };
    search(folder, stem)
}

fn search(folder: &Path, stem: &str) -> Option<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let named = |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(stem));
    let here = paths.iter().filter(|path| path.is_file()).find(named).cloned();
    here.or_else(|| paths.iter().filter(|path| path.is_dir()).find_map(|path| search(path, stem)))
}
