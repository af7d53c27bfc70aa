//! Frames with ground truth: the built-in scenes and folders of images.
//!
//! [`scenes`] draws seeded little worlds whose every box is known, [`synth`] writes them to disk as a data set,
//! [`folder`] and [`arrays`] read what a user has, [`png`] turns a frame into a lossless file and [`jpeg`]
//! into a small picture.

pub mod arrays;
pub mod coco;
pub mod folder;
pub mod jpeg;
pub mod png;
pub mod scenes;
pub mod synth;

mod decode;
mod error;

pub use error::SourceError;
