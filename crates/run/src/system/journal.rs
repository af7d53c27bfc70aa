//! What was changed about the machine and what it was before, on disk before each change.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::Places;

/// Its name in its folder.
const NAME: &str = "prepare.journal.json";

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
enum Change {
    File { path: PathBuf, old: String, new: String },
    PowerMode { old: u32, new: u32 },
}

/// Changes that are to be undone, held by this process.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    changes: Vec<Change>,
}

impl Journal {
    /// A new one. Another process that prepared the machine is named; a journal that nobody holds must be undone first.
    pub fn create(folder: &Path) -> anyhow::Result<Journal> {
        let needs = || format!("--prepare keeps its journal in {}", folder.display());
        fs::create_dir_all(folder).with_context(needs)?;
        let path = folder.join(NAME);
        let file = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let file = file.with_context(|| path.display().to_string())?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("another prony has prepared this machine; wait for it to end, or leave --prepare out");
        }
        Ok(Journal { path, file, changes: Vec::new() })
    }

    /// Changes a setting; whether there was something to change. It is in the journal before.
    pub fn set_file(&mut self, path: &Path, new: &str) -> Result<bool, String> {
        let old = read_setting(path)?;
        if old == new {
            return Ok(false);
        }
        self.record(Change::File { path: path.to_owned(), old, new: new.to_owned() })?;
        write_setting(path, new).inspect_err(|_| self.strike_last())?;
        Ok(true)
    }

    /// Changes the power mode. It is in the journal before.
    pub fn set_power_mode(&mut self, places: &Places, old: u32, new: u32) -> Result<(), String> {
        self.record(Change::PowerMode { old, new })?;
        places.set_power_mode(new).inspect_err(|_| {
            // A mode that was set in spite of the error is to be undone.
            if places.power_mode() != Some(new) {
                self.strike_last();
            }
        })
    }

    fn record(&mut self, change: Change) -> Result<(), String> {
        self.changes.push(change);
        self.write().map_err(|error| {
            self.changes.pop();
            format!("the journal {} cannot be written: {error}", self.path.display())
        })
    }

    /// A change that did not come about.
    fn strike_last(&mut self) {
        self.changes.pop();
        if let Err(error) = self.write() {
            tracing::warn!("the journal {} cannot be written: {error}", self.path.display());
        }
    }

    fn write(&mut self) -> std::io::Result<()> {
        // In place: the lock is on this very file.
        let text = serde_json::to_vec_pretty(&self.changes)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)?;
        self.file.set_len(text.len() as u64)?;
        self.file.sync_all()
    }

    /// Puts everything back, last change first, and removes itself; says what could not be put back.
    pub fn undo(self, places: &Places) -> Vec<String> {
        let problems: Vec<String> =
            self.changes.iter().rev().filter_map(|change| undo_one(change, places).err()).collect();
        let _ = fs::remove_file(&self.path);
        problems
    }
}

/// What someone else changed meanwhile is theirs.
fn undo_one(change: &Change, places: &Places) -> Result<(), String> {
    match change {
        Change::File { path, old, new } => {
            let now = read_setting(path)?;
            if now == *old {
                return Ok(());
            }
            if now != *new {
                return Err(format!("{} is {now} now and was left alone; it was {old}", path.display()));
            }
            write_setting(path, old)
                .map_err(|reason| format!("could not set {} back to {old}: {reason}", path.display()))
        }
        Change::PowerMode { old, new } => match places.power_mode() {
            Some(now) if now == *old => Ok(()),
            Some(now) if now != *new => Err(format!("the power mode is {now} now and was left alone; it was {old}")),
            _ => places
                .set_power_mode(*old)
                .map_err(|reason| format!("could not set the power mode back to {old}: {reason}")),
        },
    }
}

fn read_setting(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|error| error.to_string())
}

pub(super) fn write_setting(path: &Path, value: &str) -> Result<(), String> {
    let written =
        File::options().write(true).truncate(true).open(path).and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => "it takes root".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "it cannot be written here".to_owned(),
        _ => error.to_string(),
    })
}

/// Says that there is something to undo for someone else; `None` while its maker lives.
pub(super) fn left_to_root(path: &Path) -> Option<Vec<String>> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|file| file.len() > 0))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let path = path.display();
    Some(vec![format!(
        "an earlier prony died before it could undo its --prepare (see {path}); any command as root undoes it, for \
         example `sudo prony cache list`"
    )])
}

/// Undoes what a process that died left behind; one line for whoever runs a command now. `None` where there is nothing.
pub fn undo_leftovers(folder: &Path, places: &Places) -> Option<Vec<String>> {
    let path = folder.join(NAME);
    let mut file = match File::options().read(true).write(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return left_to_root(&path),
        file => file.ok()?,
    };
    // Its maker lives, or another command is at it.
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    if text.trim().is_empty() {
        let _ = fs::remove_file(&path);
        return None;
    }
    let changes: Vec<Change> = match serde_json::from_str(&text) {
        Ok(changes) => changes,
        Err(error) => {
            let kept = path.with_extension("unreadable");
            let _ = fs::rename(&path, &kept);
            return Some(vec![format!(
                "{} cannot be read ({error}), so what an earlier --prepare changed was not undone; see {}",
                path.display(),
                kept.display()
            )]);
        }
    };
    let count = changes.len();
    let journal = Journal { path, file, changes };
    if count == 0 {
        let _ = journal.undo(places);
        return None;
    }
    let problems = journal.undo(places);
    let undone = count - problems.len().min(count);
    let mut said = vec![format!(
        "an earlier prony died before it could undo its --prepare: {undone} of {count} changes undone now"
    )];
    said.extend(problems);
    Some(said)
}
