//! The truth: images, categories and annotations of an `instances*.json`. Outlines and everything else is stepped over.

use std::collections::HashSet;
use std::path::Path;

use super::scan::{Fault, Scanner};
use super::{RowProblems, flaw, malformed, read};
use crate::SourceError;

/// An image of the data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageEntry {
    /// Its number.
    pub id: i64,
    /// Where it lies, relative to the folder of the images.
    pub file_name: String,
    /// Pixels across, where the file says so.
    pub width: Option<u32>,
    /// Pixels down, where the file says so.
    pub height: Option<u32>,
}

/// A class of the data set. Numbers may have holes: COCO's 80 classes go up to 90.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
}

/// A true object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Annotation {
    /// Its number.
    pub id: i64,
    /// The image that it is on.
    pub image_id: i64,
    /// Its class.
    pub category_id: i64,
    /// Left, top, width, height in pixels.
    pub bbox: [f64; 4],
    /// Area as the file has it, which is that of the outline; width x height where it has none.
    pub area: f64,
    /// A crowd of objects in one box.
    pub iscrowd: bool,
}

/// What an `instances*.json` holds, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instances {
    /// Images, each number once.
    pub images: Vec<ImageEntry>,
    /// Classes, each number once.
    pub categories: Vec<Category>,
    /// Objects that can be used: their image and class are there.
    pub annotations: Vec<Annotation>,
    /// What had to be left out, and what is odd.
    pub problems: RowProblems,
}

/// Reads a file. An error is only what is no JSON or no `instances` file; see [`Instances::problems`] for the rest.
pub fn read_instances(path: &Path) -> Result<Instances, SourceError> {
    let bytes = read(path)?;
    parse(&bytes).map_err(|fault| malformed(path, &bytes, fault))
}

fn parse(bytes: &[u8]) -> Result<Instances, Fault> {
    let mut s = Scanner::new(bytes);
    let mut found = Instances::default();
    let (mut images, mut categories, mut annotations) = (false, false, false);
    if s.peek() == Some(b'[') {
        return s.fault("a list and no object: a result file is given where `instances*.json` is wanted");
    }
    let start = s.at;
    s.object(|s, name| match name {
        b"images" => {
            (images, found.images) = (true, Vec::new());
            s.array(|s| image(s, &mut found))
        }
        b"categories" => {
            (categories, found.categories) = (true, Vec::new());
            s.array(|s| category(s, &mut found))
        }
        b"annotations" => {
            (annotations, found.annotations) = (true, Vec::new());
            let mut row = 0;
            s.array(|s| {
                row += 1;
                annotation(s, row, &mut found)
            })
        }
        _ => s.skip(),
    })?;
    s.end()?;
    for (there, name) in [(images, "images"), (categories, "categories"), (annotations, "annotations")] {
        if !there {
            let reason = format!("no `{name}` in it, so it is no COCO instances file");
            return Err(Fault { at: start, reason });
        }
    }
    found.keep_sound();
    Ok(found)
}

fn image(s: &mut Scanner<'_>, found: &mut Instances) -> Result<(), Fault> {
    if s.peek() != Some(b'{') {
        s.skip()?;
        found.problems.note(|| "an image is no object; left out".to_owned());
        return Ok(());
    }
    let (mut id, mut file_name, mut width, mut height) = (None, None, None, None);
    s.object(|s, name| {
        match name {
            b"id" => id = s.id()?,
            b"file_name" => file_name = s.text()?,
            b"width" => width = s.id()?,
            b"height" => height = s.id()?,
            _ => s.skip()?,
        }
        Ok(())
    })?;
    let pixels = |side: Option<i64>| side.and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
    match (id, file_name) {
        (Some(id), Some(file_name)) => {
            found.images.push(ImageEntry { id, file_name, width: pixels(width), height: pixels(height) });
        }
        (None, file_name) => found.problems.note(|| {
            format!("image {}: its id is missing or no whole number; left out", file_name.unwrap_or("?".into()))
        }),
        (Some(id), None) => found.problems.note(|| format!("image {id}: no file name; left out")),
    }
    Ok(())
}

fn category(s: &mut Scanner<'_>, found: &mut Instances) -> Result<(), Fault> {
    if s.peek() != Some(b'{') {
        s.skip()?;
        found.problems.note(|| "a category is no object; left out".to_owned());
        return Ok(());
    }
    let (mut id, mut text) = (None, None);
    s.object(|s, name| {
        match name {
            b"id" => id = s.id()?,
            b"name" => text = s.text()?,
            _ => s.skip()?,
        }
        Ok(())
    })?;
    match id {
        Some(id) => found.categories.push(Category { id, name: text.unwrap_or_else(|| format!("category {id}")) }),
        None => found.problems.note(|| {
            format!("category {}: its id is missing or no whole number; left out", text.unwrap_or("?".into()))
        }),
    }
    Ok(())
}

/// `row` counts from 1 and stands in for a missing id.
fn annotation(s: &mut Scanner<'_>, row: i64, found: &mut Instances) -> Result<(), Fault> {
    if s.peek() != Some(b'{') {
        s.skip()?;
        found.problems.note(|| format!("annotation in row {row} is no object; left out"));
        return Ok(());
    }
    let (mut id, mut image_id, mut category_id, mut bbox) = (None, None, None, None);
    let (mut area, mut has_area, mut iscrowd) = (None, false, false);
    s.object(|s, name| {
        match name {
            b"id" => id = s.id()?,
            b"image_id" => image_id = s.id()?,
            b"category_id" => category_id = s.id()?,
            b"bbox" => bbox = s.four()?,
            b"area" => {
                has_area = s.peek() != Some(b'n');
                area = s.number()?;
            }
            b"iscrowd" => iscrowd = s.truth()?,
            _ => s.skip()?,
        }
        Ok(())
    })?;
    let id = id.unwrap_or(row);
    let problems = &mut found.problems;
    let (Some(image_id), Some(category_id)) = (image_id, category_id) else {
        problems.note(|| format!("annotation {id}: no whole number as image_id or category_id; left out"));
        return Ok(());
    };
    let Some(bbox) = bbox else {
        problems.note(|| format!("annotation {id} of image {image_id}: no box of four numbers; left out"));
        return Ok(());
    };
    if let Some(flaw) = flaw(bbox) {
        problems.note(|| format!("annotation {id} of image {image_id}: box {bbox:?} {flaw}; left out"));
        return Ok(());
    }
    let area = area.filter(|area: &f64| area.is_finite() && *area >= 0.0).unwrap_or_else(|| {
        if has_area {
            problems.note(|| format!("annotation {id}: its area is no size; width x height is taken"));
        }
        bbox[2] * bbox[3]
    });
    found.annotations.push(Annotation { id, image_id, category_id, bbox, area, iscrowd });
    Ok(())
}

impl Instances {
    /// Drops doubles and what belongs to nothing, and names it.
    fn keep_sound(&mut self) {
        let problems = &mut self.problems;
        let mut images = HashSet::with_capacity(self.images.len());
        self.images.retain(|image| {
            let fresh = images.insert(image.id);
            if !fresh {
                problems.note(|| format!("image {} is listed twice; {} is left out", image.id, image.file_name));
            }
            fresh
        });
        let mut categories = HashSet::new();
        self.categories.retain(|category| {
            let fresh = categories.insert(category.id);
            if !fresh {
                problems.note(|| format!("category {} is listed twice; {} is left out", category.id, category.name));
            }
            fresh
        });
        self.annotations.retain(|a| {
            let (image, category) = (images.contains(&a.image_id), categories.contains(&a.category_id));
            if !image {
                problems.note(|| format!("annotation {}: image {} is not listed; left out", a.id, a.image_id));
            } else if !category {
                problems.note(|| format!("annotation {}: category {} is not listed; left out", a.id, a.category_id));
            }
            image && category
        });
        self.note_odd_ids();
    }

    /// Ids decide nothing here, but pycocotools looks annotations up by them.
    fn note_odd_ids(&mut self) {
        let mut ids: Vec<i64> = self.annotations.iter().map(|a| a.id).collect();
        ids.sort_unstable();
        for pair in ids.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.problems.note(|| format!("annotation id {} is used twice; both are kept", pair[0]));
        }
        if ids.binary_search(&0).is_ok() {
            self.problems.note(|| {
                "annotation 0: its id means `not found` to COCO's scoring, so a box that finds it counts as wrong"
                    .to_owned()
            });
        }
    }
}

#[cfg(test)]
#[path = "instances_tests.rs"]
mod tests;
