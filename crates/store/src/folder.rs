//! The folder of one run.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use prony_types::{RunRecord, SCHEMA};
use serde::Deserialize;

use crate::{StoreError, write_atomic};

/// Name of the record inside a run folder.
const RECORD: &str = "report.json";

/// A run folder: `report.json`, the logs, and a folder a cell under `cells/`.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Folders that did not exist before, innermost first: what a discarded run takes away again.
    made: Vec<PathBuf>,
}

impl RunFolder {
    /// Makes `<out>/<stamp>-<name>`, with `-2`, `-3`, … where that is taken, and `cells/` in it.
    pub fn create(out: &Path, name: &str, utc_stamp: &str) -> Result<RunFolder, StoreError> {
        let mut made: Vec<PathBuf> =
            out.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists()).map(Path::to_owned).collect();
        fs::create_dir_all(out).map_err(StoreError::io("make the folder", out))?;
        let base = format!("{utc_stamp}-{}", plain(name));
        let mut path = out.join(&base);
        let mut number = 1;
        loop {
            match fs::create_dir(&path) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    number += 1;
                    path = out.join(format!("{base}-{number}"));
                }
                Err(error) => {
                    remove_empty(&made);
                    return Err(StoreError::io("make the run folder", &path)(error));
                }
            }
        }
        made.insert(0, path.clone());
        let folder = RunFolder { path, made };
        let cells = folder.path.join("cells");
        if let Err(error) = fs::create_dir(&cells) {
            folder.discard()?;
            return Err(StoreError::io("make the folder", &cells)(error));
        }
        Ok(folder)
    }

    /// A folder that an earlier run made, to be resumed or reported.
    pub fn open(path: &Path) -> Result<RunFolder, StoreError> {
        let metadata = fs::metadata(path).map_err(StoreError::io("open the run folder", path))?;
        if !metadata.is_dir() || !path.join(RECORD).is_file() {
            let reason = format!("not a run folder: there is no {RECORD} in it");
            return Err(StoreError::Malformed { path: path.to_owned(), line: None, reason });
        }
        Ok(RunFolder { path: path.to_owned(), made: Vec::new() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name: the id of the run.
    pub fn id(&self) -> String {
        self.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of a cell, made when it is not there.
    pub fn cell_dir(&self, slug: &str) -> Result<PathBuf, StoreError> {
        let path = self.path.join("cells").join(slug);
        fs::create_dir_all(&path).map_err(StoreError::io("make the folder", &path))?;
        Ok(path)
    }

    /// Replaces `report.json`.
    pub fn write_record(&self, record: &RunRecord) -> Result<(), StoreError> {
        let path = self.path.join(RECORD);
        let mut json = serde_json::to_vec_pretty(record).map_err(|error| StoreError::Malformed {
            path: path.clone(),
            line: None,
            reason: format!("the record cannot be written as JSON: {error}"),
        })?;
        json.push(b'\n');
        write_atomic(&path, &json)
    }

    /// Reads `report.json`.
    pub fn read_record(&self) -> Result<RunRecord, StoreError> {
        read_record_at(&self.path)
    }

    /// Takes the folder away again, with what this run put into it and the parents it had to make; for a run in which nothing
    /// ran. A folder that was opened rather than created stays as it is.
    pub fn discard(self) -> Result<(), StoreError> {
        if self.made.first() == Some(&self.path) {
            fs::remove_dir_all(&self.path).map_err(StoreError::io("remove the run folder", &self.path))?;
            remove_empty(&self.made[1..]);
        }
        Ok(())
    }
}

/// Reads the record of a run, given its folder or the `report.json` itself.
pub fn read_record_at(path: &Path) -> Result<RunRecord, StoreError> {
    let file = if path.is_dir() { path.join(RECORD) } else { path.to_owned() };
    let text = fs::read_to_string(&file).map_err(StoreError::io("read", &file))?;
    let malformed = |error: serde_json::Error| StoreError::Malformed {
        path: file.clone(),
        line: None,
        reason: format!("not a record of a run: {error}"),
    };
    // Another version may differ in any field, so its name is looked at before the rest.
    let header: Header = serde_json::from_str(&text).map_err(malformed)?;
    if header.schema != SCHEMA {
        return Err(StoreError::Schema { path: file, found: header.schema, known: SCHEMA });
    }
    serde_json::from_str(&text).map_err(malformed)
}

#[derive(Deserialize)]
struct Header {
    schema: String,
}

/// Folders that hold nothing go; one that meanwhile holds something stays.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redaction::tests::record;

    const STAMP: &str = "20261115T041200Z";

    #[test]
    fn a_taken_name_gets_a_number() {
        let out = tempfile::tempdir().unwrap();
        let ids: Vec<String> = (0..3).map(|_| RunFolder::create(out.path(), "my run/1", STAMP).unwrap().id()).collect();
        let base = format!("{STAMP}-my_run_1");
        assert_eq!(ids, [base.clone(), format!("{base}-2"), format!("{base}-3")]);
        assert!(out.path().join(&base).join("cells").is_dir());
    }

    #[test]
    fn a_discarded_run_leaves_no_trace() {
        let top = tempfile::tempdir().unwrap();
        let out = top.path().join("a/b");
        let folder = RunFolder::create(&out, "x", STAMP).unwrap();
        folder.cell_dir("c").unwrap();
        folder.discard().unwrap();
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }

    #[test]
    fn discarding_spares_what_was_there_before() {
        let top = tempfile::tempdir().unwrap();
        let first = RunFolder::create(top.path(), "x", STAMP).unwrap();
        first.write_record(&record()).unwrap();
        RunFolder::create(top.path(), "x", STAMP).unwrap().discard().unwrap();
        RunFolder::open(first.path()).unwrap().discard().unwrap();
        assert!(first.file("report.json").is_file());
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_unusable_place_is_named() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("file"), b"").unwrap();
        let error = RunFolder::create(&top.path().join("file/runs"), "x", STAMP).unwrap_err().to_string();
        assert!(error.contains("file/runs") && error.contains("Not a directory"), "{error}");
        let error = RunFolder::create(Path::new("/proc/runs"), "x", STAMP).unwrap_err().to_string();
        assert!(error.contains("/proc/runs"), "{error}");
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let out = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(out.path(), "x", STAMP).unwrap();
        let record = record();
        folder.write_record(&record).unwrap();
        assert_eq!(folder.read_record().unwrap(), record);
        assert_eq!(read_record_at(&folder.file("report.json")).unwrap(), record);
        assert_eq!(RunFolder::open(folder.path()).unwrap().read_record().unwrap(), record);
    }

    #[test]
    fn another_schema_is_refused_and_both_are_named() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("report.json");
        fs::write(&path, br#"{"schema": "prony.run/9", "cells": 4}"#).unwrap();
        let error = read_record_at(out.path()).unwrap_err().to_string();
        assert!(error.contains("prony.run/9") && error.contains("prony.run/1"), "{error}");
        fs::write(&path, b"{}").unwrap();
        let error = read_record_at(&path).unwrap_err().to_string();
        assert!(error.contains("not a record of a run") && error.contains("schema"), "{error}");
    }

    #[test]
    fn a_folder_without_a_record_is_no_run() {
        let out = tempfile::tempdir().unwrap();
        let error = RunFolder::open(out.path()).unwrap_err().to_string();
        assert!(error.contains("not a run folder"), "{error}");
        assert!(RunFolder::open(Path::new("/no/such/run")).unwrap_err().to_string().contains("/no/such/run"));
    }
}
