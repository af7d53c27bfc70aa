//! Limits as they are given: `--gate map_min=0.5`, or a table `[gates]` in a plan file.

use std::str::FromStr;

use anyhow::ensure;
use prony_types::{GateName, GateSpec, UnknownName};
use serde::{Deserialize, Deserializer};

/// A limit that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateLimit {
    /// Of which figure.
    pub name: GateName,
    /// What it may be at most, or at least.
    pub limit: f64,
}

impl GateLimit {
    fn new(name: GateName, limit: f64) -> Result<GateLimit, String> {
        let (low, high) = match name {
            GateName::MapMin => (0.0, 1.0),
            GateName::MapDropMax => (0.0, 100.0),
            GateName::LatencyRatioMax | GateName::MemoryGrowthMax | GateName::P99MaxMs => (f64::MIN_POSITIVE, 1e9),
        };
        if (low..=high).contains(&limit) {
            return Ok(GateLimit { name, limit });
        }
        Err(match name {
            GateName::MapMin => format!("{name} is a share from 0 to 1, not {limit}"),
            GateName::MapDropMax => format!("{name} is in points from 0 to 100, not {limit}"),
            _ => format!("{name} must lie above 0, which {limit} does not"),
        })
    }
}

impl FromStr for GateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<GateLimit, String> {
        let known = || GateName::ALL.iter().map(|name| name.name()).collect::<Vec<_>>().join(", ");
        let Some((name, limit)) = text.split_once('=') else {
            return Err(format!("`{text}` is not NAME=LIMIT; gates are {}", known()));
        };
        let name: GateName = name.trim().parse().map_err(|e: UnknownName| e.to_string())?;
        let number = limit.trim().parse().map_err(|_| format!("`{limit}` is not a number, like {name}=0.5"))?;
        GateLimit::new(name, number)
    }
}

/// A `[gates]` table. Its fields are the gates, so that an unknown one is an error with its line.
pub fn table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<GateLimit>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Table {
        map_drop_max: Option<f64>,
        latency_ratio_max: Option<f64>,
        memory_growth_max: Option<f64>,
        map_min: Option<f64>,
        p99_max_ms: Option<f64>,
    }
    let table = Table::deserialize(deserializer)?;
    let given = [
        (GateName::MapDropMax, table.map_drop_max),
        (GateName::LatencyRatioMax, table.latency_ratio_max),
        (GateName::MemoryGrowthMax, table.memory_growth_max),
        (GateName::MapMin, table.map_min),
        (GateName::P99MaxMs, table.p99_max_ms),
    ];
    let limits = given.into_iter().filter_map(|(name, limit)| Some(GateLimit::new(name, limit?)));
    limits.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

/// The flags, and of the file what they do not name.
pub fn merged(flags: Vec<GateLimit>, file: Vec<GateLimit>) -> Vec<GateLimit> {
    let rest = file.into_iter().filter(|gate| !flags.iter().any(|flag| flag.name == gate.name)).collect::<Vec<_>>();
    [flags, rest].concat()
}

/// The limits alone, each at most once.
pub fn limits_of(limits: &[GateLimit]) -> anyhow::Result<GateSpec> {
    let mut spec = GateSpec::default();
    for gate in limits {
        let before = spec.set(gate.name, gate.limit);
        ensure!(before.is_none(), "--gate {} is given twice", gate.name);
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::BenchOptions;

    #[test]
    fn a_gate_is_a_known_name_and_a_number_that_it_can_be() {
        assert_eq!("map_min=0.5".parse(), Ok(GateLimit { name: GateName::MapMin, limit: 0.5 }));
        let error = |text: &str| text.parse::<GateLimit>().unwrap_err();
        let all = "map_drop_max, latency_ratio_max, memory_growth_max, map_min, p99_max_ms";
        assert_eq!(error("map=1"), format!("unknown gate `map`; known: {all}"));
        assert_eq!(error("map_min"), format!("`map_min` is not NAME=LIMIT; gates are {all}"));
        assert_eq!(error("map_min=high"), "`high` is not a number, like map_min=0.5");
        assert_eq!(error("map_min=50"), "map_min is a share from 0 to 1, not 50");
        for bad in
            ["p99_max_ms=nan", "p99_max_ms=-1", "latency_ratio_max=0", "memory_growth_max=inf", "map_drop_max=-1"]
        {
            assert!(bad.parse::<GateLimit>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_unknown_gate_in_a_file_is_an_error_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prony.toml");
        for (text, line, word) in [
            ("duration = 5\n\n[gates]\nmap_mim = 0.5\n", "line 4", "map_mim"),
            ("[gates]\nmap_min = 5\n", "", "0 to 1"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = BenchOptions::read(&path).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(word), "{error}");
        }
    }
}
