use super::*;
use crate::coco::Scored;
use crate::coco::golden::{Parameters, made};

fn evaluation(images: i64, shift: f64) -> Evaluation {
    let (truths, mut boxes) = made(&Parameters(31, images, vec![1, 2, 3], 6, 3, 4, 700, 5, 500, 1, 2000, 1));
    boxes.iter_mut().for_each(|b: &mut Scored| b.bbox[0] += shift * b.bbox[2]);
    Evaluation::new(&truths, &boxes)
}

fn told(a: &Evaluation, b: &Evaluation) -> AccuracyComparison {
    let cell = Side { cell: "m:rten:int8", label: "int8", evaluation: a };
    compare(cell, Side { cell: "m:rten:fp32", label: "fp32", evaluation: b }, 7)
}

#[test]
fn the_word_follows_the_interval() {
    let (good, bad) = (evaluation(80, 0.0), evaluation(80, 0.05));
    let same = told(&good, &good);
    assert_eq!((same.difference, same.delta), (AccuracyDifference::Same, Some(0.0)));
    assert_eq!(same.reason, "int8 - fp32: +0.0 ± 0.0 points of mAP50-95");

    let worse = told(&bad, &good);
    assert_eq!(worse.difference, AccuracyDifference::Worse);
    let (delta, [lo, hi]) = (worse.delta.unwrap(), worse.ci95.unwrap());
    let want = format!("int8 - fp32: {:.1} ± {:.1} points of mAP50-95", delta * 100.0, (hi - lo) * 50.0);
    assert!(want.starts_with("int8 - fp32: -"), "{want}");
    assert_eq!(worse.reason, want);
    assert_eq!((worse.cell.as_str(), worse.against.as_str()), ("m:rten:int8", "m:rten:fp32"));

    let better = told(&good, &bad);
    assert_eq!(better.difference, AccuracyDifference::Better);
    assert_eq!(better.delta, Some(-delta));
}

#[test]
fn without_an_interval_or_on_other_images_nothing_is_claimed() {
    let few = told(&evaluation(5, 0.05), &evaluation(5, 0.0));
    assert_eq!((few.difference, few.ci95), (AccuracyDifference::NotComparable, None));
    assert!(few.reason.contains("on 5 images; an interval needs 10"), "{}", few.reason);
    let other = told(&evaluation(20, 0.0), &evaluation(21, 0.0));
    assert_eq!((other.difference, other.delta), (AccuracyDifference::NotComparable, None));
    assert!(other.reason.contains("other images"), "{}", other.reason);
}
