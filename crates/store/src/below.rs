//! Files of a run folder, which may come from anybody: a file is reached through the descriptor of the folder it lies in, and
//! a link in its place is never followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Error};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use prony_files::{Folder, Kind};

use crate::StoreError;

/// Reads a file of a run.
pub(crate) fn read(path: &Path, kind: Kind) -> Result<Vec<u8>, StoreError> {
    let bytes = around(path).and_then(|(folder, name)| folder.read(name, kind));
    bytes.map_err(StoreError::io("read", path))
}

/// Opens a file of a run to read it piece by piece.
pub(crate) fn open(path: &Path, kind: Kind) -> Result<File, StoreError> {
    let file = around(path).and_then(|(folder, name)| folder.open_file(name, kind));
    file.map_err(StoreError::io("open", path))
}

/// Opens a file of a run to write at its end, and once more to read it.
pub(crate) fn append(path: &Path) -> Result<(File, File), StoreError> {
    let open = || {
        let (folder, name) = around(path)?;
        let file = appendable(&folder, name)?;
        Ok((file, folder.open_file(name, Kind::Lines)?))
    };
    open().map_err(StoreError::io("open", path))
}

/// A log of a folder, opened at its end. One that has another name too is somebody else's file.
pub(crate) fn appendable(folder: &Folder, name: impl AsRef<Path>) -> io::Result<File> {
    let file = folder.append(name)?;
    match file.metadata()?.nlink() {
        0 | 1 => Ok(file),
        links => Err(Error::other(format!("is a file with {links} names (hard links); copy the run folder first"))),
    }
}

fn around(path: &Path) -> io::Result<(Folder, &OsStr)> {
    let name = path.file_name().ok_or_else(|| Error::other("is not the name of a file"))?;
    Ok((Folder::open(path.parent().unwrap_or(Path::new("")))?, name))
}
