//! Times in which a cell that was being timed stood still: its process was stopped, or the machine slept.
//!
//! One frame in thousands moves no median, so a stop of 20 s hides in the maximum. No sample is left out for it, but a
//! mean, and whatever is made of one, says nothing about the cell any more.

use std::collections::BTreeMap;

use prony_types::{Phase, Sample, Stall, Verdict};

use crate::series::{Series, each_of, totals};
use crate::stats::median_ns;

/// Nothing shorter is a stall.
pub const SHORTEST_NS: u64 = 1_000_000_000;
/// Nor is anything shorter than so many median frames: a slow model is slow.
pub const LONGEST_FRAMES: f64 = 20.0;

/// Every stall, in the order of the samples: a frame that took far too long, or a gap between two frames of one round.
pub fn stalls<S: Series + ?Sized>(samples: &S) -> Vec<Stall> {
    let mut found = Vec::new();
    for phase in [Phase::Steady, Phase::Throughput] {
        let Some(median) = median_ns(&mut totals(samples, phase)) else { continue };
        let limit = (median * LONGEST_FRAMES).max(SHORTEST_NS as f64) as u64;
        let mut end: Option<(u32, u64)> = None;
        each_of(samples, phase, |sample| {
            let Sample { round, start_ns, total_ns, .. } = *sample;
            let gap = end.filter(|(last, _)| *last == round).map_or(0, |(_, end)| start_ns.saturating_sub(end));
            let long = [gap, total_ns].into_iter().filter(|&ns| ns > limit);
            found.extend(long.map(|ns| Stall { phase, round, seconds: ns as f64 / 1e9 }));
            // With several in flight a later frame may end earlier.
            let before = end.filter(|(last, _)| *last == round).map_or(0, |(_, end)| end);
            end = Some((round, before.max(start_ns + total_ns)));
        });
    }
    found
}

/// How long the rounds stood still altogether.
pub fn stalled_s(stalls: &[Stall]) -> f64 {
    stalls.iter().filter(|stall| stall.phase == Phase::Steady).map(|stall| stall.seconds).sum()
}

/// What is to be said of them. Always an objection: whatever stopped the process for more than a second has also changed
/// caches, clocks and temperatures, and the time it took is missing from the measurement.
pub(crate) fn findings(stalls: &[Stall]) -> Vec<(Verdict, String)> {
    // Two calls in flight stand still together.
    let mut longest: BTreeMap<(bool, u32), f64> = BTreeMap::new();
    for stall in stalls {
        let seconds = longest.entry((stall.phase == Phase::Throughput, stall.round)).or_default();
        *seconds = if stall.phase == Phase::Throughput { seconds.max(stall.seconds) } else { *seconds + stall.seconds };
    }
    let words = longest.iter().map(|(&(throughput, round), seconds)| {
        if throughput {
            format!(
                "throughput stood still for {seconds:.1} s, so it is left out: the process was stopped or the machine slept"
            )
        } else {
            format!("round {round} stood still for {seconds:.1} s: the process was stopped or the machine slept")
        }
    });
    words.map(|words| (Verdict::Unstable, words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(phase: Phase, round: u32, start_ms: u64, total_ms: u64) -> Sample {
        Sample {
            start_ns: start_ms * 1_000_000,
            phase,
            round,
            frame: 0,
            detections: 0,
            parts_ns: [None; 5],
            total_ns: total_ms * 1_000_000,
        }
    }

    #[test]
    fn a_process_that_was_stopped_within_a_frame_or_between_two_is_found() {
        let steady = |round, start, total| sample(Phase::Steady, round, start, total);
        let within = [steady(1, 0, 10), steady(1, 10, 20_010), steady(1, 20_020, 10), steady(2, 50_000, 10)];
        let found = stalls(&within);
        assert_eq!(found, [Stall { phase: Phase::Steady, round: 1, seconds: 20.01 }], "rounds may be far apart");
        assert_eq!(stalled_s(&found), 20.01);
        let between = [steady(3, 0, 10), steady(3, 10, 10), steady(3, 5_020, 10)];
        assert_eq!(stalls(&between), [Stall { phase: Phase::Steady, round: 3, seconds: 5.0 }]);
        let (verdict, words) = &findings(&found)[0];
        assert_eq!(*verdict, Verdict::Unstable);
        assert_eq!(words, "round 1 stood still for 20.0 s: the process was stopped or the machine slept");
    }

    #[test]
    fn slow_frames_and_single_outliers_are_no_stalls() {
        let slow: Vec<Sample> = (0..5).map(|i| sample(Phase::Steady, 1, i * 3_000, 3_000)).collect();
        assert_eq!(stalls(&slow), []);
        let outlier =
            [sample(Phase::Steady, 1, 0, 5), sample(Phase::Steady, 1, 5, 900), sample(Phase::Steady, 1, 905, 5)];
        assert_eq!(stalls(&outlier), []);
        assert_eq!(stalls(&[sample(Phase::Warmup, 1, 0, 1), sample(Phase::Warmup, 1, 1, 9_000)]), [], "not timed");
    }

    #[test]
    fn two_calls_in_flight_that_stand_still_together_are_one_stall() {
        let both = |start, total| sample(Phase::Throughput, 0, start, total);
        let samples = [both(0, 10), both(5, 10), both(10, 4_010), both(15, 4_010), both(4_020, 10), both(4_025, 10)];
        let found = findings(&stalls(&samples));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].1.starts_with("throughput stood still for 4.0 s"), "{found:?}");
        assert_eq!(stalled_s(&stalls(&samples)), 0.0);
    }
}
