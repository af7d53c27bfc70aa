use proptest::prelude::*;

use super::*;

fn boxed(x1: f32, score: f32, class: u32) -> Detection {
    Detection { x1, y1: 0.0, x2: x1 + 10.0, y2: 10.0, score, class }
}

fn kept(kept: &[Detection]) -> Found<'_> {
    Found { kept, candidates: kept, ranked: false }
}

/// The share with nothing but what was kept.
fn share(reference: &[Detection], got: &[Detection], near: Near) -> Option<f64> {
    matched(kept(reference), kept(got), &[], near).share()
}

const WIDE: Near = Near { iou: 0.5, score: 0.1 };

#[test]
fn boxes_match_within_class_overlap_and_score() {
    let reference = [boxed(0.0, 0.9, 1), boxed(100.0, 0.8, 2)];
    assert_eq!(share(&reference, &reference, WIDE), Some(1.0));
    assert_eq!(share(&reference, &[boxed(0.5, 0.85, 1)], WIDE), Some(0.5));
    assert_eq!(share(&reference, &[boxed(0.0, 0.9, 3), boxed(100.0, 0.6, 2)], WIDE), Some(0.0));
    assert_eq!(share(&[], &reference, WIDE), Some(0.0));
}

#[test]
fn all_of_no_boxes_is_no_agreement() {
    assert_eq!(share(&[], &[], WIDE), None);
}

#[test]
fn a_box_that_lost_a_tie_is_found_among_those_it_was_chosen_from() {
    // Two boxes of one thing: each side keeps the other one.
    let [left, right] = [boxed(0.0, 0.800_000_1, 1), boxed(3.0, 0.8, 1)];
    let candidates = [left, right];
    let of = |kept| Found { kept, candidates: &candidates, ranked: false };
    assert_eq!(share(&[left], &[right], Near::SAME), Some(0.0), "without the candidates");
    assert_eq!(matched(of(&[left]), of(&[right]), &[], Near::SAME).share(), Some(1.0));
}

#[test]
fn a_box_at_the_threshold_may_be_kept_or_dropped() {
    let unsure = boxed(0.0, 0.250_001, 1);
    let dropped = [Detection { score: 0.249_999, ..unsure }];
    let other = Found { kept: &[], candidates: &dropped, ranked: false };
    assert_eq!(matched(kept(&[unsure]), other, &[], Near::SAME).share(), Some(1.0));
    let gone = Found { kept: &[], candidates: &[], ranked: false };
    assert_eq!(matched(kept(&[unsure]), gone, &[], Near::SAME).share(), Some(0.0));
}

#[test]
fn a_box_that_rounding_moves_is_no_evidence() {
    let reference = [boxed(0.0, 0.9, 1), boxed(100.0, 0.8, 1)];
    let perturbed = [boxed(0.0, 0.9001, 1), boxed(103.0, 0.7, 1)];
    let stands = stands(kept(&reference), kept(&perturbed));
    assert_eq!(stands, [true, false]);
    let got = [boxed(0.0, 0.9, 1), boxed(97.0, 0.6, 1)];
    assert_eq!(share(&reference, &got, Near::SAME), Some(0.5));
    let tally = matched(kept(&reference), kept(&got), &stands, Near::SAME);
    assert_eq!((tally.share(), tally.boxes()), (Some(1.0), 1));
    // But one that stands must be there, and one in an empty place must not.
    let stray = [boxed(0.0, 0.9, 1), boxed(500.0, 0.6, 1)];
    assert_eq!(matched(kept(&reference), kept(&stray), &stands, Near::SAME).share(), Some(0.5));
    let missing = [boxed(97.0, 0.6, 1)];
    assert_eq!(matched(kept(&reference), kept(&missing), &stands, Near::SAME).share(), Some(0.0));
}

#[test]
fn a_box_below_the_last_row_may_have_been_cut_off() {
    let rows: Vec<Detection> = (0..10u8).map(|i| boxed(f32::from(i) * 50.0, 0.9, 1)).collect();
    let mut other = rows.clone();
    other[9] = boxed(9000.0, 0.9, 1);
    let of = |rows| Found { kept: rows, candidates: rows, ranked: true };
    assert_eq!(matched(of(&rows), of(&other), &[], Near::SAME).share(), Some(1.0));
    // With rows to spare nothing was cut.
    let spare = |mut rows: Vec<Detection>| {
        rows.push(boxed(0.0, 0.001, 0));
        rows
    };
    let (all, all_other) = (spare(rows.clone()), spare(other.clone()));
    let (one, two) = (
        Found { kept: &rows, candidates: &all, ranked: true },
        Found { kept: &other, candidates: &all_other, ranked: true },
    );
    assert_eq!(matched(one, two, &[], Near::SAME).share(), Some(0.9));
}

#[test]
fn one_box_cannot_be_the_like_of_two() {
    let near = Near { iou: 0.5, score: 0.2 };
    let twins = [boxed(0.0, 0.9, 1), boxed(1.0, 0.8, 1)];
    assert_eq!(pairs(&twins, &twins[..1], near), [Some(0), None]);
    // The stronger one takes its nearest, which leaves the other for the weaker.
    let swapped = [twins[1], twins[0]];
    assert_eq!(pairs(&twins, &swapped, near), [Some(1), Some(0)]);
}

#[test]
fn a_box_without_an_area_is_its_own_like_and_no_other_s() {
    let flat = Detection { x1: 3.0, y1: 4.0, x2: 3.0, y2: 9.0, score: 0.5, class: 0 };
    assert_eq!(share(&[flat], &[flat], WIDE), Some(1.0));
    assert_eq!(share(&[flat], &[Detection { y2: 8.0, ..flat }], WIDE), Some(0.0));
}

#[test]
fn boxes_in_one_place_pair_off_by_score() {
    // Taken in the order of the list, the strongest would take the middle one and leave the weakest too far a like.
    let stack = [boxed(0.0, 0.82, 1), boxed(0.0, 0.74, 1), boxed(0.0, 0.9, 1)];
    assert_eq!(pairs(&stack, &stack, WIDE), [Some(0), Some(1), Some(2)]);
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
        boxes in prop::collection::vec(any_box(), 1..24), iou in 0.0f32..=1.0, score in 0.0f32..=0.2,
    ) {
        prop_assert_eq!(share(&boxes, &boxes, Near { iou, score }), Some(1.0));
    }
}
