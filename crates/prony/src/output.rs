//! What a command writes for people and programs: its result on stdout, everything else on stderr.
//!
//! `println!` and `eprintln!` panic when the other end of a pipe is closed, so `prony bench 2>&1 | head -3` would lose a
//! run that was nearly done. Nothing in the binary uses them; clippy refuses them (`clippy.toml`).

use std::fmt;
use std::io::{self, ErrorKind, Write as _};

/// Writes a line to stderr, as `eprintln!` does. A stderr that cannot be written to is no reason to fail.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::to_stderr(format_args!($($words)*)) };
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

/// Writes a result to stdout. A closed pipe is no error: whoever reads has seen enough.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), StdoutError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(StdoutError(error)),
        _ => Ok(()),
    }
}
