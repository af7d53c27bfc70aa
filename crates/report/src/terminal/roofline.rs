//! What the device allows at best, a line a cell.

use std::fmt::Write as _;

use prony_types::RunRecord;

use super::{NARROWEST, Paint, clean, wrap};

/// A line for every cell that was predicted, or why it was not; empty where there is neither. For who asks for details.
pub fn rooflines(record: &RunRecord, width: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let mut out = String::new();
    for peak in &record.environment.peaks {
        let _ = writeln!(out, "{}", paint.dim(&clean(&format!("peak of {peak}"))));
    }
    for cell in &record.cells {
        let words = match (&cell.roofline, &cell.roofline_absent) {
            (Some(floor), _) => floor.to_string(),
            (None, Some(reason)) => format!("nothing is predicted: {reason}"),
            (None, None) => continue,
        };
        for line in wrap(&format!("{}: {words}", cell.id), width.max(NARROWEST), usize::MAX) {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}
