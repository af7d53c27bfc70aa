//! Why a backend does not execute a model in a precision.

use prony_types::{BackendName, Precision};

/// What a backend cannot do, and the way out. Found without loading a library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// It executes graphs, and the file is an engine.
    #[error("{backend} does not execute TensorRT engines; use --backends tensorrt")]
    Engine {
        /// Which backend.
        backend: &'static str,
    },
    /// fp32 of a file that is none.
    #[error("the file is {brings}, so this is no fp32 model; use --precision {brings} or native to time it as it is")]
    NotFp32 {
        /// What the file is.
        brings: Precision,
    },
    /// It computes in fp32 without rounding to TF32.
    #[error("{backend} has no TF32 arithmetic")]
    Tf32 {
        /// Which backend.
        backend: &'static str,
    },
    /// It changes nothing about a file, and the file is something else.
    #[error("{backend} executes a file as it is, and this one is {brings}, not {asked}; {how}")]
    OtherPrecision {
        /// Which backend.
        backend: &'static str,
        /// What the file is.
        brings: Precision,
        /// What was asked for.
        asked: Precision,
        /// What makes such a file.
        how: String,
    },
    /// A precision that it cannot compute in, whatever the file is.
    #[error("{backend} has no {asked} arithmetic; {instead}")]
    Arithmetic {
        /// Which backend.
        backend: &'static str,
        /// What was asked for.
        asked: Precision,
        /// What it can compute in.
        instead: String,
    },
    /// The file is in a precision that it cannot compute in.
    #[error("{backend} has no {brings} arithmetic, and the file is {brings}")]
    FileArithmetic {
        /// Which backend.
        backend: &'static str,
        /// What the file is.
        brings: Precision,
    },
    /// The embedded engine has no 16-bit and no 8-bit floats.
    #[error("rten executes fp32 and int8 files; {brings} needs ort-cpu or a GPU")]
    NarrowFile {
        /// What the file is.
        brings: Precision,
    },
    /// The embedded engine would choose other boxes.
    #[error("the model contains NonMaxSuppression, which rten computes wrongly; export it without NMS")]
    NonMaxSuppression,
    /// There is nothing that says which ranges tensors have.
    #[error("int8 of an fp32 file needs a calibration table (--trt-int8-table) or a file with Q/DQ nodes")]
    NoRanges,
    /// An engine was built in a precision.
    #[error(
        "an engine keeps the precision that it was built in and cannot become {asked}; use --precision native, \
         the report says what its layers compute in"
    )]
    EngineKeepsPrecision {
        /// What was asked for.
        asked: Precision,
    },
    /// The same, for who only times engines.
    #[error("an engine is built already, so it cannot be had in {asked}; use --precision native")]
    EngineIsBuilt {
        /// What was asked for.
        asked: Precision,
    },
    /// What is built from the file cannot be in that precision.
    #[error(
        "the file is {brings}, and {backend} cannot make it {asked}; use --precision {brings} or native, or give the \
         fp32 model"
    )]
    CannotBecome {
        /// Which backend.
        backend: BackendName,
        /// What the file is.
        brings: Precision,
        /// What was asked for.
        asked: Precision,
    },
    /// A limit that it would not keep.
    #[error("{backend} cannot be held to --gpu-mem-limit; leave one of the two out")]
    MemoryLimit {
        /// Which backend.
        backend: &'static str,
    },
}
