//! Limits that hold, that do not, and that nothing was measured for.

use super::*;
use crate::across::tests::{run, scored};
use crate::difference::tests::cell;

fn only(record: &RunRecord, name: GateName, limit: f64, baseline: Option<&RunRecord>) -> Vec<Gate> {
    let mut spec = GateSpec::default();
    spec.set(name, limit);
    gates(record, &spec, baseline.map(|run| Baseline { run, force: false }))
}

fn precise(cell: CellRecord, backend: BackendName, precision: Precision) -> CellRecord {
    let mut cell = cell;
    cell.backend.name = backend.name().to_owned();
    cell.precision.requested = precision;
    cell
}

#[test]
fn a_limit_is_kept_up_to_the_limit_itself() {
    let record = run("a", vec![scored(cell("x", 6.0), 0.5)]);
    for (limit, pass) in [(0.5, true), (0.49, true), (0.51, false)] {
        let gate = &only(&record, GateName::MapMin, limit, None)[0];
        assert_eq!((gate.pass, gate.figure, gate.limit), (pass, Some(0.5), limit));
    }
    assert_eq!(gates(&record, &GateSpec::default(), None), []);
}

#[test]
fn what_was_not_measured_is_inconclusive_with_its_reason() {
    let mut broken = cell("broken", 6.0);
    (broken.status, broken.reason) = (CellStatus::Failed, Some("no such file".to_owned()));
    let mut skipped = cell("skipped", 6.0);
    skipped.status = CellStatus::Skipped;
    let mut brief = cell("x", 6.0);
    brief.latency_ms.get_mut(&Stage::Total).unwrap().n = 30;
    let record = run("a", vec![brief, broken, skipped]);
    let told = |name, limit| -> Vec<(String, bool, String)> {
        let gates = only(&record, name, limit, None).into_iter();
        gates.map(|gate| (gate.cell, gate.pass || !gate.inconclusive, gate.reason.unwrap())).collect()
    };
    let failed = ("broken".to_owned(), false, "not measured: failed: no such file".to_owned());
    let few = "not measured: 30 samples, p99 needs 662: use --samples 662 or --duration 5s".to_owned();
    assert_eq!(told(GateName::P99MaxMs, 1e9), [("x".to_owned(), false, few), failed.clone()]);
    let no_data = "not measured: no data to score on; give --data".to_owned();
    assert_eq!(told(GateName::MapMin, 0.0), [("x".to_owned(), false, no_data), failed]);
}

#[test]
fn a_nan_holds_no_limit() {
    let record = run("a", vec![scored(cell("x", 6.0), f64::NAN)]);
    let gate = &only(&record, GateName::MapMin, 0.0, None)[0];
    assert!(!gate.pass && !gate.is_broken(), "{gate:?}");
}

#[test]
fn without_a_baseline_a_drop_is_from_the_fp32_row_of_the_reference_s_backend() {
    let fp32 = |id: &str, backend, map| precise(scored(cell(id, 6.0), map), backend, Precision::Fp32);
    let int8 = precise(scored(cell("int8", 3.0), 0.58), BackendName::Tensorrt, Precision::Int8);
    let rows = vec![fp32("rten", BackendName::Rten, 0.70), fp32("ort", BackendName::OrtCpu, 0.60), int8];
    let record = run("a", rows);
    let drops = only(&record, GateName::MapDropMax, 1.0, None);
    let last = drops.last().unwrap();
    assert!((last.figure.unwrap() - 2.0).abs() < 1e-9 && !last.pass, "{last:?}");
    assert_eq!(last.against.as_deref(), Some("ort"));
    // Without that one it is the first in fp32; without any there is nothing to hold it against.
    let mut fewer = record.clone();
    fewer.cells.remove(1);
    assert_eq!(only(&fewer, GateName::MapDropMax, 20.0, None)[0].against.as_deref(), Some("rten"));
    fewer.cells.remove(0);
    let gate = &only(&fewer, GateName::MapDropMax, 20.0, None)[0];
    assert!(!gate.pass && gate.reason.as_ref().unwrap().contains("give --baseline"), "{gate:?}");
}

#[test]
fn a_batch_does_not_keep_a_score_from_its_fp32_row() {
    let mut batched = precise(scored(cell("int8", 3.0), 0.59), BackendName::Rten, Precision::Int8);
    (batched.batch, batched.model.input) = (4, Some("4x3x320x320".to_owned()));
    let record = run("a", vec![scored(cell("fp32", 6.0), 0.6), batched]);
    let lines = only(&record, GateName::MapDropMax, 1.5, None);
    assert!(lines.len() == 1 && lines[0].pass && lines[0].cell == "int8", "{lines:?}");
}

#[test]
fn relative_limits_are_of_the_same_cell_of_the_baseline() {
    let with = |ms: f64, mib: f64| {
        let mut cell = cell("x", ms);
        cell.memory.host_peak_mib = Some(mib);
        run(&format!("r{ms}"), vec![cell])
    };
    let (before, now) = (with(10.0, 100.0), with(11.0, 130.0));
    let gate = &only(&now, GateName::LatencyRatioMax, 1.05, Some(&before))[0];
    assert!((gate.figure.unwrap() - 1.1).abs() < 1e-9 && !gate.pass, "{gate:?}");
    assert_eq!(gate.against.as_deref(), Some("r10"));
    assert!(only(&now, GateName::LatencyRatioMax, 1.2, Some(&before))[0].pass);
    assert!(only(&now, GateName::MemoryGrowthMax, 1.3, Some(&before))[0].pass);
    assert!(!only(&now, GateName::MemoryGrowthMax, 1.29, Some(&before))[0].pass);
}

#[test]
fn noise_broke_a_limit_on_the_ratio_of_times() {
    let side = |p50: f64, half: f64| {
        let mut cell = cell("x", p50);
        let total = cell.latency_ms.get_mut(&Stage::Total).unwrap();
        total.ci95 = Some([p50 * (1.0 - half), p50 * (1.0 + half)]);
        run("r", vec![cell])
    };
    let outcome = |before: &RunRecord, now: &RunRecord, limit: f64| {
        let gate = only(now, GateName::LatencyRatioMax, limit, Some(before)).remove(0);
        if gate.pass {
            "pass"
        } else if gate.inconclusive {
            "inconclusive"
        } else {
            "broken"
        }
    };
    let calm = side(10.0, 0.005);
    assert_eq!(outcome(&calm, &side(11.0, 0.005), 1.05), "broken");
    assert_eq!(outcome(&calm, &side(11.0, 0.005), 1.2), "pass");
    assert_eq!(outcome(&calm, &side(11.0, 0.06), 1.05), "inconclusive", "the limit lies in the interval");
    assert_eq!(outcome(&calm, &side(10.2, 0.06), 1.05), "pass");
    assert_eq!(outcome(&side(10.0, 0.4), &side(11.39, 0.4), 1.05), "inconclusive");
    assert_eq!(outcome(&side(10.0, 0.4), &side(9.0, 0.4), 1.05), "inconclusive", "nor does it pass");
    let mut shaky = side(20.0, 0.005);
    shaky.cells[0].verdict = Some(prony_types::Verdict::Unstable);
    assert_eq!((outcome(&calm, &shaky, 1.05), outcome(&calm, &shaky, 3.0)), ("inconclusive", "pass"));
}

#[test]
fn a_baseline_that_is_not_comparable_or_lacks_the_cell_fails_the_gate() {
    let now = run("now", vec![cell("x", 10.0)]);
    let mut other = run("other", vec![cell("x", 10.0)]);
    other.environment.cpu.name = Some("CPU B".to_owned());
    let reason = |baseline: &RunRecord| {
        let gate = only(&now, GateName::LatencyRatioMax, 9.0, Some(baseline)).remove(0);
        assert!(!gate.pass && gate.figure.is_none());
        gate.reason.unwrap()
    };
    assert_eq!(reason(&other), "not measured: not comparable with other: processor CPU A against CPU B");
    other.cells[0].id = "y".to_owned();
    assert_eq!(reason(&other), "not measured: other has no cell x");
    let spec = GateSpec { latency_ratio_max: Some(1.1), ..GateSpec::default() };
    other.cells[0].id = "x".to_owned();
    let forced = gates(&now, &spec, Some(Baseline { run: &other, force: true }));
    assert!(forced[0].pass, "{forced:?}");
}

#[test]
fn a_row_is_not_held_against_itself() {
    let fp32 = || scored(cell("fp32", 6.0), 0.6);
    let int8 = || precise(scored(cell("int8", 3.0), 0.59), BackendName::Rten, Precision::Int8);
    let lines = |cells| only(&run("a", cells), GateName::MapDropMax, 5.0, None);
    let alone = &lines(vec![fp32()])[0];
    assert_eq!(
        (alone.pass, alone.figure, alone.reason.as_deref()),
        (
            false,
            None,
            Some("not measured: nothing to compare it with: give --baseline, or measure another precision or backend")
        )
    );
    // A skipped row is none to hold against it, and a wrong one is no measure for others.
    let skipped = CellRecord { status: CellStatus::Skipped, ..int8() };
    assert!(!lines(vec![fp32(), skipped])[0].pass);
    let wrong = CellRecord { verdict: Some(prony_types::Verdict::WrongOutput), ..fp32() };
    let found = lines(vec![wrong, int8()]);
    assert!(found.len() == 2 && found.iter().all(|gate| !gate.pass && gate.figure.is_none()), "{found:?}");
    // With a baseline it is a row like others.
    let baseline = run("before", vec![scored(cell("fp32", 6.0), 0.62)]);
    let gate = &only(&run("a", vec![fp32()]), GateName::MapDropMax, 1.0, Some(&baseline))[0];
    assert!(!gate.pass && (gate.figure.unwrap() - 2.0).abs() < 1e-9, "{gate:?}");
}

#[test]
fn a_skipped_cell_that_the_baseline_measured_is_not_measured() {
    let before = run("before", vec![scored(cell("x", 6.0), 0.6)]);
    let mut now = before.clone();
    (now.cells[0].status, now.cells[0].reason) = (CellStatus::Skipped, Some("no such library".to_owned()));
    let gate = only(&now, GateName::MapDropMax, 0.1, Some(&before)).remove(0);
    assert_eq!((gate.pass, gate.reason.as_deref()), (false, Some("not measured: skipped: no such library")));
    // Skipped in both, it does not count.
    assert_eq!(only(&now, GateName::MapDropMax, 0.1, Some(&now)), []);
}
