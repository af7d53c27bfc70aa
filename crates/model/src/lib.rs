//! Model files as data: what they are, what goes in and what comes out. Nothing here executes a model.

pub mod onnx;
pub mod pt;
pub mod shape;

mod anatomy;
mod builtin;
mod cost;
mod engine;
mod external;
mod file;
mod graph;
mod info;
mod literal;
mod names;
mod parameters;
mod quantisation;
mod sidecar;
mod tail;

pub use anatomy::{Anatomy, OutputShape};
pub use builtin::builtin;
pub use cost::{Cost, Coverage, NodeCost, OperatorCost};
pub use engine::{EngineFile, PlanHeader, PlanVersion, map_file, sha256_file, sha256_of};
pub use external::beside_model;
pub use file::{ModelError, ModelFile, sha256_hex};
pub use graph::{Tap, common_taps};
pub use sidecar::{ENGINE_SCHEMA, Sidecar, mismatch};
pub use tail::decoding_tail;
