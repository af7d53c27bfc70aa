//! Models and images that users bring.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;

use prony_model::onnx::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo};
use prony_types::{CellStatus, SceneKind, Stage};
use support::numpy::npy;
use support::{Place, cell, expect_code, prony, quick, stderr, write_model};

/// A small classifier: convolution, global pooling, a dense layer, softmax.
fn classifier() -> ModelProto {
    let weights: Vec<f32> = (0..8 * 3 * 9).map(|i| ((i * 37 % 101) as f32 - 50.0) / 250.0).collect();
    let dense: Vec<f32> = (0..8 * 10).map(|i| ((i * 53 % 97) as f32 - 48.0) / 100.0).collect();
    let conv = vec![AttributeProto::ints("kernel_shape", &[3, 3]), AttributeProto::ints("strides", &[2, 2])];
    let graph = GraphProto {
        node: vec![
            NodeProto::new("Conv", &["x", "w"], &["c"], conv),
            NodeProto::new("Relu", &["c"], &["r"], vec![]),
            NodeProto::new("GlobalAveragePool", &["r"], &["p"], vec![]),
            NodeProto::new("Flatten", &["p"], &["f"], vec![AttributeProto::int("axis", 1)]),
            NodeProto::new("MatMul", &["f", "d"], &["l"], vec![]),
            NodeProto::new("Softmax", &["l"], &["y"], vec![AttributeProto::int("axis", 1)]),
        ],
        name: "classifier".into(),
        initializer: vec![
            TensorProto::floats("w", &[8, 3, 3, 3], &weights),
            TensorProto::floats("d", &[8, 10], &dense),
        ],
        input: vec![ValueInfo::floats("x", &[1, 3, 64, 64])],
        output: vec![ValueInfo::floats("y", &[1, 10])],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[])
}

#[test]
fn a_classifier_completes_with_head_none() {
    let place = Place::new();
    let model = write_model(&place.path("classifier.onnx"), &classifier());
    let output = place.bench(&quick(&["--head", "none"])).arg(&model).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    let cell = cell(&record, "classifier:rten:fp32");
    assert_eq!(cell.status, CellStatus::Completed);
    assert_eq!(cell.latency_ms.keys().copied().collect::<Vec<_>>(), [Stage::Inference, Stage::Total]);
    assert!(cell.input.as_ref().unwrap().source.contains("random"), "random input is said to be random");
    assert!(cell.detections_per_frame.is_none());
    assert!(cell.agreement.as_ref().unwrap().boxes.unwrap().cosine > 0.9999, "agreement is still checked");
}

#[test]
fn tensors_come_from_a_file_and_a_wrong_shape_names_the_axis() {
    let place = Place::new();
    let model = write_model(&place.path("classifier.onnx"), &classifier());
    let (good, bad) = (place.path("good.npy"), place.path("bad.npy"));
    let values: Vec<f32> = (0..3 * 64 * 64).map(|i| (i % 255) as f32 / 255.0).collect();
    fs::write(&good, npy("<f4", &[1, 3, 64, 64], &values, f32::to_le_bytes)).unwrap();
    fs::write(&bad, npy("<f4", &[1, 3, 64, 32], &values[..3 * 64 * 32], f32::to_le_bytes)).unwrap();
    let output = place.bench(&quick(&[])).arg(&model).arg("--input").arg(&good).output().unwrap();
    expect_code(&output, 0);
    assert!(place.record().cells[0].input.as_ref().unwrap().source.contains("good.npy"));
    let other = Place::new();
    let output = other.bench(&quick(&[])).arg(&model).arg("--input").arg(&bad).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("axis 3 is 32 instead of 64"), "{}", stderr(&output));
    assert!(!other.runs().exists(), "nothing ran, so nothing is left behind");
}

/// A detector in the form of YOLOv5's output: `[batch, anchors, 5 + classes]`, of the mean of the image.
fn objectness() -> ModelProto {
    let anchors = 3 * (8 * 8 + 4 * 4 + 2 * 2);
    let rows: Vec<f32> = (0..anchors).flat_map(|i| [(i % 64) as f32, 20.0, 9.0, 9.0, 0.9, 0.8, 0.1]).collect();
    let graph = GraphProto {
        node: vec![
            NodeProto::new(
                "ReduceMean",
                &["x"],
                &["m"],
                vec![AttributeProto::ints("axes", &[1, 2, 3]), AttributeProto::int("keepdims", 1)],
            ),
            NodeProto::new("Reshape", &["m", "shape"], &["r"], vec![]),
            NodeProto::new("Add", &["rows", "r"], &["y"], vec![]),
        ],
        name: "objectness".into(),
        initializer: vec![
            TensorProto::floats("rows", &[1, anchors, 7], &rows),
            TensorProto::ints("shape", &[-1, 1, 1]),
        ],
        input: vec![ValueInfo::floats("x", &[-1, 3, 64, 64])],
        output: vec![ValueInfo::floats("y", &[-1, anchors, 7])],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[("names", "{0: 'a', 1: 'b'}"), ("task", "detect")])
}

#[test]
fn a_batch_of_another_head_is_not_called_wrong() {
    let place = Place::new();
    let model = write_model(&place.path("v5.onnx"), &objectness());
    let output = place.bench(&quick(&["--batch", "2", "--imgsz", "64"])).arg(&model).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    let cell = cell(&record, "v5:rten:fp32");
    assert!(cell.model.head.as_ref().unwrap().contains("objectness"), "{:?}", cell.model.head);
    assert_ne!(cell.verdict, Some(prony_types::Verdict::WrongOutput), "{:?}", cell.verdict_reasons);
    let agreement = cell.agreement.as_ref().unwrap();
    assert!(agreement.boxes.is_some() && agreement.scores.is_some() && agreement.matched_boxes == Some(1.0));
}

#[test]
fn a_threshold_above_every_score_is_not_a_wrong_output() {
    let place = Place::new();
    expect_code(&place.bench(&quick(&["builtin-thermal", "--conf", "0.999"])).output().unwrap(), 0);
}

#[test]
fn an_output_that_fits_no_head_prints_the_shapes() {
    let place = Place::new();
    let model = write_model(&place.path("classifier.onnx"), &classifier());
    let output = place.bench(&quick(&[])).arg(&model).output().unwrap();
    expect_code(&output, 1);
    let reason = place.record().cells[0].reason.clone().unwrap();
    assert!(reason.contains("[1, 10]") || reason.contains("[1,10]"), "{reason}");
    assert!(reason.contains("--head"), "{reason}");
}

#[test]
fn an_unreadable_image_is_reported_counted_and_skipped() {
    let place = Place::new();
    let images = place.path("images");
    fs::create_dir(&images).unwrap();
    for index in 0..3 {
        let scene = prony_source::scenes::scene(SceneKind::Rgb, 11, index);
        fs::write(images.join(format!("{index}.png")), prony_source::png::encode_png(&scene.image).unwrap()).unwrap();
    }
    fs::write(images.join("broken.jpg"), b"\xff\xd8\xff\xe0 this is no picture").unwrap();
    fs::write(images.join("empty.png"), b"").unwrap();
    let output = place.bench(&quick(&["builtin-rgb"])).arg("--source").arg(&images).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    let input = record.cells[0].input.as_ref().unwrap();
    assert_eq!((input.frames, input.skipped.len()), (3, 2), "{input:?}");
    assert!(stderr(&output).contains("broken.jpg") && stderr(&output).contains("empty.png"), "{}", stderr(&output));
}

#[test]
fn a_folder_of_broken_images_is_bad_input() {
    let place = Place::new();
    let images = place.path("images");
    fs::create_dir(&images).unwrap();
    fs::write(images.join("broken.jpg"), b"nothing").unwrap();
    let output = place.bench(&["builtin-rgb"]).arg("--source").arg(&images).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("broken.jpg"), "{}", stderr(&output));
    assert!(!place.runs().exists());
}

#[test]
fn a_data_set_is_written_and_can_be_measured_on() {
    let place = Place::new();
    let out = place.path("scenes");
    let synth = |seed: &str, out: &Path| {
        let output =
            prony().args(["data", "synth", "--kind", "thermal", "--count", "4", "--seed", seed]).arg(out).output();
        expect_code(&output.unwrap(), 0);
    };
    synth("9", &out);
    for file in ["images/000000.png", "annotations/instances.json", "data.yaml", "labels/000003.txt"] {
        assert!(out.join(file).exists(), "{file}");
    }
    let again = place.path("again");
    synth("9", &again);
    let bytes = |folder: &Path| fs::read(folder.join("annotations/instances.json")).unwrap();
    assert_eq!(bytes(&out), bytes(&again));
    let output = place.bench(&quick(&["builtin-thermal"])).arg("--source").arg(out.join("images")).output().unwrap();
    expect_code(&output, 0);
    assert!(place.record().cells[0].detections_per_frame.unwrap() > 0.5, "16-bit PNGs reach the thermal detector");
    let output = prony().args(["data", "synth", "--count", "0"]).arg(place.path("none")).output().unwrap();
    expect_code(&output, 2);
}
