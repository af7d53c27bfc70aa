//! Outputs that the user named: a regular file is either the old one or the new one, never half of each.

use std::path::Path;

use crate::StoreError;

/// Writes an output that the user named: a regular file is replaced, a link is followed, a device or a pipe is written to.
/// On an error the old file is untouched and nothing is left over.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    prony_files::write(path, bytes).map_err(StoreError::io("write", path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["report.json"]);
    }

    #[test]
    fn an_error_names_the_path_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_atomic(&folder.path().join("no/such/report.json"), b"x").unwrap_err().to_string();
        assert!(error.contains("no/such/report.json") && error.contains("No such file"), "{error}");
        fs::create_dir(folder.path().join("taken")).unwrap();
        write_atomic(&folder.path().join("taken"), b"x").unwrap_err();
        assert_eq!(names(folder.path()), ["taken"]);
    }
}
