//! The program in a process: how it is asked, watched and understood.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use prony_backend::ModelFile;
use prony_files::Kind;
use prony_work::Supervised;

use super::output::{self, Generation, Printed, Version};
use super::times::{self, Query};
use crate::now_ns;

/// How often the process is looked at while it runs.
const TICK: Duration = Duration::from_millis(10);
/// What it prints beyond this is not kept: a broken one may print forever.
const MAX_OUTPUT: u64 = 16 << 20;

/// A trtexec that was found to work, with the engine that it is to time.
pub(super) struct Program {
    path: PathBuf,
    pub(super) version: Version,
    pub(super) generation: Generation,
    plugin_flag: &'static str,
    pub(super) plugins: Vec<PathBuf>,
    pub(super) device: u32,
    /// The accelerator that the engine was built for.
    pub(super) dla_core: Option<u32>,
    /// As `images:1x3x640x640`, where they must be given.
    pub(super) shapes: Option<String>,
    engine: EngineArgument,
    folder: PathBuf,
    start: Start,
}

/// How a program is started.
pub(super) type Start = fn(&Path) -> Command;

/// What one run is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) warm_up_ms: u32,
    pub(super) seconds: f64,
    /// Exactly so many queries instead of so many seconds.
    pub(super) queries: Option<u64>,
}

/// What one run gave.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) printed: Printed,
    pub(super) queries: Vec<Query>,
    /// When it ended, and how long it took from its start.
    pub(super) ended_ns: u64,
    pub(super) wall_ms: f64,
    /// Highest resident memory that was seen.
    pub(super) peak_bytes: u64,
}

/// Whoever waits while it runs.
pub(super) trait Watch {
    /// It printed something.
    fn alive(&self);
    /// It is to be ended now.
    fn stop(&self) -> bool;
}

impl Program {
    /// Asks a trtexec what it is.
    pub(super) fn find(
        path: &Path,
        start: Start,
        engine: EngineArgument,
        folder: &Path,
        watch: &dyn Watch,
    ) -> Result<Program, String> {
        fs::metadata(path).map_err(|error| format!("{} cannot be run: {error}", path.display()))?;
        let mut command = start(path);
        command.arg("--help");
        let (help, ..) = watched(&mut command, &folder.join("trtexec.log"), watch, Duration::ZERO)?.ok_or("stopped")?;
        let version = Version::in_banner(&help.text)
            .ok_or_else(|| format!("{} does not say which trtexec it is ({})", path.display(), ended(help.status)))?;
        let generation = version.generation()?;
        for needed in ["--loadEngine", "--exportTimes", "--warmUp", "--duration", "--iterations"] {
            if !help.text.contains(needed) {
                return Err(format!("trtexec {version} does not know {needed}, without which it is of no use here"));
            }
        }
        let plugin_flag = if help.text.contains("--staticPlugins") { "--staticPlugins" } else { "--plugins" };
        Ok(Program {
            path: path.to_owned(),
            version,
            generation,
            plugin_flag,
            plugins: Vec::new(),
            device: 0,
            dla_core: None,
            shapes: None,
            engine,
            folder: folder.to_owned(),
            start,
        })
    }

    fn times_file(&self) -> PathBuf {
        self.folder.join("trtexec-times.json")
    }

    /// The words after its name.
    fn arguments(&self, asked: Asked) -> Vec<String> {
        let Asked { warm_up_ms, seconds, queries } = asked;
        // Both are lower bounds to it: to have one decide, the other is made as low as it goes.
        let (seconds, queries) = match queries {
            Some(queries) => (0.0, queries),
            None => (seconds, 1),
        };
        let mut arguments = vec![
            format!("--loadEngine={}", self.engine.path),
            format!("--warmUp={warm_up_ms}"),
            format!("--duration={seconds}"),
            format!("--iterations={queries}"),
            "--avgRuns=100".to_owned(),
            format!("--exportTimes={}", self.times_file().display()),
        ];
        arguments.extend(self.shapes.iter().map(|shapes| format!("--shapes={shapes}")));
        if self.device > 0 {
            arguments.push(format!("--device={}", self.device));
        }
        arguments.extend(self.dla_core.map(|core| format!("--useDLACore={core}")));
        arguments.extend(self.plugins.iter().map(|plugin| format!("{}={}", self.plugin_flag, plugin.display())));
        arguments
    }

    /// Runs it once; `None` where it was stopped.
    pub(super) fn run(&self, asked: Asked, watch: &dyn Watch) -> Result<Option<Ran>, String> {
        let file = self.times_file();
        let _ = fs::remove_file(&file);
        let mut command = (self.start)(&self.path);
        command.args(self.arguments(asked));
        let patience = Duration::from_secs_f64(asked.seconds + f64::from(asked.warm_up_ms) / 1e3);
        let begun = now_ns();
        let Some((end, peak_bytes)) = watched(&mut command, &self.folder.join("trtexec.log"), watch, patience)? else {
            return Ok(None);
        };
        let ended_ns = now_ns();
        let printed = output::read(&end.text);
        if !end.status.success() {
            let words = printed.errors.first().map(|words| format!(": {words}")).unwrap_or_default();
            return Err(format!("trtexec {}{words}; see the cell's trtexec.log", ended(end.status)));
        }
        let json = prony_files::read(&file, Kind::Log).map_err(|error| {
            format!("trtexec ended well but wrote no times to {} ({error}); see the cell's trtexec.log", file.display())
        })?;
        let _ = fs::remove_file(&file);
        let queries = times::read(&json, f64::from(asked.warm_up_ms)).map_err(|reason| format!("trtexec: {reason}"))?;
        if queries.is_empty() {
            return Err("trtexec timed not a single query; see the cell's trtexec.log".to_owned());
        }
        let wall_ms = (ended_ns - begun) as f64 / 1e6;
        Ok(Some(Ran { printed, queries, ended_ns, wall_ms, peak_bytes }))
    }
}

/// How a process ended, in words.
fn ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("ended with status {code}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

struct End {
    status: ExitStatus,
    text: String,
}

/// Runs a command to its end with its output at the end of a log. It is alive as long as the log grows; what is silent for
/// too long is for the parent to end. `None` where it was stopped.
fn watched(
    command: &mut Command,
    log: &Path,
    watch: &dyn Watch,
    patience: Duration,
) -> Result<Option<(End, u64)>, String> {
    let cannot = |error: io::Error| format!("cannot write {}: {error}", log.display());
    let file = File::options().create(true).append(true).open(log).map_err(cannot)?;
    let from = file.metadata().map_err(cannot)?.len();
    let both = file.try_clone().map_err(cannot)?;
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = Supervised::spawn(command.stdin(Stdio::null()).stdout(file).stderr(both))
        .map_err(|error| format!("{name} cannot be run: {error}"))?;
    let (mut seen, mut peak_bytes, begun) = (from, 0, Instant::now());
    loop {
        let ended = child.ended().map_err(|error| format!("{name} cannot be waited for: {error}"))?;
        let length = fs::metadata(log).map_or(seen, |metadata| metadata.len());
        // It says nothing while it measures, however long it was told to.
        if length > seen || begun.elapsed() < patience {
            seen = length;
            watch.alive();
        }
        if let Some(status) = ended {
            return Ok(Some((End { status, text: tail(log, from).map_err(cannot)? }, peak_bytes)));
        }
        if watch.stop() {
            return Ok(None);
        }
        if length - from > MAX_OUTPUT {
            return Err(format!("{name} printed more than {} MiB; see the cell's trtexec.log", MAX_OUTPUT >> 20));
        }
        peak_bytes = peak_bytes.max(resident_peak(child.pid()).unwrap_or(0));
        std::thread::sleep(TICK);
    }
}

/// What was added to a log.
fn tail(log: &Path, from: u64) -> io::Result<String> {
    let mut file = prony_files::open(log, Kind::Log)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Highest resident memory of a process so far.
fn resident_peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The engine as trtexec takes it: a bare plan. One with a header is copied into a file that has no name any more, so that
/// nothing is left behind whatever happens.
pub(super) struct EngineArgument {
    path: String,
    _plan: Option<File>,
}

impl EngineArgument {
    pub(super) fn new(file: &Path, folder: &Path) -> Result<EngineArgument, String> {
        let model = ModelFile::read(file).map_err(|error| error.to_string())?;
        let header = model.engine.as_ref().map(|engine| engine.header_bytes);
        match header {
            None => Err(format!("{} is no engine", file.display())),
            Some(0) => Ok(EngineArgument { path: file.display().to_string(), _plan: None }),
            Some(header) => {
                let plan = stripped(file, header as u64, folder)
                    .map_err(|error| format!("cannot copy the plan of {}: {error}", file.display()))?;
                let path = format!("/proc/{}/fd/{}", std::process::id(), plan.as_raw_fd());
                Ok(EngineArgument { path, _plan: Some(plan) })
            }
        }
    }
}

fn stripped(file: &Path, header: u64, folder: &Path) -> io::Result<File> {
    let name = folder.join(format!("plan-{}", std::process::id()));
    let mut plan = File::options().read(true).write(true).create_new(true).open(&name)?;
    fs::remove_file(&name)?;
    let mut whole = prony_files::open(file, Kind::Model)?;
    whole.seek(SeekFrom::Start(header))?;
    io::copy(&mut whole, &mut plan)?;
    Ok(plan)
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
