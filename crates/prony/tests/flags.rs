//! `--quiet` and `--json`: every command has them, and they mean the same everywhere.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::process::Output;

use serde_json::Value;
use support::{Place, expect_code, prony, stderr, stdout};

/// Commands whose result is text by nature: a script for a shell, a page for `man`.
const TEXT_BY_NATURE: [&str; 2] = ["completions", "man"];

/// Every command that does something, as the words that call it, from what `--help` lists.
fn commands(words: &[String]) -> Vec<Vec<String>> {
    let help = help(words);
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return vec![words.to_vec()] };
    let names = list.lines().take_while(|line| !line.trim().is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|&name| name != "help");
    names.flat_map(|name| commands(&[words, &[name.to_owned()]].concat())).collect()
}

fn help(words: &[String]) -> String {
    let output = prony().args(words).arg("--help").output().unwrap();
    expect_code(&output, 0);
    stdout(&output)
}

#[test]
fn no_command_lacks_quiet_or_json() {
    let all = commands(&[]);
    assert!(all.len() > 20, "{all:?}");
    for words in all {
        let help = help(&words);
        let has = |flag: &str| help.lines().any(|line| line.trim_start().trim_start_matches("-q, ").starts_with(flag));
        assert!(has("--quiet"), "{words:?}: {help}");
        assert_eq!(has("--json"), !TEXT_BY_NATURE.contains(&words[0].as_str()), "{words:?}: {help}");
    }
}

/// Runs a command twice, as JSON and quietly, and gives the JSON.
#[track_caller]
fn check(place: &Place, words: &[&str]) -> Value {
    let run = |flag: &str| -> Output {
        let mut command = prony();
        command.current_dir(place.path("")).env("PRONY_HOME", place.path("home")).args(words).arg(flag);
        let output = command.output().unwrap();
        expect_code(&output, 0);
        output
    };
    let output = run("--json");
    let text = stdout(&output);
    let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"));
    let quiet = run("--quiet");
    assert_eq!(stderr(&quiet), "", "{words:?}");
    assert!(!quiet.stdout.is_empty(), "{words:?} has no result");
    json
}

#[test]
fn json_is_one_document_and_quiet_leaves_only_the_result() {
    let place = Place::new();
    let images = "scenes/images/000000.png";
    assert_eq!(check(&place, &["data", "synth", "--count", "3", "scenes"])["images"], 3);
    assert_eq!(check(&place, &["data", "info", "scenes"])["images"], 3);
    assert_eq!(check(&place, &["data", "subset", "scenes", "--limit", "2", "--out", "some"])["images"], 2);
    assert_eq!(check(&place, &["inspect", "builtin-rgb", "--no-backends"])["format"], "onnx");
    assert!(check(&place, &["doctor"])["mem_available_bytes"].is_u64());
    assert_eq!(check(&place, &["doctor", "--out", "env.txt"])["file"], "env.txt");
    assert!(check(&place, &["runtime", "list"])["runtimes"].is_array());
    for verb in [&["cache", "list"][..], &["cache", "verify"], &["cache", "prune", "--all"]] {
        assert_eq!(check(&place, verb)["schema"], "prony.cache/2");
    }
    assert!(check(&place, &["run", "builtin-rgb", "--input", images])["detections"].is_array());
    assert_eq!(check(&place, &["compare-outputs", "builtin-rgb", "builtin-rgb", "--frames", "1"])["agree"], true);
    assert_eq!(
        check(&place, &["convert", "builtin-rgb", "--precision", "fp16", "--force"])["schema"],
        "prony.convert/1"
    );
    assert!(check(&place, &["bench", "--dry-run"])["plan"].is_object());
    let record = check(&place, &["bench", "builtin-thermal", "--duration", "0.5", "--warmup", "0.1", "--out", "runs"]);
    let run = format!("runs/{}", record["run"]["id"].as_str().unwrap());
    assert_eq!(check(&place, &["report", &run])["run"]["id"], record["run"]["id"]);
    let written = check(&place, &["report", &run, "--format", "csv"]);
    assert_eq!(written["files"].as_array().unwrap().len(), 1);
    assert_eq!(check(&place, &["compare", &run, &run])["rows"].as_array().unwrap().len(), 1);
    let mut both = prony();
    both.current_dir(place.path("")).args(["report", &run, "--format", "html", "-o", "-", "--json"]);
    let output = both.output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("--json prints JSON on stdout"), "{}", stderr(&output));
}

#[test]
fn quiet_and_verbose_contradict_each_other() {
    let output = prony().args(["bench", "--quiet", "--verbose"]).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
}
