//! Outputs that others are compared with: computed once in fp32, frame by frame, kept in a file that says what it is.
//!
//! Every frame runs alone, whatever batch the cells have, and runs a second time with its input perturbed by the rounding of a
//! precision: that tells how far rounding alone carries this model.
//!
//! The file is a line with its kind and the hash of the rest; a line of JSON; and, frame after frame, the values of all
//! outputs and the candidates as little-endian floats.

use std::path::Path;

use prony_files::{Folder, Kind};
use prony_types::{Detection, Sensitivity};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::agreement::{Outputs, Seen};
use crate::measure::{Cell, MeasureError, Pipeline};
use crate::parts::Parts;

/// Frames whose outputs are kept at least: enough for a rare mistake to show, few enough to be quick.
const FRAMES: usize = 4;

const MAGIC: &str = "prony.reference/3";

/// How many frames a reference for cells of this batch holds: whole batches of them.
pub(crate) fn frames_for(batch: u32) -> u32 {
    (FRAMES as u32).max(batch).next_multiple_of(batch.max(1))
}

#[derive(Serialize, Deserialize)]
struct Header {
    by: String,
    /// Of the frames that were fed.
    frames_sha256: String,
    frames: Vec<FrameHeader>,
    sensitivity: Option<Sensitivity>,
}

#[derive(Serialize, Deserialize)]
struct FrameHeader {
    boxes: usize,
    scores: usize,
    rest: usize,
    is_final: bool,
    kept: Vec<Detection>,
    candidates: Option<usize>,
    stands: Vec<bool>,
}

/// What a frame gave, and which of its boxes rounding leaves where they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Frame {
    pub(crate) outputs: Outputs,
    pub(crate) stands: Vec<bool>,
}

/// The outputs of a few frames.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    /// What computed them, in words.
    pub(crate) by: String,
    /// Of the frames that were fed.
    pub(crate) frames_sha256: String,
    pub(crate) frames: Vec<Frame>,
    /// How far rounding carries them.
    pub(crate) sensitivity: Option<Sensitivity>,
}

/// Runs the first frames, each alone, plain and perturbed.
pub(crate) fn compute(cell: &mut Cell, by: String, count: usize, epsilon: f64) -> Result<Reference, MeasureError> {
    let count = count.min(cell.feed.len());
    let mut frames = Vec::with_capacity(count);
    let mut seen = Seen::default();
    for frame in 0..count {
        cell.replay_alone(frame)?;
        let outputs = cell.taken(0)?;
        cell.replay_perturbed(frame, epsilon)?;
        let perturbed = cell.taken(0)?;
        seen.add(&outputs, &perturbed, &[]);
        frames.push(Frame { stands: outputs.stands(&perturbed).unwrap_or_default(), outputs });
    }
    let is_detector = matches!(cell.pipeline, Pipeline::Detector(_));
    let stands = || frames.iter().flat_map(|frame| &frame.stands);
    let all = stands().count();
    let sensitivity = Sensitivity {
        epsilon,
        boxes: seen.boxes,
        scores: seen.scores,
        rest: seen.rest,
        unstable_boxes: (is_detector && all > 0)
            .then(|| stands().filter(|stands| !**stands).count() as f64 / all as f64),
    };
    Ok(Reference { by, frames_sha256: cell.feed.sha256_of(count), frames, sensitivity: Some(sensitivity) })
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The kind of the file, and the hash of all that comes behind this line.
fn first_line(rest: &[u8]) -> String {
    format!("{MAGIC} {}", hex(rest))
}

fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// Floats of a candidate in the file.
const OF_A_BOX: usize = 6;

fn to_floats(b: &Detection) -> [f32; OF_A_BOX] {
    // Bits, so that any class comes back as it was.
    [b.x1, b.y1, b.x2, b.y2, b.score, f32::from_bits(b.class)]
}

fn from_floats([x1, y1, x2, y2, score, class]: [f32; OF_A_BOX]) -> Detection {
    Detection { x1, y1, x2, y2, score, class: class.to_bits() }
}

impl FrameHeader {
    fn of(Frame { outputs, stands }: &Frame) -> FrameHeader {
        let Outputs { values, kept, candidates, is_final } = outputs;
        FrameHeader {
            boxes: values.boxes.len(),
            scores: values.scores.len(),
            rest: values.rest.len(),
            is_final: *is_final,
            kept: kept.clone(),
            candidates: candidates.as_ref().map(Vec::len),
            stands: stands.clone(),
        }
    }

    /// Floats of the frame in the file; `None` for a number that no file has.
    fn floats(&self) -> Option<usize> {
        let candidates = self.candidates.unwrap_or(0).checked_mul(OF_A_BOX)?;
        self.boxes.checked_add(self.scores)?.checked_add(self.rest)?.checked_add(candidates)
    }

    fn read(self, floats: &mut impl Iterator<Item = f32>) -> Frame {
        let mut take = |count| floats.by_ref().take(count).collect::<Vec<f32>>();
        let values = Parts { boxes: take(self.boxes), scores: take(self.scores), rest: take(self.rest) };
        let candidates = self.candidates.map(|count| {
            let floats = take(count * OF_A_BOX);
            floats.as_chunks::<OF_A_BOX>().0.iter().map(|&six| from_floats(six)).collect()
        });
        Frame { outputs: Outputs { values, kept: self.kept, candidates, is_final: self.is_final }, stands: self.stands }
    }
}

impl Reference {
    /// Writes the file, whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let header = Header {
            by: self.by.clone(),
            frames_sha256: self.frames_sha256.clone(),
            frames: self.frames.iter().map(FrameHeader::of).collect(),
            sensitivity: self.sensitivity,
        };
        let mut rest = serde_json::to_vec(&header).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        rest.push(b'\n');
        for Outputs { values, candidates, .. } in self.frames.iter().map(|frame| &frame.outputs) {
            let values = values.boxes.iter().chain(&values.scores).chain(&values.rest);
            rest.extend(values.flat_map(|x| x.to_le_bytes()));
            rest.extend(candidates.iter().flatten().flat_map(to_floats).flat_map(f32::to_le_bytes));
        }
        let whole = [first_line(&rest).as_bytes(), b"\n", &rest].concat();
        let written = Folder::open(path.parent().unwrap_or(Path::new("")))
            .and_then(|folder| folder.replace(path.file_name().unwrap_or_default(), &whole));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Reads the file and checks that it is whole.
    pub(crate) fn read(path: &Path) -> Result<Reference, String> {
        let bytes = prony_files::read(path, Kind::Array).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let damaged = || format!("{} is damaged", path.display());
        let (first, rest) = split_line(&bytes).ok_or_else(damaged)?;
        // The boxes are in the header, so it is as much a part of the reference as the values.
        if first != first_line(rest).as_bytes() {
            return Err(damaged());
        }
        let (header, values) = split_line(rest).ok_or_else(damaged)?;
        let header: Header = serde_json::from_slice(header).map_err(|_| damaged())?;
        let floats = header.frames.iter().try_fold(0usize, |sum, frame| sum.checked_add(frame.floats()?));
        if floats.and_then(|floats| floats.checked_mul(4)) != Some(values.len()) {
            return Err(damaged());
        }
        let mut floats = values.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four));
        let frames = header.frames.into_iter().map(|frame| frame.read(&mut floats)).collect();
        let Header { by, frames_sha256, sensitivity, .. } = header;
        Ok(Reference { by, frames_sha256, frames, sensitivity })
    }
}

/// Whether a file holds a whole reference; what computed it, in words.
pub fn reference_by(path: &Path) -> Option<String> {
    Reference::read(path).ok().map(|reference| reference.by)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn reference() -> Reference {
        let detection = Detection { x1: 1.0, y1: 2.0, x2: 3.0, y2: 4.0, score: 0.5, class: 2 };
        let frame = |x: f32, candidates| Frame {
            outputs: Outputs {
                values: Parts { boxes: vec![x, 2.0], scores: vec![0.25], rest: vec![-x] },
                kept: vec![detection],
                candidates,
                is_final: false,
            },
            stands: vec![true],
        };
        let other = Detection { class: u32::MAX, ..detection };
        let sensitivity =
            Sensitivity { epsilon: 0.5, boxes: None, scores: None, rest: None, unstable_boxes: Some(0.0) };
        Reference {
            by: "fp32 on rten".into(),
            frames_sha256: "ab".into(),
            frames: vec![frame(1.0, Some(vec![detection, other])), frame(-0.5, None)],
            sensitivity: Some(sensitivity),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ref");
        reference().write(&path).unwrap();
        let read = Reference::read(&path).unwrap();
        let classes = |reference: &Reference| {
            let first = reference.frames[0].outputs.candidates.clone().unwrap();
            first.iter().map(|found| found.class).collect::<Vec<_>>()
        };
        assert_eq!(classes(&read), [2, u32::MAX]);
        assert_eq!(read, reference());
        assert_eq!(reference_by(&path).as_deref(), Some("fp32 on rten"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_reference_holds_whole_batches() {
        assert_eq!([1, 2, 3, 4, 8].map(frames_for), [4, 4, 6, 4, 8]);
    }

    #[test]
    fn a_damaged_file_is_not_a_reference() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ref");
        reference().write(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in [0, 5, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(Reference::read(&path).unwrap_err().contains("damaged"));
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            fs::write(&path, &flipped).unwrap();
            assert!(reference_by(&path).is_none(), "byte {at} of {}", whole.len());
        }
    }
}
