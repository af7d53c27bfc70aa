//! The folder of one run.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use prony_files::{Folder, Kind};
use prony_types::{RunRecord, SCHEMA};
use serde::Deserialize;

use crate::{StoreError, below, check};

/// Name of the record inside a run folder.
const RECORD: &str = "report.json";
/// Name of the folder with a folder per cell.
const CELLS: &str = "cells";

/// A run folder: `report.json`, the logs, and a folder a cell under `cells/`.
#[derive(Debug)]
pub struct RunFolder {
    /// Everything in it is reached through this.
    folder: Folder,
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
        let folder = Folder::open(&path).map_err(StoreError::io("open the run folder", &path))?;
        let run = RunFolder { folder, path, made };
        if let Err(error) = run.folder.make_sub(CELLS) {
            let cells = run.file(CELLS);
            run.discard()?;
            return Err(StoreError::io("make the folder", &cells)(error));
        }
        Ok(run)
    }

    /// A folder that an earlier run made, to be resumed: it is going to be written to. One that others own or may write to
    /// is refused, because they could exchange what is in it at any moment.
    pub fn open(path: &Path) -> Result<RunFolder, StoreError> {
        let folder = Folder::open(path).map_err(StoreError::io("open the run folder", path))?;
        let refused = |reason| StoreError::Malformed { path: path.to_owned(), line: None, reason };
        if !folder.exists(RECORD) {
            return Err(refused(format!("not a run folder: there is no {RECORD} in it")));
        }
        if let Some(foreign) = folder.foreign().map_err(StoreError::io("open the run folder", path))? {
            return Err(refused(format!("the run folder {foreign}; copy it to a folder of your own")));
        }
        Ok(RunFolder { folder, path: path.to_owned(), made: Vec::new() })
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

    /// The folder of a cell, made when it is not there. It is the cell's own: links, pipes and files with a second name are
    /// removed from it, so that whoever writes there by name writes there and nowhere else.
    pub fn cell_dir(&self, slug: &str) -> Result<PathBuf, StoreError> {
        self.cell(slug).map(|cell| cell.path().to_owned())
    }

    /// A file of a cell, if it is a regular file of the cell's own folder.
    pub fn cell_file(&self, slug: &str, name: &str, kind: Kind) -> Result<PathBuf, StoreError> {
        cell_file(&self.folder, slug, name, kind)
    }

    /// Replaces a file of a cell.
    pub fn write_cell(&self, slug: &str, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let cell = self.cell(slug)?;
        cell.replace(name, bytes).map_err(StoreError::io("write", &cell.path().join(name)))
    }

    /// A log of a cell, opened at its end.
    pub fn cell_log(&self, slug: &str, name: &str) -> Result<File, StoreError> {
        let cell = self.cell(slug)?;
        below::appendable(&cell, name).map_err(StoreError::io("open", &cell.path().join(name)))
    }

    /// The cell's folder, without what is not its own.
    pub fn cell(&self, slug: &str) -> Result<Folder, StoreError> {
        let path = self.path.join(CELLS).join(slug);
        let open = || {
            let cell = self.folder.make_sub(CELLS)?.make_sub(slug)?;
            match cell.foreign()? {
                Some(foreign) => Err(io::Error::other(foreign.to_string())),
                None => sweep(&cell).map(|()| cell),
            }
        };
        open().map_err(StoreError::io("use the folder", &path))
    }

    /// Makes a folder that was not there: `name`, or with `-2`, `-3`, … where that is taken. What an earlier sitting or
    /// somebody else left under the name is not looked at.
    pub fn make_new(&self, name: &str) -> Result<PathBuf, StoreError> {
        let mut numbered = name.to_owned();
        for number in 2.. {
            if !self.folder.exists(&numbered) {
                break;
            }
            numbered = format!("{name}-{number}");
        }
        let made = self.folder.make_sub(&numbered).map_err(StoreError::io("make the folder", &self.file(&numbered)))?;
        Ok(made.path().to_owned())
    }

    /// Replaces a file of the run.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.folder.replace(name, bytes).map_err(StoreError::io("write", &self.file(name)))
    }

    /// A log of the run, opened at its end.
    pub fn log(&self, name: &str) -> Result<File, StoreError> {
        below::appendable(&self.folder, name).map_err(StoreError::io("open", &self.file(name)))
    }

    /// The open folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
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
        self.write(RECORD, &json)
    }

    /// Reads `report.json`.
    pub fn read_record(&self) -> Result<RunRecord, StoreError> {
        let path = self.file(RECORD);
        let bytes = self.folder.read(RECORD, Kind::Record).map_err(StoreError::io("read", &path))?;
        parse(path, &bytes)
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

/// Links, pipes, devices and files that have another name elsewhere: none of them is made by a run.
fn sweep(cell: &Folder) -> io::Result<()> {
    for name in cell.names()? {
        let path = cell.path().join(&name);
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let kind = found.file_type();
        let special = kind.is_symlink()
            || kind.is_fifo()
            || kind.is_socket()
            || kind.is_char_device()
            || kind.is_block_device()
            || kind.is_file() && found.nlink() > 1;
        if special {
            cell.remove(&name)?;
        }
    }
    Ok(())
}

/// A file of a cell of a run, if it is a regular file of the cell's own folder.
pub fn cell_file(run: &Folder, slug: &str, name: &str, kind: Kind) -> Result<PathBuf, StoreError> {
    let path = run.path().join(CELLS).join(slug).join(name);
    let open = || run.sub(CELLS)?.sub(slug)?.open_file(name, kind);
    open().map_err(StoreError::io("read", &path))?;
    Ok(path)
}

/// Reads the record of a run, given its folder or the `report.json` itself. A link that the user gives is followed, one
/// inside the folder is not.
pub fn read_record_at(path: &Path) -> Result<RunRecord, StoreError> {
    let (file, bytes) = match path.is_dir() {
        true => (path.join(RECORD), Folder::open(path).and_then(|folder| folder.read(RECORD, Kind::Record))),
        false => (path.to_owned(), prony_files::read(path, Kind::Record)),
    };
    let bytes = bytes.map_err(StoreError::io("read", &file))?;
    parse(file, &bytes)
}

fn parse(file: PathBuf, json: &[u8]) -> Result<RunRecord, StoreError> {
    let malformed = |reason: String| StoreError::Malformed { path: file.clone(), line: None, reason };
    let unreadable = |error: serde_json::Error| malformed(format!("not a record of a run: {error}"));
    // Another version may differ in any field, so its name is looked at before the rest.
    let header: Header = serde_json::from_slice(json).map_err(unreadable)?;
    if header.schema != SCHEMA {
        return Err(StoreError::Schema { path: file, found: header.schema, known: SCHEMA });
    }
    let record = serde_json::from_slice(json).map_err(unreadable)?;
    match check::problem(&record) {
        Some(problem) => Err(malformed(format!("not a record that Prony wrote: {problem}"))),
        None => Ok(record),
    }
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
    use std::os::unix::fs::symlink;

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
    fn a_slug_led_out_of_the_run_folder() {
        let out = tempfile::tempdir().unwrap();
        let run = RunFolder::create(out.path(), "x", STAMP).unwrap();
        type Change = fn(&mut RunRecord);
        let hostile: &[(Change, &str)] = &[
            (|r| r.cells[0].slug = "../../X".into(), "the folder of cell `yolo:rten:fp32` is `yolo_rten_fp32`"),
            (|r| r.cells[0].slug = "/tmp/x".into(), "not `/tmp/x`"),
            (|r| r.cells[0].slug = String::new(), "not ``"),
            (|r| (r.cells[0].id, r.cells[0].slug) = ("..".into(), "..".into()), "`..` cannot be the id of a cell"),
            (|r| r.plan.cells[0].id = ".".into(), "`.` cannot be the id of a cell"),
            (|r| r.plan.cells[0].id = "x".repeat(300), "cannot be the id of a cell"),
            (|r| r.cells.push(r.cells[0].clone()), "two cells have the folder `yolo_rten_fp32`"),
        ];
        for (change, words) in hostile {
            let mut record = record();
            change(&mut record);
            fs::write(run.file(RECORD), serde_json::to_vec(&record).unwrap()).unwrap();
            let error = read_record_at(run.path()).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
            assert_eq!(run.read_record().unwrap_err().to_string(), error);
        }
        for slug in ["../../X", "..", "", "a/b", "/tmp"] {
            assert!(run.cell_dir(slug).is_err(), "{slug}");
            assert!(run.write_cell(slug, "f", b"").is_err(), "{slug}");
        }
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_of_a_foreign_run_were_followed() {
        let top = tempfile::tempdir().unwrap();
        let outside = top.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), b"precious").unwrap();
        let run = RunFolder::create(top.path(), "x", STAMP).unwrap();
        run.write_record(&record()).unwrap();
        // The record itself.
        fs::rename(run.file(RECORD), outside.join("record")).unwrap();
        symlink(outside.join("record"), run.file(RECORD)).unwrap();
        for path in [run.path().to_owned(), top.path().join("latest")] {
            let _ = symlink(run.path(), top.path().join("latest"));
            let error = read_record_at(&path).unwrap_err().to_string();
            assert!(error.contains("is a symbolic link, not a regular file"), "{error}");
        }
        assert!(read_record_at(&outside.join("record")).is_ok(), "a path that the user names may be a link");
        run.write_record(&record()).unwrap();
        assert!(fs::symlink_metadata(run.file(RECORD)).unwrap().is_file(), "the link is replaced");
        // Logs and pages.
        for name in ["run.log", "report.html"] {
            symlink(outside.join("precious"), run.file(name)).unwrap();
        }
        assert!(run.log("run.log").unwrap_err().to_string().contains("is a symbolic link"));
        run.write("report.html", b"page").unwrap();
        // A cell's files.
        let cell = run.cell_dir("c").unwrap();
        symlink(outside.join("precious"), cell.join("worker.log")).unwrap();
        fs::hard_link(outside.join("precious"), cell.join("frame-000.jpg")).unwrap();
        fs::write(cell.join("detections.json"), b"[]").unwrap();
        assert_eq!(run.cell_dir("c").unwrap(), cell);
        assert_eq!(run.folder.sub(CELLS).unwrap().sub("c").unwrap().names().unwrap(), ["detections.json"]);
        assert!(run.cell_file("c", "detections.json", Kind::Annotations).is_ok());
        // The cell's folder, and the folder of all cells.
        symlink(&outside, run.file("cells/d")).unwrap();
        assert!(run.cell_log("d", "worker.log").unwrap_err().to_string().contains("is a symbolic link, not a folder"));
        fs::remove_dir_all(run.file(CELLS)).unwrap();
        symlink(&outside, run.file(CELLS)).unwrap();
        assert!(run.cell_dir("c").unwrap_err().to_string().contains("is a symbolic link, not a folder"));
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
        assert_eq!(fs::read(outside.join("precious")).unwrap(), b"precious");
    }

    #[test]
    fn a_run_folder_that_others_may_write_was_resumed() {
        use std::os::unix::fs::PermissionsExt as _;
        let top = tempfile::tempdir().unwrap();
        let run = RunFolder::create(top.path(), "x", STAMP).unwrap();
        run.write_record(&record()).unwrap();
        fs::set_permissions(run.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = RunFolder::open(run.path()).unwrap_err().to_string();
        assert!(error.contains("may be written by everybody (mode 0777); copy it"), "{error}");
        fs::set_permissions(run.path(), fs::Permissions::from_mode(0o755)).unwrap();
        RunFolder::open(run.path()).unwrap();
        // It is still data for whoever only reads it.
        read_record_at(run.path()).unwrap();
    }

    #[test]
    fn what_somebody_left_in_the_run_folder_was_taken_for_our_own() {
        let top = tempfile::tempdir().unwrap();
        let run = RunFolder::create(top.path(), "x", STAMP).unwrap();
        fs::create_dir(run.file("artifacts")).unwrap();
        symlink("/tmp", run.file("artifacts-2")).unwrap();
        fs::write(run.file("artifacts-3"), b"").unwrap();
        assert_eq!(run.make_new("artifacts").unwrap(), run.file("artifacts-4"));
        assert_eq!(run.make_new("reference").unwrap(), run.file("reference"));
    }

    #[test]
    fn a_record_that_is_nested_too_deeply_is_refused() {
        let out = tempfile::tempdir().unwrap();
        let depth = 1 << 20;
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for field in ["run", "plan", "cells"] {
                let text = format!("{{\"schema\": \"{SCHEMA}\", \"{field}\": {deep}}}");
                fs::write(out.path().join(RECORD), text).unwrap();
                let error = read_record_at(out.path()).unwrap_err().to_string();
                assert!(error.contains("not a record of a run"), "{error}");
            }
        }
    }

    #[test]
    fn a_folder_without_a_record_is_no_run() {
        let out = tempfile::tempdir().unwrap();
        let error = RunFolder::open(out.path()).unwrap_err().to_string();
        assert!(error.contains("not a run folder"), "{error}");
        assert!(RunFolder::open(Path::new("/no/such/run")).unwrap_err().to_string().contains("/no/such/run"));
    }
}
