//! What was found, for people.

use std::fmt::Write as _;

use prony_judge::agreement::WORST;
use prony_run::inline::compare::{Finding, NO_BOXES, NodesFinding};
use prony_types::TensorAgreement;

/// The whole of it.
pub(super) fn text(finding: &Finding) -> String {
    let mut out = String::new();
    for (letter, side) in [("a", &finding.a), ("b", &finding.b)] {
        let version = side.backend.version.as_deref().unwrap_or_default();
        let head = side.head.as_ref().map(|head| format!(", head {head}")).unwrap_or_default();
        let _ = writeln!(out, "{letter}: {} on {} {version}, {}{head}", side.model, side.backend.name, side.executed);
    }
    let _ = writeln!(out, "{} frames: {}; worst of each figure\n", finding.frames, finding.input);
    let mut rows = vec![["", "cosine", "SQNR", "max abs", ""].map(str::to_owned)];
    for output in &finding.outputs {
        let name = if output.a == output.b { output.a.clone() } else { format!("{} / {}", output.a, output.b) };
        rows.push(row(format!("output {name}"), &output.agreement, output.agree));
    }
    if let Some(heads) = &finding.heads {
        for (name, tensor) in [("boxes", heads.boxes), ("scores", heads.scores), ("masks and key points", heads.rest)] {
            rows.extend(tensor.map(|tensor| row(name.to_owned(), &tensor, finding.bounds.hold(&tensor))));
        }
    }
    out += &table(&rows);
    let _ = match finding.heads.as_ref().map(|heads| heads.matched_boxes) {
        Some(Some(share)) => {
            let word = if share >= finding.bounds.matched_boxes { "" } else { "  differs" };
            writeln!(out, "matched boxes after NMS: {:.1} %{word}", share * 100.0)
        }
        Some(None) => writeln!(out, "{NO_BOXES}"),
        None => Ok(()),
    };
    if !finding.unmatched.is_empty() {
        let _ = writeln!(out, "only one of them has: {}", finding.unmatched.join(", "));
    }
    if let Some(nodes) = &finding.nodes {
        out += &nodes_text(nodes);
    }
    let (word, db) = (if finding.agree { "they agree" } else { "they do not agree" }, finding.bounds.sqnr_db);
    let boxes = match finding.heads.as_ref().is_some_and(|heads| heads.matched_boxes.is_none()) {
        true => String::new(),
        false => format!(", {:.0} % of the boxes", finding.bounds.matched_boxes * 100.0),
    };
    let _ = writeln!(out, "\n{word} (least {db} dB for {}{boxes})", finding.precision);
    out
}

fn nodes_text(nodes: &NodesFinding) -> String {
    let NodesFinding { common, looked_at, first, around } = nodes;
    let mut out = match first {
        Some(node) => format!("\nfirst node that diverges: {} ({}), output {}\n", node.node, node.op, node.tensor),
        None => format!("\nno node diverges among {looked_at} of {common} that both have; the noisiest:\n"),
    };
    let mut rows = Vec::new();
    for node in around {
        let name = format!("{} ({})", node.node, node.op);
        rows.push(row(name, &node.agreement, !node.diverges));
    }
    out += &table(&rows);
    out
}

fn row(name: String, found: &TensorAgreement, agree: bool) -> [String; 5] {
    let incomparable = found.max_abs == WORST;
    let sqnr = match found.sqnr_db {
        None => "equal".to_owned(),
        Some(db) if db == -WORST => "–".to_owned(),
        Some(db) => format!("{db:.1} dB"),
    };
    let max_abs = if incomparable { "–".to_owned() } else { format!("{:.3e}", found.max_abs) };
    let word = match (incomparable, agree) {
        (true, _) => "not comparable: another length, NaN or infinity",
        (false, false) => "differs",
        (false, true) => "",
    };
    [name, format!("{:.6}", found.cosine), sqnr, max_abs, word.to_owned()]
}

/// Columns as wide as their widest entry.
fn table(rows: &[[String; 5]]) -> String {
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let line = |row: &[String; 5]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
