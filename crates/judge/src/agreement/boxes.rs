//! Boxes after suppression against those of a reference.
//!
//! Suppression makes leaps of small differences: of two boxes that nearly tie either may be kept, and one at a threshold may
//! go or stay. So a box that the other side did not keep is looked for among all that it chose from. What is found there,
//! with nearly the same place and score, was kept or dropped by rounding.

use prony_types::Detection;

/// How near two boxes must be to be the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// Least overlap.
    pub iou: f32,
    /// Largest difference in score.
    pub score: f32,
}

impl Near {
    /// The same box to a user.
    pub const SAME: Near = Near { iou: 0.9, score: 0.02 };
    /// So near that several times as much is still the same box.
    pub const STABLE: Near = Near { iou: 0.975, score: 0.005 };

    /// How much nearer than asked for: the overlap, then the gap in score; `None` for another box.
    fn to(self, a: &Detection, b: &Detection) -> Option<(f32, f32)> {
        let gap = (a.score - b.score).abs();
        // Written so that a gap that is no number is too wide.
        if a.class == b.class && gap <= self.score {
            let overlap = iou(a, b);
            return (overlap >= self.iou).then_some((overlap, gap));
        }
        None
    }
}

/// The boxes of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Those that stayed.
    pub kept: &'a [Detection],
    /// All among which the choice was made.
    pub candidates: &'a [Detection],
    /// Whether the model itself made the choice and hands out a fixed number: below the last one others may have been.
    pub ranked: bool,
}

impl Found<'_> {
    fn has_like(&self, wanted: &Detection, near: Near) -> bool {
        self.candidates.iter().any(|candidate| near.to(wanted, candidate).is_some())
    }

    /// Whether a box is so unsure that it may have been cut off here.
    fn may_have_cut(&self, wanted: &Detection, near: Near) -> bool {
        let last = self.candidates.iter().map(|candidate| candidate.score).fold(f32::INFINITY, f32::min);
        self.ranked && wanted.score <= last + near.score
    }
}

/// How many boxes found their like, of those that are evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The reference's: matched, and all.
    pub reference: [u64; 2],
    /// The other side's.
    pub got: [u64; 2],
}

impl Tally {
    /// The lower of both sides' shares, so boxes that are missing and boxes that are too many both count; `None` without a box
    /// on either side, which is no agreement.
    pub fn share(&self) -> Option<f64> {
        let share = |[matched, all]: [u64; 2]| (all > 0).then(|| matched as f64 / all as f64);
        [share(self.reference), share(self.got)].into_iter().flatten().reduce(f64::min)
    }

    /// Boxes of the side that has more of them.
    pub fn boxes(&self) -> u64 {
        self.reference[1].max(self.got[1])
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        for (sum, more) in [(&mut self.reference, other.reference), (&mut self.got, other.got)] {
            sum[0] += more[0];
            sum[1] += more[1];
        }
    }
}

/// Which boxes of the reference rounding leaves where they are: those that are found, very nearly the same, where the input
/// was perturbed.
pub fn stands(reference: Found<'_>, perturbed: Found<'_>) -> Vec<bool> {
    reference.kept.iter().map(|wanted| perturbed.has_like(wanted, Near::STABLE)).collect()
}

/// Counts the boxes of both sides that found their like.
///
/// First those that were kept choose among those that were kept: the reference's in the order of their scores, each the free
/// one it overlaps most, of equals the one nearest in score. What is left over is looked for among the candidates. Of the
/// reference only boxes that stand are evidence, and no box that took the place of one that does not.
pub fn matched(reference: Found<'_>, got: Found<'_>, stands: &[bool], near: Near) -> Tally {
    let is_evidence = |i: usize| stands.get(i).copied().unwrap_or(true);
    let partner = pairs(reference.kept, got.kept, near);
    let mut tally = Tally::default();
    for (i, wanted) in reference.kept.iter().enumerate().filter(|&(i, _)| is_evidence(i)) {
        let found = partner[i].is_some() || got.has_like(wanted, near);
        if found || !got.may_have_cut(wanted, near) {
            tally.reference[0] += u64::from(found);
            tally.reference[1] += 1;
        }
    }
    for (j, candidate) in got.kept.iter().enumerate() {
        let found = match partner.iter().position(|&partner| partner == Some(j)) {
            Some(i) if !is_evidence(i) => continue,
            Some(_) => true,
            None => reference.has_like(candidate, near),
        };
        let takes_a_place = |(i, wanted): (usize, &Detection)| !is_evidence(i) && iou(wanted, candidate) > 0.0;
        let no_evidence =
            || reference.may_have_cut(candidate, near) || reference.kept.iter().enumerate().any(takes_a_place);
        if found || !no_evidence() {
            tally.got[0] += u64::from(found);
            tally.got[1] += 1;
        }
    }
    tally
}

/// For each box of the reference the place of its like.
pub(super) fn pairs(reference: &[Detection], got: &[Detection], near: Near) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..reference.len()).collect();
    order.sort_by(|&a, &b| reference[b].score.total_cmp(&reference[a].score));
    let mut free = vec![true; got.len()];
    let mut partner = vec![None; reference.len()];
    for i in order {
        let mut best: Option<(usize, f32, f32)> = None;
        for (j, candidate) in got.iter().enumerate().filter(|&(j, _)| free[j]) {
            let Some((overlap, gap)) = near.to(&reference[i], candidate) else { continue };
            let better = |(_, most, least): (usize, f32, f32)| overlap > most || overlap == most && gap < least;
            if best.is_none_or(better) {
                best = Some((j, overlap, gap));
            }
        }
        if let Some((j, ..)) = best {
            free[j] = false;
            partner[i] = Some(j);
        }
    }
    partner
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
#[path = "boxes_tests.rs"]
mod tests;
