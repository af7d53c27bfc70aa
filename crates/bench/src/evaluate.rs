//! A data set through the very session that was timed. Images are decoded and letterboxed in threads of their own, a few
//! ahead of the model; what is kept is the boxes, which go to their file as they come.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};

use prony_source::coco::{ResultRow, ResultWriter};
use prony_source::dataset::{self, Dataset, classes};
use prony_source::folder::Loader;
use prony_source::scenes;
use prony_types::{
    Detection, EvaluateData, EvaluateOrder, EvaluatedData, EvaluationProblem, FailureKind, Metadata, ModelSource,
};
use prony_vision::{Letterbox, Preprocessor};

use crate::measure::{Cell, MeasureError, Pipeline};
use crate::now_ns;

/// More threads than this only fill memory.
const MOST_THREADS: usize = 8;
/// Problems that are named one by one.
const NAMED: usize = 20;
/// How often progress is told.
const TELL_EVERY_NS: u64 = 200_000_000;

/// Why there is no accuracy.
pub(crate) enum Unscored {
    /// Not for this cell; the rest of it stands.
    Absent(EvaluationProblem),
    /// The user has had enough.
    Interrupted,
    /// The cell itself failed.
    Cell(MeasureError),
}

impl From<MeasureError> for Unscored {
    fn from(error: MeasureError) -> Unscored {
        Unscored::Cell(error)
    }
}

/// The data's fault, or the model's.
fn absent(reason: impl std::fmt::Display) -> Unscored {
    Unscored::Absent(EvaluationProblem { kind: FailureKind::Input, message: reason.to_string() })
}

/// Nobody's but ours or the machine's.
fn failed(reason: impl std::fmt::Display) -> Unscored {
    Unscored::Absent(EvaluationProblem { kind: FailureKind::Internal, message: reason.to_string() })
}

/// Scores nothing: writes what the model says of every image. `tell` hears how many of how many are done.
pub(crate) fn evaluate(
    cell: &mut Cell,
    order: &EvaluateOrder,
    model: &ModelSource,
    metadata: &Metadata,
    tell: &mut Tell<'_>,
) -> Result<EvaluatedData, Unscored> {
    let begun = now_ns();
    let Pipeline::Detector(detector) = &cell.pipeline else {
        return Err(absent("not a detector: there are no boxes to score"));
    };
    let Some(decoder) = &detector.decoder else { return Err(absent("no head was found for its outputs")) };
    // Names that are there are never passed over: by position the classes may be anything.
    if let Some(problem) = &metadata.names_problem {
        return Err(absent(format!("the model's class names cannot be read: {problem}")));
    }
    let names = &metadata.names;
    let data = match &order.data {
        EvaluateData::Scenes(spec) => dataset::open(spec, scenes::kind_for(model, names)).map_err(absent)?,
        EvaluateData::Images(images) => dataset::read_chosen(images).map_err(failed)?,
    };
    let map = classes::map(names, decoder.head().classes(), &data.categories).map_err(absent)?;
    let preprocessor = detector.preprocessor.fresh();
    let mut writer = ResultWriter::create(&order.detections).map_err(failed)?;
    let mut record = data.record();
    let mut kept = 0;
    let mut strangers = 0;
    let mut write = |index: usize, boxes: &[Detection]| -> Result<(), Unscored> {
        for found in boxes {
            let Some(category) = map.category(found.class) else {
                strangers += 1;
                continue;
            };
            let row = row(data.images[index].id, data.categories[category as usize].id, found);
            writer.push(&row).map_err(failed)?;
            kept += 1;
        }
        Ok(())
    };
    let before = cell.with_post(&order.post);
    let outcome = through(cell, &data, &preprocessor, tell, &mut write);
    cell.with_post(&before);
    let unread = outcome?;
    writer.finish().map_err(failed)?;
    if unread.len() == data.images.len() {
        let first = unread.first().map(|(_, reason)| reason.as_str()).unwrap_or_default();
        return Err(absent(format!("none of the {} images can be read: {first}", unread.len())));
    }
    let known = |index: usize| data.truths(index).iter().filter(|truth| map.knows(truth.category)).count() as u64;
    let mut objects: u64 = (0..data.images.len()).map(known).sum();
    for (index, _) in &unread {
        objects -= known(*index);
        record.unread.push(data.images[*index].id);
        record.images -= 1;
        record.objects -= data.truths(*index).len() as u64;
        record.problem_count += 1;
    }
    // Before what else is wrong: these are the ones that are missing from the score.
    let broken = unread.iter().take(NAMED).map(|(_, reason)| reason.clone());
    record.problems.splice(0..0, broken);
    record.class_match = Some(map.summary(&data.categories, objects));
    record.classes = map.words;
    Ok(EvaluatedData { data: record, detections: kept, strangers, seconds: (now_ns() - begun) as f64 / 1e9 })
}

/// A box as it is written: pixels to a thousandth, scores to five digits, as Ultralytics' own files have them.
fn row(image_id: i64, category_id: i64, found: &Detection) -> ResultRow {
    let to = |value: f32, digits: f64| (f64::from(value) * digits).round() / digits;
    let (x, y) = (to(found.x1, 1e3), to(found.y1, 1e3));
    let (w, h) = (to(found.x2 - found.x1, 1e3), to(found.y2 - found.y1, 1e3));
    ResultRow { image_id, category_id, bbox: [x, y, w, h], score: to(found.score, 1e5) }
}

/// Hears of the boxes of an image, by its index.
type Write<'a> = dyn FnMut(usize, &[Detection]) -> Result<(), Unscored> + 'a;
/// Hears how many images of how many are done.
type Tell<'a> = dyn FnMut(u64, u64) -> std::io::Result<()> + 'a;

/// An image on its way into the model.
struct Ready {
    index: usize,
    outcome: Result<(Vec<f32>, Letterbox), String>,
}

/// How far the threads may run ahead, and planes to use again.
struct Desk {
    state: Mutex<State>,
    moved: Condvar,
    window: usize,
    count: usize,
}

#[derive(Default)]
struct State {
    next: usize,
    consumed: usize,
    ended: bool,
    spare: Vec<Vec<f32>>,
}

impl Desk {
    /// The next image to decode and memory for it; `None` when there is no more to do.
    fn take(&self) -> Option<(usize, Vec<f32>)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.ended || state.next >= self.count {
                return None;
            }
            if state.next < state.consumed + self.window {
                let index = state.next;
                state.next += 1;
                return Some((index, state.spare.pop().unwrap_or_default()));
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// So many are through the model; a plane comes back.
    fn consumed(&self, count: usize, plane: Option<Vec<f32>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.consumed = count;
        state.spare.extend(plane);
        self.moved.notify_all();
    }

    fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.moved.notify_all();
    }
}

/// Every image through the model, in their order; those that could not be read, each with its reason.
fn through(
    cell: &mut Cell,
    data: &Dataset,
    preprocessor: &Preprocessor,
    tell: &mut Tell<'_>,
    write: &mut Write<'_>,
) -> Result<Vec<(usize, String)>, Unscored> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(MOST_THREADS);
    let window = 2 * threads + cell.batch;
    let desk = Desk { state: Mutex::default(), moved: Condvar::new(), window, count: data.images.len() };
    let (sender, ready) = sync_channel(window);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (desk, sender, own) = (&desk, sender.clone(), preprocessor.fresh());
            scope.spawn(move || decode(desk, data, own, &sender));
        }
        drop(sender);
        let outcome = consume(cell, &desk, &ready, tell, write);
        desk.end();
        // Threads that wait for room in the channel see that nobody listens.
        drop(ready);
        outcome
    })
}

fn decode(desk: &Desk, data: &Dataset, mut preprocessor: Preprocessor, sender: &SyncSender<Ready>) {
    let mut loader = Loader::default();
    while let Some((index, mut plane)) = desk.take() {
        // A file may be made to break a decoder; the image is lost then, and nothing else.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let image = data.load(index, &mut loader).map_err(|e| e.to_string())?;
            plane.resize(preprocessor.input_len(), 0.0);
            let letterbox = preprocessor.run(image, &mut plane);
            Ok((std::mem::take(&mut plane), letterbox))
        }));
        let outcome = outcome.unwrap_or_else(|_| {
            loader = Loader::default();
            preprocessor = preprocessor.fresh();
            Err(format!("{}: its decoder panicked", data.images[index].name))
        });
        if sender.send(Ready { index, outcome }).is_err() {
            return;
        }
    }
}

fn consume(
    cell: &mut Cell,
    desk: &Desk,
    ready: &Receiver<Ready>,
    tell: &mut Tell<'_>,
    write: &mut Write<'_>,
) -> Result<Vec<(usize, String)>, Unscored> {
    let total = desk.count;
    let mut early: BTreeMap<usize, Ready> = BTreeMap::new();
    let mut batch: Vec<(usize, Vec<f32>, Letterbox)> = Vec::new();
    let mut unread = Vec::new();
    let mut told = 0;
    for wanted in 0..total {
        let item = loop {
            if let Some(item) = early.remove(&wanted) {
                break item;
            }
            let next = ready.recv().map_err(|_| failed("the threads that decode images died"))?;
            early.insert(next.index, next);
        };
        match item.outcome {
            Ok((plane, letterbox)) => batch.push((item.index, plane, letterbox)),
            Err(reason) => unread.push((item.index, reason)),
        }
        if batch.len() == cell.batch || wanted + 1 == total && !batch.is_empty() {
            run(cell, &batch, write)?;
            for (_, plane, _) in batch.drain(..) {
                desk.consumed(wanted + 1, Some(plane));
            }
        }
        desk.consumed(wanted + 1, None);
        if cell.ring.asked_to_stop() {
            return Err(Unscored::Interrupted);
        }
        let now = now_ns();
        if now - told > TELL_EVERY_NS || wanted + 1 == total {
            told = now;
            tell(wanted as u64 + 1, total as u64).map_err(failed)?;
        }
    }
    Ok(unread)
}

fn run(cell: &mut Cell, batch: &[(usize, Vec<f32>, Letterbox)], write: &mut Write<'_>) -> Result<(), Unscored> {
    for item in 0..cell.batch {
        // The model takes whole batches; the last image fills up the last of them.
        let (_, plane, letterbox) = &batch[item.min(batch.len() - 1)];
        cell.fill(item, plane, *letterbox);
    }
    cell.run_filled()?;
    for (item, (index, _, _)) in batch.iter().enumerate() {
        write(*index, &cell.boxes(item)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_digits_of_the_file() {
        let found = Detection { x1: 1.23456, y1: 2.0, x2: 11.234_56, y2: 2.5, score: 0.123_456_7, class: 3 };
        let row = row(7, 18, &found);
        assert_eq!((row.image_id, row.category_id, row.score), (7, 18, 0.12346));
        assert_eq!(row.bbox, [1.235, 2.0, 10.0, 0.5]);
    }

    #[test]
    fn threads_run_ahead_no_further_than_the_window() {
        let desk = Desk { state: Mutex::default(), moved: Condvar::new(), window: 2, count: 3 };
        assert_eq!(desk.take().map(|(index, _)| index), Some(0));
        assert_eq!(desk.take().map(|(index, _)| index), Some(1));
        std::thread::scope(|scope| {
            let third = scope.spawn(|| desk.take().map(|(index, plane)| (index, plane.len())));
            desk.consumed(1, Some(vec![0.0; 5]));
            assert_eq!(third.join().unwrap(), Some((2, 5)), "with the plane that came back");
        });
        assert!(desk.take().is_none(), "there are three");
        desk.end();
        assert!(desk.take().is_none());
    }
}
