//! How right the cells are, and how they agree with themselves.

use minijinja::Value;
use prony_types::{AccuracyComparison, AccuracyRecord, CellRecord, ClassAccuracy, ConsistencyCheck, RunRecord};
use serde::Serialize;

use super::{Badge, FactView, FigureView, KeyFigure, anchor, badge, fact_views};
use crate::accuracy::{self, Scored};
use crate::chart::{self, Curves};
use crate::figure;

#[derive(Serialize)]
pub(super) struct AccuracyView {
    heads: Vec<&'static str>,
    rows: Vec<ScoreView>,
    charts: Vec<ChartView>,
    comparisons: Vec<DifferenceView>,
    absent: Vec<AbsentView>,
    data: Vec<DataView>,
}

/// The twelve figures of a cell, the interval below the first.
#[derive(Serialize)]
struct ScoreView {
    anchor: String,
    cell: String,
    interval: Option<String>,
    figures: Vec<String>,
}

#[derive(Serialize)]
struct ChartView {
    model: String,
    svg: Value,
    legend: Vec<LegendView>,
}

#[derive(Serialize)]
struct LegendView {
    colour: usize,
    cell: String,
    note: String,
}

#[derive(Serialize)]
struct DifferenceView {
    cell: String,
    against: String,
    points: String,
    ci95: String,
    reason: String,
    badge: Badge,
}

#[derive(Serialize)]
struct AbsentView {
    cell: String,
    reason: String,
}

#[derive(Serialize)]
struct DataView {
    name: String,
    facts: Vec<FactView>,
    problems: Vec<String>,
    cells: Vec<String>,
    classes: Vec<ClassView>,
}

/// A class, and each cell's score of it.
#[derive(Serialize)]
struct ClassView {
    name: String,
    objects: String,
    scores: Vec<ClassScore>,
}

#[derive(Serialize)]
struct ClassScore {
    map: String,
    note: Option<String>,
}

#[derive(Serialize)]
pub(super) struct ConsistencyView {
    broken: Vec<CheckView>,
    all: Vec<CheckView>,
    summary: String,
}

#[derive(Clone, Serialize)]
struct CheckView {
    cell: String,
    name: String,
    detail: String,
    badge: Badge,
}

/// The section on accuracy, where there is something to say.
pub(super) fn section(record: &RunRecord) -> Option<AccuracyView> {
    accuracy::told(record).then(|| AccuracyView {
        heads: accuracy::HEADS.to_vec(),
        rows: rows(record),
        charts: charts(record),
        comparisons: record.accuracy_comparisons.iter().map(difference).collect(),
        absent: accuracy::absent(record)
            .map(|(cell, reason)| AbsentView { cell: cell.id.clone(), reason: reason.to_owned() })
            .collect(),
        data: accuracy::scored(record).iter().map(data).collect(),
    })
}

/// mAP50-95 in the table of all cells.
pub(super) fn figure(cell: &CellRecord) -> FigureView {
    let accuracy = cell.accuracy.as_ref();
    let map = accuracy.and_then(|accuracy| accuracy.figures.map_50_95);
    FigureView {
        label: accuracy::HEADS[0],
        text: figure::or_absent(map, accuracy::score),
        note: accuracy.filter(|a| a.ci95.is_some()).map(accuracy::interval),
        sort: map,
        numeric: true,
    }
}

/// mAP among the key figures of a cell.
pub(super) fn key_figures(cell: &CellRecord) -> Vec<KeyFigure> {
    let Some(accuracy) = &cell.accuracy else { return Vec::new() };
    let interval = accuracy.ci95.map(|_| format!("ci95 {}", accuracy::interval(accuracy)));
    let figures = [
        (accuracy::HEADS[0], accuracy.figures.map_50_95, interval),
        (accuracy::HEADS[1], accuracy.figures.map_50, Some(format!("{} images", figure::count(accuracy.images)))),
    ];
    let shown = figures.into_iter().filter_map(|(label, value, note)| Some((label, value?, note)));
    shown.map(|(label, value, note)| KeyFigure { label, value: accuracy::score(value), note }).collect()
}

fn rows(record: &RunRecord) -> Vec<ScoreView> {
    let row = |(i, cell): (usize, &CellRecord)| {
        let accuracy = cell.accuracy.as_ref()?;
        Some(ScoreView {
            anchor: anchor(i),
            cell: cell.id.clone(),
            interval: accuracy.ci95.map(|_| accuracy::interval(accuracy)),
            figures: accuracy::figures(accuracy).to_vec(),
        })
    };
    record.cells.iter().enumerate().filter_map(row).collect()
}

/// A chart a model, and another one where its cells are more than there are colours.
fn charts(record: &RunRecord) -> Vec<ChartView> {
    let mut models: Vec<(&str, Vec<(&CellRecord, &AccuracyRecord)>)> = Vec::new();
    for cell in &record.cells {
        let Some(accuracy) = &cell.accuracy else { continue };
        match models.iter_mut().find(|(name, _)| *name == cell.model.name) {
            Some((_, cells)) => cells.push((cell, accuracy)),
            None => models.push((&cell.model.name, vec![(cell, accuracy)])),
        }
    }
    let parts = models.iter().flat_map(|(model, cells)| cells.chunks(chart::COLOURS).map(move |cells| (*model, cells)));
    parts.filter_map(|(model, cells)| curves(model, cells)).collect()
}

fn curves(model: &str, cells: &[(&CellRecord, &AccuracyRecord)]) -> Option<ChartView> {
    let at = |accuracy: &'_ AccuracyRecord, iou: f64| accuracy.curves.iter().position(|c| (c.iou - iou).abs() < 1e-6);
    let drawn = cells.iter().map(|(cell, accuracy)| Curves {
        name: &cell.id,
        loose: at(accuracy, 0.5).map(|i| &accuracy.curves[i].precision[..]),
        strict: at(accuracy, 0.75).map(|i| &accuracy.curves[i].precision[..]),
    });
    let svg = chart::curves(&drawn.collect::<Vec<_>>())?;
    let legend = cells.iter().enumerate().map(|(i, (cell, accuracy))| LegendView {
        colour: i + 1,
        cell: cell.id.clone(),
        note: {
            let [_, loose, strict, ..] = accuracy::figures(accuracy);
            format!("mAP50 {loose}, mAP75 {strict}")
        },
    });
    Some(ChartView { model: model.to_owned(), svg: Value::from_safe_string(svg), legend: legend.collect() })
}

fn difference(c: &AccuracyComparison) -> DifferenceView {
    DifferenceView {
        cell: c.cell.clone(),
        against: c.against.clone(),
        points: figure::or_absent(c.delta, accuracy::points),
        ci95: c.ci95.map_or_else(
            || figure::ABSENT.to_owned(),
            |[lo, hi]| format!("{} to {}", accuracy::points(lo), accuracy::points(hi)),
        ),
        reason: c.reason.clone(),
        badge: badge(c.difference.name(), accuracy::tone(c.difference)),
    }
}

fn data(scored: &Scored<'_>) -> DataView {
    let scores: Vec<&AccuracyRecord> = scored.cells.iter().filter_map(|cell| cell.accuracy.as_ref()).collect();
    // In the order of the first cell that names them.
    let mut names: Vec<&str> = Vec::new();
    for class in scores.iter().flat_map(|accuracy| &accuracy.classes) {
        if !names.contains(&class.name.as_str()) {
            names.push(&class.name);
        }
    }
    let of = |accuracy: &'_ AccuracyRecord, name: &str| accuracy.classes.iter().find(|c| c.name == name).cloned();
    let class = |name: &&str| {
        let found: Vec<Option<ClassAccuracy>> = scores.iter().map(|accuracy| of(accuracy, name)).collect();
        ClassView {
            name: (*name).to_owned(),
            objects: found.iter().flatten().next().map_or_else(String::new, |class| figure::count(class.objects)),
            scores: found.iter().map(|class| class_score(class.as_ref())).collect(),
        }
    };
    DataView {
        name: scored.data.name.clone(),
        facts: fact_views(accuracy::data_facts(scored)),
        problems: accuracy::problems(scored.data, usize::MAX),
        cells: scored.cells.iter().map(|cell| cell.id.clone()).collect(),
        classes: names.iter().map(class).collect(),
    }
}

fn class_score(class: Option<&ClassAccuracy>) -> ClassScore {
    let note = |class: &ClassAccuracy| {
        let loose = class.map_50.map_or_else(String::new, |map| format!("mAP50 {}, ", accuracy::score(map)));
        format!("{loose}{} boxes", figure::count(class.detections))
    };
    ClassScore {
        map: figure::or_absent(class.and_then(|class| class.map_50_95), accuracy::score),
        note: class.map(note),
    }
}

/// The checks of all cells, where there were any.
pub(super) fn consistency(record: &RunRecord) -> Option<ConsistencyView> {
    let view = |cell: &CellRecord, check: &ConsistencyCheck| {
        let (word, tone) = accuracy::outcome(check);
        let badge = badge(word, tone);
        CheckView { cell: cell.id.clone(), name: check.name.clone(), detail: check.detail.clone(), badge }
    };
    let checks = || record.cells.iter().flat_map(|cell| cell.consistency.iter().map(move |check| (cell, check)));
    let all: Vec<CheckView> = checks().map(|(cell, check)| view(cell, check)).collect();
    if all.is_empty() {
        return None;
    }
    let count = |holds: Option<bool>| checks().filter(|(_, check)| check.holds == holds).count();
    let counts = [(Some(true), "hold"), (Some(false), "do not"), (None, "were not tried")];
    let counts = counts.map(|(holds, word)| (count(holds), word)).into_iter().filter(|&(n, _)| n > 0);
    let counts: Vec<String> = counts.map(|(n, word)| format!("{n} {word}")).collect();
    let broken = all.iter().zip(checks()).filter(|(_, (_, check))| check.holds == Some(false));
    Some(ConsistencyView {
        broken: broken.map(|(view, _)| view.clone()).collect(),
        summary: format!("Of {} checks, {}.", all.len(), counts.join(", ")),
        all,
    })
}
