//! What is made for a cell before it can run, and the job that makes it.

use std::path::{Path, PathBuf};

use prony_files::Folder;
use prony_types::{
    ArtifactKind, BUILD_TIMEOUT_S, BackendName, CellSpec, GpuRecord, Job, ModelInfo, ModelSource, ModelSpec,
    PrepareJob, ReferenceSpec, RewriteJob, WORKER_PROTOCOL, is_engine_name,
};

/// What is made for a cell before it can run, in order.
pub(crate) fn steps(spec: &CellSpec) -> Vec<ArtifactKind> {
    let graph = spec.rewrite.as_ref().map(|_| ArtifactKind::Graph);
    graph.into_iter().chain(spec.engine.as_ref().map(|_| ArtifactKind::Engine)).collect()
}

/// The job of a step.
pub(crate) fn job_for(
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
pub(crate) fn engine_of(spec: &CellSpec) -> Option<&Path> {
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
pub fn writable(folder: &Path) -> std::io::Result<()> {
    if let Some(foreign) = Folder::make(folder)?.foreign()? {
        return Err(std::io::Error::other(format!("it {foreign}")));
    }
    tempfile::tempfile_in(folder).map(drop)
}

/// How many engines the given cells need that are not in the cache yet, as far as can be told without opening TensorRT. `info` is
/// what a model says about itself, by its identity.
pub fn engines_to_build<'a>(
    cells: impl Iterator<Item = &'a CellSpec>,
    info: &dyn Fn(&str) -> Option<&'a ModelInfo>,
    cache: Option<&Path>,
    gpus: &[GpuRecord],
) -> usize {
    let is_there = |cell: &CellSpec| {
        let gpu = gpus.get(cell.device as usize);
        let known = cache.zip(gpu).zip(info(&cell.model.sha256));
        known.is_some_and(|((cache, gpu), info)| prony_forge::has_engine(cache, cell, info, &gpu.name))
    };
    cells.filter(|cell| cell.engine.is_some() && !is_there(cell)).count()
}
