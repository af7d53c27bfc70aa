//! Cells that were not loaded together, and cells that ran out of memory.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Cells that were loaded together and timed in the same rounds. Cells of different waves have no rounds in common: they are
/// compared unpaired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaveRecord {
    /// Ids of the cells.
    pub cells: Vec<String>,
    /// Why no other cell was loaded with them; absent where none was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A worker that the kernel killed because there was no memory left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutOfMemory {
    /// What the worker was doing.
    pub doing: String,
    /// The most memory it was seen to hold; absent where it died before it could be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_mib: Option<f64>,
    /// All the memory that there is for it and the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_mib: Option<f64>,
    /// Whether a control group sets that limit, and not the machine.
    #[serde(default)]
    pub of_cgroup: bool,
    /// Other cells that were loaded at that time.
    pub beside: u32,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "killed by the kernel out of memory")?;
        match (self.used_mib, self.limit_mib) {
            (Some(used), Some(limit)) => write!(f, " at {used:.0} MiB of {limit:.0} MiB")?,
            (Some(used), None) => write!(f, " at {used:.0} MiB")?,
            (None, Some(limit)) => write!(f, " with {limit:.0} MiB in all")?,
            (None, None) => {}
        }
        if self.limit_mib.is_some() {
            f.write_str(if self.of_cgroup { " (limit of its control group)" } else { " (memory of the machine)" })?;
        }
        write!(f, " while {}", self.doing)?;
        match self.beside {
            0 => Ok(()),
            1 => f.write_str(", beside 1 other cell"),
            others => write!(f, ", beside {others} other cells"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_are_said_as_far_as_they_are_known() {
        let whole = OutOfMemory {
            doing: "warming up".into(),
            used_mib: Some(812.4),
            limit_mib: Some(1024.0),
            of_cgroup: true,
            beside: 2,
        };
        assert_eq!(
            whole.to_string(),
            "killed by the kernel out of memory at 812 MiB of 1024 MiB (limit of its control group) while warming up, beside 2 \
             other cells"
        );
        let early = OutOfMemory { used_mib: None, limit_mib: None, beside: 0, ..whole };
        assert_eq!(early.to_string(), "killed by the kernel out of memory while warming up");
    }
}
