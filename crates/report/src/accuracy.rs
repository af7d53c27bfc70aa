//! How right the cells are, in words: gathered once so that no report says another thing than the next.

use prony_types::{
    AccuracyComparison, AccuracyDifference, AccuracyRecord, CellRecord, ClassAccuracy, ConsistencyCheck, DataRecord,
    DataSource, DataSpec, PostSpec, PrecisionRecall, RunRecord, Stage,
};

use crate::fact::{Fact, Group};
use crate::figure;
use crate::tone::Tone;

/// Heads of the twelve figures, in the order of [`CocoFigures::stats`](prony_types::CocoFigures::stats).
pub(crate) const HEADS: [&str; 12] = [
    "mAP50-95",
    "mAP50",
    "mAP75",
    "small",
    "medium",
    "large",
    "AR1",
    "AR10",
    "AR100",
    "AR small",
    "AR medium",
    "AR large",
];

/// Heads of a cell's classes.
pub(crate) const CLASS_HEADS: [&str; 5] = ["class", "objects", "boxes", "mAP50-95", "mAP50"];

/// Whether a cell of the run has a score.
pub(crate) fn any(record: &RunRecord) -> bool {
    record.cells.iter().any(|cell| cell.accuracy.is_some())
}

/// Whether the run has scores and no latency, as `prony eval` makes it.
pub(crate) fn alone(record: &RunRecord) -> bool {
    any(record) && record.cells.iter().all(|cell| !cell.latency_ms.contains_key(&Stage::Total))
}

/// Whether there is anything to say: a score, or why there is none.
pub(crate) fn told(record: &RunRecord) -> bool {
    any(record) || !record.accuracy_comparisons.is_empty() || absent(record).next().is_some()
}

/// Cells that were to be scored and were not, with the reason.
pub(crate) fn absent(record: &RunRecord) -> impl Iterator<Item = (&CellRecord, &str)> {
    record.cells.iter().filter_map(|cell| Some((cell, cell.accuracy_absent.as_deref()?)))
}

/// A score from 0 to 1, three decimals: differences below a tenth of a point are chance.
pub(crate) fn score(value: f64) -> String {
    if value.is_finite() { format!("{value:.3}") } else { figure::ABSENT.to_owned() }
}

/// mAP50-95 and half of its interval: `0.912 ±0.008`.
pub(crate) fn with_spread(cell: &CellRecord) -> String {
    let Some(accuracy) = &cell.accuracy else { return figure::ABSENT.to_owned() };
    let spread = accuracy.ci95.map_or_else(String::new, |[lo, hi]| format!(" ±{}", score((hi - lo) / 2.0)));
    accuracy.figures.map_50_95.map_or_else(|| figure::ABSENT.to_owned(), |map| format!("{}{spread}", score(map)))
}

/// The interval of mAP50-95: `0.904 – 0.920`.
pub(crate) fn interval(accuracy: &AccuracyRecord) -> String {
    accuracy.ci95.map_or_else(|| figure::ABSENT.to_owned(), |[lo, hi]| format!("{} – {}", score(lo), score(hi)))
}

/// The twelve figures.
pub(crate) fn figures(accuracy: &AccuracyRecord) -> [String; 12] {
    accuracy.figures.stats().map(|figure| figure::or_absent(figure, score))
}

/// The rows of a cell's classes.
pub(crate) fn classes(accuracy: &AccuracyRecord) -> Vec<[String; 5]> {
    let row = |class: &ClassAccuracy| {
        [
            class.name.clone(),
            figure::count(class.objects),
            figure::count(class.detections),
            figure::or_absent(class.map_50_95, score),
            figure::or_absent(class.map_50, score),
        ]
    };
    accuracy.classes.iter().map(row).collect()
}

/// Heads of a cell's curves: recalls.
pub(crate) const CURVE_HEADS: [&str; 12] =
    ["IoU", "0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"];

/// Precision at every tenth recall, a row an overlap.
pub(crate) fn curves(accuracy: &AccuracyRecord) -> Vec<[String; 12]> {
    let at = |curve: &PrecisionRecall, tenth: usize| {
        let last = curve.precision.len().saturating_sub(1);
        figure::or_absent(curve.precision.get(last * tenth / 10).copied(), score)
    };
    let row = |curve: &PrecisionRecall| {
        std::array::from_fn(|i| match i.checked_sub(1) {
            None => format!("{:.2}", curve.iou),
            Some(tenth) => at(curve, tenth),
        })
    };
    accuracy.curves.iter().map(row).collect()
}

/// A comparison with the name of its model: `builtin-rgb int8 - fp32: -0.8 ± 0.3 points of mAP50-95`.
pub(crate) fn sentence(record: &RunRecord, comparison: &AccuracyComparison) -> String {
    let cell = record.cells.iter().find(|cell| cell.id == comparison.cell);
    let model = cell.map_or(comparison.cell.as_str(), |cell| cell.model.name.as_str());
    if comparison.reason.starts_with(model) {
        comparison.reason.clone()
    } else {
        format!("{model} {}", comparison.reason)
    }
}

/// How the word of a comparison is to be taken.
pub(crate) const fn tone(difference: AccuracyDifference) -> Tone {
    match difference {
        AccuracyDifference::Better => Tone::Good,
        AccuracyDifference::Worse => Tone::Bad,
        AccuracyDifference::Same => Tone::Neutral,
        AccuracyDifference::NotComparable => Tone::Care,
    }
}

/// A difference in points, hundredths of mAP, with its sign.
pub(crate) fn points(delta: f64) -> String {
    if delta.is_finite() { format!("{:+.2}", delta * 100.0) } else { figure::ABSENT.to_owned() }
}

/// Data and the way of scoring, with the cells that were scored so.
pub(crate) struct Scored<'a> {
    pub(crate) data: &'a DataRecord,
    pub(crate) post: &'a PostSpec,
    pub(crate) cells: Vec<&'a CellRecord>,
}

/// What the cells were scored on: once where several share it.
pub(crate) fn scored(record: &RunRecord) -> Vec<Scored<'_>> {
    let mut out: Vec<Scored<'_>> = Vec::new();
    for cell in &record.cells {
        let Some(accuracy) = &cell.accuracy else { continue };
        let (data, post) = (&accuracy.data, &accuracy.post);
        match out.iter_mut().find(|scored| scored.data == data && scored.post == post) {
            Some(scored) => scored.cells.push(cell),
            None => out.push(Scored { data, post, cells: vec![cell] }),
        }
    }
    out
}

/// All of a data set but its name and problems.
pub(crate) fn data_facts(scored: &Scored<'_>) -> Vec<Fact> {
    let Scored { data, post, cells } = scored;
    let facts = [
        ("images scored", images(data)),
        ("objects", figure::count(data.objects)),
        ("classes", data.classes.clone()),
        ("boxes kept", kept(post)),
        ("sha256", data.sha256.clone()),
        ("cells", cells.iter().map(|cell| cell.id.as_str()).collect::<Vec<_>>().join(", ")),
        ("problems", if data.problem_count == 0 { "none".to_owned() } else { figure::count(data.problem_count) }),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).map(|(label, value)| Fact { label, value }).collect()
}

/// Images that were scored of those that were chosen: `498 of 500`.
pub(crate) fn images(data: &DataRecord) -> String {
    format!("{} of {}", figure::count(data.images), figure::count(data.chosen))
}

/// The first `most` problems of a data set, then how many more there are.
pub(crate) fn problems(data: &DataRecord, most: usize) -> Vec<String> {
    let mut out: Vec<String> = data.problems.iter().take(most).cloned().collect();
    let more = data.problem_count.saturating_sub(out.len() as u64);
    if more > 0 {
        out.push(format!("and {} more", figure::count(more)));
    }
    out
}

/// What becomes of outputs before they are scored.
fn kept(post: &PostSpec) -> String {
    let labels = if post.multi_label { "several classes a box" } else { "one class a box" };
    format!("conf {}, IoU {}, at most {} an image, {labels}", post.conf, post.iou, post.max_det)
}

/// The data of a plan, as it was asked for.
pub(crate) fn asked(data: &DataSpec) -> String {
    let mut out = match &data.source {
        DataSource::Scenes => "built-in scenes".to_owned(),
        DataSource::Path(path) => path.display().to_string(),
    };
    out.extend(data.split.iter().map(|split| format!(", split {split}")));
    out.extend(data.limit.map(|limit| format!(", at most {limit} images")));
    out.extend(data.ids.iter().map(|ids| format!(", images of {}", ids.display())));
    format!("{out}, seed {}", data.seed)
}

/// What a cell's own section says of its accuracy.
pub(crate) fn group(cell: &CellRecord) -> Option<Group> {
    let mut facts = Vec::new();
    let mut add = |label, value: Option<String>| facts.extend(value.map(|value| Fact { label, value }));
    add("none, because", cell.accuracy_absent.clone());
    if let Some(accuracy) = &cell.accuracy {
        add("mAP50-95", Some(with_spread(cell)));
        add("scored on", Some(accuracy.data.name.clone()));
        add("images", Some(figure::count(accuracy.images)));
        add("boxes", Some(figure::count(accuracy.detections)));
        add("took", Some(figure::seconds(accuracy.seconds)));
    }
    (!facts.is_empty()).then_some(Group { title: "Accuracy", facts })
}

/// How a cell agrees with itself.
pub(crate) fn consistency(cell: &CellRecord) -> Option<Group> {
    let fact =
        |check: &ConsistencyCheck| Fact { label: outcome(check).0, value: format!("{}: {}", check.name, check.detail) };
    let facts: Vec<Fact> = cell.consistency.iter().map(fact).collect();
    (!facts.is_empty()).then_some(Group { title: "Self-consistency", facts })
}

/// Whether a check held, in words.
pub(crate) const fn outcome(check: &ConsistencyCheck) -> (&'static str, Tone) {
    match check.holds {
        Some(true) => ("holds", Tone::Good),
        Some(false) => ("does not hold", Tone::Bad),
        None => ("not tried", Tone::Neutral),
    }
}
