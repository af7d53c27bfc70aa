//! Changes to the folder of runtimes are made one at a time, and each becomes visible in one step.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::Duration;

use prony_work::Interrupt;
use tempfile::TempDir;

use super::{Shelf, Stopped};
use crate::disk_error;

/// Work in progress, and what is about to be deleted. Nothing of that name is ever read.
const UNFINISHED: &str = ".tmp-";
const LOCK_FILE: &str = ".lock";

/// The right to change the folder. The kernel takes it back when the process ends, whatever way; so whoever has it
/// knows that the unfinished work of others will never be finished, and removes it.
#[derive(Debug)]
pub struct ShelfTurn<'a> {
    shelf: &'a Shelf,
    _lock: File,
}

impl<'a> ShelfTurn<'a> {
    /// Waits for the turn; `on_wait` is called once if there is a wait.
    pub fn wait(shelf: &'a Shelf, interrupt: &Interrupt, on_wait: impl FnOnce()) -> anyhow::Result<ShelfTurn<'a>> {
        fs::create_dir_all(&shelf.folder).map_err(disk_error("make", &shelf.folder))?;
        let mut on_wait = Some(on_wait);
        loop {
            if let Some(turn) = ShelfTurn::take(shelf)? {
                return Ok(turn);
            }
            if let Some(tell) = on_wait.take() {
                tell();
            }
            if interrupt.asked() {
                return Err(Stopped.into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Takes the turn if it is free, and cleans up after those who did not end theirs.
    fn take(shelf: &'a Shelf) -> anyhow::Result<Option<ShelfTurn<'a>>> {
        let path = shelf.folder.join(LOCK_FILE);
        let lock = File::options().create(true).append(true).open(&path).map_err(disk_error("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(disk_error("lock", &path)(error)),
        }
        for entry in fs::read_dir(&shelf.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_dir_all(entry.path()).map_err(disk_error("remove", &entry.path()))?;
            }
        }
        Ok(Some(ShelfTurn { shelf, _lock: lock }))
    }

    /// Removes what was left unfinished, unless somebody is at work. For those who only read, so errors are left to
    /// those who write.
    pub fn tidy(shelf: &Shelf) {
        if shelf.folder.is_dir() {
            let _ = ShelfTurn::take(shelf);
        }
    }

    /// A folder for unfinished work, gone when dropped.
    pub fn stage(&self) -> anyhow::Result<TempDir> {
        let prefix = format!("{UNFINISHED}{}-", std::process::id());
        let folder = &self.shelf.folder;
        tempfile::Builder::new().prefix(&prefix).tempdir_in(folder).map_err(disk_error("make a folder in", folder))
    }

    /// Moves finished work to its place; what stood there goes to the stage, to be removed with it.
    pub fn publish(&self, finished: &Path, place: &Path, stage: &TempDir) -> anyhow::Result<()> {
        let parent = place.parent().unwrap_or(place);
        fs::create_dir_all(parent).map_err(disk_error("make", parent))?;
        if place.exists() {
            fs::rename(place, stage.path().join("replaced")).map_err(disk_error("replace", place))?;
        }
        fs::rename(finished, place).map_err(disk_error("make", place))?;
        sync_folder(parent);
        sync_folder(&self.shelf.folder);
        Ok(())
    }

    /// Takes a version away: out of sight in one step, then deleted.
    pub fn remove(&self, place: &Path) -> anyhow::Result<()> {
        let stage = self.stage()?;
        fs::rename(place, stage.path().join("removed")).map_err(disk_error("remove", place))?;
        if let Some(parent) = place.parent() {
            // Only an empty folder can be removed this way: other versions keep it.
            let _ = fs::remove_dir(parent);
        }
        sync_folder(&self.shelf.folder);
        let path = stage.path().to_owned();
        stage.close().map_err(disk_error("remove", &path))
    }
}

/// A rename lives in its folder. Not every file system can sync one, and the files are safe already.
pub(super) fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}
