//! Model files as data: what they are, what goes in and what comes out. Nothing here executes a model.

pub mod onnx;
pub mod pt;
pub mod shape;

mod anatomy;
mod builtin;
mod cost;
mod engine;
mod error;
mod external;
mod file;
mod graph;
mod hash;
mod info;
mod literal;
mod map;
mod names;
mod parameters;
mod provenance;
mod quantisation;
mod tail;

pub use anatomy::{Anatomy, OutputShape};
pub use builtin::builtin;
pub use cost::{Cost, Coverage, NodeCost, OperatorCost};
pub use engine::{EngineFile, PlanHeader, PlanVersion};
pub use error::ModelError;
pub use external::beside_model;
pub use file::ModelFile;
pub use graph::{Tap, common_taps};
pub use hash::{sha256_file, sha256_hex, sha256_of};
pub use map::map_file;
pub use provenance::{ENGINE_SCHEMA, EngineProvenance, mismatch};
pub use tail::decoding_tail;
