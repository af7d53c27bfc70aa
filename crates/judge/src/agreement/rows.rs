//! Final boxes against those of a reference, row by row although their order says nothing.
//!
//! A head that gives each object once hands out its rows in the order of their scores: two that nearly tie trade places, and
//! the last may be another one. Sorted scores move by no more than the scores themselves do, so they are compared as they are.
//! Boxes are compared with the box of the same class that overlaps them most.

use prony_types::{Detection, TensorAgreement};

use super::boxes::{Near, pairs};
use super::{WORST, tensors};

/// Rows of one class that overlap this much show the same thing, however sure they are.
const SAME_THING: Near = Near { iou: 0.5, score: f32::INFINITY };
/// Of the rows that cannot have been cut off at least so many must find one that shows the same thing.
const LEAST_PAIRED: f64 = 0.5;

/// Final boxes of one frame against a reference's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rows {
    /// Places of the boxes that show the same thing; absent where rounding may have left none of them.
    pub boxes: Option<TensorAgreement>,
    /// Scores, sorted.
    pub scores: TensorAgreement,
}

/// All rows of both sides. Where fewer than half of the reference's rows show anything that the other side shows, the boxes
/// are as far apart as can be; rows so near the other side's last that they may have been cut off there do not count.
/// `None` where the reference has no rows and the other side neither.
pub fn rows(reference: &[Detection], got: &[Detection]) -> Option<Rows> {
    if reference.is_empty() && got.is_empty() {
        return None;
    }
    let (mut wanted, mut found) = (Vec::new(), Vec::new());
    let last = got.iter().map(|row| row.score).fold(f32::INFINITY, f32::min);
    let (mut paired, mut sure) = (0u32, 0u32);
    for (row, partner) in reference.iter().zip(pairs(reference, got, SAME_THING)) {
        // Without any row nothing was cut off.
        let is_sure = got.is_empty() || row.score > last + Near::SAME.score;
        sure += u32::from(is_sure);
        if let Some(like) = partner.map(|j| &got[j]) {
            paired += u32::from(is_sure);
            wanted.extend([row.x1, row.y1, row.x2, row.y2]);
            found.extend([like.x1, like.y1, like.x2, like.y2]);
        }
    }
    let boxes = if f64::from(paired) < LEAST_PAIRED * f64::from(sure) {
        Some(TensorAgreement { cosine: 0.0, max_abs: WORST, sqnr_db: Some(-WORST) })
    } else {
        (!wanted.is_empty()).then(|| tensors(&wanted, &found))
    };
    // A count that differs by a box at a threshold shows in the boxes.
    let shorter = reference.len().min(got.len());
    let scores = tensors(&sorted(reference)[..shorter], &sorted(got)[..shorter]);
    Some(Rows { boxes, scores })
}

/// Scores, the surest first.
fn sorted(rows: &[Detection]) -> Vec<f32> {
    let mut scores: Vec<f32> = rows.iter().map(|row| row.score).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(x1: f32, score: f32, class: u32) -> Detection {
        Detection { x1, y1: 0.0, x2: x1 + 10.0, y2: 10.0, score, class }
    }

    #[test]
    fn rows_that_trade_places_are_no_noise() {
        let one = [row(0.0, 0.5, 1), row(100.0, 0.4, 1), row(200.0, 0.3, 2)];
        let two = [one[2], one[0], one[1]];
        let same = rows(&one, &two).unwrap();
        assert_eq!((same.boxes.unwrap().sqnr_db, same.scores.sqnr_db), (None, None));
    }

    #[test]
    fn another_last_row_is_as_little_noise_as_its_score() {
        let many: Vec<Detection> = (0..100u8).map(|i| row(f32::from(i) * 20.0, 0.01, 0)).collect();
        let mut other = many.clone();
        other[99] = row(9000.0, 0.010_000_1, 0);
        let near = rows(&many, &other).unwrap();
        assert!(near.scores.sqnr_db.unwrap() > 90.0 && near.boxes.unwrap().sqnr_db.is_none(), "{near:?}");
    }

    #[test]
    fn of_rows_that_nearly_tie_another_choice_is_no_mistake() {
        // The model has more than a hundred such boxes, and each side took others.
        let of = |from: u8| (from..from + 100).map(|i| row(f32::from(i) * 20.0, 0.8, 0)).collect::<Vec<_>>();
        assert_eq!(rows(&of(0), &of(100)).unwrap().boxes, None);
        assert!(rows(&of(0), &of(60)).unwrap().boxes.unwrap().sqnr_db.is_none());
    }

    #[test]
    fn boxes_in_other_places_are_the_worst_and_scores_of_nothing_too() {
        let one = [row(0.0, 0.5, 1), row(100.0, 0.4, 1), row(0.0, 0.0, 0)];
        let moved = [row(50.0, 0.5, 1), row(150.0, 0.4, 1), row(0.0, 0.0, 0)];
        assert_eq!(rows(&one, &moved).unwrap().boxes.unwrap().cosine, 0.0);
        let zeroed = one.map(|row| Detection { score: 0.0, ..row });
        assert_eq!(rows(&one, &zeroed).unwrap().scores.cosine, 0.0);
        let other_class = one.map(|row| Detection { class: 2, ..row });
        assert_eq!(rows(&one, &other_class).unwrap().boxes.unwrap().max_abs, WORST);
        assert_eq!(rows(&[], &[]), None);
        assert_eq!(rows(&one, &[]).unwrap().boxes.unwrap().cosine, 0.0, "nothing is left");
    }
}
