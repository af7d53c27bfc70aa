//! Words of judgement.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a measurement can be trusted, and if not, why.
///
/// The order is the order of severity: where several hold, the greatest is the verdict and all are reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The figures can be stood behind.
    Valid,
    /// Something needed to judge could not be read.
    Unknown,
    /// Too few samples, or too wide an interval.
    Undersampled,
    /// The machine did not hold still: rounds disagree or a steady state was never reached.
    Unstable,
    /// The device lowered its clocks while measuring.
    Throttled,
    /// A memory budget was broken.
    OverBudget,
    /// Part of the model ran somewhere else than asked.
    FellBack,
    /// The outputs are not those of the model.
    WrongOutput,
}

impl Verdict {
    /// The word used in reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Unknown => "unknown",
            Verdict::Undersampled => "undersampled",
            Verdict::Unstable => "unstable",
            Verdict::Throttled => "throttled",
            Verdict::OverBudget => "over-budget",
            Verdict::FellBack => "fell-back",
            Verdict::WrongOutput => "wrong-output",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How one cell compares with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// Less time a frame, beyond the noise.
    Faster,
    /// More time a frame, beyond the noise.
    Slower,
    /// No difference that matters in practice, and the measurement can tell.
    Same,
    /// The interval is too wide to tell: measure longer, or on a quieter machine.
    Inconclusive,
    /// Not the same thing: the two were not measured alike.
    NotComparable,
}

impl Difference {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Difference::Faster => "faster",
            Difference::Slower => "slower",
            Difference::Same => "same",
            Difference::Inconclusive => "inconclusive",
            Difference::NotComparable => "not-comparable",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
