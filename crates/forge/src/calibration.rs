//! Real inputs from which ranges for int8 are learnt: scenes, images of a folder, or arrays, made into batches exactly as
//! `prony bench` feeds them.

mod feed;

use std::collections::BTreeSet;
use std::os::raw::c_void;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use prony_files::Kind;
use prony_model::sha256_hex;
use prony_nvinfer::Calibration;
use prony_source::{folder, scenes};
use prony_types::{CalibrationSpec, Pixels, SceneKind, SourceSpec};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub(crate) use self::feed::CalibrationFeed;
use crate::cache::{hash_file, hex, write_atomic};
use crate::error::ForgeError;

/// Brings batches to where the builder reads them.
pub(crate) trait Upload: Send {
    /// Copies the values of an input to the device; their address there, good until the next call for that input.
    fn upload(&mut self, input: usize, bytes: &[u8]) -> Result<*mut c_void, String>;
}

/// The images of a folder that are used: the first ones by name.
fn files(dir: &Path, count: u32) -> Result<Vec<PathBuf>, ForgeError> {
    let mut files = folder::images(dir).map_err(|e| ForgeError::Calibration(e.to_string()))?;
    files.truncate(count as usize);
    Ok(files)
}

/// Identity of the data, without decoding them. Scenes are the same everywhere for a seed; the first one is drawn so that
/// a change of how they are drawn is a change of the data.
pub(crate) fn data_sha256(spec: &CalibrationSpec, kind: SceneKind) -> Result<String, ForgeError> {
    let unreadable = |path: &Path, error| ForgeError::Calibration(format!("{}: {error}", path.display()));
    match &spec.source {
        SourceSpec::Scenes => {
            let mut hash = Sha256::new();
            hash.update(format!("{kind} scenes, seed {}, {} of them", spec.seed, spec.frames));
            match scenes::scene(kind, spec.seed, 0).image.pixels() {
                Pixels::U8(data) => hash.update(data),
                Pixels::U16(data) => data.iter().for_each(|x| hash.update(x.to_le_bytes())),
            }
            Ok(hex(&hash.finalize()))
        }
        SourceSpec::Dir(dir) => {
            let mut hash = Sha256::new();
            for path in files(dir, spec.frames)? {
                hash.update(hash_file(&path).map_err(|e| unreadable(&path, e))?);
            }
            Ok(hex(&hash.finalize()))
        }
        SourceSpec::Tensor(path) => {
            let content = hash_file(path).map_err(|e| unreadable(path, e))?;
            Ok(sha256_hex(format!("{content} {}", spec.frames).as_bytes()))
        }
    }
}

/// What happened inside the builder, for whoever waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Why there were no more batches, where that was not the end of them.
    pub(crate) problem: Option<String>,
    /// What of the data was used.
    pub(crate) used: Used,
    /// What was learnt.
    pub(crate) ranges: Option<Vec<u8>>,
}

/// What of the calibration data was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Used {
    /// Different frames. One that comes again to fill up a batch counts once.
    pub(crate) frames: u32,
    /// Images that could not be read.
    pub(crate) skipped: Vec<String>,
}

impl Used {
    /// What is wrong where that is less than was asked for.
    pub(crate) fn warnings(&self, requested: u32) -> Vec<String> {
        let skipped = self.skipped.iter().map(|skipped| format!("calibration skipped {skipped}"));
        let few = format!("only {} of the {requested} requested calibration frames were available", self.frames);
        skipped.chain((self.frames < requested).then_some(few)).collect()
    }
}

/// Ranges that a builder is given to learn, from batches.
pub(crate) struct Learn {
    pub(crate) feed: CalibrationFeed,
    pub(crate) upload: Box<dyn Upload>,
    pub(crate) told: Arc<Mutex<Told>>,
    /// Called once they are learnt: nothing that comes after is needed.
    pub(crate) done: Box<dyn Fn() + Send>,
}

impl Learn {
    fn told(&self, tell: impl FnOnce(&mut Told)) {
        tell(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn next(&mut self, names: &[&str], addresses: &mut [*mut c_void]) -> Result<bool, String> {
        let Some(batch) = self.feed.next_batch()? else { return Ok(false) };
        for (name, address) in names.iter().zip(addresses) {
            let index = self.feed.inputs().iter().position(|input| input.name == *name);
            let index =
                index.ok_or_else(|| format!("the builder asks for an input `{name}` that the model has not"))?;
            *address = self.upload.upload(index, &batch[index])?;
        }
        Ok(true)
    }
}

impl Calibration for Learn {
    fn batch_size(&self) -> i32 {
        self.feed.batch() as i32
    }

    fn next_batch(&mut self, names: &[&str], addresses: &mut [*mut c_void]) -> bool {
        let outcome = self.next(names, addresses);
        let used = self.feed.used().clone();
        self.told(|told| {
            told.used = used;
            told.problem = outcome.as_ref().err().cloned().or(told.problem.take());
        });
        outcome.unwrap_or(false)
    }

    fn read_cache(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn write_cache(&mut self, ranges: &[u8]) {
        // Those of a part of the data must not be taken for those of all of it.
        self.told(|told| told.ranges = told.problem.is_none().then(|| ranges.to_vec()));
        (self.done)();
    }
}

/// Ranges that are known.
pub(crate) struct Known {
    pub(crate) batch: i32,
    pub(crate) ranges: Vec<u8>,
}

impl Calibration for Known {
    fn batch_size(&self) -> i32 {
        self.batch
    }

    fn next_batch(&mut self, _names: &[&str], _addresses: &mut [*mut c_void]) -> bool {
        false
    }

    fn read_cache(&mut self) -> Option<Vec<u8>> {
        Some(self.ranges.clone())
    }

    fn write_cache(&mut self, _ranges: &[u8]) {}
}

/// Ranges of an earlier calibration and what they were found on, behind their own hash; `None` where they are not what was
/// written.
pub(crate) fn read_ranges(cache: &Path) -> Option<(Used, Vec<u8>)> {
    let file = prony_files::read(cache, Kind::Cache).ok()?;
    let (hash, content) = (file.get(..64)?, file.get(65..)?);
    if sha256_hex(content).as_bytes() != hash {
        return None;
    }
    let end = content.iter().position(|&byte| byte == b'\n')?;
    Some((serde_json::from_slice(&content[..end]).ok()?, content[end + 1..].to_vec()))
}

/// Keeps ranges for the next time that the same model and data are asked for.
pub(crate) fn keep_ranges(cache: &Path, used: &Used, ranges: &[u8]) -> Result<(), ForgeError> {
    let used = serde_json::to_vec(used).map_err(ForgeError::json("what was calibrated on"))?;
    let content = [&used, &b"\n"[..], ranges].concat();
    let file = [sha256_hex(&content).as_bytes(), b"\n", &content].concat();
    if let Err(error) = write_atomic(cache, &file) {
        tracing::warn!("the calibration cache {} was not written: {error}", cache.display());
    }
    Ok(())
}

/// Takes the ranges of some tensors out, so that TensorRT computes them in float; and how many those were. A line is
/// `name: scale`, behind a first one that says who wrote them.
pub(crate) fn without(ranges: &[u8], float: &BTreeSet<String>) -> (Vec<u8>, usize) {
    let stays = |line: &&[u8]| {
        let name = line.windows(2).rposition(|pair| pair == b": ").map(|at| &line[..at]);
        !name.and_then(|name| str::from_utf8(name).ok()).is_some_and(|name| float.contains(name))
    };
    let lines = || ranges.split_inclusive(|&byte| byte == b'\n');
    let kept: Vec<&[u8]> = lines().filter(stays).collect();
    (kept.concat(), lines().count() - kept.len())
}

#[cfg(test)]
#[path = "calibration/calibration_tests.rs"]
mod tests;
