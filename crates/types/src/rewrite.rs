//! Graphs that are rewritten before they are executed: in 16-bit floats, or with quantisers around what is computed in bytes.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::vocabulary::vocabulary;
use crate::{CalibrationSpec, ModelSpec, Precision, RuntimeSpec, UnknownName};

vocabulary! {
    /// Whose patterns a quantised graph is written in. Bytes mean the same values in all of them; what is fast, and what a
    /// library gets right, differs.
    QuantiseFor, "target" {
        /// Signed bytes at the inputs of layers, but for those that OpenVINO gets wrong so: every library takes it.
        Any = "any",
        /// Unsigned bytes around zero point 128, wherever ONNX Runtime computes in bytes: on x86 it has fast kernels for
        /// these alone.
        Onnxruntime = "onnxruntime",
        /// Unsigned bytes around zero point 128 at the inputs of layers.
        Openvino = "openvino",
        /// Signed bytes at the inputs of all layers: TensorRT knows no zero points.
        Tensorrt = "tensorrt",
    }
}

/// How a graph is rewritten. All of it is part of the artifact's identity in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewriteSpec {
    /// In 16-bit floats.
    Half(HalfSpec),
    /// With quantisers.
    Int8(QuantiseSpec),
}

impl RewriteSpec {
    /// What the graph is in afterwards.
    pub const fn precision(&self) -> Precision {
        match self {
            RewriteSpec::Half(half) => half.precision,
            RewriteSpec::Int8(_) => Precision::Int8,
        }
    }

    /// The data that ranges are found on, where there are any.
    pub const fn calibration(&self) -> Option<&CalibrationSpec> {
        match self {
            RewriteSpec::Half(_) => None,
            RewriteSpec::Int8(quantise) => Some(&quantise.calibration),
        }
    }

    /// The same, to be changed.
    pub const fn calibration_mut(&mut self) -> Option<&mut CalibrationSpec> {
        match self {
            RewriteSpec::Half(_) => None,
            RewriteSpec::Int8(quantise) => Some(&mut quantise.calibration),
        }
    }
}

/// How a graph is brought to 16-bit floats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalfSpec {
    /// `fp16` or `bf16`.
    pub precision: Precision,
    /// Inputs and outputs stay in fp32.
    pub keep_io: bool,
    /// Nodes that stay in fp32 beside those that must, by name or by operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<String>,
}

impl HalfSpec {
    /// As `prony convert` does it where nothing else is said.
    pub const fn new(precision: Precision) -> HalfSpec {
        HalfSpec { precision, keep_io: true, block: Vec::new() }
    }
}

/// How a graph is quantised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuantiseSpec {
    /// What the ranges of activations are found on, and how.
    pub calibration: CalibrationSpec,
    /// Every channel of a weight has a scale of its own.
    pub per_channel: bool,
    /// Nodes that stay in float beside those that must, by name or by operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Whose patterns it is written in.
    #[serde(default = "any")]
    pub target: QuantiseFor,
}

fn any() -> QuantiseFor {
    QuantiseFor::Any
}

/// A graph to rewrite, or to take from the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewriteJob {
    /// Must equal [`crate::WORKER_PROTOCOL`].
    pub protocol: u32,
    /// Id of the cell it is for.
    pub cell: String,
    /// The model it is made from.
    pub model: ModelSpec,
    /// How it is rewritten.
    pub rewrite: RewriteSpec,
    /// Height and width of the images that ranges are found on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imgsz: Option<[u32; 2]>,
    /// ONNX Runtime, which ranges are found with; `None` for the embedded engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeSpec>,
    /// The artifact cache.
    #[serde(with = "crate::os_text::path")]
    pub cache: PathBuf,
    /// Makes it although the cache has it.
    #[serde(default)]
    pub rebuild: bool,
    /// Descriptor of the ring that shows signs of life, inherited from the parent.
    pub ring_fd: i32,
}
