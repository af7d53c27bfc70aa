//! The folder of a slice: whose it is, what an earlier run left there, and how a file gets its name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use prony_files::Kind;

use crate::SourceError;
use crate::coco::read_instances;
use crate::dataset::{Dataset, Origin};
use crate::folder::refuse_foreign;

/// First words of `ids.txt`; a folder that has it is ours to write over.
pub(super) const MARK: &str = "# made by `prony data subset`";
/// What stands before a name that an unfinished run was going to write.
const PLANNED: &str = "# to come ";
/// Start and end of a name that a file has until it is whole.
const TEMPORARY: (&str, &str) = (".prony-", ".part");

/// Makes the folders and removes an older slice of ours. What someone else put there is not touched.
pub(super) fn claim(out: &Path, data: &Dataset, names: &[String]) -> Result<(), SourceError> {
    let list = out.join("ids.txt");
    refuse_foreign(out, &list, MARK)?;
    fs::create_dir_all(out).map_err(SourceError::io(out, "make the folder"))?;
    refuse_own_source(out, data)?;
    remove_older(out)?;
    // Before the images: a folder that was left half done is still known to be ours, and what of it is.
    let mut plan = format!("{MARK} of {}\n# not finished\n", data.name);
    for name in names {
        plan += &format!("{PLANNED}{}\n", serde_json::Value::from(name.as_str()));
    }
    put(&list, plan.as_bytes())?;
    for folder in ["images", "annotations"] {
        let folder = out.join(folder);
        fs::create_dir_all(&folder).map_err(SourceError::io(&folder, "make the folder"))?;
    }
    Ok(())
}

/// Writing over a slice removes its images, which must not be those that are about to be read.
fn refuse_own_source(out: &Path, data: &Dataset) -> Result<(), SourceError> {
    let places: Vec<PathBuf> =
        [out.to_path_buf(), out.join("images")].iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    let inside = |path: Option<&Path>| {
        let whole = path.and_then(|path| fs::canonicalize(path).ok());
        whole.is_some_and(|whole| places.iter().any(|place| whole.starts_with(place)))
    };
    for image in &data.images {
        let Origin::File(file) = &image.origin else { continue };
        if inside(Some(file)) || inside(file.parent()) {
            let reason = "the images are read from this folder, and it would be written over; give another folder";
            return Err(SourceError::data(out, reason));
        }
    }
    Ok(())
}

/// Removes the images that an older slice names, or that an unfinished run was going to write, and nothing else.
fn remove_older(out: &Path) -> Result<(), SourceError> {
    let (images, file) = (out.join("images"), out.join("annotations/instances.json"));
    let mut names: Vec<String> = prony_files::read_text(&out.join("ids.txt"), Kind::List)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix(PLANNED)?).ok())
        .collect();
    if let Ok(older) = read_instances(&file) {
        names.extend(older.images.into_iter().map(|image| image.file_name));
    }
    names.retain(|name| Path::new(name).components().count() == 1 && !name.starts_with('.'));
    names.extend(unfinished(&images));
    for path in names.iter().map(|name| images.join(name)).chain([file]) {
        match fs::remove_file(&path) {
            Err(e) if !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(SourceError::io(&path, "remove the old file")(e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Files that a run which was killed did not come to name.
fn unfinished(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|e| e.file_name().into_string().ok());
    names.filter(|name| name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1)).collect()
}

/// Makes a file under another name beside it and gives it its own when it is whole. Renaming replaces what is there,
/// also a link; writing to the path would go through the link into the file that it leads to.
pub(super) fn replace<T>(path: &Path, make: impl FnOnce(&Path) -> Result<T, SourceError>) -> Result<T, SourceError> {
    let temporary = path.with_file_name(format!("{}{}{}", TEMPORARY.0, prony_files::unguessable(), TEMPORARY.1));
    let made = make(&temporary).and_then(|made| {
        fs::rename(&temporary, path).map_err(SourceError::io(path, "write the file"))?;
        Ok(made)
    });
    // It is still there after an error, and where both were names of one file: then renaming does nothing.
    let _ = fs::remove_file(&temporary);
    made
}

pub(super) fn put(path: &Path, bytes: &[u8]) -> Result<(), SourceError> {
    replace(path, |temporary| fs::write(temporary, bytes).map_err(SourceError::io(path, "write the file")))
}
