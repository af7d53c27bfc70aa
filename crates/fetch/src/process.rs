//! A tool at work: what it prints, how it ended, and a limit on what it writes.

use std::fs::File;
use std::io::Read;
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use prony_work::Supervised;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::tool::{LEAST_RATE, SILENCE_S};

/// Most bytes of headers and messages that are read.
const MAX_HEAD: u64 = 256 << 10;

/// A running tool. Dropping it ends it, and waits until it has ended.
pub(super) struct Running {
    child: Supervised,
    said: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts it with its output at the end of `file`, which it cannot make longer than `limit` bytes.
    pub(super) fn start(mut command: Command, name: &str, file: &File, limit: u64) -> anyhow::Result<Running> {
        command.stdout(file.try_clone()?).stderr(Stdio::piped());
        let mut child = Supervised::spawn(&mut command).with_context(|| format!("cannot start {name}"))?;
        let stderr = child.take_stderr();
        let said = Arc::new(Mutex::new(Vec::new()));
        let mut running = Running { child, said: Arc::clone(&said), reader: None };
        if let Some(pid) = i32::try_from(running.child.pid()).ok().and_then(Pid::from_raw) {
            let most = Some(limit);
            // One that has ended already needs no limit.
            let _ = prlimit(Some(pid), Resource::Fsize, Rlimit { current: most, maximum: most });
            let _ = prlimit(Some(pid), Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        }
        running.reader = stderr.map(|pipe| std::thread::spawn(move || listen(pipe, &said)));
        Ok(running)
    }

    /// How it ended, if it has. Then everything that it printed is there.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let status = self.child.ended()?;
        if status.is_some() {
            self.join();
        }
        Ok(status)
    }

    /// What it has printed so far.
    pub(super) fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Ends it. Everything that it printed is there afterwards.
    pub(super) fn kill(&mut self) {
        let _ = self.child.end();
        self.join();
    }

    fn join(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn listen(pipe: ChildStderr, said: &Mutex<Vec<u8>>) {
    let mut pipe = pipe.take(MAX_HEAD);
    let mut buffer = [0; 4096];
    // With more headers than that the pipe is closed, and the tool ends.
    while let Ok(got @ 1..) = pipe.read(&mut buffer) {
        said.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..got]);
    }
}

/// Notices a server that sends next to nothing.
pub(super) struct Stall {
    since: Instant,
    bytes: u64,
}

impl Stall {
    pub(super) fn new(now: Instant, bytes: u64) -> Stall {
        Stall { since: now, bytes }
    }

    /// Whether less than the least rate has come for too long.
    pub(super) fn is_stalled(&mut self, now: Instant, bytes: u64) -> bool {
        if bytes.saturating_sub(self.bytes) >= LEAST_RATE * SILENCE_S {
            (self.since, self.bytes) = (now, bytes);
        }
        now.duration_since(self.since) > Duration::from_secs(SILENCE_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_drips_was_waited_for() {
        let begun = Instant::now();
        let at = |s: u64| begun + Duration::from_secs(s);
        let mut drip = Stall::new(begun, 0);
        assert!((1..=60).all(|s| !drip.is_stalled(at(s), s * 100)));
        assert!(drip.is_stalled(at(61), 6100));
        let mut silent = Stall::new(begun, 1 << 30);
        assert!(silent.is_stalled(at(61), 1 << 30));
        let mut slow = Stall::new(begun, 0);
        assert!((1..=600).all(|s| !slow.is_stalled(at(s), s * LEAST_RATE)));
    }
}
