//! An engine that was loaded and is not in use yet: what it takes is known before anybody decides what it is fed.

use prony_nvinfer::{Error, IoTensor};
use prony_types::TensorInfo;

use super::inspect::profiles;
use super::io;
use super::load::Loaded;
use super::session::TrtSession;
use super::{NAME, load_for, session_of};
use crate::{BackendError, Session, SessionSpec};

/// A loaded engine. [`OpenedEngine::session`] makes it ready to run, without loading it a second time.
pub struct OpenedEngine {
    loaded: Loaded,
    inputs: Vec<TensorInfo>,
    outputs: Vec<TensorInfo>,
    tuned: Option<[u32; 2]>,
}

/// Loads the engine of a session, as [`Backend::open`](crate::Backend::open) does first. Shapes are of no concern yet.
pub fn open_engine(spec: &SessionSpec<'_>) -> Result<OpenedEngine, BackendError> {
    let loaded = load_for(spec)?;
    let failed = |error: Error| BackendError::Load { backend: NAME, reason: error.to_string() };
    let (inputs, outputs): (Vec<IoTensor>, Vec<IoTensor>) =
        loaded.engine.io().map_err(failed)?.into_iter().partition(|tensor| tensor.is_input);
    let ranges = profiles(&loaded.engine, &inputs).map_err(failed)?;
    let tuned = inputs.iter().zip(ranges.first().into_iter().flatten()).find_map(|(_, range)| {
        let [_, _, height, width] = range.as_ref()?.opt[..] else { return None };
        Some([u32::try_from(height).ok()?, u32::try_from(width).ok()?])
    });
    let infos = |tensors: &[IoTensor]| tensors.iter().map(io::info).collect();
    Ok(OpenedEngine { inputs: infos(&inputs), outputs: infos(&outputs), tuned, loaded })
}

impl OpenedEngine {
    /// What goes in, in the engine's order; an axis that the caller chooses has no size.
    pub fn inputs(&self) -> &[TensorInfo] {
        &self.inputs
    }

    /// What comes out, in the order in which a session has it.
    pub fn outputs(&self) -> &[TensorInfo] {
        &self.outputs
    }

    /// Height and width of the images that the engine was tuned for, where it leaves them open.
    pub fn tuned_imgsz(&self) -> Option<[u32; 2]> {
        self.tuned
    }

    /// Makes it ready to run, in the shapes of `spec`, which must be the one that it was opened with in everything else.
    pub fn session(self, spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError> {
        let session: TrtSession = session_of(self.loaded, spec, None)?;
        Ok(Box::new(session))
    }
}
