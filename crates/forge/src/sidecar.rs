//! What is written beside an artifact: how it was made, for people and for the next build.

use prony_model::ENGINE_SCHEMA;
use prony_types::RewriteSpec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::ForgeError;
use crate::key::key_of;
use crate::recipe::Recipe;

/// The form of a graph's sidecar.
pub const GRAPH_SCHEMA: &str = "prony.graph/1";

/// What the cache must know of a sidecar.
pub(crate) trait Beside: Serialize + DeserializeOwned {
    /// What messages call the artifact.
    const WORD: &'static str;
    /// Its form.
    const SCHEMA: &'static str;
    /// Ending of the artifact's file.
    const ENDING: &'static str;
    /// Ending of its own.
    const SIDECAR: &'static str;

    /// The form that it says it has.
    fn schema(&self) -> &str;
    /// SHA-256 of the artifact.
    fn sha256(&self) -> &str;
    /// Its size.
    fn size_bytes(&self) -> u64;
    /// Where its recipe belongs in the cache.
    fn key(&self) -> Result<String, ForgeError>;
}

impl Beside for EngineSidecar {
    const WORD: &'static str = "engine";
    const SCHEMA: &'static str = ENGINE_SCHEMA;
    const ENDING: &'static str = ".engine";
    const SIDECAR: &'static str = ".engine.json";

    fn schema(&self) -> &str {
        &self.schema
    }

    fn sha256(&self) -> &str {
        &self.engine_sha256
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn key(&self) -> Result<String, ForgeError> {
        self.recipe.key()
    }
}

impl Beside for GraphSidecar {
    const WORD: &'static str = "graph";
    const SCHEMA: &'static str = GRAPH_SCHEMA;
    const ENDING: &'static str = ".onnx";
    const SIDECAR: &'static str = ".onnx.json";

    fn schema(&self) -> &str {
        &self.schema
    }

    fn sha256(&self) -> &str {
        &self.sha256
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn key(&self) -> Result<String, ForgeError> {
        self.recipe.key()
    }
}

/// How an engine was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineSidecar {
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
pub struct FreshEngine {
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

/// How an ONNX file was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphSidecar {
    /// `prony.graph/1`.
    pub schema: String,
    /// Version of Prony that made it.
    pub prony: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// What the model is called.
    pub model: String,
    /// What it was made from, and how.
    #[serde(flatten)]
    pub recipe: GraphRecipe,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Its size.
    pub size_bytes: u64,
    /// How long it took to make.
    pub made_s: f64,
    /// What was decided on the way and should be known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What whoever made it has to say: counts, ranges, losses.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub report: serde_json::Value,
}

/// All that decides an ONNX file that is made from another file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphRecipe {
    /// SHA-256 of what it is made from.
    pub source_sha256: String,
    /// What is done to it.
    pub making: GraphMaking,
    /// Height and width of the images that ranges are found on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imgsz: Option<[u32; 2]>,
    /// SHA-256 of the data that ranges are found on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration_sha256: Option<String>,
    /// What runs the graph while ranges are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges_by: Option<String>,
    /// Which state of the code makes it: another one may make another file.
    pub revision: u32,
}

impl GraphRecipe {
    /// Where it lies in the cache.
    pub(crate) fn key(&self) -> Result<String, ForgeError> {
        key_of(self)
    }
}

/// How an ONNX file is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphMaking {
    /// From a checkpoint.
    Export(serde_json::Value),
    /// From another ONNX file.
    Rewrite(RewriteSpec),
}
