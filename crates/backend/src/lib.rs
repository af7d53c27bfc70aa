//! What executes a model: the [`Backend`] and [`Session`] traits, one file a backend, and the conformance suite
//! that every backend passes.

pub mod affinity;
pub mod conformance;

mod error;
mod fault;
mod rten;
mod session;

use prony_model::{ModelError, ModelFile};
use prony_types::{BackendName, ModelSource, Precision};

pub use error::BackendError;
pub use fault::FaultySession;
pub use session::{Session, SessionSpec, SlotInput, Timing};

/// Something that can execute models.
pub trait Backend {
    /// Its name.
    fn name(&self) -> BackendName;

    /// Version of the library behind it.
    fn version(&self) -> Option<String>;

    /// Whether it could execute a precision of an fp32 file here; the reason if not.
    fn supports(&self, precision: Precision) -> Result<(), String>;

    /// How many devices it can run on here.
    fn devices(&self) -> u32;

    /// Loads a model.
    fn open(&self, spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError>;
}

/// The backend behind a name.
pub fn backend(name: BackendName) -> Box<dyn Backend> {
    match name {
        BackendName::Rten => Box::new(rten::Rten),
    }
}

/// Reads the model that a plan points at.
pub fn open_model(source: &ModelSource) -> Result<ModelFile, ModelError> {
    ModelFile::open(source)
}
