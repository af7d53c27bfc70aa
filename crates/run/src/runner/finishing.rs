//! When the clocks have stopped: what outputs are held against, and the end of each cell.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use prony_types::{BackendName, CellStatus, Command, Doing, EventKind, RunEventKind};

use super::{Run, Waited};
use crate::accuracy;
use crate::reference::References;
use crate::reference_cache::ReferenceCache;

impl Run {
    /// What each cell's outputs are to be held against. Cells of one model and shape share it.
    pub(super) fn references(&mut self) -> Vec<Option<PathBuf>> {
        let folder = match &self.own_references {
            Some(folder) => folder.clone(),
            None => self.files.make_new("reference").unwrap_or_else(|error| {
                // Whoever writes there says so, for each cell.
                tracing::error!("{error}");
                self.files.path().join("reference")
            }),
        };
        self.own_references = Some(folder.clone());
        // A home that cannot be used is no reason to trust outputs unseen.
        let opened = self.reference_cache.as_deref().map(|path| (path, ReferenceCache::open(path)));
        let cache = match opened {
            Some((path, Err(error))) => {
                let path = path.display().to_string();
                self.say(format!("  references are not kept: {path} cannot be used: {error}"));
                None
            }
            Some((_, Ok(cache))) => Some(cache),
            None => None,
        };
        let mut found = Vec::new();
        for index in 0..self.cells.len() {
            let file = self.reference(index, cache.as_ref(), &folder);
            found.push(match file {
                Some(Ok(file)) => Some(file),
                Some(Err(reason)) => {
                    let cell = self.cells[index].spec.id.clone();
                    tracing::warn!("{cell}: no reference: {reason}");
                    self.emit(RunEventKind::Unreferenced { cell, reason });
                    None
                }
                None => None,
            });
        }
        found
    }

    /// What the outputs of a cell that is loaded are held against, or why there is nothing.
    fn reference(
        &mut self,
        index: usize,
        cache: Option<&ReferenceCache>,
        folder: &std::path::Path,
    ) -> Option<Result<PathBuf, String>> {
        let frames = self.fold.cell(index).record.input.as_ref().map(|input| input.sha256.clone())?;
        if !self.is_running(index) {
            return None;
        }
        if self.cells[index].spec.backend == BackendName::Trtexec {
            return Some(Err("trtexec's outputs are not read".to_owned()));
        }
        self.set_doing(index, Doing::Referencing);
        if self.interrupt.asked() {
            return Some(Err("interrupted".to_owned()));
        }
        let run = self.fold.record();
        let references = References {
            cache,
            folder,
            spec: &run.plan.reference,
            input: &run.plan.input,
            post: run.plan.post,
            timeout: Duration::from_secs_f64(run.plan.budget.timeout_s),
            interrupt: &self.interrupt,
            oom: &self.oom,
            version: &run.run.version,
        };
        let (spec, record) = (&self.cells[index].spec, &self.fold.cell(index).record);
        let scenes = accuracy::kind_of(record, &spec.model.source);
        let file = references.file(spec, scenes, &frames, || self.files.cell_log(&record.slug));
        self.cells[index].alive = Instant::now();
        Some(file)
    }

    /// Has every worker check its outputs and end. An interrupted cell keeps what was measured.
    pub(super) fn finish_cells(&mut self, references: &[Option<PathBuf>]) {
        for (index, reference) in references.iter().enumerate() {
            if !self.is_running(index) {
                continue;
            }
            let (record, plan) = (&self.fold.cell(index).record, self.plan());
            let is_timed = plan.timed;
            let scored = plan.evaluation.is_none() || record.accuracy.is_some() || record.accuracy_absent.is_some();
            let timed = !is_timed || !self.wants_more(index) && record.throughput_fps.is_some();
            let complete = timed && scored;
            let interrupted = self.interrupt.asked() && !complete;
            let reference = reference.as_ref().and_then(|file| std::path::absolute(file).ok());
            self.order(index, &Command::Finish { reference }, Doing::Checking);
            if self.wait(index, |event| matches!(event, EventKind::Finished { .. })) == Waited::Ended {
                continue;
            }
            let absent = self.fold.cell(index).record.accuracy_absent.clone().filter(|_| !is_timed);
            if let (false, Some(reason)) = (interrupted, absent) {
                self.close(index, CellStatus::Failed, Some(reason));
                continue;
            }
            let (status, reason) = match (interrupted, self.cells[index].steady) {
                (false, _) => (CellStatus::Completed, None),
                (true, 0) if !is_timed => (CellStatus::Interrupted, Some("interrupted before every image was through")),
                (true, 0) => (CellStatus::Interrupted, Some("interrupted before anything was timed")),
                (true, _) => (CellStatus::Interrupted, Some("interrupted; the figures are of what was measured")),
            };
            self.close(index, status, reason.map(str::to_owned));
        }
    }
}
