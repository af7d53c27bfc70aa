//! Inputs that are not what they seem: a FIFO that nobody writes to, a device that never ends, a socket, a file of a terabyte.
//! Each ends at once with its name and the reason, whichever option it was given to.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use prony_model::onnx::{ModelProto, StringEntry};
use prony_types::SceneKind;
use prost::Message as _;
use support::{Place, SHORT, expect_code, fifo, prony, stderr, stdout};

/// What may stand where a file belongs, and what it is called.
const SPECIAL: [(&str, &str); 4] = [
    ("fifo", "is a FIFO, not a regular file"),
    ("endless", "is a character device, not a regular file"),
    ("socket", "is a socket, not a regular file"),
    ("huge", "MiB; "),
];

/// Puts one of them at a path.
fn put(what: &str, path: &Path) {
    let _ = fs::remove_file(path);
    match what {
        "fifo" => fifo(path),
        "endless" => symlink("/dev/zero", path).unwrap(),
        "socket" => drop(UnixListener::bind(path).unwrap()),
        _ => File::create(path).unwrap().set_len(1 << 41).unwrap(),
    }
}

/// Runs a command that must not wait and must not need much memory.
#[track_caller]
fn ends(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{command:?} still waits");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// A data set of three scenes.
fn scenes(place: &Place) -> PathBuf {
    let folder = place.path("scenes");
    if !folder.exists() {
        expect_code(&prony().args(["data", "synth", "--count", "3"]).arg(&folder).output().unwrap(), 0);
    }
    folder
}

#[test]
fn a_special_file_hung_a_command_or_filled_the_memory() {
    let place = Place::new();
    let data = scenes(&place);
    let cases: [(&str, &[&str]); 13] = [
        ("m.onnx", &["inspect", "m.onnx", "--no-backends"]),
        ("m.engine", &["inspect", "m.engine", "--no-backends"]),
        ("m.pt", &["export", "m.pt"]),
        ("m.onnx", &["convert", "m.onnx", "--precision", "fp16"]),
        ("a.jpg", &["run", "builtin-rgb", "--backend", "rten", "--input", "a.jpg"]),
        ("a.npz", &["run", "builtin-rgb", "--backend", "rten", "--input", "a.npz"]),
        ("a.npz", &["quantize", "builtin-rgb", "--calib", "a.npz", "-o", "q.onnx"]),
        ("data.yaml", &["data", "info", "data.yaml"]),
        ("instances.json", &["data", "info", "instances.json"]),
        ("found.json", &["eval", "--detections", "found.json", "--data", "scenes"]),
        ("report.json", &["report", "report.json"]),
        ("report.json", &["compare", "report.json", "report.json"]),
        ("onnxruntime-1.20.1-cp310-cp310-x.whl", &["runtime", "install", "onnxruntime", "--from"]),
    ];
    for (what, words) in SPECIAL {
        for (file, args) in cases {
            let path = data.parent().unwrap().join(file);
            put(what, &path);
            let mut command = prony();
            command.args(args).current_dir(place.dir.path()).env("PRONY_HOME", place.path("home"));
            if args.last() == Some(&"--from") {
                command.arg(file);
            }
            let output = ends(&mut command);
            assert!(matches!(output.status.code(), Some(1 | 2)), "{what}, {args:?}: {}", stderr(&output));
            let said = stderr(&output);
            assert!(said.contains(file) && said.contains(words), "{what}, {args:?}: {said}");
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn a_folder_with_a_link_to_dev_zero_was_read_until_memory_ran_out() {
    let place = Place::new();
    let images = scenes(&place).join("images");
    for (what, _) in SPECIAL {
        put(what, &images.join(format!("{what}.jpg")));
    }
    let args = [&["builtin-rgb", "--source", images.to_str().unwrap()], &SHORT[..]].concat();
    let output = ends(&mut place.bench(&args));
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
    for (what, words) in SPECIAL {
        let named = stderr(&output).lines().any(|line| line.contains(&format!("{what}.jpg")) && line.contains(words));
        assert!(named, "{what}: {}", stderr(&output));
    }
}

#[test]
fn labels_that_are_pipes_are_named_and_left_out() {
    let place = Place::new();
    let data = scenes(&place);
    put("fifo", &data.join("labels/000001.txt"));
    let output = ends(prony().args(["data", "info"]).arg(data.join("data.yaml")));
    expect_code(&output, 0);
    let said = stdout(&output) + &stderr(&output);
    assert!(said.contains("000001.txt") && said.contains("is a FIFO"), "{said}");
}

#[test]
fn weights_beside_a_model_that_are_a_pipe_hung_convert() {
    let place = Place::new();
    let image = scenes(&place).join("images/000000.png");
    let image = image.to_str().unwrap();
    let mut model = ModelProto::decode(prony_model::builtin(SceneKind::Rgb)).unwrap();
    let weight = &mut model.graph.as_mut().unwrap().initializer[0];
    let entry = |key: &str, value: &str| StringEntry { key: key.into(), value: value.into() };
    weight.raw_data.clear();
    weight.float_data.clear();
    weight.data_location = 1;
    weight.external_data = vec![entry("location", "weights.bin"), entry("offset", "0")];
    let path = place.path("m.onnx");
    fs::write(&path, model.encode_to_vec()).unwrap();
    for (what, words) in SPECIAL.into_iter().filter(|(what, _)| *what != "huge") {
        put(what, &place.path("weights.bin"));
        for args in [&["convert", "--precision", "fp16"][..], &["run", "--backend", "rten", "--input", image]] {
            let output =
                ends(prony().args(&args[..1]).arg(&path).args(&args[1..]).env("PRONY_HOME", place.path("home")));
            assert!(matches!(output.status.code(), Some(1 | 2)), "{what}, {args:?}: {}", stderr(&output));
            let said = stderr(&output);
            assert!(said.contains("weights.bin") && said.contains(words), "{what}, {args:?}: {said}");
        }
        // The rest of a model can still be described.
        expect_code(&ends(prony().arg("inspect").arg(&path).env("PRONY_HOME", place.path("home"))), 0);
    }
}

#[test]
fn a_plan_and_a_list_may_come_through_a_pipe() {
    let place = Place::new();
    let (plan, list) = (place.path("plan.toml"), place.path("ids"));
    fifo(&plan);
    fifo(&list);
    let feed = |to: &Path, text: &'static str| {
        let to = to.to_owned();
        std::thread::spawn(move || File::options().write(true).open(to).unwrap().write_all(text.as_bytes()).unwrap())
    };
    let writer = feed(&plan, "models = ['builtin-rgb']\nbackends = ['rten']\n");
    let output = ends(prony().args(["bench", "--dry-run", "--plan"]).arg(&plan));
    expect_code(&output, 0);
    writer.join().unwrap();
    let writer = feed(&list, "000001.png\n");
    let output = ends(prony().args(["data", "info"]).arg(scenes(&place)).arg("--ids").arg(&list));
    expect_code(&output, 0);
    assert!(stdout(&output).contains("1 of 3 images"), "{}", stdout(&output));
    writer.join().unwrap();
    // A plan that never ends is cut off at the size of a plan.
    let output = ends(prony().args(["bench", "--dry-run", "--plan", "/dev/stdin"]).stdin(endless()));
    expect_code(&output, 2);
    assert!(stderr(&output).contains("a plan may have at most 1 MiB"), "{}", stderr(&output));
}

/// A pipe that somebody writes zeros into as long as it is read.
fn endless() -> Stdio {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::thread::spawn(move || while writer.write_all(&[b' '; 1 << 16]).is_ok() {});
    reader.into()
}
