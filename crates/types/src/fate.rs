//! The end of a cell that never began.

use serde::{Deserialize, Serialize};

use crate::CellStatus;

/// What is already known about a cell that will not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fate {
    /// Skipped, or failed without being tried.
    pub status: CellStatus,
    /// Why.
    pub reason: String,
}
