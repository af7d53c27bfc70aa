//! When a cell has been measured enough.

use prony_types::{BudgetSpec, SampleFloor};

use crate::stats::P99_NEEDS;

/// Half width of the median's interval, relative to the median, that is narrow enough.
pub const TARGET_HALF_WIDTH: f64 = 0.01;
/// Seconds that are enough time even without the samples for a p99.
pub const MIN_SECONDS: f64 = 5.0;

/// How far a cell has got.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// Timed samples so far.
    pub samples: u64,
    /// Time spent in its rounds so far.
    pub measured_s: f64,
    /// Relative half width of the interval of `total`'s median, see [`crate::stats::relative_half_width`].
    pub half_width: Option<f64>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Another round.
    Continue,
    /// Enough.
    Stop(Reason),
}

/// Why it is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The duration that was asked for is over.
    Duration,
    /// The number of samples that was asked for is there.
    Samples,
    /// The interval is narrow enough.
    Narrow,
    /// The limit came first; the interval is still wide.
    Limit,
}

/// The stopping rule. A duration or a number of samples that was asked for is kept to the letter (with both, whichever
/// comes first); without them the interval decides, within bounds. A least number of samples may make it longer.
pub fn decide(budget: &BudgetSpec, standing: Standing) -> Decision {
    let missing = |floor: SampleFloor| standing.samples < floor.samples && standing.measured_s < floor.limit_s;
    match decide_by_time(budget, standing) {
        Decision::Stop(_) if budget.at_least.is_some_and(missing) => Decision::Continue,
        decision => decision,
    }
}

fn decide_by_time(budget: &BudgetSpec, standing: Standing) -> Decision {
    if budget.duration_s.is_some_and(|s| standing.measured_s >= s) {
        return Decision::Stop(Reason::Duration);
    }
    if budget.samples.is_some_and(|n| standing.samples >= n) {
        return Decision::Stop(Reason::Samples);
    }
    if budget.duration_s.is_some() || budget.samples.is_some() {
        return Decision::Continue;
    }
    let enough = standing.samples >= P99_NEEDS || standing.measured_s >= MIN_SECONDS;
    if enough && standing.half_width.is_some_and(|w| w <= TARGET_HALF_WIDTH) {
        return Decision::Stop(Reason::Narrow);
    }
    if standing.measured_s >= budget.limit_s {
        return Decision::Stop(Reason::Limit);
    }
    Decision::Continue
}

/// Seconds of measuring that are probably left. The interval narrows with the square root of time, so a wide one
/// is extrapolated from the time spent so far; before the first samples the lower bound is assumed.
pub fn estimate_remaining_s(budget: &BudgetSpec, standing: Standing) -> f64 {
    let rate = if standing.measured_s > 0.0 { standing.samples as f64 / standing.measured_s } else { 0.0 };
    let time_for = |samples: u64| (rate > 0.0).then(|| samples as f64 / rate);
    let asked = [budget.duration_s, budget.samples.and_then(time_for)];
    let end = match asked.into_iter().flatten().reduce(f64::min) {
        Some(end) => end,
        None if budget.samples.is_some() => budget.limit_s,
        None => {
            let least = time_for(P99_NEEDS).map_or(MIN_SECONDS, |s| s.min(MIN_SECONDS));
            let narrow = standing.half_width.map_or(0.0, |w| standing.measured_s * (w / TARGET_HALF_WIDTH).powi(2));
            narrow.max(least).min(budget.limit_s)
        }
    };
    let floor = budget.at_least.and_then(|floor| Some(time_for(floor.samples)?.min(floor.limit_s)));
    (floor.map_or(end, |floor| end.max(floor)) - standing.measured_s).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(duration_s: Option<f64>, samples: Option<u64>) -> BudgetSpec {
        BudgetSpec { warmup_s: None, duration_s, samples, limit_s: 20.0, at_least: None, timeout_s: 60.0 }
    }

    fn at(samples: u64, measured_s: f64, half_width: f64) -> Standing {
        Standing { samples, measured_s, half_width: Some(half_width) }
    }

    #[test]
    fn a_duration_is_never_cut_short() {
        let budget = budget(Some(30.0), None);
        assert_eq!(decide(&budget, at(1_000_000, 29.9, 0.0)), Decision::Continue);
        assert_eq!(decide(&budget, at(3, 30.0, 1.0)), Decision::Stop(Reason::Duration));
    }

    #[test]
    fn with_samples_and_duration_the_first_decides() {
        assert_eq!(decide(&budget(Some(9.0), Some(100)), at(100, 1.0, 1.0)), Decision::Stop(Reason::Samples));
        assert_eq!(decide(&budget(Some(9.0), Some(100)), at(99, 9.0, 1.0)), Decision::Stop(Reason::Duration));
        assert_eq!(decide(&budget(None, Some(100)), at(99, 900.0, 0.0)), Decision::Continue);
    }

    #[test]
    fn unasked_the_interval_decides_but_not_too_early_and_not_for_ever() {
        let budget = budget(None, None);
        assert_eq!(decide(&budget, at(661, 4.9, 0.001)), Decision::Continue);
        assert_eq!(decide(&budget, at(662, 0.7, 0.01)), Decision::Stop(Reason::Narrow));
        assert_eq!(decide(&budget, at(40, 5.0, 0.009)), Decision::Stop(Reason::Narrow));
        assert_eq!(decide(&budget, at(9_000, 19.9, 0.011)), Decision::Continue);
        assert_eq!(decide(&budget, at(9_000, 20.0, 0.011)), Decision::Stop(Reason::Limit));
        assert_eq!(
            decide(&budget, Standing { samples: 2, measured_s: 20.0, half_width: None }),
            Decision::Stop(Reason::Limit)
        );
    }

    #[test]
    fn a_slow_cell_goes_on_until_it_has_the_samples_that_it_needs_at_least() {
        let at_least = Some(SampleFloor { samples: 662, limit_s: 600.0 });
        let by_interval = BudgetSpec { at_least, ..budget(None, None) };
        assert_eq!(
            decide(&by_interval, at(300, 20.0, 0.001)),
            Decision::Continue,
            "neither narrow nor the limit is enough"
        );
        assert_eq!(decide(&by_interval, at(662, 44.0, 0.001)), Decision::Stop(Reason::Narrow));
        assert_eq!(decide(&by_interval, at(662, 44.0, 0.5)), Decision::Stop(Reason::Limit));
        assert_eq!(decide(&by_interval, at(10, 600.0, 0.5)), Decision::Stop(Reason::Limit), "not for ever");
        let by_time = BudgetSpec { at_least, ..budget(Some(2.0), None) };
        assert_eq!(decide(&by_time, at(661, 2.0, 0.0)), Decision::Continue);
        assert_eq!(decide(&by_time, at(662, 2.0, 0.0)), Decision::Stop(Reason::Duration));
        assert_eq!(decide(&by_time, at(5_000, 1.9, 0.0)), Decision::Continue, "whichever is longer");
        assert_eq!(estimate_remaining_s(&by_time, at(331, 2.0, 0.5)), 2.0);
    }

    #[test]
    fn the_rest_is_estimated_from_what_was_seen() {
        assert_eq!(estimate_remaining_s(&budget(Some(8.0), None), at(10, 3.0, 0.5)), 5.0);
        assert_eq!(estimate_remaining_s(&budget(None, Some(100)), at(25, 1.0, 0.5)), 3.0);
        // 2 % after 2 s: 1 % needs four times as long.
        assert_eq!(estimate_remaining_s(&budget(None, None), at(1_000, 2.0, 0.02)), 6.0);
        assert_eq!(estimate_remaining_s(&budget(None, None), at(1_000, 2.0, 0.9)), 18.0);
        assert_eq!(estimate_remaining_s(&budget(None, None), Standing::default()), 5.0);
        assert_eq!(estimate_remaining_s(&budget(None, None), at(1_000, 30.0, 0.9)), 0.0);
    }
}
