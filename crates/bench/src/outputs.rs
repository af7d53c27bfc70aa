//! What the outputs look like, checked after the measurement: finite, repeatable, with boxes where there must be
//! some; and a few pictures for people.

use std::fs;
use std::path::Path;

use prony_judge::agreement;
use prony_types::{Agreement, Detection, EventKind, HeadChoice, OutputCheck, TensorData, Thumbnail};
use prony_vision::{Head, draw};

use crate::frames::Items;
use crate::measure::{Cell, MeasureError, Pipeline};

/// Longest side of a thumbnail.
const THUMBNAIL_SIDE: u32 = 320;
const THUMBNAILS: usize = 4;
/// Two boxes are the same when they overlap this much and their scores are this near.
const MATCHING_IOU: f32 = 0.9;
const MATCHING_SCORE: f32 = 0.02;
/// Channels of four distances as distributions over 16 bins.
const DFL_CHANNELS: usize = 64;

/// The outputs of the first frame before anything was timed, kept to hold later ones against.
pub(crate) struct Reference {
    parts: Parts,
    boxes: Vec<Detection>,
}

/// Output values, boxes and scores apart where the head tells which is which.
#[derive(Default)]
struct Parts {
    boxes: Vec<f32>,
    scores: Vec<f32>,
}

impl Reference {
    /// Takes what the last replay left in slot 0.
    pub(crate) fn take(cell: &mut Cell) -> Result<Reference, MeasureError> {
        let boxes = cell.boxes(0)?;
        Ok(Reference { parts: parts(cell), boxes })
    }
}

/// Runs all frames once more outside the clock and says what came out.
pub(crate) fn check(
    cell: &mut Cell,
    reference: &Reference,
    names: &[String],
    folder: &Path,
) -> Result<EventKind, MeasureError> {
    let is_detector = matches!(cell.pipeline, Pipeline::Detector(_));
    cell.replay(0)?;
    let agreement = against(cell, reference, is_detector)?;
    let mut tensors = agreement.boxes.iter().chain(&agreement.scores);
    let repeatable = tensors.all(|a| a.cosine > 0.9999) && agreement.matched_boxes.is_none_or(|share| share > 0.99);
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
    Ok(EventKind::Checked { check, agreement: Some(agreement), thumbnails })
}

fn against(cell: &mut Cell, reference: &Reference, is_detector: bool) -> Result<Agreement, MeasureError> {
    let now = Reference::take(cell)?;
    let compare = |before: &[f32], after: &[f32]| {
        (!before.is_empty() || !after.is_empty()).then(|| agreement::tensors(before, after))
    };
    let name = "the first call of this session on the same frame".to_owned();
    let mut values = reference.parts.boxes.iter().chain(&reference.parts.scores);
    if !values.all(|x| x.is_finite()) {
        // Nothing agrees with a NaN; that it is there is a finding of its own.
        return Ok(Agreement { reference: name, boxes: None, scores: None, matched_boxes: None });
    }
    Ok(Agreement {
        reference: name,
        boxes: compare(&reference.parts.boxes, &now.parts.boxes),
        scores: compare(&reference.parts.scores, &now.parts.scores),
        matched_boxes: is_detector
            .then(|| agreement::matched_boxes(&reference.boxes, &now.boxes, MATCHING_IOU, MATCHING_SCORE)),
    })
}

/// Values of all outputs in slot 0. A zeroed score tensor hides in the cosine of the whole, so scores stand apart.
fn parts(cell: &Cell) -> Parts {
    let mut parts = Parts::default();
    let head = match &cell.pipeline {
        Pipeline::Detector(detector) => detector.decoder.as_ref().map(|decoder| decoder.head()),
        Pipeline::Plain => None,
    };
    for index in 0..cell.session.output_count() {
        let view = cell.session.output(0, index);
        let is_box = boxes_of(head, view.shape);
        let values = floats(view.data);
        for (i, value) in values.into_iter().enumerate() {
            if is_box(i) { parts.boxes.push(value) } else { parts.scores.push(value) }
        }
    }
    parts
}

/// Which elements of an output of this shape are box coordinates.
fn boxes_of(head: Option<&Head>, shape: &[usize]) -> impl Fn(usize) -> bool {
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
