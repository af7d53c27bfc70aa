//! One class: its boxes sorted, matched and folded into figures.

use super::bootstrap::Tally;
use super::curve::{Needs, Point, walk};
use super::index::Place;
use super::matching::{AREAS, Matcher, Worth};
use super::{OVERLAPS, RECALLS, Scored, Truth};

/// Boxes of an image and class that are looked at.
const MOST: usize = 100;

/// Boxes of an image and class that recall is also told for: the first one, and the first ten.
const FIRST: [usize; 2] = [1, 10];

/// Figures of one size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AreaScore {
    /// Objects that count.
    pub(super) objects: u32,
    /// Mean precision at each overlap.
    pub(super) precision: [f64; OVERLAPS],
    /// Mean over the overlaps.
    pub(super) recall: f64,
}

/// Figures of one class.
#[derive(Clone, Debug)]
pub(super) struct ClassScore {
    /// Objects that are no crowds.
    pub(super) objects: u32,
    /// Boxes.
    pub(super) detections: u32,
    /// By size; see [`AREAS`].
    pub(super) areas: [AreaScore; AREAS.len()],
    /// Recall with fewer boxes; see [`FIRST`].
    pub(super) first_recall: [f64; FIRST.len()],
    /// Precision over recall at each overlap, over all sizes.
    pub(super) curves: Vec<[f64; RECALLS]>,
}

/// A box by image, score and place in the data: the order of a stable sort.
type Ranked = (u32, u64, u32);

/// Figures of a class, and what an interval needs.
pub(super) fn score(objects: &[Place], truths: &[Truth], found: &[Place], boxes: &[Scored]) -> (ClassScore, Tally) {
    let mut objects = objects.to_vec();
    objects.sort_by_key(|place| place.image);
    let mut ranked: Vec<Ranked> =
        found.iter().map(|place| (place.image, descending(boxes[place.row as usize].score), place.row)).collect();
    ranked.sort_unstable();
    let mut matched = match_images(&objects, truths, &ranked, boxes);
    // Equal scores stay in the order of images.
    matched.boxes.sort_unstable_by_key(|found| (found.score, found.rank));

    let mut curves = vec![[0.0; RECALLS]; OVERLAPS];
    let areas = std::array::from_fn(|a| matched.area(a, &mut curves));
    let all: u32 = areas[0].objects;
    let first_recall = matched.first.map(|finds| f64::from(finds) / (OVERLAPS as f64 * f64::from(all.max(1))));
    let class = ClassScore {
        objects: objects.iter().filter(|place| !truths[place.row as usize].crowd).count() as u32,
        detections: found.len() as u32,
        areas,
        first_recall,
        curves,
    };
    let tally = Tally::new(matched.boxes.iter().map(|found| (found.image, found.worth[0])), matched.counted);
    (class, tally)
}

/// A key that sorts scores from high to low; both zeros are one.
fn descending(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { bits } else { !(bits | 1 << 63) }
}

struct Found {
    score: u64,
    /// Place among the boxes of the class by image and score.
    rank: u32,
    image: u32,
    worth: [Worth; AREAS.len()],
}

#[derive(Default)]
struct Matched {
    boxes: Vec<Found>,
    /// Objects that count, by size.
    objects: [u32; AREAS.len()],
    /// Finds over all overlaps among the first boxes of each image; see [`FIRST`].
    first: [u32; FIRST.len()],
    /// Image and objects of any size that count there.
    counted: Vec<(u32, u32)>,
}

/// Matches image by image. Both lists are sorted by image.
fn match_images(mut objects: &[Place], truths: &[Truth], mut ranked: &[Ranked], boxes: &[Scored]) -> Matched {
    let mut matched = Matched { boxes: Vec::with_capacity(ranked.len()), ..Matched::default() };
    let mut matcher = Matcher::default();
    loop {
        let next = [objects.first().map(|place| place.image), ranked.first().map(|r| r.0)];
        let Some(image) = next.into_iter().flatten().min() else { return matched };
        let here;
        (here, objects) = objects.split_at(run(objects, |place| place.image == image));
        let given;
        (given, ranked) = ranked.split_at(run(ranked, |r| r.0 == image));
        matcher.start(here.iter().map(|place| &truths[place.row as usize]));
        let counted = matcher.counted();
        (0..AREAS.len()).for_each(|a| matched.objects[a] += counted[a]);
        if counted[0] > 0 {
            matched.counted.push((image, counted[0]));
        }
        for (nth, &(_, score, row)) in given.iter().take(MOST).enumerate() {
            let worth = matcher.give(boxes[row as usize].bbox);
            for (finds, limit) in matched.first.iter_mut().zip(FIRST) {
                *finds += if nth < limit { worth[0].right.count_ones() } else { 0 };
            }
            matched.boxes.push(Found { score, rank: matched.boxes.len() as u32, image, worth });
        }
    }
}

/// How many at the start are like that.
fn run<T>(rows: &[T], like: impl Fn(&T) -> bool) -> usize {
    rows.iter().position(|row| !like(row)).unwrap_or(rows.len())
}

impl Matched {
    /// Figures of one size; the curves only where it is all sizes.
    fn area(&self, a: usize, curves: &mut [[f64; RECALLS]]) -> AreaScore {
        let objects = self.objects[a];
        let mut score = AreaScore { objects, ..AreaScore::default() };
        if objects == 0 {
            return score;
        }
        let needs = Needs::new(objects);
        let mut points = Vec::new();
        let mut finds = 0;
        for (t, curve) in curves.iter_mut().enumerate() {
            points.clear();
            let (mut right, mut wrong) = (0u32, 0u32);
            for found in &self.boxes {
                let Worth { right: r, wrong: w } = found.worth[a];
                wrong += u32::from(w >> t & 1);
                if r >> t & 1 == 1 {
                    right += 1;
                    points.push(Point::new(right, wrong));
                }
            }
            finds += right;
            let mut sum = 0.0;
            walk(&points, &needs, |r, precision| {
                sum += precision;
                if a == 0 {
                    curve[r] = precision;
                }
            });
            score.precision[t] = sum / RECALLS as f64;
        }
        score.recall = f64::from(finds) / (OVERLAPS as f64 * f64::from(objects));
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_scores_from_high_to_low() {
        let scores = [f64::MAX, 1.0, 0.999, 1e-300, 0.0, -1e-300, -1.0, f64::MIN];
        assert!(scores.map(descending).is_sorted());
        assert_eq!(descending(0.0), descending(-0.0));
        assert!(descending(1.0) < descending(0.999));
    }
}
