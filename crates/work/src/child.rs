//! A child in a process group of its own. However its owner leaves, neither the child nor anything that it started stays behind.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// First argument of the command line of a worker.
pub const WORKER_VERB: &str = "worker";

/// How often a child is looked at that is about to end.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A child that does not outlive this value.
#[derive(Debug)]
pub struct Supervised(Child);

impl Supervised {
    /// Starts a command in a group of its own.
    pub fn spawn(command: &mut Command) -> io::Result<Supervised> {
        command.process_group(0).spawn().map(Supervised)
    }

    /// Its process, and its group.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// The pipe to its stdin, once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.0.stdin.take()
    }

    /// The pipe from its stdout, once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// The pipe from its stderr, once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.0.stderr.take()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    /// How it ended; `None` if it goes on after all this time.
    pub fn ends_within(&mut self, grace: Duration) -> io::Result<Option<ExitStatus>> {
        let begun = Instant::now();
        loop {
            match self.0.try_wait()? {
                None if begun.elapsed() < grace => std::thread::sleep(LOOK_EVERY),
                ended => return Ok(ended),
            }
        }
    }

    /// Ends it and whatever it started, now.
    pub fn kill(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// Ends it, and waits until it has ended.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.0.try_wait()? {
            return Ok(status);
        }
        self.kill();
        self.0.wait()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Supervised {
        Supervised::spawn(Command::new("sh").args(["-c", script]).stdout(Stdio::piped())).unwrap()
    }

    #[test]
    fn a_grandchild_held_a_pipe_open_after_its_parent_was_ended() {
        let mut child = shell("sleep 600 & echo begun; wait");
        let mut pipe = child.take_stdout().unwrap();
        let mut word = [0; 6];
        pipe.read_exact(&mut word).unwrap();
        drop(child);
        let mut rest = Vec::new();
        // Returns only once nobody has the other end any more.
        pipe.read_to_end(&mut rest).unwrap();
        assert_eq!((&word[..], rest.len()), (&b"begun\n"[..], 0));
    }

    #[test]
    fn whoever_ends_by_itself_is_waited_for_and_whoever_does_not_is_not() {
        let status = shell("exit 3").ends_within(Duration::from_secs(60)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3));
        let mut endless = shell("sleep 600");
        assert_eq!(endless.ends_within(Duration::from_millis(20)).unwrap(), None);
        assert!(!endless.end().unwrap().success());
    }
}
