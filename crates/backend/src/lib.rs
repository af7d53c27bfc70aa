//! What executes a model: the [`Backend`] and [`Session`] traits, one file a backend, and the conformance suite
//! that every backend passes.

pub mod affinity;
pub mod conformance;
pub mod gpu;

mod buffer;
mod error;
mod fault;
mod openvino;
mod ort;
mod precision;
mod rten;
mod session;
mod tensorrt;
mod trtexec;

use prony_model::ModelError;
pub use prony_model::{ModelFile, mismatch};
use prony_types::{
    ArtifactSpec, BackendName, LayersRecord, ModelInfo, ModelSource, PlacementRecord, Precision, ProviderSpec,
};

pub use buffer::Buffer;
pub use error::BackendError;
pub use fault::FaultySession;
pub use ort::NO_TF32;
pub use precision::{made_elsewhere, precision_of};
pub use session::{Session, SessionSpec, SlotInput, Timing};
pub use tensorrt::{OpenedEngine, inspect_engine, open_engine};

/// Something that can execute models. Asking it anything but to open a model loads no library.
pub trait Backend {
    /// Its name.
    fn name(&self) -> BackendName;

    /// Whether it could execute a model in a precision; the reason, and the way out, if not.
    fn supports(&self, precision: Precision, model: &ModelInfo, provider: &ProviderSpec) -> Result<(), String>;

    /// Loads a model.
    fn open(&self, spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError>;

    /// What really ran, found in a session of its own that is fed with `fill`.
    fn proof(&self, _spec: &SessionSpec<'_>, _fill: &mut dyn FnMut(&mut dyn Session)) -> Proof {
        Proof::default()
    }
}

/// What really ran, each part with the reason where it could not be found out.
#[derive(Debug)]
pub struct Proof {
    /// Where the nodes of a graph ran; `None` where the backend has one place only, or cannot tell.
    pub placement: Result<Option<PlacementRecord>, BackendError>,
    /// What layers computed in; `None` where the backend cannot tell, or where that is known without.
    pub layers: Result<Option<LayersRecord>, BackendError>,
}

impl Default for Proof {
    fn default() -> Proof {
        Proof { placement: Ok(None), layers: Ok(None) }
    }
}

/// The backend behind a name.
pub fn backend(name: BackendName) -> Box<dyn Backend> {
    match name {
        BackendName::Rten => Box::new(rten::Rten),
        BackendName::OrtCpu | BackendName::OrtCuda | BackendName::OrtTensorrt | BackendName::OrtOpenvino => {
            Box::new(ort::Ort(name))
        }
        BackendName::Openvino => Box::new(openvino::Openvino),
        BackendName::Tensorrt => Box::new(tensorrt::Tensorrt(name)),
        BackendName::Trtexec => Box::new(trtexec::Trtexec),
    }
}

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
