//! The user's own pip as a downloader, so that their index, proxy and cache settings apply.
//!
//! Python version, ABI and platform are always said, or an old Python would fetch an old library. A wheel's libraries
//! are the same for every Python, but not every release has a wheel for every Python: the newest may be there for some
//! only. So pip is first asked what there is for each, by a requirement that nothing can meet: it answers with the
//! versions that it knows, and downloads nothing.
//!
//! pip is run as a module of an isolated Python (`-I`) in a folder of ours: neither the current folder nor `PYTHONPATH` and its
//! kin decide what is imported. `PIP_*` variables and pip's configuration apply, because they name the user's index and proxy;
//! `PIP_PYTHON` alone does not, for it would leave the isolation.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use prony_files::{find_program, owner_problem};
use prony_work::{Asking, Interrupt, Length, Step, Watcher, capture, megabytes};

use super::child::{PipChild, Transferred};
use super::platform::Platform;
use super::{Package, Stopped, Version};

/// Pythons that wheels are made for, the likeliest first. The user's own is asked too.
const PYTHONS: [Python; 5] = [Python(3, 13), Python(3, 12), Python(3, 14), Python(3, 11), Python(3, 10)];
/// A pip that takes longer to say its version hangs: Python on a slow card takes seconds.
const VERSION_DEADLINE: Duration = Duration::from_secs(60);
/// The first pip that takes more than one platform.
const OLDEST_PIP: (u32, u32) = (20, 3);
/// The first pip with `--progress-bar raw`.
const RAW_PROGRESS: (u32, u32) = (24, 1);
/// Lines of pip's own words that are shown when it fails.
const LAST_WORDS: usize = 6;
/// Runs pip from the user's own packages, which an isolated Python passes over: where there is no other pip.
const USER_PIP: &str = "import runpy, site, sys; sys.path.append(site.getusersitepackages()); \
                        runpy.run_module('pip', run_name='__main__', alter_sys=True)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Python(u32, u32);

/// A pip that answers.
#[derive(Debug)]
pub(super) struct Pip {
    words: Vec<OsString>,
    version: (u32, u32),
    pythons: Vec<Python>,
}

/// How an attempt ended.
enum Attempt {
    Saved,
    /// No such release for that Python; these there are.
    NotOffered(Vec<Version>),
    /// Anything else, in pip's words.
    Failed(Vec<String>),
}

/// Where and how to download.
pub(super) struct Task<'a> {
    pub name: Package,
    /// Empty, on a disk with room; pip's temporary files go there too.
    pub folder: &'a Path,
    pub watcher: &'a dyn Watcher,
    pub interrupt: &'a Interrupt,
}

impl Pip {
    /// The active environment's pip, else that of the Python on `PATH`.
    pub(super) fn find(interrupt: &Interrupt) -> anyhow::Result<Pip> {
        let (pythons, passed_over) = pythons();
        let mut too_old = None;
        for words in pythons.iter().flat_map(|python| commands(python)) {
            match Pip::ask(words, interrupt) {
                Some(pip) if pip.version >= OLDEST_PIP => return Ok(pip),
                Some(pip) => too_old = too_old.or(Some(pip.version)),
                None => {}
            }
        }
        if interrupt.asked() {
            return Err(Stopped.into());
        }
        let otherwise = "or fetch the wheel elsewhere and use --from FILE.whl";
        if let Some((major, minor)) = too_old {
            let (least, least_minor) = OLDEST_PIP;
            bail!(
                "pip {major}.{minor} cannot be told more than one platform, {least}.{least_minor} can; \
                 run `python3 -m pip install --upgrade pip`, {otherwise}"
            );
        }
        bail!("no pip found (tried python3 -I -m pip{passed_over}); install python3-pip, {otherwise}")
    }

    fn ask(words: Vec<OsString>, interrupt: &Interrupt) -> Option<Pip> {
        let (program, arguments) = words.split_first()?;
        let mut command = Command::new(program);
        isolate(&mut command);
        let asking = Asking { interrupt: Some(interrupt), ..Asking::within(VERSION_DEADLINE) };
        let output = capture(command.args(arguments).arg("--version").current_dir("/"), &asking).ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let (version, python) = parse_version(&said).filter(|_| output.status.success())?;
        let mut pythons = PYTHONS.to_vec();
        pythons.extend(python.filter(|own| !PYTHONS.contains(own)));
        Some(Pip { words, version, pythons })
    }

    /// The newest release that any Python is offered, and which one; `None` where pip does not tell.
    pub(super) fn newest(&self, task: &Task<'_>) -> anyhow::Result<Option<(Version, Choice)>> {
        let step = task.watcher.step(&format!("asking pip for the newest {}", task.name), Length::Unknown);
        let unmeetable = format!("{}<0", task.name.package());
        let start = |&python: &Python| Ok((python, self.spawn(task, python, &unmeetable)?));
        let children: Vec<(Python, PipChild)> = self.pythons.iter().map(start).collect::<anyhow::Result<_>>()?;
        let mut newest: Option<(Version, Choice)> = None;
        let mut last_words = None;
        for (python, child) in children {
            let (_, lines) = child.wait(task.interrupt, &mut |_| {})?;
            let versions = match judge(&lines) {
                Attempt::NotOffered(versions) => versions,
                Attempt::Failed(lines) => {
                    last_words = Some(lines);
                    continue;
                }
                Attempt::Saved => continue,
            };
            let found = versions.into_iter().filter(Version::is_final).max();
            if let Some(version) = found.filter(|found| newest.as_ref().is_none_or(|(best, _)| found > best)) {
                newest = Some((version, Choice(python)));
            }
        }
        drop(step);
        match (newest, last_words) {
            (None, Some(lines)) => Err(failure(task.watcher, task.name.package(), &lines)),
            (newest, _) => Ok(newest),
        }
    }

    /// Downloads a wheel: the version that is asked for, or the newest that `choice` is offered.
    pub(super) fn download(
        &self,
        task: &Task<'_>,
        version: Option<&Version>,
        choice: Option<Choice>,
    ) -> anyhow::Result<PathBuf> {
        let package = task.name.package();
        let requirement = version.map_or(package.to_owned(), |version| format!("{package}=={version}"));
        let pythons = choice.map_or(self.pythons.clone(), |Choice(python)| vec![python]);
        let step = task.watcher.step(&format!("downloading {requirement}"), Length::Unknown);
        let mut known: Vec<Version> = Vec::new();
        for python in pythons {
            match self.attempt(task, python, &requirement, step.as_ref())? {
                Attempt::Saved => return saved_wheel(task.folder),
                Attempt::NotOffered(versions) => known.extend(versions),
                Attempt::Failed(lines) => return Err(failure(task.watcher, &requirement, &lines)),
            }
        }
        Err(not_offered(&requirement, known))
    }

    fn attempt(&self, task: &Task<'_>, python: Python, requirement: &str, step: &dyn Step) -> anyhow::Result<Attempt> {
        let child = self.spawn(task, python, requirement)?;
        let mut on_progress = |progress: Transferred| {
            let bytes = progress.done.max(largest_file(task.folder));
            let total = if progress.total > 0 { format!(" of {}", megabytes(progress.total)) } else { String::new() };
            if bytes > 0 {
                step.says(&format!("downloading {requirement}: {}{total}", megabytes(bytes)));
            }
        };
        let (status, lines) = child.wait(task.interrupt, &mut on_progress)?;
        Ok(if status.success() { Attempt::Saved } else { judge(&lines) })
    }

    fn spawn(&self, task: &Task<'_>, python: Python, requirement: &str) -> anyhow::Result<PipChild> {
        let Python(major, minor) = python;
        let mut words = self.words.clone();
        let plain = "download --no-deps --only-binary=:all: --no-input --disable-pip-version-check --implementation cp";
        words.extend(plain.split(' ').map(OsString::from));
        let progress = if self.version >= RAW_PROGRESS { "raw" } else { "off" };
        words.extend(["--progress-bar", progress].map(OsString::from));
        words.extend(["--python-version".into(), format!("{major}.{minor}").into()]);
        for abi in [&format!("cp{major}{minor}"), "abi3", "none"] {
            words.extend(["--abi", abi].map(OsString::from));
        }
        for platform in Platform::here().tags() {
            words.extend(["--platform".into(), platform.into()]);
        }
        words.extend(["--dest".into(), task.folder.into(), requirement.into()]);
        PipChild::spawn(&words, task.folder)
    }
}

/// Pythons that may be run, the nearest first, and a clause for each that may not.
fn pythons() -> (Vec<PathBuf>, String) {
    let active = env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty());
    let active = active.and_then(|folder| std::path::absolute(Path::new(&folder).join("bin/python")).ok());
    let mut pythons = Vec::new();
    let mut passed_over = String::new();
    if let Some(python) = active {
        match owner_problem(&python) {
            Ok(None) => pythons.push(python),
            Ok(Some(problem)) => passed_over += &format!("; {} was passed over: {problem}", python.display()),
            // It was removed, or has no Python.
            Err(_) => {}
        }
    }
    match find_program("python3") {
        Ok(python) => pythons.push(python),
        Err(error) => passed_over += &format!("; {error}"),
    }
    (pythons, passed_over)
}

/// Ways to run a Python's pip.
fn commands(python: &Path) -> Vec<Vec<OsString>> {
    let isolated = |rest: [&str; 2]| {
        let flags = ["-I", "-u"].into_iter().chain(rest).map(OsString::from);
        std::iter::once(python.as_os_str().to_owned()).chain(flags).collect()
    };
    let mut commands = vec![isolated(["-m", "pip"])];
    let own = env::var_os("HOME").map(|home| Path::new(&home).join(".local/lib"));
    if own.is_some_and(|folder| folder.is_absolute() && matches!(owner_problem(&folder), Ok(None))) {
        commands.push(isolated(["-c", USER_PIP]));
    }
    commands
}

/// Takes away what would let another than the Python that was chosen decide what is imported. `-I` has Python itself ignore its
/// variables, but not a script that stands for it, nor a module that reads them.
pub(super) fn isolate(command: &mut Command) {
    let of_python = |name: &OsString| name.as_encoded_bytes().starts_with(b"PYTHON") || name == "PIP_PYTHON";
    for name in env::vars_os().map(|(name, _)| name).filter(of_python) {
        command.env_remove(name);
    }
    command.envs(prony_files::safe_path().map(|path| ("PATH", path)));
}

/// The Python whose wheel to take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice(Python);

/// `pip 23.2.1 from /usr/lib/… (python 3.11)`.
fn parse_version(said: &str) -> Option<((u32, u32), Option<Python>)> {
    let pair = |text: &str| {
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next().flatten().unwrap_or(0)))
    };
    let version = pair(said.strip_prefix("pip ")?.split_whitespace().next()?)?;
    let python = said.rsplit("(python ").next().and_then(|rest| pair(rest.split(')').next()?));
    Some((version, python.map(|(major, minor)| Python(major, minor))))
}

fn judge(lines: &[String]) -> Attempt {
    let versions = offered(lines);
    // After failed connections pip says that there is nothing, too; for another Python it would only fail as long.
    let unreachable = versions.is_empty() && lines.iter().any(|line| line.contains("Retrying ("));
    if !unreachable && lines.iter().any(|line| line.contains("No matching distribution found")) {
        return Attempt::NotOffered(versions);
    }
    Attempt::Failed(lines[lines.len().saturating_sub(LAST_WORDS)..].to_vec())
}

/// The versions in pip's `(from versions: 1.24.1, 1.24.2)`.
fn offered(lines: &[String]) -> Vec<Version> {
    let list = lines.iter().find_map(|line| line.split("(from versions: ").nth(1)?.split(')').next());
    list.into_iter().flat_map(|list| list.split(", ")).filter_map(|version| version.parse().ok()).collect()
}

/// Pip's own words first, then ours in a line.
fn failure(watcher: &dyn Watcher, requirement: &str, lines: &[String]) -> anyhow::Error {
    lines.iter().for_each(|line| watcher.warn(&format!("  pip: {line}")));
    if lines.iter().any(|line| line.contains("No space left") || line.contains("[Errno 28]")) {
        return anyhow::anyhow!(
            "no space left while pip downloaded {requirement}; free some or name another folder with --home"
        );
    }
    anyhow::anyhow!("pip could not download {requirement}; its words are above, --from FILE.whl works without it")
}

fn not_offered(requirement: &str, mut known: Vec<Version>) -> anyhow::Error {
    let Platform { arch, glibc } = Platform::here();
    known.retain(Version::is_final);
    known.sort();
    known.dedup();
    let there = match known.as_slice() {
        [] => "there is none at all; `python3 -m pip config list` shows which index pip asks".to_owned(),
        [.., _] => {
            let last: Vec<&str> = known.iter().rev().take(8).map(Version::as_str).collect();
            let more = if known.len() > last.len() {
                format!(" and {} older", known.len() - last.len())
            } else {
                String::new()
            };
            format!("there is {}{more}", last.join(", "))
        }
    };
    anyhow::anyhow!("pip is offered no wheel of {requirement} for linux {arch} with glibc 2.{glibc}; {there}")
}

fn saved_wheel(folder: &Path) -> anyhow::Result<PathBuf> {
    let wheels = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let found = wheels.filter(|path| path.extension().is_some_and(|extension| extension == "whl")).max();
    found.context("pip says that it downloaded a wheel, but there is none")
}

/// Size of the file that grows: pip before 24.1 does not tell a pipe how far it is.
fn largest_file(folder: &Path) -> u64 {
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => largest_file(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    fs::read_dir(folder).into_iter().flatten().flatten().map(size).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_pip_says_its_version_and_its_python() {
        let said = "pip 23.2.1 from /usr/lib/python3/dist-packages/pip (python 3.11)\n";
        assert_eq!(parse_version(said), Some(((23, 2), Some(Python(3, 11)))));
        assert_eq!(parse_version("pip 26.3 from /x (python 3.15)").unwrap().0, (26, 3));
        assert_eq!(parse_version("No module named pip"), None);
    }

    #[test]
    fn what_is_offered_is_told_from_what_fails() {
        let said = "Looking in links: x\nERROR: Could not find a version that satisfies the requirement onnxruntime<0 \
                    (from versions: 1.24.1, 1.25.0.dev20260417008, 1.25.0)\n\
                    ERROR: No matching distribution found for onnxruntime<0";
        let Attempt::NotOffered(versions) = judge(&lines(said)) else { panic!("{said}") };
        assert_eq!(versions.iter().filter(|version| version.is_final()).max().unwrap().as_str(), "1.25.0");
        let none = said.replace("1.24.1, 1.25.0.dev20260417008, 1.25.0", "none");
        assert!(offered(&lines(&none)).is_empty());
        let cut_off = format!("WARNING: Retrying (Retry(total=4)) after connection broken\n{none}");
        assert!(matches!(judge(&lines(&cut_off)), Attempt::Failed(_)));
        let full =
            "Collecting x\nERROR: Could not install packages due to an OSError: [Errno 28] No space left on device";
        assert!(matches!(judge(&lines(full)), Attempt::Failed(words) if words.len() == 2));
    }

    #[test]
    fn a_version_that_is_not_there_names_those_that_are() {
        let known = ["1.9.0", "1.20.0", "1.21.0.dev1", "1.20.0"].map(|text| text.parse().unwrap()).to_vec();
        let said = not_offered("onnxruntime==9", known).to_string();
        assert!(said.ends_with("; there is 1.20.0, 1.9.0"), "{said}");
        assert!(not_offered("x", Vec::new()).to_string().contains("none at all"));
    }
}
