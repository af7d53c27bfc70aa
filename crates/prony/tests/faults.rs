//! What goes wrong, and that nothing is lost by it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::process::Stdio;

use prony_types::{CellStatus, Phase, RunRecord, Stage, Verdict};
use rustix::process::Signal;
use support::{Place, QUICK, Running, cell, expect_code, is_alive, quick, signal, stderr, until};

const RGB: &str = "builtin-rgb:rten:fp32";
const THERMAL: &str = "builtin-thermal:rten:fp32";

/// A quick two-cell run whose thermal cell has a fault.
fn with_fault(fault: &str, args: &[&str], code: i32) -> RunRecord {
    let place = Place::new();
    let injection = format!(r#"{{"cell": "{THERMAL}", "fault": {fault}}}"#);
    let args = if args.contains(&"--duration") { args.to_vec() } else { [&QUICK[..], args].concat() };
    let output = place.bench(&args).env("PRONY_TEST_FAULT", injection).output().unwrap();
    expect_code(&output, code);
    let record = place.record();
    assert_eq!(cell(&record, RGB).status, CellStatus::Completed, "a failing cell never stops the rest");
    record
}

fn reason(record: &RunRecord) -> String {
    let cell = cell(record, THERMAL);
    assert_eq!(cell.status, CellStatus::Failed);
    assert!(cell.latency_ms.is_empty(), "a failed cell has no clean-looking figures");
    cell.reason.clone().unwrap()
}

#[test]
fn a_worker_killed_in_the_middle_keeps_its_samples_and_the_run_can_be_resumed() {
    let running = Running::start(Place::new(), &["--duration", "1", "--warmup", "0.1", "--frames", "8"]);
    let pid = running.worker(RGB);
    running.first_round(RGB);
    signal(pid, Signal::KILL);
    let (output, place) = running.finish();
    expect_code(&output, 1);
    let before = place.record();
    let killed = cell(&before, RGB);
    assert_eq!(killed.status, CellStatus::Failed);
    assert!(killed.reason.as_ref().unwrap().contains("SIGKILL"), "{:?}", killed.reason);
    assert_eq!(cell(&before, THERMAL).status, CellStatus::Completed);
    let samples = prony_store::read_samples(&place.run().join("samples.csv")).unwrap();
    let kept = samples.iter().filter(|row| row.cell == RGB && row.sample.phase == Phase::Steady).count() as u64;
    assert!(kept > 0, "the samples up to the kill are on disk");
    assert_eq!(kept, killed.samples.steady);

    let output = support::prony().args(["bench", "--resume"]).arg(place.run()).output().unwrap();
    expect_code(&output, 0);
    let after = place.record();
    assert_eq!(cell(&after, THERMAL), cell(&before, THERMAL), "the completed cell is not measured again");
    let again = cell(&after, RGB);
    assert_eq!((again.status, again.attempt), (CellStatus::Completed, 2));
    let output = support::prony().args(["bench", "--resume"]).arg(place.run()).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("nothing to resume"), "{}", stderr(&output));
}

#[test]
fn a_run_of_another_binary_is_not_resumed() {
    let place = Place::new();
    expect_code(&place.bench(&quick(&["builtin-thermal", "--precision", "fp8"])).output().unwrap(), 1);
    let path = place.run().join("report.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let hash = place.record().run.binary_sha256;
    std::fs::write(&path, text.replace(&hash, &"0".repeat(64))).unwrap();
    let output = support::prony().args(["bench", "--resume"]).arg(place.run()).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("the binary changed"), "{}", stderr(&output));
}

#[test]
fn a_worker_killed_while_it_waits_is_named_by_its_signal_too() {
    let running =
        Running::start(Place::new(), &["--duration", "1", "--warmup", "0.1", "--frames", "8", "--timeout", "20"]);
    // After its own round it waits while the other cell has its turn.
    running.first_round(RGB);
    signal(running.worker(RGB), Signal::KILL);
    let (output, place) = running.finish();
    expect_code(&output, 1);
    let record = place.record();
    let reason = cell(&record, RGB).reason.clone().unwrap();
    assert!(reason.contains("SIGKILL"), "nobody may wait for the dead until the timeout: {reason}");
}

#[test]
fn a_short_timeout_does_not_kill_a_worker_that_works() {
    let place = Place::new();
    let args = ["builtin-thermal", "--duration", "2.5", "--warmup", "0.1", "--frames", "8", "--timeout", "1.5"];
    let output = place.bench(&args).output().unwrap();
    expect_code(&output, 0);
}

#[test]
fn a_cell_that_could_not_run_is_not_run_as_something_else_on_resume() {
    let place = Place::new();
    let output = place.bench(&quick(&["builtin-thermal", "--precision", "fp32,fp8"])).output().unwrap();
    expect_code(&output, 1);
    let output = support::prony().args(["bench", "--resume"]).arg(place.run()).output().unwrap();
    expect_code(&output, 1);
    let record = place.record();
    let fp8 = cell(&record, "builtin-thermal:rten:fp8");
    assert_eq!(fp8.status, CellStatus::Failed);
    assert!(fp8.precision.executed.is_none());
    assert_eq!(record.run.resumed.len(), 1);
}

#[test]
fn a_run_folder_that_vanishes_does_not_take_the_result_with_it() {
    let running = Running::start(Place::new(), &quick(&["builtin-thermal"]));
    running.first_round(THERMAL);
    std::fs::remove_dir_all(running.place.runs()).unwrap();
    let (output, _place) = running.finish();
    expect_code(&output, 1);
    assert!(support::stdout(&output).contains("builtin-thermal:rten:fp32"), "the table is still printed");
    assert!(stderr(&output).contains("error: "), "{}", stderr(&output));
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let place = Place::new();
    let mut child = place.bench(&quick(&["builtin-thermal", "-q"])).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.record().cells[0].status, CellStatus::Completed);
}

#[test]
fn ctrl_c_during_a_long_warm_up_is_heard() {
    let running = Running::start(Place::new(), &["builtin-thermal", "--warmup", "100", "--frames", "8"]);
    running.worker(THERMAL);
    until("the warm-up to begin", || {
        let events = running.events();
        events.iter().any(|e| matches!(e.kind, prony_types::EventKind::Frames { .. })).then_some(())
    });
    signal(running.child.id(), Signal::INT);
    let (output, place) = running.finish();
    expect_code(&output, 130);
    assert!(stderr(&output).contains("stopping"), "{}", stderr(&output));
    let record = place.record();
    assert_eq!(record.cells[0].status, CellStatus::Interrupted);
    assert!(record.cells[0].phases.warmup_s.unwrap() < 100.0, "it did not wait for the end of the warm-up");
}

#[test]
fn a_run_under_way_is_not_resumed_by_another() {
    let running =
        Running::start(Place::new(), &["builtin-thermal", "--duration", "2", "--warmup", "0.1", "--frames", "8"]);
    running.first_round(THERMAL);
    let output = support::prony().args(["bench", "--resume"]).arg(running.place.run()).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("another prony is writing"), "{}", stderr(&output));
    let (output, _place) = running.finish();
    expect_code(&output, 0);
}

#[test]
fn ctrl_c_keeps_and_reports_what_was_measured() {
    let running = Running::start(Place::new(), &["--duration", "60", "--warmup", "0.1", "--frames", "8"]);
    running.first_round(THERMAL);
    signal(running.child.id(), Signal::INT);
    let (output, place) = running.finish();
    expect_code(&output, 130);
    let record = place.record();
    for id in [RGB, THERMAL] {
        let cell = cell(&record, id);
        assert_eq!(cell.status, CellStatus::Interrupted);
        assert!(cell.latency_ms[&Stage::Total].n > 0 && cell.verdict.is_some());
    }
    assert!(place.run().join("report.html").exists());
}

#[test]
fn a_second_ctrl_c_does_not_wait() {
    let place = Place::new();
    let injection = format!(r#"{{"cell": "{THERMAL}", "fault": {{"hang-at": 20}}}}"#);
    let child = place
        .bench(&["builtin-thermal", "--frames", "8"])
        .env("PRONY_TEST_FAULT", injection)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running { child, place };
    let worker = running.worker(THERMAL);
    signal(running.child.id(), Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal(running.child.id(), Signal::INT);
    let (output, place) = running.finish();
    expect_code(&output, 130);
    assert_eq!(place.record().cells[0].status, CellStatus::Interrupted);
    until("the worker to die", || (!is_alive(worker)).then_some(()));
}

#[test]
fn workers_die_with_their_parent() {
    let running = Running::start(Place::new(), &["--duration", "60", "--frames", "8"]);
    let worker = running.worker(RGB);
    signal(running.child.id(), Signal::KILL);
    until("the worker to die", || (!is_alive(worker)).then_some(()));
    let (output, place) = running.finish();
    assert_eq!(output.status.code(), None);
    assert_eq!(place.record().cells.len(), 2, "the record of a killed run can be read");
}

#[test]
fn a_crash_is_named_by_its_signal() {
    let reason = reason(&with_fault(r#"{"abort-at": 12}"#, &[], 1));
    assert!(reason.contains("SIGABRT") && reason.contains("worker.log"), "{reason}");
}

#[test]
fn an_error_of_the_backend_is_the_reason() {
    let reason = reason(&with_fault(r#"{"error-at": 12}"#, &[], 1));
    assert!(reason.contains("injected at call 12"), "{reason}");
}

#[test]
fn a_hanging_worker_is_killed_and_said_to_have_hung() {
    let reason = reason(&with_fault(r#"{"hang-at": 12}"#, &["--timeout", "2"], 1));
    assert!(reason.contains("no sign of life for 2 s"), "{reason}");
}

#[test]
fn nan_outputs_are_wrong_output_and_exit_3() {
    let record = with_fault(r#"{"nan-at": 12}"#, &[], 3);
    assert_eq!(cell(&record, THERMAL).verdict, Some(Verdict::WrongOutput));
}

#[test]
fn outputs_that_drift_are_wrong_output() {
    let record = with_fault(r#""drift""#, &[], 3);
    assert_eq!(cell(&record, THERMAL).verdict, Some(Verdict::WrongOutput));
}

#[test]
fn a_cell_that_slows_down_is_not_valid() {
    let record = with_fault(r#""slow-down""#, &["--duration", "4", "--warmup", "0.1", "--frames", "8"], 0);
    let cell = cell(&record, THERMAL);
    assert_eq!(cell.verdict, Some(Verdict::Unstable), "{:?}", cell.verdict_reasons);
}

#[test]
fn a_library_that_prints_to_stdout_disturbs_no_event() {
    let record = with_fault(r#""print-to-stdout""#, &[], 0);
    assert_eq!(cell(&record, THERMAL).status, CellStatus::Completed);
}

#[test]
fn two_runs_at_once_take_turns() {
    let first =
        Running::start(Place::new(), &["builtin-thermal", "--duration", "2", "--warmup", "0.1", "--frames", "8"]);
    first.first_round(THERMAL);
    let second = Place::new();
    let output = second.bench(&quick(&["builtin-thermal"])).output().unwrap();
    expect_code(&output, 0);
    assert!(
        stderr(&output).contains("waiting for the measuring lock of this machine, held by PID"),
        "{}",
        stderr(&output)
    );
    let (output, first) = first.finish();
    expect_code(&output, 0);
    let end = prony_store::read_samples(&first.run().join("samples.csv")).unwrap().last().unwrap().sample.start_ns;
    let begin = prony_store::read_samples(&second.run().join("samples.csv")).unwrap()[0].sample.start_ns;
    assert!(end < begin, "the second began while the first was measuring");
}
