//! Engines are made before anything is timed, each in a process of its own that ends before another is loaded.

use std::path::{Path, PathBuf};
use std::time::Instant;

use prony_types::{
    BUILD_TIMEOUT_S, BackendName, BuildProgress, CellStatus, EventKind, Job, PrepareJob, WORKER_PROTOCOL,
};

use super::cell::Doing;
use super::progress::short_time;
use super::worker::{Message, Worker};
use super::{Run, Waited};

impl Run {
    /// Makes the engines of the cells that need one, or finds them in the cache.
    pub(super) fn make_engines(&mut self) {
        if !self.cells.iter().any(|cell| cell.is_pending() && cell.spec.engine.is_some()) {
            return;
        }
        let (cache, elsewhere) = self.engine_folder();
        elsewhere.iter().for_each(|note| self.progress.say(&format!("  {note}")));
        for index in 0..self.cells.len() {
            if self.interrupt.asked() {
                return;
            }
            if !self.cells[index].is_pending() || self.cells[index].spec.engine.is_none() {
                continue;
            }
            self.progress.milestone(index, Doing::Building.words());
            if let Err(error) = self.start_builder(index, &cache) {
                self.close(index, CellStatus::Failed, Some(format!("the engine cannot be made: {error:#}")));
                continue;
            }
            let made = self.wait(index, |event| matches!(event, EventKind::Prepared { .. }));
            if made == Waited::Answered {
                let artifact = &mut self.cells[index].fold.record.artifact;
                artifact.iter_mut().for_each(|artifact| artifact.notes.extend(elsewhere.clone()));
                self.release(index);
            }
            self.sensors.point_at(None);
        }
    }

    /// Where engines are made: in the cache, or, where that cannot be written to, in the run's own folder, with the reason.
    fn engine_folder(&self) -> (PathBuf, Option<String>) {
        let of_run = || self.files.path().join("artifacts");
        match &self.artifact_cache {
            None => (of_run(), Some("there is no home folder, so engines are kept in the run folder".to_owned())),
            Some(cache) => match writable(cache) {
                Ok(()) => (cache.clone(), None),
                Err(error) => {
                    let cache = cache.display();
                    let note = format!("engines are kept in the run folder, for {cache} cannot be written to: {error}");
                    (of_run(), Some(note))
                }
            },
        }
    }

    fn start_builder(&mut self, index: usize, cache: &Path) -> anyhow::Result<()> {
        let cell = &mut self.cells[index];
        let missing = |what: &str| anyhow::anyhow!("{what}");
        let engine = cell.spec.engine.clone().ok_or_else(|| missing("no engine was planned"))?;
        // trtexec is a program: what builds for it is always named apart.
        let own = cell.spec.runtime.clone().filter(|_| cell.spec.backend != BackendName::Trtexec);
        let runtime = cell.spec.builder.clone().or(own);
        let runtime = runtime.ok_or_else(|| missing("there is no TensorRT to build it with"))?;
        let folder = self.files.cell_dir(&cell.fold.record.slug)?;
        let job = Job::Prepare(PrepareJob {
            protocol: WORKER_PROTOCOL,
            cell: cell.spec.id.clone(),
            model: cell.spec.model.clone(),
            engine,
            imgsz: cell.spec.imgsz,
            batch: cell.spec.batch,
            runtime,
            plugins: cell.spec.provider.trt_plugins.clone(),
            device: cell.spec.device,
            gpu_mem_limit_bytes: cell.spec.provider.gpu_mem_limit_bytes,
            threads: None,
            cache: std::path::absolute(cache)?,
            rebuild: false,
            timeout_s: cell.spec.provider.trt_build_timeout_s.unwrap_or(BUILD_TIMEOUT_S),
            ring_fd: -1,
        });
        let worker = Worker::spawn(index, job, &folder.join("worker.log"), self.sender.clone())?;
        self.sensors.point_at(Some((cell.spec.id.clone(), worker.pid())));
        cell.alive = Instant::now();
        cell.doing = Doing::Building;
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

    /// The cells in the order in which they are loaded: the largest engine first, while most memory is free.
    pub(super) fn loading_order(&self) -> Vec<usize> {
        let size = |index: &usize| {
            let artifact = self.cells[*index].spec.artifact.as_ref();
            artifact.and_then(|artifact| std::fs::metadata(&artifact.path).ok()).map_or(0, |file| file.len())
        };
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        // Stable: cells without an engine stay in the order of the plan, behind those with one.
        order.sort_by_key(|index| std::cmp::Reverse(size(index)));
        order
    }

    pub(super) fn show_build(&self, index: usize, progress: &BuildProgress) {
        let left = progress.eta_s.map(|s| format!(", about {} left", short_time(s))).unwrap_or_default();
        self.progress.figure(index, progress.done.unwrap_or(0.0), || format!("{}{left}", progress.doing));
    }
}

/// Whether files can be made in a folder, which is made where it is not there.
fn writable(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    tempfile::tempfile_in(folder).map(drop)
}

/// What was made, in a few words.
pub(super) fn made(from_cache: bool, build_ms: Option<f64>, rebuilt_because: Option<&str>) -> String {
    let took = build_ms.map(|ms| short_time(ms / 1e3));
    match (from_cache, took, rebuilt_because) {
        (true, Some(took), _) => format!("engine from the cache (it took {took} to build)"),
        (true, None, _) => "engine from the cache".to_owned(),
        (false, Some(took), Some(why)) => format!("engine rebuilt in {took} because: {why}"),
        (false, Some(took), None) => format!("engine built in {took}"),
        (false, None, _) => "engine built".to_owned(),
    }
}

/// Where engines are kept in a folder of caches.
pub(crate) fn artifacts(cache: &Path) -> PathBuf {
    cache.join("artifacts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_whether_an_engine_was_built_or_found() {
        assert_eq!(made(true, Some(50_000.0), None), "engine from the cache (it took 50 s to build)");
        assert_eq!(made(false, Some(50_000.0), None), "engine built in 50 s");
        let why = Some("driver 580.1 -> 580.2");
        assert_eq!(made(false, Some(70_000.0), why), "engine rebuilt in 1m 10s because: driver 580.1 -> 580.2");
    }
}
