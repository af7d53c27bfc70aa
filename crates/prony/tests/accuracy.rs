//! Accuracy of the very artifact that was timed, through the real binary on real runtimes.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use prony_model::onnx::{ModelProto, NodeProto};
use prony_types::{AccuracyDifference, CellStatus, CocoFigures, EventKind, RunRecord, SceneKind, Verdict};
use prost::Message as _;
use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running, SHORT, at_home, cell, expect_code, prony, signal, stderr, stdout, until, write_model};

/// Few, for a test; the interval needs some.
const SCENES: [&str; 4] = ["--data", "scenes", "--limit", "40"];

fn eval(place: &Place, args: &[&str]) -> Output {
    let command = &mut prony();
    command.arg("eval").args(args).args(["--backends", "rten"]).arg("--out").arg(place.runs()).output().unwrap()
}

/// Scenes as a data set on disk, the same as `--data scenes`.
fn synth(place: &Place, count: &str) -> String {
    let dir = place.path("set");
    let made = prony().args(["data", "synth", "--kind", "rgb", "--count", count, "--seed", "99"]).arg(&dir).output();
    expect_code(&made.unwrap(), 0);
    dir.to_str().unwrap().to_owned()
}

#[test]
fn backends_score_the_same_and_the_row_has_its_proof() {
    let place = Place::new();
    let Some(home) = place.home(&["onnxruntime", "openvino"]) else { return };
    let args = [&["builtin-rgb", "--backends", "rten,ort-cpu,openvino"][..], &SCENES, &SHORT].concat();
    expect_code(&at_home(&mut place.bench(&args), &home).output().unwrap(), 0);
    let record = place.record();
    let maps: Vec<f64> = record
        .cells
        .iter()
        .map(|cell| {
            let accuracy = cell.accuracy.as_ref().unwrap_or_else(|| panic!("{}: {:?}", cell.id, cell.accuracy_absent));
            let map = accuracy.figures.map_50_95.unwrap();
            let [lo, hi] = accuracy.ci95.unwrap();
            assert!(lo < map && map < hi && hi - lo < 0.2, "{}: {lo} {map} {hi}", cell.id);
            assert_eq!((accuracy.images, accuracy.post.conf, accuracy.post.multi_label), (40, 0.001, true));
            assert!(accuracy.data.classes.contains("by name"), "{:?}", accuracy.data);
            assert!(!cell.latency_ms.is_empty(), "{} was timed too", cell.id);
            let held: Vec<&str> =
                cell.consistency.iter().filter(|c| c.holds == Some(true)).map(|c| c.name.as_str()).collect();
            assert!(
                held.contains(&"the same frame twice") && held.contains(&"a fresh session"),
                "{:?}",
                cell.consistency
            );
            let folder = place.run().join("cells").join(&cell.slug);
            let metrics: Value = serde_json::from_slice(&fs::read(folder.join("metrics.json")).unwrap()).unwrap();
            assert_eq!(metrics["map_50_95"], map);
            assert!(fs::read_to_string(folder.join("detections.json")).unwrap().contains("\"score\":"));
            map
        })
        .collect();
    assert!(maps.iter().all(|map| (map - maps[0]).abs() < 0.002 && *map > 0.8), "{maps:?}");
    assert_eq!(record.accuracy_comparisons.len(), 2);
    for compared in &record.accuracy_comparisons {
        assert_eq!(compared.against, "builtin-rgb:ort-cpu:fp32");
        assert_eq!(compared.difference, AccuracyDifference::Same, "{compared:?}");
        assert!(compared.reason.contains("points of mAP50-95"), "{compared:?}");
    }
    let page = fs::read_to_string(place.run().join("report.html")).unwrap();
    assert!(page.contains("mAP50-95"));
}

#[test]
fn what_was_scored_is_what_stands_in_the_file() {
    let place = Place::new();
    let set = synth(&place, "40");
    expect_code(&eval(&place, &["builtin-rgb", "--data", &set]), 0);
    let record = place.record();
    let scored = cell(&record, "builtin-rgb:rten:fp32");
    assert_eq!((scored.status, scored.verdict), (CellStatus::Completed, Some(Verdict::Valid)), "{scored:?}");
    assert!(scored.latency_ms.is_empty() && record.recommendation.is_empty(), "nothing was timed");
    let detections = place.run().join("cells").join(&scored.slug).join("detections.json");
    let again = prony().args(["eval", "--json", "--data", &set, "--detections"]).arg(&detections).output().unwrap();
    expect_code(&again, 0);
    let again: Value = serde_json::from_str(&stdout(&again)).unwrap();
    let accuracy = scored.accuracy.as_ref().unwrap();
    for (name, figure) in CocoFigures::NAMES.into_iter().zip(accuracy.figures.stats()) {
        assert_eq!(again[name].as_f64(), figure, "{name}");
    }
    assert_eq!(again["detections"], accuracy.detections);
    // The same scenes, not from a disk.
    let other = Place::new();
    expect_code(&eval(&other, &[&["builtin-rgb"][..], &SCENES].concat()), 0);
    let from_memory = other.record().cells[0].accuracy.clone().unwrap();
    assert_eq!(from_memory.figures, accuracy.figures);
    assert_eq!(from_memory.data.sha256, accuracy.data.sha256);
}

fn changed(place: &Place, name: &str, change: impl FnOnce(&mut ModelProto)) -> String {
    let mut model = ModelProto::decode(prony_model::builtin(SceneKind::Rgb)).unwrap();
    change(&mut model);
    write_model(&place.path(name), &model)
}

/// Models as people break them, each with what gives it away.
fn broken_models(place: &Place) -> Vec<String> {
    let zeroed = changed(place, "zeroed.onnx", |model| {
        let weights = &mut model.graph.as_mut().unwrap().initializer;
        let largest = weights.iter_mut().max_by_key(|tensor| tensor.raw_data.len()).unwrap();
        largest.raw_data = vec![0; largest.raw_data.len()].into();
    });
    let nan = changed(place, "nan.onnx", |model| {
        let weights = &mut model.graph.as_mut().unwrap().initializer;
        let largest = weights.iter_mut().max_by_key(|tensor| tensor.raw_data.len()).unwrap();
        let mut bytes = largest.raw_data.to_vec();
        bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        largest.raw_data = bytes.into();
    });
    let twice = changed(place, "twice.onnx", |model| {
        let graph = model.graph.as_mut().unwrap();
        let last = graph.node.iter().rposition(|node| node.op_type == "Sigmoid").unwrap();
        let once = graph.node[last].output[0].clone();
        for input in graph.node[last + 1..].iter_mut().flat_map(|node| &mut node.input).filter(|name| **name == once) {
            *input = "scores_twice".into();
        }
        let output = vec!["scores_twice".into()];
        let again = NodeProto { op_type: "Sigmoid".into(), input: vec![once], output, ..NodeProto::default() };
        graph.node.insert(last + 1, again);
    });
    let colours = changed(place, "colours.onnx", |model| {
        let graph = model.graph.as_mut().unwrap();
        let stem = graph.node.iter().find(|node| node.op_type == "Conv").unwrap().input[1].clone();
        let weight = graph.initializer.iter_mut().find(|tensor| tensor.name == stem).unwrap();
        assert_eq!(weight.dims[1], 3, "{:?}", weight.dims);
        let plane = (weight.dims[2] * weight.dims[3]) as usize * 4;
        let mut bytes = weight.raw_data.to_vec();
        for filter in bytes.chunks_exact_mut(3 * plane) {
            let (red, rest) = filter.split_at_mut(plane);
            red.swap_with_slice(&mut rest[plane..]);
        }
        weight.raw_data = bytes.into();
    });
    vec![zeroed, nan, twice, colours]
}

#[test]
fn no_broken_model_gets_a_clean_row() {
    let place = Place::new();
    let models = broken_models(&place);
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    let args = [&models[..], &["--reference", "builtin-rgb"], &SCENES, &SHORT].concat();
    expect_code(&place.bench(&args).output().unwrap(), 3);
    let record = place.record();
    assert_eq!(record.cells.len(), models.len());
    for cell in &record.cells {
        assert_eq!(cell.verdict, Some(Verdict::WrongOutput), "{}: {:?}", cell.id, cell.verdict_reasons);
    }
}

fn only_cell(place: &Place) -> (RunRecord, prony_types::AccuracyRecord) {
    let record = place.record();
    let accuracy = record.cells[0].accuracy.clone().unwrap_or_else(|| panic!("{:?}", record.cells[0]));
    (record, accuracy)
}

#[test]
fn broken_images_are_counted_and_named_and_the_rest_is_scored() {
    let place = Place::new();
    let set = synth(&place, "12");
    let images = Path::new(&set).join("images");
    fs::write(images.join("000002.png"), b"").unwrap();
    let whole = fs::read(images.join("000004.png")).unwrap();
    fs::write(images.join("000004.png"), &whole[..whole.len() / 3]).unwrap();
    fs::remove_file(images.join("000006.png")).unwrap();
    expect_code(&eval(&place, &["builtin-rgb", "--data", &set]), 0);
    let (_, accuracy) = only_cell(&place);
    assert_eq!((accuracy.data.chosen, accuracy.images, accuracy.data.problem_count), (12, 9, 3), "{:?}", accuracy.data);
    let named = accuracy.data.problems.join("\n");
    for name in ["000002.png", "000004.png", "000006.png"] {
        assert!(named.contains(name), "{named}");
    }
    assert!(accuracy.figures.map_50_95.unwrap() > 0.5, "{:?}", accuracy.figures);
}

#[test]
fn data_of_which_nothing_can_be_read_is_bad_input() {
    let place = Place::new();
    let set = synth(&place, "3");
    for image in fs::read_dir(Path::new(&set).join("images")).unwrap() {
        fs::write(image.unwrap().path(), b"no image at all").unwrap();
    }
    for verb in ["eval", "bench"] {
        let output = prony().args([verb, "builtin-rgb", "--data", &set, "--out"]).arg(place.runs()).output().unwrap();
        expect_code(&output, 2);
        assert!(stderr(&output).contains("none of its 3 images can be read"), "{}", stderr(&output));
    }
    let nowhere = eval(&place, &["builtin-rgb", "--data", "/no/such/data"]);
    expect_code(&nowhere, 2);
    assert!(!place.runs().exists(), "nothing ran");
}

#[test]
fn data_of_other_classes_is_no_score() {
    let place = Place::new();
    let set = synth(&place, "3");
    let instances = Path::new(&set).join("annotations/instances.json");
    let mut truth: Value = serde_json::from_slice(&fs::read(&instances).unwrap()).unwrap();
    for category in truth["categories"].as_array_mut().unwrap() {
        category["name"] = format!("other {}", category["name"]).into();
    }
    fs::write(&instances, truth.to_string()).unwrap();
    let output = eval(&place, &["builtin-rgb", "--data", &set]);
    let told = stderr(&output);
    expect_code(&output, 2);
    assert!(told.contains("no class in common"), "{told}");
}

#[test]
fn a_question_that_makes_no_sense_is_told_so() {
    for (args, words) in [
        (&["builtin-rgb"][..], "--data"),
        (&["builtin-rgb", "--data", "scenes", "--duration", "3"], "times nothing"),
        (&["builtin-rgb", "--data", "scenes", "--split", "val"], "built-in scenes have no parts"),
        (&["--detections", "x.json"], "--detections needs --data"),
        (&["builtin-rgb", "--limit", "5"], "--data"),
    ] {
        let output = prony().arg("eval").args(args).output().unwrap();
        expect_code(&output, 2);
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
}

/// A run that is interrupted while the first of its cells runs the data set.
fn interrupted_while_scoring(place: Place, verb: &str) -> Running {
    let args = ["builtin-rgb", "builtin-thermal", "--data", "scenes", "--limit", "1000"];
    let timed: &[&str] = if verb == "bench" { &SHORT } else { &[] };
    let mut command = prony();
    command.arg(verb).args(args).args(["--backends", "rten"]).args(timed).arg("--out").arg(place.runs());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut running = Running { child, place };
    until("the data set to be under way", || {
        running.events().into_iter().find(|event| matches!(event.kind, EventKind::Evaluating { .. }))
    });
    signal(running.child.id(), Signal::INT);
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    running
}

#[test]
fn an_interrupted_evaluation_is_resumed_and_nothing_passes_for_scored() {
    let running = interrupted_while_scoring(Place::new(), "bench");
    let record = running.place.record();
    for cell in &record.cells {
        assert_eq!(cell.status, CellStatus::Interrupted, "{}: {:?}", cell.id, cell.reason);
        assert!(cell.accuracy.is_none() && !cell.latency_ms.is_empty(), "what was timed is kept: {cell:?}");
    }
    let mut again = prony();
    again.args(["bench", "--dry-run", "--resume"]).arg(running.place.run());
    let again = again.output().unwrap();
    expect_code(&again, 0);
    assert_eq!(stdout(&again).matches("would run").count(), 2, "{}", stdout(&again));
}

#[test]
fn an_interrupted_eval_says_what_it_did_not_do() {
    let running = interrupted_while_scoring(Place::new(), "eval");
    let record = running.place.record();
    let reasons: Vec<_> = record.cells.iter().map(|cell| cell.reason.clone().unwrap_or_default()).collect();
    assert!(
        reasons.iter().all(|reason| reason.starts_with("interrupted before every image was through")),
        "{reasons:?}"
    );
}

#[test]
fn a_redacted_run_does_not_tell_where_its_data_is() {
    let place = Place::new();
    let set = synth(&place, "6");
    fs::write(Path::new(&set).join("images/000002.png"), b"").unwrap();
    let cut = &fs::read(Path::new(&set).join("images/000003.png")).unwrap()[..300];
    fs::write(Path::new(&set).join("images/000003.png"), cut).unwrap();
    let output = eval(&place, &["builtin-rgb", "--data", &set, "--redact"]);
    expect_code(&output, 0);
    let (_, accuracy) = only_cell(&place);
    assert_eq!(accuracy.data.problem_count, 2, "{:?}", accuracy.data);
    let secret = place.dir.path().to_str().unwrap();
    assert!(!stdout(&output).replace(&format!("{secret}/runs"), "").contains(secret), "{}", stdout(&output));
    let folder = place.run();
    let mut files = vec![folder.clone()];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        seen += 1;
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(secret), "{} holds {secret}", path.display());
    }
    assert!(seen > 8, "{seen} files");
}

#[test]
fn what_a_result_file_is_not_scored_with_is_refused() {
    let place = Place::new();
    let file = place.path("detections.json");
    fs::write(&file, "[]").unwrap();
    for flags in [&["--gate", "map_min=0.9"][..], &["--limit", "3"], &["--strict"], &["--backends", "rten"]] {
        let output =
            prony().args(["eval", "--data", "x.json", "--detections"]).arg(&file).args(flags).output().unwrap();
        expect_code(&output, 2);
        assert!(stderr(&output).contains("leave the others out"), "{flags:?}: {}", stderr(&output));
    }
}

#[test]
fn a_plan_file_brings_the_data_and_flags_choose_among_it() {
    let place = Place::new();
    let plan = place.path("prony.toml");
    fs::write(&plan, "models = [\"builtin-rgb\"]\n").unwrap();
    let plan = plan.to_str().unwrap();
    let output = eval(&place, &["--plan", plan]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("nothing to score on"), "{}", stderr(&output));
    fs::write(plan, "models = [\"builtin-rgb\"]\ndata = \"scenes\"\nlimit = 300\n").unwrap();
    expect_code(&eval(&place, &["--plan", plan, "--limit", "5"]), 0);
    assert_eq!(only_cell(&place).1.images, 5);
}
