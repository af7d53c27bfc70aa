//! `--prepare`: gives a build or a measurement the machine to itself, as far as root may, and puts everything back.
//!
//! What is about to change is in a journal before it changes. Whoever made the journal holds a lock on it, which the kernel
//! frees when that process dies; the next command then finds a journal that nobody holds, and undoes it.

mod journal;
mod state;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) use self::journal::{Journal, undo_leftovers};
pub(crate) use self::state::{folder as state_folder, folders as state_folders};

/// Where the machine's settings are. Tests have a tree of their own.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    root: PathBuf,
    nvpmodel: Option<PathBuf>,
}

impl Places {
    /// This machine's.
    pub(crate) fn here() -> Places {
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

    /// The Jetson's power mode, by its number.
    fn power_mode(&self) -> Option<String> {
        let output = Command::new(self.nvpmodel.as_ref()?).arg("-q").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // The name, and the number on the line after it.
        text.lines().map(str::trim).rfind(|line| line.parse::<u32>().is_ok()).map(str::to_owned)
    }

    fn set_power_mode(&self, mode: &str) -> Result<(), String> {
        let Some(program) = &self.nvpmodel else { return Err("there is no nvpmodel".to_owned()) };
        let output = Command::new(program).args(["-m", mode]).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
                Err(format!("nvpmodel -m {mode} failed: {words}"))
            }
            Err(error) => Err(format!("{}: {error}", program.display())),
        }
    }
}

/// A machine that was prepared; dropping it puts everything back.
#[derive(Debug)]
pub(crate) struct PreparedSystem {
    journal: Option<Journal>,
    places: Places,
    /// What was done, and what could not be.
    pub(crate) notes: Vec<String>,
}

/// The mode with everything on, on every Jetson.
const FULL_POWER: &str = "0";

impl PreparedSystem {
    /// Changes what may be changed, with a journal in a folder. What could not be is in the notes.
    pub(crate) fn begin(state: &Path, places: Places) -> anyhow::Result<PreparedSystem> {
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
        if let Some(mode) = places.power_mode().filter(|mode| mode != FULL_POWER) {
            match journal.set_power_mode(&places, &mode, FULL_POWER) {
                Ok(()) => changed.push("power mode".to_owned()),
                Err(reason) => notes.push(format!("could not raise the power mode: {reason}")),
            }
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
        Ok(PreparedSystem { journal: Some(journal), places, notes })
    }

    /// Puts everything back and says what could not be.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.undo()
    }

    fn undo(&mut self) -> Vec<String> {
        self.journal.take().map(|journal| journal.undo(&self.places)).unwrap_or_default()
    }
}

impl Drop for PreparedSystem {
    fn drop(&mut self) {
        self.undo().iter().for_each(|problem| say!("{problem}"));
    }
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
