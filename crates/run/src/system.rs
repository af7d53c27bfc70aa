//! `--prepare`: gives a build or a measurement the machine to itself, as far as root may, and puts everything back.
//!
//! What is about to change is in a journal before it changes. Whoever made the journal holds a lock on it, which the kernel
//! frees when that process dies; the next command then finds a journal that nobody holds, and undoes it.

mod journal;
mod nvpmodel;
mod state;

use std::fs;
use std::path::{Path, PathBuf};

use prony_probe::PowerModes;

pub use self::journal::{Journal, undo_leftovers};
pub use self::state::{folder as state_folder, folders as state_folders};

/// Where the machine's settings are. Tests have a tree of their own.
#[derive(Clone, Debug)]
pub struct Places {
    root: PathBuf,
    nvpmodel: Option<PathBuf>,
}

impl Places {
    /// This machine's.
    pub fn here() -> Places {
        let known = ["/usr/sbin/nvpmodel", "/usr/bin/nvpmodel"].map(PathBuf::from);
        Places { root: PathBuf::from("/"), nvpmodel: known.into_iter().find(|path| path.exists()) }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Files with a setting, and what it should be: the kernel gives memory to whoever builds, CPUs run at full clock.
    fn settings(&self) -> Vec<(PathBuf, &'static str)> {
        let mut settings = vec![(self.file("proc/sys/vm/swappiness"), "100")];
        let cpus = fs::read_dir(self.file("sys/devices/system/cpu")).into_iter().flatten().flatten();
        let mut governors: Vec<PathBuf> = cpus.map(|cpu| cpu.path().join("cpufreq/scaling_governor")).collect();
        governors.retain(|path| path.exists());
        governors.sort();
        settings.extend(governors.into_iter().map(|path| (path, "performance")));
        settings
    }

    /// The Jetson's power modes, with the one in force by nvpmodel's word; `None` where there is no nvpmodel.
    fn power_modes(&self) -> Option<PowerModes> {
        let current = nvpmodel::query(self.nvpmodel.as_ref()?);
        Some(PowerModes { current, ..PowerModes::at(&self.root) })
    }

    fn power_mode(&self) -> Option<u32> {
        nvpmodel::query(self.nvpmodel.as_ref()?)
    }

    fn set_power_mode(&self, mode: u32) -> Result<(), String> {
        let program = self.nvpmodel.as_ref().ok_or("there is no nvpmodel")?;
        nvpmodel::set(program, mode)
    }
}

/// A machine that was prepared; dropping it puts everything back.
#[derive(Debug)]
pub struct PreparedSystem {
    journal: Option<Journal>,
    places: Places,
    /// Told what could not be put back where nobody else hears of it.
    warn: fn(&str),
    /// What was done, and what could not be.
    pub notes: Vec<String>,
}

impl PreparedSystem {
    /// Changes what may be changed, with a journal in a folder. What could not be is in the notes.
    pub fn begin(state: &Path, places: Places, warn: fn(&str)) -> anyhow::Result<PreparedSystem> {
        // What an earlier one left behind is put back first, or its changes would be taken for how the machine was.
        let undone = undo_leftovers(state, &places).unwrap_or_default();
        let mut journal = Journal::create(state)?;
        let mut notes = Vec::new();
        let mut changed = Vec::new();
        for (path, wanted) in places.settings() {
            match journal.set_file(&path, wanted) {
                Ok(true) => changed.push(describe(&path)),
                Ok(false) => {}
                Err(reason) => notes.push(format!("could not set {} to {wanted}: {reason}", describe(&path))),
            }
        }
        match places.power_modes().map(|modes| raise_power_mode(&mut journal, &places, &modes)) {
            Some(Ok(raised)) => changed.extend(raised),
            Some(Err(reason)) => notes.push(reason),
            None => {}
        }
        match drop_caches(&places) {
            Ok(()) => changed.push("file caches (dropped)".to_owned()),
            Err(reason) => notes.push(format!("could not drop file caches: {reason}")),
        }
        changed.dedup();
        if !changed.is_empty() {
            notes.insert(0, format!("prepared: {}; undone afterwards", changed.join(", ")));
        }
        notes.splice(0..0, undone);
        Ok(PreparedSystem { journal: Some(journal), places, warn, notes })
    }

    /// Puts everything back and says what could not be.
    pub fn end(mut self) -> Vec<String> {
        self.undo()
    }

    fn undo(&mut self) -> Vec<String> {
        self.journal.take().map(|journal| journal.undo(&self.places)).unwrap_or_default()
    }
}

impl Drop for PreparedSystem {
    fn drop(&mut self) {
        self.undo().iter().for_each(|problem| (self.warn)(problem));
    }
}

/// Sets the board's highest power mode, if that is above the one in force; what was changed, in words.
fn raise_power_mode(journal: &mut Journal, places: &Places, modes: &PowerModes) -> Result<Option<String>, String> {
    let now = modes.name().unwrap_or_else(|| "unknown".to_owned());
    let left = |reason: String| format!("power mode left at {now}: {reason}");
    let (Some(higher), Some(current)) = (modes.higher().map_err(left)?, modes.current) else { return Ok(None) };
    journal.set_power_mode(places, current, higher.id).map_err(left)?;
    Ok(Some(format!("power mode ({now} to {})", higher.name)))
}

/// Nothing to undo: they fill by themselves.
fn drop_caches(places: &Places) -> Result<(), String> {
    rustix::fs::sync();
    journal::write_setting(&places.file("proc/sys/vm/drop_caches"), "3")
}

/// A setting in words.
fn describe(path: &Path) -> String {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("scaling_governor") => "CPU governor".to_owned(),
        Some(name) => name.to_owned(),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
#[path = "system/system_tests.rs"]
mod tests;
