//! A run folder, a cache and a model from somebody else, by the real command: they are data, and lead nowhere.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use prony_model::onnx::{ModelProto, StringEntry};
use prony_standin::impossible;
use prony_types::{SceneKind, Verdict};
use prost::Message as _;
use prost::bytes::Bytes;
use serde_json::{Value, json};
use support::{Place, expect_code, prony, skip, stderr, write_model};

const SHORT: [&str; 6] = ["--duration", "0.2", "--warmup", "0.05", "--frames", "4"];

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A run of one cell that still has to be measured, as somebody may hand it over.
fn unfinished(place: &Place) -> PathBuf {
    expect_code(&place.bench(&[&["builtin-thermal", "--quiet"], &SHORT[..]].concat()).output().unwrap(), 0);
    let run = place.run();
    change(&run, |record| record["cells"][0]["status"] = "interrupted".into());
    run
}

fn change(run: &Path, how: impl FnOnce(&mut Value)) {
    let path = run.join("report.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    how(&mut record);
    fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
}

fn resume(run: &Path) -> Output {
    prony().args(["bench", "--quiet", "--resume"]).arg(run).output().unwrap()
}

fn cell_folder(run: &Path) -> PathBuf {
    run.join("cells/builtin-thermal_rten_fp32")
}

#[test]
fn a_library_named_by_a_record_was_opened() {
    let place = Place::new();
    let (source, library, mark) = (place.path("evil.c"), place.path("libonnxruntime.so"), place.path("opened"));
    let code =
        "#include <fcntl.h>\n__attribute__((constructor)) static void f(void){ open(MARK, O_CREAT | O_WRONLY, 0600); }";
    fs::write(&source, code).unwrap();
    let mark_is = format!("-DMARK=\"{}\"", mark.display());
    let compiled = Command::new("cc").args(["-shared", "-fPIC", &mark_is, "-o"]).arg(&library).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skip("no C compiler");
    }
    let run = unfinished(&place);
    let whole = fs::read(run.join("report.json")).unwrap();
    let evil = |version: &str| json!({ "library": library, "version": version });
    type Change<'a> = (&'a str, Box<dyn Fn(&mut Value) + 'a>);
    let hostile: [Change<'_>; 7] = [
        (
            "a cell",
            Box::new(|plan| {
                plan["cells"][0]["backend"] = "ort-cpu".into();
                plan["cells"][0]["runtime"] = evil("1.20.0");
            }),
        ),
        (
            "a version that means none",
            Box::new(|plan| {
                plan["cells"][0]["backend"] = "ort-cpu".into();
                plan["cells"][0]["runtime"] = evil("gone");
            }),
        ),
        (
            "a program",
            Box::new(|plan| {
                plan["cells"][0]["backend"] = "trtexec".into();
                plan["cells"][0]["runtime"] = evil("gone");
            }),
        ),
        ("a builder", Box::new(|plan| plan["cells"][0]["builder"] = evil("gone"))),
        (
            "the reference",
            Box::new(|plan| {
                plan["reference"]["backend"] = "ort-cpu".into();
                plan["reference"]["runtime"] = evil("gone");
            }),
        ),
        (
            "a plugin",
            Box::new(|plan| {
                let hash = prony_model::sha256_file(&library).unwrap();
                plan["cells"][0]["provider"]["trt_plugins"] = json!([library]);
                plan["cells"][0]["provider"]["trt_plugin_sha256"] = json!([hash]);
            }),
        ),
        (
            "standing by",
            Box::new(|plan| {
                let mut cell = plan["cells"][0].clone();
                cell["backend"] = "ort-cpu".into();
                cell["runtime"] = evil("gone");
                plan["standby"] = json!([cell]);
            }),
        ),
    ];
    for (what, how) in hostile {
        fs::write(run.join("report.json"), &whole).unwrap();
        change(&run, |record| how(&mut record["plan"]));
        let output = resume(&run);
        expect_code(&output, 2);
        assert!(stderr(&output).contains("libonnxruntime.so"), "{what}: {}", stderr(&output));
        assert!(!mark.exists(), "{what}");
    }
}

#[test]
fn a_resumed_run_wrote_through_links() {
    let place = Place::new();
    let run = unfinished(&place);
    let cell = cell_folder(&run);
    let victim = |name: &str| {
        let path = place.path(name);
        fs::write(&path, "precious").unwrap();
        path
    };
    // What is written anew takes the place of the link.
    for path in [
        run.join("report.md"),
        run.join("report.html"),
        run.join("env_report.txt"),
        cell.join("worker.log"),
        cell.join("frame-000.jpg"),
        cell.join("sidecar.json"),
    ] {
        let _ = fs::remove_file(&path);
        symlink(victim(path.file_name().unwrap().to_str().unwrap()), &path).unwrap();
    }
    let _ = fs::remove_file(cell.join("frame-001.jpg"));
    fs::hard_link(victim("frame-001.jpg"), cell.join("frame-001.jpg")).unwrap();
    expect_code(&resume(&run), 0);
    let mut victims = 0;
    for entry in
        fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        assert_eq!(fs::read(&entry).unwrap(), b"precious", "{}", entry.display());
        victims += 1;
    }
    assert_eq!(victims, 7);
    assert!(fs::symlink_metadata(run.join("report.html")).unwrap().is_file());
    // Logs go on where they ended, and that may be nowhere else: the run is refused before anything is measured.
    change(&run, |record| record["cells"][0]["status"] = "interrupted".into());
    for name in ["events.jsonl", "samples.csv", "metrics.jsonl", "run.log"] {
        let (path, kept) = (run.join(name), run.join("kept"));
        fs::rename(&path, &kept).unwrap();
        symlink(place.path("report.md"), &path).unwrap();
        let output = resume(&run);
        assert!(
            !output.status.success() && stderr(&output).contains("is a symbolic link"),
            "{name}: {}",
            stderr(&output)
        );
        assert_eq!(fs::read(place.path("report.md")).unwrap(), b"precious", "{name}");
        fs::rename(&kept, &path).unwrap();
    }
    // The folder of all cells leads elsewhere.
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::rename(run.join("cells"), place.path("cells")).unwrap();
    symlink(place.path("elsewhere"), run.join("cells")).unwrap();
    let output = resume(&run);
    assert!(!output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
    // A folder that others may write to could be exchanged at any moment.
    fs::remove_file(run.join("cells")).unwrap();
    fs::rename(place.path("cells"), run.join("cells")).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o777)).unwrap();
    let output = resume(&run);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("may be written by everybody"), "{}", stderr(&output));
}

#[test]
fn a_report_of_a_foreign_run_gave_away_a_secret() {
    let place = Place::new();
    let run = unfinished(&place);
    let secret = place.path("secret.jpg");
    fs::write(&secret, [b"\xff\xd8\xff".as_slice(), "secret ".repeat(30).as_bytes()].concat()).unwrap();
    let encoded = "c2VjcmV0IHNlY3JldC"; // `secret secret` in base64, at one of its three alignments.
    let picture = cell_folder(&run).join("frame-000.jpg");
    fs::remove_file(&picture).unwrap();
    let page = place.path("page.html");
    let report =
        |from: &Path| prony().args(["report", "--format", "html", "-o"]).arg(&page).arg(from).output().unwrap();
    symlink(&secret, &picture).unwrap();
    expect_code(&report(&run), 0);
    assert!(!fs::read_to_string(&page).unwrap().contains(encoded));
    // As a file of its own it would be there: the needle is the right one.
    fs::remove_file(&picture).unwrap();
    fs::copy(&secret, &picture).unwrap();
    expect_code(&report(&run), 0);
    assert!(fs::read_to_string(&page).unwrap().contains(encoded));
    // A link to the run is the user's own.
    symlink(&run, place.path("latest")).unwrap();
    expect_code(&report(&place.path("latest")), 0);
    // Without --out the page goes into the run folder, where a link may wait for it.
    fs::write(place.path("victim"), "precious").unwrap();
    fs::remove_file(run.join("report.html")).unwrap();
    symlink(place.path("victim"), run.join("report.html")).unwrap();
    expect_code(&prony().args(["report", "--format", "html"]).arg(&run).output().unwrap(), 0);
    assert_eq!(fs::read(place.path("victim")).unwrap(), b"precious");
    let whole = fs::read(run.join("report.json")).unwrap();
    for slug in ["../../X", "..", "/etc", ""] {
        change(&run, |record| record["cells"][0]["slug"] = slug.into());
        for verb in [vec!["report"], vec!["bench", "--resume"]] {
            let output = prony().args(&verb).arg(&run).output().unwrap();
            expect_code(&output, 2);
            assert!(stderr(&output).contains("not a record that Prony wrote"), "{slug}: {}", stderr(&output));
        }
        let output = prony().arg("compare").args([&run, &run]).output().unwrap();
        expect_code(&output, 2);
    }
    fs::remove_file(run.join("report.json")).unwrap();
    fs::write(place.path("record"), whole).unwrap();
    symlink(place.path("record"), run.join("report.json")).unwrap();
    expect_code(&report(&run), 2);
    expect_code(&report(&place.path("record")), 0);
}

/// The built-in detector with its weights in a file of their own.
fn with_external_weights(place: &Place) -> String {
    let mut model = ModelProto::decode(prony_model::builtin(SceneKind::Thermal)).unwrap();
    let mut data: Vec<u8> = Vec::new();
    for tensor in model.graph.as_mut().unwrap().initializer.iter_mut().filter(|tensor| tensor.dims.len() == 4) {
        let raw = tensor.to_f32s().unwrap().iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let entry = |key: &str, value: String| StringEntry { key: key.into(), value };
        tensor.external_data = vec![
            entry("location", "weights.data".into()),
            entry("offset", data.len().to_string()),
            entry("length", raw.len().to_string()),
        ];
        (tensor.data_location, tensor.raw_data) = (1, Bytes::new());
        tensor.float_data.clear();
        data.extend(raw);
    }
    fs::write(place.path("weights.data"), data).unwrap();
    write_model(&place.path("det.onnx"), &model)
}

#[test]
fn changed_weights_were_judged_against_a_stale_reference() {
    let place = Place::new();
    let model = with_external_weights(&place);
    let home = place.path("home");
    let bench = |runs: &str| {
        let mut command = prony();
        command.args(["bench", &model, "--backends", "rten", "--quiet", "--out"]).arg(place.path(runs));
        let output = command.args(SHORT).arg("--home").arg(&home).output().unwrap();
        let run = fs::read_dir(place.path(runs)).unwrap().next().unwrap().unwrap().path();
        (output, prony_store::read_record_at(&run).unwrap(), run)
    };
    let (output, before, first) = bench("one");
    expect_code(&output, 0);
    let files: Vec<String> =
        before.cells[0].model.info.as_ref().unwrap().files.iter().map(|it| it.file.clone()).collect();
    assert_eq!(files, ["det.onnx", "weights.data"]);
    let scale = |by: f32| {
        let data = fs::read(place.path("weights.data")).unwrap();
        let scaled = data.as_chunks::<4>().0.iter().flat_map(|&four| (f32::from_le_bytes(four) * by).to_le_bytes());
        fs::write(place.path("weights.data"), scaled.collect::<Vec<u8>>()).unwrap();
    };
    scale(1.05);
    let (output, after, second) = bench("two");
    assert_ne!(after.cells[0].verdict, Some(Verdict::WrongOutput), "{:?}", after.cells[0].verdict_reasons);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
    assert_ne!(before.cells[0].model.sha256, after.cells[0].model.sha256);
    assert!(after.cells[0].agreement.is_some());
    // Another model: `compare` says so, and it is not resumed.
    let output = prony().args(["compare", "--json"]).args([&first, &second]).output().unwrap();
    let compared: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(compared["rows"][0]["noted"][0]["field"], "model", "{compared}");
    change(&first, |record| record["cells"][0]["status"] = "interrupted".into());
    let output = prony().args(["bench", "--resume"]).arg(&first).arg("--home").arg(&home).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("model det changed"), "{}", stderr(&output));
    // Missing weights are named.
    fs::remove_file(place.path("weights.data")).unwrap();
    let output = prony().args(["bench", &model, "--backends", "rten", "--quiet"]).args(SHORT).output().unwrap();
    assert!(stderr(&output).contains("weights.data"), "{}", stderr(&output));
}

#[test]
fn a_home_that_takes_nothing_lost_the_reference() {
    let agreed = |place: &Place, output: &Output| {
        expect_code(output, 0);
        let record = place.record();
        assert!(record.cells[0].agreement.is_some(), "{:?}", record.cells[0].agreement_absent);
        assert!(!place.run().join("reference").exists(), "it goes with the run");
    };
    let bench = |place: &Place| place.bench(&[&["builtin-thermal", "--quiet"], &SHORT[..]].concat());
    // A file where the home should be.
    let place = Place::new();
    fs::write(place.path("home"), "").unwrap();
    agreed(&place, &bench(&place).env("PRONY_HOME", place.path("home")).output().unwrap());
    // A home that everybody may write to.
    let place = Place::new();
    let cache = place.path("home/cache/reference");
    fs::create_dir_all(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    agreed(&place, &bench(&place).env("PRONY_HOME", place.path("home")).output().unwrap());
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
    if !is_root() {
        return impossible("only root can fill a disk of its own");
    }
    // One of somebody else.
    let place = Place::new();
    let cache = place.path("home/cache/reference");
    fs::create_dir_all(&cache).unwrap();
    std::os::unix::fs::chown(&cache, Some(65534), None).unwrap();
    agreed(&place, &bench(&place).env("PRONY_HOME", place.path("home")).output().unwrap());
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
    // A full one.
    let place = Place::new();
    fs::create_dir(place.path("home")).unwrap();
    let inner = bench(&place);
    let words: Vec<String> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let home = place.path("home");
    let script = format!(
        "mount -t tmpfs -o size=16k none '{0}' || exit 77; PRONY_HOME='{0}' exec {1}",
        home.display(),
        words.join(" ")
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]);
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    if output.status.code() == Some(77) || stderr(&output).contains("unshare failed") {
        return impossible("no mount namespace of one's own");
    }
    agreed(&place, &output);
}
