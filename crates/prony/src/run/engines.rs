//! Graphs are rewritten and engines are built before anything is timed, each in a process of its own that ends before
//! another is loaded.

use std::path::{Path, PathBuf};
use std::time::Instant;

use prony_files::Folder;
use prony_types::{
    ArtifactKind, ArtifactSpec, BUILD_TIMEOUT_S, BackendName, BuildProgress, CellSpec, CellStatus, EventKind,
    GpuRecord, Job, ModelSource, ModelSpec, PrepareJob, ReferenceSpec, RewriteJob, WORKER_PROTOCOL, is_engine_name,
};

use super::cell::Doing;
use super::progress::short_time;
use super::worker::{Message, Worker};
use super::{Run, Waited};
use crate::output::words;

impl Run {
    /// Makes what the cells run that is not the model's own file, or finds it in the cache.
    pub(super) fn make_artifacts(&mut self) {
        if !self.cells.iter().any(|cell| cell.is_waiting() && !steps(&cell.spec).is_empty()) {
            return;
        }
        let (cache, elsewhere) = self.artifact_folder();
        elsewhere.iter().for_each(|note| self.progress.say(&format!("  {note}")));
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

    fn make(&mut self, index: usize, step: ArtifactKind, cache: &Path, elsewhere: Option<&str>) {
        let doing = if step == ArtifactKind::Graph { Doing::Rewriting } else { Doing::Building };
        self.progress.milestone(index, doing.words());
        if let Err(error) = self.start_maker(index, step, doing, cache) {
            let what = if step == ArtifactKind::Graph { "graph" } else { "engine" };
            self.close(index, CellStatus::Failed, Some(format!("the {what} cannot be made: {error:#}")));
            return;
        }
        let made = self.wait(index, |event| matches!(event, EventKind::Prepared { .. }));
        if made == Waited::Answered {
            let artifact = &mut self.cells[index].fold.record.artifact;
            artifact.iter_mut().for_each(|artifact| artifact.notes.extend(elsewhere.map(str::to_owned)));
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

    fn start_maker(&mut self, index: usize, step: ArtifactKind, doing: Doing, cache: &Path) -> anyhow::Result<()> {
        let cache = std::path::absolute(cache)?;
        let job = job_for(step, &self.cells[index].spec, &self.record.plan.reference, cache)?;
        let cell = &mut self.cells[index];
        let worker = Worker::spawn(index, job, self.files.cell_log(&cell.fold.record.slug)?, self.sender.clone())?;
        self.sensors.point_at(Some((cell.spec.id.clone(), worker.pid())));
        cell.alive = Instant::now();
        cell.doing = doing;
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

    pub(super) fn show_build(&self, index: usize, progress: &BuildProgress) {
        self.progress.step(index, progress.done.unwrap_or(0.0), || words(progress));
    }
}

/// What is made for a cell before it can run, in order.
pub(super) fn steps(spec: &CellSpec) -> Vec<ArtifactKind> {
    let graph = spec.rewrite.as_ref().map(|_| ArtifactKind::Graph);
    graph.into_iter().chain(spec.engine.as_ref().map(|_| ArtifactKind::Engine)).collect()
}

/// The job of a step.
pub(super) fn job_for(
    step: ArtifactKind,
    spec: &CellSpec,
    reference: &ReferenceSpec,
    cache: PathBuf,
) -> anyhow::Result<Job> {
    Ok(match step {
        ArtifactKind::Graph => Job::Rewrite(rewrite_job(spec, reference, cache)?),
        ArtifactKind::Engine => Job::Prepare(prepare_job(spec, cache)?),
    })
}

/// How a cell's graph is made.
fn rewrite_job(spec: &CellSpec, reference: &ReferenceSpec, cache: PathBuf) -> anyhow::Result<RewriteJob> {
    let rewrite = spec.rewrite.clone().ok_or_else(|| anyhow::anyhow!("no graph was planned"))?;
    // Ranges are found with what outputs are held against.
    let runtime = reference.runtime.clone().filter(|_| reference.backend == BackendName::OrtCpu);
    Ok(RewriteJob {
        protocol: WORKER_PROTOCOL,
        cell: spec.id.clone(),
        model: spec.model.clone(),
        rewrite,
        imgsz: spec.imgsz,
        runtime,
        cache,
        rebuild: false,
        ring_fd: -1,
    })
}

/// How a cell's engine is built.
fn prepare_job(spec: &CellSpec, cache: PathBuf) -> anyhow::Result<PrepareJob> {
    let missing = |what: &str| anyhow::anyhow!("{what}");
    let engine = spec.engine.clone().ok_or_else(|| missing("no engine was planned"))?;
    // trtexec is a program: what builds for it is always named apart.
    let own = spec.runtime.clone().filter(|_| spec.backend != BackendName::Trtexec);
    let runtime = spec.builder.clone().or(own);
    let runtime = runtime.ok_or_else(|| missing("there is no TensorRT to build it with"))?;
    Ok(PrepareJob {
        protocol: WORKER_PROTOCOL,
        cell: spec.id.clone(),
        model: rewritten_model(spec),
        engine,
        imgsz: spec.imgsz,
        batch: spec.batch,
        runtime,
        plugins: spec.provider.trt_plugins.clone(),
        device: spec.device,
        gpu_mem_limit_bytes: spec.provider.gpu_mem_limit_bytes,
        threads: None,
        cache,
        rebuild: false,
        timeout_s: spec.provider.trt_build_timeout_s.unwrap_or(BUILD_TIMEOUT_S),
        ring_fd: -1,
    })
}

/// The engine that a cell loads: what was built for it, or the model's own file where that is one.
fn engine_of(spec: &CellSpec) -> Option<&Path> {
    let built = spec.artifact.as_ref().map(|artifact| artifact.path.as_path()).filter(|path| is_engine_name(path));
    // Where nothing is built for a backend that runs engines, the model is one, whatever its file is called.
    match &spec.model.source {
        ModelSource::File(path) if spec.backend.runs_engines() && spec.engine.is_none() => Some(path),
        _ => built,
    }
}

/// What an engine is built from: the graph that was made for it, else the model.
fn rewritten_model(spec: &CellSpec) -> ModelSpec {
    match (&spec.rewrite, &spec.artifact) {
        (Some(_), Some(graph)) => {
            ModelSpec::new(spec.model.name.clone(), ModelSource::File(graph.path.clone()), graph.sha256.clone())
        }
        _ => spec.model.clone(),
    }
}

/// Whether files can be made in a folder, which is made where it is not there, and by nobody else: what lies in it is
/// executed.
pub(crate) fn writable(folder: &Path) -> std::io::Result<()> {
    if let Some(foreign) = Folder::make(folder)?.foreign()? {
        return Err(std::io::Error::other(format!("it {foreign}")));
    }
    tempfile::tempfile_in(folder).map(drop)
}

/// What was made, in a few words.
pub(super) fn made(artifact: &ArtifactSpec, build_ms: Option<f64>, rebuilt_because: Option<&str>) -> String {
    let engine = ModelSource::File(artifact.path.clone()).is_engine();
    let (what, verb) = if engine { ("engine", "build") } else { ("graph", "make") };
    let (done, again) = if engine { ("built", "rebuilt") } else { ("made", "made again") };
    let took = build_ms.map(|ms| short_time(ms / 1e3));
    match (artifact.from_cache, took, rebuilt_because) {
        (true, Some(took), _) => format!("{what} from the cache (it took {took} to {verb})"),
        (true, None, _) => format!("{what} from the cache"),
        (false, Some(took), Some(why)) => format!("{what} {again} in {took} because: {why}"),
        (false, Some(took), None) => format!("{what} {done} in {took}"),
        (false, None, _) => format!("{what} {done}"),
    }
}

/// How many engines the given cells need that are not in the cache yet, as far as can be told without opening TensorRT.
pub(crate) fn engines_to_build<'a>(
    cells: impl Iterator<Item = &'a CellSpec>,
    cache: Option<&Path>,
    gpus: &[GpuRecord],
) -> usize {
    let is_there = |cell: &CellSpec| {
        let gpu = gpus.get(cell.device as usize);
        cache.zip(gpu).is_some_and(|(cache, gpu)| prony_forge::has_engine(cache, cell, &gpu.name))
    };
    cells.filter(|cell| cell.engine.is_some() && !is_there(cell)).count()
}

/// Where artifacts are kept in a folder of caches.
pub(crate) fn artifacts(cache: &Path) -> PathBuf {
    cache.join("artifacts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_whether_an_engine_was_built_or_found() {
        let made = |from_cache, build_ms, why| {
            let artifact = ArtifactSpec { path: "/c/k.engine".into(), sha256: String::new(), from_cache };
            super::made(&artifact, build_ms, why)
        };
        assert_eq!(made(true, Some(50_000.0), None), "engine from the cache (it took 50 s to build)");
        assert_eq!(made(false, Some(50_000.0), None), "engine built in 50 s");
        let why = Some("driver 580.1 -> 580.2");
        assert_eq!(made(false, Some(70_000.0), why), "engine rebuilt in 1m 10s because: driver 580.1 -> 580.2");
    }
}
