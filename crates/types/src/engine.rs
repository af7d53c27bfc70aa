//! Engines: what one is asked to be, how far a build is, and what is in it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::vocabulary::vocabulary;
use crate::{ModelSpec, Precision, RuntimeSpec, SourceSpec, TensorInfo, UnknownName};

vocabulary! {
    /// How ranges for int8 are found.
    CalibrationMethod, "calibration method" {
        /// The range that loses least information.
        Entropy = "entropy",
        /// The widest range that was seen.
        MinMax = "minmax",
        /// The range that all but a few values lie in.
        Percentile = "percentile",
        /// The range with the smallest squared error.
        Mse = "mse",
    }
}

vocabulary! {
    /// Libraries that TensorRT may take kernels from.
    TacticSources, "tactic sources" {
        /// As TensorRT chooses.
        Default = "default",
        /// Its own kernels only: cuBLAS and cuDNN are neither loaded nor timed.
        None = "none",
    }
}

/// How an engine is to be built. All of it is part of the engine's identity in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSpec {
    /// Arithmetic it may use.
    pub precision: Precision,
    /// Shapes of inputs that have free axes; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<ProfileShape>,
    /// Scratch memory of the builder and of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_bytes: Option<u64>,
    /// Device memory that kernels may take while they are timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tactic_memory_bytes: Option<u64>,
    /// From 0, quick to build, to 5; `None` is TensorRT's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Libraries that kernels may come from.
    pub tactic_sources: TacticSources,
    /// A deep-learning accelerator to build for; what it cannot do falls to the GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dla_core: Option<u32>,
    /// Runs under later versions of TensorRT too.
    #[serde(default)]
    pub version_compatible: bool,
    /// Runs on other GPUs from Ampere on.
    #[serde(default)]
    pub hardware_compatible: bool,
    /// Weights can be replaced.
    #[serde(default)]
    pub refit: bool,
    /// Structured sparsity of the weights may be used.
    #[serde(default)]
    pub sparse: bool,
    /// Small pools, no external tactics, lazy loading of kernels.
    #[serde(default)]
    pub low_memory: bool,
    /// What int8 ranges are found on; `None` for a graph that brings its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationSpec>,
}

impl EngineSpec {
    /// An engine of a precision, everything else as TensorRT chooses.
    pub fn new(precision: Precision) -> EngineSpec {
        EngineSpec {
            precision,
            profile: Vec::new(),
            workspace_bytes: None,
            tactic_memory_bytes: None,
            level: None,
            tactic_sources: TacticSources::Default,
            dla_core: None,
            version_compatible: false,
            hardware_compatible: false,
            refit: false,
            sparse: false,
            low_memory: false,
            calibration: None,
        }
    }
}

/// Shapes that one input may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileShape {
    /// Name of the input.
    pub input: String,
    /// Smallest.
    pub min: Vec<u64>,
    /// The one it is tuned for.
    pub opt: Vec<u64>,
    /// Largest.
    pub max: Vec<u64>,
}

/// What int8 ranges are found on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationSpec {
    /// How ranges are found.
    pub method: CalibrationMethod,
    /// Frames or tensors.
    pub source: SourceSpec,
    /// How many of them.
    pub frames: u32,
    /// Seed of built-in scenes.
    pub seed: u64,
}

/// How long a build may take where nobody gave a limit, in seconds: large models at the highest level take most of it.
pub const BUILD_TIMEOUT_S: u64 = 3600;

/// An artifact to make, or to take from the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrepareJob {
    /// Must equal [`crate::WORKER_PROTOCOL`].
    pub protocol: u32,
    /// Id of the cell it is for.
    pub cell: String,
    /// The model it is made from.
    pub model: ModelSpec,
    /// How it is built.
    pub engine: EngineSpec,
    /// Height and width of the images that int8 ranges are found on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imgsz: Option<[u32; 2]>,
    /// Frames a call.
    pub batch: u32,
    /// TensorRT.
    pub runtime: RuntimeSpec,
    /// Plugin libraries of the user's own.
    #[serde(default, with = "crate::os_text::list")]
    pub plugins: Vec<PathBuf>,
    /// Index of the device.
    pub device: u32,
    /// Most device memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_mem_limit_bytes: Option<u64>,
    /// CPU threads of the builder; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// The artifact cache.
    #[serde(with = "crate::os_text::path")]
    pub cache: PathBuf,
    /// Builds although the cache has it.
    #[serde(default)]
    pub rebuild: bool,
    /// A build that takes longer than this is ended.
    pub timeout_s: u64,
    /// Descriptor of the ring that shows signs of life, inherited from the parent.
    pub ring_fd: i32,
}

/// How far a build is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildProgress {
    /// What is being done, in words.
    pub doing: String,
    /// From 0 to 1, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// Seconds that are left, where that can be told: from earlier builds or from the builder's own steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<f64>,
}

/// An artifact that is to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactSpec {
    /// Its file.
    #[serde(with = "crate::os_text::path")]
    pub path: PathBuf,
    /// Its hash.
    pub sha256: String,
    /// Whether it was made earlier.
    pub from_cache: bool,
}

/// Where an engine was built, or where one is about to be run. A field that nobody told is empty, or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineIdentity {
    /// Version of TensorRT, e.g. `8.6.0`.
    pub tensorrt: String,
    /// Name of the GPU.
    pub gpu: String,
    /// Its compute capability, e.g. `9.0`.
    pub compute_capability: String,
    /// Its streaming multiprocessors: GPUs of one name may differ in them.
    pub sm_count: u32,
    /// Version of the driver.
    pub driver: String,
    /// Version of CUDA.
    pub cuda: String,
    /// It runs under later versions of TensorRT too.
    pub version_compatible: bool,
    /// It runs on other GPUs from Ampere on.
    pub hardware_compatible: bool,
}

/// An engine to open and to describe; nothing is run but, where that is possible, a pass that times its layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InspectJob {
    /// Must equal [`crate::WORKER_PROTOCOL`].
    pub protocol: u32,
    /// The engine.
    pub model: ModelSpec,
    /// TensorRT.
    pub runtime: RuntimeSpec,
    /// Plugin libraries of the user's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::os_text::list")]
    pub plugins: Vec<PathBuf>,
    /// Index of the device.
    pub device: u32,
    /// Tries it although it was built for something else.
    #[serde(default)]
    pub force: bool,
}

/// What TensorRT says about an engine that it has opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineRecord {
    /// Its name, perhaps empty.
    pub name: String,
    /// What opened it, and on what.
    pub here: EngineIdentity,
    /// Inputs; an axis that the caller chooses has no size.
    pub inputs: Vec<TensorInfo>,
    /// Outputs.
    pub outputs: Vec<TensorInfo>,
    /// Profiles, each with the shapes of its inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Vec<ProfileShape>>,
    /// Scratch memory on the device that a call needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_memory_bytes: Option<u64>,
    /// Weights can be replaced.
    pub refittable: bool,
    /// What its layers compute in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<LayersRecord>,
}

/// What the layers of an engine compute in: the proof of its precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayersRecord {
    /// All layers.
    pub layers: u32,
    /// By data type, most time first, else most layers.
    pub by_type: Vec<LayerShare>,
    /// Layers that only change a tensor's format.
    pub reformats: u32,
    /// Their share of the time, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reformat_time: Option<f64>,
    /// The slowest layers, slowest first; a few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<LayerTime>,
}

/// Layers of one data type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerShare {
    /// `fp32`, `fp16`, `int8`, …; `unknown` where the engine does not tell.
    pub dtype: String,
    /// How many.
    pub layers: u32,
    /// Their share of the time, from 0 to 1; absent where no layer was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
}

/// One layer's time in a profiling pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerTime {
    /// Its name.
    pub name: String,
    /// What it computes in.
    pub dtype: String,
    /// Mean of the pass.
    pub ms: f64,
}

impl LayersRecord {
    /// Layers of a data type.
    pub fn of(&self, dtype: &str) -> u32 {
        self.by_type.iter().filter(|share| share.dtype == dtype).map(|share| share.layers).sum()
    }
}

impl std::fmt::Display for LayersRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, share) in self.by_type.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} {} of {} layers", share.dtype, share.layers, self.layers)?;
            if let Some(time) = share.time {
                write!(f, " ({:.0} % of the time)", time * 100.0)?;
            }
        }
        write!(f, "; {} only reformat", self.reformats)?;
        match self.reformat_time {
            Some(time) => write!(f, " ({:.0} % of the time)", time * 100.0),
            None => Ok(()),
        }
    }
}

/// Device memory of a session, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Memory that went away on the device since it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_bytes: Option<u64>,
    /// Highest sum that went through our own allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator_peak_bytes: Option<u64>,
    /// What the driver says this process holds, context and kernels included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_bytes: Option<u64>,
    /// Whether the allocator refuses what goes beyond the limit.
    #[serde(default)]
    pub hard_limit: bool,
    /// Whether host and device share their memory.
    #[serde(default)]
    pub unified: bool,
    /// Each time the limit was, or would have been, passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
}

/// A request that went beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// What was asked for.
    pub asked_bytes: u64,
    /// What was held already.
    pub held_bytes: u64,
}
