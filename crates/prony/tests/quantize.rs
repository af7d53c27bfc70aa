//! `prony quantize`, by the real binary.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::process::Output;

use serde_json::Value;
use support::{Place, expect_code, prony, stderr, stdout};

fn quantize(place: &Place, more: &[&str]) -> Output {
    let mut command = prony();
    command.current_dir(place.path("")).env("PRONY_HOME", place.path("home")).arg("quantize");
    let samples: &[&str] = if more.contains(&"--samples") { &[] } else { &["--samples", "4"] };
    command.args(["--calib", "scenes"]).args(samples).args(more).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {} {}", stdout(output), stderr(output)))
}

#[test]
fn a_built_in_detector_becomes_a_file_that_finds_the_same_boxes() {
    let place = Place::new();
    let output = quantize(&place, &["builtin-rgb"]);
    expect_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("layers in int8") && text.contains("written: builtin-rgb-int8.onnx"), "{text}");
    let sidecar: Value = serde_json::from_slice(&fs::read(place.path("builtin-rgb-int8.onnx.json")).unwrap()).unwrap();
    assert_eq!((&sidecar["schema"], &sidecar["method"]), (&"prony.quantise/1".into(), &"mse".into()));
    let layers = sidecar["layers"].as_array().unwrap();
    assert!(layers.len() > 20 && layers.iter().all(|layer| layer["weight_sqnr_db"].as_f64().unwrap() > 25.0));
    let file = place.path("builtin-rgb-int8.onnx");
    assert!(fs::metadata(&file).unwrap().len() < 1_500_000, "bytes are smaller than floats");
    let inspected = prony().arg("inspect").arg(&file).output().unwrap();
    expect_code(&inspected, 0);
    assert!(stdout(&inspected).contains("int8"), "{}", stdout(&inspected));
    let compared =
        prony().args(["compare-outputs", "builtin-rgb"]).arg(&file).args(["--frames", "2"]).output().unwrap();
    expect_code(&compared, 0);
    // What is there stays.
    let bytes = fs::read(&file).unwrap();
    let again = quantize(&place, &["builtin-rgb", "--method", "minmax"]);
    expect_code(&again, 2);
    assert!(stderr(&again).contains("is there already; give --force"), "{}", stderr(&again));
    assert_eq!(fs::read(&file).unwrap(), bytes);
    let forced = quantize(&place, &["builtin-rgb", "--method", "minmax", "--force", "--json"]);
    expect_code(&forced, 0);
    let record = json(&forced);
    assert_eq!((&record["report"]["method"], &record["report"]["ranges_from_cache"]), (&"minmax".into(), &true.into()));
    assert_ne!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn other_libraries_run_it_and_agree() {
    let place = Place::new();
    let Some(home) = place.home(&["onnxruntime", "openvino"]) else { return };
    for (target, backend) in
        [("any", "ort-cpu"), ("any", "openvino"), ("onnxruntime", "ort-cpu"), ("openvino", "openvino")]
    {
        let file = format!("{target}.onnx");
        let made = quantize(&place, &["builtin-rgb", "--for", target, "-o", &file, "--force"]);
        expect_code(&made, 0);
        let mut compare = prony();
        compare.args(["compare-outputs", "builtin-rgb"]).arg(place.path(&file)).arg("--home").arg(&home);
        let compared = compare.args(["--backend-a", backend, "--frames", "2", "--json"]).output().unwrap();
        // Four frames of calibration do not decide over boxes near a threshold. A library that takes the bytes for something
        // else shows: signed ones behind a concatenation leave 3 dB of the scores on OpenVINO.
        let heads = &json(&compared)["heads"];
        for (part, least) in [("boxes", 20.0), ("scores", 10.0)] {
            let sqnr_db = heads[part]["sqnr_db"].as_f64().unwrap();
            assert!(sqnr_db > least, "{target} on {backend}: {part} {sqnr_db} dB");
        }
    }
}

#[test]
fn the_dearest_layers_are_kept_in_float_until_the_gate_holds() {
    let place = Place::new();
    let common = ["builtin-rgb", "--sensitivity", "--limit", "6", "--json", "--exclude", "/p3/p3.0/conv/Conv"];
    let output = quantize(&place, &[&common[..], &["--gate", "map_drop_max=100", "-o", "held.onnx"]].concat());
    expect_code(&output, 0);
    let record = json(&output);
    let losses: Vec<f64> =
        record["sensitivity"].as_array().unwrap().iter().map(|loss| loss["sqnr_db"].as_f64().unwrap()).collect();
    assert!(losses.len() > 20 && losses.is_sorted(), "{losses:?}");
    assert_eq!(record["gate"]["held"], true);
    assert_eq!(record["gate"]["kept_float"].as_array().unwrap().len(), 0);
    assert!(place.path("held.onnx").exists());
}

#[test]
fn what_is_wrong_is_said_in_a_line_and_nothing_is_written() {
    let place = Place::new();
    fs::write(place.path("text.onnx"), "no model").unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["builtin-rgb", "--exclude", "nobody"], "nothing in the graph is called `nobody`"),
        (&["builtin-rgb", "--exclude", "Conv"], "nothing in the graph can be quantised: excluded"),
        (&["text.onnx"], "is not an ONNX model"),
        (&["builtin-rgb", "--calib", "missing"], "--calib missing is not there"),
        (&["builtin-rgb", "--calib", "empty"], "empty"),
        (&["builtin-rgb", "--backend", "openvino"], "use rten or ort-cpu"),
        (&["builtin-rgb", "--imgsz", "640"], "its input is fixed at 320x320"),
        (&["builtin-rgb", "-o", "x.txt"], "must end in .onnx"),
        (&["builtin-rgb", "--sensitivity", "--gate", "map_min=0.5"], "use map_drop_max=POINTS"),
    ];
    for (args, message) in cases {
        let mut command = prony();
        command.current_dir(place.path("")).arg("quantize").args(args);
        if !args.contains(&"--calib") {
            command.args(["--calib", "scenes", "--samples", "1"]);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{args:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{args:?}: {}", stderr(&output));
    }
    let without = prony().args(["quantize", "builtin-rgb"]).output().unwrap();
    assert!(stderr(&without).contains("--calib is missing"), "{}", stderr(&without));
    assert_eq!(
        fs::read_dir(place.path(""))
            .unwrap()
            .filter(|f| f.as_ref().unwrap().path().to_string_lossy().contains("int8"))
            .count(),
        0
    );
}

/// The built-in scenes as a folder of images.
fn photos(place: &Place, count: &str) -> String {
    let set = place.path("set");
    expect_code(&prony().args(["data", "synth", "--count", count]).arg(&set).output().unwrap(), 0);
    set.join("images").display().to_string()
}

#[test]
fn two_images_are_not_called_128_frames() {
    let place = Place::new();
    let folder = photos(&place, "2");
    let few = "only 2 of the 128 requested calibration frames were available";
    let args = ["quantize", "builtin-rgb", "--calib", &folder, "-o", "json.onnx", "--json", "--quiet"];
    let output =
        prony().current_dir(place.path("")).env("PRONY_HOME", place.path("other")).args(args).output().unwrap();
    assert_eq!(stderr(&output), format!("warning: {few}\n"));
    assert_eq!(json(&output)["report"]["frames"], 2);
    // The second time ranges come from the cache, and so does what is known about them.
    for (method, from_cache) in [("mse", false), ("minmax", true)] {
        let args = ["quantize", "builtin-rgb", "--calib", &folder, "--method", method, "-o", "q.onnx", "--force"];
        let mut command = prony();
        command.current_dir(place.path("")).env("PRONY_HOME", place.path("home"));
        let output = command.args(args).output().unwrap();
        expect_code(&output, 0);
        let text = stdout(&output);
        assert!(text.contains(&format!("by {method} over 2 frames")) && text.contains(few), "{text}");
        let sidecar: Value = serde_json::from_slice(&fs::read(place.path("q.onnx.json")).unwrap()).unwrap();
        assert_eq!((&sidecar["frames"], &sidecar["frames_requested"]), (&2.into(), &128.into()));
        assert_eq!(sidecar["ranges_from_cache"], from_cache);
        let inspect = ["inspect", "--json", "--no-backends", "q.onnx"];
        let inspected = json(&prony().current_dir(place.path("")).args(inspect).output().unwrap());
        let fact = inspected["graph"]["metadata"]["prony.quantise"].as_str().unwrap();
        assert!(fact.starts_with(&format!("int8, {method} of 2 frames")), "{fact}");
    }
}

#[test]
fn the_targets_of_one_model_do_not_each_run_the_calibration_frames() {
    let place = Place::new();
    let known = ["any", "onnxruntime", "openvino", "tensorrt"].map(|target| {
        let output = quantize(&place, &["builtin-rgb", "--for", target, "--force", "--json"]);
        expect_code(&output, 0);
        json(&output)["report"]["ranges_from_cache"].as_bool().unwrap()
    });
    assert_eq!(known, [false, true, true, true]);
    let files = fs::read_dir(place.path("home/cache/artifacts")).unwrap().map(|entry| entry.unwrap().file_name());
    let passes = files.filter(|name| name.to_string_lossy().ends_with(".histograms.cache")).count();
    assert_eq!(passes, 1, "one pass over the frames leaves one file");
}

#[test]
fn a_pipe_is_told_how_far_it_is_unless_it_wants_to_be_left_alone() {
    let place = Place::new();
    let output = quantize(&place, &["builtin-rgb", "--for", "any"]);
    expect_code(&output, 0);
    assert!(stderr(&output).contains("builtin-rgb: finding ranges: frame 1 of 4"), "{}", stderr(&output));
    let quiet = quantize(&place, &["builtin-rgb", "--samples", "3", "--force", "--quiet"]);
    expect_code(&quiet, 0);
    assert_eq!(stderr(&quiet), "");
    assert!(stdout(&quiet).contains("written: "), "{}", stdout(&quiet));
}
