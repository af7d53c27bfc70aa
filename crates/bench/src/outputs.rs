//! What the outputs look like, checked after the measurement: finite, repeatable, with boxes where there must be
//! some; and a few pictures for people.

use std::fs;
use std::ops::Range;
use std::path::Path;

use prony_backend::Session;
use prony_judge::agreement::{self, MATCHING_IOU, MATCHING_SCORE};
use prony_types::{Agreement, Detection, EventKind, HeadChoice, OutputCheck, TensorData, Thumbnail};
use prony_vision::{Head, draw};

use crate::frames::Items;
use crate::measure::{Cell, MeasureError, Pipeline};
use crate::reference::{CALLS, Outputs, Reference};

/// Longest side of a thumbnail.
const THUMBNAIL_SIDE: u32 = 320;
const THUMBNAILS: usize = 4;
/// Channels of four distances as distributions over 16 bins.
const DFL_CHANNELS: usize = 64;

/// What the last replay left in slot 0.
pub(crate) fn taken(cell: &mut Cell) -> Result<Outputs, MeasureError> {
    let mut outputs = values(cell);
    for item in 0..cell.batch {
        outputs.detections.push(cell.boxes(item)?);
    }
    Ok(outputs)
}

/// Outputs of a few calls from the first frame on.
pub(crate) fn reference(cell: &mut Cell, by: String) -> Result<Reference, MeasureError> {
    let calls = (0..CALLS).map(|call| {
        cell.replay(call * cell.batch)?;
        taken(cell)
    });
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    Ok(Reference { by, frames_sha256: cell.feed.sha256_of(CALLS * cell.batch), calls })
}

/// Runs all frames once more outside the clock and says what came out.
pub(crate) fn check(
    cell: &mut Cell,
    first: &Outputs,
    reference: Option<&Path>,
    names: &[String],
    folder: &Path,
) -> Result<EventKind, MeasureError> {
    let is_detector = matches!(cell.pipeline, Pipeline::Detector(_));
    cell.replay(0)?;
    let itself = held_against(cell, first, String::new())?;
    let repeatable = itself.is_none_or(|agreement| {
        let mut tensors = agreement.boxes.iter().chain(&agreement.scores);
        tensors.all(|a| a.cosine > 0.9999) && agreement.matched_boxes.is_none_or(|share| share > 0.99)
    });
    let (agreement, no_agreement) = match reference.map(|path| agreed(cell, path)) {
        None => (None, None),
        Some(Ok(agreement)) => (agreement, None),
        Some(Err(Disagreement::Reference(reason))) => (None, Some(reason)),
        Some(Err(Disagreement::Cell(error))) => return Err(error),
    };
    let mut detections = 0;
    let mut thumbnails = Vec::new();
    for first in (0..cell.feed.len()).step_by(cell.batch) {
        cell.replay(first)?;
        for item in 0..cell.batch.min(cell.feed.len() - first) {
            let boxes = cell.boxes(item)?;
            detections += boxes.len() as u64;
            if thumbnails.len() < THUMBNAILS {
                thumbnails.extend(picture(cell, first + item, &boxes, names, folder));
            }
        }
    }
    let check = OutputCheck {
        non_finite_calls: cell.non_finite_calls,
        checked_calls: cell.checked_calls,
        detections: is_detector.then_some(detections),
        detections_expected: cell.feed.home_scenes,
        repeatable,
    };
    Ok(EventKind::Checked { check, agreement, no_agreement, thumbnails })
}

/// Why outputs could not be held against the reference.
enum Disagreement {
    /// The reference's fault.
    Reference(String),
    /// The cell's.
    Cell(MeasureError),
}

/// Every call of the reference once more, here; of each figure the worst over the calls.
fn agreed(cell: &mut Cell, path: &Path) -> Result<Option<Agreement>, Disagreement> {
    let reference = Reference::read(path).map_err(Disagreement::Reference)?;
    if reference.frames_sha256 != cell.feed.sha256_of(CALLS * cell.batch) {
        return Err(Disagreement::Reference("the reference was computed on other frames".into()));
    }
    let mut worst: Option<Agreement> = None;
    // Of boxes the share over all calls: a frame with one box would be all or nothing.
    let (mut matched, mut of) = (0.0, 0.0);
    for (call, outputs) in reference.calls.iter().enumerate() {
        cell.replay(call * cell.batch).map_err(Disagreement::Cell)?;
        let now = held_against(cell, outputs, reference.by.clone()).map_err(Disagreement::Cell)?;
        let Some(now) = now else {
            return Err(Disagreement::Reference("the reference holds values that are not finite".into()));
        };
        let boxes: usize = outputs.detections.iter().map(Vec::len).sum::<usize>().max(1);
        matched += now.matched_boxes.unwrap_or(1.0) * boxes as f64;
        of += boxes as f64;
        worst = Some(match worst {
            Some(before) => agreement::worse(before, &now),
            None => now,
        });
    }
    Ok(worst.map(|worst| Agreement { matched_boxes: worst.matched_boxes.map(|_| matched / of), ..worst }))
}

/// The last replay against earlier outputs; `None` where those hold a NaN, with which nothing agrees.
fn held_against(cell: &mut Cell, earlier: &Outputs, name: String) -> Result<Option<Agreement>, MeasureError> {
    if !earlier.boxes.iter().chain(&earlier.scores).all(|x| x.is_finite()) {
        return Ok(None);
    }
    let now = taken(cell)?;
    let detector = match &cell.pipeline {
        Pipeline::Detector(detector) => Some(detector.decoder.as_ref().map(|decoder| decoder.head().choice())),
        Pipeline::Plain => None,
    };
    // Boxes that come out final come in the order of their scores: two that nearly tie may trade places, and the values
    // say nothing then; the boxes do.
    let final_boxes = matches!(detector, Some(Some(HeadChoice::EndToEnd | HeadChoice::EfficientNms)));
    let compare = |before: &[f32], after: &[f32]| {
        let there = !final_boxes && (!before.is_empty() || !after.is_empty());
        there.then(|| agreement::tensors(before, after))
    };
    Ok(Some(Agreement {
        reference: name,
        boxes: compare(&earlier.boxes, &now.boxes),
        scores: compare(&earlier.scores, &now.scores),
        matched_boxes: detector.map(|_| worst_match(&earlier.detections, &now.detections)),
    }))
}

/// Share of matched boxes of the item that is furthest off.
fn worst_match(earlier: &[Vec<Detection>], now: &[Vec<Detection>]) -> f64 {
    let shares = earlier.iter().zip(now).map(|(a, b)| agreement::matched_boxes(a, b, MATCHING_IOU, MATCHING_SCORE));
    if earlier.len() == now.len() { shares.fold(1.0, f64::min) } else { 0.0 }
}

/// Values of all outputs in slot 0. A zeroed score tensor hides in the cosine of the whole, so scores stand apart.
fn values(cell: &Cell) -> Outputs {
    split(&*cell.session, head_of(cell), |length| 0..length)
}

/// How the cell's outputs become boxes; `None` for a model that is not a detector.
pub(crate) fn head_of(cell: &Cell) -> Option<&Head> {
    match &cell.pipeline {
        Pipeline::Detector(detector) => detector.decoder.as_ref().map(|decoder| decoder.head()),
        Pipeline::Plain => None,
    }
}

/// A part of every output in slot 0, which `part` chooses by the output's length.
pub(crate) fn split(session: &dyn Session, head: Option<&Head>, part: impl Fn(usize) -> Range<usize>) -> Outputs {
    let mut outputs = Outputs::default();
    for index in 0..session.output_count() {
        let view = session.output(0, index);
        let is_box = boxes_of(head, view.shape);
        let values = floats(view.data);
        for i in part(values.len()) {
            if is_box(i) { outputs.boxes.push(values[i]) } else { outputs.scores.push(values[i]) }
        }
    }
    outputs
}

/// Which elements of an output of this shape are box coordinates; all of them without a head.
pub fn boxes_of(head: Option<&Head>, shape: &[usize]) -> impl Fn(usize) -> bool {
    let last = shape.last().copied().unwrap_or(1).max(1);
    let rows = if shape.len() >= 2 { shape[shape.len() - 2].max(1) } else { 1 };
    let coordinates = if head.map(Head::choice) == Some(HeadChoice::Dfl) { DFL_CHANNELS } else { 4 };
    // Channels are rows in [N,4+nc,A], columns in everything else.
    let channels_are_rows = match head.map(Head::choice) {
        Some(HeadChoice::Dfl) => true,
        Some(HeadChoice::Dense) => head.is_some_and(|head| head.classes().is_some_and(|classes| rows == 4 + classes)),
        _ => false,
    };
    let separate = head.map(Head::choice) == Some(HeadChoice::EfficientNms);
    let no_head = head.is_none();
    move |i| match () {
        () if no_head => true,
        () if separate => last == 4,
        () if channels_are_rows => (i / last) % rows < coordinates,
        () => i % last < coordinates,
    }
}

fn floats(data: TensorData<'_>) -> Vec<f32> {
    match data {
        TensorData::F32(data) => data.to_vec(),
        TensorData::I32(data) => data.iter().map(|&x| x as f32).collect(),
        TensorData::I64(data) => data.iter().map(|&x| x as f32).collect(),
    }
}

fn picture(cell: &Cell, frame: usize, boxes: &[Detection], names: &[String], folder: &Path) -> Option<Thumbnail> {
    let Items::Images(images) = &cell.feed.items else { return None };
    let drawn = draw::detections(&images[frame], boxes, names, THUMBNAIL_SIDE);
    let picture = prony_source::jpeg::encode_jpeg(&drawn).ok()?;
    let file = format!("frame-{frame:03}.jpg");
    fs::write(folder.join(&file), picture)
        .map_err(|error| tracing::warn!("cannot write {}: {error}", folder.join(&file).display()))
        .ok()?;
    let count = boxes.len();
    let caption = format!("frame {frame}: {count} {}", if count == 1 { "box" } else { "boxes" });
    Some(Thumbnail { file, caption })
}
