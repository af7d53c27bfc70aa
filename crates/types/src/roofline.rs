//! What a model costs at least, what a device gives at most, and what follows from the two.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Precision;

/// What one layer costs at least: its arithmetic, and what it must read and write where it is computed for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerCost {
    /// Operations; a multiply-add counts 2.
    pub flops: u64,
    /// Its weights.
    pub weight_bytes: u64,
    /// What goes in and comes out; 0 for what can be done while a neighbour has the data at hand.
    pub activation_bytes: u64,
}

/// Whether a peak was seen or follows from what the driver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeakOrigin {
    /// Measured on this machine.
    Measured,
    /// From clocks and counts of units, as the driver tells them.
    Computed,
}

impl PeakOrigin {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            PeakOrigin::Measured => "measured",
            PeakOrigin::Computed => "computed",
        }
    }
}

/// The most that a device can do in one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeakRecord {
    /// `cpu`, or `gpu` with its number behind it.
    pub device: String,
    /// Arithmetic that the figure is of.
    pub precision: Precision,
    /// Operations a second; a multiply-add counts 2.
    pub flops_per_s: f64,
    /// Bytes a second from memory; absent where it cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    /// The last-level cache: what fits need not come from memory. Absent where it cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// CPU threads that it was measured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Where it comes from.
    pub origin: PeakOrigin,
    /// Instructions it was measured with, or what it was computed from, in words.
    #[serde(default)]
    pub how: String,
}

impl fmt::Display for PeakRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {:.0} GFLOP/s", self.device, self.precision, self.flops_per_s / 1e9)?;
        if let Some(bandwidth) = self.bytes_per_s {
            write!(f, ", {:.1} GB/s", bandwidth / 1e9)?;
        }
        write!(f, ", {}", self.origin.name())?;
        if !self.how.is_empty() {
            write!(f, " ({})", self.how)?;
        }
        Ok(())
    }
}

/// What a prediction is bounded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// Moving data.
    Memory,
}

impl Bound {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Compute => "compute",
            Bound::Memory => "memory",
        }
    }
}

/// A model on a device by the roofline: the time below which no backend that computes layer by layer can come. It is a
/// floor, not a forecast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RooflineRecord {
    /// Operations of one call; a multiply-add counts 2.
    pub flops: u64,
    /// What the layers of one call read and write, element-wise ones taken to be done on the way.
    pub bytes: u64,
    /// The sum over the layers of the larger of the time to compute and the time to move.
    pub predicted_ms: f64,
    /// Which of the two makes up most of it.
    pub bound: Bound,
    /// The device of the peak, as [`PeakRecord::device`] has it.
    pub device: String,
    /// Median of `inference` over the same call; absent until it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_ms: Option<f64>,
}

impl RooflineRecord {
    /// Operations a byte.
    pub fn intensity(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.flops as f64 / self.bytes as f64)
    }

    /// Share of the peak that was reached, from 0 to 1.
    pub fn share(&self) -> Option<f64> {
        self.measured_ms.filter(|&ms| ms > 0.0).map(|ms| self.predicted_ms / ms)
    }
}

impl fmt::Display for RooflineRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "predicted {} ms ({})", short(self.predicted_ms), self.bound.name())?;
        if let (Some(measured), Some(share)) = (self.measured_ms, self.share()) {
            write!(f, ", measured {} ms: {:.0} % of the peak", short(measured), share * 100.0)?;
        }
        Ok(())
    }
}

/// Three digits that matter.
fn short(ms: f64) -> String {
    let decimals = match ms {
        _ if ms >= 100.0 => 0,
        _ if ms >= 10.0 => 1,
        _ if ms >= 0.1 => 2,
        _ => 4,
    };
    format!("{ms:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicted_stands_against_measured() {
        let record = RooflineRecord {
            flops: 8_700_000_000,
            bytes: 50_000_000,
            predicted_ms: 2.124,
            bound: Bound::Compute,
            device: "cpu".into(),
            measured_ms: Some(5.9),
        };
        assert_eq!(record.to_string(), "predicted 2.12 ms (compute), measured 5.90 ms: 36 % of the peak");
        assert_eq!(record.intensity(), Some(174.0));
        let alone = RooflineRecord { measured_ms: None, bound: Bound::Memory, predicted_ms: 0.01234, ..record };
        assert_eq!(alone.to_string(), "predicted 0.0123 ms (memory)");
    }
}
