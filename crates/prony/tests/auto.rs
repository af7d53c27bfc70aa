//! What is measured when nobody says on what: by the real binary, on machines with and without runtimes and GPUs.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use prony_model::onnx::{GraphProto, ModelProto, NodeProto, ValueInfo};
use prony_standin::Standin;
use prony_types::{CellStatus, ExitCode, Stage, Verdict};
use support::{Place, SHORT, at_home, cell, expect_code, prony, skip, stderr, stdout, write_model};

/// Why a test of a machine without an accelerator does not apply here.
fn has_gpu() -> bool {
    let there = Path::new("/dev/nvidia0").exists() || Path::new("/dev/nvhost-gpu").exists();
    if there {
        skip("there is a real GPU");
    }
    there
}

/// A process that finds nothing: no folders of its own, no Python, no search path.
fn destitute<'a>(command: &'a mut Command, place: &Place) -> &'a mut Command {
    let nothing = place.path("nothing");
    fs::create_dir_all(&nothing).unwrap();
    command.env_clear().current_dir(&nothing).env("HOME", &nothing).env("PRONY_HOME", &nothing).env("PATH", &nothing)
}

/// A command for which a stand-in is the machine's TensorRT and driver, found as a Jetson's would be.
fn on_standin<'a>(command: &'a mut Command, standin: &Standin, home: &Path) -> &'a mut Command {
    at_home(command, home)
        .env("LD_LIBRARY_PATH", standin.folder())
        .env("PRONY_NVINFER", standin.library())
        .env("PRONY_NVONNXPARSER", standin.parser())
        .env("PRONY_NVINFER_PLUGIN", standin.plugins())
        .env("PRONY_CUDA", standin.driver())
}

/// The first line of a run; before it there may be one about another run that must end first.
fn first_line(output: &std::process::Output) -> String {
    stderr(output).lines().find(|line| line.starts_with("prony ")).unwrap_or_default().to_owned()
}

#[test]
fn with_nothing_installed_the_embedded_engine_is_measured_and_what_is_missing_is_one_line() {
    let place = Place::new();
    let dry = destitute(&mut place.auto(&["--dry-run"]), &place).output().unwrap();
    expect_code(&dry, 0);
    let text = stdout(&dry);
    if !text.contains("rten:fp32") {
        skip(&format!("the whole system has a runtime: {text}"));
        return;
    }
    assert!(text.starts_with("would measure 2 cells, builtin-rgb and builtin-thermal on rten:fp32: about "), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("tensorrt")).collect();
    assert_eq!(lines.len(), 1, "what is not here is one line and no row: {text}");
    let install = "openvino (run `prony runtime install openvino`); ort-cpu (run `prony runtime install onnxruntime`)";
    assert!(lines[0].contains("because nothing else is here") && lines[0].contains(install), "{text}");
    if !has_gpu() {
        assert!(lines[0].contains("tensorrt and ort-cuda (no NVIDIA GPU)"), "{text}");
    }

    let output = destitute(&mut place.auto(&[&["builtin-rgb"][..], &SHORT].concat()), &place).output().unwrap();
    expect_code(&output, 0);
    let line = first_line(&output);
    assert!(line.contains("1 cell, builtin-rgb on rten:fp32: as long as the samples take, in "), "{line}");
    let record = place.record();
    assert_eq!(record.cells.len(), 1);
    assert_eq!(cell(&record, "builtin-rgb:rten:fp32").status, CellStatus::Completed);
    assert!(record.plan.notes[0].contains("because nothing else is here"), "{:?}", record.plan.notes);
    let report = fs::read_to_string(place.run().join("report.md")).unwrap();
    assert!(report.contains("because nothing else is here"), "{report}");
}

#[test]
fn with_runtimes_installed_they_are_measured_and_the_embedded_engine_is_not() {
    let place = Place::new();
    let Some(home) = place.home(&["onnxruntime", "openvino"]) else { return };
    if has_gpu() {
        return;
    }
    let output = at_home(&mut place.auto(&[&["builtin-rgb"][..], &SHORT].concat()), &home).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    let ids: Vec<&str> = record.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["builtin-rgb:openvino:fp32", "builtin-rgb:ort-cpu:fp32"]);
    assert!(record.cells.iter().all(|cell| cell.status == CellStatus::Completed), "{:?}", record.cells);
    assert_eq!(record.plan.notes, ["not here: tensorrt and ort-cuda (no NVIDIA GPU)"]);
    let line = first_line(&output);
    assert!(line.contains("2 cells, builtin-rgb on openvino:fp32 and ort-cpu:fp32"), "{line}");
    assert!(!stdout(&output).contains("tensorrt"), "no rows of what is not here: {}", stdout(&output));
}

#[test]
fn an_evaluation_uses_what_the_machine_has_too() {
    let place = Place::new();
    let Some(home) = place.home(&["onnxruntime"]) else { return };
    if has_gpu() {
        return;
    }
    let mut command = prony();
    command.args(["eval", "builtin-rgb", "--data", "scenes", "--limit", "5", "--out"]).arg(place.runs());
    expect_code(&at_home(&mut command, &home).output().unwrap(), 0);
    assert_eq!(place.record().cells[0].id, "builtin-rgb:ort-cpu:fp32");
}

#[test]
fn without_backends_a_machine_with_tensorrt_measured_its_cpu_alone() {
    let Some(standin) = Standin::new("10.3.0") else { return };
    let place = Place::new();
    let home = place.home(&[]).unwrap();
    let bench = |args: &[&str]| on_standin(&mut place.auto(args), &standin, &home).output().unwrap();
    let dry = bench(&["builtin-rgb", "--dry-run", "--duration", "0.2"]);
    expect_code(&dry, 0);
    let text = stdout(&dry);
    if text.contains("ort-cpu:fp32") {
        skip("the whole system has an ONNX Runtime");
        return;
    }
    assert!(
        text.starts_with("would measure 2 cells, builtin-rgb on tensorrt:fp16 and tensorrt:fp32: about "),
        "{text}"
    );
    assert!(text.lines().next().unwrap().ends_with("plus building 2 TensorRT engines (minutes each)"), "{text}");
    assert!(
        !text.contains("rten:fp32") && text.contains("ort-cuda (run `prony runtime install onnxruntime-gpu`)"),
        "{text}"
    );

    // The stand-in doubles its input, which no model does: that is seen, and told by the exit code.
    let short = ["builtin-rgb", "--duration", "0.2", "--warmup", "0.05", "--frames", "8"];
    expect_code(&bench(&short), 3);
    let record = place.record();
    let ids: Vec<&str> = record.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["builtin-rgb:tensorrt:fp16", "builtin-rgb:tensorrt:fp32"]);
    for cell in &record.cells {
        assert_eq!((cell.status, cell.verdict), (CellStatus::Completed, Some(Verdict::WrongOutput)), "{cell:?}");
    }
    // What is in the cache need not be built.
    let text = stdout(&bench(&["builtin-rgb", "--dry-run", "--duration", "0.2"]));
    assert!(!text.contains("building"), "{text}");
    let text = stdout(&bench(&["builtin-rgb", "--dry-run", "--duration", "0.2", "--batch", "2"]));
    assert!(text.contains("plus building 2 TensorRT engines"), "of another shape: {text}");
}

#[test]
fn what_tensorrt_does_not_take_is_skipped_and_left_to_the_embedded_engine() {
    let Some(standin) = Standin::new("10.3.0") else { return };
    let place = Place::new();
    let home = place.home(&[]).unwrap();
    standin.set("parse", "refuse");
    let args = [&["builtin-rgb"][..], &SHORT].concat();
    let output = on_standin(&mut place.auto(&args), &standin, &home).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    if record.cells.iter().any(|cell| cell.backend.name == "ort-cpu") {
        skip("the whole system has an ONNX Runtime");
        return;
    }
    let ids: Vec<&str> = record.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(
        ids,
        ["builtin-rgb:tensorrt:fp16", "builtin-rgb:tensorrt:fp32", "builtin-rgb:rten:fp32"],
        "{}",
        stderr(&output)
    );
    for id in &ids[..2] {
        let cell = cell(&record, id);
        assert_eq!(cell.status, CellStatus::Skipped, "{:?}", cell.reason);
        assert!(cell.reason.as_ref().unwrap().contains("No importer registered"), "{:?}", cell.reason);
    }
    assert_eq!(cell(&record, "builtin-rgb:rten:fp32").status, CellStatus::Completed, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("no other backend that is here can run builtin-rgb: measuring builtin-rgb:rten:fp32")
    );
    // Named, it has failed, and nothing takes over.
    let place = Place::new();
    let args = [&["builtin-rgb", "--backends", "tensorrt,rten"][..], &SHORT].concat();
    expect_code(&on_standin(&mut place.auto(&args), &standin, &home).output().unwrap(), 1);
    assert_eq!(cell(&place.record(), "builtin-rgb:tensorrt:fp32").status, CellStatus::Failed);
}

#[test]
fn a_library_without_a_gpu_is_not_ready() {
    if has_gpu() {
        return;
    }
    let Some(standin) = Standin::new("10.3.0") else { return };
    standin.set("devices", "0");
    let place = Place::new();
    let home = place.home(&[]).unwrap();
    let output = on_standin(&mut place.auto(&["builtin-rgb", "--dry-run"]), &standin, &home).output().unwrap();
    expect_code(&output, 0);
    assert!(!stdout(&output).contains("tensorrt:fp"), "{}", stdout(&output));
    assert!(stdout(&output).contains("tensorrt and ort-cuda ("), "{}", stdout(&output));
    let limited = ["builtin-rgb", "--dry-run", "--gpu-mem-limit", "1GB"];
    let output = on_standin(&mut place.auto(&limited), &standin, &home).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("--gpu-mem-limit is for ort-cuda, ort-tensorrt and tensorrt; not here: "));
}

#[test]
fn more_threads_than_cpus_are_told_in_the_greeting_and_in_the_report() {
    let place = Place::new();
    let machine = prony().args(["doctor", "--json"]).output().unwrap();
    let machine: serde_json::Value = serde_json::from_slice(&machine.stdout).unwrap();
    let usable = machine["cpu"]["usable"].as_u64().unwrap();
    let threads = (usable + 1).to_string();
    let args = [&["builtin-thermal", "--threads", &threads][..], &SHORT].concat();
    let output = place.bench(&args).output().unwrap();
    expect_code(&output, 0);
    let words = format!("--threads {threads} is more than the {usable} CPU");
    assert!(stderr(&output).contains(&words), "{}", stderr(&output));
    assert!(fs::read_to_string(place.run().join("report.md")).unwrap().contains(&words));
    let scenes = place.path("scenes");
    expect_code(&prony().args(["data", "synth", "--count", "1", "--quiet"]).arg(&scenes).output().unwrap(), 0);
    let mut run = prony();
    run.args(["run", "builtin-rgb", "--threads", &threads, "--input"]).arg(scenes.join("images/000000.png"));
    let output = run.output().unwrap();
    expect_code(&output, 0);
    assert!(stderr(&output).contains(&words), "{}", stderr(&output));
}

/// A model that is done at once.
fn tiny(place: &Place) -> String {
    let graph = GraphProto {
        node: vec![NodeProto::new("Relu", &["x"], &["y"], vec![])],
        name: "tiny".into(),
        input: vec![ValueInfo::floats("x", &[1, 64])],
        output: vec![ValueInfo::floats("y", &[1, 64])],
        ..GraphProto::default()
    };
    write_model(&place.path("tiny.onnx"), &ModelProto::new(graph, &[]))
}

#[test]
fn a_p99_gate_gets_the_samples_that_it_needs() {
    let place = Place::new();
    let model = tiny(&place);
    let bench = |place: &Place, args: &[&str]| {
        let own = [model.as_str(), "--head", "none", "--warmup", "0.1"];
        place.bench(&[&own[..], args].concat()).output().unwrap()
    };
    let output = bench(&place, &["--gate", "p99_max_ms=100000"]);
    expect_code(&output, 0);
    assert!(first_line(&output).contains("until each has 662 samples"), "{}", first_line(&output));
    let record = place.record();
    assert!(record.cells[0].latency_ms[&Stage::Total].n >= 662, "{:?}", record.cells[0].latency_ms);
    assert!(record.gates[0].pass && record.gates[0].figure.is_some(), "{:?}", record.gates);
    assert!(record.method.stopping.contains("until there are 662 samples"), "{}", record.method.stopping);
    let broken = Place::new();
    expect_code(&bench(&broken, &["--samples", "662", "--gate", "p99_max_ms=0.000001"]), 3);
    assert!(broken.record().gates[0].is_broken());
}

#[test]
fn a_p99_gate_with_too_short_a_duration_is_refused_with_one_that_helps() {
    let place = Place::new();
    let args = ["builtin-thermal", "--duration", "0.2", "--warmup", "0.3", "--gate", "p99_max_ms=20"];
    let output = place.bench(&args).output().unwrap();
    expect_code(&output, 2);
    let text = stderr(&output);
    let last = text.lines().last().unwrap();
    assert!(last.contains("needs 662 samples per cell") && last.contains("use --duration "), "{text}");
    assert!(!place.runs().exists(), "nothing was measured");
}

#[test]
fn a_gate_that_could_not_be_measured_is_exit_4() {
    let before = Place::new();
    expect_code(&before.bench(&[&["builtin-thermal"][..], &SHORT].concat()).output().unwrap(), 0);
    let baseline = before.run();
    let gate = ["--gate", "latency_ratio_max=1000", "--baseline", baseline.to_str().unwrap()];
    let place = Place::new();
    let args = [&["builtin-thermal", "builtin-rgb"][..], &gate, &SHORT].concat();
    expect_code(&place.bench(&args).output().unwrap(), 4);
    let record = place.record();
    assert_eq!(record.run.exit_code, Some(ExitCode::Inconclusive));
    let [thermal, rgb] = &record.gates[..] else { panic!("{:?}", record.gates) };
    assert!(thermal.pass && rgb.inconclusive && !rgb.is_broken(), "{:?}", record.gates);
    assert!(rgb.reason.as_ref().unwrap().contains("has no cell builtin-rgb:rten:fp32"), "{rgb:?}");

    // A baseline that has none of the cells is refused before anything is measured.
    let place = Place::new();
    let output = place.bench(&[&["builtin-rgb"][..], &gate].concat()).output().unwrap();
    expect_code(&output, 2);
    let text = stderr(&output);
    assert!(text.contains("has none of the cells that would run (builtin-rgb:rten:fp32)"), "{text}");
    assert!(!place.runs().exists());
}

#[test]
fn the_quick_tier_has_more_than_a_median_of_a_slow_cell() {
    let place = Place::new();
    // Large batches make the detector slow enough: two seconds are some thirty calls.
    let tier = ["builtin-thermal", "--tier", "quick", "--backends", "rten", "--batch", "8"];
    expect_code(&place.bench(&[&tier[..], &["--warmup", "0.1", "--frames", "8"]].concat()).output().unwrap(), 0);
    let record = place.record();
    let total = &record.cells[0].latency_ms[&Stage::Total];
    assert!(total.n >= 64 && total.p90.is_some(), "{total:?}");
    assert_eq!(record.plan.budget.at_least.map(|floor| floor.samples), Some(64));
}
