//! Files that are either the old one or the new one, never half of each.

use std::path::Path;

use crate::StoreError;

/// Replaces a file that the user named, whole or not at all; a device or a pipe is written through. See
/// [`prony_files::write`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    prony_files::write(path, bytes).map_err(StoreError::io("write", path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_error_names_the_path_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_atomic(&folder.path().join("no/such/report.json"), b"x").unwrap_err().to_string();
        assert!(error.contains("no/such/report.json") && error.contains("No such file"), "{error}");
        fs::create_dir(folder.path().join("taken")).unwrap();
        let error = write_atomic(&folder.path().join("taken"), b"x").unwrap_err().to_string();
        assert!(error.contains("taken") && error.contains("is a folder"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
