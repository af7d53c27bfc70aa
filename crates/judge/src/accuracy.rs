//! Whether one cell is more right than another.

use prony_types::{AccuracyComparison, AccuracyDifference};

use crate::coco::{Evaluation, INTERVAL_NEEDS};

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Id of the cell.
    pub cell: &'a str,
    /// What sets it apart, for words: `int8`.
    pub label: &'a str,
    /// Its boxes, held against the truth.
    pub evaluation: &'a Evaluation,
}

/// mAP50-95 of one cell minus that of another on the same images, with an interval from the same draws for both.
pub fn compare(cell: Side<'_>, against: Side<'_>, seed: u64) -> AccuracyComparison {
    let told = |delta, ci95, difference, reason| AccuracyComparison {
        cell: cell.cell.to_owned(),
        against: against.cell.to_owned(),
        delta,
        ci95,
        difference,
        reason,
    };
    let names = format!("{} - {}", cell.label, against.label);
    let unlike = AccuracyDifference::NotComparable;
    let Some(paired) = cell.evaluation.paired(against.evaluation, seed) else {
        return told(None, None, unlike, format!("{names}: scored on other images, or without an object on them"));
    };
    let points = paired.delta * 100.0;
    let Some([lo, hi]) = paired.ci95 else {
        let reason = format!(
            "{names}: {points:+.1} points of mAP50-95 on {} images; an interval needs {INTERVAL_NEEDS}",
            cell.evaluation.images()
        );
        return told(Some(paired.delta), None, unlike, reason);
    };
    let difference = match () {
        () if lo > 0.0 => AccuracyDifference::Better,
        () if hi < 0.0 => AccuracyDifference::Worse,
        () => AccuracyDifference::Same,
    };
    let reason = format!("{names}: {points:+.1} ± {:.1} points of mAP50-95", (hi - lo) * 50.0);
    told(Some(paired.delta), Some([lo, hi]), difference, reason)
}

#[cfg(test)]
#[path = "accuracy_tests.rs"]
mod tests;
