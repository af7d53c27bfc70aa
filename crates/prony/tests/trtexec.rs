//! A cell that trtexec measures, in a real worker. The program is a stand-in: no machine with a real one was at hand.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use prony_bench::{RingReader, Shared};
use prony_model::sha256_hex;
use prony_types::{
    ArtifactSpec, BackendName, CellSpec, Command, Event, EventKind, FailureKind, InputSpec, Job, MeasureJob,
    ModelSource, ModelSpec, Phase, PostSpec, Precision, RuntimeSpec, Sample, SourceSpec, WORKER_PROTOCOL,
};
use support::{Place, prony};

/// Prints what the version prints and writes ten times, of 2 ms with transfers or 1.5 ms without.
fn stand_in(path: &Path, version: &str, entry: &str, ending: &str) {
    let script = format!(
        "#!/bin/sh
echo '&&&& RUNNING TensorRT.trtexec [TensorRT v{version}] # trtexec'
for word in \"$@\"; do
  case $word in
    --help) echo '--loadEngine --exportTimes --warmUp --duration --iterations --plugins'; exit 0 ;;
    --exportTimes=*) times=${{word#--exportTimes=}} ;;
    --warmUp=*) warm=${{word#--warmUp=}} ;;
  esac
done
echo '[11/15/2026-10:00:00] [I] Engine deserialized in 0.025 sec.'
echo '[11/15/2026-10:00:00] [I] Created input binding for images with dimensions 1x3x320x320'
echo '[11/15/2026-10:00:00] [I] Throughput: 400 qps'
{{ printf '['; for i in 1 2 3 4 5 6 7 8 9 10; do
  at=$((warm + i * 10)); printf '%s{entry}' \"$comma\"; comma=','; done; echo ']'; }} > \"$times\"
{ending}
"
    );
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

const WITH_TRANSFERS: &str = r#"{"startH2dMs": '$at', "startComputeMs": '$at', "endComputeMs": '$at'.5, "endD2hMs": '$at'.5, "h2dMs": 0.25, "computeMs": 1.5, "d2hMs": 0.25, "latencyMs": 2}"#;
const WITHOUT: &str = r#"{"startH2dMs": '$at', "startComputeMs": '$at', "endComputeMs": '$at'.5, "endD2hMs": '$at'.5, "h2dMs": 0, "computeMs": 1.5, "d2hMs": 0, "latencyMs": 1.5}"#;

/// A worker with a job, seen from a parent.
struct Worker {
    child: Child,
    orders: ChildStdin,
    events: BufReader<ChildStdout>,
    ring: RingReader,
}

impl Worker {
    fn start(place: &Place) -> Worker {
        Worker::start_with(place, |_| ())
    }

    fn start_with(place: &Place, adjust: impl FnOnce(&mut CellSpec)) -> Worker {
        let mut plan = vec![0x5a; 256];
        plan[..8].copy_from_slice(b"ftrt\0\0\0\0");
        let engine = place.path("a.engine");
        fs::write(&engine, &plan).unwrap();
        let model = ModelSpec::new("a", ModelSource::File(engine), sha256_hex(&plan));
        let mut cell = CellSpec {
            runtime: Some(RuntimeSpec::new(place.path("trtexec"), "10.3.0")),
            ..CellSpec::new(model, BackendName::Trtexec, Precision::Native)
        };
        adjust(&mut cell);
        let shared = Shared::create().unwrap();
        let job = Job::Measure(MeasureJob {
            protocol: WORKER_PROTOCOL,
            cell,
            slot: 0,
            input: InputSpec { source: SourceSpec::Scenes, seed: 7, frames: 32 },
            post: PostSpec { conf: 0.25, iou: 0.45, max_det: 300, multi_label: false },
            warmup_s: None,
            folder: place.dir.path().to_owned(),
            ring_fd: shared.raw_fd(),
            fault: None,
        });
        let log = fs::File::create(place.path("worker.log")).unwrap();
        let mut command = prony();
        let mut child = command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let ring = shared.reader().unwrap();
        let (orders, events) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut worker = Worker { child, orders, events, ring };
        worker.tell(&job);
        worker
    }

    fn tell(&mut self, message: &impl serde::Serialize) {
        // A worker that has failed takes no orders.
        let _ = writeln!(self.orders, "{}", serde_json::to_string(message).unwrap());
    }

    fn event(&mut self) -> EventKind {
        let mut line = String::new();
        self.events.read_line(&mut line).unwrap();
        serde_json::from_str::<Event>(&line).unwrap().kind
    }

    /// What it says to an order.
    fn order(&mut self, command: &Command) -> EventKind {
        self.tell(command);
        self.event()
    }

    fn samples(&mut self) -> Vec<Sample> {
        let mut samples = Vec::new();
        self.ring.drain(&mut samples);
        samples
    }
}

fn worker(version: &str, entry: &str, ending: &str) -> (Place, Worker) {
    let place = Place::new();
    stand_in(&place.path("trtexec"), version, entry, ending);
    let worker = Worker::start(&place);
    (place, worker)
}

#[test]
fn a_cell_goes_its_way_and_says_whose_figures_these_are() {
    let (place, mut worker) = worker("100300", WITH_TRANSFERS, "");
    assert!(matches!(worker.event(), EventKind::Started { .. }));
    let EventKind::Loaded { load_ms, backend, inputs, executed, .. } = worker.event() else { panic!("not loaded") };
    assert!((load_ms - 25.0).abs() < 1e-6);
    assert_eq!((backend.name.as_str(), backend.version.as_deref()), ("trtexec", Some("10.3.0")));
    let settings = backend.settings.join("\n");
    assert!(settings.contains("h2d + GPU compute + d2h") && settings.contains("transfers: included"), "{settings}");
    assert_eq!((inputs[0].name.as_str(), &inputs[0].shape[..]), ("images", &[1, 3, 320, 320][..]));
    assert_eq!(executed, "native as built");
    assert!(matches!(worker.event(), EventKind::Cold { .. }));
    assert!(matches!(worker.event(), EventKind::Frames { .. }));
    assert!(matches!(worker.order(&Command::WarmUp), EventKind::Steady { samples: 10, settled: true, .. }));
    let round = Command::Round { round: 1, seconds: 0.5, max_samples: Some(4) };
    assert!(matches!(worker.order(&round), EventKind::RoundDone { round: 1, samples: 4, .. }));
    let EventKind::Throughput { frames, seconds, in_flight } = worker.order(&Command::Throughput { seconds: 0.5 })
    else {
        panic!("no throughput")
    };
    assert_eq!((frames, in_flight), (10, 2));
    assert!((frames as f64 / seconds - 400.0).abs() < 1e-6, "its own throughput: {frames} in {seconds}");
    assert!(matches!(worker.order(&Command::Finish { reference: None }), EventKind::Finished { .. }));
    let samples = worker.samples();
    let of = |phase| samples.iter().filter(|sample| sample.phase == phase).count();
    let counts = [Phase::Cold, Phase::Warmup, Phase::Steady, Phase::Throughput].map(of);
    assert_eq!(counts, [1, 10, 4, 10]);
    assert!(samples.iter().all(|sample| sample.total_ns == 2_000_000 && sample.parts_ns[1] == Some(250_000)));
    assert!(worker.child.wait().unwrap().success());
    assert!(place.path("trtexec.log").exists() && !place.path("trtexec-times.json").exists());
}

#[test]
fn version_11_has_no_transfers_and_says_so() {
    let (_place, mut worker) = worker("110000", WITHOUT, "");
    worker.event();
    let EventKind::Loaded { backend, .. } = worker.event() else { panic!("not loaded") };
    assert!(backend.settings.join("\n").contains("transfers: not included"), "{backend:?}");
    worker.event();
    worker.event();
    let samples = worker.samples();
    assert_eq!(samples[0].parts_ns, [None, None, Some(1_500_000), None, None]);
    drop(worker.orders);
    assert!(!worker.child.wait().unwrap().success());
}

#[test]
fn a_program_that_fails_ends_the_cell_with_its_own_words() {
    for (ending, expected) in [
        ("echo '[11/15/2026-10:00:00] [E] Engine deserialization failed'; exit 1", "Engine deserialization failed"),
        ("kill -ABRT $$", "was killed by signal 6"),
        ("rm \"$times\"", "wrote no times"),
        ("echo nonsense > \"$times\"", "no such list"),
    ] {
        let (_place, mut worker) = worker("8601", WITH_TRANSFERS, ending);
        worker.event();
        let EventKind::Failed { kind, message, .. } = worker.event() else { panic!("{ending}: no failure") };
        assert_eq!(kind, FailureKind::Runtime);
        assert!(message.contains(expected) && message.lines().count() == 1, "{message}");
        assert!(!worker.child.wait().unwrap().success());
    }
}

#[test]
fn a_program_does_not_outlive_its_worker() {
    let place = Place::new();
    let pid_file = place.path("pid");
    stand_in(
        &place.path("trtexec"),
        "100300",
        WITH_TRANSFERS,
        &format!("echo $$ > {}; exec sleep 600", pid_file.display()),
    );
    let mut worker = Worker::start(&place);
    let pid: u32 = support::until("the program", || fs::read_to_string(&pid_file).ok()?.trim().parse().ok());
    let alive = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(alive());
    // No chance to clean up.
    worker.child.kill().unwrap();
    worker.child.wait().unwrap();
    support::until("its end", || (!alive()).then_some(()));
}

#[test]
fn an_engine_of_another_tensorrt_is_refused_unless_forced() {
    let sidecar = r#"{"schema": "prony.engine/1", "tensorrt": "10.7.0"}"#;
    for force in [false, true] {
        let place = Place::new();
        stand_in(&place.path("trtexec"), "100300", WITH_TRANSFERS, "");
        fs::write(place.path("a.engine.json"), sidecar).unwrap();
        let mut worker = Worker::start_with(&place, |cell| cell.provider.force_engine = force);
        worker.event();
        match worker.event() {
            EventKind::Loaded { .. } => assert!(force),
            EventKind::Failed { kind, message, .. } => {
                assert!(!force, "{message}");
                assert_eq!(kind, FailureKind::Model);
                assert!(message.contains("TensorRT 10.7.0") && message.contains("TensorRT 10.3.0"), "{message}");
            }
            other => panic!("{other:?}"),
        }
        drop(worker.orders);
        worker.child.wait().unwrap();
    }
}

#[test]
fn an_engine_that_is_not_the_one_that_was_built_is_not_timed() {
    let place = Place::new();
    stand_in(&place.path("trtexec"), "100300", WITH_TRANSFERS, "");
    let artifact = ArtifactSpec { path: place.path("a.engine"), sha256: "0".repeat(64), from_cache: true };
    let mut worker = Worker::start_with(&place, |cell| cell.artifact = Some(artifact));
    worker.event();
    let EventKind::Failed { kind, message, .. } = worker.event() else { panic!("no failure") };
    assert_eq!(kind, FailureKind::Model);
    assert!(message.contains("is not what was made"), "{message}");
    worker.child.wait().unwrap();
}
