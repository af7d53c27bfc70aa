//! What a command writes for people and programs: its result on stdout, everything else on stderr.
//!
//! `println!` and `eprintln!` panic when the other end of a pipe is closed, so `prony bench 2>&1 | head -3` would lose a
//! run that was nearly done. Nothing in the binary uses them; clippy refuses them (`clippy.toml`).

/// Writes a line to stderr, as `eprintln!` does: an error or a warning. Control characters of names and texts from outside are
/// escaped. A stderr that cannot be written to is no reason to fail.
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

pub(crate) mod bars;
mod cells;
mod making;
mod view;

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use prony_types::text::printable_lines;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;

pub(crate) use self::cells::Cells;
pub(crate) use self::making::{MakingProgress, show_making};
pub(crate) use self::view::{Sign, View};

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
    let _ = io::stderr().lock().write_all(printable_lines(&format!("{line}\n")).as_bytes());
}

/// Stderr for whoever writes there by itself and in colour, as `tracing` does: nothing gets through but lines and colours.
pub(crate) struct Painted(pub(crate) io::Stderr);

impl io::Write for Painted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write_all(painted(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), StdoutError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| StdoutError(error.into()))?;
    print(text + "\n")
}

/// Writes a result to stdout, whatever names and texts from outside are in it: control characters are escaped. A closed pipe
/// is no error: the reader has seen enough.
pub(crate) fn print(text: impl AsRef<str>) -> Result<(), StdoutError> {
    write(printable_lines(text.as_ref()).as_bytes())
}

/// As [`print()`], for text with colours of our own. Whoever painted it has cleaned what came from outside.
pub(crate) fn print_painted(text: &str) -> Result<(), StdoutError> {
    write(painted(text).as_bytes())
}

/// Looks at how the help, which clap writes itself, got out.
pub(crate) fn printed(outcome: io::Result<()>) -> Result<(), StdoutError> {
    match outcome.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(StdoutError(error)),
        _ => Ok(()),
    }
}

/// Not through `io::stdout`, which takes a stdout that is not open for writing for one that has taken everything.
fn write(mut bytes: &[u8]) -> Result<(), StdoutError> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::PIPE) => break,
            Err(Errno::AGAIN) => {
                let mut ready = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::OUT)];
                let _ = poll(&mut ready, None);
            }
            Err(error) => return Err(StdoutError(error.into())),
        }
    }
    Ok(())
}

/// Text in which colours stay, `ESC [ 1;32 m`, and nothing else does that a terminal would obey.
fn painted(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut out = printable_lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let end = part.strip_prefix('[').and_then(|rest| rest.find(|c: char| !c.is_ascii_digit() && c != ';'));
        let colour = end.is_some_and(|end| part[1 + end..].starts_with('m'));
        out.push_str(if colour { "\u{1b}" } else { "\\u001b" });
        out.push_str(&printable_lines(part));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_nothing_else_does() {
        assert_eq!(painted("\x1b[1;32mok\x1b[0m\n"), "\x1b[1;32mok\x1b[0m\n");
        for (hostile, shown) in [
            ("a\x1b[2Jb", "a\\u001b[2Jb"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("\x1b[31", "\\u001b[31"),
            ("\x1b\x1b[0m", "\\u001b\x1b[0m"),
            ("\u{9b}2J\r", "\\u009b2J\\r"),
        ] {
            assert_eq!(painted(hostile), shown);
        }
    }
}
