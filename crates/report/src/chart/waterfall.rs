//! Bars from left to right: the stages of a frame, and the small bar in a row of the comparison table.

use prony_types::{LatencyRecord, Stage, StageStats};

use super::axis::{self, Scale};
use super::svg::Svg;
use crate::figure;

const WIDTH: f64 = 540.0;
const LEFT: f64 = 98.0;
const RIGHT: f64 = WIDTH - 146.0;
const ROW: f64 = 27.0;
const TOP: f64 = 6.0;
/// Less than this share of the total between the stages is rounding, not a finding.
const REMAINDER: f64 = 0.0005;

/// Medians of the stages, each beginning where the last one ends, against the measured total.
pub(crate) fn waterfall(latency: &LatencyRecord) -> Option<String> {
    let total = latency.get(&Stage::Total)?;
    let parts: Vec<(Stage, f64)> =
        Stage::PARTS.into_iter().filter_map(|stage| latency.get(&stage).map(|stats| (stage, stats.p50))).collect();
    if parts.is_empty() || !total.p50.is_finite() || total.p50 <= 0.0 {
        return None;
    }
    let sum: f64 = parts.iter().map(|(_, p50)| p50).sum();
    let rest = total.p50 - sum;
    let between = rest > total.p50 * REMAINDER;
    let rows = parts.len() + usize::from(between) + 1;
    let bottom = TOP + ROW * rows as f64;
    let mut svg = Svg::new(WIDTH, bottom + 38.0);
    let x = Scale::new([0.0, sum.max(total.p50)], [LEFT, RIGHT]);

    let ticks = x.ticks(6);
    for (i, &tick) in ticks.iter().enumerate() {
        svg.line("grid", [x.at(tick), TOP, x.at(tick), bottom], "");
        svg.text(super::histogram::every_other(i), [x.at(tick), bottom + 16.0], "middle", &axis::label(tick, &ticks));
    }
    svg.text("name", [RIGHT, bottom + 33.0], "end", "medians, ms");

    let mut at = 0.0;
    let mut row = TOP;
    let bar = |svg: &mut Svg, class: &str, name: &str, from: f64, length: f64, row: f64| {
        let share = figure::percent(length / total.p50);
        let whole = if class.ends_with("between") { "between stages" } else { name };
        let area = [x.at(from), row + 5.0, (x.at(from + length) - x.at(from)).max(1.5), ROW - 10.0];
        svg.rect(class, area, &format!("{whole}: {}, {share} of the total", figure::ms(length)));
        svg.text("label", [LEFT - 10.0, row + ROW / 2.0 + 4.0], "end", name);
        let text_x = x.at(from + length) + 8.0;
        let share = if name == "total" { String::new() } else { format!(" · {share}") };
        svg.text_with_note("value", [text_x, row + ROW / 2.0 + 4.0], &figure::ms(length), &share);
    };
    for (stage, p50) in &parts {
        let class = if *stage == Stage::Inference { "stage inference" } else { "stage" };
        bar(&mut svg, class, stage.name(), at, *p50, row);
        at += p50;
        row += ROW;
    }
    if between {
        bar(&mut svg, "stage between", "between", at, rest, row);
        row += ROW;
    }
    bar(&mut svg, "stage total", "total", 0.0, total.p50, row);
    svg.line("axis", [LEFT, TOP, LEFT, bottom], "");

    let words: Vec<String> = parts.iter().map(|(stage, p50)| format!("{stage} {}", figure::ms(*p50))).collect();
    Some(svg.finish(&format!("Stages: {}; total {}", words.join(", "), figure::ms(total.p50))))
}

/// The bar in a table row: median from 0, the interval of the median, a whisker to p95, on a scale all rows share.
pub(crate) fn spread(total: &StageStats, scale_to: f64) -> Option<String> {
    if !(scale_to.is_finite() && scale_to > 0.0 && total.p50.is_finite()) {
        return None;
    }
    let x = Scale::new([0.0, scale_to], [0.0, 158.0]);
    let mut svg = Svg::elastic(160.0, 16.0);
    svg.rect("bar", [0.0, 3.0, x.clamped(total.p50), 10.0], "");
    if let Some(p95) = total.p95 {
        svg.line("whisker", [x.clamped(total.p50), 8.0, x.clamped(p95), 8.0], "");
        svg.line("whisker", [x.clamped(p95), 4.0, x.clamped(p95), 12.0], "");
    }
    if let Some([lo, hi]) = total.ci95 {
        let from = x.clamped(lo);
        svg.rect("ci", [from, 1.0, (x.clamped(hi) - from).max(2.0), 14.0], "");
    }
    let p95 = total.p95.map_or_else(String::new, |p95| format!(", p95 {}", figure::ms(p95)));
    Some(svg.finish(&format!("median {}{p95}", figure::ms(total.p50))))
}
