//! A worker with one thing to do: started, listened to until it has said its last word, and ended.

use std::fs::File;
use std::process::ExitStatus;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use prony_types::{EventKind, Job};

use crate::worker::{Message, TICK, Worker, cause_of_death};
use prony_work::Interrupt;

/// How an errand ended.
#[derive(Debug)]
pub(crate) enum Errand<T> {
    /// The worker said what was waited for.
    Done(T),
    /// There is no worker, for this reason.
    NotStarted(String),
    /// The worker died of this, with its exit status where that could be read.
    Died(String, Option<ExitStatus>),
    /// The user wants no more.
    Interrupted,
    /// The worker gave no sign of life for too long.
    Silent,
}

/// Sends a worker off and waits until `last_word` takes one of its events for the end. However this ends, the worker does
/// not outlive it.
pub(crate) fn errand<T>(
    job: Job,
    log: File,
    interrupt: &Interrupt,
    patience: Duration,
    mut last_word: impl FnMut(EventKind) -> Option<T>,
) -> Errand<T> {
    let (sender, messages) = channel();
    let mut worker = match Worker::spawn(0, job, log, sender) {
        Ok(worker) => worker,
        Err(error) => return Errand::NotStarted(format!("cannot start a worker: {error:#}")),
    };
    let (mut alive, mut beats) = (Instant::now(), 0);
    loop {
        match messages.recv_timeout(TICK) {
            Ok(Message::Event { event, .. }) => {
                alive = Instant::now();
                let failed = matches!(event.kind, EventKind::Failed { .. });
                if let Some(end) = last_word(event.kind) {
                    if !failed {
                        let _ = worker.wait();
                    }
                    return Errand::Done(end);
                }
            }
            Ok(Message::Closed { .. }) => {
                return match worker.wait() {
                    Ok(status) => Errand::Died(cause_of_death(status).0, Some(status)),
                    Err(error) => Errand::Died(error.to_string(), None),
                };
            }
            _ => {}
        }
        if worker.beats() != beats {
            (beats, alive) = (worker.beats(), Instant::now());
        }
        if interrupt.asked() {
            return Errand::Interrupted;
        }
        if alive.elapsed() > patience {
            return Errand::Silent;
        }
    }
}
