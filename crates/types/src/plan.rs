//! What was asked: the cells, the input, the budget.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ArtifactSpec, EngineSpec, EvaluationSpec, Resident, RewriteSpec};

/// A name that is not one of the known ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What kind of thing was named, e.g. `backend`.
    pub what: &'static str,
    /// The name that was given.
    pub name: String,
    /// The names that would have been understood.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}`; known: {}", self.what, self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// Declares a closed vocabulary: the enum, its words, `Display`, `FromStr` and serde by word.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word used on the command line and in reports.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(s: &str) -> Result<$name, UnknownName> {
                $name::ALL.iter().copied().find(|v| v.name() == s).ok_or_else(|| UnknownName {
                    what: $what,
                    name: s.to_owned(),
                    known: $name::ALL.iter().map(|v| v.name()).collect(),
                })
            }
        }
    };
}
pub(crate) use vocabulary;

vocabulary! {
    /// What executes a model.
    BackendName, "backend" {
        /// The embedded engine: always there.
        Rten = "rten",
        /// ONNX Runtime on the CPU.
        OrtCpu = "ort-cpu",
        /// ONNX Runtime with its CUDA provider.
        OrtCuda = "ort-cuda",
        /// ONNX Runtime with its TensorRT provider.
        OrtTensorrt = "ort-tensorrt",
        /// ONNX Runtime with its OpenVINO provider.
        OrtOpenvino = "ort-openvino",
        /// OpenVINO through its own library.
        Openvino = "openvino",
        /// TensorRT through its own library.
        Tensorrt = "tensorrt",
        /// TensorRT's own benchmark, as a program.
        Trtexec = "trtexec",
    }
}

impl BackendName {
    /// Whether it executes on an NVIDIA GPU.
    pub const fn on_gpu(self) -> bool {
        matches!(self, BackendName::OrtCuda | BackendName::OrtTensorrt | BackendName::Tensorrt | BackendName::Trtexec)
    }

    /// Whether what it runs is an engine, not a graph.
    pub const fn runs_engines(self) -> bool {
        matches!(self, BackendName::Tensorrt | BackendName::Trtexec)
    }
}

vocabulary! {
    /// Something on the machine that a backend, a source or a person may need.
    RuntimeName, "runtime" {
        /// `libonnxruntime`.
        Onnxruntime = "onnxruntime",
        /// `libopenvino_c`.
        Openvino = "openvino",
        /// `libnvinfer`: TensorRT.
        Nvinfer = "nvinfer",
        /// `libnvonnxparser`: TensorRT's reader of ONNX files.
        Nvonnxparser = "nvonnxparser",
        /// `libnvinfer_plugin`.
        NvinferPlugin = "nvinfer-plugin",
        /// `libnvinfer_lean`: runs version-compatible engines, builds none.
        NvinferLean = "nvinfer-lean",
        /// TensorRT's own benchmark.
        Trtexec = "trtexec",
        /// `libcuda`: the driver.
        Cuda = "cuda",
        /// `libcudart`: the CUDA toolkit.
        Cudart = "cudart",
        /// `libcudnn`.
        Cudnn = "cudnn",
        /// `libnvidia-ml`: the GPU's sensors.
        Nvml = "nvml",
        /// The video decoder.
        Ffmpeg = "ffmpeg",
        /// The camera pipelines of JetPack.
        Gstreamer = "gstreamer",
    }
}

vocabulary! {
    /// How ONNX Runtime's CUDA arena grows.
    ArenaGrowth, "arena growth" {
        /// By powers of two, the library's own choice.
        PowerOfTwo = "power-of-two",
        /// By what was asked for.
        AsRequested = "as-requested",
    }
}

/// The library that a cell is to be executed with, decided before anything runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeSpec {
    /// Its file.
    pub library: PathBuf,
    /// Its version.
    pub version: String,
    /// Folders with libraries that it needs and that the loader may not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<PathBuf>,
    /// Libraries that belong to it: TensorRT's parser and plugins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub companions: BTreeMap<RuntimeName, PathBuf>,
}

impl RuntimeSpec {
    /// A library that the loader can complete by itself.
    pub fn new(library: impl Into<PathBuf>, version: impl Into<String>) -> RuntimeSpec {
        RuntimeSpec {
            library: library.into(),
            version: version.into(),
            search: Vec::new(),
            companions: BTreeMap::new(),
        }
    }
}

/// What a backend's provider is told beyond the model; all of it optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderSpec {
    /// Nodes may run elsewhere than asked; then the verdict is `fell-back`.
    pub allow_fallback: bool,
    /// Most device memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_mem_limit_bytes: Option<u64>,
    /// How the CUDA arena grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arena: Option<ArenaGrowth>,
    /// TensorRT's scratch memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trt_workspace_bytes: Option<u64>,
    /// Folder of TensorRT engines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trt_engine_cache: Option<PathBuf>,
    /// Folder of TensorRT's timing cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trt_timing_cache: Option<PathBuf>,
    /// Smallest, usual and largest shapes, as `name:1x3x640x640`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trt_profile: Option<[String; 3]>,
    /// Calibration table for int8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trt_int8_table: Option<PathBuf>,
    /// Plugin libraries of the user's own for TensorRT.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trt_plugins: Vec<PathBuf>,
    /// SHA-256 of each of them, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trt_plugin_sha256: Vec<String>,
    /// Longest time that an engine may take to build; `None` for [`crate::BUILD_TIMEOUT_S`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trt_build_timeout_s: Option<u64>,
    /// Tries an engine although it was built for something else.
    pub force_engine: bool,
    /// The host sleeps while it waits for the GPU instead of spinning.
    pub blocking_wait: bool,
    /// OpenVINO's name of the device, e.g. `CPU`, `GPU.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openvino_device: Option<String>,
}

vocabulary! {
    /// Arithmetic that was asked for.
    Precision, "precision" {
        /// 32-bit float, TF32 off.
        Fp32 = "fp32",
        /// 32-bit float with TF32 products.
        Tf32 = "tf32",
        /// 16-bit float.
        Fp16 = "fp16",
        /// bfloat16.
        Bf16 = "bf16",
        /// 8-bit integer.
        Int8 = "int8",
        /// 8-bit float.
        Fp8 = "fp8",
        /// 4-bit float in blocks.
        Nvfp4 = "nvfp4",
        /// Whatever the file brings.
        Native = "native",
    }
}

vocabulary! {
    /// Which of the built-in worlds.
    SceneKind, "scene kind" {
        /// Colour images.
        Rgb = "rgb",
        /// 16-bit heat images.
        Thermal = "thermal",
    }
}

vocabulary! {
    /// How outputs become boxes.
    HeadChoice, "head" {
        /// From shapes and metadata.
        Auto = "auto",
        /// `[N,4+nc,A]` or its transpose: v8, v9, 11, 12.
        Dense = "dense",
        /// `[N,A,5+nc]` with objectness: v5.
        Objectness = "objectness",
        /// `[N,64+nc,A]`: distances still as distributions.
        Dfl = "dfl",
        /// `[N,300,6]`: v10, 26.
        EndToEnd = "end2end",
        /// `num_dets`, boxes, scores, classes.
        EfficientNms = "efficient-nms",
        /// `[N,300,4+nc]` with boxes from 0 to 1.
        RtDetr = "rtdetr",
        /// Not a detector: nothing before, nothing after.
        None = "none",
    }
}

/// Where a model's bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelSource {
    /// One of the detectors inside the binary.
    Builtin(SceneKind),
    /// A file.
    File(PathBuf),
}

impl ModelSource {
    /// Whether it is an engine, by the name of its file.
    pub fn is_engine(&self) -> bool {
        matches!(self, ModelSource::File(path) if is_engine_name(path))
    }
}

/// How files of TensorRT engines end, in lower case.
pub const ENGINE_ENDINGS: [&str; 3] = ["engine", "plan", "trt"];

/// Whether a file is a TensorRT engine by its name.
pub fn is_engine_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENGINE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// A model of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// What reports call it: `builtin-rgb`, or the file's stem.
    pub name: String,
    /// Where it is.
    pub source: ModelSource,
    /// Identity of the file there, in hex.
    pub sha256: String,
    /// The checkpoint that the file was made of, where that is what the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginSpec>,
}

impl ModelSpec {
    /// A model as it was given.
    pub fn new(name: impl Into<String>, source: ModelSource, sha256: impl Into<String>) -> ModelSpec {
        ModelSpec { name: name.into(), source, sha256: sha256.into(), origin: None }
    }

    /// Identity of what the user gave.
    pub fn identity(&self) -> &str {
        self.origin.as_ref().map_or(&self.sha256, |origin| &origin.sha256)
    }
}

/// What a model's file was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginSpec {
    /// The checkpoint.
    pub path: PathBuf,
    /// Its identity, in hex.
    pub sha256: String,
    /// Whether the file was there already.
    pub from_cache: bool,
}

/// One model x backend x precision at one input size, batch and device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSpec {
    /// `model:backend:precision`, plus a mark where that is ambiguous.
    pub id: String,
    /// The model.
    pub model: ModelSpec,
    /// What is to execute it.
    pub backend: BackendName,
    /// Arithmetic asked for.
    pub precision: Precision,
    /// Height and width of the network's input. `None` for models that are not detectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imgsz: Option<[u32; 2]>,
    /// How its outputs become boxes.
    pub head: HeadChoice,
    /// Frames a call.
    pub batch: u32,
    /// Index of the device; 0 is the first.
    pub device: u32,
    /// CPU threads; `None` lets the backend choose and record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// The library that is to execute it; `None` for the embedded engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeSpec>,
    /// The library that builds its engine, where that is another than the one that executes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builder: Option<RuntimeSpec>,
    /// What its provider is told.
    #[serde(default)]
    pub provider: ProviderSpec,
    /// How the graph is rewritten first, where the file does not bring the precision that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<RewriteSpec>,
    /// The engine to build from the model, where the backend runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineSpec>,
    /// What really runs, where that is not the model's own file; known once it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactSpec>,
    /// Whether the user asked for this backend and precision by name (then "cannot run here" is a failure).
    pub named: bool,
}

impl CellSpec {
    /// A cell of batch 1 on the first device, everything else as the model and the backend choose.
    pub fn new(model: ModelSpec, backend: BackendName, precision: Precision) -> CellSpec {
        CellSpec {
            id: format!("{}:{backend}:{precision}", model.name),
            model,
            backend,
            precision,
            imgsz: None,
            head: HeadChoice::Auto,
            batch: 1,
            device: 0,
            threads: None,
            runtime: None,
            builder: None,
            provider: ProviderSpec::default(),
            rewrite: None,
            engine: None,
            artifact: None,
            named: false,
        }
    }

    /// What must be made before it can run, where that is not the model's own file: the last step.
    pub const fn making(&self) -> Option<Making> {
        match (&self.engine, &self.rewrite) {
            (Some(_), _) => Some(Making::Engine),
            (None, Some(_)) => Some(Making::Graph),
            (None, None) => None,
        }
    }

    /// The cell's folder name: the id without characters a file system or shell minds.
    pub fn slug(&self) -> String {
        slug_of(&self.id)
    }
}

/// The name of the folder of the cell with this id.
pub fn slug_of(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' }).collect()
}

/// What is made for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Making {
    /// A rewritten graph.
    Graph,
    /// An engine.
    Engine,
}

/// Where frames come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceSpec {
    /// Built-in scenes, of the kind that fits the model.
    Scenes,
    /// Images of a folder, in the order of their names.
    Dir(PathBuf),
    /// A `.npy` or `.npz` file, for models that are not detectors.
    Tensor(PathBuf),
}

/// The input of every cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSpec {
    /// Where frames come from.
    pub source: SourceSpec,
    /// Seed of the built-in scenes and of random tensors.
    pub seed: u64,
    /// Distinct frames to keep resident; at least 32 where the source has as many.
    pub frames: u32,
}

/// What becomes of outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostSpec {
    /// Lowest confidence that is kept.
    pub conf: f32,
    /// Overlap above which the weaker of two boxes of a class goes.
    pub iou: f32,
    /// Most boxes an image.
    pub max_det: u32,
    /// A place may give a box for each class that is sure enough, as evaluations do it; otherwise for its surest class.
    #[serde(default)]
    pub multi_label: bool,
}

vocabulary! {
    /// A limit that a run can be held to.
    GateName, "gate" {
        /// See [`GateSpec::map_drop_max`].
        MapDropMax = "map_drop_max",
        /// See [`GateSpec::latency_ratio_max`].
        LatencyRatioMax = "latency_ratio_max",
        /// See [`GateSpec::memory_growth_max`].
        MemoryGrowthMax = "memory_growth_max",
        /// See [`GateSpec::map_min`].
        MapMin = "map_min",
        /// See [`GateSpec::p99_max_ms`].
        P99MaxMs = "p99_max_ms",
    }
}

/// Limits that were asked for. A failed one is exit code 3.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GateSpec {
    /// Most points of mAP50-95 (hundredths) that a cell may lie below its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_drop_max: Option<f64>,
    /// Most that the median of `total` may be, as a multiple of the baseline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ratio_max: Option<f64>,
    /// Most that peak memory may be, as a multiple of the baseline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_growth_max: Option<f64>,
    /// Least mAP50-95, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_min: Option<f64>,
    /// Highest p99 of `total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_max_ms: Option<f64>,
    /// The run that relative limits are held against; without one `map_drop_max` takes the model's fp32 row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<PathBuf>,
}

impl GateSpec {
    /// The limit of a gate, where one was asked for.
    pub const fn limit(&self, name: GateName) -> Option<f64> {
        match name {
            GateName::MapDropMax => self.map_drop_max,
            GateName::LatencyRatioMax => self.latency_ratio_max,
            GateName::MemoryGrowthMax => self.memory_growth_max,
            GateName::MapMin => self.map_min,
            GateName::P99MaxMs => self.p99_max_ms,
        }
    }

    /// Sets the limit of a gate; what it was before.
    pub const fn set(&mut self, name: GateName, limit: f64) -> Option<f64> {
        let place = match name {
            GateName::MapDropMax => &mut self.map_drop_max,
            GateName::LatencyRatioMax => &mut self.latency_ratio_max,
            GateName::MemoryGrowthMax => &mut self.memory_growth_max,
            GateName::MapMin => &mut self.map_min,
            GateName::P99MaxMs => &mut self.p99_max_ms,
        };
        place.replace(limit)
    }

    /// Every limit that was asked for.
    pub fn limits(&self) -> impl Iterator<Item = (GateName, f64)> + '_ {
        GateName::ALL.iter().filter_map(|&name| Some((name, self.limit(name)?)))
    }
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetSpec {
    /// Warm up this long; `None` until steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// Measure this long and do not stop early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Stop after this many samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Without `duration_s`, stop at this many measured seconds even if the interval is still wide.
    pub limit_s: f64,
    /// Go on beyond `duration_s` and `limit_s` until there are this many samples. Never together with `samples`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<SampleFloor>,
    /// A worker silent for this long is killed.
    pub timeout_s: f64,
}

/// A number of samples that is worth more time than the rest of the budget allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleFloor {
    /// How many.
    pub samples: u64,
    /// Measured seconds after which a cell stops without them.
    pub limit_s: f64,
}

/// What outputs are held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceSpec {
    /// The model that computes it; `None` for each cell's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSpec>,
    /// What executes it, the file as it is; the embedded engine stands in where this one cannot.
    pub backend: BackendName,
    /// Its library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeSpec>,
}

impl Default for ReferenceSpec {
    fn default() -> ReferenceSpec {
        ReferenceSpec { model: None, backend: BackendName::Rten, runtime: None }
    }
}

/// One execution, fully decided: nothing after this looks at flags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Part of the run folder's name.
    pub name: String,
    /// The cells, in the order of the report.
    pub cells: Vec<CellSpec>,
    /// Cells that are measured only if every other cell of their model is skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standby: Vec<CellSpec>,
    /// What they are fed.
    pub input: InputSpec,
    /// What becomes of their outputs.
    pub post: PostSpec,
    /// How long they are measured.
    pub budget: BudgetSpec,
    /// Precisions that the user named: one that no cell of a model completes in has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_precisions: Vec<Precision>,
    /// What the cells' outputs are held against.
    pub reference: ReferenceSpec,
    /// What cells are scored on, beside being timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<EvaluationSpec>,
    /// Cells are timed; otherwise they are only scored.
    #[serde(default = "yes")]
    pub timed: bool,
    /// How many cells are loaded at a time.
    #[serde(default)]
    pub resident: Resident,
    /// Limits that must hold.
    #[serde(default)]
    pub gates: GateSpec,
    /// Every verdict but `valid`, and every skipped cell, fails the run.
    pub strict: bool,
    /// What was decided for the user and should be known, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_names_the_known_ones() {
        let error = "nosuch".parse::<BackendName>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown backend `nosuch`; known: rten, ort-cpu, ort-cuda, ort-tensorrt, ort-openvino, openvino, tensorrt, trtexec"
        );
        assert_eq!("int8".parse::<Precision>(), Ok(Precision::Int8));
    }

    #[test]
    fn a_slug_has_no_colon() {
        let source = ModelSource::Builtin(SceneKind::Rgb);
        let model = ModelSpec::new("my model", source, "");
        let mut cell = CellSpec::new(model, BackendName::Rten, Precision::Fp32);
        cell.id.push_str("#2");
        assert_eq!(cell.slug(), "my_model_rten_fp32_2");
    }
}
