//! Asking a program something: it is started, it answers, and it ends in time or is ended.

use std::io::{self, Read, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::child::Supervised;
use crate::interrupt::Interrupt;

/// How often it is looked at whether it has ended, or shall end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a program answered.
#[derive(Debug)]
pub struct Captured {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to stdout, up to the limit.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr, up to the limit.
    pub stderr: Vec<u8>,
}

/// What a program is given, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// What it reads on stdin.
    pub input: &'a [u8],
    /// Bytes of each output that are kept; the rest is read and lost.
    pub limit: u64,
    /// It is killed after this time, with everything that it started.
    pub deadline: Duration,
    /// It is killed too where this is asked to stop.
    pub interrupt: Option<&'a Interrupt>,
}

impl Asking<'_> {
    /// A question with nothing on stdin, and an answer of up to a megabyte.
    pub fn within(deadline: Duration) -> Asking<'static> {
        Asking { input: b"", limit: 1 << 20, deadline, interrupt: None }
    }
}

/// Runs a command to its end and reads what it says. The error is `TimedOut` after the deadline, and `Interrupted` where the
/// user gave up.
pub fn capture(command: &mut Command, asking: &Asking<'_>) -> io::Result<Captured> {
    let begun = Instant::now();
    let stdin = if asking.input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = Supervised::spawn(command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stdout = child.take_stdout().map(|pipe| read(pipe, asking.limit));
    let stderr = child.take_stderr().map(|pipe| read(pipe, asking.limit));
    if let Some(mut pipe) = child.take_stdin() {
        // One that asks nothing may be gone by now. What is said here fits into a pipe.
        let _ = pipe.write_all(asking.input);
    }
    let mut status = None;
    // Its outputs end with it, or with what it started and left behind.
    while status.is_none() || [&stdout, &stderr].into_iter().flatten().any(|reader| !reader.is_finished()) {
        status = child.ends_within(LOOK_EVERY)?;
        if asking.interrupt.is_some_and(Interrupt::asked) {
            child.kill();
            return Err(io::ErrorKind::Interrupted.into());
        }
        if begun.elapsed() >= asking.deadline {
            child.kill();
            let reason = format!("no answer within {} s", asking.deadline.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        if status.is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let status = child.end()?;
    Ok(Captured { status, stdout: joined(stdout), stderr: joined(stderr) })
}

/// Reads everything, so that the program never waits, and keeps the first bytes.
fn read(mut pipe: impl Read + Send + 'static, limit: u64) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = pipe.by_ref().take(limit).read_to_end(&mut kept);
        let _ = io::copy(&mut pipe, &mut io::sink());
        kept
    })
}

fn joined(reader: Option<JoinHandle<Vec<u8>>>) -> Vec<u8> {
    reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8], limit: u64, deadline: Duration) -> io::Result<Captured> {
        capture(Command::new("sh").args(["-c", script]), &Asking { input, limit, ..Asking::within(deadline) })
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn answers_are_read_up_to_the_limit_and_the_program_ends_by_itself() {
        let answer = shell("cat; echo oops >&2; exit 3", b"no\n", 100, LONG).unwrap();
        assert_eq!((&answer.stdout[..], &answer.stderr[..]), (&b"no\n"[..], &b"oops\n"[..]));
        assert_eq!(answer.status.code(), Some(3));
        let much = shell("head -c 1000000 /dev/zero; echo done >&2", b"", 10, LONG).unwrap();
        assert_eq!((much.stdout.len(), &much.stderr[..]), (10, &b"done\n"[..]));
        assert!(much.status.success());
    }

    #[test]
    fn a_program_that_hangs_was_waited_for_without_end() {
        let begun = Instant::now();
        let error = shell("sleep 600", b"", 100, Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Its child holds the pipe although it has ended itself.
        let error = shell("sleep 600 & echo gone", b"", 100, Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = capture(&mut Command::new("/nowhere/program"), &Asking::within(LONG)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
