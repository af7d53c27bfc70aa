//! What the README tells people to type works.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;

use support::{Place, expect_code, prony, stdout};

const README: &str = include_str!("../../../README.md");

/// Lines of fenced blocks in one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in README.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            inside = !inside && fence == language;
        } else if inside {
            lines.push(line);
        }
    }
    lines
}

#[test]
fn every_command_is_understood() {
    let lines = blocks("sh");
    let commands: Vec<&str> = lines.iter().flat_map(|line| line.split(';')).map(str::trim).collect();
    let mut tried = 0;
    for command in commands.iter().filter(|c| c.starts_with("prony ")) {
        let words = command.split('#').next().unwrap().split_whitespace().skip(1);
        // `--help` at the end: everything before it is parsed, nothing runs.
        let output = prony().args(words).arg("--help").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {}", support::stderr(&output));
        tried += 1;
    }
    assert!(tried >= 10, "{tried}");
    let wrong = prony().args(["bench", "--nosuch", "--help"]).output().unwrap();
    expect_code(&wrong, 2);
}

#[test]
fn the_first_two_commands_are_those_that_ci_runs_first() {
    let commands = &blocks("sh")[..2];
    assert_eq!(commands, ["cargo run --release -- bench", "cargo test --workspace"]);
    let ci = include_str!("../../../.ci/run").lines().filter(|line| line.starts_with("cargo "));
    for (command, line) in commands.iter().zip(ci) {
        assert!(line.starts_with(command), "{command}: {line}");
    }
}

#[test]
fn the_plan_file_is_a_plan_file() {
    let place = Place::new();
    let plan = place.path("prony.toml");
    fs::write(&plan, blocks("toml").join("\n")).unwrap();
    fs::create_dir(place.path("photos")).unwrap();
    let scene = prony_source::scenes::scene(prony_types::SceneKind::Rgb, 1, 0);
    fs::write(place.path("photos/a.png"), prony_source::png::encode_png(&scene.image).unwrap()).unwrap();
    fs::write(place.path("yolo.onnx"), prony_model::builtin(prony_types::SceneKind::Rgb)).unwrap();
    let output = prony().args(["bench", "--dry-run", "--plan"]).arg(&plan).output().unwrap();
    expect_code(&output, 0);
    assert!(stdout(&output).contains(", yolo and builtin-rgb on "), "{}", stdout(&output));
}
