//! What the templates see: text that is ready to print, in the order in which it is printed.

mod accuracy;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::Value;
use prony_types::{CellRecord, CellStatus, Comparison, GpuRecord, RunRecord};
use serde::Serialize;

use super::Picture;
use crate::fact::Fact;
use crate::facts;
use crate::row::{self, Row};
use crate::tone::Tone;
use crate::{chart, figure};

const CSS: &str = include_str!("../../templates/report.css");
const JS: &str = include_str!("../../templates/report.js");

#[derive(Serialize)]
pub(super) struct Page {
    css: Value,
    js: Value,
    name: String,
    id: String,
    version: String,
    started: String,
    machine: String,
    headlines: Vec<Headline>,
    unrecommended: &'static str,
    timed: bool,
    summary: Vec<String>,
    spreads: bool,
    rows: Vec<RowView>,
    cells: Vec<CellView>,
    comparisons: Vec<ComparisonView>,
    accuracy: Option<accuracy::AccuracyView>,
    consistency: Option<accuracy::ConsistencyView>,
    gates: Vec<GateView>,
    run: Vec<FactView>,
    memory_safety: Vec<FactView>,
    environment: Vec<FactView>,
    notes: Vec<String>,
    method: Vec<FactView>,
    plan: Vec<FactView>,
    planned_heads: Vec<&'static str>,
    planned: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct Headline {
    model: String,
    text: String,
    anchor: Option<String>,
    cell: Option<String>,
}

#[derive(Clone, Serialize)]
struct Badge {
    word: &'static str,
    tone: &'static str,
    sign: &'static str,
}

#[derive(Serialize)]
struct RowView {
    anchor: String,
    model: String,
    backend: String,
    precision: String,
    best: bool,
    spread: Option<Value>,
    figures: Vec<FigureView>,
    badge: Badge,
}

/// A figure in the comparison table, and what it is sorted by.
#[derive(Serialize)]
struct FigureView {
    label: &'static str,
    text: String,
    note: Option<String>,
    sort: Option<f64>,
    numeric: bool,
}

#[derive(Serialize)]
struct CellView {
    anchor: String,
    id: String,
    badges: Vec<Badge>,
    reason: Option<String>,
    verdict_reasons: Vec<String>,
    figures: Vec<KeyFigure>,
    histogram: Option<Value>,
    timeline: Option<Value>,
    waterfall: Option<Value>,
    phases: Vec<FactView>,
    stage_heads: Vec<&'static str>,
    stages: Vec<Vec<String>>,
    pictures: Vec<PictureView>,
    not_embedded: Option<String>,
    groups: Vec<GroupView>,
}

#[derive(Serialize)]
struct KeyFigure {
    label: &'static str,
    value: String,
    note: Option<String>,
}

#[derive(Serialize)]
struct PictureView {
    src: Value,
    caption: String,
}

#[derive(Serialize)]
struct GroupView {
    title: &'static str,
    facts: Vec<FactView>,
}

#[derive(Serialize)]
struct FactView {
    label: &'static str,
    value: String,
}

#[derive(Serialize)]
struct ComparisonView {
    cell: String,
    against: String,
    word: &'static str,
    ratio: String,
    ci95: String,
    reason: String,
}

#[derive(Serialize)]
struct GateView {
    name: String,
    cell: String,
    figure: String,
    limit: String,
    badge: Badge,
    note: String,
}

/// The page of a run.
pub(super) fn page(record: &RunRecord, pictures: &[Picture]) -> Page {
    let farthest = record.cells.iter().filter_map(row::total).map(|t| t.p95.unwrap_or(t.p50).max(t.p50));
    let scale_to = farthest.filter(|v| v.is_finite()).fold(0.0, f64::max);
    let mut rows: Vec<RowView> =
        record.cells.iter().enumerate().map(|(i, cell)| row_view(record, cell, i, scale_to)).collect();
    drop_empty_columns(&mut rows, !crate::accuracy::alone(record));
    Page {
        css: Value::from_safe_string(CSS.to_owned()),
        js: Value::from_safe_string(JS.to_owned()),
        name: record.plan.name.clone(),
        id: record.run.id.clone(),
        version: record.run.version.clone(),
        started: record.run.started.clone(),
        machine: machine(record),
        headlines: headlines(record),
        unrecommended: row::unrecommended(record),
        timed: !crate::accuracy::alone(record),
        summary: summary(record),
        spreads: scale_to > 0.0,
        rows,
        cells: record.cells.iter().enumerate().map(|(i, cell)| cell_view(record, cell, i, pictures)).collect(),
        comparisons: row::differences(record).map(comparison).collect(),
        accuracy: accuracy::section(record),
        consistency: accuracy::consistency(record),
        gates: gates(record),
        run: fact_views(facts::run(record)),
        memory_safety: fact_views(facts::memory_safety(record)),
        environment: fact_views(facts::environment(&record.environment)),
        notes: record.environment.notes.clone(),
        method: fact_views(facts::method(&record.method)),
        plan: fact_views(facts::plan(&record.plan)),
        planned_heads: facts::PLANNED_HEADS.to_vec(),
        planned: facts::planned(&record.plan).into_iter().map(Vec::from).collect(),
    }
}

fn anchor(index: usize) -> String {
    format!("cell-{}", index + 1)
}

fn machine(record: &RunRecord) -> String {
    let env = &record.environment;
    let host = [env.machine.as_deref(), env.cpu.name.as_deref(), Some(&env.arch)].into_iter().flatten().next();
    let host = host.unwrap_or_default();
    // A GPU stands before its host where something ran on it.
    let ran = |gpu: &&GpuRecord| {
        let mut completed = record.cells.iter().filter(|cell| cell.status == CellStatus::Completed);
        completed.any(|cell| cell.backend.device.as_deref().is_some_and(|device| device.contains(&gpu.name)))
    };
    match env.gpus.iter().find(ran) {
        Some(gpu) => format!("{}, {host}", gpu.name),
        None => host.to_owned(),
    }
}

fn headlines(record: &RunRecord) -> Vec<Headline> {
    let place = |id: &str| record.cells.iter().position(|cell| cell.id == id).map(anchor);
    let headline = |r: &prony_types::Recommendation| Headline {
        model: r.model.clone(),
        text: r.text.clone(),
        anchor: r.cell.as_deref().and_then(place),
        cell: r.cell.clone(),
    };
    record.recommendation.iter().map(headline).collect()
}

fn summary(record: &RunRecord) -> Vec<String> {
    let with = |status| record.cells.iter().filter(|cell| cell.status == status).count();
    let total = record.cells.len();
    let mut parts = vec![format!("{total} {}", if total == 1 { "cell" } else { "cells" })];
    let statuses =
        [CellStatus::Completed, CellStatus::Skipped, CellStatus::Failed, CellStatus::Interrupted, CellStatus::Pending];
    parts.extend(
        statuses.into_iter().map(|s| (s, with(s))).filter(|&(_, n)| n > 0).map(|(s, n)| format!("{n} {}", s.name())),
    );
    parts.extend(record.run.wall_s.map(figure::seconds));
    parts.push(
        record.run.exit_code.map_or_else(|| "still running".to_owned(), |code| format!("exit code {}", u8::from(code))),
    );
    parts
}

fn badge(word: &'static str, tone: Tone) -> Badge {
    let sign = match tone {
        Tone::Good => "✓",
        Tone::Care => "!",
        Tone::Bad => "✕",
        Tone::Neutral => "·",
    };
    Badge { word, tone: tone.name(), sign }
}

fn row_view(record: &RunRecord, cell: &CellRecord, index: usize, scale_to: f64) -> RowView {
    let row = Row::new(record, cell);
    let total = row::total(cell);
    let ci95 = total.and_then(|t| t.ci95).map(|_| format!("{} within this run", row.ci95));
    let ratio = record.comparisons.iter().find(|c| c.cell == cell.id).and_then(|c| c.ratio);
    let figure = |label, text, sort| FigureView { label, text, note: None, sort, numeric: true };
    let (host, device) = (cell.memory.host_peak_mib, cell.memory.device_peak_mib);
    let memory = FigureView {
        note: host.and(device).map(|device| format!("device {} after warm-up", figure::mib(device))),
        ..figure("memory", figure::or_absent(host.or(device), figure::mib), host.or(device))
    };
    let figures = vec![
        FigureView { note: ci95, ..figure("p50 total", row.p50, total.map(|t| t.p50)) },
        figure("p95", row.p95, total.and_then(|t| t.p95)),
        figure("p99", row.p99, total.and_then(|t| t.p99)),
        figure("throughput", row.throughput, cell.throughput_fps),
        FigureView { numeric: false, ..figure("difference", row.difference, ratio) },
        accuracy::figure(cell),
        memory,
    ];
    RowView {
        anchor: anchor(index),
        model: row.model,
        backend: row.backend,
        precision: row.precision,
        best: record.recommendation.iter().any(|r| r.cell.as_deref() == Some(&cell.id)),
        spread: total.and_then(|t| chart::spread(t, scale_to)).map(Value::from_safe_string),
        figures,
        badge: badge(row.word, row.tone),
    }
}

/// A column without a single figure says nothing; the median's stays unless only accuracy was asked for.
fn drop_empty_columns(rows: &mut [RowView], timed: bool) {
    let columns = rows.first().map_or(0, |row| row.figures.len());
    for column in (usize::from(timed)..columns).rev() {
        if rows.iter().all(|row| row.figures[column].text == figure::ABSENT) {
            for row in rows.iter_mut() {
                row.figures.remove(column);
            }
        }
    }
}

fn cell_view(record: &RunRecord, cell: &CellRecord, index: usize, pictures: &[Picture]) -> CellView {
    let total = row::total(cell);
    let histogram = cell.histogram.as_ref().zip(total).and_then(|(h, t)| chart::histogram(h, t));
    let embedded: Vec<PictureView> = pictures.iter().filter(|p| p.cell == cell.id).map(picture).collect();
    let missing = cell.thumbnails.len().saturating_sub(embedded.len());
    let mut groups = facts::cell(record, cell);
    // Phases stand beside the charts.
    let phases = groups.iter().position(|group| group.title == "Phases").map(|i| groups.remove(i).facts);
    let (word, tone) = row::word(cell);
    let mut badges = vec![badge(word, tone)];
    if let Some(verdict) = row::verdict(cell).filter(|_| cell.status != CellStatus::Completed) {
        badges.push(badge(verdict.name(), row::verdict_tone(verdict)));
    }
    let stages = facts::stages(cell);
    CellView {
        anchor: anchor(index),
        id: cell.id.clone(),
        badges,
        reason: cell.reason.clone().or_else(|| {
            let silent = !matches!(cell.status, CellStatus::Completed | CellStatus::Pending);
            silent.then(|| "no reason was recorded".to_owned())
        }),
        verdict_reasons: cell.verdict_reasons.clone(),
        figures: key_figures(cell).into_iter().chain(accuracy::key_figures(cell)).collect(),
        histogram: histogram.map(Value::from_safe_string),
        timeline: chart::timeline(&cell.timeline).map(Value::from_safe_string),
        waterfall: chart::waterfall(&cell.latency_ms).map(Value::from_safe_string),
        phases: fact_views(phases.unwrap_or_default()),
        stage_heads: facts::STAGE_HEADS.to_vec(),
        stages: stages.into_iter().map(Vec::from).collect(),
        pictures: embedded,
        not_embedded: (missing > 0).then(|| format!("{missing} of its pictures are in cells/{} only.", cell.slug)),
        groups: groups.into_iter().map(|g| GroupView { title: g.title, facts: fact_views(g.facts) }).collect(),
    }
}

fn key_figures(cell: &CellRecord) -> Vec<KeyFigure> {
    let Some(total) = row::total(cell) else { return Vec::new() };
    let mut out = vec![KeyFigure {
        label: "p50 total",
        value: figure::ms(total.p50),
        note: total.ci95.map(|ci| format!("ci95 {} within this run", figure::interval(ci))),
    }];
    let mut add = |label, value: Option<String>, note: Option<String>| {
        out.extend(value.map(|value| KeyFigure { label, value, note }));
    };
    add("p95", total.p95.map(figure::ms), None);
    add("p99", total.p99.map(figure::ms), total.p99_9.map(|p| format!("p99.9 {}", figure::ms(p))));
    add("max", Some(figure::ms(total.max)), Some(format!("of {} samples", figure::count(total.n))));
    let in_flight = cell.in_flight.map(|n| format!("{n} in flight"));
    add("throughput", cell.throughput_fps.map(figure::fps), in_flight);
    add("host memory", cell.memory.host_peak_mib.map(figure::mib), Some("peak".to_owned()));
    add("device memory", cell.memory.device_peak_mib.map(figure::mib), Some("after warm-up".to_owned()));
    out
}

/// Type of a picture by its first bytes.
fn mime(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"\xff\xd8") { "image/jpeg" } else { "image/png" }
}

fn picture(picture: &Picture) -> PictureView {
    PictureView {
        // Base64 has nothing to escape, and escaping its slashes would make the page larger.
        src: Value::from_safe_string(format!(
            "data:{};base64,{}",
            mime(&picture.bytes),
            STANDARD.encode(&picture.bytes)
        )),
        caption: if picture.caption.is_empty() { picture.file.clone() } else { picture.caption.clone() },
    }
}

fn comparison(c: &Comparison) -> ComparisonView {
    ComparisonView {
        cell: c.cell.clone(),
        against: c.against.clone(),
        word: c.difference.name(),
        ratio: figure::or_absent(c.ratio, figure::ratio),
        ci95: c.ci95.map_or_else(|| figure::ABSENT.to_owned(), figure::ratio_interval),
        reason: c.reason.clone(),
    }
}

fn gates(record: &RunRecord) -> Vec<GateView> {
    let view = |gate: &prony_types::Gate| GateView {
        name: gate.name.clone(),
        cell: gate.cell.clone(),
        figure: figure::or_absent(gate.figure, figure::against_limit),
        limit: figure::against_limit(gate.limit),
        badge: {
            let (word, tone) = row::outcome(gate);
            badge(word, tone)
        },
        note: row::gate_note(gate),
    };
    record.gates.iter().map(view).collect()
}

fn fact_views(facts: Vec<Fact>) -> Vec<FactView> {
    facts.into_iter().map(|fact| FactView { label: fact.label, value: fact.value }).collect()
}
