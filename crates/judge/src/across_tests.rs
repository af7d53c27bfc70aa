//! Regressions that must be seen between runs, and what must not be compared.

use prony_types::{
    AccuracyRecord, BackendName, BudgetSpec, CocoFigures, CpuRecord, DataRecord, Environment, GateSpec, InputSpec,
    MemorySafety, MethodRecord, Plan, PostSpec, ReferenceSpec, RunInfo, SCHEMA, SourceSpec, Verdict,
};

use proptest::prelude::*;

use super::*;
use crate::difference::tests::cell;

pub(crate) const POST: PostSpec = PostSpec { conf: 0.25, iou: 0.45, max_det: 300, multi_label: false };

/// A run of these cells on a machine of its own.
pub(crate) fn run(id: &str, cells: Vec<CellRecord>) -> RunRecord {
    let budget =
        BudgetSpec { warmup_s: None, duration_s: None, samples: None, limit_s: 20.0, at_least: None, timeout_s: 120.0 };
    let text = String::new;
    RunRecord {
        schema: SCHEMA.to_owned(),
        run: RunInfo {
            id: id.to_owned(),
            started: "2026-11-15T04:12:00Z".to_owned(),
            finished: None,
            command: Vec::new(),
            version: "0.1.0".to_owned(),
            binary_sha256: text(),
            exit_code: None,
            anchor_ns: 0,
            resumed: Vec::new(),
            wall_s: None,
            redacted: false,
        },
        environment: Environment {
            arch: "x86_64".to_owned(),
            cpu: CpuRecord { name: Some("CPU A".to_owned()), usable: 2, ..CpuRecord::default() },
            ..Environment::default()
        },
        method: MethodRecord {
            clock: text(),
            total: text(),
            warmup: text(),
            stopping: text(),
            schedule: text(),
            intervals: text(),
            percentiles: text(),
            comparison: text(),
            throughput: text(),
            between_runs: None,
        },
        plan: Plan {
            name: "bench".to_owned(),
            cells: Vec::new(),
            input: InputSpec { source: SourceSpec::Scenes, seed: 7, frames: 32 },
            post: POST,
            budget,
            standby: Vec::new(),
            named_precisions: Vec::new(),
            reference: ReferenceSpec { backend: BackendName::OrtCpu, ..ReferenceSpec::default() },
            evaluation: None,
            timed: true,
            resident: prony_types::Resident::Auto,
            gates: GateSpec::default(),
            strict: false,
            notes: Vec::new(),
        },
        cells,
        waves: Vec::new(),
        comparisons: Vec::new(),
        narrowings: Vec::new(),
        accuracy_comparisons: Vec::new(),
        gates: Vec::new(),
        memory_safety: MemorySafety::default(),
        recommendation: Vec::new(),
    }
}

/// Scored at `map` with an interval of one point to either side.
pub(crate) fn scored(cell: CellRecord, map: f64) -> CellRecord {
    let accuracy = AccuracyRecord {
        figures: CocoFigures { map_50_95: Some(map), ..CocoFigures::default() },
        ci95: Some([map - 0.01, map + 0.01]),
        images: 500,
        detections: 4_000,
        data: DataRecord { sha256: "d".repeat(64), ..DataRecord::default() },
        post: PostSpec { conf: 0.001, iou: 0.7, max_det: 300, multi_label: true },
        classes: Vec::new(),
        curves: Vec::new(),
        likely_causes: Vec::new(),
        seconds: 1.0,
    };
    CellRecord { accuracy: Some(accuracy), ..cell }
}

fn with_rounds(id: &str, p50: f64, scatter: f64) -> CellRecord {
    let rounds = (0..9).map(|i| p50 * (1.0 + scatter * (f64::from(i % 3) - 1.0))).collect();
    CellRecord { round_p50_ms: rounds, ..cell(id, p50) }
}

fn compared(a: &RunRecord, b: &RunRecord, force: bool) -> Vec<RowComparison> {
    rows(a, b, force, &|_, _| None)
}

fn failed(rows: &[RowComparison], baseline: &RunRecord, run: &RunRecord) -> Vec<(String, String)> {
    regressions(rows, baseline, run).into_iter().filter(|gate| !gate.pass).map(|gate| (gate.name, gate.cell)).collect()
}

#[test]
fn a_cell_that_became_a_tenth_slower_is_named_and_no_other() {
    let a = run("a", vec![with_rounds("x", 6.0, 0.01), with_rounds("y", 8.0, 0.01)]);
    let b = run("b", vec![with_rounds("x", 6.0, 0.01), with_rounds("y", 8.8, 0.01)]);
    let rows = compared(&a, &b, false);
    let words: Vec<Difference> = rows.iter().map(|row| row.latency.as_ref().unwrap().difference).collect();
    assert_eq!(words, [Difference::Same, Difference::Slower]);
    assert_eq!(failed(&rows, &a, &b), [("slower".to_owned(), "y".to_owned())]);
    assert_eq!(failed(&compared(&b, &a, false), &b, &a), [], "faster is no regression");
}

#[test]
fn rounds_that_scatter_widen_the_interval() {
    let a = run("a", vec![with_rounds("x", 6.0, 0.15)]);
    let b = run("b", vec![with_rounds("x", 6.6, 0.15)]);
    let row = &compared(&a, &b, false)[0];
    let latency = row.latency.as_ref().unwrap();
    assert_ne!(latency.difference, Difference::Slower, "{latency:?}");
    // The medians alone would have called it one.
    let (mut a, mut b) = (a, b);
    a.cells[0].round_p50_ms.truncate(2);
    b.cells[0].round_p50_ms.truncate(2);
    let latency = compared(&a, &b, false)[0].latency.clone().unwrap();
    assert_eq!(latency.difference, Difference::Slower);
    assert!(latency.reason.contains("two medians alone"), "{}", latency.reason);
}

#[test]
fn an_unstable_side_was_called_a_regression() {
    let a = run("a", vec![with_rounds("x", 6.0, 0.01)]);
    for verdict in [Verdict::Unstable, Verdict::Throttled] {
        let mut b = run("b", vec![with_rounds("x", 9.0, 0.01)]);
        b.cells[0].verdict = Some(verdict);
        let latency = compared(&a, &b, false)[0].latency.clone().unwrap();
        assert_eq!(latency.difference, Difference::Inconclusive, "however far apart");
        let words = format!("; the run is {verdict}; measure both again with --duration ");
        assert!(latency.reason.contains(&words), "{}", latency.reason);
        assert_eq!(outcome(&a, &b), [("slower".to_owned(), "inconclusive")]);
        assert_eq!(outcome(&b, &a), [("slower".to_owned(), "inconclusive")]);
        // One measurement is the same as itself whatever it is worth.
        assert_eq!(compared(&b, &b, false)[0].latency.as_ref().unwrap().difference, Difference::Same);
    }
}

#[test]
fn noise_was_called_a_regression_and_the_other_way_round_none() {
    // 1.139 times, 95 % CI 0.711 to 1.823.
    let half = (1.823f64 / 0.711).ln() / 2.0 / 2f64.sqrt();
    let side = |id: &str, p50: f64| {
        let mut cell = cell("x", p50);
        cell.latency_ms.get_mut(&Stage::Total).unwrap().ci95 = Some([p50 * (-half).exp(), p50 * half.exp()]);
        run(id, vec![cell])
    };
    let (a, b) = (side("a", 10.0), side("b", 11.39));
    let latency = compared(&a, &b, false)[0].latency.clone().unwrap();
    assert!(latency.reason.starts_with("1.139 times the median latency, 95 % CI 0.711 to 1.824"), "{}", latency.reason);
    for (one, other) in [(&a, &b), (&b, &a)] {
        assert_eq!(outcome(one, other), [("slower".to_owned(), "inconclusive")]);
        let seconds = compared(one, other, false)[0].latency.as_ref().unwrap().measure_s.unwrap();
        // 700 samples of 10 ms, and an interval that is 4.3 times as wide as it may be.
        assert!((120.0..200.0).contains(&seconds), "{seconds}");
    }
    let hopeless = enough_s(0.06, Some(3.0), 20.0);
    assert!(advice(hopeless).contains("quiet the machine"), "{hopeless}");
}

/// Name and outcome of what did not pass.
fn outcome(baseline: &RunRecord, run: &RunRecord) -> Vec<(String, &'static str)> {
    let gates = regressions(&compared(baseline, run, false), baseline, run);
    let word = |gate: &Gate| if gate.is_broken() { "broken" } else { "inconclusive" };
    gates.into_iter().filter(|gate| !gate.pass).map(|gate| (gate.name.clone(), word(&gate))).collect()
}

proptest! {
    #[test]
    fn swapping_two_runs_mirrors_the_answer(a in some_run("a"), b in some_run("b")) {
        let (ahead, back) = (compared(&a, &b, false).remove(0), compared(&b, &a, false).remove(0));
        let (one, other) = (ahead.latency.unwrap(), back.latency.unwrap());
        let mirrored = match one.difference {
            Difference::Faster => Difference::Slower,
            Difference::Slower => Difference::Faster,
            word => word,
        };
        prop_assert_eq!(mirrored, other.difference);
        prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
        prop_assert_eq!(one.measure_s, other.measure_s);
        prop_assert_eq!(one.measure_s.is_some(), one.difference == Difference::Inconclusive);
        if let Some([lo, hi]) = one.ci95 {
            prop_assert!(lo <= one.ratio && one.ratio <= hi, "{} outside {} to {}", one.ratio, lo, hi);
        }
        // What is inconclusive one way is so the other way, and only what is surely slower is broken.
        let lines = |a: &RunRecord, b: &RunRecord| regressions(&compared(a, b, false), a, b);
        for (gates, latency) in [(lines(&a, &b), &one), (lines(&b, &a), &other)] {
            let slower = gates.iter().find(|gate| gate.name == "slower").unwrap();
            prop_assert_eq!(slower.is_broken(), latency.difference == Difference::Slower);
            prop_assert_eq!(slower.inconclusive, latency.difference == Difference::Inconclusive);
        }
    }
}

/// A run of one cell: any median, interval, scatter and verdict that is not about outputs.
fn some_run(id: &'static str) -> impl Strategy<Value = RunRecord> {
    let verdict = prop_oneof![
        4 => Just(Verdict::Valid),
        1 => Just(Verdict::Undersampled),
        1 => Just(Verdict::Unstable),
        1 => Just(Verdict::Throttled),
    ];
    let width = prop_oneof![0.0..0.05f64, 0.0..1.0f64];
    let rounds = prop::collection::vec(0.7..1.4f64, 0..12);
    (1.0..20.0f64, prop::option::of(width), rounds, 0.0..1.0f64, verdict).prop_map(
        move |(p50, width, rounds, scatter, verdict)| {
            let mut cell = cell("x", p50);
            let stats = cell.latency_ms.get_mut(&Stage::Total).unwrap();
            stats.ci95 = width.map(|width| [p50 * (1.0 - width * 0.4), p50 * (1.0 + width)]);
            cell.round_p50_ms = rounds.iter().map(|r| p50 * (1.0 + (r - 1.0) * scatter)).collect();
            cell.verdict = Some(verdict);
            run(id, vec![cell])
        },
    )
}

#[test]
fn another_input_size_is_refused_and_force_marks_it() {
    let a = run("a", vec![cell("x", 6.0)]);
    let mut b = run("b", vec![cell("x", 24.0)]);
    b.cells[0].model.input = Some("1x3x640x640".to_owned());
    b.cells[0].model.head = Some("dense of another shape".to_owned());
    let row = &compared(&a, &b, false)[0];
    assert_eq!((row.outcome, row.latency.is_none()), (RowOutcome::Refused, true));
    assert_eq!(row.reason.as_deref(), Some("not comparable: input 1x3x640x640 against 1x3x320x320"));
    assert_eq!(regressions(std::slice::from_ref(row), &a, &b), [], "nothing was compared");
    let row = &compared(&a, &b, true)[0];
    assert_eq!(row.outcome, RowOutcome::Forced);
    assert_eq!(row.latency.as_ref().unwrap().difference, Difference::Slower);
}

#[test]
fn every_field_that_decides_is_looked_at() {
    let a = run("a", vec![cell("x", 6.0)]);
    let refused = |field: &str, change: &dyn Fn(&mut RunRecord)| {
        let mut b = run("b", vec![cell("x", 6.0)]);
        change(&mut b);
        let row = compared(&a, &b, false).remove(0);
        let fields: Vec<&str> = row.differing.iter().map(|field| field.field.as_str()).collect();
        assert_eq!((row.outcome, fields), (RowOutcome::Refused, vec![field]));
    };
    refused("processor", &|b| b.environment.cpu.name = Some("CPU B".to_owned()));
    refused("power mode", &|b| b.environment.power_mode = Some("15W".to_owned()));
    refused("device", &|b| b.cells[0].backend.device = Some("GPU".to_owned()));
    refused("batch", &|b| b.cells[0].batch = 4);
    refused("head", &|b| b.cells[0].model.head = Some("dfl".to_owned()));
    refused("post-processing", &|b| b.plan.post.conf = 0.1);
    refused("post-processing", &|b| b.plan.post.multi_label = true);
    refused("version of the backend", &|b| b.cells[0].backend.version = Some("10.3".to_owned()));
    refused("frames", &|b| b.cells[0].input.as_mut().unwrap().sha256 = "e".to_owned());
}

#[test]
fn another_model_file_is_told_and_compared() {
    let a = run("a", vec![cell("x", 6.0)]);
    let mut b = run("b", vec![cell("x", 6.0)]);
    b.cells[0].model.sha256 = "2".to_owned();
    let row = &compared(&a, &b, false)[0];
    assert_eq!(row.outcome, RowOutcome::Compared);
    assert_eq!(row.noted[0].to_string(), "model 2 against 1");
}

#[test]
fn memory_that_grew_and_a_score_that_fell_are_regressions() {
    let with = |host: f64, map: f64| {
        let mut cell = scored(cell("x", 6.0), map);
        (cell.memory.host_peak_mib, cell.memory.device_peak_mib) = (Some(host), Some(50.0));
        run("r", vec![cell])
    };
    let (a, b) = (with(100.0, 0.60), with(120.0, 0.50));
    let rows = compared(&a, &b, false);
    let names: Vec<String> = failed(&rows, &a, &b).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["worse", "memory"]);
    assert_eq!(rows[0].memory.as_ref().unwrap().of, "host");
    // Within both intervals it is chance.
    let c = with(105.0, 0.59);
    assert_eq!(failed(&compared(&a, &c, false), &a, &c), []);
    assert_eq!(compared(&a, &c, false)[0].accuracy.as_ref().unwrap().difference, AccuracyDifference::Same);
}

#[test]
fn scores_on_other_data_are_not_comparable() {
    let a = run("a", vec![scored(cell("x", 6.0), 0.6)]);
    let mut b = run("b", vec![scored(cell("x", 6.0), 0.2)]);
    b.cells[0].accuracy.as_mut().unwrap().data.sha256 = "e".repeat(64);
    let accuracy = compared(&a, &b, false)[0].accuracy.clone().unwrap();
    assert_eq!((accuracy.difference, accuracy.delta), (AccuracyDifference::NotComparable, None));
    assert!(accuracy.reason.contains("data"), "{}", accuracy.reason);
}

#[test]
fn a_cell_that_fails_now_is_a_regression_and_one_that_failed_before_is_none() {
    let good = run("a", vec![cell("x", 6.0)]);
    let mut bad = run("b", vec![cell("x", 6.0)]);
    (bad.cells[0].status, bad.cells[0].reason) = (CellStatus::Failed, Some("out of memory".to_owned()));
    let rows = compared(&good, &bad, false);
    assert_eq!(rows[0].outcome, RowOutcome::NotMeasured);
    assert_eq!(rows[0].reason.as_deref(), Some("failed in the run: out of memory"));
    assert_eq!(failed(&rows, &good, &bad), [("measured".to_owned(), "x".to_owned())]);
    assert_eq!(failed(&compared(&bad, &good, false), &bad, &good), []);
}

#[test]
fn a_figure_that_vanished_is_a_regression() {
    let mut full = scored(cell("x", 6.0), 0.6);
    (full.memory.host_peak_mib, full.memory.device_peak_mib) = (Some(100.0), Some(50.0));
    let lost = |name: &str, change: &dyn Fn(&mut CellRecord)| {
        let (a, mut b) = (run("a", vec![full.clone()]), run("b", vec![full.clone()]));
        change(&mut b.cells[0]);
        assert_eq!(failed(&compared(&a, &b, false), &a, &b), [(name.to_owned(), "x".to_owned())]);
        // Nothing is lost by what came to be measured.
        assert_eq!(failed(&compared(&b, &a, false), &b, &a), []);
    };
    lost("slower", &|cell| cell.latency_ms.clear());
    lost("worse", &|cell| (cell.accuracy, cell.accuracy_absent) = (None, Some("no data".to_owned())));
    lost("worse", &|cell| cell.accuracy.as_mut().unwrap().figures.map_50_95 = None);
    lost("memory", &|cell| cell.memory.device_peak_mib = None);
    lost("measured", &|cell| cell.status = CellStatus::Skipped);
}

#[test]
fn memory_of_one_kind_is_compared_although_the_other_was_not_measured() {
    let with = |host, device| {
        let mut cell = cell("x", 6.0);
        (cell.memory.host_peak_mib, cell.memory.device_peak_mib) = (Some(host), device);
        run("r", vec![cell])
    };
    let (a, b) = (with(100.0, None), with(200.0, Some(50.0)));
    let rows = compared(&a, &b, false);
    assert_eq!(rows[0].reason.as_deref(), Some("peak memory of the device was measured in the run only"));
    assert_eq!(failed(&rows, &a, &b), [("memory".to_owned(), "x".to_owned())]);
}

#[test]
fn outputs_that_became_wrong_are_a_regression_and_wrong_ones_are_no_measure() {
    let right = run("a", vec![cell("x", 6.0)]);
    let mut wrong = run("b", vec![cell("x", 6.0)]);
    wrong.cells[0].verdict = Some(Verdict::WrongOutput);
    assert_eq!(compared(&right, &wrong, false)[0].outcome, RowOutcome::Compared);
    let lines = wrong_outputs(&wrong);
    assert_eq!((lines.len(), lines[0].cell.as_str(), lines[0].pass), (1, "x", false));
    assert_eq!(wrong_outputs(&right), []);
    let row = &compared(&wrong, &right, false)[0];
    assert_eq!(row.outcome, RowOutcome::Refused);
    assert_eq!(row.reason.as_deref(), Some("not comparable: outputs right against wrong"));
}

#[test]
fn a_tenth_slower_never_passes_for_noise() {
    for scatter in [0.0, 0.01, 0.05, 0.1, 0.15, 0.3, 0.6] {
        let a = run("a", vec![with_rounds("x", 6.0, scatter), with_rounds("y", 8.0, scatter)]);
        let b = run("b", vec![with_rounds("x", 6.0, scatter), with_rounds("y", 8.8, scatter)]);
        let y: Vec<Gate> =
            regressions(&compared(&a, &b, false), &a, &b).into_iter().filter(|g| g.cell == "y").collect();
        assert!(!y[0].pass && y[0].is_broken() == (scatter < 0.1), "{scatter}: {y:?}");
        assert_eq!(failed(&compared(&a, &a, false), &a, &a), [], "{scatter}");
    }
    // Nor does one without any interval.
    let a = run("a", vec![with_rounds("x", 6.0, 0.6)]);
    let mut few = run("few", vec![cell("x", 6.6)]);
    few.cells[0].latency_ms.get_mut(&Stage::Total).unwrap().ci95 = None;
    assert_eq!(outcome(&a, &few), [("slower".to_owned(), "inconclusive")]);
}

#[test]
fn a_change_of_more_than_a_point_without_an_interval_is_inconclusive_either_way() {
    let with = |map: f64| {
        let mut cell = scored(cell("x", 6.0), map);
        cell.accuracy.as_mut().unwrap().ci95 = None;
        run("r", vec![cell])
    };
    let (a, b) = (with(0.60), with(0.58));
    let worse = |a: &RunRecord, b: &RunRecord| regressions(&compared(a, b, false), a, b).remove(1);
    let gate = worse(&a, &b);
    assert!(gate.inconclusive && gate.reason.as_ref().unwrap().contains("has no interval"), "{gate:?}");
    assert!(worse(&b, &a).inconclusive && worse(&a, &with(0.595)).pass);
}

#[test]
fn rows_that_were_scored_by_another_rule_are_not_paired() {
    let a = run("a", vec![scored(cell("x", 6.0), 0.6)]);
    let mut b = run("b", vec![scored(cell("x", 6.0), 0.6)]);
    b.cells[0].accuracy.as_mut().unwrap().post.conf = 0.25;
    let pair = |before: &CellRecord, now: &CellRecord| {
        let row = |run, cell| Row { run, cell };
        let mut found = accuracy(row(&a, before), row(&b, now), true)?;
        found.reason = "paired".to_owned();
        Some(found)
    };
    let found = |force| rows(&a, &b, force, &pair).remove(0).accuracy.unwrap();
    assert_eq!(found(true).reason, "paired");
    assert_eq!(found(false).difference, AccuracyDifference::NotComparable);
    assert!(found(false).reason.contains("conf 0.25"), "{}", found(false).reason);
    assert_eq!(failed(&compared(&a, &b, false), &a, &b), [("worse".to_owned(), "x".to_owned())]);
    assert_eq!(failed(&compared(&a, &b, true), &a, &b), []);
}

#[test]
fn a_comparison_with_a_busy_machine_names_the_reason() {
    let a = run("a", vec![with_rounds("x", 6.0, 0.01)]);
    let mut b = run("b", vec![with_rounds("x", 12.0, 0.01)]);
    b.cells[0].verdict = Some(Verdict::Unstable);
    b.cells[0].verdict_reasons = vec!["others took 49 % of the CPU time".into(), "note: no sensor".into()];
    let latency = compared(&a, &b, false)[0].latency.clone().unwrap();
    assert_eq!(latency.difference, Difference::Inconclusive, "the machine was slower, not the cell");
    assert!(latency.reason.contains("; the run is unstable: others took 49 % of the CPU time; "), "{}", latency.reason);
}
