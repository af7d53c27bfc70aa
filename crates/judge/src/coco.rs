//! COCO's scoring of boxes: the twelve figures, each class, curves, and how sure all that is.
//!
//! The rules are those of pycocotools' `COCOeval` for boxes, to the last digit that matters (`tests/golden/coco.json` holds
//! it): ten overlaps, 101 recalls, four sizes, at most 1, 10 or 100 boxes an image and class, crowds that any number of
//! boxes may fall into, stable orders on equal scores. Rules that one might not expect:
//!
//! * The size of an object is its `area`, the outline's, and not that of its box; the size of a box is width x height.
//! * Of several free objects with the same overlap the last one is taken.
//! * A class without objects has no figure; it does not count as 0.
//! * An object whose id is 0 cannot be found: pycocotools takes the 0 for "no match", and so do we, because figures are to
//!   be the same everywhere. The reader of such a file says so.
//!
//! Where pycocotools gives up (a box on an image that the data does not have) or guesses -1, there is [`LeftOut`] and
//! `None` here.
//!
//! Boxes are sorted once a class; what each is worth at the ten overlaps is a bit mask, and a curve is a walk over these.
//! Classes are scored in parallel; the result does not depend on how many threads do it.

mod bootstrap;
mod curve;
mod index;
mod matching;
mod score;

pub use bootstrap::{INTERVAL_NEEDS, Paired, REPLICATES};

use prony_types::{ClassAccuracy, CocoFigures, PrecisionRecall};
use rayon::prelude::*;

use self::bootstrap::Tally;
use self::index::{Index, by_class};
use self::matching::AREAS;
use self::score::{ClassScore, score};

/// Overlaps from which a box counts as found: 0.50, 0.55, … 0.95, to numpy's last bit.
pub const OVERLAPS: usize = 10;

/// Recalls at which precision is read: 0.00, 0.01, … 1.00.
pub const RECALLS: usize = 101;

/// A true object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Its number in the data; see the module on 0.
    pub id: i64,
    /// Number of its image.
    pub image: i64,
    /// Number of its class.
    pub class: i64,
    /// Left, top, width, height.
    pub bbox: [f64; 4],
    /// Decides whether it is small, medium or large.
    pub area: f64,
    /// A crowd: boxes on it are neither right nor wrong.
    pub crowd: bool,
}

/// What there is to be found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truths {
    /// Numbers of all images that are scored, also of those without an object.
    pub images: Vec<i64>,
    /// Number and name of each class.
    pub classes: Vec<(i64, String)>,
    /// Objects, in the order of the data.
    pub objects: Vec<Truth>,
}

/// A box that a detector gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Number of its image.
    pub image: i64,
    /// Number of its class.
    pub class: i64,
    /// Left, top, width, height.
    pub bbox: [f64; 4],
    /// How sure the detector is; finite, as the readers see to.
    pub score: f64,
}

/// Boxes that belong to nothing in the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Boxes on images that the data does not have.
    pub images: u64,
    /// Number of the first such image.
    pub first_image: Option<i64>,
    /// Boxes of classes that the data does not have, on images that it has.
    pub classes: u64,
    /// Number of the first such class.
    pub first_class: Option<i64>,
}

/// Boxes held against the truth.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Numbers of the images, ascending.
    images: Vec<i64>,
    names: Vec<String>,
    /// In the order of the classes' numbers.
    classes: Vec<ClassScore>,
    tallies: Vec<Tally>,
    detections: u64,
    left_out: LeftOut,
}

impl Evaluation {
    /// Matches every box. This is all of the work but for the interval: time grows with the boxes (half a million take 0.1
    /// to 0.2 s on two CPUs). 4 to 12 bytes a box are kept.
    pub fn new(truths: &Truths, boxes: &[Scored]) -> Evaluation {
        let images = Index::new(truths.images.iter().copied());
        let classes = Index::new(truths.classes.iter().map(|class| class.0));
        let objects = by_class(&truths.objects, &images, &classes, |t| (t.image, t.class));
        let found = by_class(boxes, &images, &classes, |b| (b.image, b.class));
        let scored: Vec<(ClassScore, Tally)> = (0..classes.len())
            .into_par_iter()
            .with_max_len(1)
            .map(|class| score(objects.of(class), &truths.objects, found.of(class), boxes))
            .collect();
        let mut names = vec![String::new(); classes.len()];
        for (id, name) in &truths.classes {
            if let Some(class) = classes.get(*id) {
                names[class as usize].clone_from(name);
            }
        }
        let (classes, tallies) = scored.into_iter().unzip();
        let detections = found.len() as u64;
        Evaluation { images: images.into_ids(), names, classes, tallies, detections, left_out: found.left_out }
    }

    /// Images that were scored.
    pub fn images(&self) -> u64 {
        self.images.len() as u64
    }

    /// Boxes on these images, of classes that the data has.
    pub fn detections(&self) -> u64 {
        self.detections
    }

    /// The other boxes.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// The twelve figures.
    pub fn figures(&self) -> CocoFigures {
        let precision = |area: usize, overlap: Option<usize>| {
            self.mean(area, |class| match overlap {
                Some(t) => class.areas[area].precision[t],
                None => class.areas[area].precision.iter().sum::<f64>() / OVERLAPS as f64,
            })
        };
        let recall = |area: usize| self.mean(area, |class| class.areas[area].recall);
        let first = |limit: usize| self.mean(0, |class| class.first_recall[limit]);
        CocoFigures::from_stats([
            precision(0, None),
            precision(0, Some(0)),
            precision(0, Some(5)),
            precision(1, None),
            precision(2, None),
            precision(3, None),
            first(0),
            first(1),
            recall(0),
            recall(1),
            recall(2),
            recall(3),
        ])
    }

    /// Mean over the classes that have objects of this size.
    fn mean(&self, area: usize, figure: impl Fn(&ClassScore) -> f64) -> Option<f64> {
        debug_assert!(area < AREAS.len());
        let there = self.classes.iter().filter(|class| class.areas[area].objects > 0);
        let (sum, count) = there.fold((0.0, 0u32), |(sum, count), class| (sum + figure(class), count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// Each class, in the order of their numbers. Crowds are no objects here.
    pub fn classes(&self) -> Vec<ClassAccuracy> {
        let row = |(class, name): (&ClassScore, &String)| {
            let precision = &class.areas[0].precision;
            let there = class.areas[0].objects > 0;
            ClassAccuracy {
                name: name.clone(),
                objects: u64::from(class.objects),
                detections: u64::from(class.detections),
                map_50_95: there.then(|| precision.iter().sum::<f64>() / OVERLAPS as f64),
                map_50: there.then(|| precision[0]),
            }
        };
        self.classes.iter().zip(&self.names).map(row).collect()
    }

    /// Precision over recall at overlaps of 0.50, 0.75 and 0.90, mean over classes; none where there is no object.
    pub fn curves(&self) -> Vec<PrecisionRecall> {
        let there: Vec<&ClassScore> = self.classes.iter().filter(|class| class.areas[0].objects > 0).collect();
        if there.is_empty() {
            return Vec::new();
        }
        let at = |t: usize, r: usize| there.iter().map(|class| class.curves[t][r]).sum::<f64>() / there.len() as f64;
        [(0, 0.50), (5, 0.75), (8, 0.90)]
            .map(|(t, iou)| PrecisionRecall { iou, precision: (0..RECALLS).map(|r| at(t, r)).collect() })
            .into()
    }
}

#[cfg(test)]
#[path = "coco_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "coco/golden_tests.rs"]
pub(crate) mod golden;
