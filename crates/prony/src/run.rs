//! One execution of a plan: workers, their rounds, and a record that is on disk after every step.

mod files;
mod fold;
mod interrupt;
mod lock;
mod progress;
mod redactor;
mod schedule;
mod sensors;
mod worker;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use prony_bench::now_ns;
use prony_judge as judge;
use prony_types::{
    CellRecord, CellSpec, CellStatus, Command, Event, EventKind, ExitCode, MeasureJob, MemorySafety, Phase, Plan,
    RunInfo, RunRecord, SCHEMA, Telemetry, WORKER_PROTOCOL,
};

pub(crate) use self::files::{Files, pictures, utc_stamp};
use self::fold::CellFold;
pub(crate) use self::interrupt::Interrupt;
use self::lock::MachineLock;
pub(crate) use self::progress::{Loudness, Progress, short_time};
pub(crate) use self::redactor::Redactor;
pub(crate) use self::schedule::estimate_s;
use self::sensors::Sensors;
pub(crate) use self::worker::WORKER_VERB;
use self::worker::{Message, Worker, cause_of_death};
use crate::resolve::Fate;

/// How often the parent looks at the ring and the clock while a worker is timed. It costs a worker's core a few
/// microseconds each time.
const TICK: Duration = Duration::from_millis(100);

/// A run under way.
pub(crate) struct Run {
    record: RunRecord,
    cells: Vec<RunCell>,
    files: Files,
    progress: Progress,
    interrupt: Interrupt,
    sensors: Sensors,
    messages: Receiver<Message>,
    sender: Sender<Message>,
    telemetry: Vec<Telemetry>,
    earlier_s: f64,
    begun: Instant,
}

struct RunCell {
    spec: CellSpec,
    fold: CellFold,
    worker: Option<Worker>,
    /// Last time it said something or a sample came.
    alive: Instant,
    /// Samples that are in `samples.csv` already.
    logged: usize,
    /// Seconds of finished rounds.
    measured_s: f64,
    rounds: u32,
    /// What it was last told to do, for the cause of death.
    doing: &'static str,
}

/// How waiting for a worker ended.
#[derive(Debug, PartialEq)]
enum Waited {
    Answered,
    Ended,
}

/// What a run begins with.
pub(crate) struct Beginning {
    pub(crate) info: RunInfo,
    pub(crate) plan: Plan,
    pub(crate) fates: std::collections::BTreeMap<String, Fate>,
    /// Cells of an earlier sitting: those that are completed stay as they are.
    pub(crate) earlier: Option<RunRecord>,
    pub(crate) loudness: Loudness,
}

impl Run {
    pub(crate) fn new(begin: Beginning, files: Files, interrupt: Interrupt) -> anyhow::Result<Run> {
        let Beginning { info, plan, fates, earlier, loudness } = begin;
        let (sender, messages) = channel();
        let sensors = Sensors::start(sender.clone());
        let ids: Vec<String> = plan.cells.iter().map(|cell| cell.id.clone()).collect();
        let mut earlier_samples = match &earlier {
            Some(_) => files.read_samples()?,
            None => Vec::new(),
        };
        let mut cells = Vec::new();
        for spec in &plan.cells {
            let before = earlier.as_ref().and_then(|run| run.cells.iter().find(|cell| cell.id == spec.id));
            let fold = match before {
                Some(record) if record.status == CellStatus::Completed => {
                    let mine = earlier_samples.extract_if(.., |(id, _)| *id == spec.id).map(|(_, sample)| sample);
                    CellFold::finished(record.clone(), mine.collect())
                }
                before => CellFold::new(spec, before.map_or(1, |record| record.attempt + 1)),
            };
            let logged = fold.samples.len();
            let mut cell = RunCell {
                spec: spec.clone(),
                fold,
                worker: None,
                alive: Instant::now(),
                logged,
                measured_s: 0.0,
                rounds: 0,
                doing: "starting",
            };
            if let Some(fate) = fates.get(&spec.id) {
                cell.fold.close(fate.status, Some(fate.reason.clone()), &plan.budget);
            }
            cells.push(cell);
        }
        let environment = match &earlier {
            Some(run) => run.environment.clone(),
            None => prony_probe::environment(),
        };
        let earlier_s = earlier.as_ref().and_then(|run| run.run.wall_s).unwrap_or(0.0);
        let record = RunRecord {
            schema: SCHEMA.to_owned(),
            run: info,
            environment,
            method: schedule::method(&plan),
            plan,
            cells: Vec::new(),
            comparisons: Vec::new(),
            gates: Vec::new(),
            memory_safety: MemorySafety::default(),
            recommendation: Vec::new(),
        };
        let progress = Progress::new(&ids, loudness);
        Ok(Run {
            record,
            cells,
            files,
            progress,
            interrupt,
            sensors,
            messages,
            sender,
            telemetry: Vec::new(),
            earlier_s,
            begun: Instant::now(),
        })
    }

    /// Does it all. Whatever happens to a cell, the others go on and the record is written.
    pub(crate) fn execute(mut self) -> anyhow::Result<(RunRecord, Files)> {
        self.files.write_environment(&self.record.environment)?;
        self.publish()?;
        for index in 0..self.cells.len() {
            match self.cells[index].fold.record.status {
                CellStatus::Completed => self.progress.finish(index, "kept from the earlier run"),
                CellStatus::Pending => {}
                status => {
                    let reason = self.cells[index].fold.record.reason.clone().unwrap_or_default();
                    self.progress.finish(index, &format!("{}: {reason}", status.name()));
                }
            }
        }
        let progress = &self.progress;
        let waiting =
            || progress.say("another prony is measuring on this machine; waiting for it to end (Ctrl-C gives up)");
        let lock =
            MachineLock::acquire(&self.interrupt, waiting).context("cannot take the machine's measuring lock")?;
        if lock.is_some() {
            self.prepare_cells();
            self.measure_rounds();
            self.measure_throughput();
            self.finish_cells();
        }
        for index in 0..self.cells.len() {
            if self.cells[index].fold.record.status == CellStatus::Pending {
                self.close(index, CellStatus::Interrupted, Some("interrupted before it began".to_owned()));
            }
        }
        drop(lock);
        self.sensors.point_at(None);
        self.conclude()
    }

    fn is_running(&self, index: usize) -> bool {
        self.cells[index].worker.is_some()
    }

    /// Loads the cells one after the other, so that no cold start is disturbed by another, and warms them up.
    fn prepare_cells(&mut self) {
        for index in 0..self.cells.len() {
            if self.interrupt.asked() {
                return;
            }
            if self.cells[index].fold.record.status != CellStatus::Pending {
                continue;
            }
            self.progress.milestone(index, "loading");
            if let Err(error) = self.start_worker(index) {
                self.close(index, CellStatus::Failed, Some(format!("cannot start a worker: {error:#}")));
                continue;
            }
            let ready = |event: &EventKind| matches!(event, EventKind::Frames { .. });
            if self.wait(index, ready) == Waited::Answered {
                self.order(index, &Command::WarmUp, "warming up");
                self.wait(index, |event| matches!(event, EventKind::Steady { .. }));
            }
            self.sensors.point_at(None);
        }
    }

    fn start_worker(&mut self, index: usize) -> anyhow::Result<()> {
        let cell = &mut self.cells[index];
        let folder = self.files.cell_dir(&cell.fold.record.slug)?;
        let log = folder.join("worker.log");
        let job = MeasureJob {
            protocol: WORKER_PROTOCOL,
            cell: cell.spec.clone(),
            slot: 0,
            input: self.record.plan.input.clone(),
            post: self.record.plan.post,
            warmup_s: self.record.plan.budget.warmup_s,
            folder: std::path::absolute(folder)?,
            ring_fd: -1,
            fault: None,
        };
        let worker = Worker::spawn(index, job, &log, self.sender.clone())?;
        self.sensors.point_at(Some((cell.spec.id.clone(), worker.pid())));
        cell.alive = Instant::now();
        cell.doing = "loading";
        cell.worker = Some(worker);
        Ok(())
    }

    fn order(&mut self, index: usize, command: &Command, doing: &'static str) {
        let cell = &mut self.cells[index];
        cell.doing = doing;
        cell.alive = Instant::now();
        if let Some(worker) = &mut cell.worker {
            self.sensors.point_at(Some((cell.spec.id.clone(), worker.pid())));
            worker.order(command);
        }
    }

    /// Rounds over all cells, there and back, until each has enough.
    fn measure_rounds(&mut self) {
        let mut round = 0;
        loop {
            round += 1;
            let mut open: Vec<usize> = (0..self.cells.len()).filter(|&i| self.wants_more(i)).collect();
            if open.is_empty() || self.interrupt.asked() {
                return;
            }
            if round % 2 == 0 {
                open.reverse();
            }
            let alone = open.len() == 1;
            for index in open {
                if self.interrupt.asked() {
                    return;
                }
                std::thread::sleep(schedule::pause(alone));
                self.measure_round(index, round);
            }
        }
    }

    fn measure_round(&mut self, index: usize, round: u32) {
        let cell = &self.cells[index];
        let taken = steady_count(cell);
        let slice = schedule::slice(&self.record.plan.budget, cell.measured_s, taken, cell.rounds);
        let command = Command::Round { round, seconds: slice.seconds, max_samples: slice.max_samples };
        self.order(index, &command, "measuring");
        let done = |event: &EventKind| matches!(event, EventKind::RoundDone { round: r, .. } if *r == round);
        if self.wait(index, done) == Waited::Answered {
            let cell = &mut self.cells[index];
            cell.measured_s += slice.seconds;
            cell.rounds += 1;
        }
        self.sensors.point_at(None);
    }

    fn wants_more(&self, index: usize) -> bool {
        let cell = &self.cells[index];
        let status = schedule::standing(&cell.fold.samples, cell.measured_s);
        self.is_running(index) && schedule::more(&self.record.plan.budget, status, cell.rounds)
    }

    fn measure_throughput(&mut self) {
        for index in 0..self.cells.len() {
            if self.interrupt.asked() {
                return;
            }
            if self.is_running(index) {
                let seconds = schedule::throughput_seconds(&self.record.plan.budget);
                std::thread::sleep(schedule::pause(false));
                self.progress.milestone(index, "throughput");
                self.order(index, &Command::Throughput { seconds }, "measuring throughput");
                self.wait(index, |event| matches!(event, EventKind::Throughput { .. }));
                self.sensors.point_at(None);
            }
        }
    }

    /// Has every worker check its outputs and end. An interrupted cell keeps what was measured.
    fn finish_cells(&mut self) {
        for index in 0..self.cells.len() {
            if !self.is_running(index) {
                continue;
            }
            self.order(index, &Command::Finish, "checking outputs");
            let ended = self.wait(index, |event| matches!(event, EventKind::Finished { .. }));
            if ended == Waited::Answered {
                let complete = !self.wants_more(index) && self.cells[index].fold.record.throughput_fps.is_some();
                let (status, reason) = match complete {
                    true => (CellStatus::Completed, None),
                    false => {
                        (CellStatus::Interrupted, Some("interrupted; figures are of what was measured".to_owned()))
                    }
                };
                self.close(index, status, reason);
            }
        }
    }

    /// Waits until a worker has said a certain thing or has ended, keeping everything else going.
    fn wait(&mut self, index: usize, answer: impl Fn(&EventKind) -> bool) -> Waited {
        let timeout = Duration::from_secs_f64(self.record.plan.budget.timeout_s);
        loop {
            match self.messages.recv_timeout(TICK) {
                Ok(Message::Event { worker, event }) => {
                    let answered = worker == index && answer(&event.kind);
                    self.take_event(worker, &event);
                    if answered {
                        self.drain(index);
                        return Waited::Answered;
                    }
                }
                Ok(Message::Garbage { worker, line }) => {
                    tracing::warn!("{}: not an event: {line}", self.cells[worker].spec.id);
                }
                Ok(Message::Closed { worker }) => {
                    self.bury(worker);
                    if worker == index {
                        return Waited::Ended;
                    }
                }
                Ok(Message::Telemetry(reading)) => self.take_reading(*reading),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.drain(index);
            self.show(index);
            let cell = &mut self.cells[index];
            if cell.alive.elapsed() > timeout {
                let reason = format!(
                    "no sign of life for {} while {}; killed (--timeout)",
                    short_time(timeout.as_secs_f64()),
                    cell.doing
                );
                return self.give_up(index, CellStatus::Failed, reason);
            }
            if self.interrupt.insisted() {
                return self.give_up(index, CellStatus::Interrupted, "interrupted twice; killed".to_owned());
            }
        }
    }

    fn give_up(&mut self, index: usize, status: CellStatus, reason: String) -> Waited {
        if let Some(worker) = &mut self.cells[index].worker {
            worker.kill();
        }
        self.drain(index);
        self.close(index, status, Some(reason));
        Waited::Ended
    }

    fn take_event(&mut self, index: usize, event: &Event) {
        let cell = &mut self.cells[index];
        cell.alive = Instant::now();
        self.files.log_event(event);
        tracing::debug!("{}: {:?}", event.cell, event.kind);
        cell.fold.apply(&cell.spec, &event.kind);
        match &event.kind {
            EventKind::Cold { total_ms, .. } => {
                let load = cell.fold.record.load_ms.unwrap_or_default();
                self.progress.milestone(index, &format!("loaded in {load:.0} ms, first frame {total_ms:.1} ms"));
            }
            EventKind::Frames { skipped, .. } => {
                for reason in skipped {
                    self.progress.say(&format!("  {}: skipped: {reason}", event.cell));
                }
            }
            EventKind::Failed { message, .. } => {
                self.close(index, CellStatus::Failed, Some(message.clone()));
            }
            _ => {}
        }
    }

    fn take_reading(&mut self, reading: Telemetry) {
        self.files.log_reading(&reading);
        let timed = reading.cell.as_ref().and_then(|id| self.cells.iter_mut().find(|cell| cell.spec.id == *id));
        if let Some(cell) = timed
            && cell.doing == "measuring"
        {
            cell.fold.telemetry.push(reading.clone());
        }
        self.telemetry.push(reading);
    }

    /// Moves new samples from the ring to memory and to disk.
    fn drain(&mut self, index: usize) {
        let cell = &mut self.cells[index];
        let Some(worker) = &mut cell.worker else { return };
        worker.drain(&mut cell.fold.samples);
        cell.fold.lost = worker.lost();
        if cell.logged < cell.fold.samples.len() {
            cell.alive = Instant::now();
            self.files.log_samples(&cell.spec.id, &cell.fold.samples[cell.logged..]);
            cell.logged = cell.fold.samples.len();
        }
    }

    fn show(&self, index: usize) {
        if self.progress.is_live() {
            let cell = &self.cells[index];
            let (done, text) =
                schedule::figure(&self.record.plan.budget, &cell.fold.samples, cell.measured_s, cell.doing);
            self.progress.figure(index, done, || text);
        }
    }

    /// A worker's pipe is closed: find out how it died, unless it was known already.
    fn bury(&mut self, index: usize) {
        self.drain(index);
        let cell = &mut self.cells[index];
        let Some(mut worker) = cell.worker.take() else { return };
        let (cause, hint) = match worker.wait() {
            Ok(status) => cause_of_death(status),
            Err(error) => (format!("ended, and its status cannot be read: {error}"), ""),
        };
        if cell.fold.record.status == CellStatus::Pending {
            let reason =
                format!("worker {cause} while {}, after {} timed samples{hint}", cell.doing, steady_count(cell));
            self.close(index, CellStatus::Failed, Some(reason));
        }
    }

    /// Ends a cell: no worker, a status, figures, and the record on disk.
    fn close(&mut self, index: usize, status: CellStatus, reason: Option<String>) {
        self.drain(index);
        let cell = &mut self.cells[index];
        // Dropping a worker that still lives kills it.
        if let Some(mut worker) = cell.worker.take() {
            if status == CellStatus::Completed {
                let _ = worker.wait();
            }
            drop(worker);
        }
        cell.fold.close(status, reason, &self.record.plan.budget);
        let record = &cell.fold.record;
        self.progress.finish(index, &schedule::last_word(record));
        if let Err(error) = self.publish() {
            tracing::error!("{error:#}");
        }
    }

    /// Puts the record on disk as it is now.
    fn publish(&mut self) -> anyhow::Result<()> {
        self.record.cells = self.cells.iter().map(|cell| cell.fold.record.clone()).collect();
        self.record.memory_safety = MemorySafety {
            all_within_limit: None,
            total_violations: 0,
            lowest_available_mib: judge::lowest_available_mib(&self.telemetry),
        };
        self.files.write_record(&self.record)
    }

    fn conclude(mut self) -> anyhow::Result<(RunRecord, Files)> {
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Telemetry(reading) = message {
                self.take_reading(*reading);
            }
        }
        self.progress.clear();
        self.record.cells = self.cells.iter().map(|cell| cell.fold.record.clone()).collect();
        let cells: &[CellRecord] = &self.record.cells;
        let rounds = |id: &str| {
            self.cells.iter().find(|cell| cell.spec.id == id).map(|cell| cell.fold.rounds()).unwrap_or_default()
        };
        self.record.comparisons = judge::comparisons(cells, &rounds);
        self.record.recommendation = judge::recommend(cells, &self.record.comparisons);
        let plan = &self.record.plan;
        let code = judge::exit_code(cells, &plan.cells, &self.record.gates, plan.strict, self.interrupt.asked());
        self.record.run.exit_code = Some(code);
        self.record.run.finished = Some(files::utc_now());
        self.record.run.wall_s = Some(self.earlier_s + self.begun.elapsed().as_secs_f64());
        self.publish()?;
        Ok((self.record, self.files))
    }
}

fn steady_count(cell: &RunCell) -> u64 {
    cell.fold.samples.iter().filter(|sample| sample.phase == Phase::Steady).count() as u64
}

/// The identity of a run that begins now.
pub(crate) fn run_info(id: String, command: Vec<String>) -> anyhow::Result<RunInfo> {
    let binary = std::fs::read(std::env::current_exe()?).context("cannot read this very binary")?;
    Ok(RunInfo {
        id,
        started: files::utc_now(),
        finished: None,
        command,
        version: crate::version::VERSION.to_owned(),
        binary_sha256: prony_model::sha256_hex(&binary),
        exit_code: None::<ExitCode>,
        anchor_ns: now_ns(),
        wall_s: None,
        redacted: false,
    })
}
