//! Chosen images as a COCO data set of their own: for calibration, or to evaluate on the same slice elsewhere.
//!
//! The folder holds `images/`, `annotations/instances.json` and `ids.txt`, which any other copy of the data set can be cut
//! with again. Ids and categories stay what they were.

mod file;
mod folder;
mod instances;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rayon::prelude::*;

use self::file::Made;
use self::folder::{MARK, claim, put};
use super::assembly::{Assembly, Candidate};
use super::{Dataset, LabeledBox, Origin, Problems};
use crate::SourceError;
use crate::folder::Loader;

/// How an image gets into the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Its bytes are copied.
    Copy,
    /// A second name for the same file, on the same disk.
    Link,
    /// A pointer to the file, which must stay where it is.
    Symlink,
}

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub struct SubsetSpec<'a> {
    /// The folder to make.
    pub out: &'a Path,
    /// How images get there.
    pub transfer: Transfer,
    /// Longest side that an image may have; larger ones are scaled down, with their boxes.
    pub max_side: Option<u32>,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubsetSummary {
    /// Images.
    pub images: u64,
    /// Objects on them.
    pub objects: u64,
    /// Images that were scaled down.
    pub scaled: u64,
    /// Bytes of the images, whether copied or linked.
    pub image_bytes: u64,
    /// Hash of what was written: that of the slice, unless something was scaled or left out.
    pub sha256: String,
    /// Images that could not be decoded and were left out, and everything that was wrong before.
    pub problems: Problems,
}

/// Writes the images of a data set. Every image is decoded, so that a broken one is found now and left out. `progress`
/// hears how many are done, from any thread, and ends the work by answering false.
pub fn write(
    data: &Dataset,
    spec: &SubsetSpec<'_>,
    progress: &(dyn Fn(u32) -> bool + Sync),
) -> Result<SubsetSummary, SourceError> {
    let names = file_names(data);
    claim(spec.out, data, &names)?;
    let (done, stopped) = (AtomicU32::new(0), AtomicBool::new(false));
    let one = |loader: &mut Loader, index: usize| {
        if stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let made = file::make(data, index, &names[index], spec, loader)?;
        if !progress(done.fetch_add(1, Ordering::Relaxed) + 1) {
            stopped.store(true, Ordering::Relaxed);
        }
        Ok(Some(made))
    };
    let made: Vec<Option<Made>> =
        (0..names.len()).into_par_iter().map_init(Loader::default, one).collect::<Result<_, SourceError>>()?;
    let made: Vec<Made> = made.into_iter().flatten().collect();
    if made.len() < names.len() {
        let (path, count) = (spec.out.to_path_buf(), names.len() as u32);
        return Err(SourceError::Interrupted { path, done: made.len() as u32, count });
    }
    finish(data, spec, &names, &made)
}

/// Puts together what was made, and writes the files that say so.
fn finish(
    data: &Dataset,
    spec: &SubsetSpec<'_>,
    names: &[String],
    made: &[Made],
) -> Result<SubsetSummary, SourceError> {
    let mut assembly = Assembly::new(data.categories.clone());
    assembly.problems = data.problems.clone();
    let (mut scaled, mut image_bytes) = (0, 0);
    for (index, (name, made)) in names.iter().zip(made).enumerate() {
        let image = &data.images[index];
        match made {
            Made::Written { size, scale, bytes } => {
                image_bytes += bytes;
                scaled += u64::from(*scale != (1.0, 1.0));
                let truths: Vec<LabeledBox> = data.truths(index).iter().map(|truth| resized(truth, *scale)).collect();
                let origin = Origin::File(spec.out.join("images").join(name));
                assembly.add(Candidate { id: image.id, name: name.clone(), origin, size: Some(*size) }, &truths);
            }
            Made::Broken(why) => assembly.problems.add("images that cannot be read", why.clone()),
        }
    }
    let subset = assembly.finish(data.name.clone(), spec.out, None)?;
    put(&spec.out.join("annotations/instances.json"), &instances::bytes(&subset)?)?;
    put(&spec.out.join("ids.txt"), ids(&subset).as_bytes())?;
    let objects = subset.objects();
    let Dataset { images, sha256, problems, .. } = subset;
    Ok(SubsetSummary { images: images.len() as u64, objects, scaled, image_bytes, sha256, problems })
}

fn resized(truth: &LabeledBox, (across, down): (f64, f64)) -> LabeledBox {
    let LabeledBox { x, y, w, h, area, .. } = *truth;
    LabeledBox { x: x * across, y: y * down, w: w * across, h: h * down, area: area * across * down, ..*truth }
}

/// The list that cuts the same slice again.
fn ids(data: &Dataset) -> String {
    let mut text = format!("{MARK} of {}\n# sha256 {}\n", data.name, data.sha256);
    for image in &data.images {
        text += &format!("{}\n", image.id);
    }
    text
}

/// A name for every image: its own, without folders, or its id where two have the same.
fn file_names(data: &Dataset) -> Vec<String> {
    let base = |name: &str| {
        let base = name.rsplit('/').next().unwrap_or_default();
        if matches!(base, "" | "." | "..") { None } else { Some(base.to_owned()) }
    };
    let mut taken = HashSet::new();
    let name = |image: &super::DataImage| {
        let ending = image.name.rsplit_once('.').map_or("png", |(_, ending)| ending);
        let own = base(&image.name).filter(|name| !taken.contains(name));
        let name = own.unwrap_or_else(|| format!("id-{}.{}", image.id, ending.replace('/', "_")));
        taken.insert(name.clone());
        name
    };
    data.images.iter().map(name).collect()
}
