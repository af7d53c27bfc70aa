//! The main job, by the real binary.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;

use prony_types::{CellStatus, Difference, Stage, Verdict};
use support::{Place, QUICK, cell, expect_code, prony, quick, stderr, stdout};

#[test]
fn without_arguments_it_measures_both_built_in_models_and_writes_every_file() {
    let place = Place::new();
    // All of the usual frames.
    let output = place.bench(&QUICK[..4]).output().unwrap();
    expect_code(&output, 0);
    let run = place.run();
    for file in [
        "report.json",
        "report.md",
        "report.html",
        "latency_comparative_320.csv",
        "metrics.jsonl",
        "samples.csv",
        "events.jsonl",
        "env_report.txt",
        "run.log",
        "cells/builtin-rgb_rten_fp32/sidecar.json",
        "cells/builtin-rgb_rten_fp32/frame-000.jpg",
        "cells/builtin-thermal_rten_fp32/worker.log",
    ] {
        assert!(run.join(file).exists(), "{file} is missing");
    }
    let record = place.record();
    for id in ["builtin-rgb:rten:fp32", "builtin-thermal:rten:fp32"] {
        let cell = cell(&record, id);
        assert_eq!(cell.status, CellStatus::Completed);
        let total = &cell.latency_ms[&Stage::Total];
        let [low, high] = total.ci95.unwrap();
        assert!(low <= total.p50 && total.p50 <= high && low > 0.0);
        let parts: f64 =
            [Stage::Preprocess, Stage::Inference, Stage::Postprocess].iter().map(|s| cell.latency_ms[s].mean).sum();
        assert!(parts <= total.mean, "the parts are within the whole");
        assert!(!cell.latency_ms.contains_key(&Stage::H2d), "a CPU has no copies to a device");
        assert!(cell.throughput_fps.unwrap() > 0.0);
        assert!(cell.phases.cold_ms.unwrap() > 0.0 && cell.phases.steady_ms.unwrap() > 0.0);
        assert!(cell.memory.host_peak_mib.unwrap() > 1.0);
        assert!(cell.detections_per_frame.unwrap() > 0.5, "a trained detector finds things in its own scenes");
        assert_eq!(cell.input.as_ref().unwrap().frames, 32);
        assert_eq!(cell.precision.executed.as_deref(), Some("fp32"));
        assert!(cell.backend.threads.unwrap() >= 1 && !cell.backend.affinity.as_ref().unwrap().cpus.is_empty());
        assert_ne!(cell.verdict.unwrap(), Verdict::WrongOutput, "{:?}", cell.verdict_reasons);
        assert!((3..=10).contains(&cell.round_p50_ms.len()), "{:?}", cell.round_p50_ms);
        assert_eq!(cell.samples.lost, 0);
    }
    assert_eq!(record.recommendation.len(), 2);
    assert!(stdout(&output).contains(&record.recommendation[0].text[..20]), "{}", stdout(&output));
    let readings = prony_store::read_telemetry(&run.join("metrics.jsonl")).unwrap();
    let timed = readings.iter().filter(|reading| reading.cell.is_some() && reading.worker_rss_bytes.is_some());
    assert!(timed.count() > 0, "the sensors were read beside a worker");
    assert!(readings.iter().all(|reading| reading.mem_available_bytes.is_some() && reading.load1.is_some()));
    let environment = fs::read_to_string(run.join("env_report.txt")).unwrap();
    assert!(environment.contains(record.environment.kernel.as_deref().unwrap()), "{environment}");
    let samples = prony_store::read_samples(&run.join("samples.csv")).unwrap();
    let steady = samples.iter().filter(|row| row.sample.phase == prony_types::Phase::Steady).count() as u64;
    assert_eq!(steady, record.cells.iter().map(|c| c.samples.steady).sum::<u64>());
}

#[test]
fn bad_input_gets_one_line_exit_2_and_no_run_folder() {
    let place = Place::new();
    let empty = place.path("empty");
    fs::create_dir(&empty).unwrap();
    let garbage = place.path("garbage.onnx");
    fs::write(&garbage, [7u8; 300]).unwrap();
    let (empty, garbage) = (empty.to_str().unwrap(), garbage.to_str().unwrap());
    let cases: &[(&[&str], &str)] = &[
        (&["/etc/passwd"], "not an ONNX model"),
        (&[garbage], "not an ONNX model"),
        (&["nosuch.onnx"], "nosuch.onnx"),
        (&["builtin-sonar"], "builtin-rgb"),
        (&["--backends", "nosuch"], "unknown backend `nosuch`; known: rten"),
        (&["--precision", "fp64"], "unknown precision `fp64`"),
        (&["--imgsz", "0"], "between 1 and 8192"),
        (&["--imgsz", "640", "builtin-rgb"], "fixed at 320x320"),
        (&["--source", empty], "no images"),
        (&["--source", "/nonexistent/folder"], "no such folder"),
        (&["--conf", "7"], "--conf"),
        (&["--duration", "0"], "--duration"),
        (&["--duration", "soon"], "is not a time"),
        (&["--batch", "0"], "--batch"),
        (&["--threads", "0"], "--threads"),
        (&["--device", "1"], "--device 1 does not exist: rten has 1 device"),
        (
            &["--device", "cpu"],
            "is not the index of a device, like 0 for the first GPU; for the CPU choose a CPU backend",
        ),
        (&["builtin-rgb", "nosuch.onnx"], "nosuch.onnx"),
        (&["builtin-rbg", "builtin-thermal"], "no model `builtin-rbg`"),
        (&["--backends", "auto,rten"], "--backends auto must be given alone"),
        (&["--duration", "-1"], "between 0 and 24h"),
        (&["--samples", "0"], "--samples"),
        (&["--nosuchflag"], "--nosuchflag"),
        (&["--head", "v8"], "unknown head `v8`"),
        (&["--plan", "/nonexistent.toml"], "/nonexistent.toml"),
        (&["--resume", empty], "not a run folder"),
        (&["--input", garbage], ".npy"),
    ];
    for (args, expected) in cases {
        let output = place.bench(args).output().unwrap();
        expect_code(&output, 2);
        let text = stderr(&output);
        assert_eq!(text.trim_end().lines().count(), 1, "{args:?}: {text}");
        assert!(text.starts_with("error: ") && text.contains(expected), "{args:?}: {text}");
        assert!(!place.runs().exists(), "{args:?} left a folder behind");
    }
}

#[test]
fn an_output_folder_that_cannot_be_made_is_named() {
    let output = prony().args(["bench", "--out", "/proc/nowhere"]).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("/proc/nowhere"), "{}", stderr(&output));
}

#[test]
fn the_same_cell_twice_comes_out_the_same() {
    // Two processes can differ for real, by where their memory came to lie: not thrice in a row.
    let mut seen = Vec::new();
    for _ in 0..3 {
        let place = Place::new();
        let args = ["builtin-thermal", "builtin-thermal", "--duration", "8", "--warmup", "0.5", "--frames", "8"];
        expect_code(&place.bench(&args).output().unwrap(), 0);
        let record = place.record();
        assert_eq!(record.comparisons.len(), 1);
        if record.comparisons[0].difference == Difference::Same {
            return;
        }
        seen.push(record.comparisons[0].clone());
    }
    panic!("{seen:?}");
}

#[test]
fn a_batch_is_one_sample_and_several_frames() {
    let place = Place::new();
    expect_code(&place.bench(&quick(&["builtin-thermal", "--batch", "3"])).output().unwrap(), 0);
    let record = place.record();
    let cell = cell(&record, "builtin-thermal:rten:fp32");
    assert_eq!((cell.status, cell.batch), (CellStatus::Completed, 3));
    assert_eq!(cell.model.input.as_deref(), Some("3x3x320x320"));
    assert!(cell.detections_per_frame.unwrap() > 0.5);
}

#[test]
fn a_precision_nobody_can_make_is_failed_when_named_and_the_rest_completes() {
    let place = Place::new();
    let output = place.bench(&quick(&["builtin-thermal", "--precision", "fp32,fp8"])).output().unwrap();
    expect_code(&output, 1);
    let record = place.record();
    assert_eq!(cell(&record, "builtin-thermal:rten:fp32").status, CellStatus::Completed);
    let fp8 = cell(&record, "builtin-thermal:rten:fp8");
    assert_eq!(fp8.status, CellStatus::Failed);
    assert!(fp8.reason.as_ref().unwrap().contains("rten has no fp8 arithmetic"), "{fp8:?}");
    assert!(fp8.latency_ms.is_empty() && fp8.verdict.is_none());
}

#[test]
fn strict_turns_a_weak_verdict_into_a_failure() {
    let place = Place::new();
    let output = place
        .bench(&["builtin-thermal", "--samples", "10", "--warmup", "0.1", "--frames", "8", "--strict"])
        .output()
        .unwrap();
    expect_code(&output, 1);
    let record = place.record();
    assert_eq!(record.cells[0].samples.steady, 10);
    assert_eq!(record.cells[0].latency_ms[&Stage::Total].p90, None, "10 samples do not make a p90");
    assert_ne!(record.cells[0].verdict, Some(Verdict::Valid));
}

#[test]
fn a_dry_run_says_what_would_happen_and_does_nothing() {
    let place = Place::new();
    let output = place.bench(&["--dry-run", "--precision", "fp32,fp16"]).output().unwrap();
    expect_code(&output, 0);
    let text = stdout(&output);
    assert!(
        text.contains("builtin-rgb:rten:fp32  would run") && text.contains("builtin-rgb:rten:fp16  failed"),
        "{text}"
    );
    assert!(!place.runs().exists());
    let output = place.bench(&["--dry-run", "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["cells"][0]["would"], "run");
}

#[test]
fn with_json_the_record_is_on_stdout_and_nothing_else() {
    let place = Place::new();
    let output = place.bench(&quick(&["builtin-thermal", "--json", "--quiet"])).output().unwrap();
    expect_code(&output, 0);
    let printed: prony_types::RunRecord = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed, place.record());
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_plan_file_does_what_flags_do_and_a_flag_beats_it() {
    let place = Place::new();
    let plan = place.path("prony.toml");
    fs::write(&plan, "models = ['builtin-thermal']\nbackends = ['rten']\nduration = 0.5\nwarmup = '100ms'\nname = 'planned'\nconf = 0.5\n")
        .unwrap();
    let plan = plan.to_str().unwrap();
    expect_code(&place.bench(&["--plan", plan, "--conf", "0.3"]).output().unwrap(), 0);
    let record = place.record();
    assert_eq!(record.plan.budget.duration_s, Some(0.5));
    assert!((record.plan.post.conf - 0.3).abs() < 1e-6);
    assert!(record.run.id.ends_with("-planned"));
    fs::write(plan, "models = ['builtin-thermal']\nbackand = 'rten'\n").unwrap();
    let output = place.bench(&["--plan", plan]).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("line 2") && stderr(&output).contains("backand"), "{}", stderr(&output));
}
