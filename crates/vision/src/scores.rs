//! The best class of every anchor.
//!
//! Channel-major outputs are read in the order of memory: for a block of anchors the highest score over all class rows,
//! whole vectors at a time. Which class it was is only asked for the few lanes that hold a score above the threshold,
//! while the block is still in the cache.

use crate::dispatch::widest;

/// Anchors a block: 80 classes of it fit a second-level cache of 256 KiB.
const BLOCK: usize = 512;
/// Anchors that are looked at together when one of them is a hit: a cache line.
const LANES: usize = 16;

/// An anchor whose best class is above the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub(crate) anchor: u32,
    pub(crate) class: u32,
    /// As the model gave it.
    pub(crate) score: f32,
}

widest! {
    /// Appends the anchors whose best score is above `floor`, in their order. `rows` has a row of `anchors` scores a class.
    ///
    /// Of equal scores the lower class wins. An anchor with a score that is not finite is never a hit.
    pub(crate) fn sift_columns(rows: &[f32], anchors: usize, floor: f32, hits: &mut Vec<Hit>) {
        let mut peaks = [0.0f32; BLOCK];
        for start in (0..anchors).step_by(BLOCK) {
            let len = BLOCK.min(anchors - start);
            highest(rows, anchors, start, &mut peaks[..len]);
            let mut at = start;
            let (groups, rest) = peaks[..len].as_chunks::<LANES>();
            for group in groups {
                if group.iter().fold(false, |any, &peak| any | (peak > floor)) {
                    settle_group(rows, anchors, at, floor, hits);
                }
                at += LANES;
            }
            for (anchor, _) in (at..).zip(rest).filter(|&(_, &peak)| peak > floor) {
                let column = rows.iter().skip(anchor).step_by(anchors).copied();
                push_best(column, anchor as u32, floor, hits);
            }
        }
    }

    /// The same for outputs with the scores of an anchor side by side: `lines` of `width`, scores from `first` to the end
    /// of `classes`. Where `gate` names an element, it must itself be above `gate_floor`.
    pub(crate) fn sift_lines(
        lines: &[f32],
        width: usize,
        first: usize,
        classes: usize,
        gate: Option<(usize, f32)>,
        floor: f32,
        hits: &mut Vec<Hit>,
    ) {
        for (anchor, line) in (0u32..).zip(lines.chunks_exact(width)) {
            if gate.is_none_or(|(at, floor)| line[at] > floor) {
                push_best_of_line(&line[first..first + classes], anchor, floor, hits);
            }
        }
    }
}

/// The highest score of each of a block's anchors over all rows; four rows at a time, to spare the cache.
#[inline(always)]
fn highest(rows: &[f32], anchors: usize, start: usize, peaks: &mut [f32]) {
    let len = peaks.len();
    let part = |row: usize| &rows[row * anchors + start..][..len];
    let classes = rows.len() / anchors;
    peaks.fill(f32::NEG_INFINITY);
    let mut row = 0;
    while row + 4 <= classes {
        let (a, b, c, d) = (part(row), part(row + 1), part(row + 2), part(row + 3));
        for ((((peak, &a), &b), &c), &d) in peaks.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *peak = higher(higher(a, b), higher(higher(c, d), *peak));
        }
        row += 4;
    }
    for row in row..classes {
        for (peak, &value) in peaks.iter_mut().zip(part(row)) {
            *peak = higher(value, *peak);
        }
    }
}

/// The greater of two in one instruction. Whether a NaN survives depends on the side it comes from: hits are looked at
/// again, and a NaN that hides its anchor does what it should.
#[inline(always)]
fn higher(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Best class of [`LANES`] anchors from `at` on, lane by lane in step.
#[inline(always)]
fn settle_group(rows: &[f32], anchors: usize, at: usize, floor: f32, hits: &mut Vec<Hit>) {
    let mut score = [f32::NEG_INFINITY; LANES];
    let mut class = [0u32; LANES];
    // Stays 0 unless some value is not finite.
    let mut poison = [0.0f32; LANES];
    for (index, row) in (0u32..).zip(rows.chunks_exact(anchors)) {
        let Some(values) = row[at..].first_chunk::<LANES>() else { return };
        for lane in 0..LANES {
            let better = values[lane] > score[lane];
            score[lane] = if better { values[lane] } else { score[lane] };
            class[lane] = if better { index } else { class[lane] };
            poison[lane] += values[lane] * 0.0;
        }
    }
    for lane in 0..LANES {
        if score[lane] > floor && poison[lane] == 0.0 {
            hits.push(Hit { anchor: (at + lane) as u32, class: class[lane], score: score[lane] });
        }
    }
}

/// One anchor, one score after the other.
#[inline(always)]
fn push_best(scores: impl Iterator<Item = f32>, anchor: u32, floor: f32, hits: &mut Vec<Hit>) {
    let mut best = Hit { anchor, class: 0, score: f32::NEG_INFINITY };
    for (class, score) in (0u32..).zip(scores) {
        if !score.is_finite() {
            return;
        }
        if score > best.score {
            best = Hit { class, score, ..best };
        }
    }
    if best.score > floor {
        hits.push(best);
    }
}

/// Best class of one anchor whose scores lie together.
#[inline(always)]
fn push_best_of_line(scores: &[f32], anchor: u32, floor: f32, hits: &mut Vec<Hit>) {
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let mut most = [f32::NEG_INFINITY; LANES];
    let mut poison = [0.0f32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            most[lane] = higher(chunk[lane], most[lane]);
            poison[lane] += chunk[lane] * 0.0;
        }
    }
    // Most anchors end here, so the question is asked before the answer is worked out.
    if !most.iter().chain(rest).fold(false, |any, &value| any | (value > floor)) {
        return;
    }
    let score = most.iter().chain(rest).fold(f32::NEG_INFINITY, |best, &value| higher(value, best));
    if poison.iter().sum::<f32>() == 0.0 && rest.iter().all(|value| value.is_finite()) {
        let class = scores.iter().position(|&value| value == score).unwrap_or_default() as u32;
        hits.push(Hit { anchor, class, score });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(rows: &[f32], anchors: usize, floor: f32) -> Vec<(u32, u32, f32)> {
        let mut hits = Vec::new();
        sift_columns(rows, anchors, floor, &mut hits);
        hits.iter().map(|h| (h.anchor, h.class, h.score)).collect()
    }

    #[test]
    fn the_best_class_wins_and_the_lower_one_of_equals() {
        // Three classes over four anchors.
        let rows = [0.1, 0.9, 0.5, 0.0, 0.3, 0.2, 0.5, 0.0, 0.2, 0.95, 0.1, 0.0];
        assert_eq!(columns(&rows, 4, 0.1), [(0, 1, 0.3), (1, 2, 0.95), (2, 0, 0.5)]);
        assert_eq!(columns(&rows, 4, 0.5), [(1, 2, 0.95)]);
    }

    #[test]
    fn one_value_that_is_not_finite_takes_the_anchor_out() {
        let rows = [0.9, 0.9, 0.9, f32::NAN, 0.1, f32::INFINITY];
        assert_eq!(columns(&rows, 3, 0.1), [(1, 0, 0.9)]);
        // In whole groups and in lines too, whatever class it is.
        let (classes, anchors) = (9, 40);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for class in 0..classes {
                let mut rows = vec![0.5; classes * anchors];
                rows[class * anchors + 20] = bad;
                rows[class * anchors + 35] = bad;
                let found: Vec<u32> = columns(&rows, anchors, 0.1).iter().map(|hit| hit.0).collect();
                assert_eq!(found, (0..40).filter(|a| ![20, 35].contains(a)).collect::<Vec<u32>>());
                let mut line = vec![0.5; 37];
                line[4 * class] = bad;
                let mut hits = Vec::new();
                sift_lines(&line, 37, 0, 37, None, 0.1, &mut hits);
                assert_eq!(hits, []);
            }
        }
        assert_eq!(columns(&[], 3, f32::NEG_INFINITY), []);
    }

    #[test]
    fn both_layouts_agree_over_many_blocks() {
        let (classes, anchors) = (37, 3 * BLOCK + 5);
        let score = |class: usize, anchor: usize| ((class * 29 + anchor * 31) % 97) as f32 / 97.0; // 97 levels, so about a third of the anchors reach the highest
        let rows: Vec<f32> = (0..classes).flat_map(|c| (0..anchors).map(move |a| score(c, a))).collect();
        let lines: Vec<f32> = (0..anchors).flat_map(|a| (0..classes).map(move |c| score(c, a))).collect();
        let (mut a, mut b) = (Vec::new(), Vec::new());
        sift_columns(&rows, anchors, 0.98, &mut a);
        sift_lines(&lines, classes, 0, classes, None, 0.98, &mut b);
        assert!(a.len() > 100 && a.len() < anchors, "{}", a.len());
        assert_eq!(a, b);
    }

    #[test]
    fn a_gate_that_is_shut_or_nan_lets_nothing_through() {
        let mut hits = Vec::new();
        sift_lines(&[0.1, 0.9, 0.5, 0.9, f32::NAN, 0.9], 2, 1, 1, Some((0, 0.2)), 0.0, &mut hits);
        assert_eq!(hits, [Hit { anchor: 1, class: 0, score: 0.9 }]);
    }
}
