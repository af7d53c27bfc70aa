//! From a decoded frame to a network's input, and from its outputs to boxes in the frame's pixels.
//!
//! Pure: no I/O, no clock, one thread. The geometry, the interpolation and the suppression are those of Ultralytics and
//! OpenCV, because the accuracy of a model is only its own when it is fed and read as it was trained. Buffers belong to
//! [`Preprocessor`] and [`Decoder`]; after the first frame of a size neither allocates.

mod activation;
mod choose;
mod decode;
mod dispatch;
pub mod draw;
mod font;
mod head;
mod letterbox;
mod nms;
mod outputs;
mod preprocess;
mod resize;
mod scores;
pub mod thermal;

pub use decode::Decoder;
pub use head::{Head, HeadError};
pub use letterbox::{Fit, Letterbox};
pub use nms::{MAX_CANDIDATES, Suppressor, nms};
pub use preprocess::{PAD, Preprocessor};
