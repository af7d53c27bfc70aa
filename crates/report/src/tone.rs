//! How words are to be taken, for the colours of terminal and HTML.

/// How a word is to be taken; the word itself always stands beside the colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Can be stood behind.
    Good,
    /// To be read with care.
    Care,
    /// Must not be used.
    Bad,
    /// There is nothing to judge.
    Neutral,
}

impl Tone {
    /// Class name in HTML.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Care => "care",
            Tone::Bad => "bad",
            Tone::Neutral => "neutral",
        }
    }
}
