//! `prony convert` by the real binary, and what comes out of it in a real runtime.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::process::Output;

use prony_model::onnx::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo};
use serde_json::Value;
use support::{Place, at_home, expect_code, prony, stderr, stdout, write_model};

fn convert(place: &Place, args: &[&str]) -> Output {
    prony().arg("convert").args(args).current_dir(place.dir.path()).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

/// Two layers, the second with a weight.
fn layers(weight: f32) -> ModelProto {
    let graph = GraphProto {
        node: vec![
            NodeProto::new("MatMul", &["x", "w"], &["a"], vec![]),
            NodeProto::new("MatMul", &["a", "v"], &["y"], vec![]),
        ],
        name: "layers".into(),
        initializer: vec![
            TensorProto::floats("w", &[8, 8], &[0.5; 64]),
            TensorProto::floats("v", &[8, 8], &[weight; 64]),
        ],
        input: vec![ValueInfo::floats("x", &[1, 8])],
        output: vec![ValueInfo::floats("y", &[1, 8])],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[])
}

#[test]
fn the_built_in_detectors_see_the_same_in_fp16() {
    let place = Place::new();
    let Some(home) = place.home(&["onnxruntime"]) else { return };
    for model in ["builtin-rgb", "builtin-thermal"] {
        let output = convert(&place, &[model, "--precision", "fp16"]);
        expect_code(&output, 0);
        let half = format!("{model}-fp16.onnx");
        assert!(stdout(&output).starts_with(&format!("{half}: fp16, 1.9 MB became 1.0 MB\n")), "{}", stdout(&output));
        let mut command = prony();
        let compared = at_home(&mut command, &home)
            .current_dir(place.dir.path())
            .args(["compare-outputs", model, &half, "--backend-a", "ort-cpu", "--frames", "3", "--json"])
            .output()
            .unwrap();
        expect_code(&compared, 0);
        let found = json(&compared);
        assert_eq!(found["heads"]["matched_boxes"], 1.0, "{model}: {found}");
        for part in ["boxes", "scores"] {
            assert!(found["heads"][part]["sqnr_db"].as_f64().unwrap() > 45.0, "{model}: {found}");
        }
        assert!(found["nodes"]["first"].is_null(), "{model}: {found}");
    }
}

#[test]
fn how_a_file_was_made_is_written_beside_it() {
    let place = Place::new();
    let model = write_model(&place.path("net.onnx"), &layers(1e-6));
    let output = convert(&place, &[&model, "--precision", "fp16", "--block", "a", "--json"]);
    expect_code(&output, 0);
    let told = json(&output);
    let beside: Value = serde_json::from_slice(&fs::read(place.path("net-fp16.onnx.json")).unwrap()).unwrap();
    assert_eq!(beside["schema"], "prony.convert/1");
    assert_eq!(beside["report"], told["report"]);
    let made = fs::read(place.path("net-fp16.onnx")).unwrap();
    assert_eq!(beside["sha256"], prony_model::sha256_hex(&made));
    assert_eq!(beside["source_sha256"], prony_model::sha256_hex(&fs::read(&model).unwrap()));
    assert_eq!(beside["spec"]["block"][0], "a");
    let report = &beside["report"];
    assert_eq!((&report["nodes_half"], &report["losses"]["subnormal"]), (&1.into(), &64.into()), "{report}");
    assert_eq!((&report["kept"][0]["node"], &report["kept"][0]["why"]), (&"a".into(), &"blocked".into()));
    assert_eq!((&report["tensors"][0]["tensor"], &report["tensors"][0]["kept"]), (&"v".into(), &false.into()));
}

#[test]
fn nothing_is_overwritten_unasked_and_what_cannot_be_converted_is_refused() {
    let place = Place::new();
    let model = write_model(&place.path("net.onnx"), &layers(2.0));
    expect_code(&convert(&place, &[&model, "--precision", "fp16"]), 0);
    let half = place.path("net-fp16.onnx");
    let first = fs::read(&half).unwrap();
    let half = half.to_str().unwrap();
    let huge = write_model(&place.path("huge.onnx"), &layers(1e6));
    let damaged = place.path("damaged.onnx");
    fs::write(&damaged, &first[..first.len() / 2]).unwrap();
    for (args, words) in [
        (vec![model.as_str(), "--precision", "fp16"], "net-fp16.onnx is there already; give --force"),
        (vec![half, "--precision", "bf16"], "it holds 16-bit floats already"),
        (vec![model.as_str(), "--precision", "int8"], "`prony quantize`"),
        (vec![model.as_str(), "--precision", "fp16", "-o", "net.onnx", "--force"], "is the model itself"),
        (vec![model.as_str(), "--precision", "fp16", "-o", "net.engine"], "must end in .onnx"),
        (vec![model.as_str(), "--precision", "fp16", "--block", "Conv", "--force"], "--block Conv: no node"),
        (vec![model.as_str(), "--precision", "fp16", "--keep-io", "maybe"], "give yes or no"),
        (vec![huge.as_str(), "--precision", "fp16", "--block", "a"], "nothing to convert"),
        (vec![damaged.to_str().unwrap(), "--precision", "fp16"], "is not an ONNX model"),
        (vec!["nosuch.onnx", "--precision", "fp16"], "nosuch.onnx: No such file or directory"),
    ] {
        let output = convert(&place, &args);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(words) && said.lines().count() == 1, "{words}: {said}");
    }
    assert_eq!(fs::read(half).unwrap(), first, "refused, and yet it was touched");
    assert!(!place.path("huge-fp16.onnx").exists() && !place.path("net-bf16.onnx").exists());
    expect_code(&convert(&place, &[&model, "--precision", "fp16", "--keep-io", "no", "--force"]), 0);
    assert_ne!(fs::read(half).unwrap(), first);
}
