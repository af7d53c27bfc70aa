//! Whoever wants to know what a run does: its folder, a terminal, a history.

use prony_types::{Happened, RunRecord, Sample, Telemetry};

use crate::record::RecordFold;

/// Takes what a run hands on, in the order in which it happened. The record has it already.
pub trait Sink {
    /// Something happened.
    fn event(&mut self, event: &Happened, so_far: &RecordFold);

    /// A cell was timed.
    fn samples(&mut self, _cell: &str, _attempt: u32, _samples: &[Sample]) {}

    /// The sensors were read.
    fn reading(&mut self, _reading: &Telemetry) {}

    /// The record is up to date.
    fn record(&mut self, _record: &RunRecord) {}

    /// Whether figures that change all the time are wanted.
    fn wants_figures(&self) -> bool {
        false
    }

    /// How far a cell is, and a figure of the moment.
    fn figure(&mut self, _cell: &str, _done: f64, _text: &str) {}
}

/// Wants to know nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Sink for Nobody {
    fn event(&mut self, _event: &Happened, _so_far: &RecordFold) {}
}
