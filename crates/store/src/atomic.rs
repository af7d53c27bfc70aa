//! Files that are either the old one or the new one, never half of each.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Replaces a file: writes beside it, syncs, renames. On an error the old file is untouched and nothing is left over.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let temporary = temporary(path);
    let written = write_synced(&temporary, bytes)
        .map_err(StoreError::io("write", path))
        .and_then(|()| fs::rename(&temporary, path).map_err(StoreError::io("replace", path)));
    if written.is_err() {
        // The first error is the one to tell; a leftover that cannot be removed adds nothing to it.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    // The rename itself lives in the folder. Not every file system can sync one, and the data are safe already.
    if let Some(folder) =
        path.parent().and_then(|p| File::open(if p.as_os_str().is_empty() { Path::new(".") } else { p }).ok())
    {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// In the same folder, because a rename does not cross file systems.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

#[cfg(test)]
mod tests {
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
        // A folder stands where the file should be: the rename fails after the write.
        fs::create_dir(folder.path().join("taken")).unwrap();
        write_atomic(&folder.path().join("taken"), b"x").unwrap_err();
        assert_eq!(names(folder.path()), ["taken"]);
    }
}
