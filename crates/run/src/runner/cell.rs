//! A cell of a run under way: its worker, what came from it, and how far it is.

use std::time::Instant;

use prony_plan::models::GraphCost;
use prony_types::{CellSpec, CellStatus, Command, FailureKind, OutOfMemory, Phase};

use crate::fold::CellFold;
use crate::footprint::Footprint;
use crate::worker::Worker;

/// What a worker was last told to do; also the words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Rewriting,
    Building,
    Loading,
    WarmingUp,
    Measuring,
    Throughput,
    Evaluating,
    Checking,
}

impl Doing {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Doing::Rewriting => "making the graph",
            Doing::Building => "making the engine",
            Doing::Loading => "loading",
            Doing::WarmingUp => "warming up",
            Doing::Measuring => "measuring",
            Doing::Throughput => "measuring throughput",
            Doing::Evaluating => "running the data set",
            Doing::Checking => "checking outputs",
        }
    }
}

pub(super) struct RunCell {
    pub(super) spec: CellSpec,
    pub(super) fold: CellFold,
    pub(super) worker: Option<Worker>,
    /// Last time it said something, a sample came or its heart beat.
    pub(super) alive: Instant,
    pub(super) doing: Doing,
    /// Timed samples so far.
    pub(super) steady: u64,
    /// When the first sample of the round under way began.
    pub(super) round_began_ns: u64,
    round: u32,
    /// Seconds of finished rounds, and their number.
    pub(super) measured_s: f64,
    pub(super) rounds: u32,
    /// Whether an earlier sitting measured it.
    pub(super) kept: bool,
    /// Whose fault its failure is, if its worker said so.
    pub(super) failure: Option<FailureKind>,
    /// Whether it ran out of memory, and is measured with nothing else loaded.
    pub(super) alone: bool,
    /// What it is estimated to take; until then it is not known.
    pub(super) footprint: Option<Footprint>,
    /// The most memory that its worker was seen to hold by itself.
    pub(super) peak_bytes: u64,
    /// What its graph costs, or why that is not known; until it is loaded.
    pub(super) cost: Option<GraphCost>,
    /// Samples that are in `samples.csv` already.
    logged: usize,
    beats: u64,
}

impl RunCell {
    /// Whether what it runs is being made, and nothing is measured yet.
    pub(super) fn is_being_made(&self) -> bool {
        matches!(self.doing, Doing::Rewriting | Doing::Building)
    }

    pub(super) fn new(spec: &CellSpec, fold: CellFold) -> RunCell {
        RunCell {
            spec: spec.clone(),
            worker: None,
            alive: Instant::now(),
            doing: Doing::Loading,
            steady: 0,
            round_began_ns: 0,
            round: 0,
            measured_s: 0.0,
            rounds: 0,
            kept: fold.record.status == CellStatus::Completed,
            failure: None,
            alone: false,
            footprint: None,
            peak_bytes: 0,
            cost: None,
            logged: fold.samples.len(),
            beats: 0,
            fold,
        }
    }

    /// Back to where nothing was started, but for what was made for it.
    pub(super) fn begin_again(&mut self, death: OutOfMemory) {
        let mut fold = CellFold::new(&self.spec, self.fold.record.attempt + 1);
        fold.timed = self.fold.timed;
        let earlier = &self.fold.record;
        fold.record.artifact.clone_from(&earlier.artifact);
        fold.record.build_ms = earlier.build_ms;
        fold.record.roofline.clone_from(&earlier.roofline);
        fold.record.roofline_absent.clone_from(&earlier.roofline_absent);
        fold.record.out_of_memory = Some(death);
        let (footprint, cost) = (self.footprint, self.cost.take());
        *self = RunCell { alone: true, footprint, cost, ..RunCell::new(&self.spec, fold) };
    }

    pub(super) fn is_pending(&self) -> bool {
        self.fold.record.status == CellStatus::Pending
    }

    /// Whether nothing was started for it yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_pending() && self.worker.is_none()
    }

    /// Tells the worker, if there is one.
    pub(super) fn order(&mut self, command: &Command, doing: Doing) {
        self.doing = doing;
        self.alive = Instant::now();
        if let Some(worker) = &mut self.worker {
            worker.order(command);
        }
    }

    /// Takes what is new in the ring. Returns the range of samples that no log has yet.
    pub(super) fn drain(&mut self) -> std::ops::Range<usize> {
        let Some(worker) = &mut self.worker else { return 0..0 };
        worker.drain(&mut self.fold.samples);
        self.fold.lost = worker.lost();
        let beats = worker.beats();
        let fresh = self.logged..self.fold.samples.len();
        if !fresh.is_empty() || beats != self.beats {
            self.alive = Instant::now();
            self.beats = beats;
        }
        for sample in self.fold.samples[fresh.clone()].iter().filter(|s| s.phase == Phase::Steady) {
            if sample.round != self.round {
                (self.round, self.round_began_ns) = (sample.round, sample.start_ns);
            }
            self.steady += 1;
        }
        self.logged = fresh.end;
        fresh
    }
}
