//! What goes into cells, and what becomes of what comes out.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where frames come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceSpec {
    /// Built-in scenes, of the kind that fits the model.
    Scenes,
    /// Images of a folder, in the order of their names.
    Dir(#[serde(with = "crate::os_text::path")] PathBuf),
    /// A `.npy` or `.npz` file, for models that are not detectors.
    Tensor(#[serde(with = "crate::os_text::path")] PathBuf),
}

/// The input of every cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSpec {
    /// Where frames come from.
    pub source: SourceSpec,
    /// Seed of the built-in scenes and of random tensors.
    pub seed: u64,
    /// Distinct frames to keep resident; at least 32 where the source has as many.
    pub frames: u32,
}

/// What becomes of outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostSpec {
    /// Lowest confidence that is kept.
    pub conf: f32,
    /// Overlap above which the weaker of two boxes of a class goes.
    pub iou: f32,
    /// Most boxes an image.
    pub max_det: u32,
    /// A place may give a box for each class that is sure enough, as evaluations do it; otherwise for its surest class.
    #[serde(default)]
    pub multi_label: bool,
}
