//! Numbers that are the same for the same seed, on every machine.

/// A generator: splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound; 0 where there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.number() % bound as u64) as usize }
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of several things.
    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        things.get(self.below(things.len()))
    }

    /// A length: mostly short, at times up to the bound.
    pub fn length(&mut self, bound: usize) -> usize {
        let bits = self.below(usize::BITS as usize - bound.leading_zeros() as usize + 1);
        self.below(bound.min(1 << bits.min(62)) + 1)
    }

    /// A number that breaks things: at the edges of the types, or of what is allowed.
    pub fn edge(&mut self) -> u64 {
        let shift = self.below(64);
        match self.below(8) {
            0 => 0,
            1 => u64::MAX >> shift,
            2 => 1 << shift,
            3 => (1u64 << shift).wrapping_sub(1),
            4 => i64::MIN as u64,
            5 => u64::MAX - self.below(16) as u64,
            6 => self.below(256) as u64,
            _ => self.number(),
        }
    }
}
