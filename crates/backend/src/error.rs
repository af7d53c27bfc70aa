//! What can go wrong in a backend.

use prony_types::{DType, DeviceUse, FailureKind, TensorInfo};

/// Why a session could not be made or a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The library does not take the model.
    #[error("{backend}: cannot load the model: {reason}")]
    Load {
        /// Which backend.
        backend: &'static str,
        /// Its words.
        reason: String,
    },
    /// The model asks for what the backend cannot do.
    #[error("{backend}: {what}")]
    Unsupported {
        /// Which backend.
        backend: &'static str,
        /// What it cannot do, and what to do instead.
        what: String,
    },
    /// The requested shape does not fit the declared one.
    #[error("input {tensor} does not take {what}")]
    Shape {
        /// The input.
        tensor: TensorInfo,
        /// What was asked.
        what: String,
    },
    /// An input has a type that the backend cannot be fed with.
    #[error(
        "input `{name}` is {dtype}, which this backend does not take; export the model with fp32 inputs (without half)"
    )]
    InputType {
        /// The input.
        name: String,
        /// Its type.
        dtype: DType,
    },
    /// The device's memory, or the part of it that may be used, is too small.
    #[error("{backend}: not enough GPU memory: {reason}")]
    Memory {
        /// Which backend.
        backend: &'static str,
        /// What was refused, and what failed because of it.
        reason: String,
        /// What was used, and each request that went beyond the limit.
        device: Box<DeviceUse>,
    },
    /// A call failed.
    #[error("{backend}: inference failed: {reason}")]
    Run {
        /// Which backend.
        backend: &'static str,
        /// Its words.
        reason: String,
    },
}

impl BackendError {
    /// Whose fault it is.
    pub fn kind(&self) -> FailureKind {
        match self {
            BackendError::Load { .. } => FailureKind::Model,
            BackendError::Unsupported { .. } => FailureKind::Unsupported,
            BackendError::Shape { .. } | BackendError::InputType { .. } => FailureKind::Input,
            BackendError::Memory { device, .. } if !device.violations.is_empty() => FailureKind::Budget,
            BackendError::Memory { .. } | BackendError::Run { .. } => FailureKind::Runtime,
        }
    }

    /// The device's memory as it was, where that is the reason.
    pub fn device_use(&self) -> Option<&DeviceUse> {
        match self {
            BackendError::Memory { device, .. } => Some(device),
            _ => None,
        }
    }
}
