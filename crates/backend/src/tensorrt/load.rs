//! From a file to an engine in memory: the driver is looked at first, then whether the engine was built for this place,
//! and only then is TensorRT asked to read it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use prony_model::{ModelFile, mismatch};
use prony_nvinfer::{Driver, Engine, Error, GpuAllocator, Library, Logger, Severity};
use prony_types::{EngineIdentity, RuntimeName, RuntimeSpec};
use prost::bytes::Bytes;

use super::{NAME, unsupported};
use crate::BackendError;
use crate::gpu::{Budget, Gpu};

/// What is to be loaded, and where.
pub(super) struct Ask<'a> {
    pub(super) runtime: &'a RuntimeSpec,
    /// Plugin libraries of the user's own.
    pub(super) plugins: &'a [PathBuf],
    pub(super) device: u32,
    pub(super) limit: Option<u64>,
    /// Tries it although it was built for something else.
    pub(super) force: bool,
    /// Maps the plan; asked for once everything else is there.
    pub(super) plan: &'a dyn Fn() -> Result<Plan, BackendError>,
}

/// An engine in memory, and where.
pub(super) struct Loaded {
    pub(super) engine: Engine,
    pub(super) gpu: Gpu,
    pub(super) budget: Arc<Budget>,
    pub(super) library: PathBuf,
    pub(super) here: EngineIdentity,
    /// What was decided on the way.
    pub(super) notes: Vec<String>,
    /// What TensorRT warned of while it read the plan: that it was built on another model of GPU, for one.
    pub(super) warnings: Vec<String>,
}

/// A plan as it lies in its file, mapped.
pub(super) struct Plan {
    file: Bytes,
    /// Where it begins, behind an exporter's header.
    start: usize,
    built: EngineIdentity,
    /// The accelerator that it was built for.
    dla_core: Option<u32>,
}

impl Plan {
    /// The artifact, or else the model's own file.
    pub(super) fn of(model: &ModelFile, artifact: Option<&ModelFile>) -> Result<Plan, BackendError> {
        let refuse = |reason: String| BackendError::Load { backend: NAME, reason };
        let file = artifact.unwrap_or(model);
        if !file.bytes.is_empty() {
            return Plan::in_file(file, file.bytes.clone());
        }
        let path = file.path.as_deref().ok_or_else(|| unsupported("the model has no file".into()))?;
        let bytes = prony_model::map_file(path).map_err(|e| refuse(format!("{}: {e}", path.display())))?;
        Plan::in_file(file, bytes)
    }

    fn in_file(model: &ModelFile, file: Bytes) -> Result<Plan, BackendError> {
        let Some(engine) = &model.engine else {
            return Err(unsupported("runs engines, and no engine was built from this model; `prony bench --backends tensorrt` builds one and measures it".into()));
        };
        let dla_core = engine.sidecar.as_ref().and_then(|sidecar| sidecar.dla_core);
        Ok(Plan { file, start: engine.header_bytes, built: engine.identity(), dla_core })
    }
}

/// TensorRT's words, for the log of the worker. It is made once: TensorRT keeps the first one that it sees.
fn logger() -> &'static Logger {
    static LOGGER: OnceLock<Logger> = OnceLock::new();
    LOGGER.get_or_init(|| {
        Logger::new(|severity, text| match severity {
            Severity::InternalError | Severity::Error => tracing::error!("TensorRT: {text}"),
            Severity::Warning => tracing::warn!("TensorRT: {text}"),
            Severity::Info => tracing::debug!("TensorRT: {text}"),
            Severity::Verbose => tracing::trace!("TensorRT: {text}"),
        })
    })
}

/// Loads an engine.
pub(super) fn load(ask: &Ask<'_>) -> Result<Loaded, BackendError> {
    let impossible = |error: Error| unsupported(error.to_string());
    // Before anything of TensorRT: without a driver it crashes.
    let driver = Driver::open(None).map_err(impossible)?;
    let gpu = Gpu::open(ask.device).map_err(|error| unsupported(error.to_string()))?;
    let library = Library::open(&ask.runtime.library).map_err(impossible)?;
    let here = identity(&library, &gpu);
    let plan = (ask.plan)()?;
    let mut notes = Vec::new();
    if let Some(difference) = mismatch(&plan.built, &here) {
        if !ask.force {
            return Err(BackendError::Load { backend: NAME, reason: difference });
        }
        notes.push(format!("tried by force: {difference}"));
    }
    plugins(ask, &library, &mut notes)?;
    let budget = Budget::new(&gpu, ask.limit);
    let runtime = library.runtime(&driver, logger()).map_err(impossible)?;
    runtime.set_allocator(&GpuAllocator::new(Arc::clone(&budget) as Arc<dyn prony_nvinfer::DeviceAllocator>));
    if plan.built.version_compatible || ask.force {
        match runtime.allow_host_code(true) {
            Ok(()) => notes.push("code for the host that the engine brings is allowed".into()),
            Err(error) => tracing::warn!("{error}"),
        }
    }
    if let Some(core) = plan.dla_core {
        runtime.set_dla_core(i32::try_from(core).unwrap_or(i32::MAX));
        notes.push(format!("DLA core {core}, as it was built for"));
    }
    let (engine, mut warnings) = logger().warnings_during(|| runtime.deserialize(&plan.file[plan.start..]));
    warnings.retain(|line| !is_about_the_environment(line));
    // TensorRT has its own copy now: the file's pages go before anything else is made.
    drop(plan);
    let engine = engine.map_err(|error| refusal(&gpu, &budget, explain(&error)))?;
    Ok(Loaded { engine, gpu, budget, library: library.path().to_owned(), here, notes, warnings })
}

/// Whether a warning is about how the process was started and not about the engine: TensorRT 8 recommends lazy loading of
/// kernels to everybody who has it switched off. The log has it.
fn is_about_the_environment(warning: &str) -> bool {
    warning.to_lowercase().contains("lazy loading")
}

/// NVIDIA's own plugins, where they are, and then the user's.
fn plugins(ask: &Ask<'_>, library: &Library, notes: &mut Vec<String>) -> Result<(), BackendError> {
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if let Some(path) = ask.runtime.companions.get(&RuntimeName::NvinferPlugin) {
        match library.init_plugins(path, logger()) {
            Ok(()) => notes.push(format!("plugins of {}", name(path))),
            // Most engines need none; one that does says so when it is loaded.
            Err(error) => tracing::warn!("{error}"),
        }
    }
    for path in ask.plugins {
        library.load_plugin(path).map_err(|error| unsupported(error.to_string()))?;
        notes.push(format!("plugins of {}", name(path)));
    }
    Ok(())
}

/// Where engines are run here.
fn identity(library: &Library, gpu: &Gpu) -> EngineIdentity {
    let ((major, minor), cuda) = (gpu.compute(), gpu.driver());
    EngineIdentity {
        tensorrt: library.version().to_string(),
        gpu: gpu.name().to_owned(),
        compute_capability: format!("{major}.{minor}"),
        sm_count: gpu.sms(),
        cuda: format!("{}.{}", cuda / 1000, cuda % 1000 / 10),
        ..EngineIdentity::default()
    }
}

/// TensorRT's reason, with what helps where that is known.
fn explain(error: &Error) -> String {
    let text = error.to_string();
    let lower = text.to_lowercase();
    if lower.contains("host code") || lower.contains("hostcode") {
        return format!("{text}; the engine brings code for the host (it is version-compatible): --force allows it");
    }
    if lower.contains("plugin") || lower.contains("creator") {
        return format!("{text}; give the library with the plugin by --plugin");
    }
    text
}

/// An engine that TensorRT does not take, put down to memory where memory was refused.
fn refusal(gpu: &Gpu, budget: &Budget, reason: String) -> BackendError {
    match trouble(gpu, budget, reason) {
        BackendError::Run { backend, reason } => BackendError::Load { backend, reason },
        memory => memory,
    }
}

/// A failure of something that runs, put down to memory where memory was refused.
pub(super) fn trouble(gpu: &Gpu, budget: &Budget, reason: String) -> BackendError {
    match budget.last_refusal() {
        Some(why) => {
            // Where it was our own buffer that was refused, the two are the same.
            let reason = if reason == why { why } else { format!("{why}; {reason}") };
            BackendError::Memory { backend: NAME, reason, device: Box::new(gpu.usage(budget)) }
        }
        None => BackendError::Run { backend: NAME, reason },
    }
}
