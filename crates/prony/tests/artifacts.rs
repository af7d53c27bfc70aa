//! What a cell runs where that is not the model's own file: rewritten graphs and checkpoints, by the real binary.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prony_model::sha256_hex;
use prony_types::{CellStatus, Verdict};
use serde_json::Value;
use support::{Place, SHORT, at_home, cell, expect_code, prony, stderr, stdout};

/// A small checkpoint of the forge's tests.
fn checkpoint(place: &Place, name: &str) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forge/tests/golden/classic.pt");
    let path = place.path(name);
    fs::copy(golden, &path).unwrap();
    path
}

fn with_home(place: &Place, command: &mut Command) {
    command.env("PRONY_HOME", place.path("home"));
}

fn bench(place: &Place, args: &[&str]) -> Command {
    let mut command = place.bench(&[args, &SHORT].concat());
    with_home(place, &mut command);
    command
}

/// Sidecars of the graphs in the cache.
fn sidecars(place: &Place) -> Vec<Value> {
    let folder = place.path("home/cache/artifacts");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let json = names.filter(|path| path.to_string_lossy().ends_with(".onnx.json"));
    json.map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

#[test]
fn int8_of_an_fp32_model_is_made_once_and_told() {
    let place = Place::new();
    let args = ["builtin-rgb", "--precision", "fp32,int8", "--calibration-frames", "4"];
    let first = bench(&place, &args).output().unwrap();
    expect_code(&first, 0);
    let record = place.record();
    let int8 = cell(&record, "builtin-rgb:rten:int8");
    let artifact = int8.artifact.clone().unwrap();
    assert_eq!(int8.status, CellStatus::Completed);
    assert!(!artifact.from_cache && artifact.sha256 != int8.model.sha256, "{artifact:?}");
    assert_eq!(int8.model.sha256, cell(&record, "builtin-rgb:rten:fp32").model.sha256, "one model, two artifacts");
    assert!(artifact.notes[0].contains("layers in int8"), "{artifact:?}");
    // In a pipe too one sees how far the graph is.
    assert!(stderr(&first).contains("builtin-rgb:rten:int8: finding ranges: frame 1 of 4"), "{}", stderr(&first));
    let path = PathBuf::from(artifact.path.unwrap());
    assert_eq!(sha256_hex(&fs::read(&path).unwrap()), artifact.sha256);
    let [sidecar] = &sidecars(&place)[..] else { panic!("one graph") };
    assert_eq!((&sidecar["schema"], &sidecar["sha256"]), (&"prony.graph/1".into(), &artifact.sha256.into()));
    assert_eq!(sidecar["making"]["rewrite"]["int8"]["calibration"]["frames"], 4);
    let held = record.narrowings.iter().find(|narrow| narrow.cell == int8.id).unwrap();
    assert_eq!(held.against, "builtin-rgb:rten:fp32");

    fs::remove_dir_all(place.runs()).unwrap();
    let second = bench(&place, &args).output().unwrap();
    expect_code(&second, 0);
    assert!(cell(&place.record(), "builtin-rgb:rten:int8").artifact.as_ref().unwrap().from_cache);
    // What lies there is not believed.
    fs::write(&path, b"something else").unwrap();
    let listed = at_home(prony().args(["cache", "verify"]), &place.path("home")).output().unwrap();
    expect_code(&listed, 1);
    assert!(stdout(&listed).contains("1 graph") && stdout(&listed).contains("damaged"), "{}", stdout(&listed));
}

#[test]
fn int8_of_a_file_needs_data_and_is_skipped_without() {
    let place = Place::new();
    let model = place.path("mine.onnx");
    fs::write(&model, prony_model::builtin(prony_types::SceneKind::Rgb)).unwrap();
    let output = bench(&place, &[model.to_str().unwrap(), "--precision", "fp32,int8"]).output().unwrap();
    expect_code(&output, 1);
    let record = place.record();
    let int8 = cell(&record, "mine:rten:int8");
    assert_eq!(int8.status, CellStatus::Skipped);
    assert!(int8.reason.as_ref().unwrap().contains("int8 needs ranges: give --calib"), "{:?}", int8.reason);
    assert_eq!(cell(&record, "mine:rten:fp32").status, CellStatus::Completed);
}

#[test]
fn fp16_that_runs_in_fp32_has_fallen_back() {
    let place = Place::new();
    let Some(home) = place.home(&["onnxruntime"]) else { return };
    let args = ["builtin-rgb", "--backends", "ort-cpu", "--precision", "fp16"];
    let output = at_home(&mut place.bench(&[&args[..], &SHORT].concat()), &home).output().unwrap();
    let record = place.record();
    let half = cell(&record, "builtin-rgb:ort-cpu:fp16");
    let layers = half.layers.clone().unwrap();
    // ONNX Runtime has no convolutions in 16 bits on x86; where it has them, on Arm, they are seen.
    if layers.of("fp16") == 0 {
        expect_code(&output, 3);
        assert_eq!(half.verdict, Some(Verdict::FellBack), "{:?}", half.verdict_reasons);
        assert!(half.verdict_reasons[0].starts_with("no layer computes in fp16"), "{:?}", half.verdict_reasons);
    } else {
        expect_code(&output, 0);
    }
    assert!(half.agreement.is_some(), "{:?}", half.agreement_absent);
}

#[test]
fn a_checkpoint_is_a_model_to_every_command() {
    let place = Place::new();
    let model = checkpoint(&place, "small.pt");
    let name = model.to_str().unwrap();
    let output = bench(&place, &[name, "--conf", "0.9"]).output().unwrap();
    let record = place.record();
    let row = cell(&record, "small:rten:fp32");
    assert_eq!(row.status, CellStatus::Completed, "{} {}", stdout(&output), stderr(&output));
    assert_eq!(row.model.sha256, sha256_hex(&fs::read(&model).unwrap()), "the model is the checkpoint");
    let artifact = row.artifact.clone().unwrap();
    let graph = artifact.path.unwrap();
    assert_eq!(sha256_hex(&fs::read(&graph).unwrap()), artifact.sha256, "and what ran is its graph");
    assert_ne!(artifact.sha256, row.model.sha256);

    let mut inspect = prony();
    with_home(&place, inspect.args(["inspect", "--json", "--no-backends", name]));
    let output = inspect.output().unwrap();
    expect_code(&output, 0);
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&facts["format"], &facts["onnx"]["sha256"]), (&"pt".into(), &artifact.sha256.into()));

    let input = place.path("x.npy");
    let grey = vec![0.5f32; 3 * 64 * 64];
    fs::write(&input, support::numpy::npy("<f4", &[1, 3, 64, 64], &grey, f32::to_le_bytes)).unwrap();
    // By its stem, and from the cache.
    let mut run = prony();
    with_home(&place, run.args(["run", name.strip_suffix(".pt").unwrap(), "--json", "--input"]).arg(&input));
    let output = run.output().unwrap();
    expect_code(&output, 0);
    assert!(stderr(&output).contains("taking small.pt"), "{}", stderr(&output));
    assert_eq!(sidecars(&place).len(), 1);

    let mut convert = prony();
    with_home(&place, convert.args(["convert", name, "--precision", "fp16"]));
    expect_code(&convert.output().unwrap(), 0);
    assert!(place.path("small-fp16.onnx").is_file());
    // Of several files of one stem the graph comes before the checkpoint.
    fs::rename(place.path("small-fp16.onnx"), place.path("small.onnx")).unwrap();
    let mut run = prony();
    with_home(&place, run.args(["run", name.strip_suffix(".pt").unwrap(), "--input"]).arg(&input));
    let said = stderr(&run.output().unwrap());
    assert!(said.contains("taking small.onnx; beside it small.pt"), "{said}");
}

#[test]
fn int8_on_three_backends_runs_the_calibration_frames_once() {
    let place = Place::new();
    let Some(home) = place.home(&["onnxruntime", "openvino"]) else { return };
    let args =
        ["builtin-rgb", "--backends", "rten,ort-cpu,openvino", "--precision", "int8", "--calibration-frames", "4"];
    let output = at_home(&mut bench(&place, &args), &home).output().unwrap();
    let record = place.record();
    assert_eq!(record.cells.len(), 3, "{}", stderr(&output));
    let reuses = |cell: &prony_types::CellRecord| {
        let notes = &cell.artifact.as_ref().unwrap().notes;
        notes.iter().any(|note| note == "ranges reused from an earlier pass over the same calibration frames")
    };
    let reused: Vec<bool> = record.cells.iter().map(reuses).collect();
    assert_eq!(reused, [false, true, true], "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("finding ranges: frame 1 of 4").count(), 1, "{}", stderr(&output));
}
