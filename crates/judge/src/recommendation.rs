//! What to ship, in one sentence a model.

use prony_types::{CellRecord, CellStatus, Comparison, Difference, Recommendation, Stage, Verdict};

use crate::difference::{frame_ms, models};
use crate::verdict::is_note;

/// Backends that can be added to the embedded one, as an engineer would look for them.
const TO_INSTALL: &str = "ONNX Runtime or OpenVINO";

/// One recommendation a model (by hash), in the order of the plan: the fastest `valid` cell, else the best there is with
/// its caveat. Models are never held against each other.
pub fn recommend(cells: &[CellRecord], comparisons: &[Comparison]) -> Vec<Recommendation> {
    let measured = models(cells);
    let mut seen: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    for cell in cells {
        if seen.contains(&cell.model.sha256.as_str()) {
            continue;
        }
        seen.push(&cell.model.sha256);
        let of_model = measured.iter().find(|m| m[0].model.sha256 == cell.model.sha256);
        out.push(match of_model {
            Some(ranked) => choose(ranked, comparisons),
            None => nothing(cell, cells),
        });
    }
    out
}

fn choose(ranked: &[&CellRecord], comparisons: &[Comparison]) -> Recommendation {
    let valid = ranked.iter().find(|c| c.verdict == Some(Verdict::Valid)).copied();
    let best = valid.unwrap_or(ranked[0]);
    let figures = figures(best);
    let name = &best.model.name;
    let text = if valid.is_some() {
        format!("Ship {name} on {}: {figures}; {}.", engine(best), beside(best, ranked, comparisons))
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
        None if ranked.len() == 1 => {
            parts.push(format!("nothing else was measured here, so install {TO_INSTALL} to compare"));
        }
        None => parts.push("no other cell is valid".into()),
    }
    let time = |c: &CellRecord| frame_ms(c).unwrap_or(f64::INFINITY);
    let doubtful = ranked.iter().find(|c| c.verdict != Some(Verdict::Valid) && time(c) < time(best));
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
        Some((Difference::NotComparable, _, comparison)) => {
            format!("the next, {id}, cannot be compared ({})", comparison.reason)
        }
        None => format!("the next, {id}, takes {} ms a frame", time(frame_ms(next).unwrap_or(0.0))),
    }
}

fn nothing(cell: &CellRecord, cells: &[CellRecord]) -> Recommendation {
    let name = &cell.model.name;
    let of_model = || cells.iter().filter(|c| c.model.sha256 == cell.model.sha256);
    let why = of_model().find_map(|c| c.reason.as_ref().map(|r| format!(": {} {}: {r}", c.id, c.status.name())));
    let text = if of_model().any(|c| c.status == CellStatus::Completed) {
        format!("Nothing can be said about {name}: no sample was taken.")
    } else {
        let why = why.unwrap_or_default();
        format!("Nothing can be said about {name}: no cell completed{}.", why.trim_end_matches('.'))
    };
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
