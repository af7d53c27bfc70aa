//! A model of the plan: where its bytes are and what it was made of.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SceneKind;

/// Where a model's bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelSource {
    /// One of the detectors inside the binary.
    Builtin(SceneKind),
    /// A file.
    File(#[serde(with = "crate::os_text::path")] PathBuf),
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
    #[serde(with = "crate::os_text::path")]
    pub path: PathBuf,
    /// Its identity, in hex.
    pub sha256: String,
    /// Whether the file was there already.
    pub from_cache: bool,
}
