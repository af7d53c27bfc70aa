//! Quantiles against numpy, ranks against scipy, and the law that the interval keeps its promise.
#![expect(clippy::disallowed_macros, reason = "tests")]

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn golden(text: &str) -> Value {
    serde_json::from_str(text).expect("golden file")
}

#[test]
fn quantiles_mean_and_deviation_are_those_of_numpy() {
    let golden = golden(include_str!("../tests/golden/quantiles.json"));
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() >= 8);
    for case in cases {
        let samples: Vec<u64> = case["samples"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect();
        let stats = summarize(&samples).unwrap();
        let close = |ours: f64, theirs: &Value| {
            let theirs = theirs.as_f64().unwrap();
            assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0), "{ours} against {theirs}");
        };
        close(stats.mean * 1e6, &case["mean"]);
        close(stats.sd * 1e6, &case["sd"]);
        let sorted = sorted(&samples);
        for pair in case["q"].as_array().unwrap() {
            close(quantile(&sorted, pair[0].as_f64().unwrap()).unwrap(), &pair[1]);
        }
        close(median_ns(&mut samples.clone()).unwrap(), &case["q"][2][1]);
    }
}

#[test]
fn ranks_are_never_narrower_than_the_exact_binomial_ones() {
    let golden = golden(include_str!("../tests/golden/median_ranks.json"));
    for row in golden["lower_rank"].as_array().unwrap() {
        let (n, exact) = (row[0].as_u64().unwrap() as usize, row[1].as_u64().unwrap() as usize);
        let (lower, upper) = median_ranks(n, n as f64);
        assert_eq!(lower + upper, n + 1);
        assert!(lower <= exact && exact - lower <= 1, "{n}: {lower} against {exact}");
    }
}

#[test]
fn percentiles_need_their_samples() {
    let stats = |n: u64| summarize(&(1..=n).collect::<Vec<_>>()).unwrap();
    assert_eq!((stats(63).p90, stats(64).p90.is_some()), (None, true));
    assert_eq!((stats(129).p95, stats(130).p95.is_some()), (None, true));
    assert_eq!((stats(661).p99, stats(662).p99.is_some()), (None, true));
    assert_eq!((stats(6_635).p99_9, stats(6_636).p99_9.is_some()), (None, true));
    assert_eq!((stats(5).ci95, stats(6).ci95.is_some()), (None, true));
    assert_eq!(summarize(&[]), None);
}

#[test]
fn one_sample_and_equal_samples_have_figures() {
    let one = summarize(&[2_000_000]).unwrap();
    assert_eq!((one.n, one.mean, one.sd, one.p50, one.ci95), (1, 2.0, 0.0, 2.0, None));
    let equal = summarize(&[3_000_000; 40]).unwrap();
    assert_eq!((equal.n_eff, equal.ci95), (40.0, Some([3.0, 3.0])));
    assert_eq!(relative_half_width(&equal), Some(0.0));
    assert_eq!(relative_half_width(&one), None);
}

#[test]
fn no_outlier_is_removed() {
    let mut samples = vec![1_000_000; 999];
    samples.push(1_001_000_000);
    let stats = summarize(&samples).unwrap();
    assert_eq!((stats.max, stats.mean), (1_001.0, 2.0));
}

#[test]
fn a_drift_is_worth_few_samples_and_an_alternation_not_more_than_there_are() {
    let drift: Vec<u64> = (0..2_000).map(|i| 1_000_000 + i * 100).collect();
    assert!(summarize(&drift).unwrap().n_eff < 10.0);
    let alternation: Vec<u64> = (0..2_000).map(|i| 1_000_000 + i % 2).collect();
    assert_eq!(summarize(&alternation).unwrap().n_eff, 2_000.0);
}

#[test]
fn bits_give_the_covariance_of_the_plain_sum() {
    let mut noise = Noise(7);
    for n in [5, 63, 64, 65, 200, 333] {
        let series: Vec<u64> = (0..n).map(|_| (noise.uniform() * 1e6) as u64).collect();
        let median = quantile(&sorted(&series), 0.5).unwrap();
        let ones: Vec<f64> = series.iter().map(|&x| f64::from(u8::from(x as f64 <= median))).collect();
        let mean = ones.iter().sum::<f64>() / n as f64;
        let bits = Indicator::new(&series, median);
        for lag in [0, 1, 2, 31, 62, 63, 64, 65, 127, 128, 190].into_iter().filter(|&lag| lag < n as usize) {
            let plain: f64 =
                ones.iter().zip(&ones[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n as f64;
            assert!((bits.covariance(lag) - plain).abs() < 1e-12, "n {n}, lag {lag}");
        }
    }
}

/// Seeded noise of our own, so that the coverage below is the same everywhere.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Share of series whose interval holds the true median.
fn coverage(n: usize, rho: f64, seed: u64) -> f64 {
    let runs = 600;
    let mut noise = Noise(seed);
    let mut held = 0;
    for _ in 0..runs {
        let mut x = noise.normal();
        let series: Vec<u64> = (0..n)
            .map(|_| {
                x = rho * x + (1.0 - rho * rho).sqrt() * noise.normal();
                // Skewed as latencies are; the median of the normal goes to 10 ms.
                (10_000_000.0 * (0.1 * x).exp()) as u64
            })
            .collect();
        let [lo, hi] = summarize(&series).unwrap().ci95.unwrap();
        held += u32::from(lo <= 10.0 && 10.0 <= hi);
    }
    f64::from(held) / f64::from(runs)
}

#[test]
fn the_interval_holds_the_true_median_as_often_as_it_says() {
    for (n, rho) in [(100, 0.0), (700, 0.0), (700, 0.5), (700, 0.8), (3_000, 0.8), (3_000, 0.95)] {
        let share = coverage(n, rho, 11);
        println!("n {n}, rho {rho}: {share}");
        assert!((0.90..=0.99).contains(&share), "n {n}, rho {rho}: {share}");
    }
}

proptest! {
    #[test]
    fn quantiles_are_monotone(
        samples in prop::collection::vec(0u64..1_000_000_000, 1..300), a in 0.0..1.0f64, b in 0.0..1.0f64,
    ) {
        let sorted = sorted(&samples);
        let (a, b) = (a.min(b), a.max(b));
        prop_assert!(quantile(&sorted, a) <= quantile(&sorted, b));
        let stats = summarize(&samples).unwrap();
        let slack = 1e-9 * stats.max;
        prop_assert!(stats.min <= stats.p50 && stats.p50 <= stats.max);
        prop_assert!(stats.min - slack <= stats.mean && stats.mean <= stats.max + slack);
        prop_assert!(stats.p90.unwrap_or(stats.max) <= stats.p95.unwrap_or(stats.max));
        prop_assert!((1.0..=stats.n as f64).contains(&stats.n_eff));
        if let Some([lo, hi]) = stats.ci95 {
            prop_assert!(lo <= stats.p50 && stats.p50 <= hi);
        }
    }

    #[test]
    fn the_median_does_not_depend_on_the_order(samples in prop::collection::vec(0u64..1_000_000, 1..200)) {
        let by_sorting = quantile(&sorted(&samples), 0.5);
        prop_assert_eq!(median_ns(&mut samples.clone()), by_sorting);
    }
}
