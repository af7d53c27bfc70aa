//! The one error of this crate.

use std::io;
use std::path::{Path, PathBuf};

use crate::ending::how_to_extract_frames;

/// Why frames could not be had or written. Each names the thing, the reason and, where there is one, the next step.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The folder does not exist.
    #[error("{}: no such folder; check the path, or use the built-in scenes with `--source scenes`", path.display())]
    MissingFolder {
        /// What was asked for.
        path: PathBuf,
    },
    /// The path is there, but it is not a folder.
    #[error("{}: not a folder; give the folder that holds the images", path.display())]
    NotAFolder {
        /// What was asked for.
        path: PathBuf,
    },
    /// A video where a folder of images belongs.
    #[error("{}: videos cannot be read yet; {}, and give that folder", path.display(), how_to_extract_frames(path))]
    Video {
        /// What was asked for.
        path: PathBuf,
    },
    /// The folder holds no image.
    #[error(
        "{}: no images (.jpg, .jpeg, .png, .bmp) in this folder or in its images/, and no data set that says where they are; \
         give the folder that holds the images",
        path.display()
    )]
    EmptyFolder {
        /// What was asked for.
        path: PathBuf,
    },
    /// An image that cannot be used. It says nothing about its neighbours.
    #[error("{}: {reason}", path.display())]
    BadImage {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A frame could not be made into a PNG.
    #[error("png: {reason}")]
    Encode {
        /// What the encoder said.
        reason: String,
    },
    /// A file of a data set that is no JSON, or holds something else.
    #[error("{}:{line}:{column}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Byte of the line, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A data set that cannot be used.
    #[error("{}: {reason}", path.display())]
    BadData {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// The system refused.
    #[error("{}: cannot {action}: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's reason. Not named `source`: the message holds it, and a chain of errors would say it twice.
        cause: io::Error,
    },
    /// The output folder holds something that this program did not write.
    #[error("{}: not empty and not made by this command; give a new or an empty folder", path.display())]
    ForeignFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A model and a data set that have nothing to do with each other.
    #[error("{reason}")]
    Classes {
        /// Which classes stand on both sides.
        reason: String,
    },
    /// A count that makes no data set.
    #[error("count {count}: a data set has from 1 to {max} images")]
    Count {
        /// What was asked for.
        count: u32,
        /// The most there can be.
        max: u32,
    },
    /// Stopped by the caller. What was written stays; writing to the same folder again replaces it.
    #[error("{}: interrupted after {done} of {count} images; the data set is incomplete", path.display())]
    Interrupted {
        /// The folder.
        path: PathBuf,
        /// Images written.
        done: u32,
        /// Images asked for.
        count: u32,
    },
}

impl SourceError {
    /// What is wrong with a data set or a file of it.
    pub(crate) fn data(path: &Path, reason: impl Into<String>) -> SourceError {
        SourceError::BadData { path: path.to_path_buf(), reason: reason.into() }
    }

    /// For `map_err`: what was tried with a path, and what the system said.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> SourceError {
        let path = path.to_path_buf();
        move |cause| SourceError::Io { path, action, cause }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn the_cause_is_told_once() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let message = format!("pics: cannot read: {denied}");
        let error = SourceError::io(Path::new("pics"), "read")(denied);
        assert_eq!(error.to_string(), message);
        assert!(error.source().is_none(), "the message already holds it");
    }
}
