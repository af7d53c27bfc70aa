//! One engine in one process: its progress on a terminal, its end in a word.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use prony_types::{BuildProgress, EventKind, FailureKind, Job, PrepareJob};

use super::outcome::Status;
use crate::run::{Errand, Interrupt, errand, short_time};

/// A builder beats several times a second; one that does not for this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Steps of the bar.
const STEPS: u64 = 1000;

/// Where engines are made.
pub(super) struct Site<'a> {
    pub(super) log: PathBuf,
    pub(super) interrupt: &'a Interrupt,
    pub(super) quiet: bool,
}

impl Site<'_> {
    /// Has an engine made and waits for it. Leaving in any way ends the process.
    pub(super) fn make(&self, job: PrepareJob) -> Status {
        let what = job.cell.clone();
        let bar = self.bar(&what);
        let status = self.attempt(job, &bar);
        bar.finish_and_clear();
        status
    }

    fn attempt(&self, job: PrepareJob, bar: &ProgressBar) -> Status {
        let last_word = |event| match event {
            EventKind::Building(progress) => {
                show(bar, &progress);
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

    fn bar(&self, what: &str) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(STEPS).with_prefix(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:20}] {elapsed} {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

fn show(bar: &ProgressBar, progress: &BuildProgress) {
    if let Some(done) = progress.done {
        bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }
    let left = progress.eta_s.map(|s| format!(", about {} left", short_time(s))).unwrap_or_default();
    bar.set_message(format!("{}{left}", progress.doing));
}
