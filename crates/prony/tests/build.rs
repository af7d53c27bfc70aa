//! `prony build` and `prony cache` with libraries that stand in for TensorRT and the driver: the real code to the last
//! call, without a GPU.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use prony_standin::Standin;
use prony_standin::onnx::Model;
use serde_json::Value;
use support::{expect_code, prony, stderr, stdout};
use tempfile::TempDir;

/// A TensorRT, a model and a home.
struct Site {
    standin: Standin,
    dir: TempDir,
}

impl Site {
    fn new(version: &str) -> Option<Site> {
        let site = Site { standin: Standin::new(version)?, dir: tempfile::tempdir().unwrap() };
        fs::write(site.path("tiny.onnx"), Model::detector().bytes()).unwrap();
        Some(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("home/cache/artifacts")
    }

    /// `prony VERB …` at home here.
    fn prony(&self, args: &[&str]) -> Command {
        let mut command = prony();
        command.args(args).arg("--home").arg(self.path("home")).env("LD_LIBRARY_PATH", self.standin.folder());
        command
    }

    fn build(&self, args: &[&str]) -> Command {
        self.on_model("build", self.path("tiny.onnx").to_str().unwrap(), args)
    }

    /// A bench of a built-in model on TensorRT alone, its run folder here.
    fn bench(&self, args: &[&str]) -> Command {
        let runs = self.path("runs");
        let own = ["--backends", "tensorrt", "--duration", "0.2", "--warmup", "0.05", "--out", runs.to_str().unwrap()];
        self.on_model("bench", "builtin-rgb", &[&own, args].concat())
    }

    fn on_model(&self, verb: &str, model: &str, args: &[&str]) -> Command {
        self.with_libraries(self.prony(&[&[verb, model], args].concat()))
    }

    /// A command that is told where the libraries are.
    fn with_libraries(&self, mut command: Command) -> Command {
        for (name, path) in [
            ("nvinfer", self.standin.library()),
            ("nvonnxparser", self.standin.parser()),
            ("nvinfer-plugin", self.standin.plugins()),
            ("cuda", self.standin.driver()),
        ] {
            command.arg("--library").arg(format!("{name}={}", path.display()));
        }
        command
    }

    /// The engines of a build, as JSON.
    fn built(&self, args: &[&str]) -> Vec<Value> {
        let output = self.build(&[args, &["--json"]].concat()).output().unwrap();
        expect_code(&output, 0);
        engines(&output)
    }
}

fn engines(output: &Output) -> Vec<Value> {
    let all: Value = serde_json::from_str(&stdout(output)).unwrap();
    assert_eq!(all["schema"], "prony.build/1");
    all["engines"].as_array().unwrap().clone()
}

fn sidecar(engine: &Value) -> Value {
    let path = format!("{}.json", engine["engine"].as_str().unwrap());
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

const INT8: [&str; 4] = ["--calibration", "scenes", "--calibration-frames", "4"];

#[test]
fn an_int8_engine_says_how_many_frames_it_was_calibrated_on() {
    let Some(site) = Site::new("10.3.0") else { return };
    let set = site.path("set");
    expect_code(&prony().args(["data", "synth", "--count", "2"]).arg(&set).output().unwrap(), 0);
    let images = set.join("images").display().to_string();
    // The second engine takes its ranges from the cache, and with them what is known about them.
    for (level, from) in [("0", "int8 ranges from 2 frames"), ("1", "from the calibration cache, found on 2 frames")] {
        let args =
            ["--precision", "int8", "--calibration", &images, "--calibration-frames", "64", "--opt-level", level];
        let notes = site.built(&args)[0]["notes"].to_string();
        assert!(notes.contains(from), "{notes}");
        let few = "warning: only 2 of the 64 requested calibration frames were available";
        assert!(notes.contains(few), "{notes}");
    }
}

#[test]
fn engines_are_built_once_and_then_found() {
    for version in ["8.4.3", "8.6.1", "10.3.0"] {
        let Some(site) = Site::new(version) else { return };
        let args = [&["--precision", "fp32,fp16,int8"][..], &INT8].concat();
        let first = site.built(&args);
        assert_eq!(first.len(), 3);
        for (engine, layers) in first.iter().zip(["Float", "Half", "Int8"]) {
            assert_eq!((&engine["status"], &engine["from_cache"]), (&"completed".into(), &false.into()), "{engine}");
            assert_eq!(engine["rebuilt_because"], Value::Null, "{engine}");
            let text = String::from_utf8_lossy(&fs::read(engine["engine"].as_str().unwrap()).unwrap()).into_owned();
            assert!(text.contains(&format!("layer\t/conv\tConv\t{layers}\n")), "{version}: {text}");
            assert!(text.contains("detailed\t1"), "the inspector can prove it: {text}");
        }
        let facts = sidecar(&first[2]);
        assert_eq!((&facts["schema"], &facts["tensorrt"]), (&"prony.engine/1".into(), &version.into()));
        assert_eq!((&facts["gpu"], &facts["sm_count"]), (&"Stand-in GPU".into(), &16.into()));
        assert_eq!((&facts["compute_capability"], &facts["cuda"]), (&"8.6".into(), &"12.4".into()));
        assert_eq!(facts["engine"]["calibration"]["frames"], 4);
        assert!(facts["host_peak_bytes"].as_u64().unwrap() > 0, "{facts}");
        assert!(facts["host_available_low_bytes"].as_u64().unwrap() > 0, "{facts}");
        assert!(facts["notes"].to_string().contains("int8 ranges from 4 frames"), "{facts}");
        let second = site.built(&args);
        assert!(second.iter().all(|engine| engine["from_cache"] == true), "{second:?}");
        assert_eq!(second[1]["sha256"], first[1]["sha256"]);
        assert_eq!(site.standin.complaints(), [""; 0], "{version}");
        let names: Vec<String> =
            fs::read_dir(site.cache()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.contains(&format!("timing-stand-in-gpu-{version}.cache")), "{names:?}");
        assert!(names.iter().any(|name| name.starts_with("calibration-")), "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with(".lock") || name.ends_with(".tmp")), "{names:?}");
    }
}

#[test]
fn what_changed_is_the_reason() {
    let Some(site) = Site::new("10.3.0") else { return };
    site.built(&[]);
    site.standin.set("driver", "12020");
    let again = site.built(&[]);
    assert_eq!(again[0]["rebuilt_because"], "CUDA 12.4 -> 12.2");
    let engine = PathBuf::from(again[0]["engine"].as_str().unwrap());
    let whole = fs::read(&engine).unwrap();
    fs::write(&engine, &whole[..whole.len() / 2]).unwrap();
    let because = site.built(&[])[0]["rebuilt_because"].to_string();
    assert!(because.contains("the engine was truncated: "), "{because}");
    let mut tampered = whole.clone();
    tampered[10] ^= 1;
    fs::write(&engine, &tampered).unwrap();
    let because = site.built(&[])[0]["rebuilt_because"].to_string();
    assert!(because.contains("the engine was tampered with: its hash is"), "{because}");
    assert_eq!(fs::read(&engine).unwrap(), whole);
    assert_eq!(site.built(&["--rebuild"])[0]["rebuilt_because"], "it was asked for");
}

#[test]
fn eleven_builds_what_the_graph_carries() {
    let Some(site) = Site::new("11.1.0") else { return };
    let output = site.build(&["--precision", "fp32,fp16", "--json"]).output().unwrap();
    expect_code(&output, 1);
    let engines = engines(&output);
    assert_eq!(engines[0]["status"], "completed", "{engines:?}");
    assert_eq!(engines[1]["status"], "skipped");
    let reason = engines[1]["reason"].as_str().unwrap();
    assert!(reason.contains("this file is fp32: fp16 needs an fp16 ONNX"), "{reason}");
}

#[test]
fn what_cannot_be_had_here_is_skipped_with_its_reason() {
    let Some(site) = Site::new("8.6.1") else { return };
    let output = site.build(&["--precision", "bf16,fp8,nvfp4,fp32"]).output().unwrap();
    expect_code(&output, 1);
    let text = stdout(&output);
    assert!(text.contains("bf16   tiny: skipped: bf16 needs TensorRT 10.0.0 and this is 8.6.1"), "{text}");
    assert!(text.contains("fp8    tiny: skipped: fp8 needs a GPU of compute capability 8.9"), "{text}");
    assert!(text.contains("nvfp4  tiny: skipped: nvfp4 needs a GPU of compute capability 10.0"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("fp32 ") && line.ends_with("  built")), "{text}");
    let dla = site.build(&["--precision", "fp16", "--dla-core", "7"]).output().unwrap();
    expect_code(&dla, 1);
    assert!(stdout(&dla).contains("--dla-core 7: this device has"), "{}", stdout(&dla));
}

#[test]
fn a_node_that_is_not_understood_is_named() {
    let Some(site) = Site::new("10.3.0") else { return };
    let model = Model::detector().node("/odd", "Odd", "mine");
    fs::write(site.path("tiny.onnx"), model.bytes()).unwrap();
    let output = site.build(&[]).output().unwrap();
    expect_code(&output, 2);
    let text = stdout(&output);
    assert!(text.contains("tiny: failed: tiny: the ONNX parser refused the model") && text.contains("/odd"), "{text}");
    assert_eq!(site.standin.complaints(), [""; 0]);
}

#[test]
fn failures_of_build_and_memory_are_named_and_nothing_is_kept() {
    let Some(site) = Site::new("8.6.1") else { return };
    site.standin.set("build", "fail");
    let output = site.build(&[]).output().unwrap();
    expect_code(&output, 1);
    assert!(stdout(&output).contains("TensorRT refused to build the engine"), "{}", stdout(&output));
    site.standin.set("build", "");
    let limited = site.build(&["--gpu-mem-limit", "1MB", "--workspace", "8MB"]).output().unwrap();
    expect_code(&limited, 3);
    let text = stdout(&limited);
    assert!(text.contains("GPU memory: 8388608 bytes were asked for where 0 of 1048576 are held"), "{text}");
    assert!(text.contains("(--gpu-mem-limit)"), "{text}");
    let injected = site.build(&["--workspace", "1MB"]).env("PRONY_FAIL_ALLOCATION", "1").output().unwrap();
    expect_code(&injected, 1);
    assert!(stdout(&injected).contains("allocation 1 was refused on purpose"), "{}", stdout(&injected));
    assert!(site.built(&["--gpu-mem-limit", "64MB", "--workspace", "8MB"])[0]["status"] == "completed");
    assert_eq!(site.standin.complaints(), [""; 0]);
}

#[test]
fn engines_are_put_where_the_user_wants_them() {
    let Some(site) = Site::new("10.3.0") else { return };
    let out = site.path("engines");
    let made = site.built(&["--precision", "fp16", "--low-memory", "--out", out.to_str().unwrap()]);
    let copy = out.join("tiny-fp16.engine");
    assert_eq!(made[0]["copied_to"], copy.to_str().unwrap());
    assert_eq!(fs::read(&copy).unwrap(), fs::read(made[0]["engine"].as_str().unwrap()).unwrap());
    let beside: Value = serde_json::from_str(&fs::read_to_string(out.join("tiny-fp16.engine.json")).unwrap()).unwrap();
    assert_eq!(beside["engine_sha256"], made[0]["sha256"]);
    assert_eq!(beside["engine"]["low_memory"], true);
}

#[test]
fn the_cache_is_listed_verified_and_pruned() {
    let Some(site) = Site::new("10.3.0") else { return };
    let made = site.built(&["--precision", "fp32,fp16"]);
    let cache = |args: &[&str]| site.prony(&[&["cache"], args].concat()).output().unwrap();
    let list = cache(&["list"]);
    expect_code(&list, 0);
    let text = stdout(&list);
    assert!(text.contains("tiny                 fp16   TensorRT 10.3.0   Stand-in GPU"), "{text}");
    assert!(text.contains("2 engines, "), "{text}");
    expect_code(&cache(&["verify"]), 0);
    fs::write(made[0]["engine"].as_str().unwrap(), b"nonsense").unwrap();
    let verify = cache(&["verify", "--json"]);
    expect_code(&verify, 1);
    let found: Value = serde_json::from_str(&stdout(&verify)).unwrap();
    assert_eq!(found["damaged"], 1, "{found}");
    expect_code(&cache(&["prune"]), 2);
    let kept = cache(&["prune", "--older-than", "1d"]);
    assert!(stdout(&kept).starts_with("nothing removed"), "{}", stdout(&kept));
    let pruned = cache(&["prune", "--all"]);
    expect_code(&pruned, 0);
    assert!(stdout(&pruned).contains("2 engines removed"), "{}", stdout(&pruned));
    assert_eq!(names(&site.cache()), ["build.log"]);
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn without_tensorrt_it_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("libnvinfer.so.10");
    let library = format!("nvinfer={}", nowhere.display());
    // Quiet, for another test may hold the machine, and that would be said.
    let output = prony().args(["build", "builtin-rgb", "--quiet", "--library", &library]).output().unwrap();
    expect_code(&output, 1);
    let text = stderr(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("error: tensorrt: "), "{text}");
    let json = ["build", "builtin-rgb", "--json", "--precision", "fp32,fp16", "--library", &library];
    let output = prony().args(json).output().unwrap();
    expect_code(&output, 1);
    let engines = engines(&output);
    assert_eq!(engines.len(), 2, "{engines:?}");
    for (engine, precision) in engines.iter().zip(["fp32", "fp16"]) {
        assert_eq!((&engine["precision"], &engine["status"]), (&precision.into(), &"skipped".into()));
        assert!(engine["reason"].as_str().unwrap().starts_with("tensorrt: "), "{engine}");
    }
}

#[test]
fn a_limit_beside_a_workspace_is_part_of_what_is_cached() {
    let Some(site) = Site::new("10.3.0") else { return };
    let workspace = ["--workspace", "8MB"];
    let limited = |limit: &'static str| [&workspace[..], &["--gpu-mem-limit", limit]].concat();
    let free = &site.built(&workspace)[0];
    let engine = &site.built(&limited("64MB"))[0];
    assert_eq!(engine["from_cache"], false, "{engine}");
    assert_eq!(engine["rebuilt_because"], "GPU memory limit none -> 67108864");
    assert_eq!(sidecar(engine)["gpu_mem_limit_bytes"], 64 << 20);
    assert_eq!(site.built(&limited("32MB"))[0]["from_cache"], false);
    assert_eq!(site.built(&limited("64MB"))[0]["from_cache"], true);
    let again = &site.built(&workspace)[0];
    assert_eq!((&again["from_cache"], &again["engine"]), (&true.into(), &free["engine"]));
}

#[test]
fn wrong_usage_is_said_before_anything_is_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let engine = dir.path().join("x.engine");
    fs::write(&engine, b"ftrt and so on, as long as a header is").unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&[engine.to_str().unwrap()], "x.engine"),
        (&["nosuch.onnx"], "cannot read model"),
        (&["builtin-rgb", "--precision", "fp12"], "unknown precision `fp12`"),
        (&["builtin-rgb", "--calibration", "scenes"], "--calibration is for int8"),
        (&["builtin-rgb", "--opt-level", "9"], "9"),
        (&["builtin-rgb", "--profile", "images=1"], "is not NAME=MIN:OPT:MAX"),
        (&["builtin-rgb", "--plugin", "/no/such.so"], "--plugin /no/such.so is not a file"),
        (&["builtin-rgb", "--imgsz", "999"], "--imgsz 999 does not fit"),
    ];
    for (args, expected) in cases {
        let output = prony().arg("build").args(args).output().unwrap();
        expect_code(&output, 2);
        let text = stderr(&output);
        assert!(text.contains(expected) && text.lines().count() == 1, "{args:?}: {text}");
    }
}

#[test]
fn a_journal_that_nobody_holds_is_undone_by_the_next_command() {
    let dir = tempfile::tempdir().unwrap();
    let setting = dir.path().join("swappiness");
    fs::write(&setting, "100").unwrap();
    let state = dir.path().join("state");
    fs::create_dir(&state).unwrap();
    let change = serde_json::json!([{ "what": "file", "path": setting, "old": "60", "new": "100" }]);
    fs::write(state.join("prepare.journal.json"), change.to_string()).unwrap();
    // Whatever home it is given.
    let mut command = prony();
    command.args(["cache", "list", "--home"]).arg(dir.path().join("another"));
    let output = command.env("PRONY_TEST_STATE", &state).output().unwrap();
    expect_code(&output, 0);
    assert!(stderr(&output).contains("1 of 1 changes undone now"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&setting).unwrap(), "60");
    assert_eq!(names(&state), [""; 0]);
}

/// A build that hangs in TensorRT until it is killed.
fn hanging(site: &Site) -> std::process::Child {
    site.standin.set("build", "hang");
    let mut command = site.build(&[]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    support::until("the build to begin", || {
        let locked = names_if_there(&site.cache()).iter().any(|name| name.ends_with(".lock"));
        let building = site.standin.journal().iter().any(|line| line == "+ INetworkDefinition");
        (locked && building).then_some(())
    });
    child
}

fn names_if_there(folder: &Path) -> Vec<String> {
    if folder.is_dir() { names(folder) } else { Vec::new() }
}

#[test]
fn an_interrupt_kills_the_build_and_the_next_one_goes_on() {
    let Some(site) = Site::new("8.6.1") else { return };
    let child = hanging(&site);
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    expect_code(&output, 130);
    assert!(stderr(&output).contains("the build under way was killed, the cache is whole"), "{}", stderr(&output));
    assert!(stdout(&output).contains("fp32   tiny: interrupted"), "{}", stdout(&output));
    site.standin.set("build", "");
    let engine = &site.built(&[])[0];
    assert_eq!((&engine["status"], &engine["from_cache"]), (&"completed".into(), &false.into()));
}

#[test]
fn a_killed_worker_is_a_failure_with_its_cause() {
    let Some(site) = Site::new("10.3.0") else { return };
    let child = hanging(&site);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let worker: i32 = children.split_whitespace().next_back().unwrap().parse().unwrap();
    let worker = rustix::process::Pid::from_raw(worker).unwrap();
    rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    expect_code(&output, 1);
    let text = stdout(&output);
    assert!(text.contains("tiny: failed: its process killed by SIGKILL (signal 9)"), "{text}");
    site.standin.set("build", "");
    assert_eq!(site.built(&[])[0]["status"], "completed");
}

#[test]
fn a_build_that_would_run_out_of_memory_is_ended_with_advice() {
    for version in ["8.6.1", "10.3.0"] {
        let Some(site) = Site::new(version) else { return };
        site.standin.set("build", "hang");
        let machine = site.path("machine");
        fs::create_dir_all(machine.join("proc")).unwrap();
        let memory = "MemTotal: 8000000 kB\nMemAvailable: 200000 kB\nSwapFree: 1000 kB\n";
        fs::write(machine.join("proc/meminfo"), memory).unwrap();
        let output = site.build(&[]).env("PRONY_TEST_MEMORY_ROOT", &machine).output().unwrap();
        expect_code(&output, 1);
        let text = stdout(&output);
        assert!(
            text.contains("failed: the build was stopped before the kernel would have killed it: 195 MiB of "),
            "{text}"
        );
        assert!(text.contains("use --low-memory, close other programs or add swap"), "{text}");
        site.standin.set("build", "");
        let engine = &site.built(&[])[0];
        assert_eq!((&engine["status"], &engine["from_cache"]), (&"completed".into(), &false.into()));
    }
}

/// The record of the newest run.
fn record(site: &Site) -> Value {
    let runs = site.path("runs");
    let newest = names(&runs).into_iter().max().unwrap();
    serde_json::from_str(&fs::read_to_string(runs.join(newest).join("report.json")).unwrap()).unwrap()
}

#[test]
fn a_bench_builds_its_engine_runs_it_and_finds_it_the_next_time() {
    let Some(site) = Site::new("10.3.0") else { return };
    for from_cache in [false, true] {
        // The stand-in doubles its input, which no model does: that is seen, and told by the exit code.
        expect_code(&site.bench(&["--quiet"]).output().unwrap(), 3);
        let record = record(&site);
        let cell = &record["cells"][0];
        assert_eq!(
            (&cell["id"], &cell["status"]),
            (&"builtin-rgb:tensorrt:fp32".into(), &"completed".into()),
            "{cell}"
        );
        assert_eq!(cell["verdict"], "wrong-output");
        assert_eq!(cell["artifact"]["from_cache"], from_cache);
        assert!(cell["build_ms"].as_f64().unwrap() > 0.0 && cell["layers"]["layers"].as_u64().unwrap() > 0, "{cell}");
        for stage in ["preprocess", "h2d", "inference", "d2h", "postprocess", "total"] {
            assert!(cell["latency_ms"][stage]["p50"].as_f64().is_some(), "{stage}");
        }
        let settings = cell["backend"]["settings"].to_string();
        assert!(settings.contains("CUDA graph: captured"), "{settings}");
        assert_eq!(cell["equivalents"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn an_interrupt_while_a_bench_makes_its_engine_is_heard_at_once() {
    let Some(site) = Site::new("8.6.1") else { return };
    site.standin.set("build", "hang");
    let child = site.bench(&[]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn();
    let child = child.unwrap();
    support::until("the build to begin", || {
        site.standin.journal().iter().any(|line| line == "+ INetworkDefinition").then_some(())
    });
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    expect_code(&output, 130);
    let cell = &record(&site)["cells"][0];
    assert_eq!(cell["reason"], "interrupted while making the engine");
}

#[test]
fn a_limit_that_ends_a_cell_is_a_broken_limit() {
    let Some(site) = Site::new("10.3.0") else { return };
    let output = site.bench(&["--gpu-mem-limit", "100KB", "--quiet"]).output().unwrap();
    expect_code(&output, 3);
    let record = record(&site);
    let cell = &record["cells"][0];
    assert_eq!((&cell["status"], &cell["verdict"]), (&"failed".into(), &"over-budget".into()), "{cell}");
    assert!(!cell["memory"]["violations"].as_array().unwrap().is_empty(), "{cell}");
    assert_eq!(record["memory_safety"]["all_within_limit"], false);
}

#[test]
fn a_home_that_cannot_be_written_to_fails_no_engine() {
    let Some(site) = Site::new("10.3.0") else { return };
    // No folder can be made below a file, whoever asks.
    fs::write(site.path("home"), b"").unwrap();
    let output = site.bench(&[]).output().unwrap();
    expect_code(&output, 3);
    let cell = &record(&site)["cells"][0];
    assert_eq!(cell["status"], "completed", "{cell}");
    let path = PathBuf::from(cell["artifact"]["path"].as_str().unwrap());
    assert!(path.starts_with(site.path("runs")) && path.is_file(), "{}", path.display());
    let notes = cell["artifact"]["notes"].to_string();
    assert!(
        notes.contains("artifacts are kept in the run folder, for ") && notes.contains("cannot be written"),
        "{notes}"
    );
    assert!(stderr(&output).contains("artifacts are kept in the run folder"), "{}", stderr(&output));
}

#[test]
fn a_build_that_never_ends_is_ended() {
    for version in ["8.6.1", "10.3.0"] {
        let Some(site) = Site::new(version) else { return };
        site.standin.set("build", "hang");
        let expected = "the build was ended after 1 s, the longest that it may take (--build-timeout)";
        let output = site.build(&["--build-timeout", "1s"]).output().unwrap();
        expect_code(&output, 1);
        assert!(stdout(&output).contains(&format!("fp32   tiny: failed: {expected}")), "{}", stdout(&output));
        expect_code(&site.bench(&["--quiet", "--build-timeout", "1s"]).output().unwrap(), 1);
        let cell = &record(&site)["cells"][0];
        assert_eq!((&cell["status"], &cell["reason"]), (&"failed".into(), &expected.into()), "{cell}");
        site.standin.set("build", "");
        assert_eq!(site.built(&[])[0]["status"], "completed", "the cache is whole");
    }
}

#[test]
fn a_limit_that_is_nearly_reached_is_a_note_of_the_cell_and_of_the_summary() {
    let Some(site) = Site::new("10.3.0") else { return };
    let bench = |more: &[&str]| {
        let output = site.bench(&[&["--quiet", "--workspace", "64KB"], more].concat()).output().unwrap();
        expect_code(&output, 3);
        record(&site)["cells"][0].clone()
    };
    let peak_mib = bench(&[])["memory"]["allocator_peak_mib"].as_f64().unwrap();
    let limit = format!("{}B", (peak_mib * 1.05 * 1024.0 * 1024.0) as u64);
    let cell = bench(&["--gpu-mem-limit", &limit]);
    assert_eq!((&cell["status"], &cell["memory"]["within_limit"]), (&"completed".into(), &true.into()), "{cell}");
    let warning = cell["memory"]["warning"].as_str().unwrap();
    assert!(warning.ends_with("were in use, more than 90 %"), "{warning}");
    let reasons = cell["verdict_reasons"].to_string();
    assert!(reasons.contains(&format!("note: {warning}")), "{reasons}");
    let runs = site.path("runs");
    let report = runs.join(names(&runs).into_iter().max().unwrap()).join("report.md");
    let text = fs::read_to_string(report).unwrap();
    assert!(text.contains(&format!("- warning: builtin-rgb:tensorrt:fp32: {warning}")), "{text}");
    assert_eq!(bench(&["--gpu-mem-limit", "1GB"])["memory"]["warning"], Value::Null);
}

/// A run whose one cell failed because no engine could be built, which can be now.
fn unfinished(site: &Site, more: &[&str]) -> PathBuf {
    site.standin.set("build", "fail");
    expect_code(&site.bench(&[&["--quiet"], more].concat()).output().unwrap(), 1);
    site.standin.set("build", "");
    let runs = site.path("runs");
    runs.join(names(&runs).into_iter().max().unwrap())
}

/// What names code must be given again: a record is data.
fn resume(site: &Site, run: &Path, more: &[&str]) -> Output {
    let command = site.prony(&[&["bench", "--quiet", "--resume", run.to_str().unwrap()], more].concat());
    site.with_libraries(command).output().unwrap()
}

#[test]
fn a_run_at_another_home_with_libraries_of_its_own_is_resumed() {
    let Some(site) = Site::new("10.3.0") else { return };
    let run = unfinished(&site, &[]);
    expect_code(&resume(&site, &run, &[]), 3);
    let cell = &record(&site)["cells"][0];
    assert_eq!((&cell["status"], &cell["attempt"]), (&"completed".into(), &2.into()), "{cell}");
    assert!(cell["artifact"]["path"].as_str().unwrap().starts_with(site.cache().to_str().unwrap()), "{cell}");
}

#[test]
fn a_run_whose_plugin_or_parser_changed_is_not_resumed() {
    let Some(site) = Site::new("10.3.0") else { return };
    let plugin = site.path("mine.so");
    fs::copy(site.standin.plugins(), &plugin).unwrap();
    let run = unfinished(&site, &["--plugin", plugin.to_str().unwrap()]);
    let whole = fs::read(&plugin).unwrap();
    fs::write(&plugin, [&whole[..], b"!"].concat()).unwrap();
    let again = ["--plugin", plugin.to_str().unwrap()];
    let output = resume(&site, &run, &[]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("to resume it, give it again: --plugin "), "{}", stderr(&output));
    let output = resume(&site, &run, &again);
    expect_code(&output, 2);
    let expected = format!("plugin {} changed from ", plugin.display());
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    fs::write(&plugin, &whole).unwrap();
    let parser = fs::canonicalize(site.standin.parser()).unwrap();
    fs::remove_file(&parser).unwrap();
    let output = resume(&site, &run, &again);
    expect_code(&output, 2);
    let expected = format!("{} was not found on this machine", parser.display());
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
}

#[test]
fn what_another_build_timed_meanwhile_is_kept() {
    let Some(site) = Site::new("10.3.0") else { return };
    let child = hanging(&site);
    let timings = site.cache().join("timing-stand-in-gpu-10.3.0.cache");
    fs::write(&timings, "another\n").unwrap();
    site.standin.set("build", "");
    expect_code(&child.wait_with_output().unwrap(), 0);
    let text = fs::read_to_string(&timings).unwrap();
    assert!(text.contains("timed 2\n") && text.contains("another\n"), "{text}");
    assert_eq!(site.standin.complaints(), [""; 0]);
}
