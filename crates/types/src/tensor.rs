//! What goes into a model and what comes out, as shapes and types.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Precision;

/// Element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// bfloat16.
    Bf16,
    /// 64-bit float.
    F64,
    /// Signed byte.
    I8,
    /// Unsigned byte.
    U8,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// Truth value.
    Bool,
    /// Anything else the file declares.
    Other,
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F64 => "f64",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::Bool => "bool",
            DType::Other => "other",
        })
    }
}

/// One axis of a declared shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// Known when the file was written.
    Fixed(u64),
    /// Chosen by the caller; the file's name for it, perhaps empty.
    Named(String),
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(n) => write!(f, "{n}"),
            Dim::Named(name) if name.is_empty() => f.write_str("?"),
            Dim::Named(name) => f.write_str(name),
        }
    }
}

/// An input or output as the file declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorInfo {
    /// Name in the graph.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Declared shape; empty for a scalar or an undeclared shape.
    pub dims: Vec<Dim>,
}

impl fmt::Display for TensorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}[", self.name, self.dtype)?;
        for (i, dim) in self.dims.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}

/// An input or output as it really is in a session: every axis decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    /// Name in the graph.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Vec<usize>,
}

impl TensorSpec {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether an axis is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{:?}", self.name, self.dtype, self.shape)
    }
}

/// Facts an exporter wrote into the file, in Ultralytics' vocabulary. Absent when the file does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// Class names by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Why there are none although the file has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names_problem: Option<String>,
    /// Largest stride.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<u32>,
    /// `detect`, `classify`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Height and width the model was exported for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imgsz: Option<[u32; 2]>,
    /// Whether boxes come out final, without NMS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end2end: Option<bool>,
}

/// What kind of file a model is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelFormat {
    /// A graph that any backend may take.
    #[default]
    Onnx,
    /// A TensorRT engine: what goes in and comes out is known to TensorRT alone.
    Engine,
}

impl ModelFormat {
    fn is_onnx(&self) -> bool {
        *self == ModelFormat::Onnx
    }
}

/// A model file read as data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// What kind of file it is.
    #[serde(default, skip_serializing_if = "ModelFormat::is_onnx")]
    pub format: ModelFormat,
    /// Graph inputs that a caller must feed; empty for an engine.
    pub inputs: Vec<TensorInfo>,
    /// Graph outputs; empty for an engine.
    pub outputs: Vec<TensorInfo>,
    /// Exporter's facts.
    pub metadata: Metadata,
    /// Operator-set version of the default domain, where the format has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opset: Option<i64>,
    /// Distinct operator names, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
    /// What its quantisers quantise to, where it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantised: Option<Precision>,
    /// Element type that most weights are stored in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<DType>,
    /// Number of weights in the graph that runs; constants such as anchors, strides, scales and zero points do not count.
    #[serde(default)]
    pub parameters: u64,
    /// The files of a model with external data: the graph first. Empty for a model in one file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ModelPart>,
}

/// A file of a model with external data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPart {
    /// Its name; that of external data is relative to the graph's folder.
    pub file: String,
    /// Its SHA-256, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The elements of a tensor, borrowed from a session. Half-precision outputs are widened before they get here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TensorData<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 32-bit integers.
    I32(&'a [i32]),
    /// 64-bit integers.
    I64(&'a [i64]),
}

impl TensorData<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            TensorData::F32(data) => data.len(),
            TensorData::I32(data) => data.len(),
            TensorData::I64(data) => data.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An output: contiguous, row-major, borrowed from a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TensorView<'a> {
    /// Name in the graph.
    pub name: &'a str,
    /// The shape; its product is the number of elements.
    pub shape: &'a [usize],
    /// The elements.
    pub data: TensorData<'a>,
}
