use super::*;

/// Values of a bell curve with a tail, the same every time.
fn values(count: usize) -> Vec<f32> {
    let mut state = 99u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    (0..count).map(|i| (normal() * if i % 100 == 0 { 6.0 } else { 1.0 }) as f32).collect()
}

/// What a tensor loses when it is rounded to bytes of this range.
fn true_error(values: &[f32], clip: f64) -> f64 {
    let step = clip / LEVELS;
    let error = |&x: &f32| {
        let x = f64::from(x);
        (x - (x / step).round_ties_even().clamp(-LEVELS, LEVELS) * step).powi(2)
    };
    values.iter().map(error).sum()
}

#[test]
fn minmax_is_the_largest_magnitude() {
    let histogram = Histogram::of(&[0.25, -3.5, 1.0]);
    assert_eq!(clip(&histogram, CalibrationMethod::MinMax), 3.5);
}

#[test]
fn nothing_but_zeros_has_no_range() {
    for &method in CalibrationMethod::ALL {
        assert_eq!(clip(&Histogram::of(&[0.0; 100]), method), 0.0, "{method}");
    }
}

#[test]
fn one_magnitude_is_its_own_range() {
    for &method in CalibrationMethod::ALL {
        let clip = clip(&Histogram::of(&[-0.7; 1000]), method);
        // Half a step less is as near to it.
        assert!((clip - f64::from(0.7f32)).abs() <= 0.7 / LEVELS, "{method}: {clip}");
    }
}

#[test]
fn a_percentile_leaves_out_what_it_says() {
    let values = values(50_000);
    let histogram = Histogram::of(&values);
    let clip = clip(&histogram, CalibrationMethod::Percentile);
    let mut sorted: Vec<f64> = values.iter().map(|x| f64::from(x.abs())).collect();
    sorted.sort_by(f64::total_cmp);
    // The five largest of fifty thousand.
    let exact = sorted[50_000 - 6];
    assert!(clip >= exact && clip - exact <= histogram.width(), "{clip} {exact}");
    assert_eq!(values.iter().filter(|x| f64::from(x.abs()) > clip).count(), 5);
}

#[test]
fn mse_is_as_good_as_trying_every_range() {
    let values = values(20_000);
    let histogram = Histogram::of(&values);
    let max = f64::from(histogram.max());
    let found = clip(&histogram, CalibrationMethod::Mse);
    let tried = (100..=1000).map(|part| true_error(&values, max * f64::from(part) / 1000.0));
    let best = tried.min_by(f64::total_cmp).unwrap();
    assert!(true_error(&values, found) <= best * 1.02, "{} {best}", true_error(&values, found));
}

#[test]
fn values_spread_evenly_need_their_whole_range() {
    let even: Vec<f32> = (0..100_000).map(|i| i as f32 / 100_000.0).collect();
    let histogram = Histogram::of(&even);
    for &method in CalibrationMethod::ALL {
        let clip = clip(&histogram, method);
        assert!(clip > 0.97 && clip <= 1.0, "{method}: {clip}");
    }
}

/// The divergence by its definition: two distributions over all bins, made bin by bin.
fn plain_divergence(counts: &[u64], bins: usize) -> f64 {
    let mut is: Vec<f64> = counts[..bins].iter().map(|&count| count as f64).collect();
    is[bins - 1] += counts[bins..].iter().sum::<u64>() as f64;
    let levels = 128.min(bins);
    let mut said = vec![0.0; bins];
    for level in 0..levels {
        let range = level * bins / levels..(level + 1) * bins / levels;
        let filled: Vec<usize> = range.clone().filter(|&i| counts[i] > 0).collect();
        let sum: u64 = counts[range].iter().sum();
        filled.iter().for_each(|&i| said[i] = sum as f64 / filled.len() as f64);
    }
    let (total, said_total) = (is.iter().sum::<f64>(), said.iter().sum::<f64>());
    if said[bins - 1] == 0.0 {
        said[bins - 1] = 1.0 / BINS as f64;
    }
    let part =
        |(is, said): (&f64, &f64)| if *is == 0.0 { 0.0 } else { is / total * (is / total / (said / said_total)).ln() };
    is.iter().zip(&said).map(part).sum()
}

#[test]
fn entropy_is_the_divergence_by_its_definition() {
    let histogram = Histogram::of(&values(30_000));
    let counts = histogram.counts();
    for bins in [1, 100, 128, 129, 500, 777, counts.len()] {
        let (fast, plain) = (divergence(counts, bins), plain_divergence(counts, bins));
        assert!((fast - plain).abs() < 1e-9, "{bins}: {fast} {plain}");
    }
    let found = clip(&histogram, CalibrationMethod::Entropy);
    let bins = (found / histogram.width()).round() as usize;
    let least = (128..counts.len()).step_by(16).map(|bins| plain_divergence(counts, bins)).fold(f64::MAX, f64::min);
    assert!(plain_divergence(counts, bins) <= least, "{bins}");
}

#[test]
fn no_range_is_beyond_what_was_seen() {
    let histogram = Histogram::of(&values(3000));
    for &method in CalibrationMethod::ALL {
        let clip = clip(&histogram, method);
        assert!(clip > 0.0 && clip <= f64::from(histogram.max()), "{method}: {clip}");
    }
}
