//! Batch norms and parallel branches folded into one convolution. It is done in double precision and rounded once.

/// A convolution's weights and bias.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kernel {
    /// Channels out, channels in of a group, height, width.
    pub(super) shape: [usize; 4],
    /// In that order, the width fastest.
    pub(super) weight: Vec<f64>,
    /// One a channel.
    pub(super) bias: Vec<f64>,
}

/// A batch norm as it is when nothing is trained: a factor and a term a channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Norm {
    /// By how much a channel is multiplied.
    pub(super) factor: Vec<f64>,
    /// What is added to it then.
    pub(super) term: Vec<f64>,
}

impl Norm {
    /// From what training left: weight, bias, running mean and variance. `None` where the lengths differ or a variance is
    /// no variance.
    pub(super) fn new([weight, bias, mean, variance]: [&[f32]; 4], eps: f64) -> Option<Norm> {
        if [bias, mean, variance].iter().any(|row| row.len() != weight.len()) {
            return None;
        }
        let spread: Vec<f64> = variance.iter().map(|&variance| f64::from(variance) + eps).collect();
        if spread.iter().any(|&spread| spread <= 0.0 || !spread.is_finite()) {
            return None;
        }
        let factor: Vec<f64> = weight.iter().zip(&spread).map(|(&w, spread)| f64::from(w) / spread.sqrt()).collect();
        let shifted = |((&bias, &mean), factor): ((&f32, &f32), &f64)| f64::from(bias) - f64::from(mean) * factor;
        let term = bias.iter().zip(mean).zip(&factor).map(shifted).collect();
        Some(Norm { factor, term })
    }
}

impl Kernel {
    /// Weights as they were stored, without a bias where there is none.
    pub(super) fn new(shape: [usize; 4], weight: &[f32], bias: Option<&[f32]>) -> Kernel {
        let widen = |numbers: &[f32]| numbers.iter().map(|&number| f64::from(number)).collect();
        Kernel { shape, weight: widen(weight), bias: bias.map_or_else(|| vec![0.0; shape[0]], widen) }
    }

    fn filter(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// Folds in the norm that follows. `None` where it is of another number of channels.
    pub(super) fn normed(mut self, norm: &Norm) -> Option<Kernel> {
        if norm.factor.len() != self.shape[0] {
            return None;
        }
        let filter = self.filter().max(1);
        for (weights, factor) in self.weight.chunks_mut(filter).zip(&norm.factor) {
            weights.iter_mut().for_each(|weight| *weight *= factor);
        }
        for ((bias, factor), term) in self.bias.iter_mut().zip(&norm.factor).zip(&norm.term) {
            *bias = *bias * factor + term;
        }
        Some(self)
    }

    /// Adds a branch beside this one, whose smaller window sits in the middle. `None` where that has no middle or the
    /// channels differ.
    pub(super) fn beside(mut self, other: &Kernel) -> Option<Kernel> {
        let ([out, inner, height, width], [o, i, h, w]) = (self.shape, other.shape);
        let margin =
            |outer: usize, inner: usize| outer.checked_sub(inner).filter(|gap| gap % 2 == 0).map(|gap| gap / 2);
        let (top, left) = (margin(height, h)?, margin(width, w)?);
        if (out, inner) != (o, i) {
            return None;
        }
        for plane in 0..out * inner {
            for (row, weights) in other.weight[plane * h * w..(plane + 1) * h * w].chunks(w.max(1)).enumerate() {
                let at = (plane * height + top + row) * width + left;
                self.weight[at..at + w].iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
            }
        }
        self.bias.iter_mut().zip(&other.bias).for_each(|(sum, bias)| *sum += bias);
        Some(self)
    }

    /// A branch that is a norm alone: every channel to itself. `None` where channels in and out differ.
    pub(super) fn identity(norm: &Norm, inner: usize) -> Option<Kernel> {
        let out = norm.factor.len();
        if inner == 0 || !out.is_multiple_of(inner) {
            return None;
        }
        let mut weight = vec![0.0; out * inner];
        norm.factor.iter().enumerate().for_each(|(at, factor)| weight[at * inner + at % inner] = *factor);
        Some(Kernel { shape: [out, inner, 1, 1], weight, bias: norm.term.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Straight from the definition, over one picture without padding.
    fn convolve(kernel: &Kernel, groups: usize, picture: &[f64], [height, width]: [usize; 2]) -> Vec<f64> {
        let [out, inner, kh, kw] = kernel.shape;
        let mut result = Vec::new();
        for o in 0..out {
            let first = o / (out / groups) * inner;
            for y in 0..=height - kh {
                for x in 0..=width - kw {
                    let mut sum = kernel.bias[o];
                    for (i, dy, dx) in (0..inner * kh * kw).map(|n| (n / (kh * kw), n / kw % kh, n % kw)) {
                        let pixel = picture[((first + i) * height + y + dy) * width + x + dx];
                        sum += pixel * kernel.weight[((o * inner + i) * kh + dy) * kw + dx];
                    }
                    result.push(sum);
                }
            }
        }
        result
    }

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32).map(|n| ((n * 37 + seed * 11) % 23) as f32 / 8.0 - 1.25).collect()
    }

    fn kernel(shape: [usize; 4], seed: u32) -> Kernel {
        Kernel::new(shape, &numbers(shape.iter().product(), seed), Some(&numbers(shape[0], seed + 1)))
    }

    fn norm(channels: usize, seed: u32) -> Norm {
        let variance: Vec<f32> = numbers(channels, seed).iter().map(|x| x.abs() + 0.1).collect();
        let [weight, bias, mean] = [1, 2, 3].map(|n| numbers(channels, seed + n));
        Norm::new([&weight, &bias, &mean, &variance], 1e-3).unwrap()
    }

    fn close(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()), "{a} {b}"));
    }

    #[test]
    fn a_norm_is_what_its_definition_says() {
        let norm = Norm::new([&[2.0], &[0.5], &[3.0], &[0.24]], 0.01).unwrap();
        // (5 - 3) / sqrt(0.25) * 2 + 0.5
        assert!((5.0 * norm.factor[0] + norm.term[0] - 8.5).abs() < 1e-6);
        assert_eq!(Norm::new([&[1.0], &[0.0], &[0.0], &[-1.0]], 1e-3), None);
        assert_eq!(Norm::new([&[1.0], &[0.0], &[0.0], &[f32::NAN]], 1e-3), None);
        assert_eq!(Norm::new([&[1.0, 1.0], &[0.0], &[0.0], &[1.0]], 1e-3), None);
    }

    #[test]
    fn a_folded_norm_gives_what_the_two_give_one_after_the_other() {
        let (kernel, norm) = (kernel([4, 2, 3, 3], 3), norm(4, 5));
        let picture: Vec<f64> = numbers(4 * 25, 7).iter().map(|&x| x.into()).collect();
        let mut apart = convolve(&kernel, 2, &picture, [5, 5]);
        for (at, value) in apart.iter_mut().enumerate() {
            *value = *value * norm.factor[at / 9] + norm.term[at / 9];
        }
        close(&convolve(&kernel.clone().normed(&norm).unwrap(), 2, &picture, [5, 5]), &apart);
        assert_eq!(kernel.normed(&self::norm(3, 1)), None);
    }

    #[test]
    fn branches_side_by_side_become_one() {
        let (wide, narrow, norm) = (kernel([4, 2, 5, 5], 1), kernel([4, 2, 3, 3], 2), norm(4, 9));
        let picture: Vec<f64> = numbers(4 * 36, 4).iter().map(|&x| x.into()).collect();
        // What the smaller windows see of the places where the larger one fits.
        let inside = |margin: usize| -> Vec<f64> {
            let side = 6 - 2 * margin;
            let at = |n: usize| (n / (side * side) * 6 + n / side % side + margin) * 6 + n % side + margin;
            (0..4 * side * side).map(|n| picture[at(n)]).collect()
        };
        let mut apart = convolve(&wide, 2, &picture, [6, 6]);
        let narrow_alone = convolve(&narrow, 2, &inside(1), [4, 4]);
        apart.iter_mut().zip(&narrow_alone).for_each(|(sum, more)| *sum += more);
        for (at, (sum, pixel)) in apart.iter_mut().zip(inside(2)).enumerate() {
            *sum += pixel * norm.factor[at / 4] + norm.term[at / 4];
        }
        let identity = Kernel::identity(&norm, 2).unwrap();
        let fused = wide.beside(&narrow).unwrap().beside(&identity).unwrap();
        close(&convolve(&fused, 2, &picture, [6, 6]), &apart);
    }

    #[test]
    fn branches_that_do_not_fit_are_refused() {
        assert_eq!(kernel([4, 2, 3, 3], 1).beside(&kernel([4, 2, 2, 2], 1)), None);
        assert_eq!(kernel([4, 2, 3, 3], 1).beside(&kernel([4, 1, 1, 1], 1)), None);
        assert_eq!(kernel([4, 2, 1, 1], 1).beside(&kernel([4, 2, 3, 3], 1)), None);
        assert_eq!(Kernel::identity(&norm(4, 1), 3), None);
    }
}
