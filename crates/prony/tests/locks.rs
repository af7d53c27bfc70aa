//! One measurement at a time on a machine: who is waited for, for how long, and what does not wait at all.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use prony_model::onnx::{GraphProto, ModelProto, NodeProto, ValueInfo};
use prony_standin::Standin;
use rustix::process::Signal;
use support::{
    Place, Running, at_home, engine_plan, expect_code, prony, quick, signal, stderr, stdout, until, write_model,
};

/// Only one of these tests at a time plays with the lock.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a run holds while it measures, held by this very process.
fn hold() -> UnixListener {
    let address = SocketAddr::from_abstract_name("prony.measuring").unwrap();
    until("the machine", || UnixListener::bind_addr(&address).ok())
}

/// Gave up with exit code 1, named this process, and says that nothing was measured.
#[track_caller]
fn gave_up(output: &Output, how: &str) {
    expect_code(output, 1);
    let said = stderr(output);
    assert!(said.contains("nothing was measured: the measuring lock of this machine is held by PID "), "{said}");
    assert!(said.contains(&format!("held by PID {} (", std::process::id())), "{said}");
    assert!(said.contains(", running since 20") && said.contains(how), "{said}");
    assert_eq!(stdout(output), "");
}

#[test]
fn whoever_bound_the_socket_blocked_every_run() {
    let _turn = turn();
    let _held = hold();
    let place = Place::new();
    gave_up(&place.bench(&quick(&["builtin-thermal", "--no-wait"])).output().unwrap(), "(--no-wait)");
    gave_up(&place.bench(&quick(&["builtin-thermal", "--no-wait", "--json"])).output().unwrap(), "(--no-wait)");
    let begun = Instant::now();
    let output = place.bench(&quick(&["builtin-thermal", "--wait", "400ms"])).output().unwrap();
    gave_up(&output, "--wait)");
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    assert!(stderr(&output).contains("waiting for the measuring lock of this machine, held by PID "));
    assert!(!place.runs().exists(), "a run folder was left");

    let output = place.bench(&quick(&["builtin-thermal", "--wait", "1s", "--no-wait"])).output().unwrap();
    expect_code(&output, 2);
}

#[test]
fn every_verb_that_times_has_a_limit() {
    for verb in ["bench", "eval", "build", "inspect", "run", "compare-outputs"] {
        let help = stdout(&prony().args([verb, "--help"]).output().unwrap());
        assert!(help.contains("--wait <TIME>") && help.contains("--no-wait"), "{verb}: {help}");
        assert!(help.contains("containers (network"), "{verb} does not say what is not seen");
    }
    let output = prony().args(["inspect", "builtin-rgb", "--no-wait"]).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("--no-wait is for engines"), "{}", stderr(&output));
}

#[test]
fn building_and_opening_engines_give_up_too() {
    let Some(standin) = Standin::new("10.3.0") else { return };
    let _turn = turn();
    let place = Place::new();
    let graph = GraphProto {
        node: vec![NodeProto::new("Add", &["x", "x"], &["y"], vec![])],
        name: "twice".into(),
        input: vec![ValueInfo::floats("x", &[1, 3])],
        output: vec![ValueInfo::floats("y", &[1, 3])],
        ..GraphProto::default()
    };
    let model = write_model(&place.path("twice.onnx"), &ModelProto::new(graph, &[]));
    fs::write(place.path("x.npy"), support::numpy::npy("<f4", &[1, 3], &[1.0; 3], f32::to_le_bytes)).unwrap();
    fs::write(place.path("x.engine"), engine_plan([10, 3, 0, 0])).unwrap();
    let with_tensorrt = |args: &[&str]| {
        let mut command = prony();
        command.current_dir(place.dir.path()).args(args).arg("--home").arg(place.path("home"));
        command.env("LD_LIBRARY_PATH", standin.folder());
        for (name, path) in [
            ("nvinfer", standin.library()),
            ("nvonnxparser", standin.parser()),
            ("nvinfer-plugin", standin.plugins()),
            ("cuda", standin.driver()),
        ] {
            command.arg("--library").arg(format!("{name}={}", path.display()));
        }
        command.output().unwrap()
    };
    let held = hold();
    let trt = ["--backend", "tensorrt"];
    gave_up(&with_tensorrt(&["build", &model, "--no-wait"]), "(--no-wait)");
    gave_up(&with_tensorrt(&["inspect", "x.engine", "--no-wait"]), "(--no-wait)");
    gave_up(&with_tensorrt(&[&["run", &model, "--input", "x.npy", "--wait", "0.2"], &trt[..]].concat()), "--wait)");
    let both = ["compare-outputs", &model, &model, "--backend-b", "tensorrt", "--no-wait"];
    gave_up(&with_tensorrt(&both), "(--no-wait)");

    // Once it is built, nothing is timed any more.
    drop(held);
    expect_code(&with_tensorrt(&[&["run", &model, "--input", "x.npy"], &trt[..]].concat()), 0);
    let _held = hold();
    expect_code(&with_tensorrt(&[&["run", &model, "--input", "x.npy", "--no-wait"], &trt[..]].concat()), 0);
}

#[test]
fn a_stopped_prony_blocked_every_run() {
    let _turn = turn();
    let first =
        Running::start(Place::new(), &["builtin-thermal", "--duration", "3", "--warmup", "0.1", "--frames", "8"]);
    first.first_round("builtin-thermal:rten:fp32");
    let pid = first.child.id();
    let second = Place::new();
    let attempt = |place: &Place| place.bench(&quick(&["builtin-thermal", "--no-wait"])).output().unwrap();
    let running = stderr(&attempt(&second));
    assert!(
        running.contains(&format!("held by PID {pid} (")) && running.contains(" bench builtin-thermal"),
        "{running}"
    );
    assert!(!running.contains("stopped"), "{running}");

    signal(pid, Signal::STOP);
    until("it to stop", || fs::read_to_string(format!("/proc/{pid}/status")).ok()?.contains("State:\tT").then_some(()));
    let output = attempt(&second);
    expect_code(&output, 1);
    let said = stderr(&output);
    assert!(said.contains(&format!("stopped: `kill -CONT {pid}` lets it continue")), "{said}");
    assert!(!second.runs().exists());

    // What waits hears of it, and goes on when the other ends.
    let mut waiting = second.bench(&quick(&["builtin-thermal", "--wait", "60"]));
    let mut waiting = waiting.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.next().unwrap().contains("stopped"));
    signal(pid, Signal::CONT);
    let next = lines.next().unwrap();
    assert!(next.starts_with("still waiting after ") && !next.contains("stopped"), "{next}");
    let rest: Vec<String> = lines.collect();
    assert_eq!(waiting.wait().unwrap().code(), Some(0), "{rest:?}");
    expect_code(&first.finish().0, 0);
}

#[test]
fn what_times_nothing_waited_for_the_machine() {
    let _turn = turn();
    let _held = hold();
    let place = Place::new();
    let at_home = |args: &[&str]| {
        let home = place.home(&[]).unwrap();
        let mut command = prony();
        // A wait would last for ever, and end in the test's own time limit.
        at_home(command.args(args).current_dir(place.dir.path()), &home).output().unwrap()
    };
    let scored = ["eval", "builtin-thermal", "--backends", "rten", "--data", "scenes", "--limit", "3"];
    let output = at_home(&scored);
    expect_code(&output, 0);
    assert!(!stderr(&output).contains("measuring lock"), "{}", stderr(&output));
    assert!(place.record().cells[0].accuracy.is_some());

    fs::write(place.path("x.engine"), engine_plan([8, 6, 0, 12])).unwrap();
    for (args, code) in [
        (&["inspect", "x.engine"][..], 0),
        (&["bench", "--dry-run", "--backends", "rten"], 0),
        (&["doctor"], 0),
        (&["build", "builtin-rgb"], 1),
    ] {
        let output = at_home(args);
        if args[0] == "build" && support::has_gpu() {
            continue;
        }
        expect_code(&output, code);
        assert!(!stderr(&output).contains("measuring lock"), "{args:?}: {}", stderr(&output));
    }
    // What cannot be measured is absent, and says who is in the way.
    let text = stdout(&at_home(&["inspect", "builtin-rgb"]));
    assert!(text.contains(&format!("held by PID {}", std::process::id())), "{text}");
}

#[test]
fn a_wait_that_is_given_up_leaves_an_earlier_run_as_it_was() {
    let _turn = turn();
    let place = Place::new();
    let mut first = Running::start(place, &["builtin-thermal", "--duration", "20", "--warmup", "0.1", "--frames", "8"]);
    first.first_round("builtin-thermal:rten:fp32");
    signal(first.child.id(), Signal::INT);
    expect_code(&Output { status: first.child.wait().unwrap(), stdout: vec![], stderr: vec![] }, 130);
    let Running { place, .. } = first;
    let run = place.run();
    let before = fs::read(run.join("report.json")).unwrap();
    let held = hold();
    let resume = |more: &[&str]| -> Command {
        let mut command = prony();
        command.args(["bench", "--resume"]).arg(&run).args(more);
        command
    };
    gave_up(&resume(&["--no-wait"]).output().unwrap(), "(--no-wait)");
    assert!(fs::read(run.join("report.json")).unwrap() == before);

    // Ctrl-C ends a wait without a limit.
    let mut waiting = resume(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waiting for the measuring lock"), "{line}");
    signal(waiting.id(), Signal::INT);
    expect_code(&waiting.wait_with_output().unwrap(), 130);
    assert!(fs::read(run.join("report.json")).unwrap() == before);
    drop(held);
}
