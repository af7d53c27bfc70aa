//! How right the cells are, and how they agree with themselves.

use prony_types::{CellRecord, RunRecord};

use super::{fact_list, heading, line, prose, text};
use crate::accuracy;
use crate::figure;

/// The twelve figures of every cell, their differences, and the data.
pub(super) fn section(out: &mut String, record: &RunRecord) {
    if !accuracy::told(record) {
        return;
    }
    heading(out, 2, "Accuracy");
    if accuracy::any(record) {
        figures(out, record);
    }
    for comparison in &record.accuracy_comparisons {
        let interval = comparison.ci95.map_or_else(String::new, |[lo, hi]| {
            format!(", ci95 {} to {} points", accuracy::points(lo), accuracy::points(hi))
        });
        let (cell, against) = (text(&comparison.cell), text(&comparison.against));
        let sentence = format!("- {cell} is **{}** against {against}{interval}", comparison.difference);
        line(out, &format!("{sentence}: {}", prose(&comparison.reason)));
    }
    for (cell, reason) in accuracy::absent(record) {
        line(out, &format!("- {} was not scored: {}", text(&cell.id), prose(reason)));
    }
    for scored in accuracy::scored(record) {
        line(out, &format!("\n**Data: {}**\n", text(&scored.data.name)));
        fact_list(out, &accuracy::data_facts(&scored));
        for problem in accuracy::problems(scored.data, usize::MAX) {
            line(out, &format!("  - {}", text(&problem)));
        }
    }
}

fn figures(out: &mut String, record: &RunRecord) {
    let [first, rest @ ..] = accuracy::HEADS;
    line(out, &format!("| cell | {first} | ci95 | {} | images | boxes |", rest.join(" | ")));
    line(out, &format!("|---|{}", "---:|".repeat(rest.len() + 4)));
    for cell in &record.cells {
        let Some(accuracy) = &cell.accuracy else { continue };
        let [first, rest @ ..] = accuracy::figures(accuracy);
        let (images, boxes) = (figure::count(accuracy.images), figure::count(accuracy.detections));
        let ci95 = accuracy::interval(accuracy);
        let fields = format!("{first} | {ci95} | {} | {images} | {boxes}", rest.join(" | "));
        line(out, &format!("| {} | {fields} |", text(&cell.id)));
    }
    out.push('\n');
}

/// The classes and curves of one cell.
pub(super) fn of_cell(out: &mut String, cell: &CellRecord) {
    let Some(accuracy) = &cell.accuracy else { return };
    let mut table = |title: &str, heads: &[&str], rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            line(out, &format!("\n{title}:\n"));
            line(out, &format!("| {} |", heads.join(" | ")));
            line(out, &format!("|---|{}", "---:|".repeat(heads.len() - 1)));
        }
        for row in rows {
            let fields: Vec<String> = row.iter().map(|field| text(field)).collect();
            line(out, &format!("| {} |", fields.join(" | ")));
        }
    };
    let classes = accuracy::classes(accuracy).into_iter().map(Vec::from).collect();
    table("Accuracy by class", &accuracy::CLASS_HEADS, classes);
    let curves = accuracy::curves(accuracy).into_iter().map(Vec::from).collect();
    table("Precision by recall, mean over classes", &accuracy::CURVE_HEADS, curves);
}
