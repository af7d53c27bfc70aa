//! One build: from a model and a spec to the bytes of an engine, through TensorRT's builder. Everything of TensorRT's lives
//! and dies in the one thread that this runs in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use prony_backend::ModelFile;
use prony_backend::gpu::{Budget, DeviceMemory, Gpu};
use prony_files::Kind;
use prony_nvinfer::{
    Builder, BuilderConfig, Calibration, Calibrator, Driver, Error, ErrorRecorder, Family, Flag, GpuAllocator, Library,
    Logger, Network, OptimizationProfile, ParserLibrary, Pool, ProgressMonitor, Selector, Severity, TimingCache,
    Version,
};
use prony_types::{CalibrationMethod, EngineSpec, ProfileShape, RuntimeName, RuntimeSpec, TacticSources, TensorSpec};

use crate::arithmetic::Arithmetic;
use crate::cache::write_atomic;
use crate::calibration::{CalibrationFeed, Known, Learn, Told, Upload, keep_ranges, read_ranges, without};
use crate::error::ForgeError;
use crate::memory::size;
use crate::progress::Phases;

/// Pools of a build with little memory, where no others were asked for.
const SMALL_WORKSPACE: u64 = 256 << 20;
const SMALL_TACTIC_MEMORY: u64 = 512 << 20;
/// Its optimisation level: nothing is timed that need not be.
const SMALL_LEVEL: u8 = 0;

/// All that a build needs, owned, so that it can be handed to its thread.
pub(crate) struct Order {
    pub(crate) model: ModelFile,
    pub(crate) name: String,
    /// With the profile complete.
    pub(crate) spec: EngineSpec,
    pub(crate) arithmetic: Arithmetic,
    pub(crate) runtime: RuntimeSpec,
    pub(crate) plugins: Vec<PathBuf>,
    pub(crate) threads: Option<u32>,
    pub(crate) calibration: Option<CalibrationOrder>,
    /// The timing cache of this device.
    pub(crate) timing: PathBuf,
}

/// Where ranges for int8 come from.
pub(crate) struct CalibrationOrder {
    pub(crate) method: CalibrationMethod,
    /// Frames to learn them from.
    pub(crate) feed: CalibrationFeed,
    /// Where they are kept.
    pub(crate) cache: PathBuf,
    /// Tensors that stay in float.
    pub(crate) float: BTreeSet<String>,
}

/// What it works with.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) library: Library,
    pub(crate) driver: Driver,
    pub(crate) gpu: Gpu,
    pub(crate) budget: Arc<Budget>,
    /// That of the pass that learns int8 ranges, which is closed when it has.
    pub(crate) learning: Arc<Budget>,
    pub(crate) phases: Arc<Phases>,
}

/// An engine and what was decided on the way.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) bytes: Vec<u8>,
    pub(crate) notes: Vec<String>,
}

/// Builds. Blocks for seconds to an hour.
pub(crate) fn build(mut order: Order, tools: &Tools) -> Result<Built, ForgeError> {
    tools.gpu.bind().map_err(|error| ForgeError::Build(error.to_string()))?;
    let mut notes = Vec::new();
    let calibrator = match order.calibration.take() {
        Some(calibration) => Some(ranges(&order, calibration, tools, &mut notes)?),
        None => None,
    };
    let built = try_build(&order, tools, calibrator, &tools.budget).map_err(|e| explained(e, tools, &tools.budget));
    built.map(|mut built| {
        notes.append(&mut built.notes);
        notes.extend(refusal_note(&tools.budget));
        Built { notes, ..built }
    })
}

/// Ranges for int8: those of an earlier calibration, or learnt in a pass of its own, less those of the tensors that stay
/// in float. TensorRT learns and builds in one go; what it builds then knows nothing of what we take out.
fn ranges(
    order: &Order,
    calibration: CalibrationOrder,
    tools: &Tools,
    notes: &mut Vec<String>,
) -> Result<Calibrating, ForgeError> {
    let CalibrationOrder { method, feed, cache, float } = calibration;
    let (inputs, batch) = (feed.inputs().to_vec(), feed.batch() as i32);
    let known = read_ranges(&cache);
    let (used, all) = match known {
        Some((used, ranges)) => {
            notes.push(format!("int8 ranges from the calibration cache, found on {} frames", used.frames));
            (used, ranges)
        }
        None => {
            let Told { used, ranges, .. } = learn(order, method, feed, tools)?;
            notes.push(format!("int8 ranges from {} frames", used.frames));
            let ranges = ranges.unwrap_or_default();
            keep_ranges(&cache, &used, &ranges)?;
            (used, ranges)
        }
    };
    let warnings = order.spec.calibration.iter().flat_map(|data| used.warnings(data.frames));
    notes.extend(warnings.map(|warning| format!("warning: {warning}")));
    let (ranges, gone) = without(&all, &float);
    if gone > 0 {
        notes.push(format!("int8 up to the last layers; {gone} tensors from there to the outputs stay in float"));
    }
    Ok(Calibrating { method, inputs, from: Box::new(Known { batch, ranges }) })
}

/// Has TensorRT learn ranges, and ends the build when it has.
fn learn(order: &Order, method: CalibrationMethod, feed: CalibrationFeed, tools: &Tools) -> Result<Told, ForgeError> {
    let told = Arc::new(Mutex::new(Told::default()));
    let budget = &tools.learning;
    let inputs = feed.inputs().to_vec();
    let upload = Box::new(OnGpu { gpu: tools.gpu.clone(), budget: Arc::clone(budget), buffers: Vec::new() });
    let close = Arc::clone(budget);
    let done = Box::new(move || close.close());
    let from = Box::new(Learn { feed, upload, told: Arc::clone(&told), done });
    let outcome = try_build(order, tools, Some(Calibrating { method, inputs, from }), budget);
    let told = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if told.ranges.is_some() {
        return Ok(told);
    }
    // TensorRT takes an error for the end of the data and builds on what it has; that is not what was asked for.
    Err(match (told.problem, outcome) {
        (Some(problem), _) => ForgeError::Calibration(problem),
        (None, Err(error)) => explained(error, tools, budget),
        (None, Ok(_)) => ForgeError::Calibration("TensorRT built without asking for a single batch".into()),
    })
}

/// A failed build with what its memory says of it.
fn explained(error: ForgeError, tools: &Tools, budget: &Budget) -> ForgeError {
    match (error, budget.last_refusal()) {
        (ForgeError::Build(text), Some(refusal)) => {
            refused(tools, budget, format!("GPU memory: {refusal}; {text}")) //
        }
        (error, _) => error,
    }
}

/// A build that failed for want of device memory: of the limit's making, or of the device's.
fn refused(tools: &Tools, budget: &Budget, reason: String) -> ForgeError {
    let device = tools.gpu.usage(budget);
    if device.violations.is_empty() {
        return ForgeError::Memory(reason);
    }
    ForgeError::Budget { reason, device: Box::new(device) }
}

fn refusal_note(budget: &Budget) -> Option<String> {
    let count = budget.refusals();
    let last = budget.last_refusal()?;
    let peak = size(budget.peak());
    Some(format!("{count} requests for GPU memory were refused and their tactics left out (last: {last}; peak {peak})"))
}

/// What int8 ranges are taken from in one build.
struct Calibrating {
    method: CalibrationMethod,
    inputs: Vec<TensorSpec>,
    from: Box<dyn Calibration>,
}

fn try_build(
    order: &Order,
    tools: &Tools,
    calibrating: Option<Calibrating>,
    budget: &Arc<Budget>,
) -> Result<Built, ForgeError> {
    let Order { model, name, spec, arithmetic, runtime, plugins, threads, timing, .. } = order;
    let library = &tools.library;
    let logger = logger();
    load_plugins(library, runtime, plugins, &logger)?;
    let mut builder = library.builder(&tools.driver, &logger)?;
    let recorder = ErrorRecorder::new();
    builder.set_error_recorder(&recorder);
    builder.set_allocator(&GpuAllocator::new(budget.clone()));
    has_hardware(&builder, spec, arithmetic)?;
    let mut notes = Vec::new();
    set_threads(&builder, *threads, spec.low_memory)?;
    let network = parse(library, &builder, model, name, runtime, arithmetic.strongly_typed, &logger)?;
    let mut config = builder.config()?;
    configure(&mut config, library.version(), spec, arithmetic, &mut notes)?;
    if let Some(profile) = profile_of(&builder, &spec.profile)? {
        config.add_profile(profile)?;
    }
    if let Some(calibrating) = calibrating {
        calibrate(&builder, &mut config, calibrating)?;
    }
    if library.family() != Family::V8 {
        config.set_progress_monitor(&ProgressMonitor::new(tools.phases.clone()))?;
    }
    let timings = use_timings(&mut config, timing, &mut notes);
    let engine = builder.build(&network, &config).map_err(|error| with_record(error, &recorder))?;
    if let Some((mut timings, earlier)) = timings {
        keep_timings(&mut config, &mut timings, &earlier, timing);
    }
    Ok(Built { bytes: engine.as_bytes().to_vec(), notes })
}

/// What the recorder heard that the log did not say.
fn with_record(error: Error, recorder: &ErrorRecorder) -> ForgeError {
    let text = error.to_string();
    let heard: Vec<String> = recorder.take().into_iter().map(|(_, words)| words).collect();
    let new: Vec<&str> = heard.iter().map(String::as_str).filter(|words| !text.contains(*words)).collect();
    match ForgeError::from(error) {
        ForgeError::Build(_) if !new.is_empty() => ForgeError::Build(format!("{text}; {}", new.join("; "))),
        other => other,
    }
}

fn logger() -> Logger {
    Logger::new(|severity, words| match severity {
        Severity::InternalError | Severity::Error => tracing::error!("TensorRT: {words}"),
        Severity::Warning => tracing::warn!("TensorRT: {words}"),
        Severity::Info => tracing::debug!("TensorRT: {words}"),
        Severity::Verbose => {}
    })
}

fn load_plugins(
    library: &Library,
    runtime: &RuntimeSpec,
    plugins: &[PathBuf],
    logger: &Logger,
) -> Result<(), ForgeError> {
    if let Some(own) = runtime.companions.get(&RuntimeName::NvinferPlugin) {
        library.init_plugins(own, logger)?;
    }
    plugins.iter().try_for_each(|plugin| library.load_plugin(plugin).map_err(ForgeError::from))
}

/// A precision or a core that the device has not is not built as something else.
fn has_hardware(builder: &Builder, spec: &EngineSpec, arithmetic: &Arithmetic) -> Result<(), ForgeError> {
    let asks = |flag| arithmetic.flags.contains(&(flag, true));
    for (flag, has, name) in
        [(Flag::Fp16, builder.has_fast_fp16(), "fp16"), (Flag::Int8, builder.has_fast_int8(), "int8")]
    {
        if asks(flag) && has == Some(false) {
            return Err(ForgeError::Unsupported(format!("this GPU has no fast {name}, says TensorRT; use fp32")));
        }
    }
    let Some(core) = spec.dla_core else { return Ok(()) };
    let cores = builder.dla_cores();
    if i64::from(core) >= i64::from(cores) {
        let text = match cores {
            ..=0 => format!("--dla-core {core}: this device has no DLA; leave the flag out"),
            n => format!("--dla-core {core}: this device has {n} DLA cores, numbered from 0"),
        };
        return Err(ForgeError::Unsupported(text));
    }
    match asks(Flag::Fp16) || asks(Flag::Int8) || arithmetic.strongly_typed {
        true => Ok(()),
        false => {
            Err(ForgeError::Unsupported("a DLA computes in fp16 and int8 only; use --precision fp16 or int8".into()))
        }
    }
}

/// All CPUs, unless told otherwise; with little memory one, because every thread holds its share.
fn set_threads(builder: &Builder, asked: Option<u32>, low_memory: bool) -> Result<(), ForgeError> {
    let here = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let threads = asked.unwrap_or(if low_memory { 1 } else { here });
    match builder.set_max_threads(i32::try_from(threads).unwrap_or(i32::MAX)) {
        Err(error) if asked.is_some() => Err(error.into()),
        _ => Ok(()),
    }
}

fn parse(
    library: &Library,
    builder: &Builder,
    model: &ModelFile,
    name: &str,
    runtime: &RuntimeSpec,
    strongly_typed: bool,
    logger: &Logger,
) -> Result<Network, ForgeError> {
    let file = runtime.companions.get(&RuntimeName::Nvonnxparser).ok_or_else(|| {
        let beside = runtime.library.display();
        ForgeError::Unsupported(format!(
            "TensorRT's ONNX parser (libnvonnxparser) was not found for {beside}; install it, or name it with \
             --library nvonnxparser=PATH"
        ))
    })?;
    let network = builder.network(strongly_typed)?;
    let mut parser = ParserLibrary::open(file, library).and_then(|library| library.parser(&network, logger))?;
    // A file is read by the parser itself, which finds weights beside it.
    let parsed = match &model.path {
        Some(path) => parser.parse_file(path),
        None => parser.parse_bytes(&model.bytes, None),
    };
    parsed.map_err(|error| match ForgeError::from(error) {
        ForgeError::Model(text) => ForgeError::Model(format!("{name}: {text}")),
        other => other,
    })?;
    Ok(network)
}

/// Everything but profiles, calibration and timings.
fn configure(
    config: &mut BuilderConfig,
    version: Version,
    spec: &EngineSpec,
    arithmetic: &Arithmetic,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    for &(flag, on) in &arithmetic.flags {
        config.set_flag(flag, on)?;
    }
    let asked = [
        (spec.version_compatible, Flag::VersionCompatible),
        (spec.refit, Flag::Refit),
        (spec.sparse, Flag::SparseWeights),
        (spec.dla_core.is_some(), Flag::GpuFallback),
    ];
    for (_, flag) in asked.into_iter().filter(|(asked, _)| *asked) {
        config.set_flag(flag, true)?;
    }
    if spec.hardware_compatible {
        config.set_hardware_compatibility(true)?;
    }
    if let Some(core) = spec.dla_core {
        config.set_dla(i32::try_from(core).unwrap_or(i32::MAX))?;
    }
    // The inspector can prove a precision only of an engine that was built to tell.
    config.set_detailed_profiling(true)?;
    set_pools(config, spec)?;
    match (spec.level, spec.low_memory) {
        (Some(level), _) => config.set_optimization_level(i32::from(level))?,
        (None, true) => match config.set_optimization_level(i32::from(SMALL_LEVEL)) {
            Ok(()) => notes.push(format!("optimisation level {SMALL_LEVEL}, for little memory")),
            Err(error) => notes.push(format!("the optimisation level stayed as it is: {error}")),
        },
        (None, false) => {}
    }
    let own_only = spec.low_memory || spec.tactic_sources == TacticSources::None;
    if own_only && !config.set_tactic_sources(own_tactics(version))? {
        let what = "to leave external tactics out (--tactic-sources none)".to_owned();
        return Err(Error::Refused { what, log: Vec::new() });
    }
    Ok(())
}

fn set_pools(config: &mut BuilderConfig, spec: &EngineSpec) -> Result<(), Error> {
    let workspace = spec.workspace_bytes.or(spec.low_memory.then_some(SMALL_WORKSPACE));
    if let Some(bytes) = workspace {
        config.set_memory_pool(Pool::Workspace, bytes)?;
    }
    match spec.tactic_memory_bytes {
        Some(bytes) => config.set_memory_pool(Pool::TacticDram, bytes),
        // Not every version has that pool; the workspace is small all the same.
        None if spec.low_memory => config.set_memory_pool(Pool::TacticDram, SMALL_TACTIC_MEMORY).or(Ok(())),
        None => Ok(()),
    }
}

/// TensorRT's own kernels without cuBLAS and cuDNN, as that version counts them.
fn own_tactics(version: Version) -> u32 {
    let (edge_mask, just_in_time) = if version.major >= 11 { (1, 1 << 1) } else { (1 << 3, 1 << 4) };
    match (version.major, version.minor) {
        (..=7, _) | (8, ..=3) => 0,
        (8, 4) => edge_mask,
        _ => edge_mask | just_in_time,
    }
}

fn profile_of(builder: &Builder, shapes: &[ProfileShape]) -> Result<Option<OptimizationProfile>, Error> {
    if shapes.is_empty() {
        return Ok(None);
    }
    let mut profile = builder.profile()?;
    for shape in shapes {
        for (selector, sizes) in [(Selector::Min, &shape.min), (Selector::Opt, &shape.opt), (Selector::Max, &shape.max)]
        {
            let sizes: Vec<i64> = sizes.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
            profile.set_shape(&shape.input, selector, &sizes)?;
        }
    }
    Ok(Some(profile))
}

fn calibrate(builder: &Builder, config: &mut BuilderConfig, calibrating: Calibrating) -> Result<(), Error> {
    let Calibrating { method, inputs, from } = calibrating;
    let exact = |input: &TensorSpec| {
        let shape: Vec<u64> = input.shape.iter().map(|&n| n as u64).collect();
        ProfileShape { input: input.name.clone(), min: shape.clone(), opt: shape.clone(), max: shape }
    };
    let shapes: Vec<ProfileShape> = inputs.iter().map(exact).collect();
    if let Some(profile) = profile_of(builder, &shapes)? {
        config.set_calibration_profile(&profile)?;
    }
    config.set_calibrator(&match method {
        CalibrationMethod::MinMax => Calibrator::minmax(from),
        // The others are refused before anything is built: see `arithmetic`.
        _ => Calibrator::entropy(from),
    })
}

/// One buffer an input on the GPU, made at the first batch.
struct OnGpu {
    gpu: Gpu,
    budget: Arc<Budget>,
    buffers: Vec<(usize, DeviceMemory)>,
}

impl Upload for OnGpu {
    fn upload(&mut self, input: usize, bytes: &[u8]) -> Result<*mut std::ffi::c_void, String> {
        let known = self.buffers.iter().position(|(of, buffer)| *of == input && buffer.bytes() >= bytes.len());
        let index = match known {
            Some(index) => index,
            None => {
                self.buffers.push((input, self.gpu.allocate_within(&self.budget, bytes.len())?));
                self.buffers.len() - 1
            }
        };
        let (_, buffer) = &mut self.buffers[index];
        buffer.fill(bytes)?;
        Ok(buffer.pointer())
    }
}

/// Timings of earlier builds, and the file that they are from; without them everything is only slower.
fn use_timings(config: &mut BuilderConfig, path: &Path, notes: &mut Vec<String>) -> Option<(TimingCache, Vec<u8>)> {
    let earlier = prony_files::read(path, Kind::Cache).unwrap_or_default();
    let mut attempt = |bytes: &[u8]| {
        let timings = config.timing_cache(bytes)?;
        config.set_timing_cache(&timings, false).map(|()| timings)
    };
    match attempt(&earlier) {
        Ok(timings) => Some((timings, earlier)),
        Err(error) if !earlier.is_empty() => {
            notes.push(format!("the timing cache {} was of no use and begun anew: {error}", path.display()));
            attempt(&[]).ok().map(|timings| (timings, earlier))
        }
        Err(error) => {
            notes.push(format!("built without a timing cache: {error}"));
            None
        }
    }
}

/// Writes timings to their file, with what another build added to it meanwhile. Of two that write at the same moment the
/// last one wins: what is lost is timed again.
fn keep_timings(config: &mut BuilderConfig, timings: &mut TimingCache, earlier: &[u8], path: &Path) {
    if let Some(now) = prony_files::read(path, Kind::Cache).ok().filter(|now| now != earlier) {
        let added = config.timing_cache(&now).and_then(|added| timings.combine(&added, false));
        if let Err(error) = added {
            tracing::warn!("what another build timed meanwhile is lost: {error}");
        }
    }
    let kept = timings.serialize().map_err(|e| e.to_string());
    if let Err(error) = kept.and_then(|bytes| write_atomic(path, bytes.as_bytes()).map_err(|e| e.to_string())) {
        tracing::warn!("the timing cache {} was not written: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tactics_of_its_own_are_counted_as_each_version_does() {
        let mask = |version: &str| own_tactics(version.parse().unwrap());
        assert_eq!(["8.2.1", "8.4.3", "8.5.3", "8.6.0", "10.3.0", "11.1.0"].map(mask), [0, 8, 24, 24, 24, 3]);
    }

    #[test]
    fn a_failure_is_whose_fault_it_is() {
        use prony_types::FailureKind;
        let version: Version = "8.6.0".parse().unwrap();
        let cases = [
            (Error::Parse { errors: Vec::new() }, FailureKind::Model),
            (Error::Unsupported { what: "bf16".into(), version }, FailureKind::Unsupported),
            (Error::Driver { reason: "none".into() }, FailureKind::Unsupported),
            (Error::Refused { what: "to build".into(), log: Vec::new() }, FailureKind::Runtime),
        ];
        for (error, kind) in cases {
            assert_eq!(ForgeError::from(error).kind(), kind);
        }
    }
}
