//! A record is made from events, samples and readings alone: made anew from the logs of a run, it is the same.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;

use prony_types::{CellStatus, RunRecord};
use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running, cell, expect_code, prony, quick, signal, stderr, stdout};

const RGB: &str = "builtin-rgb:rten:fp32";

/// The record of a run as its logs tell it.
#[track_caller]
fn replayed(run: &Path) -> Value {
    let output = prony().args(["report", "--replay", "--json"]).arg(run).output().unwrap();
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// Every place where two documents differ.
fn differences(path: &str, a: &Value, b: &Value, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
                differences(&format!("{path}.{key}"), &of(a), &of(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().for_each(|(i, (a, b))| differences(&format!("{path}[{i}]"), a, b, found));
        }
        _ if a != b => found.push(format!("{path}: {a} became {b}")),
        _ => {}
    }
}

#[track_caller]
fn assert_replays(place: &Place) -> RunRecord {
    let recorded: Value = serde_json::from_slice(&fs::read(place.run().join("report.json")).unwrap()).unwrap();
    let mut found = Vec::new();
    differences("", &recorded, &replayed(&place.run()), &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
    let record = place.record();
    assert!(record.run.exit_code.is_some() && !record.cells.is_empty());
    record
}

#[test]
fn a_plain_run_is_the_same_from_its_logs() {
    let place = Place::new();
    expect_code(&place.bench(&quick(&[])).output().unwrap(), 0);
    let record = assert_replays(&place);
    assert!(record.cells.iter().all(|cell| cell.latency_ms.len() > 3 && cell.verdict.is_some()));
    assert!(!record.recommendation.is_empty());
}

#[test]
fn a_run_with_a_killed_worker_and_its_resumption_are_the_same_from_their_logs() {
    let running = Running::start(Place::new(), &["--duration", "2", "--warmup", "0.1"]);
    let pid = running.worker(RGB);
    running.first_round(RGB);
    signal(pid, Signal::KILL);
    let (output, place) = running.finish();
    expect_code(&output, 1);
    let record = assert_replays(&place);
    assert_eq!(cell(&record, RGB).status, CellStatus::Failed);
    let output = prony().args(["bench", "--resume"]).arg(place.run()).output().unwrap();
    expect_code(&output, 0);
    let record = assert_replays(&place);
    assert_eq!((cell(&record, RGB).attempt, record.run.resumed.len()), (2, 1));
}

#[test]
fn a_run_with_data_in_two_precisions_and_a_gate_is_the_same_from_its_logs() {
    let place = Place::new();
    let args =
        ["builtin-rgb", "--precision", "fp32,int8", "--data", "scenes", "--limit", "8", "--gate", "map_min=0.01"];
    expect_code(&place.bench(&quick(&args)).output().unwrap(), 0);
    let record = assert_replays(&place);
    assert_eq!((record.accuracy_comparisons.len(), record.gates.len()), (1, 2));
    assert!(record.cells.iter().all(|cell| cell.accuracy.is_some()));
}

#[test]
fn an_interrupted_run_in_two_waves_is_the_same_from_its_logs() {
    let running = Running::start(Place::new(), &["--duration", "2", "--warmup", "0.1", "--resident", "1"]);
    running.first_round(RGB);
    signal(running.pid(), Signal::INT);
    let (output, place) = running.finish();
    expect_code(&output, 130);
    let record = assert_replays(&place);
    assert!(record.cells.iter().all(|cell| cell.status == CellStatus::Interrupted));
}

#[test]
fn a_record_that_is_gone_or_was_changed_is_made_anew() {
    let place = Place::new();
    expect_code(&place.bench(&quick(&["builtin-thermal"])).output().unwrap(), 0);
    let (path, kept) = (place.run().join("report.json"), place.run().join("report.json.before"));
    let before = fs::read(&path).unwrap();
    let replay = || prony().args(["report", "--replay"]).arg(place.run()).output().unwrap();
    let output = replay();
    expect_code(&output, 0);
    assert!(stdout(&output).contains("is what the logs say") && !kept.exists(), "{}", stdout(&output));
    fs::remove_file(&path).unwrap();
    expect_code(&replay(), 0);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!kept.exists());
    let changed = String::from_utf8(before.clone()).unwrap().replace("builtin-thermal:rten:fp32", "other:rten:fp32");
    fs::write(&path, &changed).unwrap();
    expect_code(&replay(), 0);
    assert_eq!((fs::read(&path).unwrap(), fs::read(&kept).unwrap()), (before, changed.into_bytes()));
}

#[test]
fn a_run_whose_logs_cannot_tell_is_refused() {
    let place = Place::new();
    expect_code(&place.bench(&quick(&["builtin-thermal", "--redact"])).output().unwrap(), 0);
    let run = place.run();
    let refused = || {
        let output = prony().args(["report", "--replay"]).arg(&run).output().unwrap();
        expect_code(&output, 2);
        stderr(&output)
    };
    assert!(refused().contains("a redacted run cannot be replayed"));
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let (first, rest) = events.split_once('\n').unwrap();
    assert!(first.contains("\"run\":\"began\""), "{first}");
    fs::write(run.join("events.jsonl"), rest).unwrap();
    assert!(refused().contains("does not say how the run began"));
    fs::write(run.join("events.jsonl"), "").unwrap();
    assert!(refused().contains("has no events"));
}
