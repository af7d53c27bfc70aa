//! Files that a session is opened with.

use prony_model::{ModelError, ModelFile};
use prony_types::{ArtifactSpec, BackendName, ModelSource};

use crate::error::BackendError;

/// Opens what was built from a model, if it still has the hash that was promised. Hashing takes a while and is no part of
/// loading, so it is done beforehand, as it is for a model's own file; the bytes are read again when they are needed.
pub fn open_artifact(artifact: &ArtifactSpec, backend: BackendName) -> Result<ModelFile, BackendError> {
    let refuse = |reason: String| BackendError::Load { backend: backend.name(), reason };
    let mut file = ModelFile::read(&artifact.path).map_err(|e| refuse(e.to_string()))?;
    if file.sha256 != artifact.sha256 {
        let (path, found) = (artifact.path.display(), &file.sha256);
        return Err(refuse(format!(
            "{path} is not what was made: its hash is {found}, not {}; make it again",
            artifact.sha256
        )));
    }
    file.forget_bytes_on_disk();
    Ok(file)
}

/// Reads the model that a plan points at.
pub fn open_model(source: &ModelSource) -> Result<ModelFile, ModelError> {
    ModelFile::open(source)
}
