//! What executes a model: the [`Backend`] and [`Session`] traits, one file a backend, and the conformance suite
//! that every backend passes.

pub mod affinity;
pub mod conformance;
pub mod gpu;

mod buffer;
mod catalog;
mod error;
mod fault;
mod interface;
mod open;
mod openvino;
mod ort;
mod precision;
mod rten;
mod session;
mod tensorrt;
mod trtexec;
mod unsupported;

pub use prony_model::{ModelFile, mismatch};

pub use buffer::Buffer;
pub use catalog::backend;
pub use error::BackendError;
pub use fault::FaultySession;
pub use interface::{Backend, Proof};
pub use open::{open_artifact, open_model};
pub use ort::NO_TF32;
pub use precision::{made_elsewhere, precision_of};
pub use session::{Session, SessionSpec, SlotInput, Timing};
pub use tensorrt::{OpenedEngine, inspect_engine, open_engine};
pub use unsupported::Unsupported;
