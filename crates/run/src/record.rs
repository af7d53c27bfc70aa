//! From what a run did to its record. Pure, but for the clock of whoever says when it ended: the same events, samples and
//! readings give the same record, live or from the logs of a run folder.

use std::collections::BTreeMap;

use prony_judge as judge;
use prony_types::{
    AccuracyComparison, CellStatus, Environment, Fate, Happened, MemorySafety, Plan, RunEventKind, RunInfo, RunRecord,
    SCHEMA, Sample, Telemetry, WaveRecord,
};

use crate::fold::CellFold;
use crate::logs::Logs;
use crate::schedule::method;

/// A record in the making.
#[derive(Debug)]
pub struct RecordFold {
    record: RunRecord,
    cells: Vec<CellFold>,
    /// What relative limits are held against.
    baseline: Option<RunRecord>,
    logs: Logs,
}

/// How a sitting begins; the fields of [`RunEventKind::Began`].
struct Start<'a> {
    info: &'a RunInfo,
    plan: &'a Plan,
    environment: &'a Environment,
    fates: &'a BTreeMap<String, Fate>,
    earlier: Option<&'a RunRecord>,
    baseline: Option<&'a RunRecord>,
}

impl<'a> Start<'a> {
    fn of(event: &'a Happened) -> Option<Start<'a>> {
        let Happened::Run(event) = event else { return None };
        let RunEventKind::Began { info, plan, environment, fates, earlier, baseline } = &event.kind else {
            return None;
        };
        Some(Start { info, plan, environment, fates, earlier: earlier.as_deref(), baseline: baseline.as_deref() })
    }
}

impl RecordFold {
    /// The record of a run that began with this event; `None` where that is no beginning.
    pub fn begun(event: &Happened, logs: Logs) -> Option<RecordFold> {
        Start::of(event).map(|start| RecordFold::begin(&start, logs))
    }

    fn begin(start: &Start<'_>, mut logs: Logs) -> RecordFold {
        let Start { info, plan, environment, fates, earlier, baseline } = *start;
        let mut cells = Vec::new();
        for spec in &plan.cells {
            let before = earlier.and_then(|run| run.cells.iter().find(|cell| cell.id == spec.id));
            let mut cell = match before {
                Some(record) if record.status == CellStatus::Completed => {
                    let (samples, _) = logs.take(&spec.id, record.attempt);
                    CellFold::finished(spec, record.clone(), plan.timed, samples)
                }
                before => {
                    let attempt = before.map_or(1, |record| record.attempt + 1);
                    CellFold::new(spec, attempt, plan.timed, logs.take(&spec.id, attempt))
                }
            };
            if let Some(fate) = fates.get(&spec.id) {
                cell.close(fate.status, Some(fate.reason.clone()), 0, &plan.budget);
            }
            cells.push(cell);
        }
        let record = RunRecord {
            schema: SCHEMA.to_owned(),
            run: info.clone(),
            environment: earlier.map_or_else(|| environment.clone(), |run| run.environment.clone()),
            method: method(plan),
            waves: earlier.map_or_else(Vec::new, kept),
            plan: plan.clone(),
            cells: Vec::new(),
            comparisons: Vec::new(),
            narrowings: Vec::new(),
            accuracy_comparisons: Vec::new(),
            gates: Vec::new(),
            memory_safety: MemorySafety::default(),
            recommendation: Vec::new(),
        };
        let mut fold = RecordFold { record, cells, baseline: baseline.cloned(), logs };
        fold.refresh();
        fold
    }

    /// Takes notice of something that happened.
    pub fn take(&mut self, event: &Happened) {
        if let Some(start) = Start::of(event) {
            let mut logs = std::mem::take(&mut self.logs);
            for cell in self.cells.drain(..) {
                let attempt = cell.record.attempt;
                logs.put_back(&cell.spec.id.clone(), attempt, cell.into_samples());
            }
            *self = RecordFold::begin(&start, logs);
            return;
        }
        match event {
            Happened::Worker(event) => {
                if let Some(cell) = self.find(&event.cell) {
                    cell.apply(event.t_ns, &event.kind);
                }
            }
            Happened::Run(event) => self.did(&event.kind),
        }
    }

    fn did(&mut self, kind: &RunEventKind) {
        match kind {
            RunEventKind::Began { .. } | RunEventKind::Doing { .. } | RunEventKind::Said { .. } => {}
            RunEventKind::Called { cells } => {
                let plan = &mut self.record.plan;
                plan.standby.retain(|spec| !cells.iter().any(|called| called.id == spec.id));
                for spec in cells {
                    self.cells.push(CellFold::new(spec, 1, plan.timed, self.logs.take(&spec.id, 1)));
                    plan.cells.push(spec.clone());
                }
            }
            RunEventKind::Peak { peak } => {
                let peaks = &mut self.record.environment.peaks;
                if !peaks.contains(peak) {
                    peaks.push(peak.clone());
                }
            }
            RunEventKind::Predicted { cell, floor, absent } => {
                if let Some(cell) = self.find(cell) {
                    cell.record.roofline = floor.as_deref().cloned();
                    cell.record.roofline_absent.clone_from(absent);
                }
            }
            RunEventKind::Noted { cell, note } => {
                if let Some(artifact) = self.find(cell).and_then(|cell| cell.record.artifact.as_mut()) {
                    artifact.notes.push(note.clone());
                }
            }
            RunEventKind::Wave { wave } => self.record.waves.push(wave.clone()),
            RunEventKind::Scored { cell, accuracy, absent } => {
                if let Some(cell) = self.find(cell) {
                    cell.record.accuracy = accuracy.as_deref().cloned();
                    cell.record.accuracy_absent.clone_from(absent);
                }
            }
            RunEventKind::Unreferenced { cell, reason } => {
                if let Some(cell) = self.find(cell) {
                    cell.record.agreement_absent = Some(reason.clone());
                }
            }
            RunEventKind::Restarted { cell, death } => {
                if let Some(index) = self.position(cell) {
                    let logged = self.logs.take(cell, self.cells[index].record.attempt + 1);
                    self.cells[index] = self.cells[index].again(death, logged);
                }
            }
            RunEventKind::Closed { cell, status, reason, lost } => {
                let budget = self.record.plan.budget;
                if let Some(cell) = self.find(cell) {
                    cell.close(*status, reason.clone(), *lost, &budget);
                }
            }
            RunEventKind::Ended { finished, wall_s, interrupted, accuracy_comparisons } => {
                self.conclude(*interrupted, accuracy_comparisons);
                self.record.run.finished = Some(finished.clone());
                self.record.run.wall_s = Some(*wall_s);
            }
        }
    }

    /// Adds samples of a cell, by its number.
    pub fn take_samples(&mut self, cell: usize, fresh: &[Sample]) {
        self.cells[cell].take_samples(fresh);
    }

    /// Adds a reading of the sensors.
    pub fn take_reading(&mut self, reading: &Telemetry) {
        self.logs.note(reading);
        let Some(attempt) = reading.attempt else { return };
        let timed = reading.cell.as_ref().and_then(|id| self.find(id));
        if let Some(cell) = timed.filter(|cell| cell.record.attempt == attempt) {
            cell.take_reading(reading);
        }
    }

    /// The record as it was when it was last brought up to date.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The record, for good.
    pub fn into_record(self) -> RunRecord {
        self.record
    }

    /// A cell, by its number.
    pub fn cell(&self, index: usize) -> &CellFold {
        &self.cells[index]
    }

    /// A cell by its id.
    pub fn cell_of(&self, id: &str) -> Option<&CellFold> {
        self.position(id).map(|index| &self.cells[index])
    }

    /// All cells, in the order of the plan.
    pub fn cells(&self) -> &[CellFold] {
        &self.cells
    }

    /// The largest number of a round in the logs of earlier sittings.
    pub(crate) fn last_round(&self) -> u32 {
        self.logs.last_round
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.spec.id == id)
    }

    fn find(&mut self, id: &str) -> Option<&mut CellFold> {
        self.cells.iter_mut().find(|cell| cell.spec.id == id)
    }

    /// Brings the record up to date with its cells.
    pub fn refresh(&mut self) {
        let budget = &self.record.plan.budget;
        self.record.cells = self.cells.iter().map(|cell| cell.so_far(budget)).collect();
        let limits = self.record.cells.iter().filter_map(|cell| cell.memory.within_limit);
        self.record.memory_safety = MemorySafety {
            all_within_limit: limits.reduce(|all, held| all && held),
            total_violations: self.record.cells.iter().map(|cell| cell.memory.violations.len() as u64).sum(),
            lowest_available_mib: self.logs.lowest_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)),
        };
    }

    /// What can be said only with all cells there.
    fn conclude(&mut self, interrupted: bool, accuracy_comparisons: &[AccuracyComparison]) {
        self.refresh();
        let Self { record, cells, baseline, .. } = self;
        record.method.schedule += &in_words(&record.waves);
        let rounds = |id: &str| {
            let cell = cells.iter().find(|cell| cell.spec.id == id);
            cell.map(CellFold::rounds).unwrap_or_default()
        };
        record.narrowings = judge::narrowings(&record.cells, &rounds);
        judge::mark_slow_int8(&mut record.cells, &record.narrowings);
        accuracy_comparisons.clone_into(&mut record.accuracy_comparisons);
        let baseline = baseline.as_ref().map(|run| judge::gate::Baseline { run, force: false });
        record.gates = judge::gate::gates(record, &record.plan.gates, baseline);
        // What to ship depends on gates and accuracy, so it comes last.
        if record.plan.timed {
            let advice = judge::advise(record, &rounds);
            (record.comparisons, record.recommendation) = (advice.comparisons, advice.recommendation);
        }
        let RunRecord { cells, plan, gates, .. } = &*record;
        let code = judge::exit_code(cells, plan, gates, interrupted);
        record.run.exit_code = Some(code);
    }
}

/// What is added to the schedule where cells were not all loaded together.
fn in_words(waves: &[WaveRecord]) -> String {
    match waves.len() {
        0 | 1 => String::new(),
        count => {
            format!("; in {count} waves, whose cells were not loaded together: no rounds in common, compared unpaired")
        }
    }
}

/// The waves of an earlier sitting, with the cells that are kept from them.
fn kept(earlier: &RunRecord) -> Vec<WaveRecord> {
    let completed = |id: &String| earlier.cells.iter().any(|c| c.id == *id && c.status == CellStatus::Completed);
    let kept = earlier.waves.iter().cloned().map(|mut wave| {
        wave.cells.retain(completed);
        wave
    });
    kept.filter(|wave| !wave.cells.is_empty()).collect()
}
