//! Differences that must be seen, and those that must not.

use prony_types::{
    BackendName, CellSpec, InputRecord, ModelRecord, ModelSource, ModelSpec, Precision, PrecisionRecord, SceneKind,
    StageStats,
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
    let source = ModelSource::Builtin(SceneKind::Rgb);
    let model = ModelSpec::new("m", source, "1");
    let pending = CellRecord::pending(&CellSpec::new(model, BackendName::Rten, Precision::Fp32), 1);
    CellRecord {
        id: id.into(),
        slug: id.into(),
        model: ModelRecord { input: Some("1x3x320x320".into()), head: Some("dense".into()), ..pending.model },
        precision: PrecisionRecord { requested: Precision::Fp32, executed: Some("fp32".into()) },
        status: CellStatus::Completed,
        verdict: Some(Verdict::Valid),
        latency_ms: [(Stage::Total, stats)].into(),
        throughput_fps: Some(1_000.0 / p50),
        agreement: Some(prony_types::Agreement {
            reference: "fp32 on ort-cpu".into(),
            boxes: None,
            scores: None,
            matched_boxes: Some(1.0),
            ..prony_types::Agreement::default()
        }),
        input: Some(InputRecord {
            source: "scenes".into(),
            frames: 32,
            size: None,
            sha256: "f".into(),
            resident_bytes: 29_491_200,
            decode_ms: None,
            skipped: Vec::new(),
        }),
        ..pending
    }
}

/// Rounds of samples around a level, the level swaying from round to round as a shared machine does.
pub(crate) fn rounds(level: f64, count: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut state = seed;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
    };
    let sway = |round: usize| 1.0 + 0.2 * (round as f64 * 1.7).sin();
    (0..count).map(|r| (0..150).map(|_| (level * sway(r) * (1.0 + 0.06 * noise())) as u64).collect()).collect()
}

fn word(cell: &[Vec<u64>], against: &[Vec<u64>]) -> Difference {
    compare(cell, against).unwrap().difference
}

#[test]
fn a_difference_is_seen_through_a_sway_that_both_share() {
    // The machine sways by 20 %, the cells differ by 5 %: only pairing shows it.
    let (fast, slow) = (rounds(6e6, 8, 1), rounds(6.3e6, 8, 2));
    let Contrast { ratio, ci95, difference, common_rounds } = compare(&slow, &fast).unwrap();
    assert_eq!((difference, common_rounds), (Difference::Slower, 8));
    let [lo, hi] = ci95.unwrap();
    assert!((1.03..1.07).contains(&ratio) && lo <= ratio && ratio <= hi, "{ratio} {lo} {hi}");
    assert_eq!(word(&fast, &slow), Difference::Faster);
}

#[test]
fn one_cell_measured_twice_is_the_same() {
    let mut wrong = 0;
    for seed in 0..200 {
        let (a, b) = (rounds(6e6, 6, seed * 2 + 1), rounds(6e6, 6, seed * 2 + 2));
        wrong += u32::from(word(&a, &b) != Difference::Same);
    }
    assert_eq!(wrong, 0);
}

#[test]
fn a_burst_in_a_few_of_many_rounds_does_not_hide_that_two_are_the_same() {
    let (mut a, mut b) = (rounds(6.0e6, 20, 1), rounds(6.0e6, 20, 2));
    for (cell, hit) in [(&mut a, [3, 9, 15]), (&mut b, [0, 8, 11])] {
        for round in hit {
            cell[round].iter_mut().for_each(|ns| *ns += *ns / 2);
        }
    }
    assert_eq!(word(&a, &b), Difference::Same);
}

#[test]
fn ranks_are_those_of_the_tables() {
    // Sign-test tables: how many may be cut from each end at 95 %.
    let known = [
        (5, None),
        (6, None),
        (8, None),
        (9, Some(1)),
        (10, Some(1)),
        (12, Some(2)),
        (15, Some(3)),
        (20, Some(5)),
        (40, Some(13)),
    ];
    for (n, rank) in known {
        assert_eq!(rank_from_either_end(n), rank, "{n}");
    }
}

#[test]
fn less_than_two_percent_is_the_same_however_sure() {
    let exact = |ns: u64| vec![vec![ns; 500]; 10];
    let contrast = compare(&exact(1_015_000), &exact(1_000_000)).unwrap();
    assert_eq!((contrast.ratio, contrast.difference), (1.015, Difference::Same));
    assert_eq!(word(&exact(1_025_000), &exact(1_000_000)), Difference::Slower);
    assert_eq!(word(&exact(1_000_000), &exact(1_025_000)), Difference::Faster);
}

#[test]
fn rounds_that_disagree_show_nothing() {
    let at = |levels: [u64; 4]| levels.map(|ns| vec![ns; 200]).to_vec();
    // A little: no difference that would matter is left. A lot: anything is.
    let little = compare(&at([105, 92, 104, 96]), &at([100, 100, 100, 100])).unwrap();
    assert_eq!(little.difference, Difference::Same, "{little:?}");
    let lot = compare(&at([110, 80, 112, 85]), &at([100, 100, 100, 100])).unwrap();
    let [lo, hi] = lot.ci95.unwrap();
    assert!(lo < 1.0 / TELLING && hi > 1.05, "{lo} {hi}");
    assert_eq!(lot.difference, Difference::Inconclusive);
    let figures = format!("{:.3} times the median latency, 95 % CI {lo:.3} to {hi:.3} over 4 paired rounds", lot.ratio);
    assert_eq!(lot.reason(), figures + ", which is too wide to tell; measure longer or on a quieter machine");
}

#[test]
fn an_interval_too_wide_on_one_side_is_not_sameness() {
    // From "the same" to a third slower, and its inverse.
    let (slow, even) = ([100, 118, 131, 108].map(|ns| vec![ns; 200]), [100; 4].map(|ns| vec![ns; 200]));
    for (cell, against) in [(&slow, &even), (&even, &slow)] {
        let contrast = compare(cell, against).unwrap();
        let [lo, hi] = contrast.ci95.unwrap();
        assert!((lo > 1.0 / TELLING) != (hi < TELLING), "{lo} {hi}");
        assert_eq!(contrast.difference, Difference::Inconclusive);
    }
    // However wide: what lies wholly beyond is a difference.
    let far = [200, 300, 260, 220].map(|ns| vec![ns; 200]);
    assert_eq!(word(&far, &even), Difference::Slower);
}

#[test]
fn rounds_that_agree_by_chance_do_not_hide_the_noise_within_them() {
    let wide = |level: u64| vec![(0..9).map(|i| level / 100 * (80 + 5 * (i * 4 % 9))).collect::<Vec<u64>>(); 3];
    let Contrast { ratio, ci95, difference, .. } = compare(&wide(1_100_000), &wide(1_000_000)).unwrap();
    let [lo, hi] = ci95.unwrap();
    assert_eq!(difference, Difference::Same);
    assert!((ratio - 1.1).abs() < 1e-9 && lo < 1.02 && hi > 1.15, "{ratio} {lo} {hi}");
}

#[test]
fn with_few_rounds_the_intervals_of_the_medians_decide() {
    let one = |level: u64| vec![(0..300u64).map(|i| level + i * 7_919 % 1_000).collect::<Vec<_>>()];
    let slower = compare(&one(110_000), &one(100_000)).unwrap();
    assert_eq!(slower.difference, Difference::Slower);
    let basis = "not paired (1 rounds in common, 3 are needed)";
    assert!(slower.reason().ends_with(basis), "{}", slower.reason());
    assert_eq!(word(&one(101_000), &one(100_000)), Difference::Same);
    assert_eq!(compare(&[], &one(1)), None);
    assert_eq!(compare(&[vec![]], &one(1)), None);
}

#[test]
fn too_few_samples_are_not_sameness() {
    // Three samples cannot show anything, however far apart or close they are; nor can one a round.
    for (cell, against) in [
        (vec![vec![900, 910, 920]], vec![vec![100; 300]]),
        (vec![vec![100; 5]], vec![vec![100; 300]]),
        (vec![vec![100]; 5], vec![vec![100; 60]; 5]),
    ] {
        for contrast in [compare(&cell, &against).unwrap(), compare(&against, &cell).unwrap()] {
            assert_eq!((contrast.difference, contrast.ci95), (Difference::Inconclusive, None));
            assert!(contrast.reason().starts_with("too few samples to tell, "), "{}", contrast.reason());
        }
    }
    assert_eq!(word(&vec![vec![100; 2]; 3], &vec![vec![100; 2]; 3]), Difference::Same);
}

#[test]
fn a_missed_round_is_no_pair() {
    let (mut a, b) = (rounds(6e6, 5, 3), rounds(6e6, 5, 4));
    a[2].clear();
    let contrast = compare(&a, &b).unwrap();
    assert_eq!((contrast.difference, contrast.common_rounds), (Difference::Same, 4));
}

fn comparisons(cells: &[CellRecord], rounds: &dyn Fn(&str) -> Vec<Vec<u64>>) -> Vec<Comparison> {
    crate::advise(&crate::across::tests::run("r", cells.to_vec()), rounds).comparisons
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
fn every_cell_is_compared_with_the_fastest_of_its_model() {
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
fn what_the_data_cannot_tell_has_a_reason_and_no_figures() {
    let few = |id: &str| if id == "a" { vec![vec![8_000_000; 2]; 2] } else { by_id(id) };
    let found = comparisons(&[cell("a", 8.0), cell("b", 6.0)], &few);
    assert_eq!((found[0].difference, found[0].ratio, found[0].ci95), (Difference::Inconclusive, None, None));
    assert!(found[0].reason.starts_with("too few samples to tell, not paired"), "{}", found[0].reason);
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

/// What a measurement gives: at least three rounds, samples that lie within a tenth of a level, enough of them.
fn measured_rounds() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let round = |level: u64| prop::collection::vec(level - level / 10..=level + level / 10, 6..40);
    (1_000u64..10_000_000).prop_flat_map(move |level| prop::collection::vec(round(level), 3..8))
}

proptest! {
    #[test]
    fn a_measured_cell_is_the_same_as_itself(cell in measured_rounds()) {
        let contrast = compare(&cell, &cell).unwrap();
        prop_assert_eq!(contrast.difference, Difference::Same);
    }

    #[test]
    fn no_cell_differs_from_itself(cell in some_rounds()) {
        if let Some(Contrast { ratio, ci95, difference, .. }) = compare(&cell, &cell) {
            prop_assert!(matches!(difference, Difference::Same | Difference::Inconclusive));
            prop_assert_eq!(ratio, 1.0);
            prop_assert!(ci95.is_none_or(|[lo, hi]| lo <= 1.0 && 1.0 <= hi));
        }
    }

    #[test]
    fn same_leaves_no_room_for_a_difference_that_matters(a in measured_rounds(), b in some_rounds()) {
        if let Some(Contrast { ci95, difference: Difference::Same, .. }) = compare(&a, &b) {
            let [lo, hi] = ci95.expect("nothing is the same without an interval");
            prop_assert!(1.0 / TELLING <= lo && hi <= TELLING);
        }
    }

    #[test]
    fn the_other_way_round_is_the_inverse(a in some_rounds(), b in some_rounds()) {
        let (ahead, back) = (compare(&a, &b), compare(&b, &a));
        prop_assert_eq!(ahead.is_some(), back.is_some());
        if let (Some(ahead), Some(back)) = (ahead, back) {
            let inverse = |x: f64, y: f64| (x * y - 1.0).abs() < 1e-9;
            prop_assert!(inverse(ahead.ratio, back.ratio));
            prop_assert_eq!(ahead.ci95.is_some(), back.ci95.is_some());
            if let (Some([lo, hi]), Some([back_lo, back_hi])) = (ahead.ci95, back.ci95) {
                prop_assert!(inverse(lo, back_hi) && inverse(hi, back_lo));
            }
            let swapped = match ahead.difference {
                Difference::Faster => Difference::Slower,
                Difference::Slower => Difference::Faster,
                other => other,
            };
            prop_assert_eq!(swapped, back.difference);
        }
    }
}

#[test]
fn another_tool_s_figures_are_no_measure_for_ours() {
    let mut theirs = cell("m:trtexec:fp16", 1.0);
    theirs.backend.name = "trtexec".into();
    let ours = [theirs, cell("m:tensorrt:fp16", 2.0), cell("m:rten:fp32", 9.0)];
    let level = |id: &str| if id.contains("rten") { 9.0 } else { 2.0 };
    let found = comparisons(&ours, &|id| rounds(level(id), 10, 3));
    assert!(found.iter().all(|c| c.against == "m:tensorrt:fp16"), "{found:?}");
    let theirs = found.iter().find(|c| c.cell.contains("trtexec")).unwrap();
    assert_eq!(theirs.difference, Difference::NotComparable);
    assert!(theirs.reason.contains("another definition"), "{}", theirs.reason);
}
