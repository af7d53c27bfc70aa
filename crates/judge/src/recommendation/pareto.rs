//! Models against each other: only those that were scored on the same images, and only as a Pareto front, because nobody
//! but the user knows what a millisecond is worth in points of mAP.

use prony_types::{CellRecord, CellStatus, Recommendation, RunRecord, Verdict};

use super::eligible::{Objection, objection};
use super::words::{engine, time};
use super::{frame_ms, same_model};

/// A cell that could be shipped, in the two figures that count.
#[derive(Clone, Copy)]
struct Point<'a> {
    cell: &'a CellRecord,
    ms: f64,
    map: f64,
}

impl Point<'_> {
    /// At least as good in both, and better in one.
    fn dominates(&self, other: &Point<'_>) -> bool {
        self.ms <= other.ms && self.map >= other.map && (self.ms < other.ms || self.map > other.map)
    }
}

/// The front of each set of models that were scored on the same images.
pub(super) fn fronts(record: &RunRecord) -> Vec<Recommendation> {
    let mut left: Vec<Point<'_>> = record.cells.iter().filter_map(|cell| point(record, cell)).collect();
    let mut fronts = Vec::new();
    while let Some(&first) = left.first() {
        let alike: Vec<Point<'_>> = left.extract_if(.., |point| scored_alike(point.cell, first.cell)).collect();
        let mut models: Vec<&CellRecord> = Vec::new();
        for point in &alike {
            if !models.iter().any(|cell| same_model(cell, point.cell)) {
                models.push(point.cell);
            }
        }
        if models.len() > 1 {
            fronts.push(front(&alike, &models));
        }
    }
    fronts
}

fn front(alike: &[Point<'_>], models: &[&CellRecord]) -> Recommendation {
    let on_front = |point: &&Point<'_>| !alike.iter().any(|other| other.dominates(point));
    let mut front: Vec<Point<'_>> = alike.iter().filter(on_front).copied().collect();
    front.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    let (count, images) = (models.len(), alike[0].cell.accuracy.as_ref().map_or(0, |accuracy| accuracy.images));
    let text = match front.as_slice() {
        [one] => format!(
            "Of {count} models scored on the same {images} images, {} is both the fastest and the most accurate.",
            described(one)
        ),
        several => format!(
            "Pareto front of {count} models on the same {images} images, fastest first: {}.",
            several.iter().map(described).collect::<Vec<_>>().join("; ")
        ),
    };
    let names: Vec<&str> = models.iter().map(|cell| cell.model.name.as_str()).collect();
    let cells = front.iter().map(|point| point.cell.id.clone()).collect();
    Recommendation { model: names.join(", "), cell: None, front: cells, text }
}

/// A cell with both figures that could be shipped. What it loses against its own fp32 cell is no objection here: its mAP
/// stands beside those of other models.
fn point<'a>(record: &RunRecord, cell: &'a CellRecord) -> Option<Point<'a>> {
    let completed = cell.status == CellStatus::Completed;
    let fit = matches!(objection(record, cell), None | Some(Objection::LosesAccuracy { .. }));
    let map = cell.accuracy.as_ref()?.figures.map_50_95?;
    let ms = frame_ms(cell)?;
    (completed && fit).then_some(Point { cell, ms, map })
}

fn scored_alike(a: &CellRecord, b: &CellRecord) -> bool {
    let images = |cell: &CellRecord| {
        let accuracy = cell.accuracy.as_ref()?;
        Some((accuracy.data.sha256.clone(), accuracy.data.unread.clone(), accuracy.images))
    };
    let post = |cell: &CellRecord| cell.accuracy.as_ref().map(|accuracy| accuracy.post);
    images(a) == images(b) && post(a) == post(b)
}

fn described(point: &Point<'_>) -> String {
    let firm = if point.cell.verdict == Some(Verdict::Valid) { "" } else { ", latency not firm" };
    let batch = if point.cell.batch > 1 { format!(" in batches of {}", point.cell.batch) } else { String::new() };
    let Point { cell, ms, map } = *point;
    format!("{} on {}{batch} ({} ms, mAP50-95 {map:.3}{firm})", cell.model.name, engine(cell), time(ms))
}
