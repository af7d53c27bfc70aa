//! The model of a job: the one that was planned for, or none.

use prony_backend::ModelFile;
use prony_types::{Dim, FailureKind, ModelSpec};

use crate::failure::Failure;

/// The model, if it is still the one that was planned for.
pub(crate) fn open_as_planned(spec: &ModelSpec) -> Result<ModelFile, Failure> {
    let model = prony_backend::open_model(&spec.source).map_err(|e| Failure::new(FailureKind::Model, e))?;
    model.ensure_whole().map_err(|e| Failure::new(FailureKind::Model, e))?;
    if model.sha256 != spec.sha256 {
        let message = format!("{} changed on disk since the run was planned", spec.name);
        return Err(Failure::new(FailureKind::Model, message));
    }
    Ok(model)
}

/// Whether the file leaves open how many frames there are per call.
pub(crate) fn takes_any_batch(model: &ModelFile) -> bool {
    let inputs = &model.info.inputs;
    !inputs.is_empty() && inputs.iter().all(|input| matches!(input.dims.first(), Some(Dim::Named(_))))
}
