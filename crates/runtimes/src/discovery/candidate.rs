//! The files that may be runtimes, found and looked at from outside.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use prony_types::RuntimeName;

use super::foreign::{Inspector, Refusal};
use super::names::{self, EXPLICIT, NOT_ACTIVATED, ORT_DYLIB_PATH, PRONY_HOME, file_name, variable};
use super::places::{Places, expand};
use super::{elf, sought};

/// A file that may be a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub name: RuntimeName,
    /// Its file. A library's has its symbolic links followed where they lead somewhere.
    pub path: PathBuf,
    /// How it was found.
    pub found_by: String,
    /// Whether its header allows opening it; why not.
    pub verdict: Result<(), String>,
    /// Why it must not be opened, whatever it is.
    pub refusal: Option<Refusal>,
}

/// Every file that may be a runtime, by runtime, in the order in which they would be used. Opens nothing.
pub fn candidates(places: &Places, names: &[RuntimeName]) -> Vec<Candidate> {
    let mut inspector = Inspector::new(places);
    names.iter().flat_map(|&name| candidates_for(places, name, &mut inspector)).collect()
}

/// Where a runtime was looked for: variables, folders and patterns of folders, in order.
pub fn looked(places: &Places, name: RuntimeName) -> Vec<String> {
    let mut looked = vec![variable(name)];
    if name == RuntimeName::Onnxruntime {
        looked.push(ORT_DYLIB_PATH.to_owned());
    }
    looked.extend(sought::installed_patterns(name, &places.home).iter().map(|path| path.display().to_string()));
    looked.extend(places.folders(name).iter().map(|place| place.pattern.display().to_string()));
    let mut seen = BTreeSet::new();
    looked.retain(|place| seen.insert(place.clone()));
    looked
}

fn candidates_for(places: &Places, name: RuntimeName, inspector: &mut Inspector) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (path, found_by) in pointed_at(places, name) {
        found.extend(explicit(name, &path, &found_by, inspector));
    }
    for installed in sought::installed(name, &places.home) {
        found.push(match installed {
            Ok(path) => examine(name, &path, PRONY_HOME, inspector),
            Err((path, reason)) => unusable(name, path, PRONY_HOME, reason),
        });
    }
    for place in places.folders(name) {
        let files = expand(&place.pattern).into_iter().flat_map(|folder| sought::in_folder(name, &folder));
        for file in files {
            found.push(match place.found_by {
                // Not even its header is read.
                NOT_ACTIVATED => not_activated(name, file),
                found_by => examine(name, &file, found_by, inspector),
            });
        }
    }
    once_each(found)
}

/// Each file by the first way to it that may be taken, else by the first.
fn once_each(mut found: Vec<Candidate>) -> Vec<Candidate> {
    let real = |candidate: &Candidate| fs::canonicalize(&candidate.path).unwrap_or_else(|_| candidate.path.clone());
    let allowed: BTreeSet<PathBuf> = found.iter().filter(|candidate| candidate.refusal.is_none()).map(real).collect();
    let mut seen = BTreeSet::new();
    found.retain(|candidate| {
        let real = real(candidate);
        (candidate.refusal.is_none() || !allowed.contains(&real)) && seen.insert(real)
    });
    found
}

fn unusable(name: RuntimeName, path: PathBuf, found_by: &str, reason: String) -> Candidate {
    Candidate { name, path, found_by: found_by.to_owned(), verdict: Err(reason), refusal: None }
}

fn not_activated(name: RuntimeName, path: PathBuf) -> Candidate {
    let refusal = Some(Refusal::NotActivated);
    Candidate { name, path, found_by: NOT_ACTIVATED.to_owned(), verdict: Ok(()), refusal }
}

/// Paths that someone gave for a runtime, the strongest first, with the word for it.
fn pointed_at(places: &Places, name: RuntimeName) -> Vec<(PathBuf, String)> {
    let flags = places.explicit.iter().filter(|(of, _)| *of == name);
    let mut paths: Vec<(PathBuf, String)> = flags.map(|(_, path)| (path.clone(), EXPLICIT.to_owned())).collect();
    let mut variables = vec![variable(name)];
    if name == RuntimeName::Onnxruntime {
        variables.push(ORT_DYLIB_PATH.to_owned());
    }
    for variable in variables {
        paths.extend(places.folder_in(&variable).map(|path| (path, variable)));
    }
    for (path, _) in &mut paths {
        // The child must find it from wherever it stands.
        if let (true, Some(current)) = (path.is_relative(), &places.current) {
            *path = current.join(&*path);
        }
    }
    paths
}

/// What someone pointed at is a finding, whatever it is.
fn explicit(name: RuntimeName, path: &Path, found_by: &str, inspector: &mut Inspector) -> Vec<Candidate> {
    if !path.is_dir() {
        return vec![examine(name, path, found_by, inspector)];
    }
    let files = sought::in_tree(name, path);
    if files.is_empty() {
        return vec![unusable(name, path.to_owned(), found_by, format!("a folder without {}", file_name(name)))];
    }
    files.iter().map(|file| examine(name, file, found_by, inspector)).collect()
}

fn examine(name: RuntimeName, path: &Path, found_by: &str, inspector: &mut Inspector) -> Candidate {
    // By the path as it was found: a link on the way decides too.
    let refusal = inspector.problem(name, path).map(Refusal::Foreign);
    let (path, verdict) = match fs::canonicalize(path) {
        // A program may be a link to one that looks at the name it is called by.
        Ok(real) if names::is_program(name) => (path.to_owned(), elf::check_program(&real)),
        Ok(real) => {
            let verdict = elf::check_library(&real);
            (real, verdict)
        }
        Err(_) if path.is_symlink() => (path.to_owned(), Err("a symbolic link that leads nowhere".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            (path.to_owned(), Err("does not exist".to_owned()))
        }
        Err(error) => (path.to_owned(), Err(format!("cannot be read: {error}"))),
    };
    Candidate { name, path, found_by: found_by.to_owned(), verdict, refusal }
}

#[cfg(test)]
#[path = "candidate_tests.rs"]
mod tests;
