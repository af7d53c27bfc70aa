//! When warm-up is over.
//!
//! Time is cut into windows long enough for a median to mean something; the session is steady when three windows in a
//! row have the same median and the newest is not still on its way down. Runs inside the worker's loop, so after
//! construction it allocates nothing.

use crate::stats::median_ns;

/// Values a window keeps; a faster model's are thinned evenly.
const KEPT: usize = 512;
/// How far apart three medians in a row may be.
const SPREAD: f64 = 1.05;
/// A fall over three windows that still counts as going down.
const FALL: f64 = 0.02;
/// No verdict before this long.
const MIN_NS: u64 = 300_000_000;

/// Fed with every frame of the warm-up; says when it may end.
#[derive(Debug)]
pub struct SteadyDetector {
    first_ns: Option<u64>,
    window_start_ns: u64,
    seen: u64,
    stride: u64,
    kept: Vec<u64>,
    medians: [f64; 3],
    windows: u64,
    steady: bool,
}

impl Default for SteadyDetector {
    fn default() -> SteadyDetector {
        SteadyDetector::new()
    }
}

impl SteadyDetector {
    /// Nothing seen yet.
    pub fn new() -> SteadyDetector {
        SteadyDetector {
            first_ns: None,
            window_start_ns: 0,
            seen: 0,
            stride: 1,
            kept: Vec::with_capacity(KEPT),
            medians: [0.0; 3],
            windows: 0,
            steady: false,
        }
    }

    /// Takes one frame in; true when the newest three windows show a steady state.
    pub fn push(&mut self, start_ns: u64, total_ns: u64) -> bool {
        let first_ns = *self.first_ns.get_or_insert(start_ns);
        if self.seen == 0 {
            self.window_start_ns = start_ns;
        }
        self.keep(total_ns);
        let end_ns = start_ns.saturating_add(total_ns);
        if window_is_full(self.seen, end_ns.saturating_sub(self.window_start_ns)) {
            self.close();
            self.steady = end_ns.saturating_sub(first_ns) >= MIN_NS && self.windows >= 3 && settled(&self.medians);
        }
        self.steady
    }

    fn keep(&mut self, total_ns: u64) {
        if self.seen.is_multiple_of(self.stride) {
            if self.kept.len() == KEPT {
                for i in 0..KEPT / 2 {
                    self.kept[i] = self.kept[2 * i];
                }
                self.kept.truncate(KEPT / 2);
                self.stride *= 2;
            }
            // After thinning the newest may be one of those that are now left out.
            if self.seen.is_multiple_of(self.stride) {
                self.kept.push(total_ns);
            }
        }
        self.seen += 1;
    }

    fn close(&mut self) {
        if let Some(median) = median_ns(&mut self.kept) {
            self.medians.rotate_left(1);
            self.medians[2] = median;
            self.windows += 1;
        }
        self.kept.clear();
        self.seen = 0;
        self.stride = 1;
    }
}

/// Slow models would need minutes for eight frames three times, so they get by with fewer.
fn window_is_full(seen: u64, span_ns: u64) -> bool {
    let span_ms = span_ns / 1_000_000;
    seen >= 8 && span_ms >= 60 || seen >= 3 && span_ms >= 300 || span_ms >= 2_000
}

fn settled(medians: &[f64; 3]) -> bool {
    let [a, b, c] = *medians;
    let (lo, hi) = (a.min(b).min(c), a.max(b).max(c));
    let still_falling = a > b && b > c && c < a * (1.0 - FALL);
    hi <= lo * SPREAD && !still_falling
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes frames back to back until steady; the time and count it took.
    fn run(mut total_ns: impl FnMut(u64) -> u64, most: u64) -> Option<(u64, u64)> {
        let mut detector = SteadyDetector::new();
        let mut now = 1_000;
        for i in 0..most {
            let took = total_ns(i);
            let steady = detector.push(now, took);
            now += took;
            if steady {
                return Some((now - 1_000, i + 1));
            }
        }
        None
    }

    #[test]
    fn constant_frames_are_steady_after_the_minimum_time() {
        for frame_ns in [10_000, 1_000_000, 7_000_000] {
            let (took, _) = run(|_| frame_ns, 1_000_000).unwrap();
            assert!((MIN_NS..MIN_NS + 150_000_000).contains(&took), "{frame_ns}: {took}");
        }
    }

    #[test]
    fn a_slow_model_needs_few_frames() {
        assert_eq!(run(|_| 150_000_000, 100).unwrap().1, 9);
        assert_eq!(run(|_| 2_500_000_000, 100).unwrap().1, 3);
    }

    #[test]
    fn a_model_that_speeds_up_is_not_steady_before_it_has() {
        // From 12 ms down to 6 ms over 200 frames.
        let (_, frames) = run(|i| 12_000_000 - 30_000 * i.min(200), 10_000).unwrap();
        assert!(frames >= 180, "{frames}");
    }

    #[test]
    fn a_model_that_jumps_about_is_never_steady() {
        assert_eq!(run(|i| if (i / 10).is_multiple_of(2) { 6_000_000 } else { 9_000_000 }, 5_000), None);
    }

    #[test]
    fn a_slow_fall_within_the_spread_is_still_a_fall() {
        assert!(!settled(&[1.04, 1.02, 1.0]));
        assert!(settled(&[1.01, 1.005, 1.0]));
        assert!(settled(&[1.0, 1.02, 1.04]));
        assert!(!settled(&[1.0, 1.0, 1.06]));
    }

    #[test]
    fn thinning_keeps_the_window_even_and_small() {
        let mut detector = SteadyDetector::new();
        for i in 0..5_000 {
            detector.keep(i);
        }
        assert!(detector.kept.len() <= KEPT && detector.kept.len() > KEPT / 4);
        let steps: Vec<u64> = detector.kept.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(steps.iter().all(|&s| s == detector.stride), "{steps:?}");
        assert_eq!(detector.kept.capacity(), KEPT);
    }
}
