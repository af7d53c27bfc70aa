//! Built-in scenes as a data set on disk, readable as COCO and by Ultralytics.
//!
//! The folder holds `images/`, `annotations/instances.json` (COCO) and `data.yaml` with `labels/` (Ultralytics). The
//! same kind, count and seed give the same bytes.

mod coco;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use prony_types::{GroundTruth, Image, SceneKind};
use rayon::prelude::*;

use crate::SourceError;
use crate::folder::refuse_foreign;
use crate::png::encode_png;
use crate::scenes::{class_names, scene};

/// The most images of a data set: file names have six digits.
pub const MAX_COUNT: u32 = 1_000_000;

/// First line of `data.yaml`; a folder that has it is ours to write over.
const MARK: &str = "# made by `prony data synth`";

/// What [`write()`] wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SynthSummary {
    /// The folder.
    pub out: PathBuf,
    /// Images.
    pub images: u32,
    /// Boxes over all images.
    pub objects: u64,
    /// Bytes of the images.
    pub image_bytes: u64,
    /// Class names by index.
    pub classes: &'static [&'static str],
}

/// Writes `count` scenes of a series into `out`, which is made if needed. `progress` hears how many are done, from
/// any thread, and ends the work by answering false.
pub fn write(
    kind: SceneKind,
    count: u32,
    seed: u64,
    out: &Path,
    progress: &(dyn Fn(u32) -> bool + Sync),
) -> Result<SynthSummary, SourceError> {
    if count == 0 || count > MAX_COUNT {
        return Err(SourceError::Count { count, max: MAX_COUNT });
    }
    claim(out, kind, seed)?;
    let done = AtomicU32::new(0);
    let stopped = AtomicBool::new(false);
    let bytes: Vec<Option<(Vec<GroundTruth>, u64)>> = (0..count)
        .into_par_iter()
        .map(|index| {
            if stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let scene = scene(kind, seed, index);
            let file = encode_png(&scene.image)?;
            put(&out.join("images").join(image_name(index)), &file)?;
            put(&out.join("labels").join(format!("{index:06}.txt")), labels(&scene.image, &scene.truth).as_bytes())?;
            if !progress(done.fetch_add(1, Ordering::Relaxed) + 1) {
                stopped.store(true, Ordering::Relaxed);
            }
            Ok(Some((scene.truth, file.len() as u64)))
        })
        .collect::<Result<_, SourceError>>()?;
    let written: Vec<_> = bytes.into_iter().flatten().collect();
    if written.len() < count as usize {
        return Err(SourceError::Interrupted { path: out.to_path_buf(), done: written.len() as u32, count });
    }
    let truths: Vec<&[GroundTruth]> = written.iter().map(|(truth, _)| truth.as_slice()).collect();
    put(&out.join("annotations").join("instances.json"), &coco::instances(kind, seed, &truths))?;
    Ok(SynthSummary {
        out: out.to_path_buf(),
        images: count,
        objects: truths.iter().map(|truth| truth.len() as u64).sum(),
        image_bytes: written.iter().map(|(_, bytes)| bytes).sum(),
        classes: class_names(kind),
    })
}

fn image_name(index: u32) -> String {
    format!("{index:06}.png")
}

/// Makes the folders and removes an older data set of ours. What someone else put there is not touched.
fn claim(out: &Path, kind: SceneKind, seed: u64) -> Result<(), SourceError> {
    let yaml = out.join("data.yaml");
    refuse_foreign(out, &yaml, MARK)?;
    for (folder, ending) in [("images", "png"), ("labels", "txt"), ("annotations", "json")] {
        let folder = out.join(folder);
        fs::create_dir_all(&folder).map_err(SourceError::io(&folder, "make the folder"))?;
        remove_files(&folder, ending)?;
    }
    put(&yaml, data_yaml(kind, seed).as_bytes())
}

/// Removes the files of an older and perhaps longer data set: only names that [`write()`] gives.
fn remove_files(folder: &Path, ending: &str) -> Result<(), SourceError> {
    for entry in fs::read_dir(folder).map_err(SourceError::io(folder, "list the folder"))? {
        let path = entry.map_err(SourceError::io(folder, "list the folder"))?.path();
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let numbered = stem.len() == 6 && stem.bytes().all(|b| b.is_ascii_digit());
        if path.extension().is_some_and(|e| e == ending) && (numbered || stem == "instances") {
            fs::remove_file(&path).map_err(SourceError::io(&path, "remove the old file"))?;
        }
    }
    Ok(())
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), SourceError> {
    fs::write(path, bytes).map_err(SourceError::io(path, "write the file"))
}

fn data_yaml(kind: SceneKind, seed: u64) -> String {
    // Without `path`, Ultralytics takes the folder of this file.
    let mut text = format!("{MARK} (kind {kind}, seed {seed})\ntrain: images\nval: images\nnames:\n");
    for (class, name) in class_names(kind).iter().enumerate() {
        let _ = writeln!(text, "  {class}: {name}");
    }
    text
}

/// Ultralytics' lines: class, centre and size as shares of the image.
fn labels(image: &Image, truth: &[GroundTruth]) -> String {
    let mut text = String::new();
    let share = |pixels: f32, side: u32| f64::from(pixels) / f64::from(side);
    for object in truth {
        let x = share(object.x + object.w / 2.0, image.width());
        let y = share(object.y + object.h / 2.0, image.height());
        let (w, h) = (share(object.w, image.width()), share(object.h, image.height()));
        let _ = writeln!(text, "{} {x:.7} {y:.7} {w:.7} {h:.7}", object.class);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_the_reason() {
        let error = put(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: cannot write the file: No space left"), "{error}");
    }
}
