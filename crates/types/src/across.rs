//! Two runs against each other: what `prony compare` finds. Absent means not measured, never 0.

use serde::{Deserialize, Serialize};

use crate::{AccuracyComparison, Difference, ExitCode, Gate};

/// Version of the format of `prony compare --json`.
pub const COMPARE_SCHEMA: &str = "prony.compare/1";

/// A run held against an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunComparison {
    /// Always [`COMPARE_SCHEMA`].
    pub schema: String,
    /// Id of the run that is the measure.
    pub baseline: String,
    /// Id of the run that is held against it.
    pub run: String,
    /// How figures were compared.
    pub method: String,
    /// Every cell that both runs have, in the order of `run`.
    pub rows: Vec<RowComparison>,
    /// Ids of cells that `run` does not have.
    pub only_in_baseline: Vec<String>,
    /// Ids of cells that `baseline` does not have.
    pub only_in_run: Vec<String>,
    /// Limits and whether they held.
    pub gates: Vec<Gate>,
    /// What else to know about the two runs.
    pub notes: Vec<String>,
    /// How the command ends.
    pub exit_code: ExitCode,
}

/// What became of a pair of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOutcome {
    /// The figures stand beside each other.
    Compared,
    /// Something was not the same, and it was compared all the same.
    Forced,
    /// Something was not the same, so nothing was compared.
    Refused,
    /// One of the two has no figures.
    NotMeasured,
}

impl RowOutcome {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            RowOutcome::Compared => "compared",
            RowOutcome::Forced => "forced",
            RowOutcome::Refused => "refused",
            RowOutcome::NotMeasured => "not-measured",
        }
    }
}

/// One cell in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowComparison {
    /// Id of the cell.
    pub cell: String,
    /// What became of it.
    pub outcome: RowOutcome,
    /// Why it was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What makes the two not comparable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<FieldDifference>,
    /// What else is not the same: often the very thing that is compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<FieldDifference>,
    /// Median of `total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyComparison>,
    /// Peak memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryComparison>,
    /// mAP50-95.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<AccuracyComparison>,
}

/// A field that is not the same in two rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldDifference {
    /// Its name.
    pub field: String,
    /// In the baseline.
    pub baseline: String,
    /// In the run.
    pub run: String,
}

impl std::fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} against {}", self.field, self.run, self.baseline)
    }
}

/// The medians of `total` of one cell in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyComparison {
    /// Of the baseline.
    pub baseline_ms: f64,
    /// Of the run.
    pub run_ms: f64,
    /// The second over the first.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// The word for it.
    pub difference: Difference,
    /// Where it is inconclusive: seconds that each run should be measured for, at the scatter that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure_s: Option<f64>,
    /// What makes it so, in words.
    pub reason: String,
}

/// Peak memory of one cell in two runs: of host and device the one that grew most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryComparison {
    /// `host` or `device`.
    pub of: String,
    /// Of the baseline.
    pub baseline_mib: f64,
    /// Of the run.
    pub run_mib: f64,
    /// The second over the first.
    pub growth: f64,
}
