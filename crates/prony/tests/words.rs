//! Names and texts from outside: no control character reaches a terminal, no formula a spreadsheet, whatever they are.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Output;

use prony_model::onnx::ModelProto;
use prony_types::SceneKind;
use prony_types::text::is_unprintable;
use prost::Message as _;
use rustix::process::Signal;
use support::{Place, Running, SHORT, expect_code, prony, signal, stderr, stdout, until};

/// Clears the screen in three ways, sets a title, turns text around, begins lines of its own.
const HOSTILE: &str = "=a\u{1b}[2J\u{9b}2J\u{7f}\u{1b}]0;t\u{7}\u{202e}b\u{2066}\rc\n\"d\",e";

/// Nothing in either stream that a terminal would obey.
#[track_caller]
fn assert_printable(what: &str, output: &Output) {
    for (stream, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = std::str::from_utf8(text).unwrap_or_else(|error| panic!("{what}: {stream}: {error}"));
        let hidden = text.chars().find(|&c| !matches!(c, '\n' | '\t') && is_unprintable(c));
        assert!(hidden.is_none(), "{what}: {hidden:?} in {stream}: {text:?}");
    }
}

fn hostile_model(place: &Place) -> std::path::PathBuf {
    let mut model = ModelProto::decode(prony_model::builtin(SceneKind::Thermal)).unwrap();
    for entry in &mut model.metadata_props {
        if !["names", "imgsz", "stride", "task"].contains(&entry.key.as_str()) {
            entry.value = HOSTILE.to_owned();
        }
    }
    model.producer_name = HOSTILE.to_owned();
    model.doc_string = HOSTILE.to_owned();
    let path = place.path(&format!("{HOSTILE}.onnx"));
    fs::write(&path, model.encode_to_vec()).unwrap();
    path
}

#[test]
fn a_name_cleared_the_screen() {
    let place = Place::new();
    let model = hostile_model(&place);
    let model = model.to_str().unwrap();
    let home = place.path("home");
    let photos = place.path(HOSTILE);
    fs::create_dir(&photos).unwrap();
    fs::write(photos.join(format!("{HOSTILE}.jpg")), b"no image").unwrap();
    let photos = photos.to_str().unwrap();
    let data = place.path("data.yaml");
    fs::write(&data, format!("val: {photos:?}\nnames: [\"a\u{1b}[2J\"]\n")).unwrap();
    let plan = place.path("plan.toml");
    fs::write(&plan, "\"k\u{9b}31m\" = 1\n").unwrap();
    let missing = format!("{model}.missing");
    let cases: [(i32, &[&str]); 12] = [
        (0, &["inspect", model, "--no-backends"]),
        (0, &["inspect", model, "--no-backends", "--json"]),
        (0, &["bench", model, "--backends", "rten", "--dry-run"]),
        (0, &["bench", model, "--backends", "rten", "--dry-run", "--json"]),
        (2, &["run", model]),
        (2, &["inspect", &missing]),
        (2, &["bench", model, "--backends", HOSTILE]),
        (2, &[HOSTILE]),
        (2, &["inspect", "--no\u{1b}[2J"]),
        (2, &["bench", model, "--source", photos, "--backends", "rten"]),
        (2, &["data", "info", data.to_str().unwrap()]),
        (2, &["bench", "--plan", plan.to_str().unwrap()]),
    ];
    for (code, args) in cases {
        let output = prony().args(args).env("PRONY_HOME", &home).current_dir(place.dir.path()).output().unwrap();
        assert_printable(&format!("{args:?}"), &output);
        expect_code(&output, code);
    }
}

#[test]
fn a_newline_in_a_name_broke_samples_csv() {
    let place = Place::new();
    let model = hostile_model(&place);
    let output = place.bench(&[&[model.to_str().unwrap()][..], &SHORT].concat()).output().unwrap();
    expect_code(&output, 0);
    assert_printable("bench", &output);
    let (run, record) = (place.run(), place.record());
    let id = &record.cells[0].id;
    assert!(!id.contains(is_unprintable), "{id:?}");
    let rows = prony_store::read_samples(&run.join("samples.csv")).unwrap();
    assert!(rows.len() > 30 && rows.iter().all(|row| row.cell == *id && row.attempt == Some(1)), "{:?}", rows[0]);
    let text = fs::read_to_string(run.join("samples.csv")).unwrap();
    assert_eq!(text.lines().count(), rows.len() + 1, "one line per sample");
    for report in ["report.html", "report.md", "latency_comparative_320.csv", "samples.csv"] {
        let text = fs::read_to_string(run.join(report)).unwrap();
        let hidden = text.chars().find(|&c| !matches!(c, '\n' | '\t') && is_unprintable(c));
        assert!(hidden.is_none(), "{report}: {hidden:?}");
    }
    // No cell of a table is a formula: the names begin with an equals sign.
    let table = fs::read_to_string(run.join("latency_comparative_320.csv")).unwrap();
    assert!(table.contains(",\"'=a") && !table.contains(",\"=a") && !table.contains(",=a"), "{table}");
    assert!(text.lines().nth(1).unwrap().starts_with("\"'=a"), "{text:.200}");
    for args in [&["report"][..], &["report", "--json"], &["report", "--format", "md", "-o", "-"]] {
        let output = prony().args(args).arg(&run).output().unwrap();
        expect_code(&output, 0);
        assert_printable(&format!("{args:?}"), &output);
    }
}

#[test]
fn two_attempts_at_a_cell_were_mixed() {
    let running =
        Running::start(Place::new(), &["builtin-thermal", "--duration", "1", "--warmup", "0.1", "--frames", "8"]);
    running.first_round("builtin-thermal:rten:fp32");
    signal(running.worker("builtin-thermal:rten:fp32"), Signal::KILL);
    let (output, place) = running.finish();
    expect_code(&output, 1);
    let rows = |attempt: u32| {
        let rows = prony_store::read_samples(&place.run().join("samples.csv")).unwrap();
        rows.iter().filter(|row| row.attempt == Some(attempt) && row.sample.phase.name() == "steady").count() as u64
    };
    let first = rows(1);
    assert!(first > 0 && rows(2) == 0);
    expect_code(&prony().args(["bench", "--resume"]).arg(place.run()).output().unwrap(), 0);
    let cell = &place.record().cells[0];
    assert_eq!((cell.attempt, rows(1), rows(2)), (2, first, cell.samples.steady));
}

/// A name that is no UTF-8.
fn odd(stem: &str, ending: &str) -> std::ffi::OsString {
    OsStr::from_bytes(&[stem.as_bytes(), b"\xff\xc3", ending.as_bytes()].concat()).to_owned()
}

#[test]
fn a_name_that_is_not_utf_8_was_refused() {
    let place = Place::new();
    let at = |name: &str, ending: &str| place.dir.path().join(odd(name, ending));
    let (model, photos, home, runs) = (at("m", ".onnx"), at("photos", ""), at("home", ""), at("runs", ""));
    fs::write(&model, prony_model::builtin(SceneKind::Rgb)).unwrap();
    expect_code(&prony().args(["data", "synth", "--count", "2"]).arg(&photos).output().unwrap(), 0);
    let image = photos.join("images").join(odd("i", ".png"));
    fs::rename(photos.join("images/000000.png"), &image).unwrap();
    let run = |args: &[&OsStr]| {
        let output = prony().args(args).env("PRONY_HOME", &home).current_dir(place.dir.path()).output().unwrap();
        assert_printable(&format!("{args:?}"), &output);
        output
    };
    let word = OsStr::new;
    let (model, photos, image) = (model.as_os_str(), photos.as_os_str(), image.as_os_str());
    let (boxes, picture, half) = (at("boxes", ".json"), at("boxes", ".png"), at("half", ".onnx"));
    let (boxes, picture, half) = (boxes.as_os_str(), picture.as_os_str(), half.as_os_str());
    for args in [
        &[word("inspect"), model, word("--no-backends")][..],
        &[word("inspect"), model, word("--no-backends"), word("--json")],
        &[word("run"), model, word("--input"), image, word("-o"), boxes, word("-o"), picture, word("--json")],
        &[word("convert"), model, word("--precision"), word("fp16"), word("-o"), half, word("--json")],
        &[word("compare-outputs"), model, model, word("--frames"), word("1")],
        &[word("data"), word("info"), photos, word("--json")],
        &[word("cache"), word("list"), word("--json")],
        &[word("runtime"), word("list"), word("--json")],
        &[word("doctor"), word("-o"), at("env", ".txt").as_os_str(), word("--json")],
    ] {
        expect_code(&run(args), 0);
    }
    assert!(Path::new(boxes).is_file() && Path::new(picture).is_file() && Path::new(half).is_file());

    // A run of such a model on such images into such a folder, killed once and resumed.
    let options = ["--backends", "rten", "--duration", "1", "--warmup", "0.1", "--frames", "8", "--out"].map(word);
    let mut bench = prony();
    bench.arg("bench").arg(model).arg("--source").arg(photos).args(options).arg(&runs).env("PRONY_HOME", &home);
    let mut child = bench.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let folder = until("the run folder", || {
        let folder = fs::read_dir(&runs).ok()?.next()?.ok()?.path();
        let text = fs::read_to_string(folder.join("events.jsonl")).ok()?;
        let started = text.lines().find(|line| line.contains("\"event\":\"started\""))?;
        let pid = serde_json::from_str::<serde_json::Value>(started).ok()?["pid"].as_u64()?;
        text.contains("round-done").then_some(())?;
        signal(pid as u32, Signal::KILL);
        Some(folder)
    });
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let output = run(&[word("bench"), word("--resume"), folder.as_os_str()]);
    expect_code(&output, 0);
    let record = prony_store::read_record_at(&folder).unwrap();
    assert_eq!(record.cells[0].id, "m\\xff\\xc3:rten:fp32");
    assert!(record.run.command.iter().any(|word| word.ends_with("m\\xff\\xc3.onnx")), "{:?}", record.run.command);
    assert!(stdout(&output).contains("m\\xff\\xc3:rten:fp32"), "{} {}", stdout(&output), stderr(&output));
    expect_code(&run(&[word("report"), folder.as_os_str(), word("--format"), word("html"), word("--json")]), 0);

    // A plan file beside it, which names it by its escape.
    fs::write(place.path("plan.toml"), "models = ['m\\xff\\xc3.onnx']\nbackends = ['rten']\n").unwrap();
    let output = run(&[word("bench"), word("--plan"), place.path("plan.toml").as_os_str(), word("--dry-run")]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("m\\xff\\xc3:rten:fp32"), "{}", stdout(&output));
}
