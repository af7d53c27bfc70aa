//! What was quantised, how, and what it costs: the sidecar of a quantised file.

use std::collections::BTreeMap;

use prony_types::{CalibrationMethod, QuantiseFor, QuantiseSpec, SourceSpec};
use serde::{Deserialize, Serialize};

use super::Range;
use super::collect::{Collected, Subject};
use super::place::Placement;
use crate::calibration::Used;

/// Kind of the report.
pub const SCHEMA: &str = "prony.quantise/1";

/// How a graph was quantised. Decibels are of signal against noise; where they are absent there is no noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantiseReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Prony.
    pub prony: String,
    /// SHA-256 of the model it was made from.
    pub model_sha256: String,
    /// SHA-256 of the calibration data.
    pub data_sha256: String,
    /// What they are.
    pub source: SourceSpec,
    /// How many different frames ranges were found on.
    pub frames: u32,
    /// How many were asked for; 0 in the sidecars of files that were made before they were told apart.
    #[serde(default)]
    pub frames_requested: u32,
    /// Seed of built-in scenes.
    pub seed: u64,
    /// How ranges were found.
    pub method: CalibrationMethod,
    /// Whether every channel of a weight has a scale of its own.
    pub per_channel: bool,
    /// Whose patterns it is written in.
    pub target: QuantiseFor,
    /// What the graph was run with.
    pub backend: String,
    /// Whether magnitudes were known from an earlier time.
    pub ranges_from_cache: bool,
    /// Layers in bytes.
    pub layers: Vec<QuantisedLayer>,
    /// Layers in float.
    pub float: Vec<FloatLayer>,
    /// Ranges of activations.
    pub tensors: Vec<QuantisedTensor>,
    /// Images that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

impl QuantiseReport {
    /// What is wrong with the calibration: images that could not be read, fewer frames than requested.
    pub fn warnings(&self) -> Vec<String> {
        Used { frames: self.frames, skipped: self.skipped.clone() }.warnings(self.frames_requested)
    }
}

/// A layer in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantisedLayer {
    /// Its node.
    pub name: String,
    /// Its operator.
    pub op: String,
    /// Its weights before and after rounding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_sqnr_db: Option<f64>,
    /// What it gives in fp32 and in the quantised graph, with the noise of all layers before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_sqnr_db: Option<f64>,
}

/// A layer in float.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloatLayer {
    /// Its node.
    pub name: String,
    /// Its operator.
    pub op: String,
    /// Why.
    pub why: String,
}

/// The range of an activation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantisedTensor {
    /// Its name.
    pub name: String,
    /// The largest magnitude that was seen; absent where it follows from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f32>,
    /// The magnitude that the largest byte stands for.
    pub clip: f64,
    /// What a step is worth.
    pub scale: f32,
}

/// The fact that a file carries about itself.
pub(crate) fn fact(spec: &QuantiseSpec, collected: &Collected) -> String {
    let (method, frames) = (spec.calibration.method, collected.used.frames);
    let by = if spec.per_channel { "by channel" } else { "by tensor" };
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "int8, {method} of {frames} frames ({}), weights {by}, for {}, prony {version}",
        &collected.data_sha256[..16],
        spec.target
    )
}

/// Puts together what is known.
pub(crate) fn report(
    subject: Subject<'_>,
    spec: &QuantiseSpec,
    placement: &Placement,
    collected: &Collected,
    ranges: &BTreeMap<String, Range>,
    weights: &[Option<f64>],
    outputs: &[Option<f64>],
) -> QuantiseReport {
    let layers = placement.layers.iter().zip(weights.iter().zip(outputs));
    let layer = |(layer, (weight, output)): (&super::place::Layer, (&Option<f64>, &Option<f64>))| QuantisedLayer {
        name: layer.name.clone(),
        op: layer.op.clone(),
        weight_sqnr_db: *weight,
        output_sqnr_db: *output,
    };
    let float = placement.float.iter().map(|layer| FloatLayer {
        name: layer.name.clone(),
        op: layer.op.clone(),
        why: layer.why.to_owned(),
    });
    let tensor = |(name, range): (&String, &Range)| QuantisedTensor {
        name: name.clone(),
        max: range.max,
        clip: range.clip,
        scale: range.scale,
    };
    QuantiseReport {
        schema: SCHEMA.to_owned(),
        prony: env!("CARGO_PKG_VERSION").to_owned(),
        model_sha256: subject.model.sha256.clone(),
        data_sha256: collected.data_sha256.clone(),
        source: spec.calibration.source.clone(),
        frames: collected.used.frames,
        frames_requested: spec.calibration.frames,
        seed: spec.calibration.seed,
        method: spec.calibration.method,
        per_channel: spec.per_channel,
        target: spec.target,
        backend: subject.backend().to_string(),
        ranges_from_cache: collected.from_cache,
        layers: layers.map(layer).collect(),
        float: float.collect(),
        tensors: ranges.iter().map(tensor).collect(),
        skipped: collected.used.skipped.clone(),
    }
}
