//! What a fact of a report is made of.

/// A label and what belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) value: String,
}

/// Facts under one heading.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) facts: Vec<Fact>,
}
