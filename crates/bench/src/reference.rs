//! Outputs that others are held against: computed once in fp32, kept in a file that says what it is.
//!
//! The file is a line with its kind and the hash of the rest; a line of JSON; the values of all outputs as little-endian
//! floats, call after call.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use prony_types::Detection;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Calls whose outputs are kept: enough for a rare mistake to show, few enough to be quick.
pub(crate) const CALLS: usize = 4;

const MAGIC: &str = "prony.reference/2";

#[derive(Serialize, Deserialize)]
struct Header {
    by: String,
    /// Of the frames that were fed.
    frames_sha256: String,
    calls: Vec<CallHeader>,
}

#[derive(Serialize, Deserialize)]
struct CallHeader {
    boxes: usize,
    scores: usize,
    detections: Vec<Vec<Detection>>,
}

/// What came out of one call, boxes and scores apart where the head tells which is which.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outputs {
    /// Box coordinates; all values for a model without a head.
    pub(crate) boxes: Vec<f32>,
    /// Everything else.
    pub(crate) scores: Vec<f32>,
    /// Boxes after NMS, by item of the batch.
    pub(crate) detections: Vec<Vec<Detection>>,
}

/// The outputs of a few calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    /// What computed them, in words.
    pub(crate) by: String,
    /// Of the frames that were fed.
    pub(crate) frames_sha256: String,
    pub(crate) calls: Vec<Outputs>,
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

impl Reference {
    /// Writes the file, whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let header = Header {
            by: self.by.clone(),
            frames_sha256: self.frames_sha256.clone(),
            calls: self
                .calls
                .iter()
                .map(|call| CallHeader {
                    boxes: call.boxes.len(),
                    scores: call.scores.len(),
                    detections: call.detections.clone(),
                })
                .collect(),
        };
        let mut rest = serde_json::to_vec(&header).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        rest.push(b'\n');
        let values = self.calls.iter().flat_map(|call| call.boxes.iter().chain(&call.scores));
        rest.extend(values.flat_map(|x| x.to_le_bytes()));
        let draft = path.with_extension(format!("part-{}", std::process::id()));
        let written = (|| {
            let mut file = fs::File::create(&draft)?;
            writeln!(file, "{}", first_line(&rest))?;
            file.write_all(&rest)?;
            file.sync_all()?;
            fs::rename(&draft, path)
        })();
        written.map_err(|error: std::io::Error| {
            let _ = fs::remove_file(&draft);
            format!("cannot write {}: {error}", path.display())
        })
    }

    /// Reads the file and checks that it is whole.
    pub(crate) fn read(path: &Path) -> Result<Reference, String> {
        let bytes = fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let damaged = || format!("{} is damaged", path.display());
        let (first, rest) = split_line(&bytes).ok_or_else(damaged)?;
        // The boxes are in the header, so it is as much a part of the reference as the values.
        if first != first_line(rest).as_bytes() {
            return Err(damaged());
        }
        let (header, values) = split_line(rest).ok_or_else(damaged)?;
        let header: Header = serde_json::from_slice(header).map_err(|_| damaged())?;
        let floats: usize = header.calls.iter().map(|call| call.boxes.saturating_add(call.scores)).sum();
        if values.len() != floats * 4 {
            return Err(damaged());
        }
        let mut floats = values.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        let calls = header
            .calls
            .into_iter()
            .map(|call| Outputs {
                boxes: floats.by_ref().take(call.boxes).collect(),
                scores: floats.by_ref().take(call.scores).collect(),
                detections: call.detections,
            })
            .collect();
        Ok(Reference { by: header.by, frames_sha256: header.frames_sha256, calls })
    }
}

/// Whether a file holds a whole reference; what computed it, in words.
pub fn reference_by(path: &Path) -> Option<String> {
    Reference::read(path).ok().map(|reference| reference.by)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> Reference {
        let detection = Detection { x1: 1.0, y1: 2.0, x2: 3.0, y2: 4.0, score: 0.5, class: 2 };
        let call =
            |x: f32| Outputs { boxes: vec![x, 2.0], scores: vec![0.25], detections: vec![vec![detection], Vec::new()] };
        Reference { by: "fp32 on rten".into(), frames_sha256: "ab".into(), calls: vec![call(1.0), call(-0.5)] }
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ref");
        reference().write(&path).unwrap();
        assert_eq!(Reference::read(&path).unwrap(), reference());
        assert_eq!(reference_by(&path).as_deref(), Some("fp32 on rten"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
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
