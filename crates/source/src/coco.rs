//! COCO's files: `instances*.json` with the truth, result files with what a detector said.
//!
//! Real files have flaws, and one bad row of half a million must not cost the other rows: what cannot be used is named
//! in [`RowProblems`] and left out. Only what is no JSON, or has another shape, is an error. Python writes `NaN` and
//! `Infinity` into its JSON, so these are read as numbers here.

mod instances;
mod results;
mod row_problems;
mod scan;
mod writer;

pub use instances::{Annotation, Category, ImageEntry, Instances, read_instances};
pub use results::{ResultRow, Results, read_results};
pub use row_problems::RowProblems;
pub use writer::ResultWriter;

use std::path::Path;

use prony_files::Kind;

use self::scan::Fault;
use crate::SourceError;

fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    prony_files::read(path, Kind::Annotations).map_err(SourceError::io(path, "read the file"))
}

/// A fault as an error that an editor can jump to.
fn malformed(path: &Path, bytes: &[u8], fault: Fault) -> SourceError {
    let before = &bytes[..fault.at.min(bytes.len())];
    let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|&&b| b != b'\n').count();
    SourceError::Malformed { path: path.to_path_buf(), line, column, reason: fault.reason }
}

/// Why a box cannot be used; `None` where it can. A box of no size is one: COCO counts it.
fn flaw(bbox: [f64; 4]) -> Option<&'static str> {
    match bbox {
        b if b.iter().any(|v| !v.is_finite()) => Some("is not finite"),
        [_, _, w, h] if w < 0.0 || h < 0.0 => Some("has a negative size"),
        // Its far corner or its area would be infinite, and so no overlap could be worked out.
        [x, y, w, h] if ![x + w, y + h, w * h].iter().all(|v| v.is_finite()) => Some("is beyond all bounds"),
        _ => None,
    }
}
