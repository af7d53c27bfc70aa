//! The cache with several processes: one makes, the other waits; one dies, the other goes on.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use prony_forge::{Cache, FreshEngine, Recipe, SourceModel};
use prony_types::{EngineIdentity, EngineSpec, Precision};

const FOLDER: &str = "PRONY_TEST_FORGE_FOLDER";
const ORIGIN: SourceModel<'static> = SourceModel { model: "tiny", onnx_bytes: 1, prony: "test" };

fn recipe() -> Recipe {
    let identity = EngineIdentity { tensorrt: "8.6.0".into(), ..EngineIdentity::default() };
    let (onnx_sha256, engine) = ("0".repeat(64), EngineSpec::new(Precision::Fp16));
    Recipe {
        onnx_sha256,
        weights: BTreeMap::new(),
        engine,
        calibration_sha256: None,
        float_tail: None,
        identity,
        plugins: BTreeMap::new(),
        gpu_mem_limit_bytes: None,
    }
}

fn until(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Makes the engine as soon as the file `go` is there; says with files what it is at.
fn work(folder: &Path) {
    let cache = Cache::at(folder.join("engines"));
    let mut waiting = || fs::write(folder.join(format!("waiting-{}", std::process::id())), b"").unwrap();
    let make = || {
        fs::write(folder.join(format!("making-{}", std::process::id())), b"").unwrap();
        until("the word to go on", || folder.join("go").exists());
        Ok(FreshEngine { bytes: b"an engine".to_vec(), build_s: 1.0, ..FreshEngine::default() })
    };
    let kept = cache.get_or_make(&recipe(), ORIGIN, false, &mut waiting, make).unwrap();
    assert_eq!(fs::read(kept.path).unwrap(), b"an engine");
    let word = if kept.from_cache { "hit" } else { "made" };
    fs::write(folder.join(format!("{word}-{}", std::process::id())), b"").unwrap();
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn other_process() {
    work(&PathBuf::from(std::env::var_os(FOLDER).expect("started by a test of this file")));
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "other_process"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn has(folder: &Path, word: &str, child: &Child) -> bool {
    folder.join(format!("{word}-{}", child.id())).exists()
}

#[test]
fn the_second_process_waits_and_then_hits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut first = start(folder);
    until("the first to build", || has(folder, "making", &first));
    let mut second = start(folder);
    until("the second to wait", || has(folder, "waiting", &second));
    fs::write(folder.join("go"), b"").unwrap();
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    assert!(has(folder, "made", &first) && has(folder, "hit", &second));
    assert!(!has(folder, "making", &second));
}

#[test]
fn a_killed_holder_frees_the_lock_and_leaves_no_half_engine() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut first = start(folder);
    until("the first to build", || has(folder, "making", &first));
    // As if it had died in the middle of writing.
    let half = folder.join(format!("engines/.{}.engine.dead.tmp", recipe().key().unwrap()));
    fs::write(&half, b"an eng").unwrap();
    let mut second = start(folder);
    until("the second to wait", || has(folder, "waiting", &second));
    first.kill().unwrap();
    first.wait().unwrap();
    until("the second to build", || has(folder, "making", &second));
    fs::write(folder.join("go"), b"").unwrap();
    assert!(second.wait().unwrap().success());
    assert!(has(folder, "made", &second) && !has(folder, "made", &first));
    assert!(!half.exists());
    let entries = Cache::at(folder.join("engines")).verify(&mut |_| {});
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].problem, None);
}
