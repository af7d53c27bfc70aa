//! Sentences of a verdict that are something to know and no objection.

/// How a sentence starts that is something to know and no objection.
pub const NOTE: &str = "note: ";

/// Whether a reason is something to know and no objection.
pub fn is_note(reason: &str) -> bool {
    reason.starts_with(NOTE)
}
