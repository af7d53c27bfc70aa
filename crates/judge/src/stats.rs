//! Statistics of one stage, in milliseconds.
//!
//! Quantiles are type 7 of Hyndman and Fan: linear between the two nearest order statistics, what numpy and R do
//! unasked. No outlier is removed anywhere.
//!
//! The interval of the median comes from order statistics, so it assumes no distribution; but frames that follow each
//! other are alike, and treating them as independent would promise far too much. How much alike is estimated on the
//! series `1[x <= median]`, the very one whose mean the interval is about: its integrated autocorrelation time by
//! Geyer's initial monotone sequence. The ranks are then spread as a binomial with that much more variance would.

use prony_types::StageStats;

/// Samples a percentile needs before it is printed (MLPerf's bound at 99 % confidence, one outlier allowed).
pub const P90_NEEDS: u64 = 64;
/// See [`P90_NEEDS`].
pub const P95_NEEDS: u64 = 130;
/// See [`P90_NEEDS`].
pub const P99_NEEDS: u64 = 662;
/// See [`P90_NEEDS`].
pub const P99_9_NEEDS: u64 = 6_636;

/// With fewer samples even the whole range does not hold the median with 95 %.
pub const CI_NEEDS: usize = 6;

/// 97.5 % of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Correlations further apart than this many frames are not looked for.
const MAX_LAG: usize = 10_000;

/// Statistics of durations in the order in which they were measured; `None` when there are none.
pub fn summarize(samples_ns: &[u64]) -> Option<StageStats> {
    let sorted = sorted(samples_ns);
    let (&min, &max) = (sorted.first()?, sorted.last()?);
    let n = sorted.len();
    // Integers sum exactly, whatever the order.
    let sum: u128 = samples_ns.iter().map(|&x| u128::from(x)).sum();
    let mean = sum as f64 / n as f64;
    let squares: f64 = samples_ns.iter().map(|&x| (x as f64 - mean).powi(2)).sum();
    let sd = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
    let median = quantile(&sorted, 0.5)?;
    let n_eff = n as f64 / autocorrelation_time(samples_ns, median);
    let at_least = |needs: u64, q: f64| if n as u64 >= needs { quantile(&sorted, q).map(ms) } else { None };
    Some(StageStats {
        n: n as u64,
        n_eff,
        mean: ms(mean),
        sd: ms(sd),
        min: ms(min as f64),
        p50: ms(median),
        p90: at_least(P90_NEEDS, 0.90),
        p95: at_least(P95_NEEDS, 0.95),
        p99: at_least(P99_NEEDS, 0.99),
        p99_9: at_least(P99_9_NEEDS, 0.999),
        max: ms(max as f64),
        ci95: median_interval(&sorted, n_eff).map(|[lo, hi]| [ms(lo as f64), ms(hi as f64)]),
    })
}

/// Half the width of the median's interval over the median; `None` without an interval.
pub fn relative_half_width(stats: &StageStats) -> Option<f64> {
    let [lo, hi] = stats.ci95?;
    (stats.p50 > 0.0).then(|| (hi - lo) / 2.0 / stats.p50)
}

/// Type 7 quantile of sorted values; `None` when there are none.
pub fn quantile(sorted: &[u64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = at.floor() as usize;
    let (a, b) = (sorted[below] as f64, sorted[(below + 1).min(last)] as f64);
    Some(a + (at - below as f64) * (b - a))
}

/// Median of values in any order, which it reorders; allocates nothing.
pub fn median_ns(values: &mut [u64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (below, &mut upper, _) = values.select_nth_unstable(n / 2);
    let upper = upper as f64;
    match below.iter().max() {
        Some(&lower) if n.is_multiple_of(2) => Some(lower as f64 + (upper - lower as f64) / 2.0),
        _ => Some(upper),
    }
}

/// Nanoseconds as milliseconds.
pub(crate) fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// A sorted copy.
pub(crate) fn sorted(values: &[u64]) -> Vec<u64> {
    let mut copy = values.to_vec();
    copy.sort_unstable();
    copy
}

/// Lower and upper rank (from 1) of the 95 % interval of the median, for `n` samples worth `n_eff`.
///
/// The normal approximation with its half-rank correction never lies inside the exact binomial interval.
fn median_ranks(n: usize, n_eff: f64) -> (usize, usize) {
    let count = n as f64;
    let spread = Z / 2.0 * count / n_eff.sqrt();
    let lower = (((count + 1.0) / 2.0 - spread).floor().max(1.0)) as usize;
    (lower, n + 1 - lower)
}

fn median_interval(sorted: &[u64], n_eff: f64) -> Option<[u64; 2]> {
    if sorted.len() < CI_NEEDS {
        return None;
    }
    let (lower, upper) = median_ranks(sorted.len(), n_eff);
    Some([sorted[lower - 1], sorted[upper - 1]])
}

/// How many successive samples say as much as one independent one: from 1 to `n`.
fn autocorrelation_time(series: &[u64], median: f64) -> f64 {
    let n = series.len();
    let bits = Indicator::new(series, median);
    let variance = bits.covariance(0);
    if n < 4 || variance <= 0.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    let mut smallest = f64::INFINITY;
    let mut lag = 0;
    while lag < (n / 2).min(MAX_LAG) {
        // Sums of neighbouring pairs are positive and falling for any reversible chain; what breaks that is noise.
        let pair = bits.covariance(lag) + bits.covariance(lag + 1);
        if pair <= 0.0 {
            break;
        }
        smallest = smallest.min(pair);
        sum += smallest;
        lag += 2;
    }
    (2.0 * sum / variance - 1.0).clamp(1.0, n as f64)
}

/// The series `1[x <= median]`, a bit a sample: a lag costs n/64 steps, so a million samples need no Fourier transform.
struct Indicator {
    words: Vec<u64>,
    n: usize,
    /// Ones before each word, and all of them at the end.
    before: Vec<u64>,
}

impl Indicator {
    fn new(series: &[u64], median: f64) -> Indicator {
        let mut words = vec![0u64; series.len().div_ceil(64)];
        for (i, &x) in series.iter().enumerate() {
            words[i / 64] |= u64::from(x as f64 <= median) << (i % 64);
        }
        let mut before = Vec::with_capacity(words.len() + 1);
        let mut ones = 0;
        for word in &words {
            before.push(ones);
            ones += u64::from(word.count_ones());
        }
        before.push(ones);
        Indicator { words, n: series.len(), before }
    }

    /// Ones among the first `len` samples.
    fn ones(&self, len: usize) -> u64 {
        let rest = len % 64;
        let partial = if rest == 0 { 0 } else { self.words[len / 64] & ((1 << rest) - 1) };
        self.before[len / 64] + u64::from(partial.count_ones())
    }

    /// Autocovariance at a lag, divided by `n` at every lag as usual.
    fn covariance(&self, lag: usize) -> f64 {
        let (skip, shift) = (lag / 64, lag % 64);
        let mut both = 0u64;
        for i in 0..self.words.len() - skip {
            let high = if shift == 0 { 0 } else { self.words.get(i + skip + 1).map_or(0, |w| w << (64 - shift)) };
            both += u64::from((self.words[i] & (self.words[i + skip] >> shift | high)).count_ones());
        }
        let all = self.ones(self.n);
        let share = all as f64 / self.n as f64;
        let heads = self.ones(self.n - lag);
        let tails = all - self.ones(lag);
        let pairs = (self.n - lag) as f64;
        (both as f64 - share * (heads + tails) as f64 + pairs * share * share) / self.n as f64
    }
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
