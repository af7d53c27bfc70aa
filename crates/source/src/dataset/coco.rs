//! COCO: an `instances*.json`, and images in one of the usual places around it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use prony_types::DataSpec;

use super::assembly::{Assembly, Candidate};
use super::{Dataset, LabeledBox, Origin, slice};
use crate::SourceError;
use crate::coco::{Annotation, ImageEntry, Instances, read_instances};

/// Images that are looked for in a folder to find out whether it is the right one.
const PROBES: usize = 16;

pub(super) fn open(spec: &DataSpec, file: &Path) -> Result<Dataset, SourceError> {
    let mut instances = read_instances(file)?;
    // Numbers by their index, so that a model without names can be matched in this order.
    instances.categories.sort_by_key(|category| category.id);
    let categories = instances.categories.clone();
    let mut assembly = Assembly::new(categories);
    let problems = std::mem::take(&mut instances.problems);
    assembly.problems.absorb("flaws in the annotations", problems.count, problems.first);
    unused(&instances, &mut assembly);

    let names: Vec<(i64, &str)> = instances.images.iter().map(|image| (image.id, image.file_name.as_str())).collect();
    let chosen = slice::choose(spec, &names, &mut assembly.problems)?;
    let folder = match &spec.images {
        Some(folder) if folder.is_dir() => folder.clone(),
        Some(folder) => return Err(SourceError::MissingFolder { path: folder.clone() }),
        None => image_folder(file, &instances.images),
    };
    let truths = truths(&instances, &chosen);
    for (&index, truths) in chosen.iter().zip(&truths) {
        add(&mut assembly, &instances.images[index], &folder, truths);
    }
    let what = file.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("coco: {what}, {}", slice::words(spec, chosen.len(), instances.images.len()));
    assembly.finish(name, file, None).map_err(|error| match (error, &spec.images) {
        (SourceError::BadData { path, reason }, None) => SourceError::BadData {
            path,
            reason: format!("{reason}; if they are elsewhere, say where with --images DIR"),
        },
        (error, _) => error,
    })
}

fn add(assembly: &mut Assembly, image: &ImageEntry, folder: &Path, truths: &[LabeledBox]) {
    let path = folder.join(&image.file_name);
    match fs::metadata(&path) {
        Ok(meta) if meta.is_file() && meta.len() == 0 => {
            assembly.miss(image.id, truths, "empty images", format!("{}: is empty", path.display()));
        }
        Ok(meta) if meta.is_file() => {
            let candidate = Candidate {
                id: image.id,
                name: image.file_name.clone(),
                origin: Origin::File(path),
                size: image.width.zip(image.height),
            };
            assembly.add(candidate, truths);
        }
        Ok(_) => assembly.miss(image.id, truths, "missing images", format!("{}: is not a file", path.display())),
        Err(e) => {
            assembly.miss(
                image.id,
                truths,
                "missing images",
                format!("{}: cannot open the image: {e}", path.display()),
            );
        }
    }
}

/// The truths of each chosen image, in the order of the file.
fn truths(instances: &Instances, chosen: &[usize]) -> Vec<Vec<LabeledBox>> {
    let place: HashMap<i64, usize> =
        chosen.iter().enumerate().map(|(place, &index)| (instances.images[index].id, place)).collect();
    let category: HashMap<i64, u32> = (0..).zip(&instances.categories).map(|(index, c)| (c.id, index)).collect();
    let mut truths = vec![Vec::new(); chosen.len()];
    for annotation in &instances.annotations {
        let Annotation { id, bbox: [x, y, w, h], area, iscrowd, .. } = *annotation;
        if let (Some(&place), Some(&category)) =
            (place.get(&annotation.image_id), category.get(&annotation.category_id))
        {
            truths[place].push(LabeledBox { id, category, x, y, w, h, area, crowd: iscrowd });
        }
    }
    truths
}

/// Names the categories that no object has, in the whole file.
fn unused(instances: &Instances, assembly: &mut Assembly) {
    let used: std::collections::HashSet<i64> = instances.annotations.iter().map(|a| a.category_id).collect();
    for category in instances.categories.iter().filter(|category| !used.contains(&category.id)) {
        let what = format!("category {} ({}): no object has it", category.id, category.name);
        assembly.problems.add("categories without objects", what);
    }
}

/// The folder around the file in which most of the images are; the likeliest where none is.
fn image_folder(file: &Path, images: &[ImageEntry]) -> PathBuf {
    let own = file.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let root = match own.file_name() {
        Some(name) if name == "annotations" => own.parent().filter(|path| !path.as_os_str().is_empty()),
        _ => Some(own),
    };
    let root = root.unwrap_or(Path::new("."));
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let split = stem.strip_prefix("instances").unwrap_or_default().trim_start_matches('_');
    let mut folders = vec![root.join("images"), root.to_path_buf(), own.to_path_buf()];
    if !split.is_empty() {
        folders.splice(0..0, [root.join("images").join(split), root.join(split), root.join(split).join("images")]);
    }
    let step = images.len().div_ceil(PROBES).max(1);
    let found = |folder: &PathBuf| images.iter().step_by(step).filter(|i| folder.join(&i.file_name).is_file()).count();
    let mut best: Option<(usize, &PathBuf)> = None;
    for folder in &folders {
        let count = found(folder);
        if count > best.map_or(0, |(most, _)| most) {
            best = Some((count, folder));
        }
    }
    let first = || folders.iter().find(|folder| folder.is_dir()).unwrap_or(&folders[0]);
    best.map_or_else(first, |(_, folder)| folder).clone()
}
