//! An hour at a millisecond is 3.6 million samples. They must not be in the parent's memory: on a board with 8 GB it shares that
//! with the cells that are timed.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use prony_run::{Logs, RecordFold};
use prony_store::SampleLog;
use prony_types::{
    BackendName, BudgetSpec, CellSpec, CellStatus, GateSpec, Happened, InputSpec, ModelSource, ModelSpec, Phase, Plan,
    PostSpec, Precision, ReferenceSpec, Resident, RunEvent, RunEventKind, RunInfo, RunRecord, Sample, SceneKind,
    SourceSpec, Stage,
};

const MIB: u64 = 1 << 20;

fn plan() -> Plan {
    let model = ModelSpec::new("m", ModelSource::Builtin(SceneKind::Rgb), "");
    let budget = BudgetSpec {
        warmup_s: Some(0.0),
        duration_s: Some(3600.0),
        samples: None,
        limit_s: 3600.0,
        at_least: None,
        timeout_s: 60.0,
    };
    Plan {
        name: "bench".into(),
        cells: vec![CellSpec::new(model, BackendName::Rten, Precision::Fp32)],
        standby: Vec::new(),
        input: InputSpec { source: SourceSpec::Scenes, seed: 7, frames: 32 },
        post: PostSpec { conf: 0.25, iou: 0.45, max_det: 300, multi_label: false },
        budget,
        named_precisions: Vec::new(),
        reference: ReferenceSpec::default(),
        evaluation: None,
        timed: true,
        resident: Resident::default(),
        gates: GateSpec::default(),
        strict: false,
        notes: Vec::new(),
    }
}

fn happened(kind: RunEventKind) -> Happened {
    Happened::Run(Box::new(RunEvent { t_ns: 0, kind }))
}

fn began() -> Happened {
    happened(RunEventKind::Began {
        info: Box::new(RunInfo {
            id: "x".into(),
            started: String::new(),
            finished: None,
            command: Vec::new(),
            version: String::new(),
            binary_sha256: String::new(),
            exit_code: None,
            anchor_ns: 0,
            resumed: Vec::new(),
            wall_s: None,
            redacted: false,
        }),
        plan: Box::new(plan()),
        environment: Box::default(),
        fates: BTreeMap::new(),
        earlier: None,
        baseline: None,
    })
}

/// About a millisecond, with a spike now and then; 500 of them are a round.
fn sample(i: u64) -> Sample {
    let total_ns = 1_000_000 + i * 7919 % 20_000 + if i.is_multiple_of(5000) { 400_000 } else { 0 };
    let parts_ns = [Some(total_ns / 10), None, Some(total_ns / 2), None, Some(total_ns / 5)];
    let round = (i / 500 + 1) as u32;
    Sample { start_ns: i * 1_000_000, phase: Phase::Steady, round, frame: 0, detections: 3, parts_ns, total_ns }
}

/// The most memory that this process has held since it was last asked.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Hands samples to a record and its log as a run does, brings it up to date now and then, and ends it.
fn measure(folder: &Path, samples: u64) -> RunRecord {
    let mut fold = RecordFold::begun(&began(), Logs::empty(folder)).unwrap();
    let mut log = SampleLog::open(&folder.join("samples.csv")).unwrap();
    let id = plan().cells[0].id.clone();
    for begin in (0..samples).step_by(500) {
        let fresh: Vec<Sample> = (begin..(begin + 500).min(samples)).map(sample).collect();
        fold.take_samples(0, &fresh);
        fresh.iter().for_each(|sample| log.append(&id, 1, sample).unwrap());
        if begin % (samples / 5) == 0 {
            fold.refresh();
        }
    }
    log.flush().unwrap();
    fold.take(&happened(RunEventKind::Closed { cell: id, status: CellStatus::Completed, reason: None, lost: 0 }));
    let accuracy_comparisons = Vec::new();
    let finished = String::new();
    fold.take(&happened(RunEventKind::Ended { finished, wall_s: 1.0, interrupted: false, accuracy_comparisons }));
    fold.into_record()
}

/// Measures so many samples, and returns what that took at most beyond what the process had.
fn peak_of(samples: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let before = {
        peak_bytes();
        peak_bytes()
    };
    let record = measure(folder.path(), samples);
    let total = record.cells[0].latency_ms[&Stage::Total];
    assert_eq!((total.n, record.cells[0].samples.lost), (samples, 0));
    assert!((1.0..1.05).contains(&total.p50) && total.max > 1.4, "{total:?}");
    peak_bytes().saturating_sub(before)
}

// One test in this file: memory is counted by process.
#[test]
fn a_long_run_kept_all_its_samples_in_memory() {
    let taken = peak_of(400_000);
    // As samples alone they would be 45 MB, and were copied three times.
    assert!(taken < 40 * MIB, "{} MiB", taken / MIB);
}

#[test]
#[ignore = "long: .ci/long runs it"]
fn an_hour_at_a_millisecond_keeps_its_memory() {
    let taken = peak_of(3_600_000);
    assert!(taken < 160 * MIB, "{} MiB", taken / MIB);
}
