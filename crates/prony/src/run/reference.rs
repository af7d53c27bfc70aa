//! Outputs that cells are held against: computed in a process of their own when the clocks have stopped, and kept by model
//! and frames for the next run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use prony_judge::agreement;
use prony_model::sha256_hex;
use prony_types::{
    BackendName, CellSpec, EventKind, InputSpec, Job, PostSpec, Precision, ReferenceJob, ReferenceSpec, SceneKind,
    WORKER_PROTOCOL,
};

use super::errand::{Errand, errand};
use super::interrupt::Interrupt;
use super::oom::OomWatch;

/// Files that the cache keeps; the oldest go first. One is a few megabytes.
const KEPT: usize = 32;

/// Where references are, and how to make them.
pub(super) struct References<'a> {
    pub(super) folder: PathBuf,
    pub(super) spec: &'a ReferenceSpec,
    pub(super) input: &'a InputSpec,
    pub(super) post: PostSpec,
    pub(super) timeout: Duration,
    pub(super) interrupt: &'a Interrupt,
    pub(super) oom: &'a OomWatch,
}

impl References<'_> {
    /// The reference for a cell that was fed with these frames; the reason where there is none.
    pub(super) fn file(
        &self,
        cell: &CellSpec,
        scenes: SceneKind,
        frames_sha256: &str,
        log: &Path,
    ) -> Result<PathBuf, String> {
        if self.spec.model.is_none() && cell.model.source.is_engine() {
            return Err("an engine holds no model that could be computed otherwise; give one with --reference".into());
        }
        // A precision whose step depends on the range is held to bounds of its own; it shares the file of fp32.
        let fp32 = Precision::Fp32;
        let epsilon = agreement::epsilon(cell.precision).or(agreement::epsilon(fp32)).unwrap_or(0.0);
        let mut reasons = Vec::new();
        for candidate in self.candidates(cell) {
            let file = self.folder.join(format!("{}.ref", self.key(&candidate, epsilon, frames_sha256)));
            if prony_bench::reference_by(&file).is_some() {
                return Ok(file);
            }
            match self.compute(&candidate, epsilon, scenes, &file, log) {
                Ok(()) => {
                    self.prune(&file);
                    return Ok(file);
                }
                Err(reason) => reasons.push(format!("{}: {reason}", candidate.backend)),
            }
            if self.interrupt.asked() {
                break;
            }
        }
        Err(reasons.join("; "))
    }

    /// The cell as its own reference: the file in its own precision, on the backend of the plan, else the embedded one.
    fn candidates(&self, cell: &CellSpec) -> Vec<CellSpec> {
        let model = self.spec.model.as_ref().unwrap_or(&cell.model);
        let on = |backend, runtime| CellSpec {
            imgsz: cell.imgsz,
            head: cell.head,
            batch: cell.batch,
            threads: cell.threads,
            runtime,
            ..CellSpec::new(model.clone(), backend, Precision::Native)
        };
        let mut candidates = vec![on(self.spec.backend, self.spec.runtime.clone())];
        if self.spec.backend != BackendName::Rten {
            candidates.push(on(BackendName::Rten, None));
        }
        candidates
    }

    fn key(&self, candidate: &CellSpec, epsilon: f64, frames_sha256: &str) -> String {
        let runtime = candidate.runtime.as_ref().map(|runtime| &runtime.version);
        let shape = (candidate.imgsz, candidate.batch, candidate.head, &candidate.model.sha256);
        let whole = (candidate.backend, runtime, shape, &self.post, epsilon, frames_sha256, crate::version::VERSION);
        sha256_hex(&serde_json::to_vec(&whole).unwrap_or_default())[..32].to_owned()
    }

    fn compute(
        &self,
        candidate: &CellSpec,
        epsilon: f64,
        scenes: SceneKind,
        file: &Path,
        log: &Path,
    ) -> Result<(), String> {
        let job = Job::Reference(ReferenceJob {
            protocol: WORKER_PROTOCOL,
            cell: candidate.clone(),
            input: self.input.clone(),
            scenes,
            post: self.post,
            epsilon,
            file: std::path::absolute(file).map_err(|e| e.to_string())?,
            ring_fd: -1,
        });
        let last_word = |event| match event {
            EventKind::Referenced { .. } => Some(Ok(())),
            EventKind::Failed { message, .. } => Some(Err(message)),
            _ => None,
        };
        match errand(job, log, self.interrupt, self.timeout, last_word) {
            Errand::Done(outcome) => outcome,
            Errand::NotStarted(reason) => Err(reason),
            Errand::Died(_, Some(status)) if self.oom.claims(status) => {
                Err(format!("its worker was {}", self.oom.describe("computing the reference", None, 0)))
            }
            Errand::Died(cause, _) => Err(format!("its worker {cause}")),
            Errand::Interrupted => Err("interrupted".into()),
            Errand::Silent => Err("no sign of life; killed (--timeout)".into()),
        }
    }

    /// Keeps the cache small. Another run may do the same at once; a file that is gone already is no matter.
    fn prune(&self, newest: &Path) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<_> = entries
            .flatten()
            .filter(|entry| entry.path() != newest)
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let surplus = (files.len() + 1).saturating_sub(KEPT);
        for (_, file) in files.into_iter().take(surplus) {
            let _ = fs::remove_file(file);
        }
    }
}
