//! A verdict a rule: each fires on its own, and stays silent beside it.

use prony_types::{
    ClassMatch, CocoFigures, DataRecord, LoadCounters, Phase, PostSpec, ProviderShare, Sensitivity, TensorAgreement,
};

use super::*;
use crate::note::is_note;
use crate::stats::summarize;

const BUDGET: BudgetSpec =
    BudgetSpec { warmup_s: None, duration_s: None, samples: None, limit_s: 60.0, at_least: None, timeout_s: 60.0 };

const GOOD: OutputCheck = OutputCheck {
    non_finite_calls: 0,
    checked_calls: 40,
    detections: Some(90),
    detections_expected: true,
    repeatable: true,
};

/// A machine that does nothing else.
const QUIET: LoadRecord = LoadRecord {
    counters: LoadCounters {
        wall_s: 6.0,
        cpus: 1,
        cpu_s: Some(6.0),
        run_queue_wait_s: Some(0.0),
        longest_wait_s: Some(0.0),
        involuntary_switches: Some(3),
        busy_s: Some(6.0),
        steal_s: Some(0.0),
    },
    others_share: Some(0.0),
    worst_round_share: Some(0.001),
};

/// 1,000 samples around 6 ms, narrow.
fn calm() -> StageStats {
    summarize(&(0..1_000u64).map(|i| 6_000_000 + i * 7_919 % 1_000).collect::<Vec<_>>()).unwrap()
}

/// Readings of a machine under load with a steady clock.
fn readings(khz: impl Fn(u64) -> u64) -> Vec<Telemetry> {
    let one = |i: u64| Telemetry {
        t_ns: i * 500_000_000,
        cpu_percent: Some(90.0),
        worker_cpu_percent: Some(180.0),
        cpu_khz: vec![khz(i), khz(i)],
        temps_c: vec![("cpu".into(), 60.0)],
        throttle_events: Some(7),
        ..Telemetry::default()
    };
    (0..12).map(one).collect()
}

fn evidence<'a>(stats: &'a StageStats, telemetry: &'a [Telemetry]) -> Evidence<'a> {
    Evidence {
        stats: Some(stats),
        budget: &BUDGET,
        round_p50_ms: &[6.0, 6.01, 6.02, 6.0],
        settled: true,
        warmup_fixed: false,
        check: Some(GOOD),
        agreement: None,
        agreement_absent: None,
        consistency: &[],
        accuracy: None,
        accuracy_absent: None,
        timed: true,
        precision: Precision::Fp32,
        placement: None,
        placement_problem: None,
        layers: None,
        layers_problem: None,
        warnings: &[],
        memory: None,
        telemetry,
        load: Some(&QUIET),
        stalls: &[],
        lost_samples: 0,
        batch: 1,
        input: None,
    }
}

fn fed(source: &str, frames: u32, skipped: &[&str]) -> InputRecord {
    InputRecord {
        source: source.into(),
        frames,
        size: None,
        sha256: "f".into(),
        resident_bytes: 0,
        decode_ms: None,
        skipped: skipped.iter().map(|&s| s.into()).collect(),
    }
}

#[test]
fn a_calm_cell_is_valid_without_a_word() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    assert_eq!(judge(&evidence(&stats, &telemetry)), (Verdict::Valid, vec![]));
}

#[test]
fn wrong_outputs_are_found_each_way() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let bad = [
        (OutputCheck { non_finite_calls: 3, ..GOOD }, "3 of 40 checked calls"),
        (OutputCheck { repeatable: false, ..GOOD }, "same frame"),
        (OutputCheck { detections: Some(0), ..GOOD }, "no box"),
    ];
    for (check, words) in bad {
        let (verdict, reasons) = judge(&Evidence { check: Some(check), ..evidence(&stats, &telemetry) });
        assert_eq!(verdict, Verdict::WrongOutput);
        assert!(reasons.len() == 1 && reasons[0].contains(words), "{reasons:?}");
    }
    let quiet = OutputCheck { detections: Some(0), detections_expected: false, ..GOOD };
    let (verdict, reasons) = judge(&Evidence { check: Some(quiet), ..evidence(&stats, &telemetry) });
    assert_eq!(verdict, Verdict::Valid);
    assert!(reasons.len() == 1 && reasons[0].starts_with("note: no box on any frame"), "{reasons:?}");
}

#[test]
fn beside_nan_nothing_else_is_said_about_outputs() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let check = OutputCheck { non_finite_calls: 40, repeatable: false, detections: Some(0), ..GOOD };
    let worst = crate::agreement::tensors(&[f32::NAN], &[f32::NAN]);
    let agreement = Agreement {
        reference: "the first call".into(),
        boxes: Some(worst),
        scores: Some(worst),
        matched_boxes: Some(0.0),
        ..Agreement::default()
    };
    let (verdict, reasons) =
        judge(&Evidence { check: Some(check), agreement: Some(&agreement), ..evidence(&stats, &telemetry) });
    assert_eq!(verdict, Verdict::WrongOutput);
    assert_eq!(reasons, ["40 of 40 checked calls returned NaN or infinity"]);
}

#[test]
fn a_zeroed_score_tensor_is_wrong_even_with_perfect_boxes() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let tensor = |cosine| Some(TensorAgreement { cosine, max_abs: 0.0, sqnr_db: None });
    let agreement = |boxes, scores, matched_boxes| Agreement {
        reference: "the first call".into(),
        boxes: tensor(boxes),
        scores: tensor(scores),
        matched_boxes,
        ..Agreement::default()
    };
    let of = |agreement: &Agreement| judge(&Evidence { agreement: Some(agreement), ..evidence(&stats, &telemetry) });
    assert_eq!(of(&agreement(1.0, 0.99995, Some(1.0))).0, Verdict::Valid);
    let (verdict, reasons) = of(&agreement(1.0, 0.0, Some(1.0)));
    assert_eq!((verdict, reasons.len()), (Verdict::WrongOutput, 1));
    assert_eq!(reasons[0], "cosine of scores is 0.00000 against the first call, below 0.9999");
    assert_eq!(of(&agreement(f64::NAN, 1.0, None)).0, Verdict::WrongOutput);
    assert_eq!(of(&agreement(1.0, 1.0, Some(0.5))).0, Verdict::WrongOutput);
}

#[test]
fn outputs_without_a_head_are_not_called_boxes() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let far = TensorAgreement { cosine: 0.5, max_abs: 1.0, sqnr_db: None };
    let headless = Agreement { reference: "fp32".into(), boxes: Some(far), ..Agreement::default() };
    let of = |agreement: &Agreement| judge(&Evidence { agreement: Some(agreement), ..evidence(&stats, &telemetry) }).1;
    assert_eq!(of(&headless), ["cosine of outputs is 0.50000 against fp32, below 0.9999"]);
    let boxes = ["cosine of boxes is 0.50000 against fp32, below 0.9999"];
    assert_eq!(of(&Agreement { matched_boxes: Some(1.0), ..headless.clone() }), boxes);
    let near = TensorAgreement { cosine: 1.0, ..far };
    assert_eq!(of(&Agreement { scores: Some(near), ..headless }), boxes);
}

fn with_noise(sqnr_db: f64, rounding_db: f64) -> Agreement {
    let tensor =
        |db: f64| Some(TensorAgreement { cosine: 1.0 - 10f64.powf(-db / 10.0) / 2.0, max_abs: 0.1, sqnr_db: Some(db) });
    let moved = Sensitivity {
        epsilon: 1e-7,
        boxes: tensor(rounding_db),
        scores: tensor(rounding_db),
        rest: None,
        unstable_boxes: Some(0.25),
    };
    Agreement {
        reference: "fp32 on ort-cpu".into(),
        boxes: tensor(sqnr_db),
        scores: tensor(sqnr_db),
        matched_boxes: Some(1.0),
        sensitivity: Some(moved),
        ..Agreement::default()
    }
}

#[test]
fn a_chaotic_model_is_not_called_wrong_for_its_own_rounding() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let of = |agreement: &Agreement, precision| {
        judge(&Evidence { precision, agreement: Some(agreement), ..evidence(&stats, &telemetry) })
    };
    // Rounding carries it to 45 dB; a cell at 35 dB is a few times further off, one at 20 dB is not explained by it.
    let (verdict, reasons) = of(&with_noise(35.0, 45.0), Precision::Fp32);
    assert_eq!(verdict, Verdict::Valid, "{reasons:?}");
    let note = "note: this model is sensitive: an input rounded to fp32 alone moves boxes by 0.56 %";
    assert!(reasons.iter().any(|reason| reason.starts_with(note)), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("25.0 % of the boxes move")), "{reasons:?}");
    let (verdict, reasons) = of(&with_noise(20.0, 45.0), Precision::Fp32);
    assert_eq!(verdict, Verdict::WrongOutput);
    assert!(reasons[0].contains("below 0.9984, which allows for the model's own rounding"), "{reasons:?}");
    // In fp16 nothing is left to compare, and that is said.
    let (verdict, reasons) = of(&with_noise(2.0, 4.0), Precision::Fp16);
    assert_eq!(verdict, Verdict::Valid, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("cannot tell a wrong output from rounding")), "{reasons:?}");
    // Steps of int8 depend on ranges: its bounds are its own.
    assert_eq!(of(&with_noise(9.0, 4.0), Precision::Int8).0, Verdict::WrongOutput);
}

#[test]
fn a_model_that_rounding_does_not_move_must_be_near_its_reference() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let of = |db| judge(&Evidence { agreement: Some(&with_noise(db, 140.0)), ..evidence(&stats, &telemetry) }).0;
    assert_eq!((of(134.0), of(71.0), of(60.0)), (Verdict::Valid, Verdict::Valid, Verdict::WrongOutput));
}

#[test]
fn throttling_is_seen_in_the_counter_and_in_the_clock() {
    let stats = calm();
    let mut counted = readings(|_| 3_000_000);
    counted[11].throttle_events = Some(9);
    let (verdict, reasons) = judge(&evidence(&stats, &counted));
    assert_eq!((verdict, reasons[0].as_str()), (Verdict::Throttled, "2 thermal throttle events while it was timed"));
    let falling = readings(|i| if i < 6 { 3_000_000 } else { 2_400_000 });
    let (verdict, reasons) = judge(&evidence(&stats, &falling));
    assert_eq!(verdict, Verdict::Throttled);
    assert_eq!(reasons[0], "mean CPU clock fell by 20 % under load, from 3000 to 2400 MHz");
    let slightly = readings(|i| if i < 6 { 3_000_000 } else { 2_600_000 });
    assert_eq!(judge(&evidence(&stats, &slightly)).0, Verdict::Valid);
}

#[test]
fn a_governor_that_slows_an_idle_machine_is_not_throttling() {
    let stats = calm();
    let mut idle = readings(|i| if i < 6 { 3_000_000 } else { 800_000 });
    for reading in &mut idle {
        reading.cpu_percent = Some(9.0);
        reading.worker_cpu_percent = Some(20.0);
    }
    assert_eq!(judge(&evidence(&stats, &idle)).0, Verdict::Valid);
    // One busy CPU of many: its clock is the highest, and that holds although the mean falls.
    for (i, reading) in idle.iter_mut().enumerate() {
        reading.worker_cpu_percent = Some(99.0);
        reading.cpu_khz = vec![3_000_000, if i < 6 { 3_000_000 } else { 800_000 }];
    }
    assert_eq!(judge(&evidence(&stats, &idle)).0, Verdict::Valid);
    for reading in &mut idle[6..] {
        reading.cpu_khz[0] = 2_000_000;
    }
    assert_eq!(judge(&evidence(&stats, &idle)).0, Verdict::Throttled);
}

#[test]
fn a_machine_that_does_not_hold_still_is_unstable() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let of = |rounds: &[f64]| judge(&Evidence { round_p50_ms: rounds, ..evidence(&stats, &telemetry) });
    assert_eq!(of(&[6.0, 6.59, 6.1]).0, Verdict::Valid);
    assert_eq!(of(&[6.0, 6.8, 6.1]).0, Verdict::Unstable);
    assert_eq!(of(&[6.1, 5.4, 6.1]).0, Verdict::Unstable);
    // One burst of a neighbour among many rounds is something to know, two among ten an objection.
    let mut ten = [6.0, 6.1, 6.0, 6.1, 9.0, 6.0, 6.1, 6.0, 6.1, 6.0];
    let (verdict, reasons) = of(&ten);
    assert_eq!(verdict, Verdict::Valid);
    assert_eq!(reasons, ["note: 1 of 10 rounds is off the others by more than 10 %: medians from 6.00 to 9.00 ms"]);
    ten[7] = 8.0;
    assert_eq!(of(&ten).0, Verdict::Unstable);
    assert_eq!(of(&[6.0, 6.7]).0, Verdict::Valid, "two rounds cannot tell");
    let (verdict, reasons) = of(&[6.0, 6.1, 6.2, 6.3, 6.4, 6.5]);
    assert_eq!((verdict, reasons.len()), (Verdict::Unstable, 1));
    assert_eq!(reasons[0], "the cell became 7 % slower from the first to the last third of its rounds");
    assert_eq!(of(&[6.0, 6.4, 6.2, 6.3, 6.35, 6.15]).0, Verdict::Valid);
}

#[test]
fn rounds_of_very_few_frames_make_no_cell_unstable() {
    let telemetry = readings(|_| 3_000_000);
    // Three rounds that differ by half, and six that drift: only how many samples stand behind them changes.
    for (rounds, enough) in [(&[6.0, 9.0, 6.1][..], 15), (&[6.0, 6.1, 6.2, 6.3, 6.4, 6.5][..], 30)] {
        let of = |n: u64| {
            let stats = StageStats { n, ..calm() };
            judge(&Evidence { round_p50_ms: rounds, ..evidence(&stats, &telemetry) })
        };
        assert_eq!(of(enough).0, Verdict::Unstable);
        let (verdict, reasons) = of(enough - 1);
        assert_eq!(verdict, Verdict::Undersampled);
        assert!(reasons.len() == 1 && reasons[0].contains("too few"), "{reasons:?}");
    }
    // Many rounds of a frame each are enough samples for a median, and none of them can be judged alone.
    let (stats, rounds) = (calm(), (0..300).map(|i| if i % 3 == 0 { 8.0 } else { 6.0 }).collect::<Vec<f64>>());
    assert_eq!(judge(&Evidence { round_p50_ms: &rounds, ..evidence(&stats, &telemetry) }).0, Verdict::Valid);
}

#[test]
fn a_steady_state_must_be_reached_unless_warm_up_was_fixed() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let unsettled = Evidence { settled: false, ..evidence(&stats, &telemetry) };
    assert_eq!(judge(&unsettled).0, Verdict::Unstable);
    let budget = BudgetSpec { warmup_s: Some(2.0), ..BUDGET };
    let (verdict, reasons) = judge(&Evidence { warmup_fixed: true, budget: &budget, ..unsettled });
    assert_eq!((verdict, reasons.len()), (Verdict::Valid, 1));
    assert!(reasons[0].starts_with("note: warm-up was fixed at 2 s"), "{reasons:?}");
}

#[test]
fn too_few_or_too_wide_is_undersampled() {
    let telemetry = readings(|_| 3_000_000);
    let of = |stats: &StageStats| judge(&evidence(stats, &telemetry));
    let few = summarize(&[6_000_000; 63]).unwrap();
    let (verdict, reasons) = of(&few);
    assert_eq!(verdict, Verdict::Undersampled);
    assert_eq!(reasons[0], "63 samples are too few, 64 are needed; measure longer");
    let one = summarize(&[6_000_000]).unwrap();
    assert_eq!(of(&one).1[0], "1 sample is too few, 64 are needed; measure longer");
    let batched = judge(&Evidence { batch: 4, ..evidence(&one, &telemetry) }).1;
    assert_eq!(batched[0], "1 sample of 4 frames is too few, 64 are needed; measure longer");
    let with_width = |width: f64| StageStats { ci95: Some([6.0 - 6.0 * width, 6.0 + 6.0 * width]), p50: 6.0, ..calm() };
    assert_eq!(of(&with_width(0.051)).0, Verdict::Undersampled);
    let (verdict, reasons) = of(&with_width(0.03));
    assert_eq!(verdict, Verdict::Valid);
    assert_eq!(reasons, ["note: the median is known within 3.0 %, wider than 1 %"]);
    assert!(of(&with_width(0.009)).1.is_empty());
    let calm = calm();
    assert_eq!(judge(&Evidence { stats: None, ..evidence(&calm, &telemetry) }).0, Verdict::Undersampled);
}

#[test]
fn what_could_not_be_read_is_unknown() {
    let stats = calm();
    let mut telemetry = readings(|_| 3_000_000);
    let lost = |lost_samples| judge(&Evidence { lost_samples, ..evidence(&stats, &telemetry) });
    assert_eq!(lost(4), (Verdict::Unknown, vec!["4 samples were lost because the ring was full".into()]));
    assert_eq!(lost(1).1, ["1 sample was lost because the ring was full"]);
    assert_eq!(judge(&Evidence { check: None, ..evidence(&stats, &telemetry) }).0, Verdict::Unknown);
    telemetry[3].failed = vec!["temperature cpu".into()];
    telemetry[4].failed = vec!["temperature cpu".into()];
    let (verdict, reasons) = judge(&evidence(&stats, &telemetry));
    assert_eq!(verdict, Verdict::Unknown);
    assert_eq!(reasons, ["sensors that exist could not be read: temperature cpu"]);
}

#[test]
fn a_machine_without_sensors_is_valid_and_says_so() {
    let stats = calm();
    let bare = [Telemetry { cpu_percent: Some(50.0), ..Telemetry::default() }];
    assert_eq!(judge(&evidence(&stats, &bare)), (Verdict::Valid, vec![format!("note: {NO_SENSOR}")]));
    let (verdict, reasons) = judge(&evidence(&stats, &[]));
    assert_eq!((verdict, reasons.len()), (Verdict::Valid, 1));
    assert!(reasons[0].starts_with("note: no sensor was read"), "{reasons:?}");
}

#[test]
fn few_frames_and_skipped_files_are_something_to_know() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let of = |input: &InputRecord| {
        let (verdict, reasons) = judge(&Evidence { input: Some(input), ..evidence(&stats, &telemetry) });
        assert_eq!(verdict, Verdict::Valid);
        reasons
    };
    let one = "note: only 1 distinct frame, so caches and NMS saw little variety; 32 are usual";
    let most = "note: only 31 distinct frames, so caches and NMS saw little variety; 32 are usual";
    assert_eq!(of(&fed("1 image in photos", 1, &[])), [one]);
    assert_eq!(
        of(&fed("31 images in photos", 31, &["a: not an image"])),
        [most, "note: 1 file could not be used and was skipped"]
    );
    let two = ["note: 2 files could not be used and were skipped"];
    assert_eq!(of(&fed("32 images in photos", 32, &["a: not an image", "b: empty"])), two);
    for source in ["random values from 0 to 1, seed 7", "tensors in x.npz"] {
        assert_eq!(of(&fed(source, 1, &[])), [""; 0], "{source}");
    }
}

#[test]
fn the_gravest_decides_and_all_are_told() {
    let stats = summarize(&[6_000_000; 20]).unwrap();
    let check = OutputCheck { repeatable: false, ..GOOD };
    let (verdict, reasons) =
        judge(&Evidence { check: Some(check), settled: false, lost_samples: 1, ..evidence(&stats, &[]) });
    assert_eq!(verdict, Verdict::WrongOutput);
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    assert!(reasons[0].contains("same frame") && reasons[1].contains("steady") && reasons[2].contains("too few"));
}

#[test]
fn under_an_objection_notes_stand_last_and_can_be_told_apart() {
    let stats = StageStats { ci95: Some([5.82, 6.18]), p50: 6.0, ..calm() };
    let budget = BudgetSpec { warmup_s: Some(2.0), ..BUDGET };
    let (verdict, reasons) = judge(&Evidence {
        warmup_fixed: true,
        budget: &budget,
        lost_samples: 4,
        round_p50_ms: &[6.0, 6.8, 6.1],
        ..evidence(&stats, &[])
    });
    assert_eq!(verdict, Verdict::Unstable);
    let notes: Vec<bool> = reasons.iter().map(|r| is_note(r)).collect();
    assert_eq!(notes, [false, false, true, true, true], "{reasons:?}");
}

#[test]
fn a_coarser_precision_may_be_further_from_the_reference() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let near = TensorAgreement { cosine: 0.9993, max_abs: 0.1, sqnr_db: Some(28.0) };
    let agreement = Agreement {
        reference: "fp32 on ort-cpu".into(),
        boxes: Some(near),
        scores: Some(near),
        matched_boxes: Some(0.96),
        ..Agreement::default()
    };
    let of = |precision| judge(&Evidence { precision, agreement: Some(&agreement), ..evidence(&stats, &telemetry) });
    assert_eq!(of(Precision::Fp16).0, Verdict::Valid);
    assert_eq!(of(Precision::Fp32).0, Verdict::WrongOutput);
    let noisy = Agreement { boxes: Some(TensorAgreement { sqnr_db: Some(9.0), ..near }), ..agreement.clone() };
    let of = judge(&Evidence { precision: Precision::Fp16, agreement: Some(&noisy), ..evidence(&stats, &telemetry) });
    assert_eq!(of.1, ["noise of boxes is only 9.0 dB below fp32 on ort-cpu, 25 dB is the least"]);
}

#[test]
fn a_missing_reference_is_told_and_no_objection() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let told = Evidence { agreement_absent: Some("it failed"), ..evidence(&stats, &telemetry) };
    assert_eq!(judge(&told), (Verdict::Valid, vec!["note: outputs were held against no reference: it failed".into()]));
}

#[test]
fn nodes_that_ran_elsewhere_are_named() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let share = |provider: &str, nodes, time, operators: &[&str]| ProviderShare {
        provider: provider.into(),
        nodes,
        time,
        operators: operators.iter().map(|&op| op.into()).collect(),
    };
    let mut placement = PlacementRecord {
        requested: "CUDA".into(),
        providers: vec![share("CUDA", 187, 0.97, &["Conv"]), share("CPU", 3, 0.03, &["Shape", "Gather"])],
    };
    let of =
        |placement: &PlacementRecord| judge(&Evidence { placement: Some(placement), ..evidence(&stats, &telemetry) });
    let (verdict, reasons) = of(&placement);
    assert_eq!(verdict, Verdict::FellBack);
    assert_eq!(reasons, ["187 of 190 nodes on CUDA, 97 % of the time; 3 on CPU (Shape, Gather)"]);
    placement.providers.pop();
    assert_eq!(of(&placement).0, Verdict::Valid);
    let unknown = judge(&Evidence { placement_problem: Some("no profile"), ..evidence(&stats, &telemetry) });
    assert_eq!(unknown.0, Verdict::Unknown);
}

#[test]
fn a_broken_memory_limit_is_over_budget() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let memory = MemoryRecord { violations: vec!["GPU memory 5 MiB, limit 4 MiB".into()], ..MemoryRecord::default() };
    let (verdict, reasons) = judge(&Evidence { memory: Some(&memory), ..evidence(&stats, &telemetry) });
    assert_eq!((verdict, reasons[0].as_str()), (Verdict::OverBudget, "GPU memory 5 MiB, limit 4 MiB"));
}

#[test]
fn a_cell_that_does_not_agree_with_itself_is_wrong() {
    let check = |holds| ConsistencyCheck { name: "a fresh session".into(), holds, detail: "cosine 0.5".into() };
    let says = |checks: &[ConsistencyCheck], found: OutputCheck| {
        let (stats, readings) = (calm(), readings(|_| 3_000_000));
        judge(&Evidence { consistency: checks, check: Some(found), ..evidence(&stats, &readings) })
    };
    let (verdict, reasons) = says(&[check(Some(false))], GOOD);
    assert_eq!(verdict, Verdict::WrongOutput);
    assert!(reasons.iter().any(|r| r == "a fresh session gave another output: cosine 0.5"), "{reasons:?}");
    let (verdict, reasons) = says(&[check(None)], GOOD);
    assert!(verdict != Verdict::WrongOutput && reasons.iter().any(|r| r.contains("could not be tried")), "{reasons:?}");
    assert_ne!(says(&[check(Some(true))], GOOD).0, Verdict::WrongOutput);
    let nan = OutputCheck { non_finite_calls: 1, checked_calls: 1, ..GOOD };
    assert_eq!(says(&[check(Some(false))], nan).1.iter().filter(|r| r.contains("fresh")).count(), 0);
}

#[test]
fn no_box_on_data_of_its_classes_is_wrong_and_no_score_is_unknown() {
    let (stats, readings) = (calm(), readings(|_| 3_000_000));
    let data = DataRecord { objects: 9, ..DataRecord::default() };
    let accuracy = |detections| AccuracyRecord {
        figures: CocoFigures::default(),
        ci95: None,
        images: 3,
        detections,
        data: data.clone(),
        post: PostSpec { conf: 0.001, iou: 0.7, max_det: 300, multi_label: true },
        classes: Vec::new(),
        curves: Vec::new(),
        likely_causes: Vec::new(),
        seconds: 1.0,
    };
    let of = |accuracy: &AccuracyRecord| judge(&Evidence { accuracy: Some(accuracy), ..evidence(&stats, &readings) });
    assert_eq!(of(&accuracy(0)).0, Verdict::WrongOutput);
    assert_ne!(of(&accuracy(1)).0, Verdict::WrongOutput);
    let absent = judge(&Evidence { accuracy_absent: Some("no class in common"), ..evidence(&stats, &readings) });
    assert!(absent.1.iter().any(|r| r.ends_with("could not be scored: no class in common")), "{absent:?}");
}

#[test]
fn what_was_only_scored_is_not_blamed_for_its_samples() {
    let (stats, readings) = (calm(), Vec::new());
    let untimed = Evidence { stats: None, timed: false, round_p50_ms: &[], ..evidence(&stats, &readings) };
    let (verdict, reasons) = judge(&untimed);
    assert_eq!(verdict, Verdict::Valid, "{reasons:?}");
}

#[test]
fn a_memory_limit_that_was_nearly_reached_is_a_note() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let memory = MemoryRecord { warning: Some("3.9 MiB of 4 MiB".into()), ..MemoryRecord::default() };
    let (verdict, reasons) = judge(&Evidence { memory: Some(&memory), ..evidence(&stats, &telemetry) });
    assert_eq!((verdict, reasons.as_slice()), (Verdict::Valid, &["note: 3.9 MiB of 4 MiB".to_owned()][..]));
    assert!(is_note(&reasons[0]));
}

#[test]
fn what_a_library_warned_of_on_loading_is_a_note_and_no_objection() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let warnings = ["Using an engine plan file across different models of devices is not recommended".to_owned()];
    let (verdict, reasons) = judge(&Evidence { warnings: &warnings, ..evidence(&stats, &telemetry) });
    assert_eq!(verdict, Verdict::Valid);
    assert_eq!(reasons, [format!("note: the library warned on loading: {}", warnings[0])]);
}

#[test]
fn a_busy_machine_was_valid_because_nothing_scattered() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let of = |share| {
        let load = LoadRecord { others_share: share, ..QUIET };
        judge(&Evidence { load: Some(&load), ..evidence(&stats, &telemetry) })
    };
    let (verdict, reasons) = of(Some(0.49));
    assert_eq!(verdict, Verdict::Unstable);
    assert!(reasons[0].starts_with("others took 49 % of the CPU time this cell asked for"), "{reasons:?}");
    let (verdict, reasons) = of(Some(0.03));
    assert!(verdict == Verdict::Valid && reasons[0].starts_with("note: others took 3 %"), "{reasons:?}");
    let (verdict, reasons) = of(None);
    assert!(verdict == Verdict::Valid && reasons[0].contains("could not be ruled out"), "{reasons:?}");
    let untimed = Evidence { load: None, timed: false, ..evidence(&stats, &telemetry) };
    assert_eq!(judge(&untimed).1, [""; 0], "what is only scored may share the machine");
}

#[test]
fn a_process_that_was_stopped_was_valid() {
    let (stats, telemetry) = (calm(), readings(|_| 3_000_000));
    let stalls = [Stall { phase: Phase::Steady, round: 3, seconds: 20.0 }];
    let (verdict, reasons) = judge(&Evidence { stalls: &stalls, ..evidence(&stats, &telemetry) });
    assert_eq!(verdict, Verdict::Unstable);
    assert_eq!(reasons, ["round 3 stood still for 20.0 s: the process was stopped or the machine slept"]);
}

#[test]
fn a_score_of_zero_was_valid() {
    let (stats, readings) = (calm(), readings(|_| 3_000_000));
    let figures = CocoFigures { map_50_95: Some(0.0), map_50: Some(0.0), ..CocoFigures::default() };
    let matched = |by_name, matched, objects| ClassMatch { by_name, matched, categories: 3, missing: vec![], objects };
    let of = |figures, classes: ClassMatch, likely_causes: &[&str]| {
        let accuracy = AccuracyRecord {
            figures,
            ci95: None,
            images: 40,
            detections: 900,
            data: DataRecord { objects: 210, class_match: Some(classes), ..DataRecord::default() },
            post: PostSpec { conf: 0.001, iou: 0.7, max_det: 300, multi_label: true },
            classes: Vec::new(),
            curves: Vec::new(),
            likely_causes: likely_causes.iter().map(|&cause| cause.into()).collect(),
            seconds: 1.0,
        };
        judge(&Evidence { accuracy: Some(&accuracy), ..evidence(&stats, &readings) })
    };
    let (verdict, reasons) = of(figures, matched(true, 3, 210), &[]);
    assert_eq!(verdict, Verdict::WrongOutput);
    let start =
        "mAP50-95 is 0.000 on 40 images with 210 objects, although all class names match; likely cause: box format";
    assert!(reasons[0].starts_with(start) && reasons.len() == 1, "{reasons:?}");
    for cause in ["normalisation", "colour order", "range of the input", "sigmoid applied twice"] {
        assert!(reasons[0].contains(cause), "{reasons:?}");
    }
    let (_, reasons) = of(figures, matched(true, 3, 210), &["order of the classes: x"]);
    assert!(reasons[0].ends_with("; likely cause: order of the classes: x"), "{reasons:?}");
    let (verdict, reasons) = of(figures, matched(false, 3, 210), &[]);
    assert_eq!(verdict, Verdict::WrongOutput);
    assert!(reasons[0].contains("matched by position; likely cause: another order of the classes"), "{reasons:?}");
    assert!(reasons[1].starts_with("note: the model has no class names"), "{reasons:?}");
    assert_eq!(of(figures, matched(true, 1, 3), &[]).0, Verdict::Unknown, "three objects prove nothing");
    let low = CocoFigures { map_50: Some(0.02), ..figures };
    assert_eq!(of(low, matched(true, 3, 210), &[]), (Verdict::Valid, vec![]), "a bad model may be bad");
}
