//! Boxes: what a model says is there, and what is.

use serde::{Deserialize, Serialize};

/// One detected object, in pixels of the source image.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// Left edge.
    pub x1: f32,
    /// Top edge.
    pub y1: f32,
    /// Right edge.
    pub x2: f32,
    /// Bottom edge.
    pub y2: f32,
    /// Confidence from 0 to 1.
    pub score: f32,
    /// Index into the model's class names.
    pub class: u32,
}

impl Detection {
    /// Width times height, 0 for an inverted box.
    pub fn area(&self) -> f32 {
        (self.x2 - self.x1).max(0.0) * (self.y2 - self.y1).max(0.0)
    }
}

/// One true object, in pixels of its image.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroundTruth {
    /// Left edge of the visible extent.
    pub x: f32,
    /// Top edge of the visible extent.
    pub y: f32,
    /// Width of the visible extent.
    pub w: f32,
    /// Height of the visible extent.
    pub h: f32,
    /// Index into the source's class names.
    pub class: u32,
    /// Pixels of the object that can be seen.
    pub area: f32,
    /// A group that is not to be told apart (COCO's `iscrowd`).
    pub crowd: bool,
}
