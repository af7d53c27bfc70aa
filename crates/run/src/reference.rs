//! Outputs that cells are compared with: computed in a process of their own when the clocks have stopped, and kept by model
//! and frames for the next run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use prony_judge::agreement;
use prony_store::StoreError;
use prony_types::{
    BackendName, CellSpec, EventKind, InputSpec, Job, PostSpec, Precision, ReferenceJob, ReferenceSpec, SceneKind,
    WORKER_PROTOCOL,
};
use serde_json::{Value, json};

use crate::errand::{Errand, errand};
use crate::oom::OomWatch;
use crate::reference_cache::{ReferenceCache, file_name};
use prony_work::Interrupt;

/// Where references are, and how to make them.
pub(crate) struct References<'a> {
    /// Those of earlier runs; `None` where there is no home that can be used.
    pub cache: Option<&'a ReferenceCache>,
    /// A folder of this run's own, where they are made: a home that is full or cannot be written to takes nothing away.
    pub folder: &'a Path,
    pub spec: &'a ReferenceSpec,
    pub input: &'a InputSpec,
    pub post: PostSpec,
    pub timeout: Duration,
    pub interrupt: &'a Interrupt,
    pub oom: &'a OomWatch,
    /// Of Prony.
    pub version: &'a str,
}

impl References<'_> {
    /// The reference for a cell that was fed with these frames; the reason where there is none.
    pub(crate) fn file(
        &self,
        cell: &CellSpec,
        scenes: SceneKind,
        frames_sha256: &str,
        log: impl Fn() -> Result<File, StoreError>,
    ) -> Result<PathBuf, String> {
        if self.spec.model.is_none() && cell.model.source.is_engine() {
            return Err("an engine holds no model that could be computed otherwise; give one with --reference".into());
        }
        // A precision whose step depends on the range is held to bounds of its own; it shares the file of fp32.
        let fp32 = Precision::Fp32;
        let epsilon = agreement::epsilon(cell.precision).or(agreement::epsilon(fp32)).unwrap_or(0.0);
        let mut reasons = Vec::new();
        for candidate in self.candidates(cell) {
            let recipe = self.recipe(&candidate, epsilon, frames_sha256);
            if let Some(kept) = self.cache.and_then(|cache| cache.find(&recipe)) {
                return Ok(kept);
            }
            let file = self.folder.join(file_name(&recipe));
            // Nobody but this run writes there: it is what another cell was compared with.
            if prony_bench::reference_by(&file).is_some() {
                return Ok(file);
            }
            let log = log().map_err(|e| e.to_string())?;
            match self.compute(&candidate, epsilon, scenes, &file, log) {
                Ok(()) => {
                    self.keep(&recipe, &file);
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

    /// For the next run, if the home takes it.
    fn keep(&self, recipe: &Value, file: &Path) {
        if let Some(Err(error)) = self.cache.map(|cache| cache.keep(recipe, file)) {
            tracing::warn!("the reference is not kept for the next run: {error}");
        }
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

    /// All that decides the values.
    fn recipe(&self, candidate: &CellSpec, epsilon: f64, frames_sha256: &str) -> Value {
        json!({
            "backend": candidate.backend,
            "runtime": candidate.runtime.as_ref().map(|runtime| &runtime.version),
            "imgsz": candidate.imgsz,
            "batch": candidate.batch,
            "head": candidate.head,
            "model_sha256": candidate.model.sha256,
            "post": self.post,
            "epsilon": epsilon,
            "frames_sha256": frames_sha256,
            "prony": self.version,
        })
    }

    fn compute(
        &self,
        candidate: &CellSpec,
        epsilon: f64,
        scenes: SceneKind,
        file: &Path,
        log: File,
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
}
