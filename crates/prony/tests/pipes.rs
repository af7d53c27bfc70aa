//! A reader that stops reading, as `head` does, ends nothing: the run goes on, and its exit code is its own.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs::File;
use std::io::{PipeReader, Read as _, pipe};
use std::process::{Command, ExitStatus, Stdio};

use prony_types::ExitCode;
use support::{Place, expect_code, prony, quick, stderr};

/// Which of its streams a command writes into the pipe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Closed {
    Stdout,
    Stderr,
    Both,
}

/// Runs a command with a pipe that is closed after `bytes` bytes were read from it; its exit status and its stderr where
/// that is not closed.
fn run_until_closed(mut command: Command, closed: Closed, bytes: usize) -> (ExitStatus, String) {
    let (mut reader, writer) = pipe().unwrap();
    match closed {
        Closed::Stdout => command.stdout(writer).stderr(Stdio::piped()),
        Closed::Stderr => command.stderr(writer).stdout(Stdio::null()),
        Closed::Both => command.stdout(writer.try_clone().unwrap()).stderr(writer),
    };
    let child = command.spawn().unwrap();
    // It holds the writing end.
    drop(command);
    read_some(&mut reader, bytes);
    drop(reader);
    let output = child.wait_with_output().unwrap();
    (output.status, stderr(&output))
}

fn read_some(reader: &mut PipeReader, bytes: usize) {
    let mut some = vec![0; bytes];
    reader.read_exact(&mut some).unwrap();
}

#[test]
fn a_bench_whose_reader_has_gone_still_ends_with_its_report() {
    for (closed, bytes) in [(Closed::Both, 60), (Closed::Stderr, 60), (Closed::Both, 0), (Closed::Stdout, 0)] {
        let place = Place::new();
        let bench = place.bench(&quick(&["builtin-thermal"]));
        let (status, _) = run_until_closed(bench, closed, bytes);
        assert_eq!(status.code(), Some(0), "{closed:?} after {bytes} bytes");
        assert_eq!(place.record().run.exit_code, Some(ExitCode::Ok));
        assert!(place.run().join("report.html").is_file());
    }
}

#[test]
fn no_command_panics_when_its_reader_has_gone() {
    let place = Place::new();
    let data = place.path("scenes");
    let data = data.to_str().unwrap();
    expect_code(&prony().args(["data", "synth", "--count", "3", data]).output().unwrap(), 0);
    let commands: [&[&str]; 15] = [
        &["--help"],
        &["bench", "--help"],
        &["--version"],
        &["inspect", "builtin-rgb"],
        &["inspect", "builtin-rgb", "--json", "--no-backends"],
        &["doctor"],
        &["data", "info", data],
        &["data", "info", data, "--json"],
        &["completions", "bash"],
        &["man"],
        &["runtime", "list"],
        &["cache", "list"],
        &["bench", "--dry-run"],
        &["compare-outputs", "builtin-rgb", "builtin-rgb", "--frames", "1"],
        &["run", "builtin-rgb", "--input", &format!("{data}/images/000000.png")],
    ];
    for args in commands {
        for closed in [Closed::Stdout, Closed::Both] {
            let mut command = prony();
            command.args(args).env("PRONY_HOME", place.path("home"));
            let (status, said) = run_until_closed(command, closed, 0);
            assert_eq!(status.code(), Some(0), "{args:?}, {closed:?}: {said}");
        }
    }
}

#[test]
fn an_error_that_nobody_can_read_keeps_its_exit_code() {
    for args in [&["bench", "--no-such-flag"][..], &["inspect", "missing.onnx"], &["runtime", "list", "more"]] {
        let mut command = prony();
        command.args(args);
        let (status, _) = run_until_closed(command, Closed::Stderr, 0);
        assert_eq!(status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_result_that_a_full_disk_swallows_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let place = Place::new();
    let output = prony().args(["completions", "bash"]).stdout(full()).output().unwrap();
    expect_code(&output, 1);
    assert!(stderr(&output).starts_with("error: cannot write to stdout: No space left"), "{}", stderr(&output));
    let output = place.bench(&quick(&["builtin-thermal", "--quiet"])).stdout(full()).output().unwrap();
    expect_code(&output, 1);
    assert!(place.run().join("report.html").is_file());
}
