//! Small sets whose figures can be worked out on paper, and laws that hold for any set. The figures against pycocotools
//! are in `coco/golden_tests.rs`.

use proptest::prelude::*;

use super::golden::{Parameters, made};
use super::*;

/// An object of class 1 on image 1.
fn truth(id: i64, x: f64) -> Truth {
    Truth { id, image: 1, class: 1, bbox: [x, 0.0, 50.0, 50.0], area: 2500.0, crowd: false }
}

/// A box of class 1 on image 1.
fn scored(x: f64, score: f64) -> Scored {
    Scored { image: 1, class: 1, bbox: [x, 0.0, 50.0, 50.0], score }
}

fn truths(objects: &[Truth]) -> Truths {
    Truths { images: vec![1, 2], classes: vec![(1, "a".into()), (2, "b".into())], objects: objects.to_vec() }
}

fn close(ours: Option<f64>, wanted: f64) {
    let ours = ours.expect("a figure");
    assert!((ours - wanted).abs() < 1e-9, "{ours} instead of {wanted}");
}

#[test]
fn one_object_of_two_is_found_behind_a_false_alarm() {
    let objects = [truth(1, 0.0), truth(2, 200.0)];
    let boxes = [scored(400.0, 0.9), scored(0.0, 0.8)];
    let figures = Evaluation::new(&truths(&objects), &boxes).figures();
    // Precision is 1/2 up to a recall of 0.50: 51 of 101 recalls.
    close(figures.map_50_95, 0.5 * 51.0 / 101.0);
    close(figures.map_medium, 0.5 * 51.0 / 101.0);
    assert_eq!((figures.map_small, figures.map_large, figures.ar_small), (None, None, None));
    close(figures.ar_1, 0.0);
    close(figures.ar_10, 0.5);
    close(figures.ar_100, 0.5);
}

#[test]
fn an_overlap_of_exactly_the_threshold_is_enough() {
    // 50 of 100 is 1/2; 60 of 80 is 3/4.
    for (width, found) in [(25.0, 1), (37.5, 6), (24.999, 0)] {
        let boxes = [Scored { bbox: [0.0, 0.0, width, 50.0], ..scored(0.0, 0.9) }];
        let figures = Evaluation::new(&truths(&[truth(1, 0.0)]), &boxes).figures();
        close(figures.ar_100, f64::from(found) / 10.0);
    }
}

#[test]
fn a_second_box_on_an_object_is_wrong_and_on_a_crowd_is_nothing() {
    let crowd = Truth { crowd: true, ..truth(2, 200.0) };
    let boxes = [scored(0.0, 0.9), scored(0.0, 0.8), scored(200.0, 0.95), scored(200.0, 0.94)];
    let evaluation = Evaluation::new(&truths(&[truth(1, 0.0), crowd]), &boxes);
    close(evaluation.figures().map_50_95, 1.0);
    let classes = evaluation.classes();
    assert_eq!((classes[0].objects, classes[0].detections), (1, 4), "a crowd is no object");

    // With the second one first in line, nothing changes: the other one is then the second.
    let swapped = [scored(0.0, 0.9), scored(0.0, 0.9)];
    close(Evaluation::new(&truths(&[truth(1, 0.0)]), &swapped).figures().map_50_95, 1.0);
    // But a false alarm above both halves it.
    let alarm = [scored(0.0, 0.9), scored(500.0, 0.95)];
    close(Evaluation::new(&truths(&[truth(1, 0.0)]), &alarm).figures().map_50_95, 0.5);
}

#[test]
fn where_all_are_crowds_there_is_no_figure() {
    let crowd = Truth { crowd: true, ..truth(1, 0.0) };
    let evaluation = Evaluation::new(&truths(&[crowd]), &[scored(0.0, 0.9), scored(300.0, 0.9)]);
    assert_eq!(evaluation.figures(), CocoFigures::default());
    assert!(evaluation.curves().is_empty());
    assert_eq!(evaluation.interval(1), None);
    assert_eq!(evaluation.classes()[0].map_50_95, None);
}

#[test]
fn a_class_without_objects_does_not_count_and_one_without_boxes_counts_as_zero() {
    let other = Truth { class: 2, ..truth(2, 0.0) };
    let boxes = [scored(0.0, 0.9), Scored { class: 2, ..scored(300.0, 0.9) }];
    close(Evaluation::new(&truths(&[truth(1, 0.0)]), &boxes).figures().map_50_95, 1.0);
    close(Evaluation::new(&truths(&[truth(1, 0.0), other]), &boxes[..1]).figures().map_50_95, 0.5);
}

#[test]
fn only_a_hundred_boxes_of_an_image_and_class_count() {
    let alarms = (0..100).map(|i| scored(1000.0 + f64::from(i), 0.9));
    let late: Vec<Scored> = alarms.chain([scored(0.0, 0.8)]).collect();
    close(Evaluation::new(&truths(&[truth(1, 0.0)]), &late).figures().ar_100, 0.0);
    close(Evaluation::new(&truths(&[truth(1, 0.0)]), &late[1..]).figures().ar_100, 1.0);
}

#[test]
fn boxes_that_belong_to_nothing_are_told() {
    let boxes = [Scored { image: 9, ..scored(0.0, 0.9) }, Scored { class: 7, ..scored(0.0, 0.9) }, scored(0.0, 0.1)];
    let evaluation = Evaluation::new(&truths(&[truth(1, 0.0)]), &boxes);
    let left_out = LeftOut { images: 1, first_image: Some(9), classes: 1, first_class: Some(7) };
    assert_eq!(evaluation.left_out(), left_out);
    assert_eq!((evaluation.images(), evaluation.detections()), (2, 1));
    close(evaluation.figures().map_50_95, 1.0);
}

#[test]
fn nothing_at_all_is_no_crash() {
    let evaluation = Evaluation::new(&Truths::default(), &[scored(0.0, 0.5)]);
    assert_eq!(evaluation.figures(), CocoFigures::default());
    assert_eq!((evaluation.images(), evaluation.left_out().images), (0, 1));
}

/// A set with scores that are all different.
fn any_set() -> impl Strategy<Value = (Truths, Vec<Scored>)> {
    (any::<u64>(), 1..25i64, 0..8u64, 0..4u64, 0..8u64, 0..30u64).prop_map(
        |(seed, images, objects, copies, strays, crowds)| {
            let parameters =
                Parameters(seed, images, vec![3, 1, 2], objects, copies, strays, 600, crowds, 1000, 1, 2000, 1);
            let (truths, mut boxes) = made(&parameters);
            let count = boxes.len() as f64;
            for (i, b) in boxes.iter_mut().enumerate() {
                // Levels are 1/1000 apart, and this is less: every score is another, and the order of levels stays.
                b.score += i as f64 / count / 1000.0;
            }
            (truths, boxes)
        },
    )
}

proptest! {
    #[test]
    fn the_order_of_boxes_does_not_matter((truths, boxes) in any_set(), turn in 0usize..100) {
        let mut turned = boxes.clone();
        turned.reverse();
        turned.rotate_left(turn % boxes.len().max(1));
        let mut images = truths.clone();
        images.images.reverse();
        images.classes.reverse();
        let (a, b) = (Evaluation::new(&truths, &boxes), Evaluation::new(&images, &turned));
        prop_assert_eq!(a.figures(), b.figures());
        prop_assert_eq!(a.classes(), b.classes());
        prop_assert_eq!(a.interval(3), b.interval(3));
    }

    #[test]
    fn perfect_boxes_score_one((mut truths, _) in any_set()) {
        // A box of no size overlaps nothing, not even itself; two objects in one place need a box each, which they get.
        truths.objects.retain(|t| t.bbox[2] > 0.0 && t.bbox[3] > 0.0);
        let boxes: Vec<Scored> = truths.objects.iter().filter(|t| !t.crowd)
            .map(|t| Scored { image: t.image, class: t.class, bbox: t.bbox, score: 0.5 }).collect();
        for figure in Evaluation::new(&truths, &boxes).figures().stats().into_iter().enumerate()
            .filter(|(i, _)| ![6, 7].contains(i)).filter_map(|(_, figure)| figure) {
            prop_assert!((figure - 1.0).abs() < 1e-9, "{}", figure);
        }
    }

    #[test]
    fn figures_are_shares_and_a_false_alarm_never_helps((truths, mut boxes) in any_set()) {
        let before = Evaluation::new(&truths, &boxes).figures();
        prop_assert!(before.stats().into_iter().flatten().all(|figure| (0.0..=1.0 + 1e-12).contains(&figure)));
        boxes.push(Scored { image: truths.images[0], class: 1, bbox: [9e4, 9e4, 5.0, 5.0], score: 2.0 });
        let after = Evaluation::new(&truths, &boxes).figures();
        prop_assert!(after.map_50_95.unwrap_or(0.0) <= before.map_50_95.unwrap_or(0.0) + 1e-12);
    }
}
