//! Cells that take over where all others of their model were skipped, and budgets that cannot give what a gate needs: what is
//! known only once cells are loaded, and decided before anything is timed.

use prony_judge::stats::P99_NEEDS;
use prony_types::{CellSpec, CellStatus, GateName, Phase, Plan};

use super::Run;
use super::cell::RunCell;
use crate::fold::CellFold;

/// Whether another cell takes over where this one and its like cannot run.
pub(super) fn stands_by(plan: &Plan, cell: &CellSpec) -> bool {
    plan.standby.iter().any(|other| other.model == cell.model)
}

impl Run {
    /// Adds the cells that stand by for models of which every cell was skipped. Returns whether there are any.
    pub(super) fn call_standby(&mut self) -> bool {
        if self.interrupt.asked() {
            return false;
        }
        let skipped = |spec: &CellSpec| {
            let mut same = self.cells.iter().filter(|cell| cell.spec.model == spec.model);
            same.all(|cell| cell.fold.record.status == CellStatus::Skipped)
        };
        let (called, waiting): (Vec<CellSpec>, Vec<CellSpec>) = self.record.plan.standby.drain(..).partition(skipped);
        self.record.plan.standby = waiting;
        for spec in &called {
            let mut fold = CellFold::new(spec, 1);
            fold.timed = self.record.plan.timed;
            self.progress
                .say(&format!("  no other backend that is here can run {}: measuring {}", spec.model.name, spec.id));
            self.progress.add(&spec.id);
            self.cells.push(RunCell::new(spec, fold));
        }
        let any = !called.is_empty();
        self.record.plan.cells.extend(called);
        any
    }

    /// Why a duration that was asked for cannot give a gate the samples that a p99 needs, judged by the fastest frame of the
    /// warm-up: what may just do is measured.
    pub(super) fn too_short_for_p99(&self) -> Option<String> {
        let plan = &self.record.plan;
        let duration_s = plan.budget.duration_s.filter(|_| plan.budget.at_least.is_none())?;
        plan.gates.p99_max_ms?;
        // The folder of an earlier sitting stays, whatever becomes of this one.
        if !plan.timed || self.interrupt.asked() || !self.record.run.resumed.is_empty() {
            return None;
        }
        let fastest_s = |cell: &RunCell| {
            let warm = cell.fold.samples.iter().filter(|sample| sample.phase == Phase::Warmup);
            warm.map(|sample| sample.total_ns).min().map(|ns| ns as f64 / 1e9)
        };
        let running = self.cells.iter().filter(|cell| cell.worker.is_some());
        let slowest = running.filter_map(|cell| Some((cell, fastest_s(cell)?))).max_by(|a, b| a.1.total_cmp(&b.1));
        let (cell, frame_s) = slowest?;
        let most = (duration_s / frame_s).ceil();
        if most >= P99_NEEDS as f64 {
            return None;
        }
        // A quarter more: not every frame is as fast as the fastest.
        let enough = (P99_NEEDS as f64 * frame_s * 1.25).ceil();
        Some(format!(
            "--gate {} needs {P99_NEEDS} samples per cell; --duration {duration_s}s gives at most {most} of {} ({:.1} ms each); \
             use --duration {enough}s, or leave it out",
            GateName::P99MaxMs,
            cell.spec.id,
            frame_s * 1e3
        ))
    }
}
