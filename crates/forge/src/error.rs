//! What can go wrong while an artifact is made.

use std::io;
use std::path::{Path, PathBuf};

use prony_types::{DeviceUse, FailureKind};

/// Why there is no artifact.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForgeError {
    /// It cannot be done with this TensorRT, on this GPU or from this file; the text says what would help.
    #[error("{0}")]
    Unsupported(String),
    /// The model cannot be made into an engine.
    #[error("{0}")]
    Model(String),
    /// The data that int8 ranges should be found on are no good.
    #[error("calibration: {0}")]
    Calibration(String),
    /// The cache cannot be read or written.
    #[error("cannot {doing} {}: {reason}", path.display())]
    Cache {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's word.
        reason: io::Error,
    },
    /// The memory of host or device does not suffice.
    #[error("{0}")]
    Memory(String),
    /// The limit on the device's memory does not suffice.
    #[error("{reason}")]
    Budget {
        /// What was refused, and what failed because of it.
        reason: String,
        /// What was used, and each request that went beyond the limit.
        device: Box<DeviceUse>,
    },
    /// The build itself failed.
    #[error("{0}")]
    Build(String),
    /// Whoever asked for it does not want it any more.
    #[error("interrupted")]
    Interrupted,
    /// The build took too long.
    #[error("the build was ended after {0} s, the longest that it may take (--build-timeout)")]
    Timeout(u64),
    /// Something of Prony's own cannot be written as JSON. What is found by its hash is then not found by that of nothing.
    #[error("internal error: {what} cannot be written as JSON: {reason}; please report it")]
    Json {
        /// What was to be written.
        what: &'static str,
        /// The writer's word.
        reason: serde_json::Error,
    },
}

impl ForgeError {
    /// Whose fault it is.
    pub fn kind(&self) -> FailureKind {
        match self {
            ForgeError::Unsupported(_) => FailureKind::Unsupported,
            ForgeError::Model(_) => FailureKind::Model,
            ForgeError::Calibration(_) => FailureKind::Input,
            ForgeError::Budget { .. } => FailureKind::Budget,
            ForgeError::Json { .. } => FailureKind::Internal,
            ForgeError::Cache { .. }
            | ForgeError::Memory(_)
            | ForgeError::Build(_)
            | ForgeError::Interrupted
            | ForgeError::Timeout(_) => FailureKind::Runtime,
        }
    }

    /// The device's memory as it was, where that is the reason.
    pub fn device_use(&self) -> Option<&DeviceUse> {
        match self {
            ForgeError::Budget { device, .. } => Some(device),
            _ => None,
        }
    }

    pub(crate) fn json(what: &'static str) -> impl FnOnce(serde_json::Error) -> ForgeError {
        move |reason| ForgeError::Json { what, reason }
    }

    pub(crate) fn cache(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ForgeError {
        move |reason| ForgeError::Cache { doing, path: path.to_owned(), reason }
    }
}

/// What TensorRT's words mean for whoever asked.
impl From<prony_nvinfer::Error> for ForgeError {
    fn from(error: prony_nvinfer::Error) -> ForgeError {
        use prony_nvinfer::Error;
        match error {
            Error::Parse { .. } => ForgeError::Model(error.to_string()),
            Error::NotCreated { .. } | Error::Refused { .. } | Error::Text { .. } => {
                ForgeError::Build(error.to_string())
            }
            _ => ForgeError::Unsupported(error.to_string()),
        }
    }
}
