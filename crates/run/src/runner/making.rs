//! Graphs are rewritten and engines are built before anything is timed, each in a process of its own that ends before
//! another is loaded.

use std::path::{Path, PathBuf};
use std::time::Instant;

use prony_types::{CellStatus, Doing, EventKind, Making, RunEventKind};

use super::{Run, Waited};
use crate::jobs::{engine_of, job_for, steps, writable};
use crate::worker::{Message, Worker};

impl Run {
    /// Makes what the cells run that is not the model's own file, or finds it in the cache.
    pub(super) fn make_artifacts(&mut self) {
        if !self.cells.iter().any(|cell| cell.is_waiting() && !steps(&cell.spec).is_empty()) {
            return;
        }
        let (cache, elsewhere) = self.artifact_folder();
        elsewhere.iter().for_each(|note| self.say(format!("  {note}")));
        for index in 0..self.cells.len() {
            for step in steps(&self.cells[index].spec) {
                if self.interrupt.asked() {
                    return;
                }
                if self.cells[index].is_waiting() {
                    self.make(index, step, &cache, elsewhere.as_deref());
                }
            }
        }
    }

    fn make(&mut self, index: usize, step: Making, cache: &Path, elsewhere: Option<&str>) {
        let doing = if step == Making::Graph { Doing::Rewriting } else { Doing::Building };
        if let Err(error) = self.start_maker(index, step, doing, cache) {
            let what = if step == Making::Graph { "graph" } else { "engine" };
            self.close(index, CellStatus::Failed, Some(format!("the {what} cannot be made: {error:#}")));
            return;
        }
        let made = self.wait(index, |event| matches!(event, EventKind::Prepared { .. }));
        if made == Waited::Answered {
            if let Some(note) = elsewhere {
                let (cell, note) = (self.cells[index].spec.id.clone(), note.to_owned());
                self.emit(RunEventKind::Noted { cell, note });
            }
            self.release(index);
        }
        self.sensors.point_at(None);
    }

    /// Where they are made: in the cache, or, where that cannot be used, in a new folder of the run's own, with the reason.
    fn artifact_folder(&mut self) -> (PathBuf, Option<String>) {
        let note = match &self.artifact_cache {
            None => "there is no home folder, so artifacts are kept in the run folder".to_owned(),
            Some(cache) => match writable(cache) {
                Ok(()) => return (cache.clone(), None),
                Err(error) => {
                    let cache = cache.display();
                    format!("artifacts are kept in the run folder, for {cache} cannot be written to: {error}")
                }
            },
        };
        // What lies in the run folder already may have been put there by anybody.
        let folder = self.files.make_new("artifacts").unwrap_or_else(|_| self.files.path().join("artifacts"));
        self.artifact_cache = Some(folder.clone());
        (folder, Some(note))
    }

    fn start_maker(&mut self, index: usize, step: Making, doing: Doing, cache: &Path) -> anyhow::Result<()> {
        let cache = std::path::absolute(cache)?;
        let job = job_for(step, &self.cells[index].spec, &self.plan().reference, cache)?;
        let worker = Worker::spawn(index, job, self.files.cell_log(self.slug(index))?, self.sender.clone())?;
        self.set_doing(index, doing);
        let cell = &mut self.cells[index];
        self.sensors.point_at(Some((cell.spec.id.clone(), worker.pid())));
        cell.alive = Instant::now();
        cell.worker = Some(worker);
        Ok(())
    }

    /// Lets a builder that did its work end, and hears it out: its last message must not be taken for one of the worker
    /// that measures the cell after it.
    fn release(&mut self, index: usize) {
        let Some(mut worker) = self.cells[index].worker.take() else { return };
        let _ = worker.wait();
        while let Ok(message) = self.messages.recv() {
            match message {
                Message::Closed { worker } if worker == index => return,
                Message::Telemetry(reading) => self.take_reading(*reading),
                Message::Event { .. } | Message::Garbage { .. } | Message::Closed { .. } => {}
            }
        }
    }

    /// The cells in the order in which they are loaded: the largest engine first, while most memory is free, whether it
    /// was built here or is the user's own.
    pub(super) fn loading_order(&self) -> Vec<usize> {
        let size = |index: &usize| {
            let engine = engine_of(&self.cells[*index].spec);
            engine.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len())
        };
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        // Stable: cells without an engine stay in the order of the plan, behind those with one.
        order.sort_by_cached_key(|index| std::cmp::Reverse(size(index)));
        order
    }
}
