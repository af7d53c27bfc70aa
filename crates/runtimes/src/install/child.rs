//! A pip at work: a child that ends when we do.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use prony_work::{Interrupt, Supervised, mortal};

use super::Stopped;
use super::pip::isolate;

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
pub(super) struct Transferred {
    pub done: u64,
    pub total: u64,
}

/// A running pip. Dropping it ends it.
#[derive(Debug)]
pub(super) struct PipChild {
    child: Supervised,
    heard: Arc<Heard>,
    reader: Option<JoinHandle<()>>,
}

impl PipChild {
    /// Starts pip in `scratch`, with its temporary files there, so that they vanish with it.
    pub(super) fn spawn(words: &[OsString], scratch: &Path) -> anyhow::Result<PipChild> {
        let (output, input) = io::pipe()?;
        let (program, arguments) = words.split_first().context("pip has no name")?;
        let mut command = mortal(Path::new(program));
        isolate(&mut command);
        command.args(arguments).current_dir(scratch).env("TMPDIR", scratch);
        command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        let child = Supervised::spawn(&mut command).context("cannot start a child process")?;
        // It holds the other end of the pipe, which would never be closed.
        drop(command);
        let heard = Arc::new(Heard::default());
        let listener = Arc::clone(&heard);
        let reader = std::thread::spawn(move || listen(BufReader::new(output), &listener));
        Ok(PipChild { child, heard, reader: Some(reader) })
    }

    /// Waits for the end, telling how far it is; the lines that pip said.
    pub(super) fn wait(
        mut self,
        interrupt: &Interrupt,
        on_progress: &mut dyn FnMut(Transferred),
    ) -> anyhow::Result<(ExitStatus, Vec<String>)> {
        let status = loop {
            if let Some(status) = self.child.ended()? {
                break status;
            }
            if interrupt.asked() {
                return Err(Stopped.into());
            }
            let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
            on_progress(Transferred { done: load(&self.heard.done), total: load(&self.heard.total) });
            std::thread::sleep(Duration::from_millis(50));
        };
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let lines = std::mem::take(&mut *self.heard.lines.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((status, lines))
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
