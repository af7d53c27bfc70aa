//! `latency_comparative_<imgsz>.csv`: one row a cell, RFC 4180 quoting, an absent figure is an empty field.

use prony_types::{CellRecord, RunRecord};

use crate::row;

const HEADER: &str = "device,imgsz,backend,precision,mean_ms,p50_ms,p95_ms,fps_mean,speedup,\
                      temp_c_min,temp_c_avg,temp_c_max,verdict,model,\
                      map_50_95,map_50,map_50_95_ci95_lo,map_50_95_ci95_hi";

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
/// Latency is that of the whole way (`total`). `speedup` is the ratio of `fps_mean` to that of the same model and batch
/// in fp32 on the same backend, and where there is none, to that of the model's first row with a figure. What was not
/// scored has no accuracy; new columns come last.
pub fn csv(record: &RunRecord, imgsz: &str) -> String {
    let cells: Vec<&CellRecord> = record.cells.iter().filter(|cell| row::imgsz(record, cell) == imgsz).collect();
    let mut out = String::from(HEADER);
    out.push('\n');
    for cell in &cells {
        let total = row::total(cell);
        let temp = cell.temp_c;
        let figures = cell.accuracy.as_ref().map(|accuracy| accuracy.figures);
        let ci95 = cell.accuracy.as_ref().and_then(|accuracy| accuracy.ci95);
        let fields = [
            cell.backend.device.clone().unwrap_or_default(),
            imgsz.to_owned(),
            cell.backend.name.clone(),
            cell.precision.requested.name().to_owned(),
            decimal(total.map(|t| t.mean), 4),
            decimal(total.map(|t| t.p50), 4),
            decimal(total.and_then(|t| t.p95), 4),
            decimal(fps_mean(cell), 2),
            decimal(speedup(&cells, cell), 3),
            decimal(temp.map(|t| t.min), 1),
            decimal(temp.map(|t| t.avg), 1),
            decimal(temp.map(|t| t.max), 1),
            row::word(cell).0.to_owned(),
            cell.model.name.clone(),
            decimal(figures.and_then(|f| f.map_50_95), 6),
            decimal(figures.and_then(|f| f.map_50), 6),
            decimal(ci95.map(|[lo, _]| lo), 6),
            decimal(ci95.map(|[_, hi]| hi), 6),
        ];
        let fields: Vec<String> = fields.iter().map(|field| quote(field)).collect();
        out.push_str(&fields.join(","));
        out.push('\n');
    }
    out
}

fn fps_mean(cell: &CellRecord) -> Option<f64> {
    let mean = row::total(cell)?.mean;
    (mean > 0.0).then(|| 1000.0 * f64::from(cell.batch) / mean)
}

fn speedup(cells: &[&CellRecord], cell: &CellRecord) -> Option<f64> {
    let own = fps_mean(cell)?;
    let mut peers = cells.iter().filter(|peer| {
        peer.model.name == cell.model.name && peer.model.sha256 == cell.model.sha256 && peer.batch == cell.batch
    });
    let fp32 = peers.clone().find(|peer| {
        peer.backend.name == cell.backend.name
            && peer.precision.requested == prony_types::Precision::Fp32
            && fps_mean(peer).is_some()
    });
    let base = fp32.and_then(|peer| fps_mean(peer)).or_else(|| peers.find_map(|peer| fps_mean(peer)))?;
    Some(own / base)
}

fn decimal(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value:.decimals$}"),
        _ => String::new(),
    }
}

fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) || field.starts_with(' ') || field.ends_with(' ') {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
