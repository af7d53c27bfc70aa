//! Scores that must not be believed: boxes that are all wrong, and classes that are not the data's.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use prony_model::onnx::{ModelProto, NodeProto, StringEntry, TensorProto};
use prony_types::{CellRecord, SceneKind, Verdict};
use prost::Message as _;
use serde_json::Value;
use support::{Place, SHORT, expect_code, prony, stderr, stdout, write_model};

fn changed(place: &Place, name: &str, change: impl FnOnce(&mut ModelProto)) -> String {
    let mut model = ModelProto::decode(prony_model::builtin(SceneKind::Rgb)).unwrap();
    change(&mut model);
    write_model(&place.path(name), &model)
}

/// The built-in detector with another text for its class names; its own names are handed in.
fn named(place: &Place, file: &str, text: impl FnOnce(&[String]) -> String) -> String {
    let names = prony_model::ModelFile::builtin(SceneKind::Rgb).unwrap().info.metadata.names;
    changed(place, file, |model| {
        model.metadata_props.retain(|entry| entry.key != "names");
        model.metadata_props.push(StringEntry { key: "names".into(), value: text(&names) });
    })
}

/// Scenes on disk, with something done to their categories.
fn scenes(place: &Place, change: impl FnOnce(&mut Vec<Value>)) -> String {
    let dir = place.path("set");
    let made = prony().args(["data", "synth", "--kind", "rgb", "--count", "12", "--seed", "99"]).arg(&dir).output();
    expect_code(&made.unwrap(), 0);
    let instances = Path::new(&dir).join("annotations/instances.json");
    let mut truth: Value = serde_json::from_slice(&fs::read(&instances).unwrap()).unwrap();
    change(truth["categories"].as_array_mut().unwrap());
    fs::write(&instances, truth.to_string()).unwrap();
    dir.to_str().unwrap().to_owned()
}

fn eval(place: &Place, args: &[&str]) -> Output {
    let command = &mut prony();
    command.arg("eval").args(args).args(["--backends", "rten"]).arg("--out").arg(place.runs()).output().unwrap()
}

/// Text as it was before it was broken into lines.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn only_cell(place: &Place) -> CellRecord {
    place.record().cells[0].clone()
}

/// Boxes from 0 to 1 where pixels are expected.
fn normalized(place: &Place) -> String {
    changed(place, "normalized.onnx", |model| {
        let graph = model.graph.as_mut().unwrap();
        let output = graph.output[0].name.clone();
        let last = graph.node.iter_mut().find(|node| node.output.contains(&output)).unwrap();
        last.output.iter_mut().filter(|name| **name == output).for_each(|name| *name = "in_pixels".into());
        // Four coordinates, then nine classes.
        let rows = 4 + 9;
        let scale: Vec<u8> =
            (0..rows).flat_map(|row| if row < 4 { 1.0f32 / 320.0 } else { 1.0 }.to_le_bytes()).collect();
        graph.initializer.push(TensorProto {
            name: "to_shares".into(),
            dims: vec![1, rows, 1],
            data_type: 1,
            raw_data: scale.into(),
            ..TensorProto::default()
        });
        graph.node.push(NodeProto {
            op_type: "Mul".into(),
            input: vec!["in_pixels".into(), "to_shares".into()],
            output: vec![output],
            ..NodeProto::default()
        });
    })
}

#[test]
fn a_map_of_zero_was_valid_and_advised_to_be_shipped() {
    let place = Place::new();
    let model = normalized(&place);
    let args = [&[model.as_str(), "--data", "scenes", "--limit", "20"][..], &SHORT].concat();
    let output = place.bench(&args).output().unwrap();
    expect_code(&output, 3);
    let cell = only_cell(&place);
    assert_eq!(cell.verdict, Some(Verdict::WrongOutput), "{:?}", cell.verdict_reasons);
    let said = "mAP50-95 is 0.000 on 20 images with";
    let reason = cell.verdict_reasons.iter().find(|reason| reason.starts_with(said)).unwrap();
    assert!(reason.contains("all class names match; likely cause: normalised coordinates"), "{reason}");
    assert!(!stdout(&output).contains("→ Ship normalized"), "{}", stdout(&output));
}

#[test]
fn names_in_json_and_with_escapes_are_matched_by_name() {
    let place = Place::new();
    let set = scenes(&place, |categories| {
        let name = categories[0]["name"].as_str().unwrap().to_owned();
        categories[0]["name"] = format!("{name}\u{a0}x").into();
    });
    let first = |names: &[String]| format!(r"{}\xa0x", names[0]);
    let python = named(&place, "python.onnx", |names| {
        let rest: Vec<String> = (1..).zip(&names[1..]).map(|(i, name)| format!("{i}: '{name}'")).collect();
        format!("{{0: '{}', {}}}", first(names), rest.join(", "))
    });
    let json = named(&place, "json.onnx", |names| {
        let rest: Vec<String> = (1..).zip(&names[1..]).map(|(i, name)| format!(r#""{i}": "{name}""#)).collect();
        format!(r#"{{"0": "{}", {}}}"#, first(names).replace(r"\xa0", r"\u00a0"), rest.join(", "))
    });
    for model in [python, json] {
        let place = Place::new();
        expect_code(&eval(&place, &[&model, "--data", &set]), 0);
        let accuracy = only_cell(&place).accuracy.unwrap();
        let classes = accuracy.data.class_match.unwrap();
        assert!(classes.by_name && classes.matched == classes.categories, "{classes:?}");
        assert!(accuracy.figures.map_50_95.unwrap() > 0.5);
    }
}

#[test]
fn names_that_cannot_be_parsed_were_passed_over_in_silence() {
    let place = Place::new();
    let set = scenes(&place, |_| {});
    let model = named(&place, "odd.onnx", |names| names.join(" | "));
    let output = eval(&place, &[&model, "--data", &set]);
    expect_code(&output, 2);
    let said = unwrapped(&stderr(&output));
    assert!(said.contains("class names cannot be read: its metadata `names` is not") && said.contains(" | "), "{said}");
    // What is timed is timed all the same, and says what is missing.
    let bench = Place::new();
    bench.bench(&[&[model.as_str(), "--data", &set], &SHORT[..]].concat()).output().unwrap();
    let cell = only_cell(&bench);
    assert!(cell.accuracy.is_none() && cell.accuracy_absent.unwrap().contains("metadata `names`"));
    assert!(!cell.latency_ms.is_empty());
}

#[test]
fn two_equal_names_are_refused_on_either_side() {
    let place = Place::new();
    let set = scenes(&place, |_| {});
    let twins = named(&place, "twins.onnx", |names| {
        let mut names = names.to_vec();
        names[2] = names[0].clone();
        format!("['{}']", names.join("', '"))
    });
    let output = eval(&place, &[&twins, "--data", &set]);
    expect_code(&output, 2);
    let said = unwrapped(&stderr(&output));
    assert!(said.contains("two classes for one category of the data"), "{said}");

    let place = Place::new();
    let set = scenes(&place, |categories| categories[2]["name"] = categories[0]["name"].clone());
    let output = eval(&place, &["builtin-rgb", "--data", &set]);
    expect_code(&output, 2);
    let said = unwrapped(&stderr(&output));
    assert!(said.contains("the data has 2 categories named"), "{said}");
}

#[test]
fn a_class_that_the_model_does_not_know_is_said_on_the_terminal() {
    let place = Place::new();
    let set = scenes(&place, |categories| categories[1]["name"] = "forklift".into());
    let said = "8 of 9 classes of the data are known to the model; missing: forklift";
    let output = eval(&place, &["builtin-rgb", "--data", &set]);
    expect_code(&output, 0);
    assert!(unwrapped(&stdout(&output)).contains(said), "{}", stdout(&output));
    let notes = only_cell(&place).verdict_reasons;
    assert!(notes.iter().any(|note| note.starts_with(&format!("note: {said}"))), "{notes:?}");
    let bench = Place::new();
    let args = [&["builtin-rgb", "--data", &set], &SHORT[..]].concat();
    let output = bench.bench(&args).output().unwrap();
    assert!(unwrapped(&stdout(&output)).contains(said), "{}", stdout(&output));
}

#[test]
fn classes_that_are_matched_by_position_are_said_to_be() {
    let place = Place::new();
    let set = scenes(&place, |_| {});
    let nameless = changed(&place, "nameless.onnx", |model| model.metadata_props.retain(|entry| entry.key != "names"));
    let output = eval(&place, &[&nameless, "--data", &set]);
    expect_code(&output, 0);
    assert!(unwrapped(&stdout(&output)).contains("classes were matched by position"), "{}", stdout(&output));
}
