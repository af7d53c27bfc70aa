//! Differences that must be seen, and those that must not.

use prony_types::{
    BackendRecord, InputRecord, MemoryRecord, ModelRecord, Phases, Precision, PrecisionRecord, SampleNote, StageStats,
};
use proptest::prelude::*;

use super::*;

/// A completed, valid cell of model `1` with a median of so many milliseconds.
pub(crate) fn cell(id: &str, p50: f64) -> CellRecord {
    let stats = StageStats {
        n: 700,
        n_eff: 700.0,
        mean: p50,
        sd: 0.1,
        min: p50 * 0.9,
        p50,
        p90: None,
        p95: None,
        p99: None,
        p99_9: None,
        max: p50 * 2.0,
        ci95: Some([p50 * 0.99, p50 * 1.01]),
    };
    CellRecord {
        id: id.into(),
        slug: id.into(),
        model: ModelRecord {
            name: "m".into(),
            sha256: "1".into(),
            task: None,
            input: Some("1x3x320x320".into()),
            head: Some("dense".into()),
            info: None,
        },
        backend: BackendRecord {
            name: "rten".into(),
            version: None,
            device: None,
            threads: None,
            affinity: None,
            settings: Vec::new(),
        },
        precision: PrecisionRecord { requested: Precision::Fp32, executed: Some("fp32".into()) },
        artifact: None,
        batch: 1,
        status: CellStatus::Completed,
        reason: None,
        attempt: 1,
        verdict: Some(Verdict::Valid),
        verdict_reasons: Vec::new(),
        latency_ms: [(Stage::Total, stats)].into(),
        phases: Phases::default(),
        throughput_fps: Some(1_000.0 / p50),
        in_flight: None,
        load_ms: None,
        memory: MemoryRecord::default(),
        agreement: None,
        input: Some(InputRecord {
            source: "scenes".into(),
            frames: 32,
            size: None,
            sha256: "f".into(),
            skipped: Vec::new(),
        }),
        detections_per_frame: None,
        temp_c: None,
        histogram: None,
        timeline: Vec::new(),
        round_p50_ms: Vec::new(),
        samples: SampleNote::default(),
        thumbnails: Vec::new(),
    }
}

/// Rounds of samples around a level, the level swaying from round to round as a shared machine does.
fn rounds(level: f64, count: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut state = seed;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
    };
    let sway = |round: usize| 1.0 + 0.2 * (round as f64 * 1.7).sin();
    (0..count).map(|r| (0..150).map(|_| (level * sway(r) * (1.0 + 0.06 * noise())) as u64).collect()).collect()
}

#[test]
fn a_difference_is_seen_through_a_sway_that_both_share() {
    // The machine sways by 20 %, the cells differ by 5 %: only pairing shows it.
    let (fast, slow) = (rounds(6e6, 8, 1), rounds(6.3e6, 8, 2));
    let (ratio, [lo, hi], difference) = compare(&slow, &fast).unwrap();
    assert_eq!(difference, Difference::Slower);
    assert!((1.03..1.07).contains(&ratio) && lo <= ratio && ratio <= hi, "{ratio} {lo} {hi}");
    assert_eq!(compare(&fast, &slow).unwrap().2, Difference::Faster);
}

#[test]
fn one_cell_measured_twice_is_the_same() {
    let mut wrong = 0;
    for seed in 0..200 {
        let (a, b) = (rounds(6e6, 6, seed * 2 + 1), rounds(6e6, 6, seed * 2 + 2));
        wrong += u32::from(compare(&a, &b).unwrap().2 != Difference::Same);
    }
    assert_eq!(wrong, 0);
}

#[test]
fn less_than_two_percent_is_the_same_however_sure() {
    let exact = |ns: u64| vec![vec![ns; 500]; 10];
    let (ratio, _, difference) = compare(&exact(1_015_000), &exact(1_000_000)).unwrap();
    assert_eq!((ratio, difference), (1.015, Difference::Same));
    assert_eq!(compare(&exact(1_025_000), &exact(1_000_000)).unwrap().2, Difference::Slower);
    assert_eq!(compare(&exact(1_000_000), &exact(1_025_000)).unwrap().2, Difference::Faster);
}

#[test]
fn rounds_that_disagree_show_nothing() {
    let at = |levels: [u64; 4]| levels.map(|ns| vec![ns; 200]).to_vec();
    let (_, [lo, hi], difference) = compare(&at([110, 80, 112, 85]), &at([100, 100, 100, 100])).unwrap();
    assert_eq!(difference, Difference::Same);
    assert!(lo < 0.9 && hi > 1.05, "{lo} {hi}");
}

#[test]
fn rounds_that_agree_by_chance_do_not_hide_the_noise_within_them() {
    let wide = |level: u64| vec![(0..9).map(|i| level / 100 * (80 + 5 * (i * 4 % 9))).collect::<Vec<u64>>(); 3];
    let (ratio, [lo, hi], difference) = compare(&wide(1_100_000), &wide(1_000_000)).unwrap();
    assert_eq!(difference, Difference::Same);
    assert!((ratio - 1.1).abs() < 1e-9 && lo < 1.02 && hi > 1.15, "{ratio} {lo} {hi}");
}

#[test]
fn with_few_rounds_the_intervals_of_the_medians_decide() {
    let one = |level: u64| vec![(0..300u64).map(|i| level + i * 7_919 % 1_000).collect::<Vec<_>>()];
    assert_eq!(compare(&one(110_000), &one(100_000)).unwrap().2, Difference::Slower);
    assert_eq!(compare(&one(101_000), &one(100_000)).unwrap().2, Difference::Same);
    // Three samples cannot show anything, however far apart they are.
    assert_eq!(compare(&[vec![900, 910, 920]], &[vec![100; 300]]).unwrap().2, Difference::Same);
    assert_eq!(compare(&[], &one(1)), None);
    assert_eq!(compare(&[vec![]], &one(1)), None);
}

#[test]
fn a_missed_round_is_no_pair() {
    let (mut a, b) = (rounds(6e6, 5, 3), rounds(6e6, 5, 4));
    a[2].clear();
    assert_eq!(compare(&a, &b).unwrap().2, Difference::Same);
}

fn by_id(id: &str) -> Vec<Vec<u64>> {
    match id {
        "a" => rounds(8e6, 5, 5),
        "b" => rounds(6e6, 5, 6),
        "c" => rounds(6e6, 5, 7),
        _ => Vec::new(),
    }
}

#[test]
fn every_cell_is_held_against_the_fastest_of_its_model() {
    let mut other = cell("o", 1.0);
    other.model.sha256 = "2".into();
    let mut failed = cell("f", 0.5);
    failed.status = CellStatus::Failed;
    let cells = [cell("a", 8.0), cell("b", 6.0), other, cell("c", 6.01), failed];
    let found = comparisons(&cells, &by_id);
    let words: Vec<_> = found.iter().map(|c| (c.cell.as_str(), c.against.as_str(), c.difference)).collect();
    assert_eq!(words, [("a", "b", Difference::Slower), ("c", "b", Difference::Same)]);
    assert!(found[0].reason.contains("over 5 paired rounds"), "{}", found[0].reason);
    assert!(found[1].reason.ends_with("does not lie wholly beyond 2 %"), "{}", found[1].reason);
    assert!((found[0].ratio.unwrap() - 8.0 / 6.0).abs() < 0.03);
}

#[test]
fn what_was_not_measured_alike_is_not_compared() {
    type Change = fn(&mut CellRecord);
    let changes: [(Change, &str); 5] = [
        (|c| c.batch = 4, "batch 4 against 1"),
        (|c| c.model.input = Some("1x3x640x640".into()), "input 1x3x640x640 against 1x3x320x320"),
        (|c| c.model.head = None, "head unknown against dense"),
        (|c| c.input = None, "other frames"),
        (|c| c.verdict = Some(Verdict::WrongOutput), "outputs of a are wrong"),
    ];
    for (change, words) in changes {
        let mut changed = cell("a", 80.0);
        change(&mut changed);
        let found = comparisons(&[changed, cell("b", 6.0)], &by_id);
        assert_eq!((found.len(), found[0].difference, found[0].ratio), (1, Difference::NotComparable, None));
        assert!(found[0].reason.contains(words), "{}", found[0].reason);
    }
}

#[test]
fn a_cell_with_wrong_outputs_is_no_measure_for_the_others() {
    let mut wrong = cell("c", 1.0);
    wrong.verdict = Some(Verdict::WrongOutput);
    let found = comparisons(&[wrong, cell("a", 8.0), cell("b", 6.0)], &by_id);
    assert!(found.iter().all(|c| c.against == "b"), "{found:?}");
}

#[test]
fn missing_samples_are_told() {
    let found = comparisons(&[cell("a", 8.0), cell("gone", 6.0)], &by_id);
    assert_eq!(found[0].difference, Difference::NotComparable);
    assert!(found[0].reason.contains("missing"));
}

fn some_rounds() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(1u64..10_000_000, 0..40), 1..8)
}

proptest! {
    #[test]
    fn a_cell_is_the_same_as_itself(cell in some_rounds()) {
        if let Some((ratio, [lo, hi], difference)) = compare(&cell, &cell) {
            prop_assert_eq!(difference, Difference::Same);
            prop_assert_eq!(ratio, 1.0);
            prop_assert!(lo <= 1.0 && 1.0 <= hi);
        }
    }

    #[test]
    fn the_other_way_round_is_the_inverse(a in some_rounds(), b in some_rounds()) {
        let (ahead, back) = (compare(&a, &b), compare(&b, &a));
        prop_assert_eq!(ahead.is_some(), back.is_some());
        if let (Some((r, [lo, hi], d)), Some((s, [slo, shi], e))) = (ahead, back) {
            let inverse = |x: f64, y: f64| (x * y - 1.0).abs() < 1e-9;
            prop_assert!(inverse(r, s) && inverse(lo, shi) && inverse(hi, slo));
            let swapped = match d {
                Difference::Faster => Difference::Slower,
                Difference::Slower => Difference::Faster,
                other => other,
            };
            prop_assert_eq!(swapped, e);
        }
    }
}
