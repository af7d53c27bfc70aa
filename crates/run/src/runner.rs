//! One execution of a plan: workers, their rounds, and a record that is on disk after every step.

mod cell;
mod making;
mod peaks;
mod schedule;
mod standby;
mod waves;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use prony_bench::now_ns;
use prony_files::Kind;
use prony_judge as judge;
use prony_plan::OpenedModels;
use prony_source::dataset::Dataset;
use prony_types::{
    BackendName, CellRecord, CellStatus, Command, Environment, EvaluationSpec, Event, EventKind, FailureKind, Fate,
    Job, MeasureJob, MemorySafety, Plan, RunInfo, RunRecord, SCHEMA, Sitting, Telemetry, WORKER_PROTOCOL,
};

use prony_work::{Interrupt, short_time};

use self::cell::{Doing, RunCell};
pub use self::schedule::{estimate_s, longest_s};
use crate::accuracy::{self, Scores};
use crate::files::{self, Files};
use crate::fold::CellFold;
use crate::footprint::Ledger;
use crate::jobs;
use crate::lock::MachineLock;
use crate::oom::{self, OomWatch};
use crate::reference::References;
use crate::reference_cache::ReferenceCache;
use crate::sensors::Sensors;
use crate::spectator::Spectator;
use crate::worker::{Message, TICK, Worker, cause_of_death};

/// How often the record on disk gets the figures of cells that are not done yet.
const PUBLISH_EVERY: Duration = Duration::from_secs(5);

/// A run under way.
pub struct Run {
    record: RunRecord,
    cells: Vec<RunCell>,
    files: Files,
    progress: Box<dyn Spectator>,
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
    telemetry: Vec<Telemetry>,
    scores: Scores,
    /// What was read of the models, so that none is read for every cell.
    models: OpenedModels,
    oom: OomWatch,
    /// What cells took, for those that are loaded later.
    ledger: Ledger,
    /// Rounds so far, of all waves and sittings: no two of them have one in common.
    rounds: u32,
    /// Of earlier sittings: how long they took, and the least memory they saw.
    earlier_s: f64,
    /// What relative limits are held against.
    baseline: Option<RunRecord>,
    earlier_lowest_mib: Option<f64>,
    begun: Instant,
    published: Instant,
}

/// How waiting for a worker ended.
#[derive(Debug, PartialEq)]
enum Waited {
    Answered,
    Ended,
}

/// What a run begins with.
pub struct RunSetup {
    pub info: RunInfo,
    pub plan: Plan,
    pub fates: BTreeMap<String, Fate>,
    /// Cells of an earlier sitting: those that are completed stay as they are.
    pub earlier: Option<RunRecord>,
    /// The machine, as it was found.
    pub environment: Environment,
    /// Where references are kept from run to run.
    pub reference_cache: Option<PathBuf>,
    /// Where engines are.
    pub artifact_cache: Option<PathBuf>,
    /// What relative limits are held against.
    pub baseline: Option<RunRecord>,
    /// Data on disk to score on.
    pub data: Option<Arc<Dataset>>,
    /// What was read of the models.
    pub models: OpenedModels,
    /// Held until the last cell has ended.
    pub lock: Option<MachineLock>,
}

/// What a run ends with.
pub struct Ending {
    pub record: RunRecord,
    pub files: Files,
    /// Every cell failed because its model or input cannot be used: nothing ran.
    pub nothing_ran: bool,
}

impl Run {
    pub fn new(
        begin: RunSetup,
        files: Files,
        interrupt: Interrupt,
        mut spectator: Box<dyn Spectator>,
    ) -> anyhow::Result<Run> {
        let RunSetup { info, plan, fates, earlier, environment, .. } = begin;
        let RunSetup { reference_cache, artifact_cache, baseline, data, models, lock, .. } = begin;
        let (sender, messages) = channel();
        plan.cells.iter().for_each(|cell| spectator.add(&cell.id));
        let mut earlier_samples = match &earlier {
            Some(_) => files.read_samples()?,
            None => Vec::new(),
        };
        // Rounds of another sitting did not stand beside those of this one: no number in common, no pairs.
        let rounds = earlier_samples.iter().map(|logged| logged.sample.round).max().unwrap_or(0);
        let mut cells = Vec::new();
        for spec in &plan.cells {
            let before = earlier.as_ref().and_then(|run| run.cells.iter().find(|cell| cell.id == spec.id));
            let mut fold = match before {
                Some(record) if record.status == CellStatus::Completed => {
                    let mine = earlier_samples.extract_if(.., |row| row.cell == spec.id);
                    CellFold::finished(record.clone(), mine.collect())
                }
                before => CellFold::new(spec, before.map_or(1, |record| record.attempt + 1)),
            };
            fold.timed = plan.timed;
            if let Some(fate) = fates.get(&spec.id) {
                fold.close(fate.status, Some(fate.reason.clone()), &plan.budget);
            }
            cells.push(RunCell::new(spec, fold));
        }
        let record = RunRecord {
            schema: SCHEMA.to_owned(),
            run: info,
            environment: earlier.as_ref().map_or(environment, |run| run.environment.clone()),
            method: schedule::method(&plan),
            waves: earlier.as_ref().map_or_else(Vec::new, waves::kept),
            plan,
            cells: Vec::new(),
            comparisons: Vec::new(),
            narrowings: Vec::new(),
            accuracy_comparisons: Vec::new(),
            gates: Vec::new(),
            memory_safety: MemorySafety::default(),
            recommendation: Vec::new(),
        };
        Ok(Run {
            record,
            cells,
            files,
            progress: spectator,
            interrupt,
            told_to_stop: false,
            reference_cache,
            own_references: None,
            artifact_cache,
            lock,
            sensors: Sensors::start(sender.clone()),
            messages,
            sender,
            telemetry: Vec::new(),
            scores: Scores::new(data),
            models,
            oom: OomWatch::new(oom::memory_root()),
            ledger: Ledger::default(),
            rounds,
            baseline,
            earlier_s: earlier.as_ref().and_then(|run| run.run.wall_s).unwrap_or(0.0),
            earlier_lowest_mib: earlier.as_ref().and_then(|run| run.memory_safety.lowest_available_mib),
            begun: Instant::now(),
            published: Instant::now(),
        })
    }

    /// Does it all. Whatever happens to a cell, the others go on and the record is written. An error means that nothing
    /// was measured.
    pub fn execute(mut self) -> anyhow::Result<Ending> {
        if let Err(error) = self.begin() {
            let _ = self.files.discard();
            return Err(error);
        }
        for (index, cell) in self.cells.iter().enumerate().filter(|(_, cell)| !cell.is_pending()) {
            match cell.kept {
                true => self.progress.finish(index, "kept from the earlier run"),
                false => self.progress.finish(index, &schedule::last_word(&cell.fold.record)),
            }
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
            if self.cells[index].is_pending() {
                self.close(index, CellStatus::Interrupted, Some("interrupted before it began".to_owned()));
            }
        }
        self.lock = None;
        Ok(self.conclude())
    }

    /// Makes what cells need, before any of them is loaded.
    fn make_ready(&mut self) {
        self.make_artifacts();
        if !self.record.plan.timed {
            // Kernels are timed while an engine is built; nothing is from here on.
            self.lock = None;
        }
        self.measure_peaks();
    }

    /// Measures, scores, checks and ends the cells that are loaded.
    fn measure_wave(&mut self) {
        if self.record.plan.timed {
            self.measure_rounds();
            self.measure_throughput();
        }
        self.evaluate_cells();
        let references = self.references();
        self.finish_cells(&references);
    }

    /// The first words on disk: if these cannot be written, there is no point in going on.
    fn begin(&mut self) -> anyhow::Result<()> {
        self.files.write_environment(&self.record)?;
        self.refresh();
        self.files.write_record(&self.record)
    }

    fn is_running(&self, index: usize) -> bool {
        self.cells[index].worker.is_some()
    }

    fn start_worker(&mut self, index: usize) -> anyhow::Result<()> {
        let cell = &mut self.cells[index];
        let folder = self.files.cell_dir(&cell.fold.record.slug)?;
        let log = self.files.cell_log(&cell.fold.record.slug)?;
        let job = Job::Measure(MeasureJob {
            protocol: WORKER_PROTOCOL,
            cell: cell.spec.clone(),
            slot: 0,
            input: self.record.plan.input.clone(),
            post: self.record.plan.post,
            warmup_s: self.record.plan.budget.warmup_s,
            folder: std::path::absolute(folder)?,
            ring_fd: -1,
            fault: None,
        });
        let worker = Worker::spawn(index, job, log, self.sender.clone())?;
        self.sensors.point_at(Some((cell.spec.id.clone(), worker.pid())));
        cell.alive = Instant::now();
        cell.doing = Doing::Loading;
        // Whoever made something for it took memory of their own.
        cell.peak_bytes = 0;
        cell.worker = Some(worker);
        Ok(())
    }

    fn order(&mut self, index: usize, command: &Command, doing: Doing) {
        let cell = &mut self.cells[index];
        let target = cell.worker.as_ref().map(|worker| (cell.spec.id.clone(), worker.pid()));
        self.sensors.point_at(target);
        cell.order(command, doing);
    }

    /// Rounds over all cells that are loaded, there and back, until each has enough. They go on counting from wave to wave, so
    /// that cells of different waves have none in common.
    fn measure_rounds(&mut self) {
        for round in self.rounds + 1.. {
            let mut open: Vec<usize> = (0..self.cells.len()).filter(|&i| self.wants_more(i)).collect();
            if open.is_empty() {
                return;
            }
            if round % 2 == 0 {
                open.reverse();
            }
            self.rounds = round;
            let alone = open.len() == 1;
            for index in open {
                if self.interrupt.asked() {
                    return;
                }
                std::thread::sleep(schedule::pause(alone));
                self.measure_round(index, round);
            }
            if self.published.elapsed() > PUBLISH_EVERY {
                self.publish();
            }
        }
    }

    fn measure_round(&mut self, index: usize, round: u32) {
        let cell = &self.cells[index];
        let slice = schedule::slice(&self.record.plan.budget, cell.measured_s, cell.steady, cell.rounds);
        let command = Command::Round { round, seconds: slice.seconds, max_samples: slice.max_samples };
        self.order(index, &command, Doing::Measuring);
        self.wait(index, |event| matches!(event, EventKind::RoundDone { round: r, .. } if *r == round));
        self.read_peak(index);
        self.sensors.point_at(None);
    }

    fn wants_more(&self, index: usize) -> bool {
        let cell = &self.cells[index];
        let budget = &self.record.plan.budget;
        let timed = self.record.plan.timed;
        timed && self.is_running(index) && schedule::more(budget, schedule::standing(budget, cell), cell.rounds)
    }

    fn measure_throughput(&mut self) {
        for index in 0..self.cells.len() {
            if self.interrupt.asked() {
                return;
            }
            if self.is_running(index) {
                let seconds = schedule::throughput_seconds(&self.record.plan.budget);
                std::thread::sleep(schedule::pause(false));
                self.progress.milestone(index, Doing::Throughput.words());
                self.order(index, &Command::Throughput { seconds }, Doing::Throughput);
                self.wait(index, |event| matches!(event, EventKind::Throughput { .. }));
                self.sensors.point_at(None);
            }
        }
    }

    /// Has every worker run the data set through the session that was timed, and scores what it wrote.
    fn evaluate_cells(&mut self) {
        let Some(spec) = self.record.plan.evaluation.clone() else { return };
        for index in 0..self.cells.len() {
            if self.interrupt.asked() {
                return;
            }
            if self.is_running(index)
                && let Err(reason) = self.evaluate_cell(index, &spec)
            {
                self.cells[index].fold.record.accuracy_absent = Some(reason);
            }
        }
    }

    fn evaluate_cell(&mut self, index: usize, spec: &EvaluationSpec) -> Result<(), String> {
        self.progress.milestone(index, Doing::Evaluating.words());
        let folder = self.files.cell_dir(&self.cells[index].fold.record.slug).map_err(|e| e.to_string())?;
        let folder = std::path::absolute(folder).map_err(|e| e.to_string())?;
        let detections = folder.join(accuracy::DETECTIONS);
        let order = self.scores.order(spec, &self.files, detections)?;
        self.order(index, &Command::Evaluate(order), Doing::Evaluating);
        self.wait(index, |event| matches!(event, EventKind::Evaluated { .. }));
        self.sensors.point_at(None);
        self.scores.retract(&self.files);
        let cell = &mut self.cells[index];
        let Some(evaluated) = cell.fold.evaluated.take() else { return Ok(()) };
        let source = &cell.spec.model.source;
        let slug = &cell.fold.record.slug;
        let found = self.files.cell_file(slug, accuracy::DETECTIONS, Kind::Annotations).map_err(|e| e.to_string())?;
        let record = self.scores.score(&cell.fold.record, source, spec, &found, &evaluated)?;
        self.files.write_json(slug, accuracy::METRICS, &record).map_err(|e| format!("{e:#}"))?;
        self.progress.milestone(index, &schedule::scored(&record));
        cell.fold.record.accuracy = Some(record);
        cell.alive = Instant::now();
        Ok(())
    }

    /// What each cell's outputs are to be held against. Cells of one model and shape share it.
    fn references(&mut self) -> Vec<Option<PathBuf>> {
        let folder = match &self.own_references {
            Some(folder) => folder.clone(),
            None => self.files.make_new("reference").unwrap_or_else(|error| {
                // Whoever writes there says so, for each cell.
                tracing::error!("{error}");
                self.files.path().join("reference")
            }),
        };
        self.own_references = Some(folder.clone());
        // A home that cannot be used is no reason to trust outputs unseen.
        let cache = self.reference_cache.as_deref().and_then(|path| {
            let opened = ReferenceCache::open(path);
            let why = |error| format!("references are not kept: {} cannot be used: {error}", path.display());
            opened.map_err(|error| self.progress.say(&format!("  {}", why(error)))).ok()
        });
        let plan = &self.record.plan;
        let references = References {
            cache,
            folder,
            spec: &plan.reference,
            input: &plan.input,
            post: plan.post,
            timeout: Duration::from_secs_f64(plan.budget.timeout_s),
            interrupt: &self.interrupt,
            oom: &self.oom,
            version: &self.record.run.version,
        };
        let mut found = Vec::new();
        for (index, cell) in self.cells.iter_mut().enumerate() {
            let frames = cell.fold.record.input.as_ref().map(|input| input.sha256.clone());
            let (Some(frames), true) = (frames, cell.worker.is_some()) else {
                found.push(None);
                continue;
            };
            if cell.spec.backend == BackendName::Trtexec {
                cell.fold.record.agreement_absent = Some("trtexec's outputs are not read".to_owned());
                found.push(None);
                continue;
            }
            self.progress.milestone(index, "computing the reference");
            let file = match self.interrupt.asked() {
                true => Err("interrupted".to_owned()),
                false => {
                    let scenes = accuracy::kind_of(&cell.fold.record, &cell.spec.model.source);
                    let log = || self.files.cell_log(&cell.fold.record.slug);
                    references.file(&cell.spec, scenes, &frames, log)
                }
            };
            if let Err(reason) = &file {
                tracing::warn!("{}: no reference: {reason}", cell.spec.id);
                cell.fold.record.agreement_absent = Some(reason.clone());
            }
            cell.alive = Instant::now();
            found.push(file.ok());
        }
        found
    }

    /// Has every worker check its outputs and end. An interrupted cell keeps what was measured.
    fn finish_cells(&mut self, references: &[Option<PathBuf>]) {
        for (index, reference) in references.iter().enumerate() {
            if !self.is_running(index) {
                continue;
            }
            let record = &self.cells[index].fold.record;
            let plan = &self.record.plan;
            let scored = plan.evaluation.is_none() || record.accuracy.is_some() || record.accuracy_absent.is_some();
            let timed = !plan.timed || !self.wants_more(index) && record.throughput_fps.is_some();
            let complete = timed && scored;
            let interrupted = self.interrupt.asked() && !complete;
            let reference = reference.as_ref().and_then(|file| std::path::absolute(file).ok());
            self.order(index, &Command::Finish { reference }, Doing::Checking);
            if self.wait(index, |event| matches!(event, EventKind::Finished { .. })) == Waited::Ended {
                continue;
            }
            let absent = self.cells[index].fold.record.accuracy_absent.clone().filter(|_| !self.record.plan.timed);
            if let (false, Some(reason)) = (interrupted, absent) {
                self.close(index, CellStatus::Failed, Some(reason));
                continue;
            }
            let (status, reason) = match (interrupted, self.cells[index].steady) {
                (false, _) => (CellStatus::Completed, None),
                (true, 0) if !self.record.plan.timed => {
                    (CellStatus::Interrupted, Some("interrupted before every image was through"))
                }
                (true, 0) => (CellStatus::Interrupted, Some("interrupted before anything was timed")),
                (true, _) => (CellStatus::Interrupted, Some("interrupted; the figures are of what was measured")),
            };
            self.close(index, status, reason.map(str::to_owned));
        }
    }

    /// Waits until a worker has said a certain thing or has ended, keeping everything else going.
    fn wait(&mut self, index: usize, answer: impl Fn(&EventKind) -> bool) -> Waited {
        let timeout = Duration::from_secs_f64(self.record.plan.budget.timeout_s);
        while self.is_running(index) {
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
            self.progress.say("stopping; what was measured is kept (Ctrl-C again kills)");
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

    fn take_event(&mut self, index: usize, event: &Event) {
        let cell = &mut self.cells[index];
        cell.alive = Instant::now();
        self.files.log_event(event);
        tracing::debug!("{}: {:?}", event.cell, event.kind);
        if matches!(event.kind, EventKind::Started { .. }) {
            cell.fold.begun_ns = event.t_ns;
        }
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
            EventKind::Loaded { .. } => self.predict(index),
            EventKind::Building(progress) => self.progress.building(index, progress),
            EventKind::Evaluated { problem: Some(problem), .. } if !self.record.plan.timed => {
                cell.failure = Some(problem.kind);
            }
            EventKind::Evaluating { done, total } => {
                let share = *done as f64 / (*total).max(1) as f64;
                self.progress.figure(index, share, &format!("{done} of {total} images"));
            }
            EventKind::Prepared { artifact, build_ms, rebuilt_because, notes } => {
                cell.spec.artifact = Some(artifact.clone());
                let word = jobs::made(artifact, *build_ms, rebuilt_because.as_deref());
                self.progress.milestone(index, &word);
                notes.iter().for_each(|note| self.progress.say(&format!("  {}: {note}", event.cell)));
            }
            EventKind::RoundDone { seconds, .. } => {
                cell.measured_s += seconds;
                cell.rounds += 1;
            }
            EventKind::Failed { kind, message, .. } => {
                cell.failure = Some(*kind);
                // What came from `auto`, `all` or a tier and turns out not to be possible here is no failure. That a library
                // does not take a model is the model's fault only if nothing else takes it either.
                let spared = *kind == FailureKind::Model && standby::stands_by(&self.record.plan, &cell.spec);
                let impossible = !cell.spec.named && (*kind == FailureKind::Unsupported || spared);
                let status = if impossible { CellStatus::Skipped } else { CellStatus::Failed };
                self.close(index, status, Some(message.clone()));
            }
            _ => {}
        }
    }

    fn take_reading(&mut self, reading: Telemetry) {
        self.files.log_reading(&reading);
        let timed = reading.cell.as_ref().and_then(|id| self.cells.iter_mut().find(|cell| cell.spec.id == *id));
        if let Some(cell) = timed.filter(|cell| cell.doing == Doing::Measuring) {
            cell.fold.telemetry.push(reading.clone());
        }
        self.telemetry.push(reading);
    }

    /// Moves new samples from the ring to memory and to disk.
    fn drain(&mut self, index: usize) {
        let cell = &mut self.cells[index];
        let fresh = cell.drain();
        if !fresh.is_empty() {
            self.files.log_samples(&cell.spec.id, cell.fold.record.attempt, &cell.fold.samples[fresh]);
        }
    }

    fn show(&self, index: usize) {
        let has_its_own = self.cells[index].is_being_made() || self.cells[index].doing == Doing::Evaluating;
        if self.progress.is_live() && self.is_running(index) && !has_its_own {
            let (done, text) = schedule::figure(&self.record.plan.budget, &self.cells[index]);
            self.progress.figure(index, done, &text);
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
        cell.fold.close(status, reason, &self.record.plan.budget);
        self.progress.finish(index, &schedule::last_word(&cell.fold.record));
        self.files.close_cell(&cell.fold.record.slug);
        self.publish();
    }

    /// Brings the record up to date with its cells.
    fn refresh(&mut self) {
        let budget = &self.record.plan.budget;
        self.record.cells = self.cells.iter().map(|cell| cell.fold.so_far(budget)).collect();
        let lowest = judge::lowest_available_mib(&self.telemetry);
        let limits = self.record.cells.iter().filter_map(|cell| cell.memory.within_limit);
        self.record.memory_safety = MemorySafety {
            all_within_limit: limits.reduce(|all, held| all && held),
            total_violations: self.record.cells.iter().map(|cell| cell.memory.violations.len() as u64).sum(),
            lowest_available_mib: [lowest, self.earlier_lowest_mib].into_iter().flatten().reduce(f64::min),
        };
    }

    /// Puts the record on disk as it is now. A disk that is full now may not be at the end, so this is no end.
    fn publish(&mut self) {
        self.refresh();
        self.published = Instant::now();
        if let Err(error) = self.files.write_record(&self.record) {
            tracing::error!("{error:#}");
        }
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
        self.progress.clear();
        self.refresh();
        self.record.method.schedule += &waves::in_words(&self.record.waves);
        let rounds = |id: &str| {
            let cell = self.cells.iter().find(|cell| cell.spec.id == id);
            cell.map(|cell| cell.fold.rounds()).unwrap_or_default()
        };
        self.record.narrowings = judge::narrowings(&self.record.cells, &rounds);
        judge::mark_slow_int8(&mut self.record.cells, &self.record.narrowings);
        let cells: &[CellRecord] = &self.record.cells;
        let boxes =
            |slug: &str| self.files.cell_file(slug, accuracy::DETECTIONS, Kind::Annotations).map_err(|e| e.to_string());
        self.record.accuracy_comparisons = self.scores.compare(&self.record.plan, cells, boxes);
        let baseline = self.baseline.as_ref().map(|run| judge::gate::Baseline { run, force: false });
        self.record.gates = judge::gate::gates(&self.record, &self.record.plan.gates, baseline);
        // What to ship depends on gates and accuracy, so it comes last.
        if self.record.plan.timed {
            let advice = judge::advise(&self.record, &rounds);
            (self.record.comparisons, self.record.recommendation) = (advice.comparisons, advice.recommendation);
        }
        let RunRecord { cells, plan, gates, .. } = &self.record;
        let code = judge::exit_code(cells, plan, gates, self.interrupt.asked());
        self.record.run.exit_code = Some(code);
        self.record.run.finished = Some(files::utc_now());
        self.record.run.wall_s = Some(self.earlier_s + self.begun.elapsed().as_secs_f64());
        let unusable = |cell: &RunCell| matches!(cell.failure, Some(FailureKind::Model | FailureKind::Input));
        let nothing_ran = self.cells.iter().all(|cell| unusable(cell) && cell.steady == 0);
        Ending { record: self.record, files: self.files, nothing_ran }
    }
}

/// The identity of a run that begins now.
pub(crate) fn run_info(id: String, command: Vec<String>, version: &str) -> anyhow::Result<RunInfo> {
    let binary = std::fs::read(std::env::current_exe()?).context("cannot read this very binary")?;
    Ok(RunInfo {
        id,
        started: files::utc_now(),
        finished: None,
        command,
        version: version.to_owned(),
        binary_sha256: prony_model::sha256_hex(&binary),
        exit_code: None,
        anchor_ns: now_ns(),
        resumed: Vec::new(),
        wall_s: None,
        redacted: false,
    })
}

/// The identity of a run that goes on now.
pub(crate) fn resumed_info(earlier: &RunInfo) -> RunInfo {
    let mut info = RunInfo { finished: None, exit_code: None, ..earlier.clone() };
    info.resumed.push(Sitting { started: files::utc_now(), anchor_ns: now_ns() });
    info
}
