//! What the logs of a run folder hold, by cell and attempt: samples and readings of the sittings so far.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use prony_store::{StoreError, each_sample, read_telemetry};
use prony_types::Telemetry;

use crate::samples::Samples;

/// Which attempt at which cell.
type Key = (String, u32);

/// Samples and readings that are not handed out yet.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    /// Where samples may lie that are too many for the memory.
    folder: Option<PathBuf>,
    samples: HashMap<Key, Samples>,
    readings: HashMap<Key, Vec<Telemetry>>,
    /// Of all sittings so far.
    pub(crate) last_round: u32,
    /// The least memory that was available.
    pub(crate) lowest_bytes: Option<u64>,
}

impl Logs {
    /// Those of a run that has none yet.
    pub(crate) fn empty(folder: &Path) -> Logs {
        Logs { folder: Some(folder.to_owned()), ..Logs::default() }
    }

    /// Reads those of a run folder. Samples that do not fit in memory go into files of the system's folder for such, because
    /// the run folder may be read-only.
    pub(crate) fn read(run: &Path) -> Result<Logs, StoreError> {
        let mut logs = Logs::empty(&std::env::temp_dir());
        each_sample(&run.join("samples.csv"), &mut |row| {
            logs.last_round = logs.last_round.max(row.sample.round);
            let folder = &logs.folder;
            let samples = logs.samples.entry((row.cell, row.attempt.unwrap_or(1)));
            samples.or_insert_with(|| Samples::in_folder(folder.clone())).push(&[row.sample]);
        })?;
        for reading in read_telemetry(&run.join("metrics.jsonl"))? {
            logs.note(&reading);
            if let (Some(cell), Some(attempt)) = (reading.cell.clone(), reading.attempt) {
                logs.readings.entry((cell, attempt)).or_default().push(reading);
            }
        }
        Ok(logs)
    }

    /// The same, with files for what is too much in another folder.
    pub(crate) fn spilling_to(mut self, folder: &Path) -> Logs {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Takes notice of what concerns the whole machine.
    pub(crate) fn note(&mut self, reading: &Telemetry) {
        self.lowest_bytes = [self.lowest_bytes, reading.mem_available_bytes].into_iter().flatten().min();
    }

    /// Hands out what is there of an attempt.
    pub(crate) fn take(&mut self, cell: &str, attempt: u32) -> (Samples, Vec<Telemetry>) {
        let key = (cell.to_owned(), attempt);
        let samples = self.samples.remove(&key).unwrap_or_else(|| Samples::in_folder(self.folder.clone()));
        (samples, self.readings.remove(&key).unwrap_or_default())
    }

    /// Takes samples back: another sitting may ask for them.
    pub(crate) fn put_back(&mut self, cell: &str, attempt: u32, samples: Samples) {
        self.samples.insert((cell.to_owned(), attempt), samples);
    }
}
