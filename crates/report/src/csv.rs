//! `latency_comparative_<imgsz>.csv`: one row a cell, RFC 4180 quoting, an absent figure is an empty field.

use prony_types::text::{csv_field, printable};
use prony_types::{CellRecord, Phase, RunRecord};

use crate::row;

const HEADER: &str = "device,imgsz,backend,precision,mean_ms,p50_ms,p95_ms,fps_mean,speedup,\
                      temp_c_min,temp_c_avg,temp_c_max,verdict,model,\
                      map_50_95,map_50,map_50_95_ci95_lo,map_50_95_ci95_hi,\
                      batch,throughput_fps,p99_ms,host_peak_mib,device_after_warmup_mib,\
                      precision_executed,cell,speedup_base,difference";

/// The distinct input sizes of a run, in the order of its cells: `320`, `480x640` (height first), and `none` for
/// models that are not detectors. One CSV file belongs to each.
pub fn imgsz_groups(record: &RunRecord) -> Vec<String> {
    let mut groups = Vec::new();
    for cell in &record.cells {
        let size = row::imgsz(record, cell);
        if !groups.contains(&size) {
            groups.push(size);
        }
    }
    groups
}

/// The rows of one of the [`imgsz_groups`], with a header.
///
/// Latency is that of the whole way (`total`), one call in flight. `fps_mean` is frames per second at the mean of that
/// latency, empty for a cell that stood still while it was timed; `throughput_fps` is what `throughput` is in the table: frames per second of wall time with the sessions kept
/// busy. `speedup` is the table's `difference` as a number: how many times faster the median is than that of the cell that
/// `speedup_base` names, the recommended one of the model; that one has 1, and a cell that is not comparable none. What was not
/// measured is empty; new columns come last.
pub fn csv(record: &RunRecord, imgsz: &str) -> String {
    table(record, record.cells.iter().filter(|cell| row::imgsz(record, cell) == imgsz))
}

/// As [`csv`], with the rows of all input sizes in one table.
pub fn csv_of_all(record: &RunRecord) -> String {
    table(record, record.cells.iter())
}

fn table<'a>(record: &'a RunRecord, cells: impl Iterator<Item = &'a CellRecord>) -> String {
    let mut out = String::from(HEADER);
    out.push('\n');
    for cell in cells {
        let total = row::total(cell);
        let temp = cell.temp_c;
        let figures = cell.accuracy.as_ref().map(|accuracy| accuracy.figures);
        let ci95 = cell.accuracy.as_ref().and_then(|accuracy| accuracy.ci95);
        let speedup = speedup(record, cell);
        let fields = [
            text(cell.backend.device.as_deref().unwrap_or_default()),
            text(&row::imgsz(record, cell)),
            text(&cell.backend.name),
            text(cell.precision.requested.name()),
            decimal(total.map(|t| t.mean), 4),
            decimal(total.map(|t| t.p50), 4),
            decimal(total.and_then(|t| t.p95), 4),
            decimal(fps_mean(cell), 2),
            decimal(speedup.map(|(speedup, _)| speedup), 3),
            decimal(temp.map(|t| t.min), 1),
            decimal(temp.map(|t| t.avg), 1),
            decimal(temp.map(|t| t.max), 1),
            text(row::word(cell).0),
            text(&cell.model.name),
            decimal(figures.and_then(|f| f.map_50_95), 6),
            decimal(figures.and_then(|f| f.map_50), 6),
            decimal(ci95.map(|[lo, _]| lo), 6),
            decimal(ci95.map(|[_, hi]| hi), 6),
            cell.batch.to_string(),
            decimal(cell.throughput_fps, 2),
            decimal(total.and_then(|t| t.p99), 4),
            decimal(cell.memory.host_peak_mib, 1),
            decimal(cell.memory.device_peak_mib, 1),
            text(cell.precision.executed.as_deref().unwrap_or_default()),
            text(&cell.id),
            text(speedup.map(|(_, base)| base).unwrap_or_default()),
            text(row::own_comparison(record, cell).map(|c| c.difference.name()).unwrap_or_default()),
        ];
        out.push_str(&fields.join(","));
        out.push('\n');
    }
    out
}

/// Not of a cell that stood still: its mean is made of the stall.
fn fps_mean(cell: &CellRecord) -> Option<f64> {
    if cell.stalls.iter().any(|stall| stall.phase == Phase::Steady) {
        return None;
    }
    let mean = row::total(cell)?.mean;
    (mean > 0.0).then(|| 1000.0 * f64::from(cell.batch) / mean)
}

/// How many times faster than which cell.
fn speedup<'a>(record: &'a RunRecord, cell: &'a CellRecord) -> Option<(f64, &'a str)> {
    match row::own_comparison(record, cell) {
        Some(comparison) => {
            let ratio = comparison.ratio.filter(|&ratio| ratio > 0.0)?;
            Some((ratio.recip(), &comparison.against))
        }
        None => row::is_reference(record, cell).then_some((1.0, cell.id.as_str())),
    }
}

fn decimal(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value:.decimals$}"),
        _ => String::new(),
    }
}

/// A text from outside: one line, quoted, and no formula. Figures are ours and stay as they are.
fn text(raw: &str) -> String {
    csv_field(&printable(raw)).into_owned()
}
