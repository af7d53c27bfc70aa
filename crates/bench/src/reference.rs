//! Outputs that others are held against: computed once in fp32, kept in a file that says what it is.
//!
//! The file is a line of JSON, then the values of all outputs as little-endian floats, call after call.

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
    schema: String,
    by: String,
    /// Of the frames that were fed.
    frames_sha256: String,
    /// Of everything behind this line.
    values_sha256: String,
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

impl Reference {
    /// Writes the file, whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let values: Vec<u8> = self
            .calls
            .iter()
            .flat_map(|call| call.boxes.iter().chain(&call.scores))
            .flat_map(|x| x.to_le_bytes())
            .collect();
        let header = Header {
            schema: MAGIC.to_owned(),
            by: self.by.clone(),
            frames_sha256: self.frames_sha256.clone(),
            values_sha256: hex(&values),
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
        let draft = path.with_extension(format!("part-{}", std::process::id()));
        let written = (|| {
            let mut file = fs::File::create(&draft)?;
            serde_json::to_writer(&mut file, &header)?;
            file.write_all(b"\n")?;
            file.write_all(&values)?;
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
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(damaged)?;
        let header: Header = serde_json::from_slice(&bytes[..end]).map_err(|_| damaged())?;
        let values = &bytes[end + 1..];
        let floats: usize = header.calls.iter().map(|call| call.boxes.saturating_add(call.scores)).sum();
        if header.schema != MAGIC || values.len() != floats * 4 || hex(values) != header.values_sha256 {
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
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(&path, &flipped).unwrap();
        assert!(reference_by(&path).is_none());
    }
}
