//! The chosen images of a data set with their objects, as a file for other processes of a run: reading it takes a fraction of
//! what reading the annotations takes, and everybody sees the same images.

use std::path::{Path, PathBuf};

use prony_files::{Folder, Kind};
use prony_types::os_text::{path_from_text, path_to_text};
use prony_types::{ChosenImages, SceneKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::assembly::hex;
use super::{Category, DataImage, Dataset, LabeledBox, Origin, Problems};
use crate::SourceError;

const SCHEMA: &str = "prony.chosen/1";

/// An object: id, category, box, area, crowd.
type Object = (i64, u32, [f64; 4], f64, bool);

/// The file. Paths are relative, so that it says nothing about where the data lies.
#[derive(Serialize, Deserialize)]
struct Sheet {
    schema: String,
    categories: Vec<(i64, String)>,
    images: Vec<Row>,
    /// Of all images, in their order.
    objects: Vec<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scenes: Option<(SceneKind, u64)>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    id: i64,
    name: String,
    /// As `os_text` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scene: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<(u32, u32)>,
    objects: usize,
}

impl Dataset {
    /// The chosen images as a file has them, and the folder that its paths are relative to.
    pub fn to_chosen(&self) -> Result<(Vec<u8>, PathBuf), SourceError> {
        let root = self.root();
        let row = |image: &DataImage| {
            let (file, scene) = match &image.origin {
                Origin::File(path) => (Some(path_to_text(path.strip_prefix(&root).unwrap_or(path))), None),
                Origin::Scene(index) => (None, Some(*index)),
            };
            Row { id: image.id, name: image.name.clone(), file, scene, size: image.size, objects: image.truths.len() }
        };
        let object = |truth: &LabeledBox| {
            let LabeledBox { id, category, x, y, w, h, area, crowd } = *truth;
            (id, category, [x, y, w, h], area, crowd)
        };
        let sheet = Sheet {
            schema: SCHEMA.to_owned(),
            categories: self.categories.iter().map(|category| (category.id, category.name.clone())).collect(),
            images: self.images.iter().map(row).collect(),
            objects: (0..self.images.len()).flat_map(|index| self.truths(index)).map(object).collect(),
            scenes: self.scenes,
        };
        let bytes = serde_json::to_vec(&sheet);
        Ok((bytes.map_err(|error| SourceError::data(&root, error.to_string()))?, root))
    }

    /// The deepest folder that all images are below.
    fn root(&self) -> PathBuf {
        let mut folders = self.images.iter().filter_map(|image| match &image.origin {
            Origin::File(path) => path.parent(),
            Origin::Scene(_) => None,
        });
        let mut root = folders.next().unwrap_or(Path::new("")).to_owned();
        for folder in folders {
            while !folder.starts_with(&root) {
                root.pop();
            }
        }
        root
    }
}

/// Hash of the bytes of a file of chosen images, as 64 digits.
pub fn chosen_sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Reads what [`Dataset::to_chosen`] made, if it is what was promised. No link is followed to it.
pub fn read_chosen(images: &ChosenImages) -> Result<Dataset, SourceError> {
    let ChosenImages { file, sha256, root, record } = images;
    let refuse = |reason: &str| SourceError::data(file, reason);
    let name = file.file_name().ok_or_else(|| refuse("is not the name of a file"))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let bytes = Folder::open(folder).and_then(|folder| folder.read(name, Kind::Annotations));
    let bytes = bytes.map_err(SourceError::io(file, "read the chosen images"))?;
    if chosen_sha256(&bytes) != *sha256 {
        return Err(refuse("the list of chosen images changed during the run"));
    }
    let sheet: Sheet = serde_json::from_slice(&bytes).map_err(|error| refuse(&error.to_string()))?;
    if sheet.schema != SCHEMA {
        return Err(refuse("is not a list of chosen images"));
    }
    let Sheet { categories, images, objects, scenes, .. } = sheet;
    let mut end = 0usize;
    let image = |row: Row| {
        let first = end;
        end = end.checked_add(row.objects).filter(|&end| end <= objects.len())?;
        let origin = match (row.file, row.scene, scenes) {
            (Some(file), None, _) => Origin::File(root.join(path_from_text(&file))),
            (None, Some(scene), Some(_)) => Origin::Scene(scene),
            _ => return None,
        };
        Some(DataImage { id: row.id, name: row.name, origin, size: row.size, truths: first..end })
    };
    let images: Option<Vec<DataImage>> = images.into_iter().map(image).collect();
    let known = |object: &Object| (object.1 as usize) < categories.len();
    let images = images.filter(|_| end == objects.len() && objects.iter().all(known));
    let images = images.ok_or_else(|| refuse("its images and objects do not fit together"))?;
    let truth =
        |(id, category, [x, y, w, h], area, crowd): Object| LabeledBox { id, category, x, y, w, h, area, crowd };
    let mut problems = Problems::default();
    problems.absorb("things that could not be used", record.problem_count, record.problems.clone());
    Ok(Dataset {
        name: record.name.clone(),
        categories: categories.into_iter().map(|(id, name)| Category { id, name }).collect(),
        images,
        chosen: record.chosen,
        problems,
        sha256: record.sha256.clone(),
        truths: objects.into_iter().map(truth).collect(),
        scenes,
    })
}
