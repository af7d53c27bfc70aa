//! What is written beside an engine: how it was made, for people and for the next build.

use serde::{Deserialize, Serialize};

use crate::recipe::Recipe;

/// The form of a sidecar.
pub const SCHEMA: &str = "prony.engine/1";

/// How an engine was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sidecar {
    /// `prony.engine/1`.
    pub schema: String,
    /// Version of Prony that made it.
    pub prony: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// What the model is called.
    pub model: String,
    /// Size of the ONNX file and of weights beside it.
    pub onnx_bytes: u64,
    /// What it was made from and for.
    #[serde(flatten)]
    pub recipe: Recipe,
    /// SHA-256 of the engine.
    pub engine_sha256: String,
    /// Its size.
    pub size_bytes: u64,
    /// How long it took to build.
    pub build_s: f64,
    /// What was decided on the way and should be known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Highest resident memory of the building process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_peak_bytes: Option<u64>,
    /// Least memory that the system had left meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_available_low_bytes: Option<u64>,
    /// Highest sum that went through our allocator on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_peak_bytes: Option<u64>,
}

/// An engine fresh from the builder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Made {
    /// The engine.
    pub bytes: Vec<u8>,
    /// How long it took.
    pub build_s: f64,
    /// What was decided on the way and should be known.
    pub notes: Vec<String>,
    /// Highest resident memory of this process.
    pub host_peak_bytes: Option<u64>,
    /// Least memory that the system had left meanwhile.
    pub host_available_low_bytes: Option<u64>,
    /// Highest sum that went through our allocator on the device.
    pub device_peak_bytes: Option<u64>,
}
