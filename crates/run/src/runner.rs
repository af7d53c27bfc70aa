//! One execution of a plan: what is next, who is alive, and what they say, handed on as it happens.

mod cell;
mod evaluating;
mod figures;
mod finishing;
mod listening;
mod making;
mod peaks;
mod rounds;
mod standby;
mod waves;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use prony_bench::now_ns;
use prony_plan::OpenedModels;
use prony_types::{
    CellStatus, Command, Doing, FailureKind, Happened, Job, MeasureJob, Plan, RunEvent, RunEventKind, RunRecord,
    Sample, WORKER_PROTOCOL,
};
use prony_work::Interrupt;

use self::cell::RunCell;
use crate::accuracy::Scores;
use crate::clock::utc_now;
use crate::files::Files;
use crate::footprint::Ledger;
use crate::lock::MachineLock;
use crate::logs::Logs;
use crate::oom::{OomWatch, memory_root};
use crate::record::RecordFold;
use crate::sensors::Sensors;
use crate::setup::RunSetup;
use crate::sink::Sink;
use crate::worker::{Message, Worker};

/// How often the record on disk gets the figures of cells that are not done yet.
const PUBLISH_EVERY: Duration = Duration::from_secs(5);
/// Of what time is spent on it at most one part in so many.
const PUBLISH_SHARE: u32 = 50;

/// A run under way.
pub struct Run {
    /// The record in the making: the first to hear of everything.
    fold: RecordFold,
    cells: Vec<RunCell>,
    files: Files,
    spectator: Box<dyn Sink>,
    interrupt: Interrupt,
    told_to_stop: bool,
    sensors: Sensors,
    /// `None` where there is no home.
    reference_cache: Option<PathBuf>,
    /// Where this run makes its references; gone when it ends.
    own_references: Option<PathBuf>,
    /// `None` where there is no home: then the run folder has them.
    artifact_cache: Option<PathBuf>,
    lock: Option<MachineLock>,
    messages: Receiver<Message>,
    sender: Sender<Message>,
    scores: Scores,
    /// What was read of the models, so that none is read for every cell.
    models: OpenedModels,
    oom: OomWatch,
    /// What cells took, for those that are loaded later.
    ledger: Ledger,
    /// Rounds so far, of all waves and sittings: no two of them have one in common.
    rounds: u32,
    /// How long earlier sittings took.
    earlier_s: f64,
    begun: Instant,
    published: Instant,
    /// How long it took to bring the record up to date the last time.
    publishing: Duration,
}

/// How waiting for a worker ended.
#[derive(Debug, PartialEq)]
enum Waited {
    Answered,
    Ended,
}

/// What a run ends with.
pub struct Ending {
    /// What came out.
    pub record: RunRecord,
    /// Where it is written.
    pub files: Files,
    /// Every cell failed because its model or input cannot be used: nothing ran.
    pub nothing_ran: bool,
}

impl Run {
    /// A run that writes to these files, is ended by this interrupt and watched by somebody.
    pub fn new(setup: RunSetup, files: Files, interrupt: Interrupt, spectator: Box<dyn Sink>) -> anyhow::Result<Run> {
        let RunSetup { info, plan, fates, earlier, environment, .. } = setup;
        let RunSetup { reference_cache, artifact_cache, baseline, data, models, lock, .. } = setup;
        let logs = match &earlier {
            Some(_) => Logs::read(files.path())?.spilling_to(files.path()),
            None => Logs::empty(files.path()),
        };
        let earlier_s = earlier.as_ref().and_then(|run| run.run.wall_s).unwrap_or(0.0);
        let began = RunEventKind::Began {
            info: Box::new(info),
            plan: Box::new(plan),
            environment: Box::new(environment),
            fates,
            earlier: earlier.map(Box::new),
            baseline: baseline.map(Box::new),
        };
        let began = happened(began);
        let Some(fold) = RecordFold::begun(&began, logs) else { anyhow::bail!("a run began without a beginning") };
        let pending = |cell: &crate::fold::CellFold| cell.record.status == CellStatus::Pending;
        let cells = fold.cells().iter().map(|cell| RunCell::new(&cell.spec, pending(cell))).collect();
        let (sender, messages) = channel();
        let mut run = Run {
            rounds: fold.last_round(),
            fold,
            cells,
            files,
            spectator,
            interrupt,
            told_to_stop: false,
            reference_cache,
            own_references: None,
            artifact_cache,
            lock,
            sensors: Sensors::start(sender.clone()),
            messages,
            sender,
            scores: Scores::new(data),
            models,
            oom: OomWatch::new(memory_root()),
            ledger: Ledger::default(),
            earlier_s,
            begun: Instant::now(),
            published: Instant::now(),
            publishing: Duration::ZERO,
        };
        run.tell(&began);
        Ok(run)
    }

    /// Does it all. Whatever happens to a cell, the others go on and the record is written. An error means that nothing
    /// was measured.
    pub fn execute(mut self) -> anyhow::Result<Ending> {
        if let Err(error) = self.begin() {
            let _ = self.files.discard();
            return Err(error);
        }
        self.make_ready();
        for wave in 0.. {
            let mut obstacle = self.load_wave();
            if self.call_standby() {
                self.make_ready();
                obstacle = self.load_wave();
            }
            self.record_wave(obstacle);
            if let Some(reason) = self.too_short_for_p99().filter(|_| wave == 0) {
                let Run { cells, files, .. } = self;
                // Workers die with their cells, before their folder goes.
                drop(cells);
                let _ = files.discard();
                anyhow::bail!(reason);
            }
            self.measure_wave();
            if self.interrupt.asked() || !self.cells.iter().any(RunCell::is_waiting) {
                break;
            }
        }
        for index in 0..self.cells.len() {
            if self.cells[index].is_pending {
                self.close(index, CellStatus::Interrupted, Some("interrupted before it began".to_owned()));
            }
        }
        self.lock = None;
        Ok(self.conclude())
    }

    /// Makes what cells need, before any of them is loaded.
    fn make_ready(&mut self) {
        self.make_artifacts();
        if !self.plan().timed {
            // Kernels are timed while an engine is built; nothing is from here on.
            self.lock = None;
        }
        self.measure_peaks();
    }

    /// Measures, scores, checks and ends the cells that are loaded.
    fn measure_wave(&mut self) {
        if self.plan().timed {
            self.measure_rounds();
            self.measure_throughput();
        }
        self.evaluate_cells();
        let references = self.references();
        self.finish_cells(&references);
    }

    /// The first words on disk: if these cannot be written, there is no point in going on.
    fn begin(&mut self) -> anyhow::Result<()> {
        self.files.write_environment(self.fold.record())?;
        self.files.write_record(self.fold.record())
    }

    fn plan(&self) -> &Plan {
        &self.fold.record().plan
    }

    fn is_running(&self, index: usize) -> bool {
        self.cells[index].worker.is_some()
    }

    fn slug(&self, index: usize) -> &str {
        &self.fold.cell(index).record.slug
    }

    /// Something was done: everybody hears of it.
    fn emit(&mut self, kind: RunEventKind) {
        let event = happened(kind);
        self.fold.take(&event);
        self.tell(&event);
    }

    /// Hands on what the record has already.
    fn tell(&mut self, event: &Happened) {
        self.files.event(event, &self.fold);
        self.spectator.event(event, &self.fold);
    }

    fn hand_on_samples(&mut self, index: usize, fresh: &[Sample]) {
        if fresh.is_empty() {
            return;
        }
        self.fold.take_samples(index, fresh);
        let record = &self.fold.cell(index).record;
        self.files.samples(&record.id, record.attempt, fresh);
        self.spectator.samples(&record.id, record.attempt, fresh);
    }

    /// A cell is about something else; told where it is news.
    fn set_doing(&mut self, index: usize, doing: Doing) {
        let cell = &mut self.cells[index];
        let news = std::mem::replace(&mut cell.doing, doing) != doing || doing == Doing::Loading;
        let cell = cell.spec.id.clone();
        if news {
            self.emit(RunEventKind::Doing { cell, doing });
        }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.emit(RunEventKind::Said { text: text.into() });
    }

    fn start_worker(&mut self, index: usize) -> anyhow::Result<()> {
        let slug = self.slug(index);
        let folder = self.files.cell_dir(slug)?;
        let log = self.files.cell_log(slug)?;
        let plan = self.plan();
        let job = Job::Measure(MeasureJob {
            protocol: WORKER_PROTOCOL,
            cell: self.cells[index].spec.clone(),
            slot: 0,
            input: plan.input.clone(),
            post: plan.post,
            warmup_s: plan.budget.warmup_s,
            folder: std::path::absolute(folder)?,
            ring_fd: -1,
            fault: None,
        });
        let worker = Worker::spawn(index, job, log, self.sender.clone())?;
        let cell = &mut self.cells[index];
        self.sensors.point_at(Some((cell.spec.id.clone(), worker.pid())));
        cell.alive = Instant::now();
        // Whoever made something for it took memory of their own.
        cell.peak_bytes = 0;
        cell.worker = Some(worker);
        Ok(())
    }

    fn order(&mut self, index: usize, command: &Command, doing: Doing) {
        self.set_doing(index, doing);
        let cell = &mut self.cells[index];
        let target = cell.worker.as_ref().map(|worker| (cell.spec.id.clone(), worker.pid()));
        self.sensors.point_at(target);
        cell.order(command);
    }

    /// Ends a cell: no worker, a status, figures, and the record on disk.
    fn close(&mut self, index: usize, status: CellStatus, reason: Option<String>) {
        self.drain(index);
        let cell = &mut self.cells[index];
        // Dropping a worker that still lives kills it.
        if let Some(mut worker) = cell.worker.take()
            && status != CellStatus::Interrupted
        {
            let _ = worker.wait();
        }
        cell.is_pending = false;
        let (cell, lost) = (cell.spec.id.clone(), cell.lost);
        self.emit(RunEventKind::Closed { cell, status, reason, lost });
        self.publish();
    }

    /// Whether figures of cells that are not done yet are due on disk. Bringing them up to date takes the longer the more samples
    /// there are.
    fn publish_if_due(&mut self) {
        if self.published.elapsed() > PUBLISH_EVERY.max(self.publishing * PUBLISH_SHARE) {
            self.publish();
        }
    }

    /// Puts the record on disk as it is now.
    fn publish(&mut self) {
        let begun = Instant::now();
        self.fold.refresh();
        self.files.record(self.fold.record());
        self.spectator.record(self.fold.record());
        self.published = Instant::now();
        self.publishing = begun.elapsed();
    }

    fn conclude(mut self) -> Ending {
        self.sensors.point_at(None);
        if let Some(folder) = self.own_references.take() {
            let _ = std::fs::remove_dir_all(folder);
        }
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Telemetry(reading) = message {
                self.take_reading(*reading);
            }
        }
        self.fold.refresh();
        let accuracy_comparisons = self.compare_accuracy();
        self.emit(RunEventKind::Ended {
            finished: utc_now(),
            wall_s: self.earlier_s + self.begun.elapsed().as_secs_f64(),
            interrupted: self.interrupt.asked(),
            accuracy_comparisons,
        });
        let unusable = |cell: &RunCell| matches!(cell.failure, Some(FailureKind::Model | FailureKind::Input));
        let nothing_ran = self.cells.iter().all(|cell| unusable(cell) && cell.steady == 0);
        Ending { record: self.fold.into_record(), files: self.files, nothing_ran }
    }
}

fn happened(kind: RunEventKind) -> Happened {
    Happened::Run(Box::new(RunEvent { t_ns: now_ns(), kind }))
}
