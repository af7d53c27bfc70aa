//! What the cells cost and what their devices can do, found before anything is loaded; and the floor that follows for a
//! cell once it is known what it computes in.

use prony_types::Precision;

use super::Run;
use crate::fold::bounding_precision;
use crate::roofline::{self, Where};

impl Run {
    /// Reads what the cells cost, and measures the CPU for those that run on it. It takes a few tenths of a second.
    pub(super) fn measure_peaks(&mut self) {
        if !self.record.plan.timed {
            return;
        }
        for cell in self.cells.iter_mut().filter(|cell| cell.is_waiting()) {
            if self.interrupt.asked() {
                return;
            }
            let cost = self.models.cost(&cell.spec);
            if cost.is_ok() && matches!(cell.spec.precision, Precision::Fp32 | Precision::Native) {
                roofline::measure_cpu(&mut self.record.environment.peaks, &Where::of(&cell.spec));
            }
            cell.cost = Some(cost);
        }
    }

    /// Says what a cell should take at least, or why that cannot be said.
    pub(super) fn predict(&mut self, index: usize) {
        let cell = &mut self.cells[index];
        let Some(cost) = cell.cost.take() else { return };
        let environment = &mut self.record.environment;
        let precision = bounding_precision(&cell.fold.record);
        let peak = roofline::peak_for(&environment.peaks, &environment.gpus, &Where::of(&cell.spec), precision);
        if let Some(peak) = peak.as_ref().ok().filter(|peak| !environment.peaks.contains(peak)) {
            environment.peaks.push(peak.clone());
        }
        let record = &mut cell.fold.record;
        let floor = cost.as_ref().as_ref().map_err(Clone::clone).and_then(|cost| roofline::floor(cost, &peak?));
        match floor {
            Ok(floor) => record.roofline = Some(floor),
            Err(reason) => record.roofline_absent = Some(reason),
        }
    }
}
