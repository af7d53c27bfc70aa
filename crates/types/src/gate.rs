//! Limits that a run is held to.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::vocabulary::{UnknownName, vocabulary};

vocabulary! {
    /// A limit that a run can be held to.
    GateName, "gate" {
        /// See [`GateSpec::map_drop_max`].
        MapDropMax = "map_drop_max",
        /// See [`GateSpec::latency_ratio_max`].
        LatencyRatioMax = "latency_ratio_max",
        /// See [`GateSpec::memory_growth_max`].
        MemoryGrowthMax = "memory_growth_max",
        /// See [`GateSpec::map_min`].
        MapMin = "map_min",
        /// See [`GateSpec::p99_max_ms`].
        P99MaxMs = "p99_max_ms",
    }
}

/// Limits that were asked for. A failed one is exit code 3.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GateSpec {
    /// Most points of mAP50-95 (hundredths) that a cell may lie below its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_drop_max: Option<f64>,
    /// Most that the median of `total` may be, as a multiple of the baseline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ratio_max: Option<f64>,
    /// Most that peak memory may be, as a multiple of the baseline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_growth_max: Option<f64>,
    /// Least mAP50-95, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_min: Option<f64>,
    /// Highest p99 of `total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_max_ms: Option<f64>,
    /// The run that relative limits are held against; without one `map_drop_max` takes the model's fp32 row.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::os_text::option")]
    pub baseline: Option<PathBuf>,
}

impl GateSpec {
    /// The limit of a gate, where one was asked for.
    pub const fn limit(&self, name: GateName) -> Option<f64> {
        match name {
            GateName::MapDropMax => self.map_drop_max,
            GateName::LatencyRatioMax => self.latency_ratio_max,
            GateName::MemoryGrowthMax => self.memory_growth_max,
            GateName::MapMin => self.map_min,
            GateName::P99MaxMs => self.p99_max_ms,
        }
    }

    /// Sets the limit of a gate; what it was before.
    pub const fn set(&mut self, name: GateName, limit: f64) -> Option<f64> {
        let place = match name {
            GateName::MapDropMax => &mut self.map_drop_max,
            GateName::LatencyRatioMax => &mut self.latency_ratio_max,
            GateName::MemoryGrowthMax => &mut self.memory_growth_max,
            GateName::MapMin => &mut self.map_min,
            GateName::P99MaxMs => &mut self.p99_max_ms,
        };
        place.replace(limit)
    }

    /// Every limit that was asked for.
    pub fn limits(&self) -> impl Iterator<Item = (GateName, f64)> + '_ {
        GateName::ALL.iter().filter_map(|&name| Some((name, self.limit(name)?)))
    }
}
