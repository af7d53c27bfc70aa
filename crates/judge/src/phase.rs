//! A cell's samples taken apart: by phase, by stage, by round.

use prony_types::{LatencyRecord, Phase, Phases, Sample, Stage, StageStats};

use crate::series::{Series, each_of};
use crate::stats::{median_ns, ms, summarize};

/// Cold, first-second and steady latency from all samples of a cell. The first second is that after the cold frame's
/// end, whatever the frames in it were taken for; `steady` are the statistics of `total`.
pub fn phases<S: Series + ?Sized>(samples: &S, steady: Option<&StageStats>) -> Phases {
    let mut cold: Option<Sample> = None;
    let mut warmup: Option<(Sample, Sample)> = None;
    samples.each(&mut |s| match s.phase {
        Phase::Cold => cold = cold.or(Some(*s)),
        Phase::Warmup => warmup = Some((warmup.map_or(*s, |(first, _)| first), *s)),
        Phase::Steady | Phase::Throughput => {}
    });
    let cold_end = cold.map(|s| s.start_ns + s.total_ns);
    let first_second = cold_end.and_then(|end| {
        let mut within = Vec::new();
        samples.each(&mut |s| {
            let counts = matches!(s.phase, Phase::Warmup | Phase::Steady);
            if counts && s.start_ns >= end && s.start_ns - end < 1_000_000_000 {
                within.push(s.total_ns);
            }
        });
        median_ns(&mut within)
    });
    let warmup_s =
        warmup.map(|(first, last)| (last.start_ns + last.total_ns).saturating_sub(first.start_ns) as f64 / 1e9);
    Phases {
        cold_ms: cold.map(|s| ms(s.total_ns as f64)),
        first_second_ms: first_second.map(ms),
        steady_ms: steady.map(|s| s.p50),
        warmup_s,
    }
}

/// Statistics of every stage over the steady samples. A stage that some frame did not have is left out: its figures
/// would be of other frames than those of the rest.
pub fn latency<S: Series + ?Sized>(samples: &S) -> LatencyRecord {
    let mut record = LatencyRecord::new();
    for stage in Stage::ALL {
        let mut durations = Some(Vec::new());
        each_of(samples, Phase::Steady, |s| match (&mut durations, s.stage_ns(stage)) {
            (Some(durations), Some(ns)) => durations.push(ns),
            (durations, _) => *durations = None,
        });
        if let Some(stats) = durations.and_then(|d| summarize(&d)) {
            record.insert(stage, stats);
        }
    }
    record
}

/// Steady samples of `total` by round, index 0 being round 1; a round that was missed is empty.
pub fn by_round<S: Series + ?Sized>(samples: &S) -> Vec<Vec<u64>> {
    let mut rounds: Vec<Vec<u64>> = Vec::new();
    each_of(samples, Phase::Steady, |sample| {
        let index = sample.round.saturating_sub(1) as usize;
        if rounds.len() <= index {
            rounds.resize_with(index + 1, Vec::new);
        }
        rounds[index].push(sample.total_ns);
    });
    rounds
}

/// Median of `total` of every round that has samples, in the order of the rounds.
pub fn round_p50_ms<S: Series + ?Sized>(samples: &S) -> Vec<f64> {
    by_round(samples).iter_mut().filter_map(|round| median_ns(round)).map(ms).collect()
}

/// Boxes a frame over the steady samples; `None` without samples.
pub fn detections_per_frame<S: Series + ?Sized>(samples: &S, batch: u32) -> Option<f64> {
    let (mut calls, mut boxes) = (0u64, 0u64);
    each_of(samples, Phase::Steady, |sample| {
        calls += 1;
        boxes += u64::from(sample.detections);
    });
    (calls > 0).then(|| boxes as f64 / (calls as f64 * f64::from(batch.max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(phase: Phase, round: u32, start_ms: u64, total_ms: u64) -> Sample {
        let (start_ns, total_ns) = (start_ms * 1_000_000, total_ms * 1_000_000);
        let parts_ns = [Some(total_ns / 4), None, Some(total_ns / 2), None, Some(total_ns / 8)];
        Sample { start_ns, phase, round, frame: 0, detections: 3, parts_ns, total_ns }
    }

    #[test]
    fn the_first_second_begins_where_the_cold_frame_ends() {
        let samples = [
            sample(Phase::Cold, 0, 100, 400),
            sample(Phase::Warmup, 0, 500, 30),
            sample(Phase::Warmup, 0, 1_000, 20),
            sample(Phase::Steady, 1, 1_499, 10),
            sample(Phase::Steady, 1, 1_500, 1),
            sample(Phase::Throughput, 2, 900, 1),
        ];
        let steady = summarize(&[10_000_000, 1_000_000]).unwrap();
        let phases = phases(&samples, Some(&steady));
        assert_eq!(phases.cold_ms, Some(400.0));
        assert_eq!(phases.first_second_ms, Some(20.0));
        assert_eq!(phases.steady_ms, Some(5.5));
        assert_eq!(phases.warmup_s, Some(0.52));
        assert_eq!(super::phases(&[], None), Phases::default());
    }

    #[test]
    fn stages_that_do_not_exist_are_absent() {
        let samples = [sample(Phase::Warmup, 0, 0, 80), sample(Phase::Steady, 1, 100, 8)];
        let record = latency(&samples);
        let stages: Vec<Stage> = record.keys().copied().collect();
        assert_eq!(stages, [Stage::Preprocess, Stage::Inference, Stage::Postprocess, Stage::Total]);
        assert_eq!((record[&Stage::Total].n, record[&Stage::Inference].p50), (1, 4.0));
        assert!(latency(&samples[..1]).is_empty());
    }

    #[test]
    fn rounds_keep_their_place() {
        let samples = [
            sample(Phase::Steady, 1, 0, 4),
            sample(Phase::Steady, 3, 9, 6),
            sample(Phase::Steady, 3, 20, 8),
            sample(Phase::Throughput, 3, 30, 1),
        ];
        assert_eq!(by_round(&samples), [vec![4_000_000], vec![], vec![6_000_000, 8_000_000]]);
        assert_eq!(round_p50_ms(&samples), [4.0, 7.0]);
        assert_eq!(detections_per_frame(&samples, 2), Some(1.5));
        assert_eq!(detections_per_frame(&[], 1), None);
    }
}
