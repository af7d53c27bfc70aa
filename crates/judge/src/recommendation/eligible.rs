//! What stands against shipping a cell, however fast it is.

use prony_types::{
    AccuracyComparison, BackendName, CellRecord, Gate, RunRecord, RuntimeName, RuntimeRecord, RuntimeState, Verdict,
};

use super::is_another_tools;

/// Points of mAP50-95 that a cell may lose where no `map_drop_max` was given.
pub(super) const ALLOWED_DROP: f64 = 1.0;

/// Why a cell is not shipped.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Objection {
    /// Its outputs are wrong, with the first reason.
    WrongOutput(Option<String>),
    /// It went beyond a memory limit.
    OverBudget(Option<String>),
    /// It did not run where it should have.
    FellBack(Option<String>),
    /// A gate is broken, or could not be decided.
    Gate(Gate),
    /// It loses more accuracy than allowed: points lost, points allowed, the cell it is compared with.
    LosesAccuracy { points: f64, allowed: f64, against: String },
    /// Its outputs were compared with no reference.
    Unchecked,
    /// Another tool timed it, by a definition of its own.
    TimedByAnotherTool,
}

/// What stands against a cell, if anything.
pub(super) fn objection(record: &RunRecord, cell: &CellRecord) -> Option<Objection> {
    let why = || cell.verdict_reasons.first().cloned();
    match cell.verdict {
        Some(Verdict::WrongOutput) => return Some(Objection::WrongOutput(why())),
        Some(Verdict::OverBudget) => return Some(Objection::OverBudget(why())),
        Some(Verdict::FellBack) if !fallback_allowed(record, cell) => return Some(Objection::FellBack(why())),
        _ => {}
    }
    if is_another_tools(cell) {
        return Some(Objection::TimedByAnotherTool);
    }
    let not_held = |gate: &&Gate| gate.cell == cell.id && !gate.pass;
    let gates = || record.gates.iter().filter(not_held);
    if let Some(gate) = gates().find(|gate| gate.is_broken()).or_else(|| gates().next()) {
        return Some(Objection::Gate(gate.clone()));
    }
    let allowed = allowed_drop(record);
    let compared = compared(record, cell)?;
    let points = -compared.delta? * 100.0;
    (points > allowed).then(|| Objection::LosesAccuracy { points, allowed, against: compared.against.clone() })
}

/// Points of mAP50-95 that a cell may lose.
pub(super) fn allowed_drop(record: &RunRecord) -> f64 {
    record.plan.gates.map_drop_max.unwrap_or(ALLOWED_DROP)
}

/// mAP of a cell against its reference row, where the two could be compared.
pub(super) fn compared<'a>(record: &'a RunRecord, cell: &CellRecord) -> Option<&'a AccuracyComparison> {
    record.accuracy_comparisons.iter().find(|comparison| comparison.cell == cell.id && comparison.delta.is_some())
}

fn fallback_allowed(record: &RunRecord, cell: &CellRecord) -> bool {
    record.plan.cells.iter().any(|spec| spec.id == cell.id && spec.provider.allow_fallback)
}

/// Backends that are installed and that no cell was measured on, as words to type.
pub(super) fn unmeasured(record: &RunRecord) -> Vec<&'static str> {
    let ready = |name| record.environment.runtimes.iter().any(|r| r.name == name && r.state == RuntimeState::Ready);
    let here = [
        (BackendName::Tensorrt, ready(RuntimeName::Nvinfer) && !record.environment.gpus.is_empty()),
        (BackendName::Openvino, ready(RuntimeName::Openvino)),
        (BackendName::OrtCpu, ready(RuntimeName::Onnxruntime)),
    ];
    let measured = |name: BackendName| record.cells.iter().any(|cell| cell.backend.name == name.name());
    here.into_iter().filter(|&(name, here)| here && !measured(name)).map(|(name, _)| name.name()).collect()
}

/// Runtimes that are not here and that `prony runtime install` brings, as words to type.
pub(super) fn installable(record: &RunRecord) -> Vec<&'static str> {
    let missing = |name: &RuntimeName| !record.environment.runtimes.iter().any(|r| r.name == *name && is_there(r));
    [RuntimeName::Onnxruntime, RuntimeName::Openvino].into_iter().filter(missing).map(RuntimeName::name).collect()
}

fn is_there(runtime: &RuntimeRecord) -> bool {
    matches!(runtime.state, RuntimeState::Ready | RuntimeState::Broken)
}
