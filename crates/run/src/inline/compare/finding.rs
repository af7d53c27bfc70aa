//! What was found.

use prony_types::{Agreement, ArtifactSpec, BackendRecord, Precision, TensorAgreement};
use serde::Serialize;

/// Version of the format of `--json`.
pub(super) const SCHEMA: &str = "prony.compare-outputs/1";

/// Said instead of a share of boxes.
pub const NO_BOXES: &str =
    "no box was found on either side, or too many to choose from, so boxes after NMS were not compared";

/// Everything about two models.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Version of the format.
    pub schema: &'static str,
    /// The reference.
    pub a: SideRecord,
    /// What is compared with it.
    pub b: SideRecord,
    /// In words.
    pub input: String,
    /// How many.
    pub frames: usize,
    /// The coarser of the two, whose bounds hold.
    pub precision: Precision,
    /// How near they must be.
    pub bounds: Thresholds,
    /// Worst over the frames, output by output.
    pub outputs: Vec<OutputFinding>,
    /// Outputs that only one of them has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
    /// Boxes and scores apart, where both have a head that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<Agreement>,
    /// Node by node, where that can be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodesFinding>,
    /// What to know.
    pub notes: Vec<String>,
    /// Whether everything is near enough.
    pub agree: bool,
}

/// One of the two.
#[derive(Debug, Serialize)]
pub struct SideRecord {
    /// As it was named.
    pub model: String,
    /// Of the file.
    pub sha256: String,
    /// The engine that was built from the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<ArtifactSpec>,
    /// What executed it.
    pub backend: BackendRecord,
    /// The arithmetic that was really executed.
    pub executed: String,
    /// How outputs became boxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// How near they must be.
#[derive(Debug, Serialize)]
pub struct Thresholds {
    /// Least signal-to-noise ratio.
    pub sqnr_db: f64,
    /// Absent where the user's own bound counts alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f64>,
    /// Least share of boxes after NMS that have their like.
    pub matched_boxes: f64,
}

/// One output of both.
#[derive(Debug, Serialize)]
pub struct OutputFinding {
    /// Its name in the reference.
    pub a: String,
    /// Its name in the other.
    pub b: String,
    /// The worst over the frames.
    #[serde(flatten)]
    pub agreement: TensorAgreement,
    /// Whether it is near enough.
    pub agree: bool,
}

/// What the nodes gave.
#[derive(Debug, Serialize)]
pub struct NodesFinding {
    /// Tensors that both compute.
    pub common: usize,
    /// Those that were compared.
    pub looked_at: usize,
    /// The first that diverges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<NodeFinding>,
    /// The nodes around it; the noisiest where none diverges.
    pub around: Vec<NodeFinding>,
}

/// One node of both.
#[derive(Clone, Debug, Serialize)]
pub struct NodeFinding {
    /// Its name.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// What it computes.
    pub tensor: String,
    /// The worst over the frames.
    #[serde(flatten)]
    pub agreement: TensorAgreement,
    /// Whether it is too far off.
    pub diverges: bool,
}

impl Thresholds {
    /// Whether the noise is low enough; no noise at all is.
    pub(super) fn holds_noise(&self, found: &TensorAgreement) -> bool {
        found.sqnr_db.is_none_or(|db| db >= self.sqnr_db)
    }

    /// Whether a tensor is near enough.
    pub fn hold(&self, found: &TensorAgreement) -> bool {
        self.holds_noise(found) && self.cosine.is_none_or(|least| found.cosine >= least)
    }

    /// Boxes, scores and the rest each, and the boxes after NMS.
    pub(super) fn hold_boxes(&self, found: &Agreement) -> bool {
        let mut tensors = found.boxes.iter().chain(&found.scores).chain(&found.rest);
        tensors.all(|tensor| self.hold(tensor)) && found.matched_boxes.is_none_or(|share| share >= self.matched_boxes)
    }
}
