//! Who is alive: waits for workers, hands on what they say, and notices when they say nothing.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use prony_types::{CellStatus, Doing, Event, EventKind, FailureKind, Happened, Telemetry};
use prony_work::short_time;

use super::{Run, Waited, figures, standby};
use crate::sink::Sink as _;
use crate::worker::{Message, TICK, Worker, cause_of_death};

impl Run {
    /// Waits until a worker has said a certain thing or has ended, keeping everything else going.
    pub(super) fn wait(&mut self, index: usize, answer: impl Fn(&EventKind) -> bool) -> Waited {
        let timeout = Duration::from_secs_f64(self.plan().budget.timeout_s);
        while self.is_running(index) {
            match self.messages.recv_timeout(TICK) {
                Ok(Message::Event { worker, event }) => {
                    let answered = worker == index && answer(&event.kind);
                    self.take_event(worker, *event);
                    if answered {
                        self.drain(index);
                        return Waited::Answered;
                    }
                }
                Ok(Message::Garbage { worker, line }) => {
                    tracing::warn!("{}: not an event: {line}", self.cells[worker].spec.id);
                }
                Ok(Message::Closed { worker }) => self.bury(worker),
                Ok(Message::Telemetry(reading)) => self.take_reading(*reading),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.drain(index);
            if !matches!(self.cells[index].doing, Doing::Measuring | Doing::Throughput) {
                self.read_peak(index);
            }
            self.show(index);
            self.heed_interrupt(index);
            let cell = &self.cells[index];
            if cell.worker.is_some() && cell.alive.elapsed() > timeout {
                let silence = short_time(timeout.as_secs_f64());
                let doing = cell.doing.words();
                let reason = format!("no sign of life for {silence} while {doing}; killed (--timeout)");
                self.give_up(index, CellStatus::Failed, reason);
            }
        }
        Waited::Ended
    }

    /// The first Ctrl-C ends the loop that is under way, the second everything.
    fn heed_interrupt(&mut self, index: usize) {
        if self.interrupt.insisted() {
            self.give_up(index, CellStatus::Interrupted, "interrupted twice; killed".to_owned());
        } else if self.interrupt.asked() && !self.told_to_stop {
            self.told_to_stop = true;
            self.say("stopping; what was measured is kept (Ctrl-C again kills)");
            self.cells.iter().filter_map(|cell| cell.worker.as_ref()).for_each(Worker::ask_to_stop);
        }
        // A builder cannot be asked; there is nothing measured yet that could be lost.
        if self.interrupt.asked() && self.cells[index].is_being_made() {
            let what = self.cells[index].doing.words();
            self.give_up(index, CellStatus::Interrupted, format!("interrupted while {what}"));
        }
    }

    fn give_up(&mut self, index: usize, status: CellStatus, reason: String) {
        if let Some(worker) = &mut self.cells[index].worker {
            worker.kill();
            self.close(index, status, Some(reason));
        }
    }

    fn take_event(&mut self, index: usize, event: Event) {
        self.cells[index].alive = Instant::now();
        tracing::debug!("{}: {:?}", event.cell, event.kind);
        let event = Happened::Worker(Box::new(event));
        self.fold.take(&event);
        self.tell(&event);
        let Happened::Worker(event) = event else { return };
        let plan = &self.fold.record().plan;
        let cell = &mut self.cells[index];
        match event.kind {
            EventKind::Loaded { .. } => self.predict(index),
            EventKind::Evaluated { outcome, problem } => {
                cell.evaluated = outcome.map(|outcome| *outcome);
                if let Some(problem) = problem.filter(|_| !plan.timed) {
                    cell.failure = Some(problem.kind);
                }
            }
            EventKind::Prepared { artifact, .. } => cell.spec.artifact = Some(artifact),
            EventKind::RoundDone { seconds, .. } => {
                cell.measured_s += seconds;
                cell.rounds += 1;
            }
            EventKind::Failed { kind, message, .. } => {
                cell.failure = Some(kind);
                // What came from `auto`, `all` or a tier and turns out not to be possible here is no failure. That a library
                // does not take a model is the model's fault only if nothing else takes it either.
                let spared = kind == FailureKind::Model && standby::stands_by(plan, &cell.spec);
                let impossible = !cell.spec.named && (kind == FailureKind::Unsupported || spared);
                let status = if impossible { CellStatus::Skipped } else { CellStatus::Failed };
                self.close(index, status, Some(message));
            }
            _ => {}
        }
    }

    pub(super) fn take_reading(&mut self, mut reading: Telemetry) {
        let timed = reading.cell.as_ref().and_then(|id| {
            let index = self.cells.iter().position(|cell| cell.spec.id == *id)?;
            (self.cells[index].doing == Doing::Measuring).then_some(index)
        });
        reading.attempt = timed.map(|index| self.fold.cell(index).record.attempt);
        self.fold.take_reading(&reading);
        self.files.reading(&reading);
        self.spectator.reading(&reading);
    }

    /// Moves new samples from the ring to the record and to disk.
    pub(super) fn drain(&mut self, index: usize) {
        let fresh = self.cells[index].drain();
        self.hand_on_samples(index, &fresh);
    }

    fn show(&mut self, index: usize) {
        let cell = &self.cells[index];
        let has_its_own = cell.is_being_made() || cell.doing == Doing::Evaluating;
        if self.spectator.wants_figures() && self.is_running(index) && !has_its_own {
            let (done, text) = figures::figure(&self.plan().budget, cell, self.fold.cell(index));
            self.spectator.figure(&self.cells[index].spec.id, done, &text);
        }
    }

    /// A worker's pipe is closed: find out how it died, unless it was known already.
    fn bury(&mut self, index: usize) {
        self.drain(index);
        let cell = &mut self.cells[index];
        let Some(worker) = &mut cell.worker else { return };
        let (cause, hint) = match worker.wait() {
            Ok(status) if self.oom.claims(status) => return self.out_of_memory(index),
            Ok(status) => cause_of_death(status),
            Err(error) => (format!("ended, and its status cannot be read: {error}"), ""),
        };
        let doing = cell.doing.words();
        let reason = format!("worker {cause} while {doing}, after {} timed samples{hint}", cell.steady);
        self.close(index, CellStatus::Failed, Some(reason));
    }
}
