//! Running the real binary and reading what it leaves behind.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod numpy;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use prony_model::onnx::ModelProto;
pub(crate) use prony_standin::skip;
use prony_types::{CellRecord, Event, Happened, RunRecord};
use prost::Message as _;
use tempfile::TempDir;

/// A place for run folders and input files; gone afterwards.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.path("runs")
    }

    /// `prony bench …` with its runs here, on the embedded engine unless the arguments decide otherwise: what else is
    /// installed must not change what a test looks at.
    pub(crate) fn bench(&self, args: &[&str]) -> Command {
        let decides = |arg: &&str| {
            ["--backends", "--tier", "--plan", "--resume"].contains(arg)
                || [".engine", ".plan", ".trt"].iter().any(|ending| arg.ends_with(ending))
        };
        let mut command = self.auto(args);
        if !args.iter().any(decides) {
            command.args(["--backends", "rten"]);
        }
        command
    }

    /// `prony bench …` with its runs here, on whatever it chooses itself.
    pub(crate) fn auto(&self, args: &[&str]) -> Command {
        let mut command = prony();
        command.arg("bench").args(args).arg("--out").arg(self.runs());
        command
    }

    /// The one run folder.
    pub(crate) fn run(&self) -> PathBuf {
        let folders: Vec<PathBuf> = fs::read_dir(self.runs()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    }

    pub(crate) fn record(&self) -> RunRecord {
        prony_store::read_record_at(&self.run()).unwrap()
    }
}

pub(crate) fn prony() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("prony"));
    command.env_remove("PRONY_TEST_FAULT").stdin(Stdio::null());
    // No test undoes what someone did to this machine.
    command.env("PRONY_TEST_STATE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("state"));
    if std::env::var_os("PRONY_HOME").is_none() {
        // Whoever runs the tests has a home of their own, which is none of our business.
        command.env("PRONY_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("home"));
    }
    command
}

/// Makes a FIFO.
pub(crate) fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Writes a model; its path as an argument.
pub(crate) fn write_model(path: &Path, model: &ModelProto) -> String {
    fs::write(path, model.encode_to_vec()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Short enough for a test, long enough for five rounds. Every frame is checked after the timing, so there are few.
pub(crate) const QUICK: [&str; 6] = ["--duration", "0.5", "--warmup", "0.1", "--frames", "8"];

pub(crate) fn quick(args: &[&'static str]) -> Vec<&'static str> {
    args.iter().copied().chain(QUICK).collect()
}

#[track_caller]
pub(crate) fn expect_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "stdout:\n{}\nstderr:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
pub(crate) fn cell<'a>(record: &'a RunRecord, id: &str) -> &'a CellRecord {
    record.cells.iter().find(|cell| cell.id == id).unwrap_or_else(|| panic!("no cell {id}"))
}

/// Polls until something is there.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A bench that is under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) place: Place,
}

impl Running {
    pub(crate) fn start(place: Place, args: &[&str]) -> Running {
        let child = place.bench(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running { child, place }
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        let Ok(mut entries) = fs::read_dir(self.place.runs()) else { return Vec::new() };
        let Some(Ok(entry)) = entries.next() else { return Vec::new() };
        let lines: Vec<Happened> = prony_store::read_lines(&entry.path().join("events.jsonl")).unwrap_or_default();
        let said = |line| match line {
            Happened::Worker(event) => Some(*event),
            Happened::Run(_) => None,
        };
        lines.into_iter().filter_map(said).collect()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Process of a cell's worker, once it has begun.
    pub(crate) fn worker(&self, cell: &str) -> u32 {
        until("the worker to start", || {
            self.events().into_iter().find_map(|event| match event.kind {
                prony_types::EventKind::Started { pid, .. } if event.cell == cell => Some(pid),
                _ => None,
            })
        })
    }

    /// Waits until a cell has finished a round.
    pub(crate) fn first_round(&self, cell: &str) {
        until("a round to end", || {
            self.events()
                .into_iter()
                .find(|event| event.cell == cell && matches!(event.kind, prony_types::EventKind::RoundDone { .. }))
        });
    }

    pub(crate) fn finish(self) -> (Output, Place) {
        (self.child.wait_with_output().unwrap(), self.place)
    }
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

pub(crate) fn is_alive(pid: u32) -> bool {
    // A zombie is dead, it only waits for its parent.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

/// Whether a tool is there. Where the environment demands it, a missing one fails the test instead of skipping it.
pub(crate) fn has_tool(name: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| Path::new(&folder).join(name).is_file()));
    if !found {
        skip(&format!("{name} is not installed"));
    }
    found
}

/// Enough for figures, too few for a good verdict: for tests that look at everything else.
pub(crate) const SHORT: [&str; 6] = ["--samples", "30", "--warmup", "0.1", "--frames", "8"];

/// Folder of an installed runtime, of a version such as `1.20.1` or of the newest. Where the environment demands it, a
/// missing one fails the test instead of skipping it.
pub(crate) fn installed(name: &str, version: Option<&str>) -> Option<PathBuf> {
    let all = std::env::var_os("PRONY_HOME").map(|home| Path::new(&home).join("runtimes").join(name));
    let versions = all.iter().filter_map(|all| fs::read_dir(all).ok()).flatten().flatten().map(|entry| entry.path());
    let number = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        name.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    let asked = |path: &PathBuf| version.is_none_or(|version| path.ends_with(version));
    let found = versions.filter(|path| number(path).is_some() && asked(path)).max_by_key(number);
    if found.is_none() {
        let what = version.map_or(name.to_owned(), |version| format!("{name}@{version}"));
        skip(&format!("no {what}; run `prony runtime install {what}`"));
    }
    found
}

/// Whether there is an NVIDIA GPU, so that what happens without one cannot be seen.
pub(crate) fn has_gpu() -> bool {
    ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvhost-gpu"].iter().any(|device| Path::new(device).exists())
}

impl Place {
    /// Prony's own folder of this place: a cache that nothing else writes to, and none but these installed runtimes.
    pub(crate) fn home(&self, runtimes: &[&str]) -> Option<PathBuf> {
        let home = self.path("home");
        fs::create_dir_all(home.join("runtimes")).unwrap();
        for name in runtimes {
            let folder = installed(name, None)?;
            std::os::unix::fs::symlink(folder.parent().unwrap(), home.join("runtimes").join(name)).unwrap();
        }
        Some(home)
    }
}

/// A command that finds runtimes in a home only, as far as the environment decides that.
pub(crate) fn at_home<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    for pointer in ["PRONY_ONNXRUNTIME", "PRONY_OPENVINO", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"] {
        command.env_remove(pointer);
    }
    command.env("PRONY_HOME", home)
}

/// The beginning of a plan of a TensorRT (major, minor, patch, build), as long as it says it is, with something behind it
/// that no TensorRT will take.
pub(crate) fn engine_plan(version: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![0x5a; 4096];
    bytes[..8].copy_from_slice(b"ftrt\0\0\0\0");
    bytes[16..24].copy_from_slice(&4096u64.to_le_bytes());
    bytes[24..28].copy_from_slice(&version);
    bytes
}
