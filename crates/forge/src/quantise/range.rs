//! From magnitudes to a range: how much of a tensor's tail a byte need not hold. Pure arithmetic on histograms.

use prony_types::CalibrationMethod;

use super::histogram::{BINS, Histogram};

/// Magnitudes that a signed byte has beside zero, where it is symmetric.
pub(crate) const LEVELS: f64 = 127.0;
/// Share of the values that `percentile` keeps in the range: all but one in ten thousand.
pub const PERCENTILE: f64 = 0.9999;
/// The narrowest range that is tried: a step is then a bin wide.
const NARROWEST: usize = 128;
/// Bins between the ranges that are tried: half a step at the widest.
const STRIDE: usize = 8;
/// The same where a try costs logarithms.
const COARSE_STRIDE: usize = 16;

/// The magnitude that the largest byte stands for; 0 where all values are zero.
pub(crate) fn clip(histogram: &Histogram, method: CalibrationMethod) -> f64 {
    let max = f64::from(histogram.max());
    let clip = match method {
        CalibrationMethod::MinMax => max,
        CalibrationMethod::Percentile => percentile(histogram, PERCENTILE),
        CalibrationMethod::Mse => least(histogram, STRIDE, |bins| squared_error(histogram, bins)),
        CalibrationMethod::Entropy => least(histogram, COARSE_STRIDE, |bins| divergence(histogram.counts(), bins)),
    };
    clip.min(max)
}

/// The end of the first bin up to which that share of all values lies.
fn percentile(histogram: &Histogram, share: f64) -> f64 {
    let total = histogram.zeros() + histogram.counts().iter().sum::<u64>();
    let wanted = share * total as f64;
    let mut below = histogram.zeros();
    for (i, &count) in histogram.counts().iter().enumerate() {
        below += count;
        if below as f64 >= wanted {
            return (i + 1) as f64 * histogram.width();
        }
    }
    f64::from(histogram.max())
}

/// The range, in bins from zero, for which a cost is least; the widest of equals.
fn least(histogram: &Histogram, stride: usize, cost: impl Fn(usize) -> f64) -> f64 {
    let used = histogram.counts().len();
    let mut best = (f64::INFINITY, used);
    let tried = (NARROWEST.min(used)..used).step_by(stride).chain([used]);
    for bins in tried {
        let cost = cost(bins);
        if cost <= best.0 {
            best = (cost, bins);
        }
    }
    best.1 as f64 * histogram.width()
}

/// The sum of squared errors when the range ends behind so many bins. What is nearer to zero than half a step becomes
/// zero, so its error is itself; what lies beyond the range becomes its end; in between errors are spread evenly over a
/// step.
fn squared_error(histogram: &Histogram, bins: usize) -> f64 {
    let width = histogram.width();
    let clip = bins as f64 * width;
    let step = clip / LEVELS;
    let error = |(i, &count): (usize, &u64)| {
        let x = (i as f64 + 0.5) * width;
        let error = if x < step / 2.0 {
            x * x
        } else if x <= clip {
            step * step / 12.0
        } else {
            (x - clip).powi(2)
        };
        count as f64 * error
    };
    histogram.counts().iter().enumerate().filter(|(_, count)| **count > 0).map(error).sum()
}

/// How much is lost, in nats, when magnitudes up to so many bins are told apart by 128 levels only and larger ones are
/// taken for the last: the Kullback-Leibler divergence of the counts from what the levels say about them.
fn divergence(counts: &[u64], bins: usize) -> f64 {
    let bins = bins.min(counts.len());
    if bins == 0 {
        return 0.0;
    }
    let inside = &counts[..bins];
    let beyond: u64 = counts[bins..].iter().sum();
    let total = (inside.iter().sum::<u64>() + beyond) as f64;
    // The levels are learnt from what lies inside alone: that the rest piles up at the end is part of what is lost.
    let said_total = inside.iter().sum::<u64>() as f64;
    if said_total == 0.0 {
        return f64::INFINITY;
    }
    let levels = NARROWEST.min(bins);
    let mut lost = 0.0;
    for level in 0..levels {
        let (from, to) = (level * bins / levels, (level + 1) * bins / levels);
        let here = &inside[from..to];
        let sum: u64 = here.iter().sum();
        let filled = here.iter().filter(|&&count| count > 0).count();
        for (i, &count) in here.iter().enumerate() {
            let piled = if from + i + 1 == bins { beyond } else { 0 };
            let is = (count + piled) as f64 / total;
            if is == 0.0 {
                continue;
            }
            // Only bins that hold something have a share in what a level says. An end that holds nothing but what was
            // piled up there is told by nothing: the least that could have been counted stands for it.
            let said = if count > 0 { sum as f64 / filled as f64 } else { 1.0 / BINS as f64 };
            lost += is * (is / (said / said_total)).ln();
        }
    }
    lost
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
