//! What could not be used of a file.

/// Rows that could not be used, each named with its reason: how many, and the first few.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowProblems {
    /// How many there were.
    pub count: u64,
    /// The first of them in words.
    pub first: Vec<String>,
}

impl RowProblems {
    /// Texts that are kept; of more, only the count.
    pub const KEPT: usize = 20;

    /// Notes one. The text is only made when it is kept.
    pub fn note(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(text());
        }
    }

    /// Adds those of a later part.
    pub fn append(&mut self, later: RowProblems) {
        self.count += later.count;
        self.first.extend(later.first);
        self.first.truncate(Self::KEPT);
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_problems_all_are_counted_and_the_first_are_told() {
        let mut problems = RowProblems::default();
        (0..15).for_each(|i| problems.note(|| format!("row {i}")));
        let mut later = RowProblems::default();
        (15..1000).for_each(|i| later.note(|| format!("row {i}")));
        problems.append(later);
        assert_eq!(problems.count, 1000);
        assert_eq!(problems.first.len(), RowProblems::KEPT);
        assert_eq!(problems.first[19], "row 19");
    }
}
