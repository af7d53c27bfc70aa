//! What came out, for people and for programs.

use std::fmt::Write as _;

use prony_forge::quantise::{LayerLoss, QuantiseReport, Quantised};
use prony_model::sha256_hex;
use prony_types::os_text::path_to_text;
use serde::Serialize;
use serde_json::json;

use super::gate::SearchRecord;
use crate::command::target::Target;
use crate::error::{CliError, OrCliError as _};
use crate::output::print;

/// Layers that are told on the terminal; all are in the report.
const TOLD: usize = 10;

pub(super) struct Outcome<'a> {
    pub(super) model: &'a str,
    pub(super) target: &'a Target,
    pub(super) quantised: &'a Quantised,
    pub(super) losses: Option<Vec<LayerLoss>>,
    pub(super) gate: Option<SearchRecord>,
}

impl Outcome<'_> {
    pub(super) fn show(&self, json: bool) -> Result<(), CliError> {
        let text = if json { serde_json::to_string_pretty(&self.json()).failed()? + "\n" } else { self.text() };
        if json {
            // In the text they are part of the result.
            self.quantised.report.warnings().iter().for_each(|warning| say!("warning: {warning}"));
        }
        print(text)?;
        Ok(())
    }

    fn written(&self) -> bool {
        self.gate.as_ref().is_none_or(|found| found.held)
    }

    fn json(&self) -> impl Serialize {
        let file = self.written().then(|| path_to_text(&self.target.file));
        json!({
            "model": self.model,
            "file": file,
            "sha256": self.written().then(|| sha256_hex(&self.quantised.bytes)),
            "size_bytes": self.quantised.bytes.len(),
            "report": self.quantised.report,
            "sensitivity": self.losses,
            "gate": self.gate,
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let report = &self.quantised.report;
        self.ranking(&mut text);
        let _ = writeln!(
            text,
            "{}: {} layers in int8, {} in float; {} ranges by {} over {} frames{}",
            self.model,
            report.layers.len(),
            report.float.len(),
            report.tensors.len(),
            report.method,
            report.frames,
            if report.ranges_from_cache { ", from the cache" } else { "" },
        );
        reasons(report, &mut text);
        noisiest(report, &mut text);
        for warning in report.warnings() {
            let _ = writeln!(text, "warning: {warning}");
        }
        if let Some(found) = &self.gate {
            let _ = writeln!(text, "{found}");
        }
        let file = self.target.file.display();
        let _ = match self.written() {
            true => {
                writeln!(text, "written: {file} ({:.1} MB) and {file}.json", self.quantised.bytes.len() as f64 / 1e6)
            }
            false => writeln!(text, "nothing was written"),
        };
        text
    }

    fn ranking(&self, text: &mut String) {
        let Some(losses) = &self.losses else { return };
        let _ = writeln!(text, "each layer alone in int8, the dearest first:");
        for loss in losses.iter().take(TOLD) {
            let _ = writeln!(text, "  {:>8}  {}", decibels(loss.sqnr_db), loss.name);
        }
        if losses.len() > TOLD {
            let _ = writeln!(text, "  and {} more (--json has them all)", losses.len() - TOLD);
        }
    }
}

/// Why layers stay in float, counted.
fn reasons(report: &QuantiseReport, text: &mut String) {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for layer in &report.float {
        match counts.iter_mut().find(|(why, _)| *why == layer.why) {
            Some((_, count)) => *count += 1,
            None => counts.push((&layer.why, 1)),
        }
    }
    for (why, count) in counts {
        let _ = writeln!(text, "  {count} in float: {why}");
    }
}

/// The layers whose outputs are furthest from fp32.
fn noisiest(report: &QuantiseReport, text: &mut String) {
    let mut layers: Vec<_> = report.layers.iter().filter(|layer| layer.output_sqnr_db.is_some()).collect();
    layers.sort_by(|a, b| a.output_sqnr_db.unwrap_or(f64::MAX).total_cmp(&b.output_sqnr_db.unwrap_or(f64::MAX)));
    if let Some(first) = layers.first() {
        let (output, weight) = (decibels(first.output_sqnr_db), decibels(first.weight_sqnr_db));
        let _ = writeln!(text, "  noisiest: {} with {output} (its weights {weight})", first.name);
    }
}

fn decibels(sqnr_db: Option<f64>) -> String {
    sqnr_db.map_or_else(|| "no noise".to_owned(), |db| format!("{db:.1} dB"))
}
