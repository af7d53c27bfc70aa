//! Where tick marks go.

/// A linear scale from figures to coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    lo: f64,
    hi: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// `lo..hi` onto `from..to`; a scale without extent gets one.
    pub(crate) fn new([lo, hi]: [f64; 2], [from, to]: [f64; 2]) -> Scale {
        let hi = if hi > lo { hi } else { lo + lo.abs().max(1.0) * 0.01 };
        Scale { lo, hi, from, to }
    }

    /// Coordinate of a figure.
    pub(crate) fn at(&self, value: f64) -> f64 {
        self.from + (value - self.lo) / (self.hi - self.lo) * (self.to - self.from)
    }

    /// Coordinate of a figure, kept inside the drawing.
    pub(crate) fn clamped(&self, value: f64) -> f64 {
        self.at(value.clamp(self.lo, self.hi))
    }

    /// Upper end in figures.
    pub(crate) fn hi(&self) -> f64 {
        self.hi
    }

    /// Ticks on this scale, at most `most` of them.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        ticks([self.lo, self.hi], most)
    }
}

/// The 1-2-5 step that cuts `extent` into at most `most` parts.
pub(crate) fn step(extent: f64, most: usize) -> f64 {
    let rough = extent / most.max(1) as f64;
    let decade = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * decade);
    // The tolerance keeps 0.3 / 3 at 0.1 although the quotient is a hair above it.
    steps.into_iter().find(|&s| s >= rough * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
}

/// Round figures inside `lo..=hi`, in 1-2-5 steps.
pub(crate) fn ticks([lo, hi]: [f64; 2], most: usize) -> Vec<f64> {
    let extent = hi - lo;
    if !(extent.is_finite() && extent > 0.0) {
        return Vec::new();
    }
    let step = step(extent, most);
    let first = (lo / step - 1e-9).ceil() as i64;
    let last = (hi / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A tick's label: as many decimals as its neighbours need.
pub(crate) fn label(value: f64, ticks: &[f64]) -> String {
    let step = match ticks {
        [a, b, ..] => b - a,
        _ => 1.0,
    };
    let decimals = (-(step * 1.0001).log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_in_one_two_five_steps() {
        assert_eq!(ticks([6.1, 7.3], 6), [6.2, 6.4, 6.6000000000000005, 6.800000000000001, 7.0, 7.2]);
        assert_eq!(ticks([0.0, 0.3], 3).len(), 4);
        assert_eq!(ticks([0.0, 137.0], 4), [0.0, 50.0, 100.0]);
        assert!(ticks([1.0, 1.0], 4).is_empty());
        assert!(ticks([0.0, f64::NAN], 4).is_empty());
    }

    #[test]
    fn labels_have_the_decimals_of_the_step() {
        let t = ticks([6.1, 7.3], 6);
        assert_eq!(label(t[2], &t), "6.6");
        assert_eq!(label(50.0, &[0.0, 50.0]), "50");
        assert_eq!(label(0.25, &[0.2, 0.25]), "0.25");
    }

    #[test]
    fn a_scale_without_extent_is_still_a_scale() {
        assert!(Scale::new([5.0, 5.0], [0.0, 100.0]).at(5.0).is_finite());
    }
}
