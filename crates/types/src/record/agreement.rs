//! Whether outputs are right: held against a reference, and against themselves.

use serde::{Deserialize, Serialize};

/// Outputs against a reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// What the reference is, in words.
    pub reference: String,
    /// Box coordinates; all values for a model without a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxes: Option<TensorAgreement>,
    /// Scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<TensorAgreement>,
    /// What is neither: mask coefficients, key points, other outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<TensorAgreement>,
    /// Share of boxes that found their like after NMS; absent where there was none that says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_boxes: Option<f64>,
    /// Boxes of which that is the share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_boxes: Option<u64>,
    /// How far rounding alone carries the reference's own outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Sensitivity>,
}

/// What becomes of a model's outputs when its input is perturbed by the rounding of a precision: the reference against itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// By how much of its value every input value was moved, up or down.
    pub epsilon: f64,
    /// Box coordinates; all values for a model without a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxes: Option<TensorAgreement>,
    /// Scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<TensorAgreement>,
    /// What is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<TensorAgreement>,
    /// Share of the boxes that did not stay where they were; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstable_boxes: Option<f64>,
}

/// One way in which a cell must agree with itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsistencyCheck {
    /// What was done, in words: `the same frame twice`, `a fresh session`.
    pub name: String,
    /// Whether it held; absent where it could not be tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// What was seen, or why it could not be tried.
    pub detail: String,
}

/// Two tensors against each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorAgreement {
    /// Cosine of the angle between them.
    pub cosine: f64,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Signal to noise in dB; absent when they are equal to the bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqnr_db: Option<f64>,
}
