//! What to ship: one entry per model, and the Pareto front where several models were scored on the same images.
//!
//! Order and absolute figure are two statements. Cells are timed in interleaved rounds, so which of two is faster can be
//! known although neither latency is firm: the order comes from the paired comparisons, and whether the figure can be
//! trusted is said beside it. Only cells that pass every gate, whose outputs are right and that lose no more accuracy
//! than allowed can be recommended, and never the slower one of a pair that the rounds can tell apart.

mod eligible;
mod pareto;
mod words;

use prony_types::{CellRecord, Comparison, Difference, Recommendation, RunRecord, Verdict};

use self::eligible::{Objection, objection};
use crate::difference::{frame_ms, is_another_tools, models, pair, same_model};

/// Steady samples of `total` of a cell by round, see [`crate::by_round`].
pub type Rounds<'a> = &'a dyn Fn(&str) -> Vec<Vec<u64>>;

/// What a run says about its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Every measured cell of a model against the recommended one, or the fastest where none is.
    pub comparisons: Vec<Comparison>,
    /// What to ship.
    pub recommendation: Vec<Recommendation>,
}

/// Compares the cells of each model and chooses among them. Gates and accuracy comparisons must be in the record.
pub fn advise(record: &RunRecord, rounds: Rounds<'_>) -> Advice {
    let measured = models(&record.cells);
    let mut advice = Advice { comparisons: Vec::new(), recommendation: Vec::new() };
    for first in first_cells(&record.cells) {
        let ranked: Vec<&CellRecord> = measured.iter().flatten().copied().filter(|c| same_model(c, first)).collect();
        let Some(&fastest) = ranked.first() else {
            advice.recommendation.push(words::nothing(first, &record.cells));
            continue;
        };
        let choice = Choice::of(record, ranked, rounds);
        let anchor = choice.best.unwrap_or(fastest);
        let comparisons = against(record, &choice.ranked, anchor, rounds);
        advice.recommendation.push(words::recommendation(record, &choice, &comparisons));
        advice.comparisons.extend(comparisons);
    }
    advice.recommendation.extend(pareto::fronts(record));
    advice
}

/// One model's cells with figures, fastest first, and the one to ship.
struct Choice<'a> {
    ranked: Vec<&'a CellRecord>,
    /// Cells that must not be shipped, and why.
    rejected: Vec<(&'a CellRecord, Objection)>,
    best: Option<&'a CellRecord>,
}

impl<'a> Choice<'a> {
    fn of(record: &RunRecord, ranked: Vec<&'a CellRecord>, rounds: Rounds<'_>) -> Choice<'a> {
        let (mut candidates, mut rejected) = (Vec::new(), Vec::new());
        for &cell in &ranked {
            match objection(record, cell) {
                Some(objection) => rejected.push((cell, objection)),
                None => candidates.push(cell),
            }
        }
        // A cell whose outputs nobody checked is no alternative to one that was checked.
        if candidates.iter().any(|cell| cell.agreement.is_some()) {
            let unchecked = candidates.extract_if(.., |cell| cell.agreement.is_none());
            rejected.extend(unchecked.map(|cell| (cell, Objection::Unchecked)));
        }
        // A larger batch trades latency for throughput, which no ratio of times can weigh.
        let smallest = candidates.iter().map(|cell| cell.batch).min();
        let own: Vec<&CellRecord> = candidates.into_iter().filter(|cell| Some(cell.batch) == smallest).collect();
        Choice { best: fastest(&own, rounds), ranked, rejected }
    }

    fn is_rejected(&self, cell: &CellRecord) -> bool {
        self.rejected.iter().any(|(other, _)| other.id == cell.id)
    }
}

/// The fastest of some cells, which come by their medians: one that no other is conclusively faster than. Among those
/// that the rounds cannot tell from it, one whose latency is firm comes first.
fn fastest<'a>(cells: &[&'a CellRecord], rounds: Rounds<'_>) -> Option<&'a CellRecord> {
    let faster = |a: &CellRecord, b: &CellRecord| pair(a, b, rounds).difference == Difference::Faster;
    let mut best = *cells.first()?;
    // Every pass replaces the best by a cell that beats it. Intervals need not be transitive, so the passes are bounded.
    for _ in 0..cells.len() {
        match cells.iter().find(|cell| cell.id != best.id && faster(cell, best)) {
            Some(better) => best = better,
            None => break,
        }
    }
    if best.verdict == Some(Verdict::Valid) {
        return Some(best);
    }
    let unbeaten = |cell: &CellRecord| !cells.iter().any(|other| other.id != cell.id && faster(other, cell));
    let firm = cells.iter().filter(|cell| cell.verdict == Some(Verdict::Valid));
    firm.copied().find(|cell| unbeaten(cell)).or(Some(best))
}

/// The other cells of a model against one of them, in the order of the record.
fn against(record: &RunRecord, ranked: &[&CellRecord], anchor: &CellRecord, rounds: Rounds<'_>) -> Vec<Comparison> {
    let of_model = |cell: &&CellRecord| cell.id != anchor.id && ranked.iter().any(|other| other.id == cell.id);
    record.cells.iter().filter(of_model).map(|cell| pair(cell, anchor, rounds)).collect()
}

/// The first cell of each model, in the order of the plan.
fn first_cells(cells: &[CellRecord]) -> Vec<&CellRecord> {
    let mut first: Vec<&CellRecord> = Vec::new();
    for cell in cells {
        if !first.iter().any(|other| same_model(other, cell)) {
            first.push(cell);
        }
    }
    first
}

#[cfg(test)]
#[path = "recommendation_tests.rs"]
mod tests;
