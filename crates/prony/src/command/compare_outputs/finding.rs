//! What was found, as JSON and as text.

use std::fmt::Write as _;

use crate::output::print;
use prony_judge::agreement::WORST;
use prony_types::{Agreement, ArtifactSpec, BackendRecord, Precision, TensorAgreement};
use serde::Serialize;

/// Version of the format of `--json`.
pub(super) const SCHEMA: &str = "prony.compare-outputs/1";

/// Said instead of a share of boxes.
pub(super) const NO_BOXES: &str =
    "no box was found on either side, or too many to choose from, so boxes after NMS were not compared";

/// Everything about two models.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) schema: &'static str,
    pub(super) a: SideRecord,
    pub(super) b: SideRecord,
    /// In words.
    pub(super) input: String,
    pub(super) frames: usize,
    /// The coarser of the two, whose bounds hold.
    pub(super) precision: Precision,
    pub(super) bounds: Thresholds,
    /// Worst over the frames, output by output.
    pub(super) outputs: Vec<OutputFinding>,
    /// Outputs that only one of them has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unmatched: Vec<String>,
    /// Boxes and scores apart, where both have a head that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) heads: Option<Agreement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nodes: Option<NodesFinding>,
    pub(super) notes: Vec<String>,
    pub(super) agree: bool,
}

/// One of the two.
#[derive(Debug, Serialize)]
pub(super) struct SideRecord {
    pub(super) model: String,
    pub(super) sha256: String,
    /// The engine that was built from the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) engine: Option<ArtifactSpec>,
    pub(super) backend: BackendRecord,
    pub(super) executed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<String>,
}

/// How near they must be.
#[derive(Debug, Serialize)]
pub(super) struct Thresholds {
    pub(super) sqnr_db: f64,
    /// Absent where the user's own bound counts alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cosine: Option<f64>,
    pub(super) matched_boxes: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct OutputFinding {
    pub(super) a: String,
    pub(super) b: String,
    #[serde(flatten)]
    pub(super) agreement: TensorAgreement,
    pub(super) agree: bool,
}

/// What the nodes gave.
#[derive(Debug, Serialize)]
pub(super) struct NodesFinding {
    /// Tensors that both compute.
    pub(super) common: usize,
    pub(super) looked_at: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<NodeFinding>,
    /// The nodes around it; the noisiest where none diverges.
    pub(super) around: Vec<NodeFinding>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct NodeFinding {
    pub(super) node: String,
    pub(super) op: String,
    pub(super) tensor: String,
    #[serde(flatten)]
    pub(super) agreement: TensorAgreement,
    pub(super) diverges: bool,
}

impl Thresholds {
    /// Whether the noise is low enough; no noise at all is.
    pub(super) fn holds_noise(&self, found: &TensorAgreement) -> bool {
        found.sqnr_db.is_none_or(|db| db >= self.sqnr_db)
    }

    pub(super) fn hold(&self, found: &TensorAgreement) -> bool {
        self.holds_noise(found) && self.cosine.is_none_or(|least| found.cosine >= least)
    }

    /// Boxes, scores and the rest each, and the boxes after NMS.
    pub(super) fn hold_boxes(&self, found: &Agreement) -> bool {
        let mut tensors = found.boxes.iter().chain(&found.scores).chain(&found.rest);
        tensors.all(|tensor| self.hold(tensor)) && found.matched_boxes.is_none_or(|share| share >= self.matched_boxes)
    }
}

impl Finding {
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        let text = if json { serde_json::to_string_pretty(self)? + "\n" } else { self.text() };
        print(text)?;
        if !json {
            self.notes.iter().for_each(|note| note!("note: {note}"));
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (letter, side) in [("a", &self.a), ("b", &self.b)] {
            let version = side.backend.version.as_deref().unwrap_or_default();
            let head = side.head.as_ref().map(|head| format!(", head {head}")).unwrap_or_default();
            let _ =
                writeln!(out, "{letter}: {} on {} {version}, {}{head}", side.model, side.backend.name, side.executed);
        }
        let _ = writeln!(out, "{} frames: {}; worst of each figure\n", self.frames, self.input);
        let mut rows = vec![["", "cosine", "SQNR", "max abs", ""].map(str::to_owned)];
        for output in &self.outputs {
            let name = if output.a == output.b { output.a.clone() } else { format!("{} / {}", output.a, output.b) };
            rows.push(row(format!("output {name}"), &output.agreement, output.agree));
        }
        if let Some(heads) = &self.heads {
            for (name, tensor) in
                [("boxes", heads.boxes), ("scores", heads.scores), ("masks and key points", heads.rest)]
            {
                rows.extend(tensor.map(|tensor| row(name.to_owned(), &tensor, self.bounds.hold(&tensor))));
            }
        }
        out += &table(&rows);
        let _ = match self.heads.as_ref().map(|heads| heads.matched_boxes) {
            Some(Some(share)) => {
                let word = if share >= self.bounds.matched_boxes { "" } else { "  differs" };
                writeln!(out, "matched boxes after NMS: {:.1} %{word}", share * 100.0)
            }
            Some(None) => writeln!(out, "{NO_BOXES}"),
            None => Ok(()),
        };
        if !self.unmatched.is_empty() {
            let _ = writeln!(out, "only one of them has: {}", self.unmatched.join(", "));
        }
        if let Some(nodes) = &self.nodes {
            out += &nodes.text();
        }
        let (word, db) = (if self.agree { "they agree" } else { "they do not agree" }, self.bounds.sqnr_db);
        let boxes = match self.heads.as_ref().is_some_and(|heads| heads.matched_boxes.is_none()) {
            true => String::new(),
            false => format!(", {:.0} % of the boxes", self.bounds.matched_boxes * 100.0),
        };
        let _ = writeln!(out, "\n{word} (least {db} dB for {}{boxes})", self.precision);
        out
    }
}

impl NodesFinding {
    fn text(&self) -> String {
        let NodesFinding { common, looked_at, first, around } = self;
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
