//! Two cells that did not run beside each other: of one run or of two.
//!
//! Nothing pairs their rounds, so all that is known of how far they are apart is how much the rounds of each scatter, and
//! whether each held still.

use prony_types::{CellRecord, Verdict};

use crate::note::is_note;
use crate::student::t975;

/// Ratio of medians, either way, from which two runs are not called the same although the interval covers 1.
pub(crate) const DOUBTFUL: f64 = 1.05;

/// Rounds that both must have for a scatter.
pub(crate) const ROUNDS: usize = 3;

/// Which of the two did not hold still, each with what it is called: then no interval made within a run says how far the two are apart.
pub(crate) fn doubts(before: (&str, &CellRecord), now: (&str, &CellRecord)) -> Vec<String> {
    let of = |(name, cell): (&str, &CellRecord)| match cell.verdict {
        Some(verdict @ (Verdict::Unstable | Verdict::Throttled)) => {
            let why = cell.verdict_reasons.first().filter(|reason| !is_note(reason));
            Some(format!("{name} is {verdict}{}", why.map(|why| format!(": {why}")).unwrap_or_default()))
        }
        _ => None,
    };
    [before, now].into_iter().filter_map(of).collect()
}

/// Half width of the difference of two means of logarithms, by Welch; `None` where there are too few rounds.
pub(crate) fn welch(a: &[f64], b: &[f64]) -> Option<f64> {
    let part = |rounds: &[f64]| {
        let logs: Vec<f64> = rounds.iter().filter(|ms| **ms > 0.0).map(|ms| ms.ln()).collect();
        let k = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / k;
        let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (k - 1.0);
        (logs.len() >= ROUNDS).then_some((variance / k, k - 1.0))
    };
    let ((a, free_a), (b, free_b)) = (part(a)?, part(b)?);
    let degrees = (a + b).powi(2) / (a.powi(2) / free_a + b.powi(2) / free_b);
    // Two runs without any scatter have no degrees either; then their medians' own intervals decide.
    let t = if degrees.is_finite() { t975(degrees as usize) } else { 0.0 };
    Some(t * (a + b).sqrt())
}
