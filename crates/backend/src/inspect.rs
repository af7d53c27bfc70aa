//! What is in an engine, by TensorRT's own word.

use prony_model::ModelFile;
use prony_types::{EngineRecord, InspectJob};

use crate::BackendError;

/// Opens an engine and describes it: tensors, profiles, and what its layers compute in.
pub fn inspect_engine(_model: &ModelFile, _job: &InspectJob) -> Result<EngineRecord, BackendError> {
    Err(BackendError::Unsupported { backend: "tensorrt", what: "engines cannot be opened yet".into() })
}
