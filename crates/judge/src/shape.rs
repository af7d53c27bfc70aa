//! Distribution and time line of `total`, small enough to draw.

use prony_types::{Histogram, Phase, Sample, TimelinePoint};

use crate::stats::{median_ns, ms, quantile, sorted};

/// Steps of a histogram, at most.
const STEPS: u64 = 50;
/// Points of a time line, at most; only a run with more rounds than that has more, one a round.
const POINTS: u64 = 240;

/// Equal steps from the smallest sample to the 99.5th percentile, so that a rare spike does not squeeze everything
/// else into one step; the last step holds the spikes. Edges are whole nanoseconds, so no sample is on two sides.
pub fn histogram(total_ns: &[u64]) -> Option<Histogram> {
    let sorted = sorted(total_ns);
    let (&lo, &max) = (sorted.first()?, sorted.last()?);
    let hi = (quantile(&sorted, 0.995)?.ceil() as u64).min(max);
    let step = (hi - lo + 1).div_ceil(STEPS);
    let steps = (hi - lo) / step + 1;
    let mut counts = vec![0; steps as usize];
    for &x in &sorted {
        counts[((x - lo) / step).min(steps - 1) as usize] += 1;
    }
    let upper = lo + steps * step;
    let above = sorted.len() - sorted.partition_point(|&x| x < upper);
    Some(Histogram { lo_ms: ms(lo as f64), step_ms: ms(step as f64), counts, above: above as u64 })
}

/// Median, smallest and largest of `total` over slices of time; a slice never spans two rounds. Looks at steady samples
/// alone, in the order in which they were measured.
pub fn timeline(samples: &[Sample]) -> Vec<TimelinePoint> {
    let steady: Vec<Sample> = samples.iter().filter(|s| s.phase == Phase::Steady).copied().collect();
    let Some(origin) = steady.first().map(|s| s.start_ns) else { return Vec::new() };
    let rounds: Vec<&[Sample]> = steady.chunk_by(|a, b| a.round == b.round).collect();
    let active: u64 = rounds.iter().map(|r| span_ns(r)).sum();
    // Every round may need one slice more than its share.
    let slices = POINTS.saturating_sub(rounds.len() as u64).max(1);
    let slice_ns = active.div_ceil(slices).max(1);
    let mut points = Vec::new();
    for round in rounds {
        let begin = round[0].start_ns;
        let slice_of = |s: &Sample| s.start_ns.saturating_sub(begin) / slice_ns;
        points.extend(round.chunk_by(|a, b| slice_of(a) == slice_of(b)).filter_map(|s| point(s, origin)));
    }
    points
}

fn span_ns(samples: &[Sample]) -> u64 {
    match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.start_ns.saturating_sub(first.start_ns),
        _ => 0,
    }
}

fn point(samples: &[Sample], origin: u64) -> Option<TimelinePoint> {
    let (first, last) = (samples.first()?, samples.last()?);
    let mut totals: Vec<u64> = samples.iter().map(|s| s.total_ns).collect();
    let (min, max) = (*totals.iter().min()?, *totals.iter().max()?);
    let begin = first.start_ns.saturating_sub(origin) as f64;
    let end = last.start_ns.saturating_sub(origin) as f64 + last.total_ns as f64;
    Some(TimelinePoint {
        t_s: (begin + end) / 2.0 / 1e9,
        p50_ms: ms(median_ns(&mut totals)?),
        min_ms: ms(min as f64),
        max_ms: ms(max as f64),
        round: first.round,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(start_ns: u64, round: u32, total_ns: u64) -> Sample {
        Sample { start_ns, phase: Phase::Steady, round, frame: 0, detections: 0, parts_ns: [None; 5], total_ns }
    }

    #[test]
    fn a_spike_goes_into_the_last_step_and_is_counted_above() {
        let mut totals: Vec<u64> = (0..1_000).map(|i| 6_000_000 + i * 1_000).collect();
        totals[500] = 90_000_000;
        let histogram = histogram(&totals).unwrap();
        assert_eq!(histogram.lo_ms, 6.0);
        assert!((40..=50).contains(&histogram.counts.len()));
        assert!(histogram.above >= 1 && histogram.above <= 6);
        assert!(histogram.lo_ms + histogram.step_ms * histogram.counts.len() as f64 <= 7.1);
    }

    #[test]
    fn one_value_is_one_step() {
        assert_eq!(
            histogram(&[5_000_000; 9]).unwrap(),
            Histogram { lo_ms: 5.0, step_ms: 1e-6, counts: vec![9], above: 0 }
        );
        assert_eq!(histogram(&[]), None);
    }

    #[test]
    fn no_slice_spans_two_rounds() {
        let samples: Vec<Sample> = (0..3_000)
            .map(|i| sample(7 + i * 1_000_000 + (i / 500) * 9_000_000_000, i as u32 / 500 + 1, 900_000))
            .collect();
        let points = timeline(&samples);
        assert!((100..=240).contains(&points.len()), "{}", points.len());
        for round in 1..=6 {
            let begin = (round as f64 - 1.0) * 9.5;
            let of_round: Vec<_> = points.iter().filter(|p| p.round == round).collect();
            assert!(!of_round.is_empty());
            assert!(of_round.iter().all(|p| p.t_s > begin && p.t_s < begin + 0.51));
        }
        assert!(points.windows(2).all(|w| w[0].t_s < w[1].t_s));
        assert!(timeline(&[]).is_empty());
    }

    #[test]
    fn warm_up_and_throughput_are_no_part_of_the_time_line() {
        let mut samples = vec![sample(0, 0, 90), sample(100, 1, 50), sample(200, 1, 70)];
        samples[0].phase = Phase::Warmup;
        samples.push(Sample { phase: Phase::Throughput, ..sample(300, 2, 10) });
        let points = timeline(&samples);
        assert!(points.iter().all(|p| p.round == 1 && p.max_ms <= 70e-6));
    }

    proptest! {
        #[test]
        fn every_sample_is_in_one_step(totals in prop::collection::vec(1u64..10_000_000_000, 1..400)) {
            let histogram = histogram(&totals).unwrap();
            prop_assert_eq!(histogram.counts.iter().sum::<u64>(), totals.len() as u64);
            prop_assert!(histogram.counts.len() <= 50);
            prop_assert!(histogram.above <= *histogram.counts.last().unwrap());
        }
    }
}
