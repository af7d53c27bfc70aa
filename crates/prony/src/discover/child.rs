//! One library in one child: it answers, dies or hangs, and each is a finding.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use prony_backend::discovery::Answer;
use prony_types::{DiscoverJob, Event, EventKind, Job, RuntimeName, WORKER_PROTOCOL};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::run::WORKER_VERB;
use crate::trust::search_paths;

/// How long a library may take to answer. The largest take a second or two from a cold disk.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a child may take to end, and a grandchild to let go of its pipe, after its last word.
const LAST_RITES: Duration = Duration::from_secs(5);
/// How much of what a dying child printed is kept.
const LAST_WORDS: u64 = 64 << 10;

/// Opens a library, or runs a program, in a child of `binary`, and returns what it said.
pub(super) fn ask(binary: &Path, name: RuntimeName, path: &Path, folders: &[PathBuf]) -> Result<Answer, String> {
    ask_within(binary, name, path, folders, PATIENCE)
}

/// The same with a limit of its own.
pub(super) fn ask_within(
    binary: &Path,
    name: RuntimeName,
    path: &Path,
    folders: &[PathBuf],
    limit: Duration,
) -> Result<Answer, String> {
    let job = Job::Discover(DiscoverJob { protocol: WORKER_PROTOCOL, name, path: path.to_owned() });
    question(binary, &job, folders, limit, last_word)
}

/// One job in a child of `binary` that may die or hang of it; `answer` picks the event that is the answer.
pub(crate) fn question<T: Send + 'static>(
    binary: &Path,
    job: &Job,
    folders: &[PathBuf],
    limit: Duration,
    answer: fn(EventKind) -> Option<Result<T, String>>,
) -> Result<T, String> {
    let mut child =
        Guarded(start(binary, folders).map_err(|error| format!("cannot start a process to open it: {error}"))?);
    // A child that died before it read its job is found out below, by its closed pipe.
    let _ = tell(&mut child.0, job);
    let (sender, answers) = channel();
    let stdout = child.0.stdout.take();
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).map_while(Result::ok);
        let mut events = lines.filter_map(|line| serde_json::from_str::<Event>(&line).ok());
        // Gone, if nobody waits any more.
        let _ = sender.send(events.find_map(|event| answer(event.kind)));
    });
    let last_words = child.0.stderr.take().map(keep_last_words);
    match answers.recv_timeout(limit) {
        Ok(Some(answer)) => answer,
        Err(RecvTimeoutError::Timeout) => Err(format!("gave no answer within {} s", limit.as_secs_f64())),
        Ok(None) | Err(RecvTimeoutError::Disconnected) => {
            let status = end_of(&mut child.0).map_err(|error| format!("its process cannot be waited for: {error}"))?;
            let words = last_words.and_then(|words| words.recv_timeout(LAST_RITES).ok()).unwrap_or_default();
            Err(status.map_or_else(|| "closed its pipe and went on".to_owned(), |status| death(status, &words)))
        }
    }
}

/// Reads what a child prints to its end, and keeps the beginning.
fn keep_last_words(mut pipe: ChildStderr) -> Receiver<String> {
    let (sender, words) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.by_ref().take(LAST_WORDS).read_to_end(&mut text);
        // What is more is not kept, but a child must be able to say it.
        let _ = io::copy(&mut pipe, &mut io::sink());
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    words
}

/// How a child ended whose pipe is closed; `None` if it goes on all the same.
fn end_of(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        match child.try_wait()? {
            None if begun.elapsed() < LAST_RITES => std::thread::sleep(Duration::from_millis(2)),
            ended => return Ok(ended),
        }
    }
}

/// A child that does not outlive the question.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // The group, since a program that was asked for its version may hang in there too. What has answered needs no
        // time to end: a library that takes long to close, or crashes then, has nothing more to say.
        if let Ok(None) = self.0.try_wait()
            && let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

fn start(binary: &Path, folders: &[PathBuf]) -> io::Result<Child> {
    Command::new(binary)
        .arg(WORKER_VERB)
        .envs(search_paths(folders))
        // A library that looks around looks in a folder that nobody planted anything in.
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

fn tell(child: &mut Child, job: &Job) -> io::Result<()> {
    let Some(mut orders) = child.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let mut line = serde_json::to_vec(job)?;
    line.push(b'\n');
    orders.write_all(&line)
}

fn last_word(kind: EventKind) -> Option<Result<Answer, String>> {
    match kind {
        EventKind::Discovered { version, provides, gpus } => Some(Ok(Answer { version, provides, gpus })),
        EventKind::Failed { message, .. } => Some(Err(message)),
        _ => None,
    }
}

/// What a death without an answer means.
fn death(status: ExitStatus, words: &str) -> String {
    let last = words.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let words = last.map(|line| format!(": {line}")).unwrap_or_default();
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = signal_hook::low_level::signal_name(signal);
            let name = name.map_or_else(|| format!("signal {signal}"), str::to_owned);
            format!("opening it killed the process ({name}){words}")
        }
        (None, Some(code)) => format!("opening it ended the process with status {code}{words}"),
        (None, None) => "opening it ended the process".to_owned(),
    }
}
