//! What the outputs look like, checked after the measurement: finite, repeatable, with boxes where there must be
//! some; and a few pictures for people.

use std::path::Path;

use prony_files::Folder;
use prony_types::{Agreement, Detection, EventKind, OutputCheck, Sensitivity, Thumbnail};
use prony_vision::{Head, draw};

use crate::agreement::{Outputs, Seen};
use crate::frames::Items;
use crate::measure::{Cell, MeasureError, Pipeline};
use crate::reference::{Frame, Reference};

/// Longest side of a thumbnail.
const THUMBNAIL_SIDE: u32 = 320;
const THUMBNAILS: usize = 4;

/// Runs all frames once more outside the clock and says what came out, and how sensitive the reference is.
pub(crate) fn check(
    cell: &mut Cell,
    first: &[Outputs],
    reference: Option<&Path>,
    names: &[String],
    folder: &Path,
) -> Result<(EventKind, Option<Sensitivity>), MeasureError> {
    let is_detector = matches!(cell.pipeline, Pipeline::Detector(_));
    cell.replay(0)?;
    let repeatable = is_repeated(first, &cell.all_taken()?);
    let (agreement, no_agreement) = match reference.map(|path| agreed(cell, path)) {
        None => (None, None),
        Some(Ok(agreement)) => (Some(agreement), None),
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
    let sensitivity = agreement.as_ref().and_then(|agreement| agreement.sensitivity);
    Ok((EventKind::Checked { check, agreement, no_agreement, thumbnails }, sensitivity))
}

/// Whether the same frames gave the same twice. With a NaN nothing agrees, and that is reported elsewhere.
fn is_repeated(first: &[Outputs], again: &[Outputs]) -> bool {
    if !first.iter().all(Outputs::is_finite) {
        return true;
    }
    let mut seen = Seen::default();
    first.iter().zip(again).for_each(|(first, again)| seen.add(first, again, &[]));
    let mut tensors = [seen.boxes, seen.scores, seen.rest].into_iter().flatten();
    tensors.all(|tensor| tensor.cosine > 0.9999) && seen.tally.share().is_none_or(|share| share > 0.99)
}

/// Why outputs could not be held against the reference.
enum Disagreement {
    /// The reference's fault.
    Reference(String),
    /// The cell's.
    Cell(MeasureError),
}

impl From<MeasureError> for Disagreement {
    fn from(error: MeasureError) -> Disagreement {
        Disagreement::Cell(error)
    }
}

/// Every frame of the reference once more, here, among its neighbours in a batch.
fn agreed(cell: &mut Cell, path: &Path) -> Result<Agreement, Disagreement> {
    let reference = Reference::read(path).map_err(Disagreement::Reference)?;
    let frames = reference.frames.len();
    if reference.frames_sha256 != cell.feed.sha256_of(frames) {
        return Err(Disagreement::Reference("the reference was computed on other frames".into()));
    }
    if !reference.frames.iter().all(|frame| frame.outputs.is_finite()) {
        return Err(Disagreement::Reference("the reference holds values that are not finite".into()));
    }
    let is_detector = matches!(cell.pipeline, Pipeline::Detector(_));
    let step = if is_detector { cell.batch } else { 1 };
    let mut seen = Seen::default();
    for first in (0..frames).step_by(step) {
        cell.replay(first)?;
        for (item, outputs) in cell.all_taken()?.iter().enumerate() {
            if let Some(Frame { outputs: wanted, stands }) = reference.frames.get((first + item) % cell.feed.len()) {
                seen.add(wanted, outputs, stands);
            }
        }
    }
    Ok(Agreement {
        reference: reference.by,
        boxes: seen.boxes,
        scores: seen.scores,
        rest: seen.rest,
        matched_boxes: seen.tally.share(),
        compared_boxes: is_detector.then(|| seen.tally.boxes()),
        sensitivity: reference.sensitivity,
    })
}

/// How the cell's outputs become boxes; `None` for a model that is not a detector.
pub(crate) fn head_of(cell: &Cell) -> Option<&Head> {
    match &cell.pipeline {
        Pipeline::Detector(detector) => detector.decoder.as_ref().map(|decoder| decoder.head()),
        Pipeline::Plain => None,
    }
}

fn picture(cell: &Cell, frame: usize, boxes: &[Detection], names: &[String], folder: &Path) -> Option<Thumbnail> {
    let Items::Images(images) = &cell.feed.items else { return None };
    let drawn = draw::detections(&images[frame], boxes, names, THUMBNAIL_SIDE);
    let picture = prony_source::jpeg::encode_jpeg(&drawn).ok()?;
    let file = format!("frame-{frame:03}.jpg");
    Folder::open(folder)
        .and_then(|folder| folder.replace(&file, &picture))
        .map_err(|error| tracing::warn!("cannot write {}: {error}", folder.join(&file).display()))
        .ok()?;
    let count = boxes.len();
    let caption = format!("frame {frame}: {count} {}", if count == 1 { "box" } else { "boxes" });
    Some(Thumbnail { file, caption })
}
