//! What could not be used: every one counted, the first few of each kind named.

use std::collections::BTreeMap;

/// How many of a kind are named.
const NAMED: usize = 5;

/// Things that are wrong with a data set, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    kinds: BTreeMap<&'static str, Kind>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kind {
    count: u64,
    named: Vec<String>,
}

impl Problems {
    /// Counts one. `kind` reads well after a number: `missing images`.
    pub fn add(&mut self, kind: &'static str, what: impl Into<String>) {
        let kind = self.kinds.entry(kind).or_default();
        kind.count += 1;
        if kind.named.len() < NAMED {
            kind.named.push(what.into());
        }
    }

    /// Counts what was found elsewhere: `named` are the first few of `count`.
    pub(super) fn absorb(&mut self, kind: &'static str, count: u64, named: impl IntoIterator<Item = String>) {
        if count > 0 {
            let kind = self.kinds.entry(kind).or_default();
            kind.count += count;
            kind.named.extend(named);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.kinds.values().map(|kind| kind.count).sum()
    }

    /// The first few of every kind, each with its reason.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.kinds.values().flat_map(|kind| kind.named.iter().map(String::as_str))
    }

    /// Each kind with its count and its first few.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64, &[String])> {
        self.kinds.iter().map(|(name, kind)| (*name, kind.count, kind.named.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_a_few_of_each_kind_named() {
        let mut problems = Problems::default();
        (0..9).for_each(|i| problems.add("missing images", format!("{i}.jpg: no such file")));
        problems.add("bad boxes", "annotation 7: its box is [NaN, 0, 1, 1]");
        assert_eq!(problems.count(), 10);
        assert_eq!(problems.named().count(), NAMED + 1);
        let kinds: Vec<_> = problems.kinds().map(|(name, count, _)| (name, count)).collect();
        assert_eq!(kinds, [("bad boxes", 1), ("missing images", 9)]);
    }
}
