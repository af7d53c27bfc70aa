//! What the cells cost and what their devices can do, found before anything is loaded; and the floor that follows for a
//! cell once it is known what it computes in.

use prony_types::{Precision, RunEventKind};

use super::Run;
use crate::fold::bounding_precision;
use crate::roofline::{self, Where};

impl Run {
    /// Reads what the cells cost, and measures the CPU for those that run on it. It takes a few tenths of a second.
    pub(super) fn measure_peaks(&mut self) {
        if !self.plan().timed {
            return;
        }
        for index in 0..self.cells.len() {
            let cell = &self.cells[index];
            if !cell.is_waiting() {
                continue;
            }
            if self.interrupt.asked() {
                return;
            }
            let cost = self.models.cost(&self.cells[index].spec);
            if cost.is_ok() && matches!(cell.spec.precision, Precision::Fp32 | Precision::Native) {
                let known = &self.fold.record().environment.peaks;
                if let Some(peak) = roofline::measure_cpu(known, &Where::of(&cell.spec)) {
                    self.emit(RunEventKind::Peak { peak });
                }
            }
            self.cells[index].cost = Some(cost);
        }
    }

    /// Says what a cell should take at least, or why that cannot be said.
    pub(super) fn predict(&mut self, index: usize) {
        let cell = &mut self.cells[index];
        let Some(cost) = cell.cost.take() else { return };
        let environment = &self.fold.record().environment;
        let precision = bounding_precision(&self.fold.cell(index).record);
        let peak = roofline::peak_for(&environment.peaks, &environment.gpus, &Where::of(&cell.spec), precision);
        let cell = cell.spec.id.clone();
        if let Ok(peak) = &peak {
            self.emit(RunEventKind::Peak { peak: peak.clone() });
        }
        let (floor, absent) =
            match cost.as_ref().as_ref().map_err(Clone::clone).and_then(|cost| roofline::floor(cost, &peak?)) {
                Ok(floor) => (Some(Box::new(floor)), None),
                Err(reason) => (None, Some(reason)),
            };
        self.emit(RunEventKind::Predicted { cell, floor, absent });
    }
}
