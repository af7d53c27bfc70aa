//! A pip at work: a child that ends when we do.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};

use super::Stopped;
use super::pip::isolate;
use crate::run::Interrupt;

/// What pip has said so far.
#[derive(Debug, Default)]
struct Heard {
    lines: Mutex<Vec<String>>,
    /// Bytes so far and in all, where pip says them.
    done: AtomicU64,
    total: AtomicU64,
}

/// How far a download is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) done: u64,
    pub(crate) total: u64,
}

/// A running pip. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct PipChild {
    child: Child,
    heard: Arc<Heard>,
    reader: Option<JoinHandle<()>>,
}

impl PipChild {
    /// Starts pip in `scratch`, with its temporary files there, so that they vanish with it.
    pub(crate) fn spawn(words: &[OsString], scratch: &Path) -> anyhow::Result<PipChild> {
        let (output, input) = io::pipe()?;
        let mut command = Command::new(std::env::current_exe()?);
        isolate(&mut command);
        let child = command
            .arg(prony_bench::CHILD_VERB)
            .args(words)
            .current_dir(scratch)
            .env("TMPDIR", scratch)
            .stdin(Stdio::null())
            .stdout(input.try_clone()?)
            .stderr(input)
            .process_group(0)
            .spawn()
            .context("cannot start a child process")?;
        let heard = Arc::new(Heard::default());
        let listener = Arc::clone(&heard);
        let reader = std::thread::spawn(move || listen(BufReader::new(output), &listener));
        Ok(PipChild { child, heard, reader: Some(reader) })
    }

    /// Waits for the end, telling how far it is; the lines that pip said.
    pub(crate) fn wait(
        mut self,
        interrupt: &Interrupt,
        on_progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<(ExitStatus, Vec<String>)> {
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if interrupt.asked() {
                return Err(Stopped.into());
            }
            let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
            on_progress(Progress { done: load(&self.heard.done), total: load(&self.heard.total) });
            std::thread::sleep(Duration::from_millis(50));
        };
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let lines = std::mem::take(&mut *self.heard.lines.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((status, lines))
    }
}

impl Drop for PipChild {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // Its whole group: pip may be a script that started a Python.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

fn listen(pipe: impl io::BufRead, heard: &Heard) {
    for line in pipe.split(b'\n') {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if let Some((done, total)) = progress(&line) {
            heard.done.store(done, Ordering::Relaxed);
            heard.total.store(total, Ordering::Relaxed);
        } else if !line.is_empty() {
            heard.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }
}

/// `Progress 262144 of 23760717`, as `--progress-bar raw` has it.
fn progress(line: &str) -> Option<(u64, u64)> {
    let (done, total) = line.strip_prefix("Progress ")?.split_once(" of ")?;
    Some((done.parse().ok()?, total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_and_the_rest_is_kept() {
        let heard = Heard::default();
        let said = "Collecting x\nProgress 0 of 23\nProgress 12 of 23\n\nProgress of 3\r\nSaved ./x.whl";
        listen(said.as_bytes(), &heard);
        assert_eq!((heard.done.into_inner(), heard.total.into_inner()), (12, 23));
        assert_eq!(heard.lines.into_inner().unwrap(), ["Collecting x", "Progress of 3", "Saved ./x.whl"]);
    }
}
