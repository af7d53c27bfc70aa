//! Distribution and time line of `total`, small enough to draw.

use prony_types::{Histogram, Phase, Sample, TimelinePoint};

use crate::series::{Series, each_of};
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
pub fn timeline<S: Series + ?Sized>(samples: &S) -> Vec<TimelinePoint> {
    let mut rounds: Vec<Round> = Vec::new();
    each_of(samples, Phase::Steady, |sample| match rounds.last_mut() {
        Some(round) if round.number == sample.round => round.last_ns = sample.start_ns,
        _ => rounds.push(Round { number: sample.round, first_ns: sample.start_ns, last_ns: sample.start_ns }),
    });
    let Some(origin) = rounds.first().map(|round| round.first_ns) else { return Vec::new() };
    let active: u64 = rounds.iter().map(|round| round.last_ns.saturating_sub(round.first_ns)).sum();
    // Every round may need one slice more than its share.
    let slices = POINTS.saturating_sub(rounds.len() as u64).max(1);
    let slice_ns = active.div_ceil(slices).max(1);
    let mut points = Vec::new();
    let mut under_way: Option<Slice> = None;
    // Which of the stretches a sample is in: the same number may come again later.
    let mut stretch = 0;
    each_of(samples, Phase::Steady, |sample| {
        let before = under_way.as_ref().map(|slice| slice.round);
        stretch += usize::from(before.is_some_and(|round| round != sample.round));
        let index = sample.start_ns.saturating_sub(rounds[stretch].first_ns) / slice_ns;
        match &mut under_way {
            Some(slice) if (slice.stretch, slice.index) == (stretch, index) => slice.take(sample),
            slice => {
                let begun = Slice::begin(sample, stretch, index);
                points.extend(slice.replace(begun).and_then(|slice| slice.point(origin)));
            }
        }
    });
    points.extend(under_way.and_then(|slice| slice.point(origin)));
    points
}

/// Consecutive samples of one round.
struct Round {
    number: u32,
    first_ns: u64,
    last_ns: u64,
}

/// Samples that become one point.
struct Slice {
    stretch: usize,
    index: u64,
    round: u32,
    begin_ns: u64,
    last: Sample,
    totals: Vec<u64>,
}

impl Slice {
    fn begin(sample: &Sample, stretch: usize, index: u64) -> Slice {
        let (round, begin_ns) = (sample.round, sample.start_ns);
        Slice { stretch, index, round, begin_ns, last: *sample, totals: vec![sample.total_ns] }
    }

    fn take(&mut self, sample: &Sample) {
        self.last = *sample;
        self.totals.push(sample.total_ns);
    }

    fn point(mut self, origin: u64) -> Option<TimelinePoint> {
        let (min, max) = (*self.totals.iter().min()?, *self.totals.iter().max()?);
        let begin = self.begin_ns.saturating_sub(origin) as f64;
        let end = self.last.start_ns.saturating_sub(origin) as f64 + self.last.total_ns as f64;
        Some(TimelinePoint {
            t_s: (begin + end) / 2.0 / 1e9,
            p50_ms: ms(median_ns(&mut self.totals)?),
            min_ms: ms(min as f64),
            max_ms: ms(max as f64),
            round: self.round,
        })
    }
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
