//! What a path holds: a COCO file, a `data.yaml`, or a folder with one of them.

use std::fs;
use std::path::{Path, PathBuf};

use prony_types::{DataSource, DataSpec};

use crate::SourceError;

/// The part of a data set that is used when nobody says.
pub(super) const DEFAULT_SPLIT: &str = "val";

/// Which kind of data set.
pub(super) enum Found {
    Scenes,
    /// `instances*.json`.
    Coco(PathBuf),
    /// `data.yaml`.
    Ultralytics(PathBuf),
}

pub(super) fn locate(spec: &DataSpec) -> Result<Found, SourceError> {
    let DataSource::Path(path) = &spec.source else { return Ok(Found::Scenes) };
    let meta = fs::metadata(path).map_err(SourceError::io(path, "open the data set"))?;
    if meta.is_dir() {
        return in_folder(path, spec.split.as_deref());
    }
    match ending(path).as_str() {
        "json" => Ok(Found::Coco(path.clone())),
        "yaml" | "yml" => Ok(Found::Ultralytics(path.clone())),
        _ => Err(SourceError::data(path, "not a data set; give an instances*.json, a data.yaml or a folder with one")),
    }
}

/// The one `instances*.json` of a path, for who needs the truth and no image.
pub fn instances_file(path: &Path, split: Option<&str>) -> Result<PathBuf, SourceError> {
    let meta = fs::metadata(path).map_err(SourceError::io(path, "open the data set"))?;
    if !meta.is_dir() {
        return Ok(path.to_path_buf());
    }
    match in_folder(path, split)? {
        Found::Coco(file) => Ok(file),
        _ => Err(SourceError::data(path, "no instances*.json in this folder or in its annotations/; give the file")),
    }
}

/// COCO is preferred where both are: it has areas and crowds.
fn in_folder(folder: &Path, split: Option<&str>) -> Result<Found, SourceError> {
    let yaml = yaml_in(folder)?;
    let mut files = instances_in(&folder.join("annotations"))?;
    if files.is_empty() {
        files = instances_in(folder)?;
    }
    match choose(&files, split) {
        Choice::One(file) => Ok(Found::Coco(file.clone())),
        Choice::None if yaml.is_some() => Ok(Found::Ultralytics(yaml.unwrap_or_default())),
        Choice::None if files.is_empty() => {
            let usual = "annotations/instances*.json or data.yaml";
            Err(SourceError::data(folder, format!("no data set in this folder: it holds neither {usual}")))
        }
        Choice::None | Choice::Many => {
            let names: Vec<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
            let asked = split.map(|split| format!("; {split} fits none or several")).unwrap_or_default();
            let names = names.join(", ");
            Err(SourceError::data(
                folder,
                format!("several parts: {names}{asked}; say which with --split, or give the file"),
            ))
        }
    }
}

enum Choice<'a> {
    None,
    One(&'a PathBuf),
    Many,
}

/// The one file, or the one whose name has the split in it.
fn choose<'a>(files: &'a [PathBuf], split: Option<&str>) -> Choice<'a> {
    let named = |file: &&PathBuf, split: &str| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // `instances.json` says of no part that it is another.
        stem.contains(split) || stem == "instances"
    };
    if let ([file], None) = (files, split) {
        return Choice::One(file);
    }
    let mut fitting = files.iter().filter(|file| named(file, split.unwrap_or(DEFAULT_SPLIT)));
    match (fitting.next(), fitting.next()) {
        (Some(file), None) => Choice::One(file),
        (None, _) if files.is_empty() || split.is_some() => Choice::None,
        _ => Choice::Many,
    }
}

fn instances_in(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let is_one = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name.starts_with("instances") && ending(path) == "json") || name == "_annotations.coco.json"
    };
    files_in(folder, is_one)
}

fn yaml_in(folder: &Path) -> Result<Option<PathBuf>, SourceError> {
    let usual = folder.join("data.yaml");
    if usual.is_file() {
        return Ok(Some(usual));
    }
    let mut files = files_in(folder, |path| matches!(ending(path).as_str(), "yaml" | "yml"))?;
    Ok(if files.len() == 1 { files.pop() } else { None })
}

fn files_in(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, SourceError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(SourceError::io(folder, "list the folder"))? {
        let path = entry.map_err(SourceError::io(folder, "list the folder"))?.path();
        if wanted(&path) && path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

pub(super) fn ending(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_file_of_truths_or_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let of = |path: &Path, split| instances_file(path, split).map_err(|error| error.to_string());
        assert!(of(&root.join("none"), None).unwrap_err().contains("cannot open the data set"));
        assert!(of(root, None).unwrap_err().contains("no data set in this folder"));
        fs::write(root.join("data.yaml"), "names: [a]\n").unwrap();
        assert!(of(root, None).unwrap_err().contains("no instances*.json"));
        fs::write(root.join("instances.json"), "{}").unwrap();
        fs::write(root.join("captions.json"), "{}").unwrap();
        assert_eq!(of(root, None).unwrap(), root.join("instances.json"));
        assert_eq!(of(&root.join("captions.json"), None).unwrap(), root.join("captions.json"));
        fs::create_dir(root.join("annotations")).unwrap();
        assert_eq!(of(root, None).unwrap(), root.join("instances.json"), "an empty folder is passed over");
        for name in ["val2017", "train2017", "train2014"] {
            fs::write(root.join(format!("annotations/instances_{name}.json")), "{}").unwrap();
        }
        assert_eq!(of(root, None).unwrap(), root.join("annotations/instances_val2017.json"));
        assert_eq!(of(root, Some("train2014")).unwrap(), root.join("annotations/instances_train2014.json"));
        assert!(of(root, Some("train")).unwrap_err().contains("fits none or several"));
    }
}
