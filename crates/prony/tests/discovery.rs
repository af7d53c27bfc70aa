//! The worker that opens one runtime: a job on its stdin, events on its stdout.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;

use prony_types::{DiscoverJob, Event, EventKind, FailureKind, Job, RuntimeName, WORKER_PROTOCOL};
use support::{Place, prony};

/// A script that is still open for writing in a process being started cannot be run.
static STARTING: Mutex<()> = Mutex::new(());

/// The last event of a worker that is asked what a file is.
fn ask(name: RuntimeName, path: &Path) -> EventKind {
    let job = Job::Discover(DiscoverJob { protocol: WORKER_PROTOCOL, name, path: path.to_owned() });
    let mut command = prony();
    command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = {
        let _alone = STARTING.lock().unwrap();
        command.spawn().unwrap()
    };
    let mut line = serde_json::to_vec(&job).unwrap();
    line.push(b'\n');
    child.stdin.take().unwrap().write_all(&line).unwrap();
    let output = child.wait_with_output().unwrap();
    let events: Vec<Event> =
        output.stdout.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert!(matches!(events[0].kind, EventKind::Started { .. }), "{events:?}");
    assert_eq!(events.len(), 2, "{events:?}");
    let answered = matches!(events[1].kind, EventKind::Discovered { .. });
    assert_eq!(output.status.code(), Some(if answered { 0 } else { 1 }));
    events[1].kind.clone()
}

#[track_caller]
fn refusal(name: RuntimeName, path: &Path) -> String {
    match ask(name, path) {
        EventKind::Failed { kind: FailureKind::Unsupported, message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_is_no_library_is_refused_by_the_loader_too() {
    let place = Place::new();
    let text = place.path("libonnxruntime.so");
    fs::write(&text, "hello\n").unwrap();
    let message = refusal(RuntimeName::Onnxruntime, &text);
    assert!(message.contains("file too short") || message.contains("invalid ELF header"), "{message}");
}

#[test]
fn a_program_is_asked_for_its_version() {
    let place = Place::new();
    let ffmpeg = place.path("ffmpeg");
    let write = |script: &str| {
        let _alone = STARTING.lock().unwrap();
        fs::write(&ffmpeg, script).unwrap();
        fs::set_permissions(&ffmpeg, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("#!/bin/sh\n[ \"$1\" = -version ] && echo 'ffmpeg version 7.0.2 Copyright'\n");
    let EventKind::Discovered { version, .. } = ask(RuntimeName::Ffmpeg, &ffmpeg) else { panic!("no answer") };
    assert_eq!(version.as_deref(), Some("7.0.2"));
    write("#!/bin/sh\necho 'error while loading shared libraries: libav.so.58' >&2\nexit 127\n");
    let message = refusal(RuntimeName::Ffmpeg, &ffmpeg);
    assert!(message.contains("libav.so.58") && message.contains("127"), "{message}");
}
