//! How far a cell is that is being timed.

use prony_judge::stats;
use prony_judge::stopping::{self, Progress};
use prony_types::{BudgetSpec, Doing, Phase, Sample};
use prony_work::short_time;

use super::cell::RunCell;
use crate::fold::CellFold;

/// How far a cell is. The interval costs a sort, so it is made only where it decides.
pub(super) fn standing(budget: &BudgetSpec, cell: &RunCell, fold: &CellFold) -> Progress {
    let interval_decides = budget.duration_s.is_none() && budget.samples.is_none();
    let half_width = || {
        stats::summarize(&prony_judge::totals(fold.samples(), Phase::Steady))
            .as_ref()
            .and_then(stats::relative_half_width)
    };
    let half_width = if interval_decides { half_width() } else { None };
    Progress { samples: cell.steady, measured_s: cell.measured_s, half_width }
}

/// Share done and the figure of the moment, for a bar. Cheap: a median of the last few hundred samples.
pub(super) fn figure(budget: &BudgetSpec, cell: &RunCell, fold: &CellFold) -> (f64, String) {
    const WINDOW: usize = 256;
    let recent: &[Sample] = fold.samples().last(WINDOW);
    let of = |phase: Phase| recent.iter().filter(move |s| s.phase == phase).map(|s| s.total_ns).collect::<Vec<u64>>();
    let measuring = cell.doing == Doing::Measuring && cell.steady > 0;
    let mut totals = if measuring { of(Phase::Steady) } else { recent.iter().map(|s| s.total_ns).collect() };
    let under_way = match recent.last() {
        Some(last) if measuring && last.phase == Phase::Steady => last.start_ns.saturating_sub(cell.round_began_ns),
        _ => 0,
    };
    let so_far = cell.measured_s + under_way as f64 / 1e9;
    let progress = Progress { samples: cell.steady, measured_s: so_far, half_width: None };
    let left = stopping::estimate_remaining_s(budget, progress);
    let share = if so_far + left > 0.0 { so_far / (so_far + left) } else { 0.0 };
    let doing = cell.doing.words();
    let Some(p50) = stats::median_ns(&mut totals) else { return (share, doing.to_owned()) };
    let p50 = p50 / 1e6;
    let text = if measuring {
        format!("p50 {p50:.2} ms  {} samples  ETA {}", cell.steady, short_time(left))
    } else {
        format!("{doing}  {p50:.2} ms")
    };
    (share, text)
}
