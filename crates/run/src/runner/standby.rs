//! Cells that take over where all others of their model were skipped, and budgets that cannot give what a gate needs: what is
//! known only once cells are loaded, and decided before anything is timed.

use prony_judge::stats::P99_NEEDS;
use prony_judge::totals;
use prony_types::{CellSpec, CellStatus, GateName, Phase, Plan, RunEventKind};

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
        let skipped = |spec: &&CellSpec| {
            let mut same = self.fold.cells().iter().filter(|cell| cell.spec.model == spec.model);
            same.all(|cell| cell.record.status == CellStatus::Skipped)
        };
        let called: Vec<CellSpec> = self.plan().standby.iter().filter(skipped).cloned().collect();
        if called.is_empty() {
            return false;
        }
        self.cells.extend(called.iter().map(|spec| RunCell::new(spec, true)));
        self.emit(RunEventKind::Called { cells: called });
        true
    }

    /// Why a duration that was asked for cannot give a gate the samples that a p99 needs, judged by the fastest frame of the
    /// warm-up: what may just do is measured.
    pub(super) fn too_short_for_p99(&self) -> Option<String> {
        let plan = self.plan();
        let duration_s = plan.budget.duration_s.filter(|_| plan.budget.at_least.is_none())?;
        plan.gates.p99_max_ms?;
        // The folder of an earlier sitting stays, whatever becomes of this one.
        if !plan.timed || self.interrupt.asked() || !self.fold.record().run.resumed.is_empty() {
            return None;
        }
        let fastest_s = |cell: &CellFold| {
            let warm = totals(cell.samples(), Phase::Warmup);
            warm.into_iter().min().map(|ns| ns as f64 / 1e9)
        };
        let running = self.running().map(|index| self.fold.cell(index));
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
