//! Frames with ground truth: the built-in scenes, data sets and folders of images.
//!
//! [`scenes`] draws seeded little worlds whose every box is known, [`synth`] writes them to disk as a data set,
//! [`dataset`] opens one to be scored on, [`coco`] reads and writes its files, [`folder`] and [`arrays`] read what a user
//! has, [`ending`] tells images and videos by their names, [`png`] turns a frame into a lossless file and [`jpeg`] into a
//! small picture.

pub mod arrays;
pub mod coco;
pub mod dataset;
pub mod ending;
pub mod folder;
pub mod jpeg;
pub mod png;
pub mod scenes;
pub mod synth;

mod decode;
mod error;

pub use error::SourceError;
