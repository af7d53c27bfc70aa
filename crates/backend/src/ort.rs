//! ONNX Runtime, whichever is installed: its CPU, CUDA, TensorRT and OpenVINO providers.
//!
//! ONNX Runtime would rather run on the CPU than fail, and not say so. Here a provider that cannot be had is an error, and
//! so is a node that would run elsewhere, unless that was allowed; where every node ran is counted afterwards.

mod cuda;
mod host;
mod layers;
mod library;
mod options;
mod placement;
mod profile;
mod raw;

use std::fs;
use std::path::Path;

use ort::ep::{self, ExecutionProvider, ExecutionProviderDispatch};
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{RunOptions, Session as OrtSession};
use prony_files::Kind;
use prony_types::{
    BackendName, BackendRecord, Dim, ModelInfo, Precision, ProviderRecord, ProviderSpec, RuntimeSpec, TensorSpec,
};

use self::cuda::CudaSession;
use self::host::{HostSession, Parts};
use self::options::Pair;
use self::raw::Model;
use crate::precision::as_it_is;
use crate::session::decide_inputs;
use crate::{Backend, BackendError, Proof, Session, SessionSpec, Unsupported, precision_of};

/// What a process must be started with so that no library on NVIDIA's computes in TF32.
pub const NO_TF32: (&str, &str) = ("NVIDIA_TF32_OVERRIDE", "0");

/// Calls in the profiling pass; the first one warms up and its time does not count.
const PROFILED_CALLS: usize = 3;

/// A backend of the family.
pub(crate) struct Ort(pub(crate) BackendName);

impl Ort {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn on_gpu(&self) -> bool {
        matches!(self.0, BackendName::OrtCuda | BackendName::OrtTensorrt)
    }

    fn unsupported(&self, what: impl Into<String>) -> BackendError {
        BackendError::Unsupported { backend: self.name(), what: what.into() }
    }

    fn load_error(&self, reason: impl std::fmt::Display) -> BackendError {
        BackendError::Load { backend: self.name(), reason: one_line(&reason.to_string()) }
    }

    /// Refuses what can be refused before anything is loaded.
    fn inputs(&self, spec: &SessionSpec<'_>) -> Result<Vec<TensorSpec>, BackendError> {
        self.supports(spec.precision, &spec.model.info, &spec.provider)
            .map_err(|what| self.unsupported(what.to_string()))?;
        if !self.on_gpu() && spec.device > 0 {
            return Err(self.unsupported(format!("there is no device {}; the CPU is device 0", spec.device)));
        }
        decide_inputs(spec)
    }

    fn session(
        &self,
        spec: &SessionSpec<'_>,
        runtime: &RuntimeSpec,
        inputs: &[TensorSpec],
        stream: Option<*mut ()>,
        adjust: impl FnOnce(SessionBuilder) -> Result<SessionBuilder, String>,
    ) -> Result<OrtSession, BackendError> {
        // That the library or its provider does not start is not the model's fault.
        let environment = library::environment(runtime).map_err(|e| self.unsupported(one_line(&e)))?;
        let (provider, is_there) = self.provider(spec, inputs, stream);
        if !is_there {
            let (name, version) = (options::provider(self.0), &runtime.version);
            let what = format!("provider {name} is not in this build: {} ({version})", runtime.library.display());
            return Err(self.unsupported(what));
        }
        let build = || -> Result<SessionBuilder, String> {
            let text = |error: ort::Error<SessionBuilder>| error.to_string();
            let mut builder = OrtSession::builder(&environment).map_err(|e| e.to_string())?;
            builder = builder.with_intra_threads(spec.threads.max(1) as usize).map_err(text)?;
            builder = builder.with_inter_threads(1).map_err(text)?;
            builder = builder.with_optimization_level(GraphOptimizationLevel::All).map_err(text)?;
            for (name, size) in named_axes(&spec.model.info, inputs) {
                builder = builder.with_dimension_override(name, size).map_err(text)?;
            }
            if let Some(provider) = provider {
                builder = builder.with_execution_providers([provider.error_on_failure()]).map_err(text)?;
                if !spec.provider.allow_fallback {
                    builder = builder.with_disable_cpu_fallback().map_err(text)?;
                }
            }
            adjust(builder)
        };
        let mut builder = build().map_err(|e| self.unsupported(one_line(&e)))?;
        // TensorRT's provider names the engines that it keeps after the name of the file.
        let by_name = self.0 == BackendName::OrtTensorrt;
        let path = if by_name { spec.model.path.clone() } else { spec.model.load_path() };
        let session = match &path {
            // By path, so that weights in a separate file beside it are found.
            Some(path) => builder.commit_from_file(path),
            None => builder.commit_from_memory(&spec.model.bytes),
        };
        session.map_err(|error| self.explain(&spec.model.with_its_own_path(&error.to_string())))
    }

    /// A refused fallback in words that say what to do.
    fn explain(&self, error: &str) -> BackendError {
        if error.contains("fallback to CPU EP has been explicitly disabled") {
            return self.unsupported(format!(
                "fell back: some nodes of the graph would run on the CPU instead of {}; --allow-fallback measures it \
                 all the same and marks it `fell-back`",
                options::provider(self.0)
            ));
        }
        self.load_error(error)
    }

    /// The provider with its options, and whether this build has it. The CPU's needs no registering.
    fn provider(
        &self,
        spec: &SessionSpec<'_>,
        inputs: &[TensorSpec],
        stream: Option<*mut ()>,
    ) -> (Option<ExecutionProviderDispatch>, bool) {
        let pairs = self.options(spec, inputs);
        let stream = stream.map(|stream| stream as usize);
        match self.0 {
            BackendName::OrtCuda => (Some(told(ep::CUDA::default(), &pairs, stream)), has::<ep::CUDA>()),
            BackendName::OrtTensorrt => (Some(told(ep::TensorRT::default(), &pairs, stream)), has::<ep::TensorRT>()),
            BackendName::OrtOpenvino => (Some(told(ep::OpenVINO::default(), &pairs, None)), has::<ep::OpenVINO>()),
            _ => (None, true),
        }
    }

    fn options(&self, spec: &SessionSpec<'_>, inputs: &[TensorSpec]) -> Vec<Pair> {
        let (precision, provider) = (spec.precision, &spec.provider);
        match self.0 {
            BackendName::OrtCuda => {
                let version = spec.runtime.as_ref().map(|runtime| runtime.version.as_str()).unwrap_or_default();
                options::cuda(spec.device, precision, provider, version)
            }
            BackendName::OrtTensorrt => {
                let free = spec.model.info.inputs.iter().any(|input| !input.dims.iter().all(is_fixed));
                options::tensorrt(spec.device, precision, provider, inputs, free)
            }
            BackendName::OrtOpenvino => options::openvino(spec.threads, precision, provider),
            _ => Vec::new(),
        }
    }

    fn record(&self, spec: &SessionSpec<'_>, runtime: &RuntimeSpec, inputs: &[TensorSpec]) -> BackendRecord {
        let mut settings: Vec<String> =
            self.options(spec, inputs).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        settings.push("all graph optimisations".into());
        if self.on_gpu() {
            settings.push("the host spins while it waits for the GPU".into());
        } else {
            settings.push("threads spin between operators, as the library does by itself".into());
        }
        BackendRecord {
            name: self.name().into(),
            version: Some(runtime.version.clone()),
            library: Some(runtime.library.display().to_string()),
            provider: Some(ProviderRecord { requested: options::provider(self.0).into(), actual: None }),
            device: Some("CPU".into()),
            threads: Some(spec.threads.max(1)),
            settings,
            ..BackendRecord::default()
        }
    }

    /// What is really computed, as far as the file and the options decide it.
    fn executed(&self, spec: &SessionSpec<'_>) -> String {
        let file = precision_of(&spec.model.info);
        match (self.0, spec.precision) {
            (BackendName::OrtCuda | BackendName::OrtTensorrt, Precision::Tf32) => "fp32 with TF32 products".into(),
            (BackendName::OrtTensorrt, Precision::Fp32) if !tf32_is_off() => "fp32, TF32 products allowed".into(),
            (BackendName::OrtTensorrt, Precision::Fp16 | Precision::Bf16 | Precision::Int8)
                if file == Precision::Fp32 =>
            {
                format!("{} where TensorRT chose it", spec.precision)
            }
            _ => file.to_string(),
        }
    }

    fn start(
        &self,
        spec: &SessionSpec<'_>,
        adjust: impl FnOnce(SessionBuilder) -> Result<SessionBuilder, String>,
    ) -> Result<Opened, BackendError> {
        let inputs = self.inputs(spec)?;
        let Some(runtime) = &spec.runtime else {
            return Err(self.unsupported("no ONNX Runtime was named; run `prony runtime install onnxruntime`"));
        };
        for folder in spec.provider.trt_engine_cache.iter().chain(&spec.provider.trt_timing_cache) {
            // Where it cannot be made, the provider says so better than we can.
            let _ = fs::create_dir_all(folder);
        }
        let device = if self.on_gpu() { Some(self.gpu(spec.device)?) } else { None };
        let stream = device.as_ref().map(|device| device.stream_pointer());
        let session = self.session(spec, runtime, &inputs, stream, adjust)?;
        let mut run_options = RunOptions::new().map_err(|e| self.load_error(e))?;
        if self.on_gpu() {
            // The stream is ours, and so is the one synchronisation a frame.
            run_options.disable_device_sync().map_err(|e| self.load_error(e))?;
        }
        let info = &spec.model.info;
        let input_names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let output_names: Vec<&str> = info.outputs.iter().map(|output| output.name.as_str()).collect();
        let model = Model::new(session, run_options, &input_names, &output_names).map_err(|e| self.load_error(e))?;
        let mut record = self.record(spec, runtime, &inputs);
        if let Some(device) = &device {
            record.device = Some(device.name().to_owned());
        }
        let parts = Parts {
            backend: self.name(),
            model,
            specs: inputs,
            outputs: info.outputs.clone(),
            slots: spec.slots,
            record,
            executed: self.executed(spec),
        };
        Ok(match device {
            Some(device) => Opened::Cuda(Box::new(CudaSession::new(parts, device)?)),
            None => Opened::Host(Box::new(HostSession::new(parts)?)),
        })
    }

    fn gpu(&self, number: u32) -> Result<cuda::Device, BackendError> {
        cuda::Device::open(number).map_err(|what| self.unsupported(what.to_string()))
    }
}

/// A session in either kind of memory.
enum Opened {
    Host(Box<HostSession>),
    Cuda(Box<CudaSession>),
}

impl Opened {
    fn model(&self) -> &Model {
        match self {
            Opened::Host(session) => session.model(),
            Opened::Cuda(session) => session.model(),
        }
    }

    fn session(&mut self) -> &mut dyn Session {
        match self {
            Opened::Host(session) => &mut **session,
            Opened::Cuda(session) => &mut **session,
        }
    }

    fn boxed(self) -> Box<dyn Session> {
        match self {
            Opened::Host(session) => session,
            Opened::Cuda(session) => session,
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has<P: ExecutionProvider>() -> bool {
    P::is_available().unwrap_or(false)
}

/// A provider with its options, and our stream.
fn told<P>(provider: P, pairs: &[Pair], stream: Option<usize>) -> ExecutionProviderDispatch
where
    P: ep::ArbitrarilyConfigurableExecutionProvider + Into<ExecutionProviderDispatch>,
{
    let provider = pairs.iter().fold(provider, |provider, (name, value)| provider.with_arbitrary_config(name, value));
    let provider = match stream {
        Some(stream) => provider
            .with_arbitrary_config("has_user_compute_stream", "1")
            .with_arbitrary_config("user_compute_stream", stream),
        None => provider,
    };
    provider.into()
}

/// TensorRT computes fp32 with TF32 products unless the driver forbids it; a worker is started so that it does.
fn tf32_is_off() -> bool {
    std::env::var_os(NO_TF32.0).is_some_and(|value| value == NO_TF32.1)
}

fn is_fixed(dim: &Dim) -> bool {
    matches!(dim, Dim::Fixed(_))
}

/// Names of free axes with the sizes that they get.
fn named_axes(info: &ModelInfo, inputs: &[TensorSpec]) -> Vec<(String, i64)> {
    let mut axes: Vec<(String, i64)> = Vec::new();
    for (declared, decided) in info.inputs.iter().zip(inputs) {
        for (dim, &size) in declared.dims.iter().zip(&decided.shape) {
            if let Dim::Named(name) = dim
                && !name.is_empty()
                && !axes.iter().any(|(known, _)| known == name)
            {
                axes.push((name.clone(), size as i64));
            }
        }
    }
    axes
}

impl Backend for Ort {
    fn name(&self) -> BackendName {
        self.0
    }

    fn supports(&self, precision: Precision, model: &ModelInfo, provider: &ProviderSpec) -> Result<(), Unsupported> {
        let fp32_file = precision_of(model) == Precision::Fp32;
        match (self.0, precision) {
            (BackendName::OrtCuda | BackendName::OrtTensorrt, Precision::Tf32) if fp32_file => Ok(()),
            // TensorRT chooses the arithmetic when it builds.
            (BackendName::OrtTensorrt, Precision::Fp16 | Precision::Bf16) if fp32_file => Ok(()),
            (BackendName::OrtTensorrt, Precision::Int8) if fp32_file && provider.trt_int8_table.is_some() => Ok(()),
            (BackendName::OrtTensorrt, Precision::Int8) if fp32_file => Err(Unsupported::NoRanges),
            (BackendName::OrtOpenvino, Precision::Fp16) if fp32_file => Ok(()),
            _ => as_it_is(self.0.name(), precision, model),
        }
    }

    fn open(&self, spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError> {
        self.start(spec, Ok).map(Opened::boxed)
    }

    fn proof(&self, spec: &SessionSpec<'_>, fill: &mut dyn FnMut(&mut dyn Session)) -> Proof {
        // What TensorRT and OpenVINO compute inside of one node, the profile does not tell; and fp32 needs no proof.
        let tells = matches!(self.0, BackendName::OrtCpu | BackendName::OrtCuda);
        let narrow = tells && precision_of(&spec.model.info) != Precision::Fp32;
        match self.profile(spec, fill) {
            Ok(profile) => {
                let placement = placement::count(&profile, options::provider(self.0)).map(Some);
                let layers = if narrow { layers::count(&profile) } else { Ok(None) };
                Proof {
                    placement: placement.map_err(|reason| self.failed(reason)),
                    layers: layers.map_err(|reason| self.failed(reason)),
                }
            }
            Err(error) => {
                let layers = if narrow { Err(self.failed(error.to_string())) } else { Ok(None) };
                Proof { placement: Err(error), layers }
            }
        }
    }
}

impl Ort {
    fn failed(&self, reason: String) -> BackendError {
        BackendError::Run { backend: self.name(), reason }
    }

    /// What ONNX Runtime wrote about every node of a few calls, in a session of its own.
    fn profile(&self, spec: &SessionSpec<'_>, fill: &mut dyn FnMut(&mut dyn Session)) -> Result<String, BackendError> {
        let folder = spec.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let folder = folder.join(format!("profile-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|e| self.failed(format!("cannot make {}: {e}", folder.display())))?;
        let mut profiled = || -> Result<String, BackendError> {
            let profile = folder.join("nodes");
            let spec = SessionSpec { slots: 1, ..spec.clone() };
            let mut opened =
                self.start(&spec, |builder| builder.with_profiling(&profile).map_err(|e| e.to_string()))?;
            for _ in 0..PROFILED_CALLS {
                let session = opened.session();
                fill(session);
                session.run(0)?;
            }
            let file = opened.model().end_profile().map_err(|reason| self.failed(reason))?;
            prony_files::read_text(Path::new(&file), Kind::Log).map_err(|e| self.failed(e.to_string()))
        };
        let text = profiled();
        let _ = fs::remove_dir_all(&folder);
        text
    }
}
