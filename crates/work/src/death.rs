//! How a process ended, in words.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// The end of a process, as its parent tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// By a signal.
    Signal(i32),
    /// By itself, with this status.
    Status(i32),
    /// In a way that the kernel did not tell.
    Unknown,
}

impl From<ExitStatus> for Death {
    fn from(status: ExitStatus) -> Death {
        match (status.signal(), status.code()) {
            (Some(signal), _) => Death::Signal(signal),
            (None, Some(code)) => Death::Status(code),
            (None, None) => Death::Unknown,
        }
    }
}

impl Death {
    /// The name of the signal, where it has one.
    pub fn signal_name(self) -> Option<&'static str> {
        match self {
            Death::Signal(signal) => signal_hook::low_level::signal_name(signal),
            Death::Status(_) | Death::Unknown => None,
        }
    }

    /// Whether a library or the program itself crashed.
    pub fn is_crash(self) -> bool {
        matches!(self.signal_name(), Some("SIGSEGV" | "SIGABRT" | "SIGBUS" | "SIGILL" | "SIGFPE"))
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Signal(signal) => {
                let name = self.signal_name().unwrap_or("an unknown signal");
                write!(f, "killed by {name} (signal {signal})")
            }
            Death::Status(code) => write!(f, "exited with status {code}"),
            Death::Unknown => f.write_str("ended in an unknown way"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_words() {
        let words = |raw: i32| Death::from(ExitStatus::from_raw(raw)).to_string();
        assert_eq!(words(9), "killed by SIGKILL (signal 9)");
        assert_eq!(words(11), "killed by SIGSEGV (signal 11)");
        assert_eq!(words(63), "killed by an unknown signal (signal 63)");
        assert_eq!(words(3 << 8), "exited with status 3");
        assert!(Death::Signal(11).is_crash() && !Death::Signal(9).is_crash() && !Death::Status(11).is_crash());
    }
}
