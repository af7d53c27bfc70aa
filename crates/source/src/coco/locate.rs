//! Finds the one `instances*.json` of a data set.

use std::fs;
use std::path::{Path, PathBuf};

use crate::SourceError;

/// `path` itself where it is a file; in a folder the only `instances*.json` of `annotations/`, or else of the folder.
pub fn instances_file(path: &Path) -> Result<PathBuf, SourceError> {
    let meta = fs::metadata(path).map_err(SourceError::io(path, "open the data set"))?;
    if !meta.is_dir() {
        return Ok(path.to_path_buf());
    }
    for folder in [path.join("annotations"), path.to_path_buf()] {
        if !folder.is_dir() {
            continue;
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(SourceError::io(&folder, "list the folder"))? {
            let file = entry.map_err(SourceError::io(&folder, "list the folder"))?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("instances") && name.ends_with(".json") && file.is_file() {
                found.push(file);
            }
        }
        found.sort_unstable();
        match found.as_slice() {
            [] => {}
            [one] => return Ok(one.clone()),
            [one, other, ..] => {
                let reason = format!(
                    "{} files are instances*.json, {} and {} among them; give the one that is meant",
                    found.len(),
                    one.file_name().unwrap_or_default().display(),
                    other.file_name().unwrap_or_default().display()
                );
                return Err(SourceError::BadData { path: folder, reason });
            }
        }
    }
    let reason = "no instances*.json in this folder or in its annotations/; give the file".to_owned();
    Err(SourceError::BadData { path: path.to_path_buf(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_must_hold_exactly_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let message = |path: &Path| instances_file(path).unwrap_err().to_string();
        assert!(message(&root.join("none")).contains("cannot open the data set"), "{}", message(&root.join("none")));
        assert!(message(root).contains("no instances*.json"), "{}", message(root));

        fs::write(root.join("instances.json"), "{}").unwrap();
        fs::write(root.join("captions.json"), "{}").unwrap();
        assert_eq!(instances_file(root).unwrap(), root.join("instances.json"));
        assert_eq!(instances_file(&root.join("captions.json")).unwrap(), root.join("captions.json"));

        fs::create_dir(root.join("annotations")).unwrap();
        assert_eq!(instances_file(root).unwrap(), root.join("instances.json"), "an empty folder is passed over");
        fs::write(root.join("annotations/instances_val2017.json"), "{}").unwrap();
        assert_eq!(instances_file(root).unwrap(), root.join("annotations/instances_val2017.json"));
        fs::write(root.join("annotations/instances_train2017.json"), "{}").unwrap();
        assert!(
            message(root).contains("2 files are instances*.json, instances_train2017.json and"),
            "{}",
            message(root)
        );
    }
}
