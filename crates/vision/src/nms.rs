//! Non-maximum suppression: of boxes of one class that show the same thing, the surest stays.

use prony_types::Detection;

/// The surest this many boxes take part; the rest is dropped.
pub const MAX_CANDIDATES: usize = 30_000;

/// Classes are kept apart by moving each this far from the last, as Ultralytics does. That costs the overlap a few bits
/// at high class numbers, and taking part in that rounding is what makes the same boxes come out on both sides.
const CLASS_OFFSET: f32 = 7680.0;

/// Chains of kept boxes, by class modulo this.
const BUCKETS: usize = 256;
const END: u32 = u32::MAX;

/// Suppresses boxes and keeps its scratch from frame to frame.
#[derive(Default)]
pub struct Suppressor {
    /// Score and index of a candidate in one number, so that ascending order is the order of suppression.
    order: Vec<u64>,
    chains: Vec<u32>,
    kept: Vec<Kept>,
    indices: Vec<u32>,
}

/// A box that stays, moved by its class.
struct Kept {
    corners: [f32; 4],
    area: f32,
    class: u32,
    /// The one kept before it in the same bucket.
    next: u32,
}

impl Suppressor {
    /// The indices of the boxes that stay, surest first, at most `max_det`.
    ///
    /// Boxes are taken by score, descending; of equal scores the one with the lower index comes first. A box goes when its
    /// overlap (intersection over union) with a box of its class that stays is greater than `iou`. A box with a
    /// coordinate or score that is not finite goes at once. That is the order of torchvision's `nms`.
    pub fn run(&mut self, boxes: &[Detection], iou: f32, max_det: usize) -> &[u32] {
        self.sort(boxes);
        self.chains.clear();
        self.chains.resize(BUCKETS, END);
        self.kept.clear();
        self.indices.clear();
        for &key in &self.order {
            if self.indices.len() >= max_det {
                break;
            }
            let index = key as u32;
            let candidate = &boxes[index as usize];
            let offset = candidate.class as f32 * CLASS_OFFSET;
            let corners = [candidate.x1, candidate.y1, candidate.x2, candidate.y2].map(|v| v + offset);
            let area = (corners[2] - corners[0]) * (corners[3] - corners[1]);
            let bucket = &mut self.chains[candidate.class as usize % BUCKETS];
            let mut at = *bucket;
            while let Some(kept) = self.kept.get(at as usize) {
                if kept.class == candidate.class && overlaps(kept, corners, area, iou) {
                    break;
                }
                at = kept.next;
            }
            if at == END {
                self.kept.push(Kept { corners, area, class: candidate.class, next: *bucket });
                *bucket = (self.kept.len() - 1) as u32;
                self.indices.push(index);
            }
        }
        &self.indices
    }

    /// The same order without suppression, for heads that leave nothing to suppress.
    pub(crate) fn rank(&mut self, boxes: &[Detection], max_det: usize) -> &[u32] {
        self.sort(boxes);
        self.indices.clear();
        self.indices.extend(self.order.iter().take(max_det).map(|&key| key as u32));
        &self.indices
    }

    /// Makes room for this many boxes, so that no frame has to.
    pub(crate) fn reserve(&mut self, boxes: usize, max_det: usize) {
        self.order.reserve(boxes);
        self.kept.reserve(boxes.min(max_det));
        self.indices.reserve(boxes.min(max_det));
    }

    /// What there is room for, for a test that no frame makes it grow.
    #[cfg(test)]
    pub(crate) fn room(&self) -> [usize; 4] {
        [self.order.capacity(), self.chains.capacity(), self.kept.capacity(), self.indices.capacity()]
    }

    fn sort(&mut self, boxes: &[Detection]) {
        self.order.clear();
        self.order.extend((0u32..).zip(boxes).filter(|(_, b)| finite(b)).map(|(i, b)| key(b.score, i)));
        if self.order.len() > MAX_CANDIDATES {
            self.order.select_nth_unstable(MAX_CANDIDATES);
            self.order.truncate(MAX_CANDIDATES);
        }
        self.order.sort_unstable();
    }
}

/// The boxes that stay, surest first: [`Suppressor::run`] for a caller who has no frames to come.
pub fn nms(boxes: &[Detection], iou: f32, max_det: usize) -> Vec<Detection> {
    Suppressor::default().run(boxes, iou, max_det).iter().map(|&i| boxes[i as usize]).collect()
}

pub(crate) fn finite(b: &Detection) -> bool {
    [b.x1, b.y1, b.x2, b.y2, b.score].iter().all(|v| v.is_finite())
}

/// Ascending in this number is descending in score, then ascending in index.
fn key(score: f32, index: u32) -> u64 {
    // -0.0 and 0.0 are equal scores and must not be told apart.
    let bits = (score + 0.0).to_bits();
    let ascending = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    u64::from(!ascending) << 32 | u64::from(index)
}

#[inline]
fn overlaps(kept: &Kept, [x1, y1, x2, y2]: [f32; 4], area: f32, iou: f32) -> bool {
    let w = kept.corners[2].min(x2) - kept.corners[0].max(x1);
    let h = kept.corners[3].min(y2) - kept.corners[1].max(y1);
    // The division is slow and most pairs do not touch; those have an overlap of 0, or none at all.
    if w <= 0.0 || h <= 0.0 {
        return 0.0 > iou;
    }
    let shared = w * h;
    shared / (kept.area + area - shared) > iou
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(x: f32, score: f32, class: u32) -> Detection {
        Detection { x1: x, y1: 0.0, x2: x + 10.0, y2: 10.0, score, class }
    }

    #[test]
    fn the_weaker_of_two_goes_and_the_other_class_stays() {
        let boxes = [at(0.0, 0.5, 1), at(1.0, 0.9, 1), at(0.0, 0.4, 2), at(50.0, 0.3, 1)];
        assert_eq!(nms(&boxes, 0.45, 300), [boxes[1], boxes[2], boxes[3]]);
    }

    #[test]
    fn classes_stay_apart_however_far_a_box_lies() {
        // Moved by its class, the first one lies where the second one is.
        let far = 256.0 * CLASS_OFFSET;
        let near = at(0.0, 0.9, 256);
        let boxes = [near, Detection { x1: far, y1: far, x2: far + 10.0, y2: far + 10.0, score: 0.8, class: 0 }];
        assert_eq!(nms(&boxes, 0.45, 300), boxes);
    }

    #[test]
    fn a_box_that_went_takes_nobody_with_it() {
        // b overlaps a and c, a and c do not overlap enough: b goes, c stays.
        let boxes = [at(0.0, 0.9, 0), at(3.0, 0.8, 0), at(6.0, 0.7, 0)];
        assert_eq!(nms(&boxes, 0.45, 300), [boxes[0], boxes[2]]);
    }

    #[test]
    fn an_overlap_equal_to_the_limit_stays() {
        // Boxes of 10x10 that share 5x10: 50 / 150.
        let boxes = [at(0.0, 0.9, 0), at(5.0, 0.8, 0)];
        let third = 50.0f32 / 150.0;
        assert_eq!(nms(&boxes, third, 300).len(), 2);
        assert_eq!(nms(&boxes, third - 1e-6, 300).len(), 1);
    }

    #[test]
    fn equal_scores_keep_their_order() {
        let boxes = [at(0.0, 0.5, 3), at(40.0, 0.5, 0), at(80.0, 0.7, 2), at(41.0, 0.5, 0)];
        assert_eq!(Suppressor::default().run(&boxes, 0.45, 300), [2, 0, 1]);
    }

    #[test]
    fn max_det_keeps_the_surest_and_none_is_none() {
        let boxes = [at(0.0, 0.5, 0), at(40.0, 0.6, 0), at(80.0, 0.7, 0)];
        assert_eq!(Suppressor::default().run(&boxes, 0.45, 2), [2, 1]);
        assert_eq!(nms(&boxes, 0.45, 0), []);
        assert_eq!(nms(&[], 0.45, 300), []);
    }

    #[test]
    fn nothing_that_is_not_finite_comes_out() {
        let mut bad = at(0.0, f32::NAN, 0);
        let good = at(0.0, 0.1, u32::MAX);
        assert_eq!(nms(&[bad, good], 0.45, 300), [good]);
        bad.score = 0.9;
        bad.y2 = f32::INFINITY;
        assert_eq!(nms(&[bad, good], f32::NAN, 300), [good]);
    }

    #[test]
    fn too_many_candidates_leave_the_surest() {
        let boxes: Vec<Detection> = (0..MAX_CANDIDATES + 100).map(|i| at(20.0 * i as f32, i as f32, 0)).collect();
        let mut suppressor = Suppressor::default();
        let kept = suppressor.run(&boxes, 0.45, usize::MAX);
        assert_eq!(kept.len(), MAX_CANDIDATES);
        assert_eq!((kept[0], kept[MAX_CANDIDATES - 1]), (MAX_CANDIDATES as u32 + 99, 100));
    }

    prop_compose! {
        fn any_box()(x in 0.0f32..60.0, y in 0.0f32..60.0, w in 0.0f32..40.0, h in 0.0f32..40.0,
                     level in 0u8..20, class in 0u32..3) -> Detection {
            Detection { x1: x, y1: y, x2: x + w, y2: y + h, score: f32::from(level) / 20.0, class }
        }
    }

    proptest! {
        #[test]
        fn a_second_time_changes_nothing(
            boxes in prop::collection::vec(any_box(), 0..60), iou in 0.0f32..1.0, max_det in 0usize..40,
        ) {
            let once = nms(&boxes, iou, max_det);
            prop_assert_eq!(nms(&once, iou, max_det), once);
        }

        #[test]
        fn what_stays_is_sorted_and_what_went_was_covered(
            boxes in prop::collection::vec(any_box(), 0..60), iou in 0.0f32..1.0,
        ) {
            let mut suppressor = Suppressor::default();
            let kept: Vec<usize> = suppressor.run(&boxes, iou, usize::MAX).iter().map(|&i| i as usize).collect();
            let rank = |i: usize| (-boxes[i].score, i);
            prop_assert!(kept.windows(2).all(|w| rank(w[0]) < rank(w[1])));
            for i in (0..boxes.len()).filter(|i| !kept.contains(i)) {
                let pair = |k: usize| nms(&[boxes[k], boxes[i]], iou, 2).len() == 1;
                prop_assert!(kept.iter().any(|&k| rank(k) < rank(i) && pair(k)), "box {} went for nothing", i);
            }
        }
    }
}
