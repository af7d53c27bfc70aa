//! TensorRT through its own library.

use prony_types::{BackendName, ModelInfo, Precision, ProviderSpec};

use crate::{Backend, BackendError, Session, SessionSpec};

/// TensorRT, run by us or by its own benchmark.
pub(crate) struct Tensorrt(pub(crate) BackendName);

impl Backend for Tensorrt {
    fn name(&self) -> BackendName {
        self.0
    }

    fn supports(&self, _precision: Precision, _model: &ModelInfo, _provider: &ProviderSpec) -> Result<(), String> {
        Err(format!("{} is not there yet", self.0))
    }

    fn open(&self, _spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError> {
        Err(BackendError::Unsupported { backend: self.0.name(), what: "is not there yet".into() })
    }
}
