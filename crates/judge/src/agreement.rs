//! Outputs against a reference: tensors value by value, boxes after NMS.

use prony_types::{Agreement, Detection, TensorAgreement};

/// Stands for infinity, which JSON cannot hold: `max_abs`, and with a minus sign `sqnr_db`, of tensors that
/// cannot be compared.
pub const WORST: f64 = f64::MAX;

/// Two boxes are the same when they overlap this much.
pub const MATCHING_IOU: f32 = 0.9;
/// And when their scores are this near.
pub const MATCHING_SCORE: f32 = 0.02;

/// Cosine, largest difference and signal-to-noise ratio. Where lengths differ or a value is not finite, the result is
/// the worst there is: cosine 0, `max_abs` [`WORST`], `sqnr_db` minus [`WORST`].
pub fn tensors(reference: &[f32], got: &[f32]) -> TensorAgreement {
    let worst = TensorAgreement { cosine: 0.0, max_abs: WORST, sqnr_db: Some(-WORST) };
    if reference.len() != got.len() {
        return worst;
    }
    let (mut dot, mut of_reference, mut of_got, mut noise, mut max_abs) = (0.0, 0.0, 0.0, 0.0, 0.0f64);
    let mut equal = true;
    for (&a, &b) in reference.iter().zip(got) {
        if !(a.is_finite() && b.is_finite()) {
            return worst;
        }
        equal &= a.to_bits() == b.to_bits();
        let (a, b) = (f64::from(a), f64::from(b));
        let gap = a - b;
        dot += a * b;
        of_reference += a * a;
        of_got += b * b;
        noise += gap * gap;
        max_abs = max_abs.max(gap.abs());
    }
    if equal || noise == 0.0 {
        // A zero of the other sign is no noise; its ratio would be infinite too.
        return TensorAgreement { cosine: 1.0, max_abs: 0.0, sqnr_db: None };
    }
    let length = of_reference.sqrt() * of_got.sqrt();
    let cosine = if length > 0.0 { (dot / length).clamp(-1.0, 1.0) } else { 0.0 };
    let sqnr_db = if of_reference > 0.0 { 10.0 * (of_reference / noise).log10() } else { -WORST };
    TensorAgreement { cosine, max_abs, sqnr_db: Some(sqnr_db) }
}

/// Of two tensors' figures the worse ones.
pub fn worse_tensor(a: TensorAgreement, b: TensorAgreement) -> TensorAgreement {
    TensorAgreement {
        cosine: a.cosine.min(b.cosine),
        max_abs: a.max_abs.max(b.max_abs),
        // Absent is without any noise.
        sqnr_db: match (a.sqnr_db, b.sqnr_db) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
    }
}

/// Of each figure the worse one.
pub fn worse(a: Agreement, b: &Agreement) -> Agreement {
    let tensor = |a: Option<TensorAgreement>, b: Option<TensorAgreement>| match (a, b) {
        (Some(a), Some(b)) => Some(worse_tensor(a, b)),
        (a, b) => a.or(b),
    };
    Agreement {
        boxes: tensor(a.boxes, b.boxes),
        scores: tensor(a.scores, b.scores),
        matched_boxes: match (a.matched_boxes, b.matched_boxes) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        reference: a.reference,
    }
}

/// Share of boxes that found their like: same class, overlap at least `min_iou`, scores at most `max_score_gap` apart.
///
/// Greedy: the reference's boxes choose in the order of their scores, each the free box it overlaps most, of equals the one
/// nearest in score: a list is thus always its own like. The share is of the longer list, so boxes that are missing and
/// boxes that are too many both count; 1 when both lists are empty.
pub fn matched_boxes(reference: &[Detection], got: &[Detection], min_iou: f32, max_score_gap: f32) -> f64 {
    let longer = reference.len().max(got.len());
    if longer == 0 {
        return 1.0;
    }
    let mut order: Vec<&Detection> = reference.iter().collect();
    order.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut free = vec![true; got.len()];
    let mut matched = 0;
    for want in order {
        let mut best: Option<(usize, f32, f32)> = None;
        for (i, candidate) in got.iter().enumerate() {
            let gap = (candidate.score - want.score).abs();
            if !(free[i] && candidate.class == want.class && gap <= max_score_gap) {
                continue;
            }
            let overlap = iou(want, candidate);
            let better = |(_, most, least): (usize, f32, f32)| overlap > most || overlap == most && gap < least;
            if overlap >= min_iou && best.is_none_or(better) {
                best = Some((i, overlap, gap));
            }
        }
        if let Some((i, ..)) = best {
            free[i] = false;
            matched += 1;
        }
    }
    f64::from(matched) / longer as f64
}

/// Intersection over union; 1 for equal coordinates, also of a box without an area, and less than 1 for all others.
fn iou(a: &Detection, b: &Detection) -> f32 {
    let place = |d: &Detection| [d.x1, d.y1, d.x2, d.y2];
    if place(a) == place(b) {
        return 1.0;
    }
    let width = (a.x2.min(b.x2) - a.x1.max(b.x1)).max(0.0);
    let height = (a.y2.min(b.y2) - a.y1.max(b.y1)).max(0.0);
    let both = width * height;
    let either = a.area() + b.area() - both;
    // Rounding must not make a neighbour as good as the box itself.
    if either > 0.0 { (both / either).min(1.0 - f32::EPSILON) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn boxed(x1: f32, score: f32, class: u32) -> Detection {
        Detection { x1, y1: 0.0, x2: x1 + 10.0, y2: 10.0, score, class }
    }

    #[test]
    fn equal_tensors_have_no_noise() {
        let all = tensors(&[1.0, -2.0, 0.0], &[1.0, -2.0, -0.0]);
        assert_eq!(all, TensorAgreement { cosine: 1.0, max_abs: 0.0, sqnr_db: None });
        assert_eq!(tensors(&[0.0; 4], &[0.0; 4]).cosine, 1.0);
        assert_eq!(tensors(&[], &[]).cosine, 1.0);
    }

    #[test]
    fn noise_is_told_in_decibels() {
        // Signal 100, noise 1: 20 dB.
        let one_off = tensors(&[10.0, 0.0], &[10.0, 1.0]);
        assert!((one_off.sqnr_db.unwrap() - 20.0).abs() < 1e-12);
        assert_eq!(one_off.max_abs, 1.0);
        assert!((one_off.cosine - 10.0 / 101.0f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_zeroed_tensor_does_not_look_like_its_reference() {
        assert_eq!(tensors(&[0.5, 0.25], &[0.0, 0.0]).cosine, 0.0);
        let from_nothing = tensors(&[0.0, 0.0], &[0.5, 0.0]);
        assert_eq!((from_nothing.cosine, from_nothing.sqnr_db), (0.0, Some(-WORST)));
    }

    #[test]
    fn what_cannot_be_compared_is_the_worst_and_json_can_hold_it() {
        for (a, b) in
            [(vec![1.0, f32::NAN], vec![1.0, f32::NAN]), (vec![f32::INFINITY], vec![1.0]), (vec![1.0], vec![])]
        {
            let worst = tensors(&a, &b);
            assert_eq!((worst.cosine, worst.max_abs, worst.sqnr_db), (0.0, WORST, Some(-WORST)));
            let json = serde_json::to_string(&worst).unwrap();
            assert_eq!(serde_json::from_str::<TensorAgreement>(&json).unwrap(), worst);
        }
    }

    #[test]
    fn boxes_match_within_class_overlap_and_score() {
        let reference = [boxed(0.0, 0.9, 1), boxed(100.0, 0.8, 2)];
        assert_eq!(matched_boxes(&reference, &reference, 0.5, 0.1), 1.0);
        assert_eq!(matched_boxes(&reference, &[boxed(0.5, 0.85, 1)], 0.5, 0.1), 0.5);
        assert_eq!(matched_boxes(&reference, &[boxed(0.0, 0.9, 3), boxed(100.0, 0.6, 2)], 0.5, 0.1), 0.0);
        assert_eq!(matched_boxes(&[], &reference, 0.5, 0.1), 0.0);
        assert_eq!(matched_boxes(&[], &[], 0.5, 0.1), 1.0);
    }

    #[test]
    fn one_box_cannot_be_the_like_of_two() {
        let twins = [boxed(0.0, 0.9, 1), boxed(1.0, 0.8, 1)];
        assert_eq!(matched_boxes(&twins, &twins[..1], 0.5, 0.2), 0.5);
        // The stronger one takes its nearest, which leaves the other for the weaker.
        let swapped = [twins[1], twins[0]];
        assert_eq!(matched_boxes(&twins, &swapped, 0.5, 0.2), 1.0);
    }

    #[test]
    fn a_box_without_an_area_is_its_own_like_and_no_other_s() {
        let flat = Detection { x1: 3.0, y1: 4.0, x2: 3.0, y2: 9.0, score: 0.5, class: 0 };
        assert_eq!(matched_boxes(&[flat], &[flat], 0.5, 0.1), 1.0);
        assert_eq!(matched_boxes(&[flat], &[Detection { y2: 8.0, ..flat }], 0.5, 0.1), 0.0);
    }

    #[test]
    fn boxes_in_one_place_pair_off_by_score() {
        // Taken in the order of the list, the strongest would take the middle one and leave the weakest too far a like.
        let stack = [boxed(0.0, 0.82, 1), boxed(0.0, 0.74, 1), boxed(0.0, 0.9, 1)];
        assert_eq!(matched_boxes(&stack, &stack, 0.5, 0.1), 1.0);
    }

    /// Coordinates that often coincide, so that flat, inverted and equal boxes are common, and any others.
    fn edge() -> impl Strategy<Value = f32> {
        prop_oneof![
            4 => (-2i8..3).prop_map(f32::from),
            1 => prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
        ]
    }

    prop_compose! {
        fn any_box()(x1 in edge(), y1 in edge(), x2 in edge(), y2 in edge(), score in 0.0f32..=1.0, class in 0u32..2)
            -> Detection {
            Detection { x1, y1, x2, y2, score, class }
        }
    }

    proptest! {
        #[test]
        fn any_list_is_its_own_like(
            boxes in prop::collection::vec(any_box(), 0..24), min_iou in 0.0f32..=1.0, gap in 0.0f32..=0.2,
        ) {
            prop_assert_eq!(matched_boxes(&boxes, &boxes, min_iou, gap), 1.0);
        }
    }
}
