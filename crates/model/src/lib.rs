//! Model files as data: what they are, what goes in and what comes out. Nothing here executes a model.

pub mod onnx;

mod builtin;
mod file;
mod info;
mod literal;

pub use builtin::builtin;
pub use file::{ModelError, ModelFile, sha256_hex};
