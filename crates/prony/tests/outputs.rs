//! Where an output goes: a regular file is replaced whole, a device or a pipe is written through, a user's link is followed, and
//! nothing else is touched.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

use prony_standin::impossible;
use support::{Place, SHORT, expect_code, fifo, prony, stderr, stdout};

/// A run to render.
fn run(place: &Place) -> PathBuf {
    place.bench(&[&["builtin-thermal"], &SHORT[..]].concat()).output().unwrap();
    place.run()
}

#[test]
fn a_report_replaced_dev_null_by_a_file() {
    let place = Place::new();
    let run = run(&place);
    // A /dev of our own, so that the test can fail without harm.
    let script = r#"
        mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/full c 1 7 &&
        ln -s /proc/self/fd /dev/fd && ln -s fd/1 /dev/stdout && ln -s fd/2 /dev/stderr && echo ready || exit 99
        "$PRONY" report "$RUN" -o /dev/null; echo null $?
        "$PRONY" report "$RUN" --format html -o /dev/full 2>&1; echo full $?
        "$PRONY" report "$RUN" --format md -o /dev/stdout | head -n 1; echo stdout $?
        "$PRONY" report "$RUN" --format md -o /dev/fd/7 7>"$PLACE/seven"; echo seven $?
        echo before > "$PLACE/log"; "$PRONY" report "$RUN" --format md -o /dev/stdout >> "$PLACE/log"
        "$PRONY" doctor -o /dev/null; echo doctor $?
        ls -l /dev
    "#;
    let program = prony().get_program().to_owned();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).env("PRONY", program).env("RUN", &run);
    let output = command.env("PLACE", place.dir.path()).env("PRONY_HOME", place.path("home")).output();
    let Some(output) = output.ok().filter(|output| stdout(output).starts_with("ready")) else {
        return impossible("a private mount namespace needs root");
    };
    let said = stdout(&output);
    let line = |words: &str| assert!(said.lines().any(|line| line.starts_with(words)), "{words}: {said}");
    line("null 0");
    line("full 1");
    line("stdout 0");
    line("seven 0");
    line("doctor 0");
    assert!(said.contains("No space left on device"), "{said}");
    for (device, kind) in [("null", 'c'), ("full", 'c'), ("stdout", 'l'), ("fd", 'l')] {
        let is = |line: &&str| line.starts_with(kind) && line.split(' ').any(|word| word == device);
        assert!(said.lines().any(|line| is(&line)), "/dev/{device} is not what it was: {said}");
    }
    let page = fs::read_to_string(place.path("seven")).unwrap();
    assert!(page.contains("builtin-thermal"), "{page}");
    assert!(said.contains(page.lines().next().unwrap()), "{said}");
    assert_eq!(fs::read_to_string(place.path("log")).unwrap(), format!("before\n{page}"));
}

#[test]
fn a_fifo_was_replaced_and_one_without_a_reader_waited() {
    let place = Place::new();
    let run = run(&place);
    let pipe = place.path("pipe");
    fifo(&pipe);
    let render = || prony().args(["report", "--format", "md"]).arg(&run).arg("-o").arg(&pipe).output().unwrap();
    let output = render();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("is a FIFO that nobody reads"), "{}", stderr(&output));
    let from = pipe.clone();
    let reader = std::thread::spawn(move || {
        let mut page = String::new();
        File::open(from).unwrap().read_to_string(&mut page).map(|_| page).unwrap()
    });
    while render().status.code() != Some(0) {}
    assert!(reader.join().unwrap().contains("builtin-thermal"));
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn folders_and_sockets_are_refused_by_every_command_that_writes() {
    let place = Place::new();
    let run = run(&place);
    let run = run.to_str().unwrap();
    let frame = place.path("scenes/images/000000.png");
    let frame = frame.to_str().unwrap();
    let synth = ["data", "synth", "--kind", "thermal", "--count", "1"];
    expect_code(&prony().args(synth).arg(place.path("scenes")).output().unwrap(), 0);
    fs::create_dir(place.path("folder.onnx")).unwrap();
    fs::create_dir(place.path("folder.npz")).unwrap();
    for name in ["socket.onnx", "socket.npz"] {
        UnixListener::bind(place.path(name)).unwrap();
    }
    let commands: [(&[&str], &str); 4] = [
        (&["report", run, "--format", "html", "-o"], "onnx"),
        (&["doctor", "-o"], "onnx"),
        (&["convert", "builtin-rgb", "--precision", "fp16", "-o"], "onnx"),
        (&["run", "builtin-thermal", "--backend", "rten", "--input", frame, "--output"], "npz"),
    ];
    let before = fs::read_dir(place.dir.path()).unwrap().count();
    for (args, ending) in commands {
        for what in ["folder", "socket"] {
            let path = place.path(&format!("{what}.{ending}"));
            let output = prony().args(args).arg(&path).env("PRONY_HOME", place.path("runs/home")).output().unwrap();
            assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}, {what}: {}", stderr(&output));
            assert!(stderr(&output).contains(&format!("is a {what}")), "{args:?}: {}", stderr(&output));
        }
    }
    assert!(fs::symlink_metadata(place.path("socket.onnx")).unwrap().file_type().is_socket());
    let after = fs::read_dir(place.dir.path()).unwrap().count();
    assert!(after <= before + 1, "something was left over");
}

#[test]
fn a_users_link_was_replaced_instead_of_followed() {
    let place = Place::new();
    let run = run(&place);
    fs::write(place.path("page.html"), "old").unwrap();
    symlink("page.html", place.path("latest.html")).unwrap();
    let args = ["report", "--format", "html", "-o"];
    let output = prony().args(args).arg(place.path("latest.html")).arg(&run).output().unwrap();
    expect_code(&output, 0);
    assert!(fs::symlink_metadata(place.path("latest.html")).unwrap().is_symlink());
    assert!(fs::read_to_string(place.path("page.html")).unwrap().starts_with("<!"));
}

#[test]
fn a_full_disk_under_a_result_was_bad_input() {
    let place = Place::new();
    let run = run(&place);
    let run = run.to_str().unwrap();
    let frame = place.path("scenes/images/000000.png");
    let frame = frame.to_str().unwrap();
    let synth = ["data", "synth", "--kind", "thermal", "--count", "1"];
    expect_code(&prony().args(synth).arg(place.path("scenes")).output().unwrap(), 0);
    let commands: [(&[&str], &str); 4] = [
        (&["report", run, "--format", "html", "-o"], "html"),
        (&["doctor", "-o"], "txt"),
        (&["convert", "builtin-thermal", "--precision", "fp16", "-o"], "onnx"),
        (&["run", "builtin-thermal", "--backend", "rten", "--input", frame, "--output"], "npz"),
    ];
    for (args, ending) in commands {
        // What ran has run: it is a failure that nothing of it was kept. A place that is none was never going to work.
        let full = place.path(&format!("full.{ending}"));
        symlink("/dev/full", &full).unwrap();
        for (path, code, reason) in
            [(full, 1, "No space left"), (place.path(&format!("nowhere/x.{ending}")), 2, "nowhere")]
        {
            let output = prony().args(args).arg(&path).env("PRONY_HOME", place.path("runs/home")).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(reason), "{args:?}: {}", stderr(&output));
        }
    }
}
