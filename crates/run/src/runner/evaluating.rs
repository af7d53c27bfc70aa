//! How right the cells are: each runs the data set through the session that was timed, and what it wrote is scored.

use std::time::Instant;

use prony_files::Kind;
use prony_types::{AccuracyComparison, AccuracyRecord, Command, Doing, EvaluationSpec, EventKind, RunEventKind};

use super::Run;
use crate::accuracy;

impl Run {
    /// Has every worker run the data set, and scores what it wrote.
    pub(super) fn evaluate_cells(&mut self) {
        let Some(spec) = self.plan().evaluation.clone() else { return };
        for index in 0..self.cells.len() {
            if self.interrupt.asked() {
                return;
            }
            if !self.is_running(index) {
                continue;
            }
            let (accuracy, absent) = match self.evaluate_cell(index, &spec) {
                // The worker said why, or died.
                Ok(None) => continue,
                Ok(Some(accuracy)) => (Some(Box::new(accuracy)), None),
                Err(reason) => (None, Some(reason)),
            };
            self.emit(RunEventKind::Scored { cell: self.cells[index].spec.id.clone(), accuracy, absent });
        }
    }

    fn evaluate_cell(&mut self, index: usize, spec: &EvaluationSpec) -> Result<Option<AccuracyRecord>, String> {
        let folder = self.files.cell_dir(self.slug(index)).map_err(|e| e.to_string())?;
        let folder = std::path::absolute(folder).map_err(|e| e.to_string())?;
        let detections = folder.join(accuracy::DETECTIONS);
        let order = self.scores.order(spec, &self.files, detections)?;
        self.order(index, &Command::Evaluate(Box::new(order)), Doing::Evaluating);
        self.wait(index, |event| matches!(event, EventKind::Evaluated { .. }));
        self.sensors.point_at(None);
        self.scores.retract(&self.files);
        let cell = &mut self.cells[index];
        let Some(evaluated) = cell.evaluated.take() else { return Ok(None) };
        let record = &self.fold.cell(index).record;
        let found = self.files.cell_file(&record.slug, accuracy::DETECTIONS, Kind::Annotations);
        let found = found.map_err(|e| e.to_string())?;
        let accuracy = self.scores.score(record, &cell.spec.model.source, spec, &found, &evaluated)?;
        self.files.write_json(&record.slug, accuracy::METRICS, &accuracy).map_err(|e| format!("{e:#}"))?;
        cell.alive = Instant::now();
        Ok(Some(accuracy))
    }

    /// Every scored cell against the reference row.
    pub(super) fn compare_accuracy(&mut self) -> Vec<AccuracyComparison> {
        let (record, files) = (self.fold.record(), &self.files);
        let boxes =
            |slug: &str| files.cell_file(slug, accuracy::DETECTIONS, Kind::Annotations).map_err(|e| e.to_string());
        self.scores.compare(&record.plan, &record.cells, boxes)
    }
}
