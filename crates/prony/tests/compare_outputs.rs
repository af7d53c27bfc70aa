//! `prony compare-outputs`: two models or two backends on the same frames.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::process::Output;

use prony_model::onnx::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo};
use serde_json::Value;
use support::{Place, expect_code, installed, prony, stderr, stdout, write_model};

/// Three layers of weights one after the other; the middle one is `middle`, the first of `width`.
fn chain(place: &Place, name: &str, width: usize, middle: &[f32]) -> String {
    let weights = |count: usize| (0..count).map(|i| ((i * 7 % 11) as f32 - 5.0) / 8.0).collect::<Vec<_>>();
    let node = |op: &str, input: &[&str], output: &str| NodeProto::new(op, input, &[output], vec![]);
    let graph = GraphProto {
        node: vec![
            node("MatMul", &["x", "w1"], "one"),
            node("Tanh", &["one"], "bent"),
            node("MatMul", &["bent", "w2"], "two"),
            node("Relu", &["two"], "cut"),
            node("MatMul", &["cut", "w3"], "three"),
            node("Sigmoid", &["three"], "y"),
        ],
        name: "chain".into(),
        initializer: vec![
            TensorProto::floats("w1", &[width as i64, 4], &weights(width * 4)),
            TensorProto::floats("w2", &[4, 4], middle),
            TensorProto::floats("w3", &[4, 2], &weights(8)),
        ],
        input: vec![ValueInfo::floats("x", &[1, width as i64])],
        output: vec![ValueInfo::floats("y", &[1, 2])],
        ..GraphProto::default()
    };
    write_model(&place.path(name), &ModelProto::new(graph, &[]))
}

const MIDDLE: [f32; 16] =
    [0.5, -0.25, 1.0, 0.75, -0.5, 0.25, 0.125, 1.5, 0.5, 0.5, -1.0, 0.25, 1.25, -0.75, 0.5, 0.625];

fn outputs(args: &[&str]) -> Output {
    prony().arg("compare-outputs").args(args).output().unwrap()
}

#[test]
fn the_node_whose_weight_was_changed_is_named() {
    finds_the_changed_node("rten");
}

#[test]
fn onnx_runtime_names_the_changed_node_too() {
    if installed("onnxruntime", None).is_some() {
        finds_the_changed_node("ort-cpu");
    }
}

fn finds_the_changed_node(backend: &str) {
    let place = Place::new();
    let good = chain(&place, "good.onnx", 6, &MIDDLE);
    let mut changed = MIDDLE;
    changed[5] += 0.5;
    changed[0] -= 0.5;
    let bad = chain(&place, "bad.onnx", 6, &changed);
    let output = outputs(&[&good, &bad, "--backend-a", backend, "--json"]);
    expect_code(&output, 3);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["nodes"]["first"]["node"], "two", "{backend}: {found}");
    let around: Vec<&str> =
        found["nodes"]["around"].as_array().unwrap().iter().map(|node| node["node"].as_str().unwrap()).collect();
    assert!(around.starts_with(&["one", "bent", "two", "cut"]), "{around:?}");
    assert_eq!(found["agree"], false);
    assert!(found["outputs"][0]["sqnr_db"].as_f64().unwrap() < 40.0, "{found}");

    let text = outputs(&[&good, &bad, "--backend-a", backend]);
    assert!(stdout(&text).contains("first node that diverges: two (MatMul), output two"), "{}", stdout(&text));
    let same = outputs(&[&good, &good, "--backend-a", backend]);
    expect_code(&same, 0);
    assert!(stdout(&same).contains("no node diverges among 6 of 6"), "{}", stdout(&same));
    // A bound of one's own may be below the noise.
    expect_code(&outputs(&[&good, &bad, "--bound", "-20"]), 0);
}

#[test]
fn two_backends_agree_on_a_detector_boxes_and_scores_apart() {
    if installed("onnxruntime", None).is_none() {
        return;
    }
    let output = outputs(&["builtin-rgb", "builtin-rgb", "--backend-b", "ort-cpu", "--frames", "2", "--json"]);
    expect_code(&output, 0);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["heads"]["matched_boxes"], 1.0);
    for part in ["boxes", "scores"] {
        assert!(found["heads"][part]["cosine"].as_f64().unwrap() > 0.9999, "{found}");
    }
    assert!(found["nodes"]["looked_at"].as_u64().unwrap() > 10 && found["nodes"]["first"].is_null(), "{found}");
    assert_eq!((&found["a"]["backend"]["name"], &found["b"]["backend"]["name"]), (&"rten".into(), &"ort-cpu".into()));
}

#[test]
fn what_is_not_a_number_never_agrees_and_what_does_not_fit_is_refused() {
    let place = Place::new();
    let good = chain(&place, "good.onnx", 6, &MIDDLE);
    let nan = chain(&place, "nan.onnx", 6, &[f32::NAN; 16]);
    let output = outputs(&[&good, &nan]);
    expect_code(&output, 3);
    assert!(stdout(&output).contains("not comparable: another length, NaN or infinity"), "{}", stdout(&output));

    let wider = chain(&place, "wider.onnx", 9, &MIDDLE);
    for (args, words) in [
        (vec![good.as_str(), wider.as_str()], "[1,6]"),
        (vec![good.as_str(), "/no/model.onnx"], "/no/model.onnx"),
        (vec![good.as_str(), good.as_str(), "--backend-a", "nosuch"], "known: rten"),
        (vec![good.as_str(), good.as_str(), "--backend-a", "trtexec"], "returns no outputs"),
        (vec![good.as_str(), good.as_str(), "--source", "photos"], "takes no image"),
    ] {
        let output = outputs(&args);
        expect_code(&output, 2);
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn no_box_on_either_side_is_told_and_is_not_all_of_them() {
    let place = Place::new();
    let empty = place.path("empty");
    std::fs::create_dir(&empty).unwrap();
    // A grey BMP of 32 x 32.
    let mut grey = b"BM".to_vec();
    for word in [54 + 3072, 0, 54, 40, 32, 32, 1 | 24 << 16, 0, 3072, 0, 0, 0, 0_u32] {
        grey.extend(word.to_le_bytes());
    }
    grey.extend([114; 3072]);
    std::fs::write(empty.join("grey.bmp"), grey).unwrap();
    let args = ["builtin-rgb", "builtin-rgb", "--source", empty.to_str().unwrap()];
    let output = outputs(&args);
    expect_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("no box was found on either side") && !text.contains("% of the boxes"), "{text}");
    let output = outputs(&[&args[..], &["--json"]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["heads"]["boxes"].is_object() && found["heads"]["matched_boxes"].is_null(), "{found}");
    assert!(found["notes"][0].as_str().unwrap().contains("no box was found"), "{found}");
}
