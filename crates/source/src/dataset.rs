//! Data sets to be scored on: images, the objects that are truly on them, and what is wrong with the rest.
//!
//! [`open`] finds out what a path is (COCO, Ultralytics or the built-in scenes), chooses the images and reads their
//! truths; no image is decoded there. [`Dataset::load`] decodes one. [`classes::map`] says which class of a model is
//! which category, [`summary::summary`] counts, and [`subset::write`] writes the chosen images as a data set of their own.
//!
//! ```no_run
//! use prony_source::{dataset, folder::Loader};
//! # fn each(spec: prony_types::DataSpec, kind: prony_types::SceneKind) -> Result<(), prony_source::SourceError> {
//! let data = dataset::open(&spec, kind)?;
//! let mut loader = Loader::default();
//! for index in 0..data.images.len() {
//!     match data.load(index, &mut loader) {
//!         Ok(image) => println!("{}x{}: {} objects", image.width(), image.height(), data.truths(index).len()),
//!         Err(broken) => eprintln!("{broken}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

pub mod classes;
pub mod subset;
pub mod summary;

mod assembly;
mod builtin;
mod chosen;
mod coco;
mod header;
mod labels;
mod locate;
mod names;
mod problems;
mod slice;
mod ultralytics;
mod yaml;

use std::ops::Range;
use std::path::{Path, PathBuf};

use prony_types::{DataRecord, DataSource, DataSpec, Image, SceneKind};

use self::locate::Found;
use crate::error::SourceError;
use crate::folder::{Loader, images};
use crate::scenes;

pub use self::builtin::{DEFAULT_SCENES, HELD_OUT_SEED};
pub use self::chosen::{chosen_sha256, read_chosen};
pub use self::locate::instances_file;
pub use self::names::{ClassNamesError, class_names};
pub use self::problems::Problems;
pub use crate::coco::Category;

/// An object that is truly on an image. Pixels, from the top left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabeledBox {
    /// Its own in its data set: as COCO's file has it, which may begin at 0; others are counted from 1.
    pub id: i64,
    /// Index into [`Dataset::categories`].
    pub category: u32,
    /// Left edge.
    pub x: f64,
    /// Top edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
    /// What decides whether it is small: of the object where that is known, else of the box.
    pub area: f64,
    /// A group that is not to be told apart (COCO's `iscrowd`).
    pub crowd: bool,
}

/// Where an image comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// A built-in scene, by its index in the series.
    Scene(u32),
}

/// One image of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataImage {
    /// As COCO's results name it; unique in its data set.
    pub id: i64,
    /// File name as the data set has it.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Width and height, where the data set says them.
    pub size: Option<(u32, u32)>,
    /// Its part of all truths.
    truths: Range<usize>,
}

/// Images that were chosen, and what is on them.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// In words: `coco: instances_val2017.json, 500 of 5000 images, seed 7`.
    pub name: String,
    /// In the order of their ids.
    pub categories: Vec<Category>,
    /// The chosen images whose file is there, in the order of their ids.
    pub images: Vec<DataImage>,
    /// How many were chosen, with those whose file is missing.
    pub chosen: u64,
    /// What could not be used so far; images that do not decode are found out by [`Dataset::load`].
    pub problems: Problems,
    /// Over ids, truths and categories of the images that were chosen, as 64 digits.
    pub sha256: String,
    truths: Vec<LabeledBox>,
    /// What its scenes are drawn from.
    scenes: Option<(SceneKind, u64)>,
}

/// Opens what `spec` asks for. `kind` is the kind of the built-in scenes; files are what they are.
///
/// What cannot be used is counted and named in [`Dataset::problems`]; a data set of which nothing can be used is an error.
pub fn open(spec: &DataSpec, kind: SceneKind) -> Result<Dataset, SourceError> {
    match locate::locate(spec)? {
        Found::Scenes => builtin::open(spec, kind),
        Found::Coco(file) => coco::open(spec, &file),
        Found::Ultralytics(file) => ultralytics::open(spec, &file),
    }
}

/// The folder that holds the images of `dir`: itself; else its `images/`; else where the data set in it has its first
/// image. That is how `data synth`, COCO and Ultralytics lay them out.
pub fn image_folder(dir: &Path) -> Result<PathBuf, SourceError> {
    let empty = match images(dir) {
        Ok(_) => return Ok(dir.to_path_buf()),
        Err(error @ SourceError::EmptyFolder { .. }) => error,
        Err(error) => return Err(error),
    };
    let below = dir.join("images");
    if images(&below).is_ok() {
        return Ok(below);
    }
    first_image_folder(dir).filter(|folder| images(folder).is_ok()).ok_or(empty)
}

/// The folder of the first image of the data set in a folder, as far as there is one and it can be read.
fn first_image_folder(folder: &Path) -> Option<PathBuf> {
    let source = DataSource::Path(folder.to_path_buf());
    let all =
        open(&DataSpec { source, split: None, limit: None, seed: 0, ids: None, images: None }, SceneKind::Rgb).ok()?;
    all.images.iter().find_map(|image| match &image.origin {
        Origin::File(path) => path.parent().map(Path::to_path_buf),
        Origin::Scene(_) => None,
    })
}

impl Dataset {
    /// The objects on an image.
    ///
    /// # Panics
    /// If there is no image `index`.
    pub fn truths(&self, index: usize) -> &[LabeledBox] {
        &self.truths[self.images[index].truths.clone()]
    }

    /// The objects on all images that are there.
    pub fn objects(&self) -> u64 {
        self.images.iter().map(|image| image.truths.len() as u64).sum()
    }

    /// Decodes an image, or paints the scene. The frame stays in `loader` until its next use. An image of another size
    /// than the data set says is refused: its boxes would lie beside the objects. So is a JPEG that ends early: objects
    /// would be missing.
    ///
    /// # Panics
    /// If there is no image `index`.
    pub fn load<'a>(&self, index: usize, loader: &'a mut Loader) -> Result<&'a Image, SourceError> {
        let entry = &self.images[index];
        match (&entry.origin, self.scenes) {
            (Origin::Scene(scene), Some((kind, seed))) => Ok(loader.hold(scenes::scene(kind, seed, *scene).image)),
            (Origin::Scene(_), None) => unreachable!("scenes come with their kind and seed"),
            (Origin::File(path), _) => {
                let image = loader.load_whole(path)?;
                let size = (image.width(), image.height());
                if let Some(said) = entry.size.filter(|said| *said != size) {
                    let reason = format!("is {}x{}, but its labels are for {}x{}", size.0, size.1, said.0, said.1);
                    return Err(SourceError::BadImage { path: path.clone(), reason });
                }
                Ok(image)
            }
        }
    }

    /// What a report says about the data. `images` and `objects` are all that are there: whoever finds one that does not
    /// decode takes it off, and adds how classes became categories.
    pub fn record(&self) -> DataRecord {
        DataRecord {
            name: self.name.clone(),
            sha256: self.sha256.clone(),
            chosen: self.chosen,
            images: self.images.len() as u64,
            objects: self.objects(),
            problems: self.problems.named().map(str::to_owned).collect(),
            problem_count: self.problems.count(),
            classes: String::new(),
            class_match: None,
            unread: Vec::new(),
        }
    }
}
