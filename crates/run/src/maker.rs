//! Makes artifacts for commands that run no plan: each in a process of its own, with its progress shown.

use std::path::{Path, PathBuf};
use std::time::Duration;

use prony_files::Folder;
use prony_types::{ArtifactSpec, BuildProgress, CellSpec, EventKind, FailureKind, Job, ReferenceSpec};

use crate::errand::{Errand, errand};
use crate::jobs::{job_for, steps};
use crate::words::made;
use prony_work::Interrupt;

/// A builder beats several times a second; one that does not for this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where artifacts are made.
pub struct Maker<'a> {
    pub log: PathBuf,
    pub interrupt: &'a Interrupt,
    /// Shows how far what is made by a name is; without progress, that it is over.
    pub show: &'a dyn Fn(&str, Option<&BuildProgress>),
}

/// An artifact that is there now.
pub struct Made {
    pub artifact: ArtifactSpec,
    pub build_ms: Option<f64>,
    pub rebuilt_because: Option<String>,
    pub notes: Vec<String>,
}

/// Why an artifact is not there.
pub enum NotMade {
    Failed(FailureKind, String),
    Interrupted,
}

impl Maker<'_> {
    /// Has one made and waits for it. Leaving in any way ends the process.
    pub fn make(&self, name: &str, job: Job) -> Result<Made, NotMade> {
        let made = self.attempt(name, job);
        (self.show)(name, None);
        made
    }

    /// Makes whatever a cell runs that is not the model's own file, as a run does, and enters it in the cell. Returns what to
    /// know about it.
    pub fn make_for(
        &self,
        cell: &mut CellSpec,
        reference: &ReferenceSpec,
        cache: &Path,
    ) -> Result<Vec<String>, NotMade> {
        let internal = |error: anyhow::Error| NotMade::Failed(FailureKind::Internal, format!("{error:#}"));
        let mut told = Vec::new();
        for step in steps(cell) {
            let job = job_for(step, cell, reference, cache.to_owned()).map_err(internal)?;
            let Made { artifact, build_ms, rebuilt_because, notes } = self.make(&cell.id, job)?;
            told.push(made(&artifact, build_ms, rebuilt_because.as_deref()));
            told.extend(notes);
            cell.artifact = Some(artifact);
        }
        Ok(told)
    }

    fn attempt(&self, name: &str, job: Job) -> Result<Made, NotMade> {
        let last_word = |event| match event {
            EventKind::Building(progress) => {
                (self.show)(name, Some(&progress));
                None
            }
            EventKind::Prepared { artifact, build_ms, rebuilt_because, notes } => {
                Some(Ok(Made { artifact, build_ms, rebuilt_because, notes }))
            }
            EventKind::Failed { kind, message, .. } => Some(Err(NotMade::Failed(kind, message))),
            _ => None,
        };
        let failed = |kind, reason| Err(NotMade::Failed(kind, reason));
        let log = match Folder::open(self.log.parent().unwrap_or(Path::new("")))
            .and_then(|folder| folder.append(self.log.file_name().unwrap_or_default()))
        {
            Ok(log) => log,
            Err(error) => {
                let reason = format!("cannot open {}: {error}", self.log.display());
                return failed(FailureKind::Internal, reason);
            }
        };
        match errand(job, log, self.interrupt, PATIENCE, last_word) {
            Errand::Done(outcome) => outcome,
            Errand::NotStarted(reason) => failed(FailureKind::Internal, reason),
            Errand::Died(cause, _) => {
                failed(FailureKind::Runtime, format!("its process {cause}; see {}", self.log.display()))
            }
            Errand::Interrupted => Err(NotMade::Interrupted),
            Errand::Silent => {
                failed(FailureKind::Runtime, format!("no sign of life for {} s; killed", PATIENCE.as_secs()))
            }
        }
    }
}
