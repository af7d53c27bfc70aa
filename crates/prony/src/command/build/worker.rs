//! One engine in one process: its progress, and how it ended.

use std::path::PathBuf;
use std::time::Duration;

use prony_types::{EventKind, FailureKind, Job, PrepareJob};

use super::outcome::Status;
use crate::output::MakingProgress;
use crate::run::{Errand, Interrupt, errand};

/// A builder beats several times a second; one that does not for this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where engines are made.
pub(super) struct Site<'a> {
    pub(super) log: PathBuf,
    pub(super) interrupt: &'a Interrupt,
}

impl Site<'_> {
    /// Has an engine made and waits for it. Leaving in any way ends the process.
    pub(super) fn make(&self, job: PrepareJob) -> Status {
        let progress = MakingProgress::new(&job.cell);
        let status = self.attempt(job, &progress);
        progress.clear();
        status
    }

    fn attempt(&self, job: PrepareJob, shown: &MakingProgress) -> Status {
        let last_word = |event| match event {
            EventKind::Building(progress) => {
                shown.show(&progress);
                None
            }
            EventKind::Prepared { artifact, build_ms, rebuilt_because, notes } => {
                Some(Status::Made { artifact, build_ms, rebuilt_because, notes })
            }
            EventKind::Failed { kind: FailureKind::Unsupported, message, .. } => Some(Status::Skipped(message)),
            EventKind::Failed { kind, message, .. } => Some(Status::Failed(kind, message)),
            _ => None,
        };
        match errand(Job::Prepare(job), &self.log, self.interrupt, PATIENCE, last_word) {
            Errand::Done(status) => status,
            Errand::NotStarted(reason) => Status::Failed(FailureKind::Internal, reason),
            Errand::Died(cause) => {
                Status::Failed(FailureKind::Runtime, format!("its process {cause}; see {}", self.log.display()))
            }
            Errand::Interrupted => Status::Interrupted,
            Errand::Silent => {
                Status::Failed(FailureKind::Runtime, format!("no sign of life for {} s; killed", PATIENCE.as_secs()))
            }
        }
    }
}
