//! A cell of a run under way: its worker, what came from it, and how far it is.

use std::time::Instant;

use prony_plan::models::GraphCost;
use prony_types::{CellSpec, Command, Doing, EvaluatedData, FailureKind, Phase, Sample};

use crate::footprint::Footprint;
use crate::worker::Worker;

pub(super) struct RunCell {
    pub(super) spec: CellSpec,
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
    /// Samples that the ring had no room for.
    pub(super) lost: u64,
    /// Whether it is still to be measured, or is being measured.
    pub(super) is_pending: bool,
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
    /// What it said of a data set, until that is scored.
    pub(super) evaluated: Option<EvaluatedData>,
    beats: u64,
}

impl RunCell {
    /// Whether what it runs is being made, and nothing is measured yet.
    pub(super) fn is_being_made(&self) -> bool {
        matches!(self.doing, Doing::Rewriting | Doing::Building)
    }

    pub(super) fn new(spec: &CellSpec, is_pending: bool) -> RunCell {
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
            lost: 0,
            is_pending,
            failure: None,
            alone: false,
            footprint: None,
            peak_bytes: 0,
            cost: None,
            evaluated: None,
            beats: 0,
        }
    }

    /// Back to where nothing was started, but for what was made for it.
    pub(super) fn begin_again(&mut self) {
        let (footprint, cost) = (self.footprint, self.cost.take());
        *self = RunCell { alone: true, footprint, cost, ..RunCell::new(&self.spec, true) };
    }

    /// Whether nothing was started for it yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_pending && self.worker.is_none()
    }

    /// Tells the worker, if there is one.
    pub(super) fn order(&mut self, command: &Command) {
        self.alive = Instant::now();
        if let Some(worker) = &mut self.worker {
            worker.order(command);
        }
    }

    /// Takes what is new in the ring.
    pub(super) fn drain(&mut self) -> Vec<Sample> {
        let mut fresh = Vec::new();
        let Some(worker) = &mut self.worker else { return fresh };
        worker.drain(&mut fresh);
        self.lost = worker.lost();
        let beats = worker.beats();
        if !fresh.is_empty() || beats != self.beats {
            self.alive = Instant::now();
            self.beats = beats;
        }
        for sample in fresh.iter().filter(|s| s.phase == Phase::Steady) {
            if sample.round != self.round {
                (self.round, self.round_began_ns) = (sample.round, sample.start_ns);
            }
            self.steady += 1;
        }
        fresh
    }
}
