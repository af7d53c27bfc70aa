//! Reads the sensors twice a second beside the timed cell.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use prony_bench::now_ns;
use prony_probe::Probe;

use crate::worker::Message;

const PERIOD: Duration = Duration::from_millis(500);

/// The cell being timed and its process.
type Target = Arc<Mutex<Option<(String, u32)>>>;

/// A thread that reads; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sensors {
    target: Target,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sensors {
    pub(crate) fn start(messages: Sender<Message>) -> Sensors {
        let target = Target::default();
        let (stop, stopped) = channel();
        let watched = Arc::clone(&target);
        let thread = std::thread::spawn(move || watch(&watched, &stopped, &messages));
        Sensors { target, stop: Some(stop), thread: Some(thread) }
    }

    /// From now on, readings belong to this cell (or to none).
    pub(crate) fn point_at(&self, target: Option<(String, u32)>) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }
}

impl Drop for Sensors {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(target: &Target, stopped: &Receiver<()>, messages: &Sender<Message>) {
    let mut probe = Probe::new();
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(PERIOD) {
        let now = target.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (cell, pid) = now.unzip();
        let reading = probe.read(now_ns(), cell, pid);
        if messages.send(Message::Telemetry(Box::new(reading))).is_err() {
            return;
        }
    }
}
