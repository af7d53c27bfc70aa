//! Limits as they are given: `--gate map_min=0.5`, or a table `[gates]` in a plan file.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, bail, ensure};
use prony_types::{CellSpec, CellStatus, GateName, GateSpec, RunRecord, UnknownName};
use serde::{Deserialize, Deserializer};

use crate::options::BenchOptions;
use crate::resolve::{Resolved, listed};

/// A limit that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GateLimit {
    pub(crate) name: GateName,
    pub(crate) limit: f64,
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
pub(crate) fn table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<GateLimit>, D::Error> {
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
pub(crate) fn merged(flags: Vec<GateLimit>, file: Vec<GateLimit>) -> Vec<GateLimit> {
    let rest = file.into_iter().filter(|gate| !flags.iter().any(|flag| flag.name == gate.name)).collect::<Vec<_>>();
    [flags, rest].concat()
}

/// The limits as the plan has them. One that nothing could ever be measured for is refused, and what a relative one is
/// compared with must be there, and readable.
pub(crate) fn spec(options: &BenchOptions) -> anyhow::Result<GateSpec> {
    let spec = spec_of(&options.gate, options.baseline.as_deref())?;
    let given = |names: [GateName; 2]| names.into_iter().find(|&name| spec.limit(name).is_some());
    if let (Some(name), None) = (given([GateName::MapMin, GateName::MapDropMax]), &options.data) {
        bail!("--gate {name} is about accuracy, and there is no data to measure it on; give --data");
    }
    if let (Some(name), true) = (given([GateName::P99MaxMs, GateName::LatencyRatioMax]), options.only_scored) {
        bail!("--gate {name} is about time, and `prony eval` measures none; use `prony bench --data`");
    }
    Ok(spec)
}

fn spec_of(limits: &[GateLimit], baseline: Option<&Path>) -> anyhow::Result<GateSpec> {
    let mut spec = limits_of(limits)?;
    let relative = [GateName::MapDropMax, GateName::LatencyRatioMax, GateName::MemoryGrowthMax];
    let Some(baseline) = baseline else {
        let alone = relative[1..].iter().find(|&&name| spec.limit(name).is_some());
        if let Some(name) = alone {
            bail!("--gate {name} is relative to an earlier run; name that with --baseline RUN");
        }
        return Ok(spec);
    };
    ensure!(
        relative.iter().any(|&name| spec.limit(name).is_some()),
        "--baseline is for relative limits: give --gate latency_ratio_max=, memory_growth_max= or map_drop_max="
    );
    prony_store::read_record_at(baseline).context("--baseline")?;
    spec.baseline = Some(std::path::absolute(baseline)?);
    Ok(spec)
}

/// A baseline that has none of the cells that would run has nothing that they could be compared with.
pub(crate) fn refuse_strange_baseline(baseline: &RunRecord, resolved: &Resolved) -> anyhow::Result<()> {
    let runs = |cell: &&CellSpec| !resolved.fates.contains_key(&cell.id);
    let cells: Vec<&str> = resolved.plan.cells.iter().filter(runs).map(|cell| cell.id.as_str()).collect();
    let completed = baseline.cells.iter().filter(|cell| cell.status == CellStatus::Completed);
    let known: Vec<&str> = completed.map(|cell| cell.id.as_str()).collect();
    ensure!(
        cells.is_empty() || cells.iter().any(|id| known.contains(id)),
        "--baseline {} has none of the cells that would run ({}); it measured {}: choose those with --backends and --precision, or give \
         another run",
        baseline.run.id,
        listed(&cells),
        if known.is_empty() { "nothing".to_owned() } else { listed(&known) }
    );
    Ok(())
}

/// The limits alone, each at most once.
pub(crate) fn limits_of(limits: &[GateLimit]) -> anyhow::Result<GateSpec> {
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
    fn a_table_takes_whole_numbers_and_a_flag_beats_it() {
        let file: BenchOptions = toml::from_str("[gates]\np99_max_ms = 20\nmap_min = 0.5\n").unwrap();
        let flags = BenchOptions { gate: vec!["map_min=0.7".parse().unwrap()], ..BenchOptions::default() };
        let spec = spec_of(&flags.or(file).gate, None).unwrap();
        assert_eq!((spec.map_min, spec.p99_max_ms), (Some(0.7), Some(20.0)));
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

    #[test]
    fn a_relative_limit_without_a_baseline_says_what_is_missing() {
        let given = |text: &str| spec_of(&[text.parse().unwrap()], None);
        let error = given("latency_ratio_max=1.1").unwrap_err().to_string();
        assert!(error.contains("--baseline RUN"), "{error}");
        assert!(given("memory_growth_max=1.1").is_err());
        assert_eq!(given("map_drop_max=1").unwrap().map_drop_max, Some(1.0), "the fp32 row stands in");
        let twice: Vec<GateLimit> = ["map_min=0.5", "map_min=0.6"].map(|text| text.parse().unwrap()).to_vec();
        assert!(spec_of(&twice, None).unwrap_err().to_string().contains("twice"));
        let missing = spec_of(&["latency_ratio_max=2".parse().unwrap()], Some(Path::new("/no/such/run"))).unwrap_err();
        assert!(format!("{missing:#}").contains("--baseline: ") && format!("{missing:#}").contains("/no/such/run"));
    }

    #[test]
    fn a_gate_that_nothing_could_be_measured_for_is_refused() {
        let options = |text: &str| BenchOptions { gate: vec![text.parse().unwrap()], ..BenchOptions::default() };
        for text in ["map_min=0.5", "map_drop_max=1"] {
            let error = spec(&options(text)).unwrap_err().to_string();
            assert!(error.contains("no data to measure it on; give --data"), "{error}");
            assert!(spec(&BenchOptions { data: Some("scenes".into()), ..options(text) }).is_ok());
        }
        let untimed = BenchOptions { only_scored: true, ..options("p99_max_ms=20") };
        assert!(spec(&untimed).unwrap_err().to_string().contains("`prony eval` measures none"));
    }
}
