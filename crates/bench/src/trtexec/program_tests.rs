//! A stand-in for the program: what is tested is how a process is asked, watched and understood.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// As it is: this binary cannot become another.
fn start(path: &Path) -> Command {
    Command::new(path)
}

#[derive(Default)]
struct Quiet {
    beats: AtomicU32,
    stop: bool,
}

impl Watch for Quiet {
    fn alive(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    fn stop(&self) -> bool {
        self.stop
    }
}

/// A program that prints a banner and knows its options; then `rest` is done with the file of times in `$times`.
fn stand_in(folder: &Path, rest: &str) -> PathBuf {
    let path = folder.join("trtexec");
    let script = format!(
        "#!/bin/sh
echo '&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec'
for word in \"$@\"; do
  case $word in
    --help) echo '--loadEngine --exportTimes --warmUp --duration --iterations --staticPlugins'; exit 0 ;;
    --exportTimes=*) times=${{word#--exportTimes=}} ;;
    --loadEngine=*) engine=${{word#--loadEngine=}} ;;
  esac
done
{rest}
"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn plan() -> Vec<u8> {
    let mut bytes = vec![0x5a; 256];
    bytes[..8].copy_from_slice(b"ftrt\0\0\0\0");
    bytes
}

fn engine(folder: &Path, header: &str) -> PathBuf {
    let path = folder.join("a.engine");
    let length = u32::try_from(header.len()).unwrap().to_le_bytes();
    let whole = if header.is_empty() { plan() } else { [&length[..], header.as_bytes(), &plan()].concat() };
    fs::write(&path, whole).unwrap();
    path
}

const ASKED: Asked = Asked { warm_up_ms: 0, seconds: 0.5, queries: None };
const TIMES: &str = r#"echo '[{"startComputeMs": 1, "endComputeMs": 3, "latencyMs": 2}]' > "$times""#;

fn program(folder: &Path, rest: &str) -> Result<Program, String> {
    let path = stand_in(folder, rest);
    let engine = EngineArgument::new(&engine(folder, ""), folder).unwrap();
    Program::find(&path, start, engine, folder, &Quiet::default())
}

fn outcome(rest: &str) -> Result<Option<Ran>, String> {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), rest).unwrap().run(ASKED, &Quiet::default())
}

#[test]
fn a_run_gives_its_times_and_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), &format!("echo '[I] Throughput: 500 qps'\n{TIMES}")).unwrap();
    assert_eq!(program.version.to_string(), "10.3.0");
    assert_eq!(program.generation, Generation::V10);
    let ran = program.run(ASKED, &Quiet::default()).unwrap().unwrap();
    assert_eq!((ran.queries.len(), ran.queries[0].latency_ms), (1, 2.0));
    assert_eq!(ran.printed.throughput_qps, Some(500.0));
    assert!(!program.times_file().exists(), "nothing is left behind");
    let log = fs::read_to_string(folder.path().join("trtexec.log")).unwrap();
    assert_eq!(log.matches("RUNNING").count(), 2, "the question and the run are on record: {log}");
}

#[test]
fn it_is_told_what_to_do_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = program(folder.path(), "").unwrap();
    program.shapes = Some("images:2x3x320x320".into());
    program.plugins = vec!["/p/libmine.so".into()];
    program.device = 1;
    program.dla_core = Some(0);
    let words = program.arguments(Asked { warm_up_ms: 200, seconds: 0.5, queries: None }).join(" ");
    for expected in [
        "--warmUp=200 --duration=0.5 --iterations=1 ",
        "--shapes=images:2x3x320x320 --device=1 --useDLACore=0 --staticPlugins=/p/libmine.so",
        "a.engine",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    let counted = program.arguments(Asked { warm_up_ms: 0, seconds: 9.0, queries: Some(30) }).join(" ");
    assert!(counted.contains("--duration=0 --iterations=30 "), "{counted}");
}

#[test]
fn every_way_to_fail_has_its_words() {
    for (rest, expected) in [
        (
            "echo '[E] Engine deserialization failed'; exit 1",
            "trtexec ended with status 1: Engine deserialization failed",
        ),
        ("kill -SEGV $$", "trtexec was killed by signal 11"),
        ("exit 0", "wrote no times"),
        ("echo hello > \"$times\"", "its times are no such list"),
        ("echo '[]' > \"$times\"", "not a single query"),
    ] {
        let error = outcome(rest).unwrap_err();
        assert!(error.contains(expected) && error.lines().count() == 1, "{rest}: {error}");
    }
}

#[test]
fn what_is_no_trtexec_is_found_out_before_anything_is_timed() {
    let folder = tempfile::tempdir().unwrap();
    let find = |path: &Path| {
        let engine = EngineArgument::new(&engine(folder.path(), ""), folder.path()).unwrap();
        Program::find(path, start, engine, folder.path(), &Quiet::default()).err().unwrap()
    };
    let error = find(Path::new("/bin/true"));
    assert_eq!(error, "/bin/true does not say which trtexec it is (ended with status 0)");
    assert!(find(Path::new("/nonexistent/trtexec")).contains("cannot be run"));
    let path = stand_in(folder.path(), "");
    let old = fs::read_to_string(&path).unwrap();
    fs::write(&path, old.replace("--exportTimes --warmUp", "--warmUp")).unwrap();
    assert!(find(&path).starts_with("trtexec 10.3.0 does not know --exportTimes"));
    fs::write(&path, old.replace("v100300", "v120000")).unwrap();
    assert!(find(&path).starts_with("trtexec 12.0.0 is not known"));
}

#[test]
fn one_that_is_to_stop_is_ended_and_one_that_speaks_is_alive() {
    let folder = tempfile::tempdir().unwrap();
    let program =
        program(folder.path(), &format!("{TIMES}\nif [ -e \"$times.wait\" ]; then exec sleep 600; fi")).unwrap();
    let watch = Quiet::default();
    program.run(ASKED, &watch).unwrap().unwrap();
    assert!(watch.beats.load(Ordering::Relaxed) > 0);
    fs::write(folder.path().join("trtexec-times.json.wait"), "").unwrap();
    let stopped = program.run(ASKED, &Quiet { stop: true, ..Quiet::default() }).unwrap();
    assert!(stopped.is_none());
}

#[test]
fn a_header_is_taken_off_without_leaving_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = stand_in(folder.path(), &format!("cat \"$engine\" > \"$times.seen\"\n{TIMES}"));
    let file = engine(folder.path(), "{\"task\": \"detect\"}");
    let before = fs::read_dir(folder.path()).unwrap().count();
    let argument = EngineArgument::new(&file, folder.path()).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before);
    let program = Program::find(&path, start, argument, folder.path(), &Quiet::default()).unwrap();
    program.run(ASKED, &Quiet::default()).unwrap().unwrap();
    assert_eq!(fs::read(folder.path().join("trtexec-times.json.seen")).unwrap(), plan());
    let other = folder.path().join("a.onnx");
    fs::write(&other, prony_model::builtin(prony_types::SceneKind::Rgb)).unwrap();
    assert!(EngineArgument::new(&other, folder.path()).err().unwrap().ends_with("is no engine"));
}
