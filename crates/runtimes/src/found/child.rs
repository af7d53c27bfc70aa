//! One library in one child: it answers, dies or hangs, and each is a finding.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::discovery::Answer;
use prony_types::{DiscoverJob, Event, EventKind, Job, RuntimeName, WORKER_PROTOCOL};
use prony_work::{Death, Supervised, WORKER_VERB};

use crate::policy::search_paths;

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
pub fn question<T: Send + 'static>(
    binary: &Path,
    job: &Job,
    folders: &[PathBuf],
    limit: Duration,
    answer: fn(EventKind) -> Option<Result<T, String>>,
) -> Result<T, String> {
    let mut child = start(binary, folders).map_err(|error| format!("cannot start a process to open it: {error}"))?;
    // A child that died before it read its job is found out below, by its closed pipe.
    let _ = tell(&mut child, job);
    let (sender, answers) = channel();
    let stdout = child.take_stdout();
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).map_while(Result::ok);
        let mut events = lines.filter_map(|line| serde_json::from_str::<Event>(&line).ok());
        // Gone, if nobody waits any more.
        let _ = sender.send(events.find_map(|event| answer(event.kind)));
    });
    let last_words = child.take_stderr().map(keep_last_words);
    match answers.recv_timeout(limit) {
        Ok(Some(answer)) => answer,
        Err(RecvTimeoutError::Timeout) => Err(format!("gave no answer within {} s", limit.as_secs_f64())),
        Ok(None) | Err(RecvTimeoutError::Disconnected) => {
            let status =
                child.ends_within(LAST_RITES).map_err(|error| format!("its process cannot be waited for: {error}"))?;
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

fn start(binary: &Path, folders: &[PathBuf]) -> io::Result<Supervised> {
    let mut command = Command::new(binary);
    command
        .arg(WORKER_VERB)
        .envs(search_paths(folders))
        // A library that looks around looks in a folder that nobody planted anything in.
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // What has answered needs no time to end: a library that takes long to close, or crashes then, has nothing more to say.
    Supervised::spawn(&mut command)
}

fn tell(child: &mut Supervised, job: &Job) -> io::Result<()> {
    let Some(mut orders) = child.take_stdin() else { return Err(io::ErrorKind::BrokenPipe.into()) };
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
    let death = Death::from(status);
    match death {
        Death::Signal(signal) => {
            let name = death.signal_name().map_or_else(|| format!("signal {signal}"), str::to_owned);
            format!("opening it killed the process ({name}){words}")
        }
        Death::Status(code) => format!("opening it ended the process with status {code}{words}"),
        Death::Unknown => "opening it ended the process".to_owned(),
    }
}
