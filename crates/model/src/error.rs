//! What can be wrong with a model file.

use std::io;
use std::path::PathBuf;

/// Why a file is not a model that Prony can use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file cannot be read.
    #[error("cannot read model {}: {reason}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// The system's word.
        reason: io::Error,
    },
    /// The file is something else.
    #[error("{name} is not an ONNX model: {reason}")]
    NotOnnx {
        /// Which model.
        name: String,
        /// What was found instead.
        reason: String,
    },
    /// The file should be a TensorRT engine and is something else.
    #[error("{name} is not a TensorRT engine: {reason}")]
    NotEngine {
        /// Which model.
        name: String,
        /// What was found instead.
        reason: String,
    },
    /// A TensorRT engine of which something is missing.
    #[error("{name} is not a whole TensorRT engine: {reason}")]
    CutEngine {
        /// Which model.
        name: String,
        /// What is missing.
        reason: String,
    },
    /// What stands beside an engine cannot be used.
    #[error("cannot use {}, which should say where the engine was built: {reason}; remove it, or build the engine again",
        path.display())]
    Sidecar {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file should be a PyTorch checkpoint and is something else, or a damaged one.
    #[error("{name} is not a checkpoint that can be read: {reason}")]
    NotCheckpoint {
        /// Which model.
        name: String,
        /// What was found instead.
        reason: PtError,
    },
    /// Weights in a file of their own that is missing or cannot be read.
    #[error("{name}: its weights in {file} cannot be read: {reason}")]
    Weights {
        /// Which model.
        name: String,
        /// The file, as the graph names it.
        file: String,
        /// Why.
        reason: String,
    },
    /// A kind of model that is known, but not by this version.
    #[error("{name}: {kind} files are not supported yet; export the model to ONNX")]
    Unsupported {
        /// Which model.
        name: String,
        /// What it is.
        kind: &'static str,
    },
    /// Bytes that hold no graph.
    #[error("{0}")]
    NoGraph(&'static str),
    /// A file whose graph should be looked at and that cannot be opened.
    #[error("{}: {reason}", path.display())]
    Unmapped {
        /// Which file.
        path: PathBuf,
        /// The system's word.
        reason: io::Error,
    },
    /// A location of weights that leads out of the model's folder, or to no file in it.
    #[error("`{}` is not a file beside the model", location.escape_debug())]
    Outside {
        /// As the graph has it.
        location: String,
    },
}

/// Why a file is no checkpoint that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtError {
    /// Not the container that torch writes.
    #[error("{0}")]
    Container(String),
    /// The pickle is damaged, or uses what no checkpoint uses.
    #[error("its pickle cannot be read: opcode {opcode} at byte {offset}: {reason}")]
    Pickle {
        /// Name of the opcode, or its number where it has none.
        opcode: String,
        /// Where it stands.
        offset: usize,
        /// What is wrong.
        reason: String,
    },
    /// A tensor that does not fit its storage, or is of a kind that is not known.
    #[error("tensor {name}: {reason}")]
    Tensor {
        /// Which tensor, by its path or its storage.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// What the pickle holds is not a model.
    #[error("{0}")]
    Content(String),
}
