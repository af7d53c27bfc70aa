//! What is installed: a folder a version, each with a `runtime.json` that says what belongs in it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Package, Request, Version, home, wheel};
use crate::FileRecord;

/// Name of the record in a runtime's folder.
pub(super) const RECORD_FILE: &str = "runtime.json";
/// Schema of the record.
pub(super) const SCHEMA: &str = "prony.runtime/1";

/// `runtime.json`: what was unpacked, and from where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InstallRecord {
    pub schema: String,
    pub name: String,
    pub version: Version,
    /// File name of the wheel.
    pub wheel: String,
    pub wheel_sha256: String,
    pub arch: String,
    /// RFC 3339, UTC.
    pub installed: String,
    /// The library to open, or the program to run, relative to the folder.
    pub main: String,
    pub files: Vec<FileRecord>,
}

/// A version's folder.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Which package.
    pub name: Package,
    /// Which version.
    pub version: Version,
    /// Where it is.
    pub folder: PathBuf,
    /// `Err`: why the record cannot be used.
    pub record: Result<InstallRecord, String>,
}

/// Whether a runtime is as it was unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Every file is there, with the hash of its record.
    Whole,
    /// Which file, and what is wrong with it.
    Damaged(String),
}

impl Installed {
    /// Reads a version's folder.
    fn read(name: Package, version: Version, folder: PathBuf) -> Installed {
        let record = read_record(&folder, name, &version);
        Installed { name, version, folder, record }
    }

    /// Path of the library or program; `None` where the record is gone.
    pub fn main(&self) -> Option<PathBuf> {
        self.record.as_ref().ok().map(|record| self.folder.join(&record.main))
    }

    /// Bytes of its files; 0 where the record is gone.
    pub fn bytes(&self) -> u64 {
        self.record.as_ref().map_or(0, |record| record.files.iter().map(|file| file.bytes).sum())
    }

    /// Compares the names and sizes of files: cheap, for those who want to open the library now.
    pub fn glance(&self) -> State {
        self.check(|path, file| match fs::metadata(path) {
            Ok(found) if found.len() == file.bytes => None,
            Ok(found) => Some(format!("has {} bytes, not {}", found.len(), file.bytes)),
            Err(error) => Some(format!("cannot be read: {error}")),
        })
    }

    /// Compares every byte, by hash.
    pub fn examine(&self) -> State {
        self.check(|path, file| {
            match prony_files::open(path, prony_files::Kind::Library).and_then(|mut file| wheel::hash(&mut file)) {
                Ok((sha256, bytes)) if sha256 == file.sha256 && bytes == file.bytes => None,
                Ok(_) => Some("was changed since it was installed".to_owned()),
                Err(error) => Some(format!("cannot be read: {error}")),
            }
        })
    }

    fn check(&self, objection: impl Fn(&Path, &FileRecord) -> Option<String>) -> State {
        let record = match &self.record {
            Ok(record) => record,
            Err(reason) => return State::Damaged(reason.clone()),
        };
        if !record.files.iter().any(|file| file.path == record.main) {
            return State::Damaged(format!("{RECORD_FILE} does not list {}", record.main));
        }
        let found = record.files.iter().find_map(|file| Some((file, objection(&self.folder.join(&file.path), file)?)));
        found.map_or(State::Whole, |(file, what)| State::Damaged(format!("{} {what}", file.path)))
    }
}

fn read_record(folder: &Path, name: Package, version: &Version) -> Result<InstallRecord, String> {
    let text = prony_files::read(&folder.join(RECORD_FILE), prony_files::Kind::Sidecar);
    let text = text.map_err(|error| format!("{RECORD_FILE} cannot be read: {error}"))?;
    let record: InstallRecord =
        serde_json::from_slice(&text).map_err(|error| format!("{RECORD_FILE} is malformed: {error}"))?;
    if record.schema != SCHEMA {
        return Err(format!("{RECORD_FILE} has schema `{}`, this version reads {SCHEMA}", record.schema));
    }
    if record.name != name.as_str() || record.version != *version {
        return Err(format!("{RECORD_FILE} is that of {} {}", record.name, record.version));
    }
    // What is hashed, printed and opened by this record lies in its own folder, whoever wrote it.
    let files = record.files.iter().map(|file| &file.path);
    let outside = |path: &&String| !Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if let Some(path) = files.chain([&record.main]).find(outside) {
        return Err(format!("{RECORD_FILE} names {path}, which is outside its folder"));
    }
    Ok(record)
}

/// The folder of all runtimes.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// Its path.
    pub folder: PathBuf,
}

impl Shelf {
    /// Under a home folder.
    pub fn new(home: &Path) -> Shelf {
        Shelf { folder: home::runtimes(home) }
    }

    /// Where a version goes.
    pub fn place(&self, name: Package, version: &Version) -> PathBuf {
        self.folder.join(name.as_str()).join(version.as_str())
    }

    /// Installed versions, newest first.
    pub fn versions(&self, name: Package) -> Vec<Installed> {
        let entries = fs::read_dir(self.folder.join(name.as_str())).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let version = |entry: fs::DirEntry| {
            let version: Version = entry.file_name().to_str()?.parse().ok()?;
            Some(Installed::read(name, version, entry.path()))
        };
        let mut found: Vec<Installed> = folders.filter_map(version).collect();
        found.sort_by(|a, b| b.version.cmp(&a.version));
        found
    }

    /// The version that is asked for, or the newest.
    pub fn find(&self, request: &Request) -> Option<Installed> {
        let wanted = |found: &Installed| request.version.as_ref().is_none_or(|version| version.is_same(&found.version));
        self.versions(request.name).into_iter().find(wanted)
    }
}
