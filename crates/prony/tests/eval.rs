//! `prony eval` on result files, by the real binary.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use support::{Place, expect_code, prony, stderr, stdout};

/// Twelve images with an object each: the first half is found exactly, the other half at an overlap of 0.5.
fn truth() -> Value {
    let images: Vec<Value> = (1..=12).map(|i| json!({"id": i, "file_name": format!("{i}.jpg")})).collect();
    let annotations: Vec<Value> = (1..=12)
        .map(
            |i| json!({"id": i, "image_id": i, "category_id": 3, "bbox": [10, 10, 40, 40], "area": 1600, "iscrowd": 0}),
        )
        .collect();
    let categories = json!([{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}]);
    json!({"images": images, "annotations": annotations, "categories": categories})
}

fn boxes() -> Vec<Value> {
    (1..=12)
        .map(|i| json!({"image_id": i, "category_id": 3, "bbox": [10, 10, if i <= 6 { 40 } else { 20 }, 40], "score": 0.9}))
        .collect()
}

fn eval(place: &Place, boxes: &str, more: &[&str]) -> Output {
    fs::create_dir_all(place.path("set/annotations")).unwrap();
    fs::write(place.path("set/annotations/instances_val.json"), truth().to_string()).unwrap();
    fs::write(place.path("detections.json"), boxes).unwrap();
    let mut command = prony();
    command.arg("eval").arg("--detections").arg(place.path("detections.json")).arg("--data").arg(place.path("set"));
    command.args(more).output().unwrap()
}

#[test]
fn the_figures_are_printed_with_their_interval() {
    let place = Place::new();
    let boxes = Value::from(boxes()).to_string();
    let output = eval(&place, &boxes, &["--json", "--per-class"]);
    expect_code(&output, 0);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["map_50"].as_f64().map(|v| (v * 1e9).round()), Some(1e9));
    // Above 0.50 the six boxes of images 1 to 6 come first and are right: precision 1 up to a recall of 0.50.
    let mean = (1.0 + 9.0 * 51.0 / 101.0) / 10.0;
    assert!((json["map_50_95"].as_f64().unwrap() - mean).abs() < 1e-9, "{json}");
    let interval: [f64; 2] = serde_json::from_value(json["ci95"].clone()).unwrap();
    assert!(interval[0] < mean && mean < interval[1], "{interval:?}");
    assert!(json.get("map_small").is_none() && json["ar_medium"].is_f64(), "absent, not 0: {json}");
    assert_eq!((&json["images"], &json["objects"], &json["detections"]), (&12.into(), &12.into(), &12.into()));
    assert_eq!(json["classes"][0]["name"], "cat");
    assert!(json["classes"][1].get("map_50").is_none(), "a class without an object has no figure");
    assert_eq!(json["curves"][0]["precision"].as_array().unwrap().len(), 101);

    let output = eval(&place, &boxes, &["--per-class"]);
    expect_code(&output, 0);
    let text = stdout(&output);
    for line in [
        "mAP50-95                    0.5545  [0.",
        "mAP50                       1.0000\n",
        "cat",
        "12 images, 12 objects",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let output = eval(&place, &boxes, &["--no-interval"]);
    assert!(stdout(&output).contains("mAP50-95                    0.5545\n"), "{}", stdout(&output));
}

#[test]
fn boxes_that_cannot_be_used_are_named_and_the_rest_is_scored() {
    let place = Place::new();
    let mut rows: Vec<String> = boxes().iter().map(Value::to_string).collect();
    rows.push(r#"{"image_id": 1, "category_id": 3, "bbox": [NaN, 0, 1, 1], "score": 0.5}"#.into());
    rows.push(r#"{"image_id": 99, "category_id": 3, "bbox": [0, 0, 1, 1], "score": 0.5}"#.into());
    rows.push(r#"{"image_id": 2, "category_id": 98, "bbox": [0, 0, 1, 1], "score": 0.5}"#.into());
    let output = eval(&place, &format!("[{}]", rows.join(",")), &[]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("mAP50                       1.0000\n"), "{}", stdout(&output));
    let said = stderr(&output);
    for words in
        ["box in row 13: image 1, bbox [NaN", "1 boxes have an image_id", "99 first", "a category_id", "98 first"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn what_cannot_be_scored_is_refused_with_the_place() {
    let place = Place::new();
    let refused = |boxes: &str, words: &str| {
        let output = eval(&place, boxes, &["--json"]);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(words) && said.lines().count() == 1, "{words}: {said}");
        assert!(output.stdout.is_empty());
    };
    refused("[{\"image_id\": 1,\n \"bbox\" [1]}]", "detections.json:2:9: `[` instead of `:`");
    refused(r#"[{"image_id": 99, "category_id": 3, "bbox": [0, 0, 1, 1], "score": 1}]"#, "none of its 1 boxes fits");
    refused("{}", "a result file is a list of boxes");
    let output = prony().args(["eval", "--detections", "none.json", "--data", "nowhere/"]).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("nowhere/: cannot open the data set"), "{}", stderr(&output));
}
