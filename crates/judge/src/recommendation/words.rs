//! The sentences of a recommendation.

use prony_types::{
    CellRecord, CellStatus, Comparison, Difference, Precision, Recommendation, RunRecord, Stage, Verdict,
};

use super::eligible::{Objection, allowed_drop, compared, installable, unmeasured};
use super::{Choice, frame_ms, same_model};
use crate::load::UNSTABLE_SHARE;
use crate::note::is_note;

/// Cells that took less time and were rejected: more than these are counted.
const REJECTED_NAMED: usize = 2;

/// What to ship of one model, and why not something else.
pub(super) fn recommendation(record: &RunRecord, choice: &Choice<'_>, comparisons: &[Comparison]) -> Recommendation {
    let name = choice.ranked[0].model.name.clone();
    let Some(best) = choice.best else {
        return Recommendation { text: none_to_ship(&name, choice), model: name, cell: None, front: Vec::new() };
    };
    // The order of the cells may still be right, but whoever reads no further must not take the figures along.
    let verb = if disturbed(best) { "Measure again before shipping" } else { "Ship" };
    let mut parts = vec![format!("{verb} {name} on {}", engine(best))];
    parts[0] += &next(record, best, choice, comparisons);
    parts.push(latency(best));
    parts.extend(accuracy(record, best));
    parts.extend(rejected(best, choice));
    parts.extend(larger_batch(best, choice));
    if best.agreement.is_none() {
        parts.push("its outputs were compared with no reference".into());
    }
    let text = parts.join("; ") + ".";
    Recommendation { model: name, cell: Some(best.id.clone()), front: Vec::new(), text }
}

/// Whether something other than the cell decided how long it took.
fn disturbed(cell: &CellRecord) -> bool {
    let loaded = cell.load.as_ref().and_then(|load| load.others_share).is_some_and(|share| share > UNSTABLE_SHARE);
    loaded || !cell.stalls.is_empty()
}

/// How it compares with the next cell that could be shipped.
fn next(record: &RunRecord, best: &CellRecord, choice: &Choice<'_>, comparisons: &[Comparison]) -> String {
    let mut others = choice.ranked.iter().filter(|cell| cell.id != best.id && cell.batch == best.batch);
    let Some(next) = others.find(|cell| !choice.is_rejected(cell)) else { return alone(record, choice) };
    let id = &next.id;
    let comparison = comparisons.iter().find(|c| c.cell == *id && c.against == best.id);
    let figures = |c: &Comparison| -> Option<String> {
        let ([lo, hi], ratio) = (c.ci95?, c.ratio?);
        let unpaired = if c.paired_rounds == Some(0) { ", not paired: the two were not loaded together" } else { "" };
        Some(format!("takes {ratio:.2} times as long, 95 % CI {lo:.2} to {hi:.2}{unpaired}"))
    };
    match comparison.map(|c| (c.difference, figures(c), c)) {
        Some((Difference::Slower, Some(figures), _)) => {
            format!(", which is faster than the next: {id} {figures}")
        }
        Some((Difference::Same, Some(figures), _)) => {
            format!("; {id} {figures}: the same within noise, so either will do")
        }
        Some((Difference::NotComparable, _, c)) => format!("; {id} cannot be compared with it ({})", c.reason),
        Some((_, Some(figures), _)) => format!("; {id} {figures}: too wide to tell which is faster, so measure longer"),
        _ => format!("; too few samples to tell whether {id} is faster"),
    }
}

/// What is said where nothing else could be shipped.
fn alone(record: &RunRecord, choice: &Choice<'_>) -> String {
    if choice.ranked.len() > 1 {
        return ", the only cell that can be shipped".into();
    }
    let (unmeasured, installable) = (unmeasured(record), installable(record));
    let more = match (unmeasured.as_slice(), installable.as_slice()) {
        ([], []) => String::new(),
        ([], missing) => format!("; to compare, run `prony runtime install {}`", missing.join("` or `")),
        (ready, _) => format!("; to compare, add --backends {},{}", choice.ranked[0].backend.name, ready.join(",")),
    };
    format!(", the only cell measured for this model{more}")
}

/// The absolute figure, and whether it can be trusted.
fn latency(cell: &CellRecord) -> String {
    let Some(stats) = cell.latency_ms.get(&Stage::Total) else { return "nothing was timed".into() };
    let p50 = time(stats.p50);
    let unit = if cell.batch > 1 { format!("batch of {}", cell.batch) } else { "frame".into() };
    let fps = cell.throughput_fps.map(|fps| {
        let fps = if fps < 10.0 { format!("{fps:.1}") } else { format!("{fps:.0}") };
        format!(", {fps} frames per second")
    });
    let fps = fps.unwrap_or_default();
    if cell.verdict == Some(Verdict::Valid) {
        let ci95 = stats
            .ci95
            .map(|[lo, hi]| format!(" (95 % CI {} to {} within this run)", time(lo), time(hi)))
            .unwrap_or_default();
        return format!("{p50} ms per {unit}{ci95}{fps}");
    }
    let objection = cell.verdict_reasons.iter().find(|reason| !is_note(reason));
    let why = objection.cloned().unwrap_or_else(|| format!("it is {}", cell.verdict.unwrap_or(Verdict::Unknown)));
    format!("its {p50} ms per {unit} is not firm, because {why}")
}

/// How accurate it is, and what it loses.
fn accuracy(record: &RunRecord, cell: &CellRecord) -> Option<String> {
    let narrow = !matches!(cell.precision.requested, Precision::Fp32 | Precision::Tf32);
    let Some(scored) = &cell.accuracy else {
        let why = cell.accuracy_absent.clone().unwrap_or_else(|| "give --data".to_owned());
        return narrow.then(|| format!("its accuracy was not measured: {why}"));
    };
    let map = scored.figures.map_50_95?;
    let mut text = format!("mAP50-95 {map:.3} on {} images", scored.images);
    let Some(compared) = compared(record, cell) else {
        let is_reference = record.accuracy_comparisons.iter().any(|c| c.against == cell.id);
        if narrow && !is_reference {
            text += ", with no fp32 cell to compare it with";
        }
        return Some(text);
    };
    let (delta, allowed) = (compared.delta? * 100.0, allowed_drop(record));
    text += &format!(", {delta:+.1} points against {}", compared.against);
    match compared.ci95.map(|ends| ends.map(|x| x * 100.0)) {
        Some([lo, hi]) if lo < -allowed => {
            text += &format!(
                " (95 % CI {lo:+.1} to {hi:+.1}: whether it loses more than {allowed} cannot be told; score more images)"
            );
        }
        Some([lo, hi]) => text += &format!(" (95 % CI {lo:+.1} to {hi:+.1})"),
        None => text += " (too few images for an interval)",
    }
    Some(text)
}

/// Cells that took less time and must not be shipped.
fn rejected(best: &CellRecord, choice: &Choice<'_>) -> Option<String> {
    let quicker = |cell: &CellRecord| cell.batch == best.batch && frame_ms(cell) < frame_ms(best);
    let all: Vec<String> = choice
        .rejected
        .iter()
        .filter(|(cell, objection)| quicker(cell) && *objection != Objection::TimedByAnotherTool)
        .map(|(cell, objection)| format!("{} takes less time but {}", cell.id, clause(objection)))
        .collect();
    let (named, rest) = all.split_at(all.len().min(REJECTED_NAMED));
    let rest =
        if rest.is_empty() { String::new() } else { format!("; so do {} more that cannot be shipped", rest.len()) };
    (!named.is_empty()).then(|| named.join("; ") + &rest)
}

/// What a larger batch would give, where one was measured.
fn larger_batch(best: &CellRecord, choice: &Choice<'_>) -> Option<String> {
    let fps = |cell: &CellRecord| cell.throughput_fps.unwrap_or(0.0);
    let larger = choice.ranked.iter().filter(|cell| cell.batch > best.batch && !choice.is_rejected(cell));
    let most = larger.max_by(|a, b| fps(a).total_cmp(&fps(b)))?;
    (fps(most) > fps(best)).then(|| format!("for throughput, {} reaches {:.0} frames per second", most.id, fps(most)))
}

/// What is said of a model of which nothing can be shipped.
fn none_to_ship(name: &str, choice: &Choice<'_>) -> String {
    let each = choice.rejected.iter().map(|(cell, objection)| format!("{} {}", cell.id, clause(objection)));
    format!("Ship nothing of {name} yet: {}.", each.collect::<Vec<_>>().join("; "))
}

/// An objection as what a cell does.
fn clause(objection: &Objection) -> String {
    let because = |why: &Option<String>| why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    match objection {
        Objection::WrongOutput(why) => format!("has wrong outputs{}", because(why)),
        Objection::OverBudget(why) => format!("exceeds its memory limit{}", because(why)),
        Objection::FellBack(why) => format!("fell back{}", because(why)),
        Objection::Gate(gate) => match (gate.inconclusive, gate.figure) {
            (false, Some(figure)) => {
                format!("fails {} ({}, limit {})", gate.name, figure_text(figure), figure_text(gate.limit))
            }
            (inconclusive, _) => {
                let why = gate.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
                let verb = if inconclusive { "could not be held to" } else { "fails" };
                format!("{verb} {}{why}", gate.name)
            }
        },
        Objection::LosesAccuracy { points, allowed, against } => {
            format!("loses {points:.1} points of mAP50-95 against {against} ({allowed} allowed)")
        }
        Objection::Unchecked => "has outputs that were compared with no reference".into(),
        Objection::TimedByAnotherTool => "was timed by another tool's definition".into(),
    }
}

/// A figure of a gate with as many digits as it needs.
fn figure_text(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A model none of whose cells has figures.
pub(super) fn nothing(first: &CellRecord, cells: &[CellRecord]) -> Recommendation {
    let name = &first.model.name;
    let of_model: Vec<&CellRecord> = cells.iter().filter(|cell| same_model(cell, first)).collect();
    // The reason stands with the cell; here it would only be repeated.
    let why = match of_model.as_slice() {
        all if all.iter().any(|cell| cell.status == CellStatus::Completed) => "no sample was taken".into(),
        [one] => match one.status {
            CellStatus::Failed => "its one cell failed".into(),
            CellStatus::Pending => "its one cell has not run yet".into(),
            status => format!("its one cell was {}", status.name()),
        },
        all => format!("none of its {} cells completed", all.len()),
    };
    let text = format!("Nothing can be said about {name}: {why}.");
    Recommendation { model: name.clone(), cell: None, front: Vec::new(), text }
}

/// Backend and precision. What a file of its own precision executes is said by its layers.
pub(super) fn engine(cell: &CellRecord) -> String {
    let requested = cell.precision.requested;
    let precision = match (&cell.precision.executed, requested) {
        (Some(executed), Precision::Native) => executed.clone(),
        (Some(executed), _) if executed.split([' ', ',']).next() != Some(requested.name()) => {
            format!("{requested} (executed: {executed})")
        }
        _ => requested.to_string(),
    };
    format!("{} in {precision}", cell.backend.name)
}

/// Milliseconds with three significant digits.
pub(super) fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms if ms >= 1.0 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    }
}
