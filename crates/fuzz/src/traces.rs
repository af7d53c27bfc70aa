//! How far an input got, as a set of marks: in place of coverage, which needs a compiler of its own.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// Marks of one case.
#[derive(Debug, Default)]
pub struct Traces(HashSet<u64>);

impl Traces {
    /// A stage was reached, with something about it that matters.
    pub fn at(&mut self, stage: &str, detail: impl Display) {
        let mut hasher = DefaultHasher::new();
        (stage, kind(&detail.to_string())).hash(&mut hasher);
        self.0.insert(hasher.finish());
    }

    /// A stage was reached with numbers that matter as they are.
    pub fn at_number(&mut self, stage: &str, detail: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (stage, detail).hash(&mut hasher);
        self.0.insert(hasher.finish());
    }

    /// A stage was reached with a count, of which only the size matters.
    pub fn count(&mut self, stage: &str, count: usize) {
        self.at(
            stage,
            ["none", "one", "few", "some", "many", "lots"][(usize::BITS - count.leading_zeros()).min(5) as usize],
        );
    }

    /// The marks.
    pub fn marks(&self) -> &HashSet<u64> {
        &self.0
    }
}

/// The kind of a message: without the numbers and names that make every one its own.
fn kind(text: &str) -> String {
    let plain = |word: &&str| word.chars().all(|c| c.is_ascii_alphabetic() || "_:,.;'".contains(c));
    // What stands between ticks is out of the file.
    let ours = text.split('`').step_by(2).flat_map(|part| part.split(' '));
    ours.filter(plain).take(16).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_kind_leave_one_mark() {
        let mut traces = Traces::default();
        traces.at("read", "it claims 17 bytes, and 3 are left");
        traces.at("read", "it claims 18446744073709551615 bytes, and 0 are left");
        assert_eq!(traces.marks().len(), 1);
        traces.at("read", "its line has no end");
        traces.at("read", "values of type `a b` cannot be fed");
        traces.at("read", "values of type `c` cannot be fed");
        traces.count("values", 3);
        traces.count("values", 2);
        assert_eq!(traces.marks().len(), 4);
    }
}
