//! How large the values of a tensor are: counts by magnitude that grow with what they see, in bounded memory.

use serde::{Deserialize, Serialize};

/// Bins of a histogram. Sixteen to each of the 128 magnitudes that a byte has, and eight where the range has just doubled.
pub(crate) const BINS: usize = 2048;

/// Counts by magnitude. A bin's width is a power of two, so that two neighbours make exactly one bin of twice the width:
/// the counts are the same in whatever order values come, and those of several tensors can be put together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Histogram {
    /// Width of a bin as a power of two; meaningless as long as all values are zero.
    exponent: i32,
    /// Empty as long as all values are zero. Trailing zeros are not kept on disk.
    counts: Vec<u64>,
    /// Values that are exactly zero: no range makes them wrong.
    zeros: u64,
    /// The largest magnitude.
    max: f32,
}

impl Histogram {
    /// The magnitudes of these values and no others.
    #[cfg(test)]
    pub(crate) fn of(values: &[f32]) -> Histogram {
        let mut histogram = Histogram::default();
        assert!(histogram.add(values));
        histogram
    }

    /// Counts values; `false`, and nothing is counted, where one is not finite.
    #[must_use]
    pub(crate) fn add(&mut self, values: &[f32]) -> bool {
        if !values.iter().all(|x| x.is_finite()) {
            return false;
        }
        let max = values.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        if max > 0.0 {
            self.make_room(max);
        }
        let per_bin = (-f64::from(self.exponent)).exp2() as f32;
        for &x in values {
            if x == 0.0 {
                self.zeros += 1;
            } else {
                // A power of two scales without rounding.
                self.counts[((x.abs() * per_bin) as usize).min(BINS - 1)] += 1;
            }
        }
        self.max = self.max.max(max);
        true
    }

    /// Counts what another one has counted.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        self.zeros += other.zeros;
        if other.counts.is_empty() {
            return;
        }
        let mut other = other.clone();
        other.counts.resize(BINS, 0);
        self.make_room(other.max);
        while other.exponent < self.exponent {
            other.double();
        }
        while self.exponent < other.exponent {
            self.double();
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, others)| *mine += others);
        self.max = self.max.max(other.max);
    }

    /// Doubles the range until a magnitude lies in it.
    fn make_room(&mut self, max: f32) {
        if self.counts.is_empty() {
            // The narrowest bins that hold it; below that a float has no room for 2048 of them.
            let needed = (f64::from(max) / BINS as f64).log2().floor() as i32;
            self.exponent = needed.max(f32::MIN_EXP);
        }
        self.counts.resize(BINS, 0);
        while f64::from(max) >= self.width() * BINS as f64 {
            self.double();
        }
    }

    fn double(&mut self) {
        for i in 0..BINS / 2 {
            self.counts[i] = self.counts[2 * i] + self.counts[2 * i + 1];
        }
        self.counts[BINS / 2..].fill(0);
        self.exponent += 1;
    }

    /// Without the empty bins at the end, for keeping.
    pub(crate) fn trimmed(mut self) -> Histogram {
        let used = self.counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        self.counts.truncate(used);
        self
    }

    /// Width of a bin.
    pub(crate) fn width(&self) -> f64 {
        f64::from(self.exponent).exp2()
    }

    /// Counts of the bins, up to the last that is not empty.
    pub(crate) fn counts(&self) -> &[u64] {
        let used = self.counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        &self.counts[..used]
    }

    /// Values that are exactly zero.
    pub(crate) fn zeros(&self) -> u64 {
        self.zeros
    }

    /// The largest magnitude.
    pub(crate) fn max(&self) -> f32 {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of many magnitudes, the same every time.
    fn values(count: usize, scale: f32) -> Vec<f32> {
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..count).map(|_| scale * next() * next() * next()).collect()
    }

    #[test]
    fn every_value_is_in_the_bin_of_its_magnitude() {
        let values = values(5000, 3.0);
        let histogram = Histogram::of(&values);
        let mut expected = vec![0u64; BINS];
        for x in values.iter().filter(|x| **x != 0.0) {
            expected[(f64::from(x.abs()) / histogram.width()).floor() as usize] += 1;
        }
        assert_eq!(histogram.counts(), &expected[..histogram.counts().len()]);
        assert_eq!(histogram.counts().iter().sum::<u64>() + histogram.zeros(), 5000);
        assert!(histogram.counts().len() > BINS / 2, "the range is used");
        assert_eq!(histogram.max(), values.iter().fold(0.0, |max: f32, x| max.max(x.abs())));
    }

    #[test]
    fn the_order_of_values_does_not_matter() {
        let (small, large) = (values(3000, 0.01), values(3000, 400.0));
        let mut upwards = Histogram::of(&small);
        assert!(upwards.add(&large));
        let mut downwards = Histogram::of(&large);
        assert!(downwards.add(&small));
        assert_eq!(upwards, downwards);
        let mut merged = Histogram::of(&small);
        merged.merge(&Histogram::of(&large).trimmed());
        assert_eq!(merged, upwards);
        let mut merged = Histogram::of(&large);
        merged.merge(&Histogram::of(&small));
        merged.merge(&Histogram::default());
        assert_eq!(merged, upwards);
    }

    #[test]
    fn zeros_are_counted_apart() {
        let mut histogram = Histogram::of(&[0.0, -0.0]);
        assert_eq!((histogram.zeros(), histogram.max(), histogram.counts().len()), (2, 0.0, 0));
        histogram.merge(&Histogram::of(&[0.0, 1.0, -2.0]));
        assert_eq!((histogram.zeros(), histogram.max()), (3, 2.0));
        assert_eq!(histogram.counts().iter().sum::<u64>(), 2);
    }

    #[test]
    fn the_smallest_and_the_largest_floats_have_a_bin() {
        let mut histogram = Histogram::of(&[f32::MIN_POSITIVE / 4.0]);
        assert!(histogram.add(&[f32::MAX, f32::MIN_POSITIVE]));
        assert_eq!(histogram.counts().iter().sum::<u64>(), 3);
        assert_eq!(histogram.max(), f32::MAX);
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        let mut histogram = Histogram::of(&[1.0]);
        let before = histogram.clone();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!histogram.add(&[0.5, bad, 3.0]), "{bad}");
            assert!(!histogram.add(&[bad]), "{bad}");
        }
        assert_eq!(histogram, before);
    }
}
