//! Whether the limits that were given make sense here: for what is measured, and with the baseline that is there.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use prony_types::{CellSpec, CellStatus, Fate, GateName, GateSpec, RunRecord};

use super::selection::listed;
use crate::gate_options::{GateLimit, limits_of};
use crate::options::BenchOptions;

/// The limits as the plan has them. One that nothing could ever be measured for is refused.
pub(super) fn spec(options: &BenchOptions) -> anyhow::Result<GateSpec> {
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
    spec.baseline = Some(std::path::absolute(baseline)?);
    Ok(spec)
}

/// What relative limits are compared with; it must be there, and readable.
pub fn read_baseline(gates: &GateSpec) -> anyhow::Result<Option<RunRecord>> {
    gates.baseline.as_deref().map(prony_store::read_record_at).transpose().context("--baseline")
}

/// A baseline that has none of the cells that would run has nothing that they could be compared with.
pub(super) fn refuse_strange_baseline(
    baseline: &RunRecord,
    cells: &[CellSpec],
    fates: &BTreeMap<String, Fate>,
) -> anyhow::Result<()> {
    let runs = |cell: &&CellSpec| !fates.contains_key(&cell.id);
    let cells: Vec<&str> = cells.iter().filter(runs).map(|cell| cell.id.as_str()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_whole_numbers_and_a_flag_beats_it() {
        let file: BenchOptions = toml::from_str("[gates]\np99_max_ms = 20\nmap_min = 0.5\n").unwrap();
        let flags = BenchOptions { gate: vec!["map_min=0.7".parse().unwrap()], ..BenchOptions::default() };
        let spec = spec_of(&flags.or(file).gate, None).unwrap();
        assert_eq!((spec.map_min, spec.p99_max_ms), (Some(0.7), Some(20.0)));
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
        let relative = spec_of(&["latency_ratio_max=2".parse().unwrap()], Some(Path::new("/no/such/run"))).unwrap();
        let missing = read_baseline(&relative).unwrap_err();
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
