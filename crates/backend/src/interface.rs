//! What a backend is to everybody else.

use prony_types::{BackendName, LayersRecord, ModelInfo, PlacementRecord, Precision, ProviderSpec};

use crate::error::BackendError;
use crate::session::{Session, SessionSpec};
use crate::unsupported::Unsupported;

/// Something that can execute models. Asking it anything but to open a model loads no library.
pub trait Backend {
    /// Its name.
    fn name(&self) -> BackendName;

    /// Whether it could execute a model in a precision; the reason, and the way out, if not.
    fn supports(&self, precision: Precision, model: &ModelInfo, provider: &ProviderSpec) -> Result<(), Unsupported>;

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
