//! A redacted run, by the real command: no file of it tells who ran it, on what, or where anything lies.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use prony_types::SceneKind;
use proptest::test_runner::{Config, TestRunner};
use support::{Place, expect_code, prony, stderr};

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => found.extend(files(&entry)),
            false => found.push(entry),
        }
    }
    found
}

/// What is in a file, as a reader of a page sees it.
fn shown(path: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    text.replace("&#x2f;", "/").replace("&#x27;", "'").replace("&amp;", "&")
}

/// Runs everything in folders that have these names, and looks for them in all that is left.
fn tells_nothing(names: &[String; 4]) {
    let place = Place::new();
    let [models, pictures, home, user] = names;
    // Each stands for itself: `top` is in every path, the others in one each.
    let top = place.path("Confidential Überbau #7");
    let at = |name: &str| top.join(name);
    let (models_at, real, linked) =
        (at(&format!("m {models}")), at(&format!("p {pictures}")), at(&format!("l {pictures}")));
    fs::create_dir_all(&models_at).unwrap();
    expect_code(&prony().args(["data", "synth", "--count", "3", "--quiet"]).arg(&real).output().unwrap(), 0);
    symlink(&real, &linked).unwrap();
    let source = linked.join("images");
    // A picture that cannot be read, so that a message names it.
    fs::write(source.join("zz broken.png"), b"nothing").unwrap();
    let model = models_at.join("det one.onnx");
    fs::write(&model, prony_model::builtin(SceneKind::Rgb)).unwrap();
    let no_model = models_at.join("cut two.onnx");
    fs::write(&no_model, &prony_model::builtin(SceneKind::Rgb)[..30_000]).unwrap();
    let (runs, home) = (at("r runs"), at(&format!("h {home}")));
    let mut command = prony();
    command.arg("bench").arg(&model).args([
        "--backends",
        "rten,ort-cpu",
        "--redact",
        "--verbose",
        "--duration",
        "0.2",
        "--warmup",
        "0.05",
    ]);
    command.arg("--source").arg(&source).arg("--out").arg(&runs).arg("--home").arg(&home);
    command.env("USER", user).env("LOGNAME", user).env("HOME", at(user)).current_dir(&models_at);
    let output = command.output().unwrap();
    // There may be an ONNX Runtime or not: what it says about that is what is looked at.
    assert!(matches!(output.status.code(), Some(0 | 1 | 3 | 4)), "{}", stderr(&output));
    let run = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let given = [&model, &source, &runs, &home, &models_at, &real, &linked, &top];
    let mut needles: Vec<String> = given.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    needles.push(place.dir.path().to_str().unwrap().to_owned());
    needles.extend([models.clone(), user.clone(), "Confidential".into(), "Überbau".into()]);
    let all = files(&run);
    assert!(all.len() >= 10, "{all:?}");
    for path in &all {
        let text = shown(path);
        for needle in &needles {
            assert!(!text.contains(needle.as_str()), "{} holds {needle:?}", path.display());
        }
        if path.extension().is_some_and(|ending| ending == "jpg") {
            // Two letters of a short host name are in any picture.
            continue;
        }
        let is_word = |at: usize| {
            let part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
            !text[..at].ends_with(part) && !text[at + host.len()..].starts_with(part)
        };
        let named = host.len() > 1 && host != "localhost" && text.match_indices(&host).any(|(at, _)| is_word(at));
        assert!(!named, "{} holds the host's name {host}", path.display());
    }
    let record = prony_store::read_record_at(&run).unwrap();
    assert!(record.run.redacted && record.cells.iter().any(|cell| cell.latency_ms.len() > 2), "it is still a report");
    // What was measured openly can be shown without it later on.
    let page = place.path("page");
    expect_code(
        &prony().args(["report", "--redact", "--format", "html", "-o"]).arg(&page).arg(&run).output().unwrap(),
        0,
    );
    needles.iter().for_each(|needle| assert!(!shown(&page).contains(needle.as_str()), "{needle}"));
}

#[test]
fn a_redacted_run_told_where_it_was() {
    // With blanks, letters of all kinds, quotes and signs that end words; never what reports are made of.
    let name = || "[Q-Z]{3}[a-zäßéž '#&()=,;+]{2,8}[äßéžq]{1}[Q-Z]{3}";
    let user = "[Q-Z]{4}[0-9]{3}[q-z]{2}";
    let mut runner =
        TestRunner::new(Config { cases: 3, failure_persistence: None, max_shrink_iters: 0, ..Config::default() });
    let run = runner.run(&(name(), name(), name(), user), |(models, pictures, home, user)| {
        tells_nothing(&[models, pictures, home, user]);
        Ok(())
    });
    run.unwrap();
}
