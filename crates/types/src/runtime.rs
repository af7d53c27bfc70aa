//! What executes a cell: its library, and what the provider in it is told.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::vocabulary::{RuntimeName, UnknownName, vocabulary};

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
    #[serde(with = "crate::os_text::path")]
    pub library: PathBuf,
    /// Its version.
    pub version: String,
    /// Folders with libraries that it needs and that the loader may not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::os_text::list")]
    pub search: Vec<PathBuf>,
    /// Libraries that belong to it: TensorRT's parser and plugins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "crate::os_text::map")]
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
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::os_text::option")]
    pub trt_engine_cache: Option<PathBuf>,
    /// Folder of TensorRT's timing cache.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::os_text::option")]
    pub trt_timing_cache: Option<PathBuf>,
    /// Smallest, usual and largest shapes, as `name:1x3x640x640`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trt_profile: Option<[String; 3]>,
    /// Calibration table for int8.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::os_text::option")]
    pub trt_int8_table: Option<PathBuf>,
    /// Plugin libraries of the user's own for TensorRT.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "crate::os_text::list")]
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
