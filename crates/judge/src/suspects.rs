//! Why a detector that finds boxes may find none that is right.
//!
//! A mean average precision of zero on data of the model's own classes is a mistake in how images go in or boxes come out,
//! hardly ever a bad model. Some of these mistakes can be seen in the boxes themselves.

use prony_types::{AccuracyRecord, CocoFigures};

use crate::coco::{Evaluation, Scored, Truths};

/// mAP, both as a mean over overlaps and at 0.50, that prints as zero.
const ZERO: f64 = 0.0005;
/// With fewer objects a weak model may miss every one.
pub(crate) const OBJECTS: u64 = 10;
/// mAP50 with which a repaired set of boxes proves what was wrong.
const PROOF: f64 = 0.1;
/// A box smaller than this, in pixels, holds no object.
const TINY_PX: f64 = 2.0;
/// Share of the boxes that must be so.
const MOST: f64 = 0.9;

/// What it may be where the boxes do not tell.
pub(crate) const USUAL: &str = "box format (corners for centres, normalised coordinates), normalisation or range of the \
    input, colour order (BGR for RGB), a sigmoid applied twice or not at all";

/// Whether a score is nothing at all, although boxes and objects are there.
pub fn is_zero(figures: &CocoFigures) -> bool {
    let zero = |map: Option<f64>| map.is_some_and(|map| map < ZERO);
    zero(figures.map_50_95) && zero(figures.map_50)
}

/// What the boxes themselves show to be wrong with them, likeliest first. Scores them again, so only for a score of zero.
pub fn likely_causes(truths: &Truths, boxes: &[Scored]) -> Vec<String> {
    let mut causes = Vec::new();
    if boxes.is_empty() {
        return causes;
    }
    let share = |is: &dyn Fn(&Scored) -> bool| boxes.iter().filter(|b| is(b)).count() as f64 / boxes.len() as f64;
    let tiny = share(&|b| b.bbox[2] < TINY_PX && b.bbox[3] < TINY_PX);
    if tiny > MOST {
        let percent = tiny * 100.0;
        causes.push(format!(
            "normalised coordinates: {percent:.0} % of the boxes are smaller than {TINY_PX} pixels, as coordinates from 0 to 1 \
             are where pixels are expected"
        ));
    }
    let moved = |by: f64| {
        let shift = |b: &Scored| {
            let [x, y, w, h] = b.bbox;
            Scored { bbox: [x + by * w, y + by * h, w, h], ..*b }
        };
        boxes.iter().map(shift).collect::<Vec<_>>()
    };
    let one_class = |boxes: &[Scored]| boxes.iter().map(|b| Scored { class: 0, ..*b }).collect::<Vec<_>>();
    let any_object = Truths {
        classes: vec![(0, "object".to_owned())],
        objects: truths.objects.iter().map(|truth| crate::coco::Truth { class: 0, ..*truth }).collect(),
        ..truths.clone()
    };
    let proves =
        |truths: &Truths, boxes: &[Scored]| Evaluation::new(truths, boxes).figures().map_50.filter(|map| *map > PROOF);
    if let Some(map) = proves(&any_object, &one_class(boxes)) {
        causes.push(format!("order of the classes: the boxes alone, whatever their class, have mAP50 {map:.3}"));
    }
    for (by, what) in [(0.5, "the top left corner"), (-0.5, "the bottom right corner")] {
        if let Some(map) = proves(truths, &moved(by)) {
            causes.push(format!("box format: with x and y taken for {what} instead of the centre, mAP50 is {map:.3}"));
        }
    }
    let (lo, hi) = boxes.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), b| (lo.min(b.score), hi.max(b.score)));
    if lo >= 0.5 && hi <= 0.7311 {
        causes.push(format!(
            "a sigmoid applied twice: every score lies between {lo:.2} and {hi:.2}, and a sigmoid of a probability between \
             0.50 and 0.73"
        ));
    }
    causes
}

/// What is to be said of a score of zero.
pub(crate) fn reason(accuracy: &AccuracyRecord) -> String {
    let causes = &accuracy.likely_causes;
    let causes = if causes.is_empty() { USUAL.to_owned() } else { causes.join("; ") };
    let objects = accuracy.data.class_match.as_ref().map_or(accuracy.data.objects, |classes| classes.objects);
    let (although, first) = match &accuracy.data.class_match {
        Some(classes) if !classes.by_name => (", with classes matched by position", "another order of the classes; "),
        Some(classes) if classes.matched < classes.categories => {
            (", although they have classes that the model knows", "")
        }
        _ => (", although all class names match", ""),
    };
    format!(
        "mAP50-95 is 0.000 on {} images with {objects} objects{although}; likely cause: {first}{causes}",
        accuracy.images
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coco::Truth;

    /// Twenty images with an object each, of two classes in turn.
    fn scene() -> (Truths, Vec<Scored>) {
        let bbox = |image: i64| [40.0 + image as f64, 60.0, 50.0, 40.0];
        let object = |image: i64| Truth {
            id: image,
            image,
            class: 1 + image % 2,
            bbox: bbox(image),
            area: 2_000.0,
            crowd: false,
        };
        let truths = Truths {
            images: (1..=20).collect(),
            classes: vec![(1, "a".into()), (2, "b".into())],
            objects: (1..=20).map(object).collect(),
        };
        let boxes = (1..=20).map(|image| Scored { image, class: 1 + image % 2, bbox: bbox(image), score: 0.9 });
        (truths, boxes.collect())
    }

    #[track_caller]
    fn causes(change: impl Fn(&mut Scored)) -> Vec<String> {
        let (truths, mut boxes) = scene();
        boxes.iter_mut().for_each(change);
        assert!(is_zero(&Evaluation::new(&truths, &boxes).figures()), "it must be as broken as it is said to be");
        likely_causes(&truths, &boxes)
    }

    #[test]
    fn each_mistake_is_told_from_the_others() {
        let normalized = causes(|b| b.bbox = b.bbox.map(|x| x / 320.0));
        assert!(normalized.len() == 1 && normalized[0].starts_with("normalised coordinates: 100 %"), "{normalized:?}");
        let corner = causes(|b| (b.bbox[0], b.bbox[1]) = (b.bbox[0] - 25.0, b.bbox[1] - 20.0));
        assert_eq!(
            corner,
            ["box format: with x and y taken for the top left corner instead of the centre, mAP50 is 1.000"]
        );
        let order = causes(|b| b.class = 3 - b.class);
        assert!(order.len() == 1 && order[0].starts_with("order of the classes: the boxes alone"), "{order:?}");
        let twice = causes(|b| (b.bbox[0], b.score) = (900.0, 0.6));
        assert!(twice.len() == 1 && twice[0].starts_with("a sigmoid applied twice"), "{twice:?}");
        assert_eq!(causes(|b| b.bbox[0] = 900.0), [""; 0]);
    }

    #[test]
    fn a_good_score_or_none_is_not_zero() {
        let (truths, boxes) = scene();
        assert!(!is_zero(&Evaluation::new(&truths, &boxes).figures()));
        assert!(!is_zero(&CocoFigures::default()), "what was not measured is not 0");
    }
}
