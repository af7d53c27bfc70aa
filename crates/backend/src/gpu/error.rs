//! Why a GPU cannot be used, or not for this.

use std::ffi::CStr;
use std::fmt;

use cudarc::driver::result::DriverError;

/// Why a GPU cannot be used, or not for this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver's library is not there.
    #[error("no NVIDIA driver: libcuda.so.1 cannot be opened; install the driver")]
    NoDriver,
    /// The driver is there and does not work.
    #[error("the NVIDIA driver does not start: {0}")]
    Start(DriverStatus),
    /// A number without a GPU.
    #[error("there is no GPU {number}; there are {count}, numbered from 0")]
    NoSuchGpu {
        /// What was asked for.
        number: u32,
        /// How many there are.
        count: i32,
    },
    /// A call of the driver failed.
    #[error("{0}")]
    Driver(DriverStatus),
    /// Memory of the GPU that the driver did not give.
    #[error("{bytes} bytes of device memory: {reason}")]
    DeviceMemory {
        /// How much was asked for.
        bytes: u64,
        /// The driver's reason.
        reason: String,
    },
    /// Memory of the host that the driver did not give.
    #[error("{bytes} bytes of page-locked memory: {reason}")]
    HostMemory {
        /// How much was asked for.
        bytes: usize,
        /// The driver's reason.
        reason: DriverStatus,
    },
    /// Memory that is not where its user needs it.
    #[error("the driver gave memory that is not aligned to {alignment}")]
    Misaligned {
        /// What was asked for.
        alignment: u64,
    },
    /// More than the limit leaves.
    #[error("{bytes} bytes were asked for where {held} of {limit} are held (--gpu-mem-limit)")]
    Limit {
        /// How much was asked for.
        bytes: u64,
        /// What was held then.
        held: u64,
        /// The most that may be held.
        limit: u64,
    },
    /// The budget was closed.
    #[error("nothing more is given out")]
    Closed,
    /// A test asked for it.
    #[error("allocation {number} was refused on purpose (PRONY_FAIL_ALLOCATION)")]
    OnPurpose {
        /// Counted from 1.
        number: u64,
    },
    /// A copy to less memory than it needs.
    #[error("{bytes} bytes do not fit into {there} of device memory")]
    DoesNotFit {
        /// How much was to be copied.
        bytes: usize,
        /// How much there is.
        there: usize,
    },
    /// A copy from less memory than was asked for.
    #[error("there are {there} bytes of device memory, not {bytes}")]
    TooShort {
        /// How much was to be copied.
        bytes: usize,
        /// How much there is.
        there: usize,
    },
    /// The driver is older than a function of it.
    #[error("the driver has no {0}")]
    NoFunction(&'static str),
    /// Work that was to be recorded could not be put on the stream.
    #[error("{0}")]
    Work(String),
    /// Recording ended without anything.
    #[error("nothing was recorded")]
    NothingRecorded,
}

/// What a call of the driver answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverStatus {
    /// The driver's number for it.
    pub code: u32,
    /// Its name and what it means.
    pub text: String,
}

impl fmt::Display for DriverStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Asked of the driver at once: whoever shows it later need not have one.
impl From<DriverError> for DriverStatus {
    fn from(error: DriverError) -> DriverStatus {
        let text = |name: Result<&CStr, DriverError>| {
            name.map_or_else(|_| format!("{:?}", error.0), |name| name.to_string_lossy().into_owned())
        };
        let text = format!("{}: {}", text(error.error_name()), text(error.error_string()));
        DriverStatus { code: error.0 as u32, text }
    }
}

impl From<DriverError> for GpuError {
    fn from(error: DriverError) -> GpuError {
        GpuError::Driver(error.into())
    }
}

/// For sessions, whose errors name the backend and hold the reason as a sentence.
impl From<GpuError> for String {
    fn from(error: GpuError) -> String {
        error.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_what_was_asked_for_and_why() {
        let status = DriverStatus { code: 2, text: "CUDA_ERROR_OUT_OF_MEMORY: out of memory".to_owned() };
        for (error, text) in [
            (GpuError::NoSuchGpu { number: 3, count: 1 }, "there is no GPU 3; there are 1, numbered from 0"),
            (
                GpuError::DeviceMemory { bytes: 64, reason: status.text.clone() },
                "64 bytes of device memory: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            ),
            (
                GpuError::HostMemory { bytes: 64, reason: status.clone() },
                "64 bytes of page-locked memory: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            ),
            (GpuError::OnPurpose { number: 7 }, "allocation 7 was refused on purpose (PRONY_FAIL_ALLOCATION)"),
            (GpuError::DoesNotFit { bytes: 9, there: 8 }, "9 bytes do not fit into 8 of device memory"),
            (GpuError::TooShort { bytes: 9, there: 8 }, "there are 8 bytes of device memory, not 9"),
            (GpuError::Driver(status), "CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
