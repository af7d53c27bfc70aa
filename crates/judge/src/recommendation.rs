//! What to ship, in one sentence a model.

use prony_types::{CellRecord, CellStatus, Comparison, Difference, Recommendation, Stage, Verdict};

use crate::difference::{frame_ms, is_another_tools, models};
use crate::verdict::is_note;

/// What is said where there is nothing to compare with.
const ALONE: &str = "nothing else was measured here: --backends all compares it with what is installed, and \
                     `prony runtime install onnxruntime` or `openvino` brings more";

/// One recommendation a model, in the order of the plan: the fastest `valid` cell, else the best there is with its caveat.
/// Models are never held against each other.
pub fn recommend(cells: &[CellRecord], comparisons: &[Comparison]) -> Vec<Recommendation> {
    let measured = models(cells);
    let mut seen: Vec<&CellRecord> = Vec::new();
    let mut out = Vec::new();
    for cell in cells {
        if seen.iter().any(|other| same_model(other, cell)) {
            continue;
        }
        seen.push(cell);
        let ranked: Vec<&CellRecord> = measured.iter().flatten().copied().filter(|c| same_model(c, cell)).collect();
        out.push(if ranked.is_empty() { nothing(cell, cells) } else { choose(&ranked, comparisons) });
    }
    out
}

/// By hash and by name: files that cannot be read all have the same hash, which is none.
fn same_model(a: &CellRecord, b: &CellRecord) -> bool {
    (&a.model.sha256, &a.model.name) == (&b.model.sha256, &b.model.name)
}

fn choose(ranked: &[&CellRecord], comparisons: &[Comparison]) -> Recommendation {
    let is_valid = |c: &&&CellRecord| c.verdict == Some(Verdict::Valid);
    // One that agrees with its reference before one that was held against none.
    let agreed = ranked.iter().filter(is_valid).find(|c| c.agreement.is_some());
    let valid = agreed.or_else(|| ranked.iter().find(is_valid)).copied();
    let best = valid.unwrap_or(ranked[0]);
    let figures = figures(best);
    let name = &best.model.name;
    let text = if valid.is_some() {
        let held = if best.agreement.is_some() { "" } else { "; its outputs were held against no reference" };
        format!("Ship {name} on {}: {figures}; {}{held}.", engine(best), beside(best, ranked, comparisons))
    } else {
        let verdict = best.verdict.unwrap_or(Verdict::Unknown);
        // What is only to be known is no caveat.
        let objection = best.verdict_reasons.iter().find(|r| !is_note(r));
        let why = objection.map_or(String::new(), |r| format!(" ({r})"));
        let engine = engine(best);
        match verdict {
            Verdict::WrongOutput => format!("Ship nothing yet of {name}: its outputs on {engine} are wrong{why}."),
            _ => format!(
                "No measurement of {name} can be stood behind yet: the best is {engine} with {figures}, but it is \
                 {verdict}{why}; measure again before shipping it."
            ),
        }
    };
    let cell = (best.verdict != Some(Verdict::WrongOutput)).then(|| best.id.clone());
    Recommendation { model: name.clone(), cell, text }
}

/// The second half of the sentence: what stands beside the best.
fn beside(best: &CellRecord, ranked: &[&CellRecord], comparisons: &[Comparison]) -> String {
    let mut parts = Vec::new();
    let next = ranked.iter().find(|c| c.id != best.id && c.verdict == Some(Verdict::Valid));
    match next {
        Some(next) => parts.push(held_against(best, next, comparisons)),
        None if ranked.len() == 1 => parts.push(ALONE.into()),
        None => parts.push("no other cell is valid".into()),
    }
    let time = |c: &CellRecord| frame_ms(c).unwrap_or(f64::INFINITY);
    let ours = ranked.iter().filter(|c| !is_another_tools(c));
    let doubtful = ours.into_iter().find(|c| c.verdict != Some(Verdict::Valid) && time(c) < time(best));
    if let Some((cell, verdict)) = doubtful.and_then(|c| c.verdict.map(|v| (c, v))) {
        parts.push(format!("{} took less time but is {verdict}", cell.id));
    }
    parts.join("; ")
}

fn held_against(best: &CellRecord, next: &CellRecord, comparisons: &[Comparison]) -> String {
    let id = &next.id;
    let direct = comparisons.iter().find(|c| c.cell == *id && c.against == best.id);
    match direct.map(|c| (c.difference, c.ratio, c)) {
        Some((Difference::Slower, Some(ratio), _)) => format!("{ratio:.2} times as fast as the next, {id}"),
        Some((Difference::Same | Difference::Slower | Difference::Faster, ..)) => {
            format!("{id} is the same within the noise, so either will do")
        }
        Some((Difference::Inconclusive | Difference::NotComparable, _, comparison)) => {
            format!("the next, {id}, cannot be compared ({})", comparison.reason)
        }
        None => format!("the next, {id}, takes {} ms a frame", time(frame_ms(next).unwrap_or(0.0))),
    }
}

fn nothing(cell: &CellRecord, cells: &[CellRecord]) -> Recommendation {
    let name = &cell.model.name;
    let of_model: Vec<&CellRecord> = cells.iter().filter(|c| same_model(c, cell)).collect();
    // The reason stands with the cell; here it would only be said twice.
    let why = match of_model.as_slice() {
        all if all.iter().any(|c| c.status == CellStatus::Completed) => "no sample was taken".into(),
        [one] => match one.status {
            CellStatus::Failed => "its one cell failed".into(),
            CellStatus::Pending => "its one cell has not run yet".into(),
            status => format!("its one cell was {}", status.name()),
        },
        all => format!("none of its {} cells completed", all.len()),
    };
    let text = format!("Nothing can be said about {name}: {why}.");
    Recommendation { model: name.clone(), cell: None, text }
}

fn engine(cell: &CellRecord) -> String {
    let executed = cell.precision.executed.clone().unwrap_or_else(|| cell.precision.requested.to_string());
    format!("{} in {executed}", cell.backend.name)
}

fn figures(cell: &CellRecord) -> String {
    let Some(stats) = cell.latency_ms.get(&Stage::Total) else { return "no figures".into() };
    let unit = if cell.batch > 1 { format!("a batch of {}", cell.batch) } else { "a frame".into() };
    let mut text = format!("{} ms {unit}", time(stats.p50));
    if let Some([lo, hi]) = stats.ci95 {
        text += &format!(" (95 % interval {} to {})", time(lo), time(hi));
    }
    if let Some(fps) = cell.throughput_fps {
        text += &format!(", {} frames a second", if fps < 10.0 { format!("{fps:.1}") } else { format!("{fps:.0}") });
    }
    text
}

/// Milliseconds with three digits that count.
fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms if ms >= 1.0 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    }
}

#[cfg(test)]
#[path = "recommendation_tests.rs"]
mod tests;
