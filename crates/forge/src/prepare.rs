//! An artifact from the cache, or made now: the whole of a `Prepare` worker's work.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use prony_backend::gpu::{Budget, Gpu};
use prony_backend::{ModelFile, open_model, precision_of};
use prony_model::decoding_tail;
use prony_nvinfer::{Driver, Family, Library};
use prony_probe::MemoryRoom;
use prony_runtimes::discovery;
use prony_source::scenes::kind_for;
use prony_types::{
    ArtifactSpec, BuildProgress, DiscoverJob, EngineIdentity, EngineSpec, HeadChoice, ModelInfo, ModelSpec, Precision,
    PrepareJob, RuntimeName, TensorSpec, WORKER_PROTOCOL,
};
use prony_vision::{Fit, Head};

use crate::arithmetic::{Situation, arithmetic};
use crate::build::{Built, CalibrationOrder, Order, Tools, build};
use crate::cache::{Cache, SourceModel, hash_file};
use crate::calibration::{CalibrationFeed, data_sha256};
use crate::error::ForgeError;
use crate::key::key_of_bytes;
use crate::memory::{Alarm, Plan, Watch, host_peak};
use crate::progress::{eta_s, expected_s};
use crate::recipe::Recipe;
use crate::shape;
use crate::sidecar::{EngineSidecar, FreshEngine};
use crate::weights::weights;

/// How often a build is looked at.
const TICK: Duration = Duration::from_millis(200);
/// How often progress is told.
const TELL: Duration = Duration::from_secs(1);
/// How long a build that was asked to end may take before it is left to die with the process.
const GRACE: Duration = Duration::from_secs(5);

/// Where the kernel speaks of memory. Debug builds can be told of another machine, so that a test can be short of it.
fn memory_root() -> PathBuf {
    let told = if cfg!(debug_assertions) { std::env::var_os("PRONY_TEST_MEMORY_ROOT") } else { None };
    told.map_or_else(|| "/".into(), PathBuf::from)
}

/// The artifact, and what should be known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Its file and hash.
    pub artifact: ArtifactSpec,
    /// How long it took to build, now or when it was made.
    pub build_ms: f64,
    /// Why it was built although there was one like it.
    pub rebuilt_because: Option<String>,
    /// What else was decided and should be known.
    pub notes: Vec<String>,
}

/// Finds an engine in the cache, or builds it. `beat` is called at least a few times a second.
///
/// After an error a build may still be running in a thread of its own: TensorRT 8 cannot be asked to stop. The process
/// must end then.
pub fn prepare(
    job: &PrepareJob,
    on_progress: &mut dyn FnMut(BuildProgress),
    beat: &dyn Fn(),
) -> Result<Prepared, ForgeError> {
    let model = open_as_asked(&job.model)?;
    let library = Library::open(&job.runtime.library)?;
    if !library.can_build() {
        let path = library.path().display();
        return Err(ForgeError::Unsupported(format!("{path} runs engines and builds none; name the full libnvinfer")));
    }
    let driver = Driver::open(None)?;
    let gpu = Gpu::open(job.device).map_err(|error| ForgeError::Unsupported(error.to_string()))?;
    let mut notes = Vec::new();
    let spec = complete(job, &model)?;
    let situation = Situation {
        family: library.family(),
        version: library.version(),
        compute: gpu.compute(),
        brings: precision_of(&model.info),
        calibrated: spec.calibration.as_ref().map(|calibration| calibration.method),
    };
    let arithmetic = arithmetic(spec.precision, situation)?;
    let calibrated = spec.calibration.as_ref().filter(|_| arithmetic.calibrate);
    let kind = kind_for(&job.model.source, &model.info.metadata.names);
    let calibration_sha256 = calibrated.map(|data| data_sha256(data, kind)).transpose()?;
    // Ranges that the outputs are decoded with are left out: no common scale holds coordinates and scores.
    let float = if calibrated.is_some() { decoding_tail(&model.bytes) } else { BTreeSet::new() };
    let weights = weights(&model)?;
    let onnx_bytes = model.bytes.len() as u64 + weights.bytes;
    let recipe = Recipe {
        onnx_sha256: model.sha256.clone(),
        weights: weights.hashes,
        engine: EngineSpec { calibration: calibrated.cloned(), ..spec },
        calibration_sha256,
        float_tail: (!float.is_empty()).then_some(float.len()),
        identity: identity(&library, &gpu, &job.engine),
        plugins: plugin_hashes(&job.plugins)?,
        gpu_mem_limit_bytes: job.gpu_mem_limit_bytes,
    };
    let cache = Cache::at(&job.cache);
    let origin = SourceModel { model: &job.model.name, onnx_bytes, prony: env!("CARGO_PKG_VERSION") };
    let mut said = false;
    let told = std::cell::RefCell::new(on_progress);
    let mut waiting = || {
        beat();
        if !std::mem::replace(&mut said, true) {
            let doing = "waiting for another prony that builds this engine".to_owned();
            told.borrow_mut()(BuildProgress { doing, done: None, eta_s: None });
        }
    };
    let kept = cache.get_or_make(&recipe, origin, job.rebuild, &mut waiting, || {
        let budget = Budget::new(&gpu, job.gpu_mem_limit_bytes);
        let learning = Budget::new(&gpu, job.gpu_mem_limit_bytes);
        let phases = Arc::default();
        let tools = Tools { library: library.clone(), driver, gpu: gpu.clone(), budget, learning, phases };
        let order = order(job, model, &recipe, arithmetic, float, &cache)?;
        let plan = plan(&recipe.engine, onnx_bytes);
        let advice =
            plan.advice(MemoryRoom::read(&memory_root()), gpu.memory().ok().map(|m| m.free_bytes), gpu.integrated());
        let expected = expected_s(&cache.sidecars(), &recipe, onnx_bytes);
        let mut tell = |progress: BuildProgress| told.borrow_mut()(progress);
        let made = supervise(order, &tools, job.timeout_s, expected, &mut tell, beat, &advice)?;
        // Of this build alone: whoever takes the engine from the cache needs no memory for it.
        notes.extend(advice);
        notes.extend(tools.budget.nearly_spent().map(|words| format!("the build: {words}")));
        Ok(made)
    })?;
    notes.extend(kept.sidecar.notes.iter().cloned());
    let EngineSidecar { engine_sha256, build_s, .. } = kept.sidecar;
    Ok(Prepared {
        artifact: ArtifactSpec { path: kept.path, sha256: engine_sha256, from_cache: kept.from_cache },
        build_ms: build_s * 1e3,
        rebuilt_because: kept.rebuilt_because,
        notes,
    })
}

/// The model, if it is still the one that was asked for.
pub(crate) fn open_as_asked(spec: &ModelSpec) -> Result<ModelFile, ForgeError> {
    let model = open_model(&spec.source).map_err(|e| ForgeError::Model(e.to_string()))?;
    model.ensure_whole().map_err(|e| ForgeError::Model(e.to_string()))?;
    if model.sha256 != spec.sha256 {
        return Err(ForgeError::Model(format!("{} changed on disk since it was asked for", spec.name)));
    }
    Ok(model)
}

/// The spec with the shapes of every input, if all that the model and the limits decide was decided when it was planned.
fn complete(job: &PrepareJob, model: &ModelFile) -> Result<EngineSpec, ForgeError> {
    let mut spec = job.engine.clone();
    let undecided = |what: &str| Err(ForgeError::Unsupported(format!("{what}; this is a mistake of prony's")));
    if spec.workspace_bytes.is_none() && job.gpu_mem_limit_bytes.is_some() {
        return undecided("no workspace was planned for a build with a limit of device memory");
    }
    if spec.calibration.is_some() && precision_of(&model.info) == Precision::Int8 {
        return undecided("calibration was planned for a graph that brings its own int8 ranges");
    }
    spec.profile = shape::profile(&model.info.inputs, &spec.profile, job.batch, job.imgsz)?;
    Ok(spec)
}

/// What builds, and for what.
fn identity(library: &Library, gpu: &Gpu, spec: &EngineSpec) -> EngineIdentity {
    let (major, minor) = gpu.compute();
    EngineIdentity {
        tensorrt: library.version().to_string(),
        gpu: gpu.name().to_owned(),
        compute_capability: format!("{major}.{minor}"),
        sm_count: gpu.sms(),
        driver: driver_version().unwrap_or_default(),
        cuda: format!("{}.{}", gpu.driver() / 1000, gpu.driver() % 1000 / 10),
        version_compatible: spec.version_compatible,
        hardware_compatible: spec.hardware_compatible,
    }
}

/// The driver's version: by NVML, else by the kernel module.
fn driver_version() -> Option<String> {
    let path = PathBuf::from("libnvidia-ml.so.1");
    let job = DiscoverJob { protocol: WORKER_PROTOCOL, name: RuntimeName::Nvml, path };
    let by_nvml = discovery::answer(&job).ok().and_then(|answer| answer.version);
    by_nvml.or_else(|| Some(fs::read_to_string("/sys/module/nvidia/version").ok()?.trim().to_owned()))
}

fn plugin_hashes(plugins: &[PathBuf]) -> Result<BTreeMap<String, String>, ForgeError> {
    let hash = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let hash = hash_file(path).map_err(|e| ForgeError::Unsupported(format!("--plugin {}: {e}", path.display())));
        Ok((name, hash?))
    };
    plugins.iter().map(hash).collect()
}

fn plan(spec: &EngineSpec, onnx_bytes: u64) -> Plan {
    Plan { onnx_bytes, workspace: spec.workspace_bytes, level: spec.level, low_memory: spec.low_memory }
}

fn order(
    job: &PrepareJob,
    model: ModelFile,
    recipe: &Recipe,
    arithmetic: crate::arithmetic::Arithmetic,
    float: BTreeSet<String>,
    cache: &Cache,
) -> Result<Order, ForgeError> {
    let spec = recipe.engine.clone();
    let calibration = match (&spec.calibration, &recipe.calibration_sha256) {
        (Some(data), Some(hash)) => {
            let inputs = shape::tuned(&model.info.inputs, &spec.profile);
            let whole =
                (&recipe.onnx_sha256, &recipe.weights, hash, data.method, &recipe.identity.tensorrt, &spec.profile);
            let key = key_of_bytes(&serde_json::to_vec(&whole).map_err(ForgeError::json("a cache key"))?);
            let fit = fit(&model.info, &inputs);
            let kind = kind_for(&job.model.source, &model.info.metadata.names);
            let feed = CalibrationFeed::new(data, kind, inputs, fit)?;
            let cache = cache.folder().join(format!("calibration-{key}.cache"));
            Some(CalibrationOrder { method: data.method, feed, cache, float })
        }
        _ => None,
    };
    Ok(Order {
        model,
        name: job.model.name.clone(),
        spec,
        arithmetic,
        runtime: job.runtime.clone(),
        plugins: job.plugins.clone(),
        threads: job.threads,
        calibration,
        timing: cache.folder().join(timing_name(&recipe.identity)),
    })
}

/// A name for the timings of a device: what was timed on another one says nothing.
fn timing_name(identity: &EngineIdentity) -> String {
    let plain = |text: &str| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
        text.chars().map(plain).collect::<String>()
    };
    format!("timing-{}-{}.cache", plain(&identity.gpu), plain(&identity.tensorrt))
}

/// How images are brought to the input's size, where the declared outputs already tell the head.
pub(crate) fn fit(info: &ModelInfo, inputs: &[TensorSpec]) -> Fit {
    let outputs = shape::tuned(&info.outputs, &[]);
    let size = |input: &TensorSpec| match input.shape[..] {
        [_, _, height, width] => Some([height as u32, width as u32]),
        _ => None,
    };
    let head = Head::choose(HeadChoice::Auto, &outputs, &info.metadata, inputs.first().and_then(size));
    head.map_or(Fit::Letterbox, |head| head.fit())
}

/// Has the build done in a thread and looks after it: signs of life, progress, memory.
fn supervise(
    order: Order,
    tools: &Tools,
    timeout_s: u64,
    expected_s: Option<f64>,
    on_progress: &mut dyn FnMut(BuildProgress),
    beat: &dyn Fn(),
    advice: &[String],
) -> Result<FreshEngine, ForgeError> {
    for text in advice {
        tracing::warn!("{text}");
        on_progress(BuildProgress { doing: text.clone(), done: None, eta_s: None });
    }
    let what = format!("building {} in {}", order.name, order.spec.precision);
    let begun = Instant::now();
    let (sender, receiver) = mpsc::channel();
    let in_thread = tools.clone();
    std::thread::Builder::new()
        .name("forge".into())
        .spawn(move || drop(sender.send(build(order, &in_thread))))
        .map_err(|e| ForgeError::Build(format!("cannot start a thread: {e}")))?;
    let mut watch = Watch::new(&memory_root());
    let mut stopping: Option<(Instant, ForgeError)> = None;
    let mut told: Option<Instant> = None;
    let outcome = loop {
        match receiver.recv_timeout(TICK) {
            Ok(outcome) => break outcome,
            Err(RecvTimeoutError::Disconnected) => break Err(ForgeError::Build("the builder's thread died".into())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        beat();
        match watch.look() {
            Some(Alarm::Warn(text)) => {
                tracing::warn!("{text}");
                on_progress(BuildProgress { doing: text, done: None, eta_s: None });
            }
            Some(Alarm::Abort(text)) if stopping.is_none() => {
                tools.phases.stop();
                stopping = Some((Instant::now(), ForgeError::Memory(text)));
            }
            _ => {}
        }
        if stopping.is_none() && begun.elapsed() > Duration::from_secs(timeout_s) {
            tools.phases.stop();
            stopping = Some((Instant::now(), ForgeError::Timeout(timeout_s)));
        }
        // TensorRT 8 has nobody to ask, and where memory is short every moment counts.
        let patience = if tools.library.family() == Family::V8 { Duration::ZERO } else { GRACE };
        if let Some((_, error)) = stopping.take_if(|(since, _)| since.elapsed() >= patience) {
            return Err(error);
        }
        if told.is_none_or(|then| then.elapsed() >= TELL) {
            told = Some(Instant::now());
            on_progress(progress(&what, tools.phases.now(), begun.elapsed().as_secs_f64(), expected_s));
        }
    };
    let Built { bytes, notes } = match (outcome, stopping) {
        (Err(_), Some((_, error))) => return Err(error),
        (outcome, _) => outcome?,
    };
    Ok(FreshEngine {
        bytes,
        build_s: begun.elapsed().as_secs_f64(),
        notes,
        host_peak_bytes: host_peak(),
        host_available_low_bytes: watch.lowest(),
        device_peak_bytes: Some(tools.budget.peak().max(tools.learning.peak())),
    })
}

fn progress(what: &str, now: Option<(String, f64)>, elapsed_s: f64, expected_s: Option<f64>) -> BuildProgress {
    let by_time = expected_s.filter(|&expected| expected > elapsed_s).map(|expected| elapsed_s / expected);
    match now {
        Some((phase, done)) => BuildProgress {
            doing: format!("{what}: {phase}"),
            done: Some(done),
            eta_s: eta_s(elapsed_s, Some(done), expected_s),
        },
        None => BuildProgress { doing: what.to_owned(), done: by_time, eta_s: eta_s(elapsed_s, None, expected_s) },
    }
}

#[cfg(test)]
mod tests {
    use prony_types::{DType, Dim, Metadata, TensorInfo};

    use super::*;

    #[test]
    fn a_device_has_one_name_for_its_timings() {
        let identity =
            EngineIdentity { gpu: "NVIDIA H200 (SXM)".into(), tensorrt: "8.6.0".into(), ..Default::default() };
        assert_eq!(timing_name(&identity), "timing-nvidia-h200--sxm--8.6.0.cache");
    }

    #[test]
    fn progress_is_by_steps_or_by_time() {
        let by_steps = progress("building x in fp16", Some(("tactics".into(), 0.5)), 10.0, Some(100.0));
        assert_eq!((by_steps.done, by_steps.eta_s), (Some(0.5), Some(10.0)));
        assert_eq!(by_steps.doing, "building x in fp16: tactics");
        let by_time = progress("building x in fp16", None, 25.0, Some(100.0));
        assert_eq!((by_time.done, by_time.eta_s), (Some(0.25), Some(75.0)));
        let late = progress("building x in fp16", None, 125.0, Some(100.0));
        assert_eq!((late.done, late.eta_s), (None, None));
    }

    #[test]
    fn a_stretching_head_is_calibrated_stretched() {
        let tensor = |name: &str, dims: &[u64]| TensorInfo {
            name: name.into(),
            dtype: DType::F32,
            dims: dims.iter().map(|&n| Dim::Fixed(n)).collect(),
        };
        let info = |outputs: Vec<TensorInfo>, names: usize| ModelInfo {
            inputs: vec![tensor("images", &[1, 3, 640, 640])],
            outputs,
            metadata: Metadata { names: (0..names).map(|class| format!("c{class}")).collect(), ..Metadata::default() },
            ..prony_model::ModelFile::builtin(prony_types::SceneKind::Rgb).unwrap().info
        };
        let of = |info: &ModelInfo| fit(info, &shape::tuned(&info.inputs, &[]));
        assert_eq!(of(&info(vec![tensor("o", &[1, 84, 8400])], 80)), Fit::Letterbox);
        assert_eq!(of(&info(vec![tensor("o", &[1, 300, 84])], 80)), Fit::Stretch);
    }

    #[test]
    fn a_plugin_that_is_not_there_is_named() {
        let error = plugin_hashes(&["/no/such.so".into()]).unwrap_err().to_string();
        assert!(error.starts_with("--plugin /no/such.so: "), "{error}");
    }
}
