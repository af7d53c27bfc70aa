//! Everything a run writes. A log that cannot be written (a full disk, say) is reported once and then left alone: the
//! measurement goes on, and the result is still printed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context as _, bail};
use prony_files::{Folder, Kind};
use prony_report::Picture;
use prony_store::{LineLog, RunFolder, SampleLog, StoreError};
use prony_types::{Happened, RunEventKind, RunRecord, Sample, Telemetry};
use rustix::fs::{FlockOperation, flock};

use crate::record::RecordFold;
use crate::redactor::Redactor;
use crate::sink::Sink;

/// What a cell's workers print, by name.
const WORKER_LOG: &str = "worker.log";

/// The run folder and its open logs.
#[derive(Debug)]
pub struct Files {
    folder: RunFolder,
    samples: Log<SampleLog>,
    events: Log<LineLog>,
    metrics: Log<LineLog>,
    redactor: Option<Redactor>,
    /// What workers of a redacted run print, by slug. These files have no name: if this process dies, nobody reads them.
    unseen: Mutex<BTreeMap<String, File>>,
    /// Held while this process writes here.
    _claim: File,
}

/// A log, until it fails.
#[derive(Debug)]
enum Log<T> {
    Open(T),
    Broken(String),
}

impl<T> Log<T> {
    fn write(&mut self, write: impl FnOnce(&mut T) -> Result<(), StoreError>) {
        if let Log::Open(log) = self
            && let Err(error) = write(log)
        {
            tracing::error!("{error}; going on without this log");
            *self = Log::Broken(error.to_string());
        }
    }

    fn error(&self) -> Option<&str> {
        match self {
            Log::Open(_) => None,
            Log::Broken(error) => Some(error),
        }
    }
}

/// What is open while a run is written.
struct Logs {
    samples: Log<SampleLog>,
    events: Log<LineLog>,
    metrics: Log<LineLog>,
    claim: File,
}

impl Logs {
    fn open(folder: &RunFolder) -> anyhow::Result<Logs> {
        let claim = claim(folder.path())?;
        Ok(Logs {
            samples: Log::Open(SampleLog::open(&folder.file("samples.csv"))?),
            events: Log::Open(LineLog::open(&folder.file("events.jsonl"))?),
            metrics: Log::Open(LineLog::open(&folder.file("metrics.jsonl"))?),
            claim,
        })
    }
}

impl Files {
    /// Opens the logs of a run folder, unless another process is writing there. A folder that was just made and cannot be
    /// written to is taken away again.
    pub fn new(folder: RunFolder, redactor: Option<Redactor>) -> anyhow::Result<Files> {
        match Logs::open(&folder) {
            Ok(Logs { samples, events, metrics, claim }) => {
                Ok(Files { samples, events, metrics, folder, redactor, unseen: Mutex::default(), _claim: claim })
            }
            Err(error) => {
                let _ = folder.discard();
                Err(error)
            }
        }
    }

    /// Takes the folder away again: nothing ran.
    pub fn discard(self) -> Result<(), StoreError> {
        self.folder.discard()
    }

    /// A cell has ended and writes its log no more.
    pub fn close_cell(&self, slug: &str) {
        let Some(redactor) = &self.redactor else { return };
        if let Err(error) = self.show_log(slug, redactor) {
            tracing::error!("{error:#}");
        }
    }

    /// What a cell's workers printed, without what must not be seen.
    fn show_log(&self, slug: &str, redactor: &Redactor) -> anyhow::Result<()> {
        let unseen = self.unseen.lock().ok().and_then(|mut unseen| unseen.remove(slug));
        if let Some(mut file) = unseen {
            let mut text = Vec::new();
            file.rewind()?;
            file.take(Kind::Log.cap_bytes()).read_to_end(&mut text)?;
            self.folder.write_cell(slug, WORKER_LOG, &text_of(redactor, &text))?;
        }
        redactor.logs(&self.folder.cell(slug)?)
    }

    /// Where a cell's workers print to.
    pub fn cell_log(&self, slug: &str) -> Result<File, StoreError> {
        if self.redactor.is_none() {
            return self.folder.cell_log(slug, WORKER_LOG);
        }
        let cell = self.folder.cell(slug)?;
        let io = |cause| StoreError::Io { action: "make a log in", path: cell.path().to_owned(), cause };
        let mut unseen = self.unseen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let file = match unseen.entry(slug.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(tempfile::tempfile_in(cell.path()).map_err(io)?),
        };
        file.try_clone().map_err(io)
    }

    /// Where this process writes what it does.
    pub fn run_log(&self) -> Result<File, StoreError> {
        self.folder.log("run.log")
    }

    /// The run folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A cell's own folder.
    pub fn cell_dir(&self, slug: &str) -> Result<PathBuf, StoreError> {
        self.folder.cell_dir(slug)
    }

    /// A file of a cell, if it is a regular file of the cell's own folder.
    pub fn cell_file(&self, slug: &str, name: &str, kind: Kind) -> Result<PathBuf, StoreError> {
        self.folder.cell_file(slug, name, kind)
    }

    /// A folder of the run that nothing was in before.
    pub fn make_new(&self, name: &str) -> Result<PathBuf, StoreError> {
        self.folder.make_new(name)
    }

    /// A file of a cell's own, without what must not be seen.
    pub fn write_json(&self, slug: &str, name: &str, value: &impl serde::Serialize) -> anyhow::Result<()> {
        let text = match &self.redactor {
            Some(redactor) => serde_json::to_vec_pretty(&redactor.json(value)?)?,
            None => serde_json::to_vec_pretty(value)?,
        };
        Ok(self.folder.write_cell(slug, name, &text)?)
    }

    /// A file that workers of this run read, by its absolute path.
    pub(crate) fn write_scratch(&self, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        self.folder.write(name, bytes)?;
        Ok(std::path::absolute(self.folder.file(name))?)
    }

    /// Takes a file of the run away, if it is there.
    pub(crate) fn remove(&self, name: &str) {
        let _ = self.folder.folder().remove(name);
    }

    pub(crate) fn is_redacted(&self) -> bool {
        self.redactor.is_some()
    }

    /// Everything that the record says, rendered and on disk. What cannot be written does not keep the rest from it.
    pub fn write_all(&self, record: &RunRecord) -> Written {
        let mut written = Written::default();
        written.note(self.write_record(record));
        let record = &self.shown(record);
        written.note(self.write_sidecars(record));
        written.note(write_markdown(&self.folder, record));
        written.page = written.note(write_page(&self.folder, record));
        written.note(write_tables(&self.folder, record));
        let redacted = self.redactor.iter().try_for_each(|redactor| redactor.artifacts(self.folder.folder()));
        written.note(redacted);
        let broken = [self.samples.error(), self.events.error(), self.metrics.error()];
        if let Some(error) = broken.into_iter().flatten().next() {
            written.note(Err::<(), _>(anyhow::anyhow!("{error}")).context("a log of this run is not complete"));
        }
        written
    }

    /// What the machine is, for people.
    pub fn write_environment(&self, record: &RunRecord) -> anyhow::Result<()> {
        let text = prony_probe::env_report(&self.shown(record).environment);
        Ok(self.folder.write("env_report.txt", text.as_bytes())?)
    }

    /// Replaces `report.json`.
    pub fn write_record(&self, record: &RunRecord) -> anyhow::Result<()> {
        self.folder.write_record(&self.shown(record))?;
        Ok(())
    }

    /// The record as it may be seen by others.
    pub fn shown(&self, record: &RunRecord) -> RunRecord {
        let mut shown = record.clone();
        if let Some(redactor) = &self.redactor {
            redactor.record(&mut shown);
        }
        shown
    }

    /// What ran in each cell, beside its log and pictures.
    fn write_sidecars(&self, record: &RunRecord) -> anyhow::Result<()> {
        for (cell, spec) in record.cells.iter().zip(&record.plan.cells) {
            let sidecar = serde_json::json!({
                "cell": spec,
                "artifact": cell.artifact,
                "precision": cell.precision,
                "backend": cell.backend,
                "prony": record.run.version,
            });
            self.folder.write_cell(&cell.slug, "sidecar.json", &serde_json::to_vec_pretty(&sidecar)?)?;
        }
        Ok(())
    }
}

impl Sink for Files {
    fn event(&mut self, event: &Happened, so_far: &RecordFold) {
        let redacted = self.redactor.as_ref().map(|redactor| redactor.event(event, so_far.record()));
        self.events.write(|log| match redacted {
            Some(redacted) => log.append(&redacted?),
            None => log.append(event),
        });
        if let Happened::Run(event) = event
            && let RunEventKind::Closed { cell, .. } = &event.kind
            && let Some(cell) = so_far.cell_of(cell)
        {
            self.close_cell(&cell.record.slug);
        }
    }

    fn samples(&mut self, cell: &str, attempt: u32, samples: &[Sample]) {
        self.samples.write(|log| {
            samples.iter().try_for_each(|sample| log.append(cell, attempt, sample))?;
            log.flush()
        });
    }

    fn reading(&mut self, reading: &Telemetry) {
        let redactor = self.redactor.as_ref();
        self.metrics.write(|log| match redactor {
            Some(redactor) => log.append(&redactor.json(reading)?),
            None => log.append(reading),
        });
    }

    /// A disk that is full now may not be at the end, so this is no end.
    fn record(&mut self, record: &RunRecord) {
        if let Err(error) = self.write_record(record) {
            tracing::error!("{error:#}");
        }
    }
}

fn text_of(redactor: &Redactor, log: &[u8]) -> Vec<u8> {
    redactor.text(&String::from_utf8_lossy(log)).into_bytes()
}

/// Marks a run folder as being written to, unless somebody else does already.
fn claim(folder: &Path) -> anyhow::Result<File> {
    let claim = File::open(folder).with_context(|| folder.display().to_string())?;
    if flock(&claim, FlockOperation::NonBlockingLockExclusive).is_err() {
        bail!("another prony is writing {}; wait for it to end", folder.display());
    }
    Ok(claim)
}

/// Says so when a run folder is being written to.
pub fn refuse_if_written(folder: &Path) -> anyhow::Result<()> {
    claim(folder).map(drop)
}

/// What came of writing a run.
#[derive(Debug, Default)]
pub struct Written {
    /// The page, if it is there and of this record.
    pub page: Option<PathBuf>,
    /// The first thing that could not be written.
    pub problem: Option<anyhow::Error>,
}

impl Written {
    fn note<T>(&mut self, outcome: anyhow::Result<T>) -> Option<T> {
        match outcome {
            Ok(done) => Some(done),
            Err(error) => {
                match self.problem {
                    Some(_) => tracing::error!("{error:#}"),
                    None => self.problem = Some(error),
                }
                None
            }
        }
    }
}

fn write_markdown(run: &RunFolder, record: &RunRecord) -> anyhow::Result<()> {
    Ok(run.write("report.md", prony_report::markdown(record).as_bytes())?)
}

fn write_page(run: &RunFolder, record: &RunRecord) -> anyhow::Result<PathBuf> {
    let html = prony_report::html(record, &pictures(run.folder(), record))?;
    run.write("report.html", html.as_bytes())?;
    Ok(run.file("report.html"))
}

/// The comparison tables, one per input size.
fn write_tables(run: &RunFolder, record: &RunRecord) -> anyhow::Result<()> {
    for imgsz in prony_report::imgsz_groups(record) {
        let table = prony_report::csv(record, &imgsz);
        run.write(&format!("latency_comparative_{imgsz}.csv"), table.as_bytes())?;
    }
    Ok(())
}

/// The thumbnails that are there. A record and its folder are data from outside: only images of the cell's own folder go
/// into a page.
pub fn pictures(run: &Folder, record: &RunRecord) -> Vec<Picture> {
    let mut found = Vec::new();
    for cell in &record.cells {
        for thumbnail in &cell.thumbnails {
            match prony_store::picture_of(run, &cell.slug, &thumbnail.file) {
                Ok(bytes) => found.push(Picture {
                    cell: cell.id.clone(),
                    file: thumbnail.file.clone(),
                    caption: thumbnail.caption.clone(),
                    bytes,
                }),
                Err(error) => tracing::debug!("{}: picture {} is left out: {error}", cell.id, thumbnail.file),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use prony_types::Phase;

    use super::*;

    #[test]
    fn a_full_disk_breaks_a_log_and_not_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(dir.path(), "x", "20261115T000000Z").unwrap();
        let mut files = Files::new(folder, None).unwrap();
        let full = File::options().append(true).open("/dev/full").unwrap();
        files.samples = Log::Open(SampleLog::on(full, &files.folder.file("samples.csv")));
        let sample = Sample {
            start_ns: 1,
            phase: Phase::Steady,
            round: 1,
            frame: 0,
            detections: 0,
            parts_ns: [None; 5],
            total_ns: 9,
        };
        for _ in 0..2 {
            files.samples("cell", 1, &[sample]);
        }
        let error = files.samples.error().unwrap();
        assert!(error.contains("samples.csv") && error.contains("No space left"), "{error}");
        assert!(files.metrics.error().is_none(), "the other logs go on");
    }
}
