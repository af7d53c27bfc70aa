//! How right the cells are: what their workers wrote to `detections.json`, scored as it stands there.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prony_files::{Folder, Kind};
use prony_judge::accuracy::{Side, compare};
use prony_judge::coco::{Evaluation, Scored, Truth, Truths};
use prony_judge::suspects::{is_zero, likely_causes};
use prony_source::coco::{ResultRow, read_results};
use prony_source::dataset::{self, Dataset};
use prony_source::{SourceError, scenes};
use prony_store::cell_file;
use prony_types::{
    AccuracyComparison, AccuracyDifference, AccuracyRecord, CellRecord, CellStatus, ChosenImages, DataRecord,
    DataSource, DataSpec, EvaluateData, EvaluateOrder, EvaluatedData, EvaluationSpec, ModelSource, Plan, Precision,
    RunRecord, SceneKind, Verdict,
};

use prony_plan::open_data;

use crate::files::Files;

/// Name of the boxes in a cell's folder, in COCO's result form.
pub(crate) const DETECTIONS: &str = "detections.json";
/// Name of the list of images that workers score on, in the run folder.
const CHOSEN: &str = "data.json";
/// Name of the figures there.
pub(crate) const METRICS: &str = "metrics.json";
/// Decides the images that intervals are drawn from. Fixed, so that the same boxes have the same interval.
const SEED: u64 = 7;

/// Truths and scores of a run.
#[derive(Default)]
pub struct Scores {
    /// Opened once; scenes by the kind that fits a model, data on disk under no kind.
    data: BTreeMap<Option<&'static str>, Arc<Dataset>>,
    /// The list that workers read, where it is written.
    chosen: Option<ChosenImages>,
    /// By id of the cell.
    evaluations: BTreeMap<String, Evaluation>,
}

impl Scores {
    /// With data on disk that is open already.
    pub fn new(data: Option<Arc<Dataset>>) -> Scores {
        Scores { data: data.into_iter().map(|data| (None, data)).collect(), ..Scores::default() }
    }

    /// What a worker is told to score. The list of images on disk is written to the run folder once.
    pub(crate) fn order(
        &mut self,
        spec: &EvaluationSpec,
        files: &Files,
        detections: PathBuf,
    ) -> Result<EvaluateOrder, String> {
        let data = match (spec.data.source == DataSource::Scenes, &self.chosen) {
            (true, _) => EvaluateData::Scenes(spec.data.clone()),
            (false, Some(chosen)) => EvaluateData::Images(chosen.clone()),
            (false, None) => {
                let data = self.opened(&spec.data, SceneKind::Rgb).map_err(|e| e.to_string())?;
                let (list, root) = data.to_chosen().map_err(|e| e.to_string())?;
                let file = files.write_scratch(CHOSEN, &list).map_err(|e| format!("{e:#}"))?;
                let sha256 = dataset::chosen_sha256(&list);
                let chosen = ChosenImages { file, sha256, root, record: data.record() };
                self.chosen = Some(chosen.clone());
                EvaluateData::Images(chosen)
            }
        };
        Ok(EvaluateOrder { data, post: spec.post, detections })
    }

    /// A cell is scored. Names of images are not left in a redacted run.
    pub(crate) fn retract(&mut self, files: &Files) {
        if files.is_redacted() && self.chosen.take().is_some() {
            files.remove(CHOSEN);
        }
    }

    /// Scores a cell's boxes.
    pub fn score(
        &mut self,
        cell: &CellRecord,
        source: &ModelSource,
        spec: &EvaluationSpec,
        detections: &Path,
        evaluated: &EvaluatedData,
    ) -> Result<AccuracyRecord, String> {
        let (truths, boxes) = self.read(cell, source, &spec.data, detections, &evaluated.data)?;
        let evaluation = Evaluation::new(&truths, &boxes);
        let mut data = evaluated.data.clone();
        if evaluated.strangers > 0 {
            data.classes +=
                &format!("; {} boxes of classes that the data does not have are left out", evaluated.strangers);
        }
        let figures = evaluation.figures();
        // What the boxes of a score of zero show.
        let likely_causes = if is_zero(&figures) { likely_causes(&truths, &boxes) } else { Vec::new() };
        let record = AccuracyRecord {
            figures,
            ci95: evaluation.interval(SEED),
            images: evaluation.images(),
            detections: evaluation.detections(),
            data,
            post: spec.post,
            classes: evaluation.classes(),
            curves: evaluation.curves(),
            likely_causes,
            seconds: evaluated.seconds,
        };
        self.evaluations.insert(cell.id.clone(), evaluation);
        Ok(record)
    }

    /// The objects of the images that were read, and the boxes that were found in them.
    fn read(
        &mut self,
        cell: &CellRecord,
        source: &ModelSource,
        spec: &DataSpec,
        detections: &Path,
        seen: &DataRecord,
    ) -> Result<(Truths, Vec<Scored>), String> {
        let data = self.opened(spec, kind_of(cell, source)).map_err(|e| e.to_string())?;
        if data.sha256 != seen.sha256 {
            return Err("the data changed while it was scored".to_owned());
        }
        let results = read_results(detections).map_err(|e| e.to_string())?;
        Ok((truths(&data, &seen.unread), scored(results.rows)))
    }

    fn evaluate(
        &mut self,
        cell: &CellRecord,
        source: &ModelSource,
        spec: &DataSpec,
        detections: &Path,
        seen: &DataRecord,
    ) -> Result<Evaluation, String> {
        let (truths, boxes) = self.read(cell, source, spec, detections, seen)?;
        Ok(Evaluation::new(&truths, &boxes))
    }

    /// The data, opened once; scenes once per kind.
    fn opened(&mut self, spec: &DataSpec, kind: SceneKind) -> Result<Arc<Dataset>, SourceError> {
        let kind_of_scenes = (spec.source == DataSource::Scenes).then_some(kind.name());
        Ok(match self.data.entry(kind_of_scenes) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(place) => place.insert(Arc::new(dataset::open(spec, kind)?)).clone(),
        })
    }

    /// Every scored cell against the reference row: that of `--reference` where it was scored too, else its own model's.
    /// Cells of an earlier sitting are scored again from their files.
    pub fn compare(
        &mut self,
        plan: &Plan,
        cells: &[CellRecord],
        detections: impl Fn(&str) -> Result<PathBuf, String>,
    ) -> Vec<AccuracyComparison> {
        let Some(spec) = &plan.evaluation else { return Vec::new() };
        let mut lost = Vec::new();
        for cell in cells {
            let Some(accuracy) = cell.accuracy.as_ref().filter(|_| !self.evaluations.contains_key(&cell.id)) else {
                continue;
            };
            let source = plan.cells.iter().find(|planned| planned.id == cell.id).map(|planned| &planned.model.source);
            let Some(source) = source else { continue };
            let evaluation = detections(&cell.slug)
                .and_then(|detections| self.evaluate(cell, source, &spec.data, &detections, &accuracy.data));
            match evaluation {
                Ok(evaluation) => drop(self.evaluations.insert(cell.id.clone(), evaluation)),
                Err(reason) => lost.push(AccuracyComparison {
                    cell: cell.id.clone(),
                    against: cell.id.clone(),
                    delta: None,
                    ci95: None,
                    difference: AccuracyDifference::NotComparable,
                    reason: format!("{}: its boxes cannot be scored again: {reason}", cell.id),
                }),
            }
        }
        let scored: Vec<(&CellRecord, &Evaluation)> = cells
            .iter()
            .filter(|cell| cell.accuracy.is_some() && cell.status == CellStatus::Completed)
            .filter_map(|cell| Some((cell, self.evaluations.get(&cell.id)?)))
            .collect();
        let of_model = |model: &str| scored.iter().copied().filter(|(cell, _)| cell.model.sha256 == model).collect();
        let named: Vec<(&CellRecord, &Evaluation)> =
            plan.reference.model.as_ref().map(|model| of_model(model.identity())).unwrap_or_default();
        let mut models: Vec<&str> = scored.iter().map(|(cell, _)| cell.model.sha256.as_str()).collect();
        models.sort_unstable();
        models.dedup();
        let compare = |model: &str| {
            let own: Vec<_> = of_model(model);
            compare_model(plan, &own, if named.is_empty() { &own } else { &named })
        };
        models.into_iter().flat_map(compare).chain(lost).collect()
    }
}

/// The cells of a model against the reference row among `rows`.
fn compare_model(
    plan: &Plan,
    scored: &[(&CellRecord, &Evaluation)],
    rows: &[(&CellRecord, &Evaluation)],
) -> Vec<AccuracyComparison> {
    // fp32 is what others are compared with, by preference where outputs are compared with it too.
    let rank = |cell: &CellRecord| {
        let wrong = cell.verdict == Some(Verdict::WrongOutput);
        let other = cell.precision.requested != Precision::Fp32;
        (wrong, other, cell.backend.name != plan.reference.backend.name())
    };
    let Some(&(reference, base)) = rows.iter().min_by_key(|(cell, _)| rank(cell)) else { return Vec::new() };
    let others = scored.iter().filter(|(cell, _)| cell.id != reference.id);
    let label = |cell: &CellRecord, beside: &CellRecord| {
        let backend = if cell.backend.name == beside.backend.name { "" } else { &format!("{} ", cell.backend.name) };
        let batch = if cell.batch == beside.batch { "" } else { &format!(" in batches of {}", cell.batch) };
        let model = if cell.model.name == beside.model.name { "" } else { &format!("{} ", cell.model.name) };
        format!("{model}{backend}{}{batch}", cell.precision.requested)
    };
    others
        .map(|&(cell, evaluation)| {
            let (one, other) = (label(cell, reference), label(reference, cell));
            let against = Side { cell: &reference.id, label: &other, evaluation: base };
            compare(Side { cell: &cell.id, label: &one, evaluation }, against, SEED)
        })
        .collect()
}

/// One side of a comparison of two runs: what was recorded, and where.
#[derive(Clone, Copy)]
pub struct Recorded<'a> {
    /// The record.
    pub run: &'a RunRecord,
    /// The run folder, or the record in it.
    pub path: &'a Path,
}

impl Recorded<'_> {
    fn evaluate(self, scores: &mut Scores, cell: &CellRecord) -> Option<Evaluation> {
        let spec = self.run.plan.evaluation.as_ref()?;
        let planned = self.run.plan.cells.iter().find(|planned| planned.id == cell.id)?;
        let folder = if self.path.is_dir() { self.path } else { self.path.parent()? };
        let seen = &cell.accuracy.as_ref()?.data;
        let detections = Folder::open(folder)
            .map_err(|e| e.to_string())
            .and_then(|run| cell_file(&run, &cell.slug, DETECTIONS, Kind::Annotations).map_err(|e| e.to_string()));
        let evaluation =
            detections.and_then(|path| scores.evaluate(cell, &planned.model.source, &spec.data, &path, seen));
        evaluation.map_err(|reason| tracing::debug!("{}: {reason}", cell.id)).ok()
    }
}

/// mAP of a cell in two runs, image by image, where the boxes of both and the data are still there.
pub fn paired(
    scores: &mut Scores,
    before: Recorded<'_>,
    now: Recorded<'_>,
    [then, cell]: [&CellRecord; 2],
) -> Option<AccuracyComparison> {
    let (old, new) = (then.accuracy.as_ref()?, cell.accuracy.as_ref()?);
    if old.data.sha256 != new.data.sha256 || old.data.unread != new.data.unread {
        return None;
    }
    let base = before.evaluate(scores, then)?;
    let evaluation = now.evaluate(scores, cell)?;
    let against = Side { cell: &then.id, label: &before.run.run.id, evaluation: &base };
    Some(compare(Side { cell: &cell.id, label: &now.run.run.id, evaluation: &evaluation }, against, SEED))
}

/// Boxes of a result file, as they are scored. Of the same size, so no second copy is made.
pub fn scored(rows: Vec<ResultRow>) -> Vec<Scored> {
    let one = |row: ResultRow| Scored { image: row.image_id, class: row.category_id, bbox: row.bbox, score: row.score };
    rows.into_iter().map(one).collect()
}

/// What there is to be found, on the images that could be read.
fn truths(data: &Dataset, unread: &[i64]) -> Truths {
    let unread: HashSet<i64> = unread.iter().copied().collect();
    let read: Vec<usize> = (0..data.images.len()).filter(|&i| !unread.contains(&data.images[i].id)).collect();
    let all = read.iter().flat_map(|&index| data.truths(index).iter().map(move |truth| (data.images[index].id, truth)));
    let object = |(image, truth): (i64, &dataset::LabeledBox)| Truth {
        id: truth.id,
        image,
        class: data.categories[truth.category as usize].id,
        bbox: [truth.x, truth.y, truth.w, truth.h],
        area: truth.area,
        crowd: truth.crowd,
    };
    Truths {
        images: read.iter().map(|&index| data.images[index].id).collect(),
        classes: data.categories.iter().map(|category| (category.id, category.name.clone())).collect(),
        objects: all.map(object).collect(),
    }
}

/// The data on disk of an earlier sitting, if all of it is what it was: its rows stand beside those to come.
pub(crate) fn unchanged_data(record: &RunRecord) -> anyhow::Result<Option<Arc<Dataset>>> {
    let Some(spec) = &record.plan.evaluation else { return Ok(None) };
    let data = open_data(&spec.data)?;
    let mut scores = Scores::new(data.clone());
    for (planned, cell) in record.plan.cells.iter().zip(&record.cells) {
        let Some(accuracy) = &cell.accuracy else { continue };
        let data = scores.opened(&spec.data, kind_of(cell, &planned.model.source))?;
        anyhow::ensure!(
            data.sha256 == accuracy.data.sha256,
            "cannot resume {}: the data ({}) is not what {} was scored on",
            record.run.id,
            data.name,
            cell.id
        );
    }
    Ok(data)
}

/// The scenes that fit a cell.
pub(crate) fn kind_of(cell: &CellRecord, source: &ModelSource) -> SceneKind {
    let names = cell.model.info.as_ref().map(|info| info.metadata.names.as_slice()).unwrap_or_default();
    scenes::kind_for(source, names)
}
