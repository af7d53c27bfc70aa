//! SplitMix64: a counter and a mixer, so any stream can start anywhere and every machine draws the same.

/// The golden ratio in 64 bits: the step of the counter.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of random numbers.
pub(crate) struct Rng(u64);

impl Rng {
    /// The stream of one purpose in one scene. Streams do not depend on each other, so that a new colour does not
    /// move the objects.
    pub(crate) fn new(seed: u64, index: u32, purpose: u64) -> Rng {
        Rng(mix(mix(seed).wrapping_add(u64::from(index)).wrapping_mul(STEP)) ^ mix(purpose.wrapping_add(STEP)))
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn range(&mut self, low: i32, high: i32) -> i32 {
        let span = (i64::from(high) - i64::from(low) + 1) as u64;
        low + (((self.bits() >> 32) * span) >> 32) as i32
    }

    /// True `percent` times in a hundred.
    pub(super) fn chance(&mut self, percent: i32) -> bool {
        self.range(0, 99) < percent
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_covered_and_kept() {
        let mut rng = Rng::new(1, 2, 3);
        let mut seen = [0; 7];
        for _ in 0..7000 {
            seen[(rng.range(-3, 3) + 3) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }

    #[test]
    fn seeds_indices_and_purposes_all_matter() {
        let first = |seed, index, purpose| Rng::new(seed, index, purpose).bits();
        let base = first(7, 0, 0);
        assert!([first(8, 0, 0), first(7, 1, 0), first(7, 0, 1)].iter().all(|&other| other != base));
    }
}
