//! The comparison table: one row a cell, the same cells and words on the terminal, in Markdown and in HTML.

use prony_types::{
    CellRecord, CellSpec, CellStatus, Comparison, Difference, Gate, RunRecord, Stage, StageStats, Verdict,
};

use crate::tone::Tone;
use crate::{accuracy, figure};

/// Figures of one cell as text. Absent ones hold the mark for that.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) model: String,
    pub(crate) backend: String,
    pub(crate) precision: String,
    pub(crate) p50: String,
    pub(crate) ci95: String,
    pub(crate) p95: String,
    pub(crate) p99: String,
    pub(crate) throughput: String,
    pub(crate) difference: String,
    pub(crate) map: String,
    pub(crate) memory: String,
    pub(crate) word: &'static str,
    pub(crate) tone: Tone,
}

impl Row {
    /// The row of a cell.
    pub(crate) fn new(record: &RunRecord, cell: &CellRecord) -> Row {
        let total = total(cell);
        let (word, tone) = word(cell);
        Row {
            model: cell.model.name.clone(),
            backend: cell.backend.name.clone(),
            precision: precision(cell),
            p50: figure::or_absent(total.map(|t| t.p50), figure::ms),
            ci95: total.and_then(|t| t.ci95).map_or_else(|| figure::ABSENT.to_owned(), figure::interval),
            p95: figure::or_absent(total.and_then(|t| t.p95), figure::ms),
            p99: figure::or_absent(total.and_then(|t| t.p99), figure::ms),
            throughput: figure::or_absent(cell.throughput_fps, figure::fps),
            difference: difference(record, cell),
            map: accuracy::with_spread(cell),
            memory: memory(cell),
            word,
            tone,
        }
    }
}

/// Statistics of the whole way.
pub(crate) fn total(cell: &CellRecord) -> Option<&StageStats> {
    cell.latency_ms.get(&Stage::Total)
}

/// Why there is no recommendation.
pub(crate) fn unrecommended(record: &RunRecord) -> &'static str {
    let completed = record.cells.iter().any(|cell| cell.status == CellStatus::Completed);
    if completed && accuracy::alone(record) { "nothing was timed" } else { "no cell completed" }
}

/// What the plan says of a cell.
pub(crate) fn spec<'a>(record: &'a RunRecord, cell: &CellRecord) -> Option<&'a CellSpec> {
    record.plan.cells.iter().find(|spec| spec.id == cell.id)
}

/// Input size as in file names: `320`, `480x640` (height first), `none`.
pub(crate) fn imgsz(record: &RunRecord, cell: &CellRecord) -> String {
    match spec(record, cell).and_then(|spec| spec.imgsz) {
        Some([h, w]) if h == w => h.to_string(),
        Some([h, w]) => format!("{h}x{w}"),
        None => "none".to_owned(),
    }
}

/// The verdict of a completed cell; the status of any other, whose figures are those of a part.
pub(crate) fn word(cell: &CellRecord) -> (&'static str, Tone) {
    match (cell.status, cell.verdict) {
        (CellStatus::Completed, Some(verdict)) => (verdict.name(), verdict_tone(verdict)),
        (CellStatus::Failed, _) => (cell.status.name(), Tone::Bad),
        (CellStatus::Interrupted, _) => (cell.status.name(), Tone::Care),
        _ => (cell.status.name(), Tone::Neutral),
    }
}

/// The verdict as far as it may be told: what did not run to its end can be objected to, but is never `valid`.
pub(crate) fn verdict(cell: &CellRecord) -> Option<Verdict> {
    cell.verdict.filter(|&v| cell.status == CellStatus::Completed || v != Verdict::Valid)
}

pub(crate) fn verdict_tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Valid => Tone::Good,
        Verdict::Unknown | Verdict::Undersampled | Verdict::Unstable | Verdict::Throttled => Tone::Care,
        Verdict::OverBudget | Verdict::FellBack | Verdict::WrongOutput => Tone::Bad,
    }
}

/// Whether a limit held, in a word.
pub(crate) const fn outcome(gate: &Gate) -> (&'static str, Tone) {
    match (gate.pass, gate.inconclusive) {
        (true, _) => ("pass", Tone::Good),
        (false, true) => ("inconclusive", Tone::Care),
        (false, false) => ("fail", Tone::Bad),
    }
}

/// What the figure of a gate is relative to, and why there is none.
pub(crate) fn gate_note(gate: &Gate) -> String {
    let against = gate.against.as_ref().map(|against| format!("against {against}"));
    against.into_iter().chain(gate.reason.clone()).collect::<Vec<_>>().join("; ")
}

/// Asked for, and executed where that is another thing.
pub(crate) fn precision(cell: &CellRecord) -> String {
    let batch = if cell.batch > 1 { format!(", batch {}", cell.batch) } else { String::new() };
    format!("{}{batch}", arithmetic(cell))
}

fn arithmetic(cell: &CellRecord) -> String {
    let requested = cell.precision.requested.name();
    match &cell.precision.executed {
        None => requested.to_owned(),
        // The same, perhaps with its proof behind it: `fp16 (93 of 108 layers)`.
        Some(executed) if executed.split(" (").next() == Some(requested) => executed.clone(),
        Some(executed) => format!("{requested} → {executed}"),
    }
}

/// Every comparison of two cells once: against the recommended cell, and of narrow precisions against fp32.
pub(crate) fn differences(record: &RunRecord) -> impl Iterator<Item = &Comparison> {
    let told = |c: &&Comparison| !record.comparisons.iter().any(|d| (&d.cell, &d.against) == (&c.cell, &c.against));
    record.comparisons.iter().chain(record.narrowings.iter().filter(told))
}

/// The comparison that a cell's row is about: with the recommended cell of its model.
pub(crate) fn own_comparison<'a>(record: &'a RunRecord, cell: &CellRecord) -> Option<&'a Comparison> {
    record.comparisons.iter().find(|c| c.cell == cell.id && c.against != cell.id)
}

/// Whether other cells are compared with this one.
pub(crate) fn is_reference(record: &RunRecord, cell: &CellRecord) -> bool {
    record.comparisons.iter().any(|c| c.against == cell.id && c.cell != cell.id)
}

fn difference(record: &RunRecord, cell: &CellRecord) -> String {
    match own_comparison(record, cell) {
        Some(c) => match (c.difference, c.ratio) {
            (Difference::Faster | Difference::Slower, Some(ratio)) => {
                format!("{} {}", c.difference, figure::times(ratio))
            }
            _ => c.difference.name().to_owned(),
        },
        None if is_reference(record, cell) => "reference".to_owned(),
        None => figure::ABSENT.to_owned(),
    }
}

/// What the interval of the median is of.
pub(crate) const WITHIN_THIS_RUN: &str = "ci95: of the median within this run; another run may differ by more";

/// What the figures of memory are where there are two of them.
pub(crate) const HOST_AND_DEVICE: &str = "host peak + device after warm-up";

/// Whether memory of a device was read for any cell.
pub(crate) fn any_device_memory(record: &RunRecord) -> bool {
    record.cells.iter().any(|cell| cell.memory.device_peak_mib.is_some())
}

fn memory(cell: &CellRecord) -> String {
    match (cell.memory.host_peak_mib, cell.memory.device_peak_mib) {
        (Some(host), Some(device)) => format!("{} + {}", figure::number(host), figure::mib(device)),
        (Some(one), None) | (None, Some(one)) => figure::mib(one),
        (None, None) => figure::ABSENT.to_owned(),
    }
}
