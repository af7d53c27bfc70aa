//! Cells that were not loaded together: no round of one stands beside a round of the other.

use prony_types::{Difference, Verdict};
use proptest::prelude::*;

use super::tests::{cell, rounds};
use super::{compare, pair};

/// Rounds of a later wave: as they are, after those of the wave before it, in which this cell has none.
fn later(rounds: Vec<Vec<u64>>, after: usize) -> Vec<Vec<u64>> {
    vec![Vec::new(); after].into_iter().chain(rounds).collect()
}

#[test]
fn cells_of_different_waves_got_a_paired_interval() {
    // The machine sways by 20 %, which both share only where their rounds stand beside each other.
    let (a, b) = (rounds(6.6e6, 10, 1), rounds(6e6, 10, 2));
    let (together, apart) = (compare(&a, &b).unwrap(), compare(&later(a, 10), &b).unwrap());
    assert_eq!((together.common_rounds, apart.common_rounds), (10, 0));
    assert_eq!(together.difference, Difference::Slower, "10 % are plain to see in pairs");
    let width = |ci95: Option<[f64; 2]>| ci95.map(|[lo, hi]| hi / lo).unwrap();
    assert!(width(apart.ci95) > 1.1 && width(together.ci95) < 1.05, "{apart:?} {together:?}");
    assert_eq!(
        apart.difference,
        Difference::Inconclusive,
        "what the sway could have made is no difference, and not sameness"
    );
    assert!(apart.reason().contains("not paired (0 rounds in common, 3 are needed)"), "{}", apart.reason());
}

#[test]
fn a_difference_far_beyond_the_sway_is_seen_unpaired_too() {
    let apart = compare(&later(rounds(18e6, 10, 1), 10), &rounds(6e6, 10, 2)).unwrap();
    assert_eq!(apart.difference, Difference::Slower);
    let swapped = compare(&rounds(6e6, 10, 2), &later(rounds(18e6, 10, 1), 10)).unwrap();
    assert_eq!(swapped.difference, Difference::Faster);
}

#[test]
fn a_restless_cell_of_another_wave_cannot_be_told_apart() {
    let by_id = |id: &str| if id == "a" { later(rounds(18e6, 10, 1), 10) } else { rounds(6e6, 10, 2) };
    let (a, b) = (cell("a", 18.0), cell("b", 6.0));
    let calm = pair(&a, &b, &by_id);
    assert_eq!((calm.difference, calm.paired_rounds), (Difference::Slower, Some(0)));
    for verdict in [Verdict::Unstable, Verdict::Throttled] {
        let mut restless = cell("a", 18.0);
        restless.verdict = Some(verdict);
        restless.verdict_reasons = vec!["others took 40 % of the CPU time".into()];
        let found = pair(&restless, &b, &by_id);
        assert_eq!(found.difference, Difference::Inconclusive);
        assert!(
            found.reason.ends_with(&format!("a is {verdict}: others took 40 % of the CPU time")),
            "{}",
            found.reason
        );
    }
}

#[test]
fn a_restless_cell_of_the_same_wave_is_told_apart_by_its_pairs() {
    let by_id = |id: &str| if id == "a" { rounds(18e6, 10, 1) } else { rounds(6e6, 10, 2) };
    let mut restless = cell("a", 18.0);
    restless.verdict = Some(Verdict::Unstable);
    let found = pair(&restless, &cell("b", 6.0), &by_id);
    assert_eq!((found.difference, found.paired_rounds), (Difference::Slower, Some(10)));
}

#[test]
fn the_recommendation_says_that_two_were_not_loaded_together() {
    let by_id = |id: &str| if id == "a" { later(rounds(18e6, 10, 1), 10) } else { rounds(6e6, 10, 2) };
    let run = crate::across::tests::run("r", vec![cell("a", 18.0), cell("b", 6.0)]);
    let advice = crate::advise(&run, &by_id);
    assert_eq!(advice.recommendation[0].cell.as_deref(), Some("b"));
    assert!(advice.recommendation[0].text.contains("not paired: the two were not loaded together"), "{advice:?}");
}

proptest! {
    /// Whatever was measured: swapping the two mirrors the word, and no wave of another is ever a pair.
    #[test]
    fn waves_have_no_pairs(level in 1e5..1e8f64, ratio in 0.5..2.0f64, count in 1usize..12, seed in 0u64..1000) {
        let (a, b) = (later(rounds(level * ratio, count, seed), count), rounds(level, count, seed + 1));
        let (one, other) = (compare(&a, &b).unwrap(), compare(&b, &a).unwrap());
        prop_assert_eq!(one.common_rounds, 0);
        let mirrored = match one.difference {
            Difference::Faster => Difference::Slower,
            Difference::Slower => Difference::Faster,
            same => same,
        };
        prop_assert_eq!(other.difference, mirrored);
    }
}
