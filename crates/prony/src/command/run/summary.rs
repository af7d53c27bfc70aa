//! What a call did, as a table or as JSON.

use prony_bench::tensors::describe;
use prony_types::{ArtifactSpec, BackendRecord};
use serde::Serialize;

use crate::error::{CliError, OrCliError as _};
use crate::output::print;
use prony_run::inline::{InputSummary, NamedBox, OutputSummary, WrittenFile, counted};

/// Everything about one call.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    pub(crate) model: &'a str,
    pub(crate) sha256: &'a str,
    /// The engine that was built from the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<&'a ArtifactSpec>,
    pub(crate) backend: BackendRecord,
    /// The arithmetic that was really executed.
    pub(crate) executed: String,
    pub(crate) load_ms: f64,
    /// The call alone: the first of the session, so no benchmark.
    pub(crate) call_ms: f64,
    pub(crate) inputs: Vec<InputSummary>,
    pub(crate) outputs: Vec<OutputSummary>,
    /// Of the values of all outputs, as `bench` records it for its first frame.
    pub(crate) outputs_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detections: Option<Vec<NamedBox>>,
    pub(crate) written: Vec<WrittenFile>,
    pub(crate) notes: Vec<String>,
}

impl Summary<'_> {
    pub(crate) fn print(&self, json: bool) -> Result<(), CliError> {
        let text = if json { serde_json::to_string_pretty(self).failed()? + "\n" } else { self.text() };
        print(text)?;
        if !json {
            self.notes.iter().for_each(|note| note!("note: {note}"));
        }
        Ok(())
    }

    /// Says which outputs hold what is not a number; whether there are any.
    pub(crate) fn complain(&self) -> bool {
        for bad in self.outputs.iter().filter(|output| !output.is_finite()) {
            let OutputSummary { name, nan, infinite, shape, .. } = bad;
            let all: usize = shape.iter().product();
            say!("error: output `{name}` holds {nan} NaN and {infinite} infinite values among {all}");
        }
        self.outputs.iter().any(|output| !output.is_finite())
    }

    fn text(&self) -> String {
        let BackendRecord { name, version, device, .. } = &self.backend;
        let words: Vec<&str> =
            [Some(name), version.as_ref(), device.as_ref()].into_iter().flatten().map(String::as_str).collect();
        let mut text = format!(
            "{} on {}, {}: loaded in {:.1} ms, first call {:.2} ms\n",
            self.model,
            words.join(" "),
            self.executed,
            self.load_ms,
            self.call_ms
        );
        for input in &self.inputs {
            text += &format!("input {} {} from {}\n", input.name, describe(input.dtype, &input.shape), input.from);
        }
        let number = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), short);
        let mut rows = vec![["output", "type", "min", "max", "mean", "values"].map(str::to_owned)];
        rows.extend(self.outputs.iter().map(|output| {
            let values = match output {
                output if output.is_finite() => "finite".to_owned(),
                output => format!("{} NaN, {} infinite", output.nan, output.infinite),
            };
            let kind = describe(output.dtype, &output.shape);
            [output.name.clone(), kind, number(output.min), number(output.max), number(output.mean), values]
        }));
        text += &format!("\n{}", table(&rows));
        if let (Some(boxes), Some(head)) = (&self.detections, &self.head) {
            text += &format!("\n{}, head {head}\n", counted(boxes.len()));
            let mut rows = vec![["class", "score", "left", "top", "right", "bottom"].map(str::to_owned)];
            rows.extend(boxes.iter().map(|found| {
                let [left, top, right, bottom] = found.xyxy.map(|x| format!("{x:.1}"));
                let name = found.name.clone().unwrap_or_else(|| format!("#{}", found.class));
                [name, format!("{:.3}", found.score), left, top, right, bottom]
            }));
            text += if boxes.is_empty() { String::new() } else { table(&rows) }.as_str();
        }
        for WrittenFile { file, holds } in &self.written {
            text += &format!("wrote {file}: {holds}\n");
        }
        text
    }
}

/// Five digits that matter, whatever the size.
fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        size if (1e-3..1e6).contains(&size) => format!("{x:.5}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => format!("{x:.4e}"),
    }
}

/// Columns as wide as their widest entry.
fn table(rows: &[[String; 6]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(0.0), "0");
        assert_eq!(short(1.5), "1.5");
        assert_eq!(short(-1234567.0), "-1.2346e6");
        assert_eq!(short(1e-9), "1.0000e-9");
    }
}
