//! Memory: what was used, and what it was allowed to be.

use serde::{Deserialize, Serialize};

/// Memory of a cell's worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// The limit that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_mib: Option<f64>,
    /// `hard`, `soft`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_type: Option<String>,
    /// Highest resident memory of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_peak_mib: Option<f64>,
    /// Device memory after warm-up: one reading, no peak. The name changes with the next schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_peak_mib: Option<f64>,
    /// Highest sum that went through our own allocator on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator_peak_mib: Option<f64>,
    /// Device memory of the process as the driver counts it, context and kernels included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_mib: Option<f64>,
    /// Highest resident memory of the worker while it loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_host_peak_mib: Option<f64>,
    /// Device memory that was gone once it had loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_device_mib: Option<f64>,
    /// Whether host and device share their memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unified: Option<bool>,
    /// Whether the limit held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_limit: Option<bool>,
    /// Each time it did not.
    #[serde(default)]
    pub violations: Vec<String>,
    /// That it held, and how little was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Memory against its limit, over all cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemorySafety {
    /// Absent where no limit was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_within_limit: Option<bool>,
    /// Violations over all cells.
    pub total_violations: u64,
    /// Lowest memory the system could still give, seen at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_available_mib: Option<f64>,
}
