//! How long cells are measured, by what was asked for and by what gates need.

use anyhow::{Context as _, ensure};
use prony_judge::stats::P99_NEEDS;
use prony_types::{BudgetSpec, GateName, GateSpec, SampleFloor};

use super::tier::Choice;
use super::within;
use crate::options::{BenchOptions, Seconds};

/// Without `--duration`, a cell is given up at this many measured seconds.
const LIMIT_S: f64 = 20.0;
/// Measured seconds after which a cell stops even without the samples that it needs at least.
const FLOOR_LIMIT_S: f64 = 600.0;

pub(super) fn budget(options: &BenchOptions, tier: Option<&Choice>, gates: &GateSpec) -> anyhow::Result<BudgetSpec> {
    let at_least = |flag: &str, value: Option<Seconds>, low: f64| -> anyhow::Result<Option<f64>> {
        value.map(|s| within(flag, s.0, low, 86_400.0).with_context(|| format!("{flag} is in seconds"))).transpose()
    };
    let duration_s = at_least("--duration", options.duration, 0.1)?;
    let samples = options.samples.map(|n| within("--samples", n, 1, 100_000_000)).transpose()?;
    let p99 = gates.p99_max_ms.is_some();
    if let (true, Some(samples)) = (p99, samples) {
        ensure!(
            samples >= P99_NEEDS,
            "--gate {} needs {P99_NEEDS} samples per cell, got --samples {samples}; use --samples {P99_NEEDS}, or leave it out",
            GateName::P99MaxMs
        );
    }
    // A tier's length, and what a gate needs, apply only where no length was given.
    let free = duration_s.is_none() && samples.is_none();
    let tier = tier.filter(|_| free);
    let needed = [tier.and_then(|tier| tier.at_least), (p99 && free).then_some(P99_NEEDS)];
    Ok(BudgetSpec {
        warmup_s: options.warmup.map(|s| s.0),
        duration_s: duration_s.or(tier.and_then(|tier| tier.duration_s)),
        samples,
        limit_s: tier.and_then(|tier| tier.limit_s).unwrap_or(LIMIT_S),
        at_least: needed.into_iter().flatten().max().map(|samples| SampleFloor { samples, limit_s: FLOOR_LIMIT_S }),
        timeout_s: at_least("--timeout", options.timeout, 1.0)?.unwrap_or(120.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Tier;

    fn gate() -> GateSpec {
        GateSpec { p99_max_ms: Some(20.0), ..GateSpec::default() }
    }

    fn floor(options: &BenchOptions, gates: &GateSpec) -> Option<u64> {
        let tier = options.tier.map(Choice::of);
        budget(options, tier.as_ref(), gates).unwrap().at_least.map(|floor| floor.samples)
    }

    #[test]
    fn a_p99_gate_lengthens_the_budget_unless_a_length_was_given() {
        let plain = BenchOptions::default();
        assert_eq!(floor(&plain, &gate()), Some(662));
        assert_eq!(floor(&plain, &GateSpec::default()), None);
        assert_eq!(floor(&BenchOptions { duration: Some(Seconds(5.0)), ..plain.clone() }, &gate()), None);
        assert_eq!(floor(&BenchOptions { samples: Some(1000), ..plain }, &gate()), None);
    }

    #[test]
    fn a_p99_gate_with_too_few_samples_is_refused_with_the_flag_that_helps() {
        let few = BenchOptions { samples: Some(661), ..BenchOptions::default() };
        let error = budget(&few, None, &gate()).unwrap_err().to_string();
        assert!(error.contains("got --samples 661; use --samples 662"), "{error}");
        let enough = BenchOptions { samples: Some(662), ..BenchOptions::default() };
        assert!(budget(&enough, None, &gate()).is_ok());
    }

    #[test]
    fn the_quick_tier_takes_64_samples_or_2_s() {
        let quick = BenchOptions { tier: Some(Tier::Quick), ..BenchOptions::default() };
        assert_eq!(floor(&quick, &GateSpec::default()), Some(64));
        assert_eq!(budget(&quick, Some(&Choice::of(Tier::Quick)), &GateSpec::default()).unwrap().duration_s, Some(2.0));
        assert_eq!(floor(&quick, &gate()), Some(662), "what the gate needs is more");
        assert_eq!(floor(&BenchOptions { duration: Some(Seconds(1.0)), ..quick }, &GateSpec::default()), None);
    }
}
