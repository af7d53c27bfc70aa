//! What may be recommended, and in which words.

use prony_types::{
    AccuracyComparison, AccuracyDifference, Gate, LoadCounters, LoadRecord, Phase, Precision, RuntimeName,
    RuntimeRecord, RuntimeState, Stall, Verdict,
};

use super::*;
use crate::across::tests::{run, scored};
use crate::difference::tests::{cell, rounds};

#[path = "recommendation_laws.rs"]
mod laws;

/// Rounds around each cell's own median, paired.
fn own_rounds(cells: &[CellRecord]) -> impl Fn(&str) -> Vec<Vec<u64>> {
    let levels: Vec<(String, f64)> = cells.iter().map(|c| (c.id.clone(), frame_ms(c).unwrap_or(0.0) * 1e6)).collect();
    move |id| {
        let index = levels.iter().position(|(other, _)| other == id).unwrap();
        rounds(levels[index].1, 10, index as u64 + 1)
    }
}

fn all(record: &RunRecord) -> Vec<Recommendation> {
    advise(record, &own_rounds(&record.cells)).recommendation
}

fn of_record(record: &RunRecord) -> Recommendation {
    let mut all = all(record);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn only(cells: &[CellRecord]) -> Recommendation {
    of_record(&run("r", cells.to_vec()))
}

fn with(mut cell: CellRecord, precision: Precision, verdict: Verdict) -> CellRecord {
    (cell.precision.requested, cell.precision.executed) = (precision, Some(precision.to_string()));
    cell.verdict = Some(verdict);
    if verdict != Verdict::Valid {
        cell.verdict_reasons = vec!["medians of the rounds differ by 14 %".into()];
    }
    cell
}

fn on(mut cell: CellRecord, backend: &str) -> CellRecord {
    cell.backend.name = backend.into();
    cell
}

fn loses(id: &str, against: &str, points: f64, half: f64) -> AccuracyComparison {
    let delta = -points / 100.0;
    AccuracyComparison {
        cell: id.into(),
        against: against.into(),
        delta: Some(delta),
        ci95: Some([delta - half / 100.0, delta + half / 100.0]),
        difference: AccuracyDifference::Worse,
        reason: String::new(),
    }
}

fn gate(name: &str, cell: &str, figure: Option<f64>, limit: f64, pass: bool) -> Gate {
    let inconclusive = figure.is_none();
    Gate { name: name.into(), cell: cell.into(), figure, limit, pass, inconclusive, against: None, reason: None }
}

#[test]
fn a_slower_valid_cell_was_advised_although_the_rounds_showed_a_faster_one() {
    let slow = on(cell("m:ort-cpu:fp32", 12.0), "ort-cpu");
    let fast = on(with(cell("m:openvino:fp32", 8.7), Precision::Fp32, Verdict::Unstable), "openvino");
    let got = only(&[slow, fast]);
    assert_eq!(got.cell.as_deref(), Some("m:openvino:fp32"));
    assert!(
        got.text
            .starts_with("Ship m on openvino in fp32, which is faster than the next: m:ort-cpu:fp32 takes 1.38 times")
    );
    assert!(got.text.contains("; its 8.70 ms per frame is not firm, because medians of the rounds differ by 14 %"));
}

#[test]
fn a_cell_whose_gate_failed_was_advised_to_be_shipped() {
    let mut record = run("r", vec![cell("fast", 3.0), cell("slow", 6.0)]);
    record.gates =
        vec![gate("p99_max_ms", "fast", Some(19.25), 15.0, false), gate("p99_max_ms", "slow", Some(9.0), 15.0, true)];
    let got = of_record(&record);
    assert_eq!(got.cell.as_deref(), Some("slow"));
    assert!(got.text.contains("fast takes less time but fails p99_max_ms (19.25, limit 15)"), "{}", got.text);
    record.gates[1].pass = false;
    let got = of_record(&record);
    assert_eq!(got.cell, None);
    assert_eq!(
        got.text,
        "Ship nothing of m yet: fast fails p99_max_ms (19.25, limit 15); slow fails p99_max_ms (9, limit 15)."
    );
    record.gates = vec![gate("p99_max_ms", "fast", None, 15.0, false)];
    assert_eq!(of_record(&record).cell.as_deref(), Some("slow"), "what was not measured has not passed");
}

#[test]
fn nothing_was_advised_of_an_order_that_the_rounds_had_shown() {
    let fp32 = with(cell("m:ort-cpu:fp32", 12.5), Precision::Fp32, Verdict::Unstable);
    let int8 = with(cell("m:ort-cpu:int8", 8.9), Precision::Int8, Verdict::Unstable);
    let got = only(&[fp32, int8]);
    assert_eq!(got.cell.as_deref(), Some("m:ort-cpu:int8"));
    assert!(
        got.text.contains("faster than the next: m:ort-cpu:fp32 takes 1.40 times as long, 95 % CI 1."),
        "{}",
        got.text
    );
    assert!(got.text.contains("its 8.90 ms per frame is not firm, because"), "{}", got.text);
    assert!(got.text.contains("its accuracy was not measured: give --data"), "{}", got.text);
}

#[test]
fn a_faster_cell_that_loses_too_much_accuracy_is_named_and_not_chosen() {
    let cells =
        vec![scored(cell("fp32", 12.0), 0.60), scored(with(cell("int8", 6.0), Precision::Int8, Verdict::Valid), 0.57)];
    let mut record = run("r", cells);
    record.accuracy_comparisons = vec![loses("int8", "fp32", 3.0, 0.5)];
    let got = of_record(&record);
    assert_eq!(got.cell.as_deref(), Some("fp32"));
    let words = "int8 takes less time but loses 3.0 points of mAP50-95 against fp32 (1 allowed)";
    assert!(got.text.contains(words) && got.text.contains("mAP50-95 0.600 on 500 images"), "{}", got.text);
    record.plan.gates.map_drop_max = Some(4.0);
    assert_eq!(of_record(&record).cell.as_deref(), Some("int8"), "a limit of one's own");
}

#[test]
fn where_the_interval_cannot_tell_a_loss_of_accuracy_it_is_said() {
    let cells =
        vec![scored(cell("fp32", 12.0), 0.60), scored(with(cell("int8", 6.0), Precision::Int8, Verdict::Valid), 0.592)];
    let mut record = run("r", cells);
    record.accuracy_comparisons = vec![loses("int8", "fp32", 0.8, 0.5)];
    let got = of_record(&record);
    assert_eq!(got.cell.as_deref(), Some("int8"));
    let words =
        "-0.8 points against fp32 (95 % CI -1.3 to -0.3: whether it loses more than 1 cannot be told; score more";
    assert!(got.text.contains(words), "{}", got.text);
    record.accuracy_comparisons = vec![loses("int8", "fp32", 0.3, 0.2)];
    assert!(
        of_record(&record).text.contains("-0.3 points against fp32 (95 % CI -0.5 to -0.1);") || {
            of_record(&record).text.contains("-0.3 points against fp32 (95 % CI -0.5 to -0.1).")
        }
    );
}

#[test]
fn it_advised_installing_what_is_installed() {
    let runtime = |name, state| RuntimeRecord {
        name,
        state,
        path: None,
        found_by: None,
        version: None,
        provides: Vec::new(),
        reason: None,
        trusted: None,
        looked: Vec::new(),
        remedy: None,
    };
    let mut record = run("r", vec![on(cell("m:rten:fp32", 6.4), "rten")]);
    let text = of_record(&record).text;
    assert!(
        text.contains("the only cell measured for this model; to compare, run `prony runtime install onnxruntime` or")
    );
    record.environment.runtimes = vec![
        runtime(RuntimeName::Onnxruntime, RuntimeState::Ready),
        runtime(RuntimeName::Openvino, RuntimeState::Ready),
    ];
    let text = of_record(&record).text;
    assert!(text.contains("to compare, add --backends rten,openvino,ort-cpu") && !text.contains("install"), "{text}");
    record.cells = vec![on(cell("m:ort-cpu:fp32", 6.4), "ort-cpu")];
    record.environment.runtimes[1].state = RuntimeState::Broken;
    let text = of_record(&record).text;
    assert!(text.starts_with("Ship m on ort-cpu in fp32, the only cell measured for this model; 6.40 ms"), "{text}");
}

#[test]
fn an_engine_with_int8_layers_was_called_fp32() {
    let mut native = on(cell("m:tensorrt:native", 2.0), "tensorrt");
    native.precision.requested = Precision::Native;
    native.precision.executed = Some("int8 (69 of 154 layers), fp32 (85)".into());
    let text = only(&[native]).text;
    assert!(text.starts_with("Ship m on tensorrt in int8 (69 of 154 layers), fp32 (85), the only"), "{text}");
}

#[test]
fn in_a_run_of_three_models_nothing_else_was_said_to_be_measured() {
    let of_model = |id: &str, ms| {
        let mut cell = cell(id, ms);
        (cell.model.sha256, cell.model.name) = (id.into(), id.into());
        cell
    };
    let got = all(&run("r", vec![of_model("a", 3.0), of_model("b", 4.0), of_model("c", 5.0)]));
    assert_eq!(got.len(), 3, "models that were not scored are not compared");
    assert!(got.iter().all(|r| r.text.contains("the only cell measured for this model")), "{got:?}");
}

#[test]
fn the_text_of_one_valid_cell_word_by_word() {
    let got = only(&[cell("m:rten:fp32", 6.4)]);
    assert_eq!(got.cell.as_deref(), Some("m:rten:fp32"));
    assert_eq!(
        got.text,
        "Ship m on rten in fp32, the only cell measured for this model; to compare, run `prony runtime install \
         onnxruntime` or `openvino`; 6.40 ms per frame (95 % CI 6.34 to 6.46 within this run), 156 frames per second."
    );
}

#[test]
fn cells_that_cannot_be_told_apart_are_said_to_be() {
    let near = only(&[cell("a", 6.0), cell("b", 6.01)]);
    assert!(near.text.contains("b takes 1.00 times as long, 95 % CI"), "{}", near.text);
    assert!(near.text.contains("the same within noise, so either will do"), "{}", near.text);
    let record = run("r", vec![cell("a", 6.0), cell("b", 7.0)]);
    let few = |id: &str| vec![vec![if id == "a" { 6_000_000 } else { 7_000_000 }; 2]; 2];
    let got = advise(&record, &few).recommendation.remove(0);
    assert!(got.text.contains("too few samples to tell whether b is faster"), "{}", got.text);
}

#[test]
fn among_cells_that_cannot_be_told_apart_a_firm_one_is_taken() {
    let shaky = with(cell("shaky", 6.0), Precision::Fp32, Verdict::Unstable);
    let got = only(&[shaky.clone(), cell("firm", 6.01)]);
    assert_eq!(got.cell.as_deref(), Some("firm"));
    // But not one that is conclusively slower.
    assert_eq!(only(&[shaky, cell("firm", 9.0)]).cell.as_deref(), Some("shaky"));
}

#[test]
fn wrong_outputs_are_never_recommended() {
    let mut wrong = cell("w", 3.0);
    wrong.verdict = Some(Verdict::WrongOutput);
    wrong.verdict_reasons = vec!["an output holds NaN".into()];
    let got = only(std::slice::from_ref(&wrong));
    assert_eq!(got.cell, None);
    assert_eq!(got.text, "Ship nothing of m yet: w has wrong outputs (an output holds NaN).");
    let got = only(&[wrong, cell("right", 6.0)]);
    assert_eq!(got.cell.as_deref(), Some("right"));
    assert!(got.text.contains(", the only cell that can be shipped"), "{}", got.text);
}

#[test]
fn a_fallback_is_recommended_only_where_it_was_allowed() {
    let mut fell = cell("f", 3.0);
    fell.verdict = Some(Verdict::FellBack);
    let mut record = run("r", vec![fell, cell("ok", 6.0)]);
    assert_eq!(of_record(&record).cell.as_deref(), Some("ok"));
    let model = prony_types::ModelSpec::new("m", prony_types::ModelSource::Builtin(prony_types::SceneKind::Rgb), "1");
    let mut spec = prony_types::CellSpec::new(model, prony_types::BackendName::OrtCuda, Precision::Fp32);
    spec.id = "f".into();
    spec.provider.allow_fallback = true;
    record.plan.cells = vec![spec];
    assert_eq!(of_record(&record).cell.as_deref(), Some("f"));
}

#[test]
fn a_model_that_never_ran_is_reported_without_repeating_the_reason() {
    let mut failed = cell("f", 3.0);
    failed.status = prony_types::CellStatus::Failed;
    failed.reason = Some("killed by SIGKILL.".into());
    failed.latency_ms.clear();
    let got = only(std::slice::from_ref(&failed));
    assert_eq!(got.cell, None);
    assert_eq!(got.text, "Nothing can be said about m: its one cell failed.");
    let mut skipped = failed.clone();
    skipped.status = prony_types::CellStatus::Skipped;
    assert_eq!(only(std::slice::from_ref(&skipped)).text, "Nothing can be said about m: its one cell was skipped.");
    let got = only(&[failed.clone(), skipped, failed]);
    assert_eq!(got.text, "Nothing can be said about m: none of its 3 cells completed.");
}

#[test]
fn two_files_that_cannot_be_read_are_two_models() {
    let unreadable = |name: &str| {
        let mut failed = cell(name, 3.0);
        (failed.model.sha256, failed.model.name) = (String::new(), name.into());
        failed.status = prony_types::CellStatus::Failed;
        failed.latency_ms.clear();
        failed
    };
    let all = all(&run("r", vec![unreadable("a"), unreadable("b"), unreadable("a")]));
    let texts: Vec<&str> = all.iter().map(|r| r.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "Nothing can be said about a: none of its 2 cells completed.",
            "Nothing can be said about b: its one cell failed."
        ]
    );
}

#[test]
fn one_file_under_two_names_is_recommended_under_each() {
    let mut copy = cell("copy", 5.0);
    copy.model.name = "copy".into();
    let all = all(&run("r", vec![cell("a", 6.0), copy]));
    let pairs: Vec<_> = all.iter().map(|r| (r.model.as_str(), r.cell.as_deref())).collect();
    assert_eq!(pairs, [("m", Some("a")), ("copy", Some("copy"))]);
}

#[test]
fn a_larger_batch_is_not_taken_for_lower_latency() {
    let mut batched = cell("b4", 12.0);
    (batched.batch, batched.throughput_fps) = (4, Some(400.0));
    let got = only(&[cell("b1", 6.0), batched.clone()]);
    assert_eq!(got.cell.as_deref(), Some("b1"));
    assert!(got.text.contains("for throughput, b4 reaches 400 frames per second"), "{}", got.text);
    assert!(only(&[batched]).text.contains("12.0 ms per batch of 4"));
}

#[test]
fn a_cell_that_was_compared_with_no_reference_comes_after_one_that_agrees() {
    let mut fast = cell("fast", 3.0);
    fast.agreement = None;
    let got = only(&[fast.clone(), cell("good", 6.0)]);
    assert_eq!(got.cell.as_deref(), Some("good"));
    let got = only(&[fast]);
    assert!(got.text.ends_with("; its outputs were compared with no reference."), "{}", got.text);
}

fn of_model(name: &str, ms: f64, map: f64) -> CellRecord {
    let mut cell = scored(cell(&format!("{name}:{ms}"), ms), map);
    (cell.model.sha256, cell.model.name) = (name.into(), name.into());
    cell
}

#[test]
fn models_scored_on_the_same_images_get_a_pareto_front() {
    let record = run("r", vec![of_model("n", 3.0, 0.37), of_model("s", 6.0, 0.45), of_model("old", 7.0, 0.40)]);
    let got = all(&record);
    assert_eq!(got.len(), 4);
    assert_eq!(got[3].front, ["n:3", "s:6"]);
    assert_eq!(
        got[3].text,
        "Pareto front of 3 models on the same 500 images, fastest first: n on rten in fp32 (3.00 ms, mAP50-95 0.370); \
         s on rten in fp32 (6.00 ms, mAP50-95 0.450)."
    );
    let one = all(&run("r", vec![of_model("a", 3.0, 0.5), of_model("b", 6.0, 0.4)]));
    assert!(
        one[2].text.contains("a on rten in fp32 (3.00 ms, mAP50-95 0.500) is both the fastest and the most accurate")
    );
}

#[test]
fn models_scored_on_other_images_are_not_compared() {
    let mut other = of_model("b", 6.0, 0.45);
    other.accuracy.as_mut().unwrap().data.sha256 = "e".repeat(64);
    assert_eq!(all(&run("r", vec![of_model("a", 3.0, 0.37), other])).len(), 2);
    assert_eq!(all(&run("r", vec![of_model("a", 3.0, 0.37), of_model("a", 6.0, 0.38)])).len(), 1, "one model");
}

#[test]
fn a_cell_that_others_slowed_down_was_advised_to_be_shipped() {
    let mut busy = with(cell("m:rten:fp32", 32.8), Precision::Fp32, Verdict::Unstable);
    busy.verdict_reasons = vec!["others took 49 % of the CPU time this cell asked for".into()];
    let load = |share| {
        Some(LoadRecord { counters: LoadCounters::default(), others_share: Some(share), worst_round_share: None })
    };
    busy.load = load(0.49);
    let got = only(&[busy.clone()]);
    assert!(got.text.starts_with("Measure again before shipping m on rten in fp32, the only cell"), "{}", got.text);
    assert!(got.text.contains("is not firm, because others took 49 %"), "{}", got.text);
    busy.load = load(0.04);
    assert!(only(&[busy.clone()]).text.starts_with("Ship m on rten"), "below the bound it is not the neighbours");
    busy.stalls = vec![Stall { phase: Phase::Steady, round: 3, seconds: 20.0 }];
    assert!(only(&[busy]).text.starts_with("Measure again before shipping"));
}
