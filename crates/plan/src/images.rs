//! What a user means by `scenes`, a folder or a file of tensors behind `--source` and `--calib`.

use std::path::{Path, PathBuf};

use prony_source::{dataset, folder};

/// The folder that holds the images of the one that was named; `scenes` and files of tensors stay as they are. The note is
/// for what a user may not expect.
pub fn meant(flag: &str, named: &Path) -> anyhow::Result<(PathBuf, Option<String>)> {
    if named.as_os_str() == "scenes" {
        let both = || format!("{flag} scenes: using the built-in scenes; for the folder of that name give ./scenes");
        return Ok((named.to_owned(), named.is_dir().then(both)));
    }
    if is_tensors(named) {
        return Ok((named.to_owned(), None));
    }
    let found = dataset::image_folder(named)?;
    if found == named {
        return Ok((found, None));
    }
    let images = match folder::images(&found)?.len() {
        1 => "the image".to_owned(),
        count => format!("the {count} images"),
    };
    let note = format!("{flag} {}: using {images} in {}", named.display(), found.display());
    Ok((found, Some(note)))
}

/// Whether a file holds arrays, by its ending.
pub fn is_tensors(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "npz" || ending == "npy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_stands_for_its_images() {
        let dir = tempfile::tempdir().unwrap();
        let images = dir.path().join("images");
        std::fs::create_dir(&images).unwrap();
        let refusal = meant("--source", dir.path()).unwrap_err().to_string();
        assert!(refusal.contains("no images (.jpg, .jpeg, .png, .bmp) in this folder or in its images/"), "{refusal}");
        std::fs::write(images.join("a.png"), b"").unwrap();
        let (found, note) = meant("--source", dir.path()).unwrap();
        assert_eq!(found, images);
        let expected = format!("--source {}: using the image in {}", dir.path().display(), images.display());
        assert_eq!(note, Some(expected));
        assert_eq!(meant("--source", &images).unwrap(), (images, None));
        assert_eq!(meant("--calib", Path::new("x.npz")).unwrap(), ("x.npz".into(), None));
    }
}
