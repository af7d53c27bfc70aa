//! What must hold of a record before anything is done with it. It may come from anybody, and its names lead to files.

use std::collections::BTreeSet;

use prony_types::{RunRecord, slug_of};

/// Longest name of a folder.
const LONGEST: usize = 255;

/// Why a record is none that Prony wrote, where that can be told.
pub(crate) fn problem(record: &RunRecord) -> Option<String> {
    let planned = record.plan.cells.iter().chain(&record.plan.standby).map(|cell| &cell.id);
    planned
        .chain(record.cells.iter().map(|cell| &cell.id))
        .find_map(|id| no_folder(id))
        .or_else(|| {
            record.cells.iter().find_map(|cell| {
                let slug = slug_of(&cell.id);
                let named = (cell.id.escape_debug(), cell.slug.escape_debug());
                (cell.slug != slug).then(|| format!("the folder of cell `{}` is `{slug}`, not `{}`", named.0, named.1))
            })
        })
        .or_else(|| {
            let mut slugs = BTreeSet::new();
            let twice = record.cells.iter().find(|cell| !slugs.insert(cell.slug.as_str()))?;
            Some(format!("two cells have the folder `{}`", twice.slug))
        })
}

/// Why an id gives no name for a folder.
fn no_folder(id: &str) -> Option<String> {
    let slug = slug_of(id);
    let unusable = matches!(slug.as_str(), "" | "." | "..") || slug.len() > LONGEST;
    unusable.then(|| {
        let start: String = id.chars().take(40).collect();
        format!("`{}` cannot be the id of a cell", start.escape_debug())
    })
}
