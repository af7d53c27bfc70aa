//! One binary and many libraries: versions side by side, builds without the provider that is asked for, broken files.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use prony_standin::Standin;
use prony_types::{CellRecord, CellStatus, Environment, RuntimeName, RuntimeRecord, RuntimeState};
use serde_json::Value;
use support::{Place, SHORT, at_home, cell, expect_code, has_tool, installed, prony, skip, stderr, stdout};

fn library(folder: &Path) -> PathBuf {
    fs::canonicalize(folder.join("libonnxruntime.so")).unwrap()
}

/// A bench of the colour detector on one backend, with one library and no other.
fn bench_with(place: &Place, library: &Path, backend: &str) -> Command {
    let home = place.home(&[]).unwrap();
    let pointer = format!("onnxruntime={}", library.display());
    let args = [&["builtin-rgb", "--backends", backend, "--library", &pointer], &SHORT[..]].concat();
    let mut command = place.bench(&args);
    at_home(&mut command, &home);
    command
}

/// A cell that has failed has its reason in one line, on the terminal too, and no figures.
#[track_caller]
fn failure(place: &Place, output: &Output) -> CellRecord {
    expect_code(output, 1);
    let record = place.record();
    let [cell] = &record.cells[..] else { panic!("{:?}", record.cells) };
    assert_eq!(cell.status, CellStatus::Failed);
    assert!(cell.latency_ms.is_empty() && cell.throughput_fps.is_none() && cell.verdict.is_none(), "{cell:?}");
    let reason = cell.reason.as_deref().unwrap();
    assert!(reason.lines().count() == 1 && stderr(output).contains(reason), "{reason}\n{}", stderr(output));
    cell.clone()
}

/// Class and corners of every box on the first built-in scene, strongest first.
fn boxes(place: &Place, library: &Path) -> Vec<(String, [f64; 4])> {
    let mut command = prony();
    command.current_dir(place.dir.path()).args(["run", "builtin-rgb", "--backend", "ort-cpu", "--library"]);
    command.arg(library).args(["--input", "scenes/images/000000.png", "--output", "boxes.json"]);
    expect_code(&command.output().unwrap(), 0);
    let found: Value = serde_json::from_slice(&fs::read(place.path("boxes.json")).unwrap()).unwrap();
    let corners = |found: &Value| [0, 1, 2, 3].map(|i| found["xyxy"][i].as_f64().unwrap());
    let list = found["detections"].as_array().unwrap();
    list.iter().map(|found| (found["name"].to_string(), corners(found))).collect()
}

#[test]
fn one_binary_runs_onnx_runtime_1_20_and_1_23_and_the_newest() {
    let scenes = Place::new();
    let mut synth = prony();
    synth.args(["data", "synth", "--count", "1", "--seed", "5", "--quiet"]).arg(scenes.path("scenes"));
    expect_code(&synth.output().unwrap(), 0);
    let mut first: Option<Vec<(String, [f64; 4])>> = None;
    for version in [Some("1.20.1"), Some("1.23.2"), None] {
        let Some(folder) = installed("onnxruntime", version) else { return };
        let version = folder.file_name().unwrap().to_str().unwrap();
        let library = library(&folder);
        let place = Place::new();
        expect_code(&bench_with(&place, &library, "ort-cpu").output().unwrap(), 0);
        let record = place.record();
        let cell = cell(&record, "builtin-rgb:ort-cpu:fp32");
        assert_eq!((cell.status, cell.backend.version.as_deref()), (CellStatus::Completed, Some(version)));
        assert_eq!(cell.backend.library.as_deref(), library.to_str());
        let agreement = cell.agreement.as_ref().unwrap();
        assert!(agreement.reference.contains("ort-cpu") && agreement.matched_boxes == Some(1.0), "{agreement:?}");
        for tensor in [agreement.boxes.unwrap(), agreement.scores.unwrap()] {
            assert!(tensor.cosine > 0.9999 && tensor.sqnr_db.is_none_or(|db| db > 60.0), "{version}: {tensor:?}");
        }
        let found = boxes(&scenes, &library);
        let first = first.get_or_insert_with(|| found.clone());
        assert!(!found.is_empty() && found.len() == first.len(), "{version}: {found:?}\n{first:?}");
        for ((name, corners), (first_name, first_corners)) in found.iter().zip(first.iter()) {
            let near = corners.iter().zip(first_corners).all(|(a, b)| (a - b).abs() < 0.01);
            assert!(name == first_name && near, "{version}: {corners:?} against {first_corners:?}");
        }
    }
}

#[test]
fn a_build_without_cuda_is_no_cuda_row_with_cpu_figures() {
    let Some(folder) = installed("onnxruntime", None) else { return };
    // A GPU, as far as the driver's word goes.
    let Some(standin) = Standin::new("10.3.0") else { return };
    for (backend, provider) in [("ort-cuda", "CUDA"), ("ort-tensorrt", "Tensorrt")] {
        let place = Place::new();
        let mut bench = bench_with(&place, &library(&folder), backend);
        bench.arg("--library").arg(format!("cuda={}", standin.driver().display()));
        let cell = failure(&place, &bench.output().unwrap());
        let reason = cell.reason.unwrap().to_lowercase();
        assert!(reason.contains(&format!("provider {provider} is not in this build").to_lowercase()), "{reason}");
        assert!(reason.contains("prony runtime install onnxruntime-gpu"), "{reason}");
    }
}

/// A process that is pointed at nothing: no folders of its own, no Python, no search path.
fn destitute<'a>(command: &'a mut Command, place: &Place) -> &'a mut Command {
    let nothing = place.path("nothing");
    fs::create_dir_all(&nothing).unwrap();
    command.env_clear().current_dir(&nothing).env("HOME", &nothing).env("PRONY_HOME", &nothing).env("PATH", &nothing)
}

fn runtimes(doctor: &Output) -> Vec<RuntimeRecord> {
    expect_code(doctor, 0);
    let environment: Environment = serde_json::from_str(&stdout(doctor)).unwrap();
    environment.runtimes.into_iter().filter(|record| record.name == RuntimeName::Onnxruntime).collect()
}

#[test]
fn without_any_onnx_runtime_the_cell_fails_by_that_name() {
    let place = Place::new();
    let found = runtimes(&destitute(prony().args(["doctor", "--json"]), &place).output().unwrap());
    if found.iter().any(|record| record.state != RuntimeState::Missing) {
        skip(&format!("the whole system has an ONNX Runtime: {found:?}"));
        return;
    }
    let place = Place::new();
    let args = [&["builtin-rgb", "--backends", "ort-cpu"], &SHORT[..]].concat();
    let output = destitute(&mut place.bench(&args), &place).output().unwrap();
    let reason = failure(&place, &output).reason.unwrap();
    assert!(reason.contains("no ONNX Runtime here") && reason.contains("prony runtime install"), "{reason}");
}

/// Bench fails with a reason that has these words, and doctor has a broken record with them.
#[track_caller]
fn named_by_bench_and_doctor(library: &Path, words: &[&str]) {
    let place = Place::new();
    let reason = failure(&place, &bench_with(&place, library, "ort-cpu").output().unwrap()).reason.unwrap();
    let path = library.to_str().unwrap();
    assert!(reason.contains(path) && words.iter().all(|word| reason.contains(word)), "{words:?}: {reason}");

    let mut doctor = prony();
    doctor.args(["doctor", "--json"]);
    at_home(&mut doctor, &place.path("home")).env("PRONY_ONNXRUNTIME", library);
    let found = runtimes(&doctor.output().unwrap());
    let record =
        found.iter().find(|record| record.path.as_deref() == Some(path)).unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!((record.state, record.found_by.as_deref()), (RuntimeState::Broken, Some("PRONY_ONNXRUNTIME")));
    let reason = record.reason.as_deref().unwrap();
    assert!(words.iter().all(|word| reason.contains(word)), "{words:?}: {reason}");
}

/// A library made here, needing what is given.
fn compile(folder: &Path, name: &str, needs: &[&str]) -> PathBuf {
    let (source, path) = (folder.join("empty.c"), folder.join(name));
    fs::write(&source, "int here(void) { return 1; }\n").unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).arg(&path).arg(&source).args(needs);
    expect_code(&gcc.current_dir(folder).output().unwrap(), 0);
    path
}

/// A folder by its real name, as records have it.
fn real(place: &Place) -> PathBuf {
    fs::canonicalize(place.dir.path()).unwrap()
}

#[test]
fn a_text_file_called_libonnxruntime_is_named_by_bench_and_doctor() {
    let place = Place::new();
    let text = real(&place).join("libonnxruntime.so");
    fs::write(&text, "this is where the library should be\n").unwrap();
    named_by_bench_and_doctor(&text, &["a text file, not a library"]);
}

#[test]
fn a_library_for_another_processor_is_named_by_bench_and_doctor() {
    if !has_tool("gcc") {
        return;
    }
    let place = Place::new();
    let path = compile(&real(&place), "libonnxruntime.so", &[]);
    let (other, number) = if std::env::consts::ARCH == "x86_64" { ("aarch64", 183u16) } else { ("x86_64", 62) };
    let mut bytes = fs::read(&path).unwrap();
    bytes[18..20].copy_from_slice(&number.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    named_by_bench_and_doctor(&path, &[other, std::env::consts::ARCH]);
}

#[test]
fn a_missing_dependency_is_named_by_bench_and_doctor() {
    if !has_tool("gcc") {
        return;
    }
    let place = Place::new();
    let part = compile(&real(&place), "libpart_of_it.so", &[]);
    let path = compile(&real(&place), "libonnxruntime.so", &["-L.", "-lpart_of_it"]);
    fs::remove_file(part).unwrap();
    named_by_bench_and_doctor(&path, &["libpart_of_it.so", "cannot open shared object file"]);
}
