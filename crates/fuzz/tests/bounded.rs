//! Every reader for a fixed number of cases: short enough for every build, the same on every machine.

use prony_fuzz::drive::{Drive, Fault, case};
use prony_fuzz::memory::Counting;
use prony_fuzz::reader::Reader;

#[global_allocator]
static MEMORY: Counting = Counting;

#[track_caller]
fn stands(reader: Reader, cases: u64) {
    let mut drive = Drive::new(reader, 20261115, Vec::new());
    let seeds = drive.corpus().len();
    let mut findings = drive.cases(cases);
    // How long a case takes says more about the machine than about the reader; `prony-fuzz` itself looks at it.
    findings.retain(|finding| !matches!(finding.fault, Fault::Slow(_)));
    let told: Vec<_> = findings.iter().take(3).map(|finding| (&finding.fault, finding.input.len())).collect();
    assert!(findings.is_empty(), "{}: {} findings, {told:?}", reader.name(), findings.len());
    // The damage goes somewhere: inputs were kept that reach what the seeds do not.
    assert!(drive.corpus().len() > seeds + 5, "{}: {} inputs kept", reader.name(), drive.corpus().len());
}

#[test]
fn pickles() {
    stands(Reader::Pickle, 20_000);
}

#[test]
fn containers() {
    stands(Reader::Zip, 20_000);
}

#[test]
fn checkpoints() {
    stands(Reader::Checkpoint, 5_000);
}

#[test]
fn onnx_files() {
    stands(Reader::Onnx, 10_000);
}

#[test]
fn arrays() {
    stands(Reader::Npy, 10_000);
}

#[test]
fn archives_of_arrays() {
    stands(Reader::Npz, 5_000);
}

#[test]
fn records_of_runs() {
    stands(Reader::Record, 400);
}

#[test]
fn events() {
    stands(Reader::Events, 5000);
}

#[test]
fn samples() {
    stands(Reader::Samples, 5000);
}

#[test]
fn plans() {
    stands(Reader::Plan, 5000);
}

#[test]
fn data_yamls() {
    stands(Reader::DataYaml, 10000);
}

#[test]
fn coco_files() {
    stands(Reader::Coco, 3000);
}

#[test]
fn sidecars() {
    stands(Reader::Sidecar, 5000);
}

#[test]
fn wheels() {
    stands(Reader::Wheel, 2000);
}

#[test]
fn what_a_reader_holds_is_counted() {
    // A whole megabyte of pickle is held as a value, and it is seen that it is.
    let mut pickle = b"\x80\x04B\0\0\x10\0".to_vec();
    pickle.resize(pickle.len() + (1 << 20), 7);
    pickle.push(b'.');
    prony_fuzz::memory::begin();
    let kept = prony_model::pt::read_pickle(&pickle).unwrap();
    assert!(prony_fuzz::memory::peak() >= 1 << 20);
    assert!(kept.values().len() > 1);
    assert!(!matches!(case(Reader::Pickle, &pickle).1, Some(Fault::Panicked(_) | Fault::Greedy(_))));
}
