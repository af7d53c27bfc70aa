//! What a command writes for people and programs: its result on stdout, everything else on stderr.
//!
//! `println!` and `eprintln!` panic when the other end of a pipe is closed, so `prony bench 2>&1 | head -3` would lose a
//! run that was nearly done. Nothing in the binary uses them; clippy refuses them (`clippy.toml`).

/// Writes a line to stderr, as `eprintln!` does: an error or a warning. A stderr that cannot be written to is no reason to
/// fail.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::to_stderr(format_args!($($words)*)) };
}

/// Writes a line to stderr unless `--quiet` was given: progress, or what is good to know.
macro_rules! note {
    ($($words:tt)*) => {
        if !$crate::output::is_quiet() {
            $crate::output::to_stderr(format_args!($($words)*));
        }
    };
}

mod making;

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

pub(crate) use self::making::{MakingProgress, Pace, words};

/// Set once, before the first command, and only read afterwards.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Heeds `--quiet`: progress and notes are left out from now on.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether only the result, warnings and errors are wanted.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether there is a terminal to draw progress on, and someone who wants to see it.
pub(crate) fn is_live() -> bool {
    !is_quiet() && io::stderr().is_terminal()
}

/// See [`say!`]. The line goes out in one piece, so that it does not mix with those of other processes.
pub(crate) fn to_stderr(line: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// The result could not be written, and not because its reader has seen enough.
#[derive(Debug)]
pub(crate) struct StdoutError(io::Error);

impl fmt::Display for StdoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to stdout: {}", self.0)
    }
}

impl std::error::Error for StdoutError {}

/// Writes a result to stdout as one JSON document.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(print(serde_json::to_string_pretty(value)? + "\n")?)
}

/// Writes a result to stdout. A closed pipe is no error: the reader has seen enough.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), StdoutError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(StdoutError(error)),
        _ => Ok(()),
    }
}
