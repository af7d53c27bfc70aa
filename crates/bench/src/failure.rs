//! Why a worker ends before its time, whoever found out.

use std::{fmt, io};

use prony_backend::BackendError;
use prony_forge::ForgeError;
use prony_types::{DeviceUse, FailureKind};

use crate::measure::MeasureError;

/// Why a worker ends before its time.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) device: Option<DeviceUse>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl fmt::Display) -> Failure {
        Failure { kind, message: message.to_string(), device: None }
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Failure {
        Failure { device: error.device_use().cloned(), ..Failure::new(error.kind(), error) }
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Failure {
        Failure { device: error.device_use().cloned(), ..Failure::new(error.kind(), error) }
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Failure {
        match error {
            MeasureError::Backend(error) => error.into(),
            MeasureError::Head(error) => Failure::new(FailureKind::Head, error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::new(FailureKind::Internal, format!("the pipe to the parent broke: {error}"))
    }
}
