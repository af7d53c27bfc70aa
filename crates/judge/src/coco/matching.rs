//! Which boxes of one image and class find an object.

use super::{OVERLAPS, Truth};

/// Sizes of objects: all, small, medium, large. Bounds belong to both sides.
pub(super) const AREAS: [[f64; 2]; 4] = [[0.0, 1e10], [0.0, 1024.0], [1024.0, 9216.0], [9216.0, 1e10]];

/// A bit an overlap.
pub(super) type Mask = u16;

/// All overlaps.
pub(super) const ALL: Mask = (1 << OVERLAPS) - 1;

/// As numpy's `linspace(0.5, 0.95, 10)` gives them: 0.90 is 0.8999999999999999.
const THRESHOLDS: [f64; OVERLAPS] = {
    let mut thresholds = [0.95; OVERLAPS];
    let mut i = 0;
    while i + 1 < OVERLAPS {
        thresholds[i] = 0.5 + i as f64 * ((0.95 - 0.5) / 9.0);
        i += 1;
    }
    thresholds
};

/// What a box is worth at each overlap: right, wrong, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Worth {
    pub(super) right: Mask,
    pub(super) wrong: Mask,
}

/// An object with what has become of it, by size.
struct Object {
    bbox: [f64; 4],
    area: f64,
    crowd: bool,
    /// Its id is 0.
    unfindable: bool,
    ignored: [bool; AREAS.len()],
    taken: [Mask; AREAS.len()],
}

/// An object that overlaps a box by half or more.
struct Candidate {
    object: usize,
    overlap: f64,
    /// Overlaps that it reaches: the lowest bits.
    reached: Mask,
}

/// Memory that is used again for the next image.
#[derive(Default)]
pub(super) struct Matcher {
    objects: Vec<Object>,
    candidates: Vec<Candidate>,
}

impl Matcher {
    /// Starts an image. `objects` in the order of the data.
    pub(super) fn start<'a>(&mut self, objects: impl Iterator<Item = &'a Truth>) {
        self.objects.clear();
        self.objects.extend(objects.map(|truth| Object {
            bbox: truth.bbox,
            area: truth.bbox[2] * truth.bbox[3],
            crowd: truth.crowd,
            unfindable: truth.id == 0,
            ignored: AREAS.map(|[lo, hi]| truth.crowd || truth.area < lo || truth.area > hi),
            taken: [0; AREAS.len()],
        }));
    }

    /// Objects that count, by size.
    pub(super) fn counted(&self) -> [u32; AREAS.len()] {
        std::array::from_fn(|a| self.objects.iter().filter(|object| !object.ignored[a]).count() as u32)
    }

    /// Gives a box an object. Boxes of an image come in the order of their scores, at most a hundred.
    pub(super) fn give(&mut self, bbox: [f64; 4]) -> [Worth; AREAS.len()] {
        let area = bbox[2] * bbox[3];
        self.candidates.clear();
        for (object, truth) in self.objects.iter().enumerate() {
            let overlap = overlap(bbox, area, truth);
            if overlap >= THRESHOLDS[0] {
                let reached = THRESHOLDS.iter().filter(|&&t| t <= overlap).count();
                self.candidates.push(Candidate { object, overlap, reached: (1 << reached) - 1 });
            }
        }
        std::array::from_fn(|a| {
            let (found, neither) = match self.candidates.as_slice() {
                [] => (0, 0),
                [only] => self.objects[only.object].take(a, only.reached),
                _ => self.choose(a),
            };
            // A box that found nothing and is not of this size is none of its business.
            let [lo, hi] = AREAS[a];
            let neither = neither | if area < lo || area > hi { ALL & !found } else { 0 };
            Worth { right: found & !neither, wrong: ALL & !found & !neither }
        })
    }

    /// Among several: at each overlap the best that is free, one that counts before one that does not.
    fn choose(&mut self, a: usize) -> (Mask, Mask) {
        let (mut found, mut neither) = (0, 0);
        for t in 0..OVERLAPS {
            let bit = 1 << t;
            let best = |ignored: bool| {
                let mut best: Option<&Candidate> = None;
                for candidate in &self.candidates {
                    let object = &self.objects[candidate.object];
                    let free = object.crowd || object.taken[a] & bit == 0;
                    let better = best.is_none_or(|best| candidate.overlap >= best.overlap);
                    if object.ignored[a] == ignored && candidate.reached & bit != 0 && free && better {
                        best = Some(candidate);
                    }
                }
                best.map(|best| best.object)
            };
            if let Some(object) = best(false).or_else(|| best(true)) {
                let (f, n) = self.objects[object].take(a, bit);
                found |= f;
                neither |= n;
            }
        }
        (found, neither)
    }
}

impl Object {
    /// Takes it at these overlaps where it is free: where that is a find, and where it counts neither way.
    fn take(&mut self, a: usize, reached: Mask) -> (Mask, Mask) {
        let free = if self.crowd { reached } else { reached & !self.taken[a] };
        self.taken[a] |= free;
        (if self.unfindable { 0 } else { free }, if self.ignored[a] { free } else { 0 })
    }
}

/// Intersection over union; over the box alone where the object is a crowd.
fn overlap([x, y, w, h]: [f64; 4], area: f64, object: &Object) -> f64 {
    let [ox, oy, ow, oh] = object.bbox;
    let across = (w + x).min(ow + ox) - x.max(ox);
    let down = (h + y).min(oh + oy) - y.max(oy);
    if across <= 0.0 || down <= 0.0 {
        return 0.0;
    }
    let both = across * down;
    both / if object.crowd { area } else { area + object.area - both }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
