//! One timed frame, and one reading of the sensors.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Phase;

/// A part of the way from a decoded frame to boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Letterbox, normalise, layout.
    Preprocess,
    /// Host to device.
    H2d,
    /// The model itself.
    Inference,
    /// Device to host.
    D2h,
    /// Decoding and NMS.
    Postprocess,
    /// From a decoded frame in host memory to boxes in host memory; measured, never summed.
    Total,
}

impl Stage {
    /// The parts, in the order in which they happen; without [`Stage::Total`].
    pub const PARTS: [Stage; 5] = [Stage::Preprocess, Stage::H2d, Stage::Inference, Stage::D2h, Stage::Postprocess];

    /// All stages, the total last.
    pub const ALL: [Stage; 6] =
        [Stage::Preprocess, Stage::H2d, Stage::Inference, Stage::D2h, Stage::Postprocess, Stage::Total];

    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Preprocess => "preprocess",
            Stage::H2d => "h2d",
            Stage::Inference => "inference",
            Stage::D2h => "d2h",
            Stage::Postprocess => "postprocess",
            Stage::Total => "total",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One timed frame (or batch), as it travels through the ring. Times are CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the frame was picked up.
    pub start_ns: u64,
    /// What the sample was taken for.
    pub phase: Phase,
    /// Round of the schedule; 0 before the first.
    pub round: u32,
    /// Which of the resident frames (the first one, for a batch).
    pub frame: u32,
    /// Boxes that came out.
    pub detections: u32,
    /// Duration by [`Stage::PARTS`]; `None` where the stage does not exist.
    pub parts_ns: [Option<u64>; 5],
    /// Duration of the whole.
    pub total_ns: u64,
}

impl Sample {
    /// Duration of a stage; `None` where it does not exist.
    pub fn stage_ns(&self, stage: Stage) -> Option<u64> {
        match stage {
            Stage::Total => Some(self.total_ns),
            part => self.parts_ns[part as usize],
        }
    }
}

/// One reading of the host's sensors: a row of `metrics.jsonl`. A sensor that is not there is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// The cell that was being timed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Which attempt at that cell, from 1; absent while the cell did something else than being timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Share of all CPUs that was busy since the last reading, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// CPU of the timed worker since the last reading; 100 is one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_cpu_percent: Option<f64>,
    /// Resident memory of the timed worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_rss_bytes: Option<u64>,
    /// Memory the system could still give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_available_bytes: Option<u64>,
    /// Swap in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_used_bytes: Option<u64>,
    /// Load average over one minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load1: Option<f64>,
    /// Current frequency by CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_khz: Vec<u64>,
    /// Temperature by thermal zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temps_c: Vec<(String, f64)>,
    /// Thermal throttle events of all CPUs since boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_events: Option<u64>,
    /// Sensors that exist and could not be read this time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}
