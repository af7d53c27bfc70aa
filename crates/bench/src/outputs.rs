//! What the outputs look like, checked after the measurement: finite, repeatable, with boxes where there must be
//! some; and a few pictures for people.

use std::fs;
use std::path::Path;

use prony_judge::agreement;
use prony_types::{Agreement, Detection, EventKind, OutputCheck, TensorData, Thumbnail};
use prony_vision::draw;

use crate::frames::Items;
use crate::measure::{Cell, MeasureError, Pipeline};

/// Longest side of a thumbnail.
const THUMBNAIL_SIDE: u32 = 320;
const THUMBNAILS: usize = 4;

/// The outputs of the first call on the first frame, kept to hold later ones against.
pub(crate) struct Reference {
    outputs: Vec<Vec<f32>>,
}

impl Reference {
    /// Takes the outputs that are in slot 0 now.
    pub(crate) fn take(cell: &Cell) -> Reference {
        Reference {
            outputs: (0..cell.session.output_count()).map(|i| floats(cell.session.output(0, i).data)).collect(),
        }
    }
}

fn floats(data: TensorData<'_>) -> Vec<f32> {
    match data {
        TensorData::F32(data) => data.to_vec(),
        TensorData::I32(data) => data.iter().map(|&x| x as f32).collect(),
        TensorData::I64(data) => data.iter().map(|&x| x as f32).collect(),
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
    let agreement = against(cell, reference, is_detector);
    let repeatable = agreement.iter().all(|a| a.cosine > 0.9999);
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
    let (boxes, scores) = match agreement[..] {
        [all] => (Some(all), None),
        [boxes, scores, ..] => (Some(boxes), Some(scores)),
        [] => (None, None),
    };
    let reference = "the first call of this session on the same frame".to_owned();
    let agreement = Agreement { reference, boxes, scores, matched_boxes: None };
    Ok(EventKind::Checked { check, agreement, thumbnails })
}

/// Boxes and scores apart where the head allows it, else everything in one.
fn against(cell: &Cell, reference: &Reference, is_detector: bool) -> Vec<prony_types::TensorAgreement> {
    let now = Reference::take(cell);
    if let (true, [before], [after]) = (is_detector, &reference.outputs[..], &now.outputs[..]) {
        // Dense heads: the first four rows are boxes, the rest scores; transposed ones are compared as a whole.
        let shape = cell.session.output(0, 0).shape;
        if let [_, channels, anchors] = shape[..]
            && channels > 4
            && channels < anchors
            && before.len() == after.len()
            && before.len() >= channels * anchors
        {
            let split = 4 * anchors;
            let item = channels * anchors;
            return vec![
                agreement::tensors(&before[..split], &after[..split]),
                agreement::tensors(&before[split..item], &after[split..item]),
            ];
        }
    }
    let all = |outputs: &[Vec<f32>]| outputs.concat();
    vec![agreement::tensors(&all(&reference.outputs), &all(&now.outputs))]
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
