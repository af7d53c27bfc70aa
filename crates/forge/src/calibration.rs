//! Real inputs from which ranges for int8 are learnt: scenes, images of a folder, or arrays, made into batches exactly as
//! `prony bench` feeds them.

mod feed;

use std::fs;
use std::os::raw::c_void;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use prony_model::sha256_hex;
use prony_nvinfer::Calibration;
use prony_source::{folder, scenes};
use prony_types::{CalibrationSpec, ModelSource, Pixels, SceneKind, SourceSpec};
use sha2::{Digest as _, Sha256};

pub(crate) use self::feed::Feed;
use crate::cache::{hash_file, hex, write_atomic};
use crate::error::ForgeError;

/// Brings batches to where the builder reads them.
pub(crate) trait Upload: Send {
    /// Copies the values of an input to the device; their address there, good until the next call for that input.
    fn upload(&mut self, input: usize, bytes: &[u8]) -> Result<*mut c_void, String>;
}

/// Which scenes fit a model.
fn scene_kind(model: &ModelSource) -> SceneKind {
    match model {
        ModelSource::Builtin(kind) => *kind,
        ModelSource::File(_) => SceneKind::Rgb,
    }
}

/// The images of a folder that are used: the first ones by name.
fn files(dir: &std::path::Path, count: u32) -> Result<Vec<PathBuf>, ForgeError> {
    let mut files = folder::images(dir).map_err(|e| ForgeError::Calibration(e.to_string()))?;
    files.truncate(count as usize);
    Ok(files)
}

/// Identity of the data, without decoding them. Scenes are the same everywhere for a seed; the first one is drawn so that
/// a change of how they are drawn is a change of the data.
pub(crate) fn data_sha256(spec: &CalibrationSpec, model: &ModelSource) -> Result<String, ForgeError> {
    let unreadable = |path: &std::path::Path, error| ForgeError::Calibration(format!("{}: {error}", path.display()));
    match &spec.source {
        SourceSpec::Scenes => {
            let kind = scene_kind(model);
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
    /// Batches that were used.
    pub(crate) batches: u32,
    /// Whether ranges of an earlier calibration were used.
    pub(crate) from_cache: bool,
    /// Images that could not be read.
    pub(crate) skipped: Vec<String>,
}

/// What the builder calibrates with.
pub(crate) struct Calibrate {
    pub(crate) feed: Feed,
    pub(crate) upload: Box<dyn Upload>,
    /// Ranges of an earlier calibration on the same model and data.
    pub(crate) cache: PathBuf,
    pub(crate) told: Arc<Mutex<Told>>,
}

impl Calibrate {
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

impl Calibration for Calibrate {
    fn batch_size(&self) -> i32 {
        self.feed.batch() as i32
    }

    fn next_batch(&mut self, names: &[&str], addresses: &mut [*mut c_void]) -> bool {
        let outcome = self.next(names, addresses);
        let skipped = self.feed.take_skipped();
        self.told(|told| {
            told.skipped.extend(skipped);
            match &outcome {
                Ok(more) => told.batches += u32::from(*more),
                Err(reason) => told.problem = Some(reason.clone()),
            }
        });
        outcome.unwrap_or(false)
    }

    fn read_cache(&mut self) -> Option<Vec<u8>> {
        let ranges = read_ranges(&fs::read(&self.cache).ok()?);
        self.told(|told| told.from_cache = ranges.is_some());
        ranges
    }

    fn write_cache(&mut self, ranges: &[u8]) {
        let mut whole = true;
        self.told(|told| whole = told.problem.is_none());
        if !whole {
            // Ranges of a part of the data must not be taken for those of all of it next time.
            return;
        }
        let file = [sha256_hex(ranges).as_bytes(), b"\n", ranges].concat();
        if let Err(error) = write_atomic(&self.cache, &file) {
            tracing::warn!("the calibration cache {} was not written: {error}", self.cache.display());
        }
    }
}

/// The ranges behind their own hash; `None` where they are not what was written.
fn read_ranges(file: &[u8]) -> Option<Vec<u8>> {
    let (hash, ranges) = (file.get(..64)?, file.get(65..)?);
    (sha256_hex(ranges).as_bytes() == hash).then(|| ranges.to_vec())
}

#[cfg(test)]
#[path = "calibration/calibration_tests.rs"]
mod tests;
