//! What is next: when and how long each cell is timed.

use std::time::Duration;

use prony_bench::WARMUP_LIMIT_S;
use prony_judge::stopping::{self, Decision, Progress};
use prony_types::{BudgetSpec, MethodRecord, Plan};

/// Length of a round.
const ROUND_S: f64 = 0.5;
/// Fewer rounds cannot show whether the machine held still, and a burst in one would decide a comparison.
const MIN_ROUNDS: u32 = 10;
const THROUGHPUT_S: f64 = 2.0;

/// The next round of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slice {
    pub(crate) seconds: f64,
    pub(crate) max_samples: Option<u64>,
}

/// Between two cells the machine may settle; a cell alone needs no more than a breath.
pub(crate) fn pause(alone: bool) -> Duration {
    Duration::from_millis(if alone { 20 } else { 100 })
}

/// How long the next round is. A budget in samples is spread over the rounds, so that it is interleaved too.
pub(crate) fn slice(budget: &BudgetSpec, measured_s: f64, taken: u64, rounds: u32) -> Slice {
    let seconds = match budget.duration_s {
        Some(duration) => {
            let length = (duration / f64::from(MIN_ROUNDS)).min(ROUND_S);
            // Beyond the duration for the samples that are missing.
            let left = if measured_s < duration { duration - measured_s } else { length };
            // Equal parts: a crumb of a round at the end would pass for a round of its own.
            left / (left / length - 0.01).ceil().max(1.0)
        }
        None => ROUND_S,
    };
    let max_samples = budget.samples.map(|samples| {
        let left = samples.saturating_sub(taken).max(1);
        let rounds_left = u64::from(MIN_ROUNDS.saturating_sub(rounds).max(1));
        left.div_ceil(rounds_left)
    });
    let seconds = if budget.samples.is_some() && budget.duration_s.is_none() { 3600.0 } else { seconds };
    Slice { seconds, max_samples }
}

/// Whether a cell needs another round.
pub(crate) fn more(budget: &BudgetSpec, standing: Progress, rounds: u32) -> bool {
    let asked = budget.duration_s.is_some() || budget.samples.is_some();
    let too_few = !asked && rounds < MIN_ROUNDS && standing.measured_s < budget.limit_s;
    too_few || stopping::decide(budget, standing) == Decision::Continue
}

pub(crate) fn throughput_seconds(budget: &BudgetSpec) -> f64 {
    budget.duration_s.unwrap_or(THROUGHPUT_S).min(THROUGHPUT_S)
}

/// Seconds that a cell will probably take, before anything is known about it; `None` where only a number of samples
/// bounds it.
pub fn estimate_s(budget: &BudgetSpec) -> Option<f64> {
    let measure = match (budget.duration_s, budget.samples) {
        (Some(seconds), _) => seconds,
        (None, Some(_)) => return None,
        (None, None) => f64::from(MIN_ROUNDS) * ROUND_S + 1.0,
    };
    Some(measure + throughput_seconds(budget) + budget.warmup_s.unwrap_or(1.0) + 1.0)
}

/// Seconds that a cell may take where the interval decides and does not get narrow; `None` where something else decides.
pub fn longest_s(budget: &BudgetSpec) -> Option<f64> {
    let by_interval = budget.duration_s.is_none() && budget.samples.is_none();
    let warmup_s = budget.warmup_s.unwrap_or(WARMUP_LIMIT_S);
    by_interval.then(|| budget.limit_s + throughput_seconds(budget) + warmup_s + 1.0)
}

/// The method, in words: the same for every row.
pub(crate) fn method(plan: &Plan) -> MethodRecord {
    let budget = &plan.budget;
    let warmup = match budget.warmup_s {
        Some(seconds) => format!("{seconds} s, as asked"),
        None => {
            format!(
                "until the medians of three consecutive windows agree within 5 % and no longer fall; {WARMUP_LIMIT_S} s at most"
            )
        }
    };
    let stopping = match (budget.duration_s, budget.samples) {
        (Some(duration), Some(samples)) => format!("after {duration} s or {samples} samples, whichever comes first"),
        (Some(duration), None) => format!("after {duration} s, never earlier"),
        (None, Some(samples)) => format!("after {samples} samples"),
        (None, None) => format!(
            "when the 95 % interval of the median is within 1 %, but not before {MIN_ROUNDS} rounds and 662 samples or \
             5 s; at {} s at the latest",
            budget.limit_s
        ),
    };
    let stopping = match budget.at_least {
        Some(floor) => {
            format!("{stopping}; goes on until there are {} samples, for {} s at most", floor.samples, floor.limit_s)
        }
        None => stopping,
    };
    let first = slice(budget, 0.0, 0, 0);
    let rounds = match first.max_samples {
        Some(1) => "rounds of one sample".to_owned(),
        Some(samples) => format!("rounds of {samples} samples"),
        None => format!("rounds of about {} s", (first.seconds * 1000.0).round() / 1000.0),
    };
    MethodRecord {
        clock: "CLOCK_MONOTONIC on the host".into(),
        total:
            "from a decoded frame in host memory to boxes in host memory, measured, one in flight; for a model that \
                is not a detector, from filled input buffers to outputs in host memory"
                .into(),
        warmup,
        stopping,
        schedule: format!(
            "{rounds}, interleaved over the cells there and back, with a pause and {} uncounted \
             frames before each; one timed cell at a time, other runs of Prony on the machine wait",
            3
        ),
        intervals: "95 % interval of the median within this run, from order statistics, with the number of samples \
                    reduced by their autocorrelation; no sample is removed. Another run of the same cell may differ by \
                    more: how far runs scatter is in no interval of one run"
            .into(),
        percentiles: "p90 needs 64 samples, p95 130, p99 662, p99.9 6,636 (99 % confidence)".into(),
        comparison: "ratio of medians with a 95 % CI over paired rounds, against the recommended cell of the model (the \
                     fastest where none is recommended); `same` unless the whole interval lies beyond 2 %, `inconclusive` \
                     where it reaches beyond 25 %"
            .into(),
        throughput: format!(
            "frames a second of wall time over about {} s, two calls in flight, pre- and post-processing included",
            throughput_seconds(budget)
        ),
        between_runs: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(duration_s: Option<f64>, samples: Option<u64>) -> BudgetSpec {
        BudgetSpec { warmup_s: None, duration_s, samples, limit_s: 20.0, at_least: None, timeout_s: 60.0 }
    }

    fn spend(budget: &BudgetSpec) -> (f64, u32) {
        let (mut measured_s, mut rounds) = (0.0, 0);
        let at = |measured_s| Progress { samples: 0, measured_s, half_width: Some(1.0) };
        while more(budget, at(measured_s), rounds) {
            measured_s += slice(budget, measured_s, 0, rounds).seconds;
            rounds += 1;
        }
        (measured_s, rounds)
    }

    #[test]
    fn a_duration_is_spent_to_the_end_in_whole_rounds() {
        for (duration, rounds) in [(8.0, 16), (1.0, 10), (0.5, 10), (5.3, 11), (60.0, 120)] {
            let (spent, made) = spend(&budget(Some(duration), None));
            assert!((spent - duration).abs() < 1e-6, "{duration}: {spent}");
            assert_eq!(made, rounds, "{duration}");
        }
    }

    #[test]
    fn beyond_the_duration_rounds_go_on_for_the_samples_that_are_missing() {
        let at_least = Some(prony_types::SampleFloor { samples: 64, limit_s: 600.0 });
        let budget = BudgetSpec { at_least, ..budget(Some(2.0), None) };
        let at = |samples, measured_s| Progress { samples, measured_s, half_width: None };
        assert!(more(&budget, at(20, 2.0), 10) && slice(&budget, 2.0, 20, 10).seconds > 0.1);
        assert!(!more(&budget, at(64, 6.4), 32));
    }

    #[test]
    fn samples_are_spread_over_the_rounds_and_none_is_too_many() {
        let budget = budget(None, Some(12));
        let mut taken = 0;
        let mut rounds = 0;
        while taken < 12 {
            taken += slice(&budget, 0.0, taken, rounds).max_samples.unwrap();
            rounds += 1;
        }
        assert_eq!((taken, rounds), (12, 10));
    }

    #[test]
    fn without_a_budget_a_fast_cell_still_gets_its_rounds() {
        let narrow = Progress { samples: 100_000, measured_s: 1.0, half_width: Some(0.001) };
        assert!(more(&budget(None, None), narrow, 1));
        assert!(!more(&budget(None, None), Progress { measured_s: 5.0, ..narrow }, 10));
    }

    #[test]
    fn a_wide_interval_ends_at_the_limit() {
        let (spent, _) = spend(&budget(None, None));
        assert!((20.0..21.5).contains(&spent), "{spent}");
    }
}
