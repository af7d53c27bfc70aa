//! What can go wrong with files.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file of a run could not be written or read. Every message names the path.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {action} {}: {cause}{}", path.display(), advice(cause))]
    Io {
        /// What was tried, e.g. `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason. Not named `source`: the message holds it, and a chain of errors would say it twice.
        cause: io::Error,
    },
    /// The file is not what it should be.
    #[error("{}{}: {reason}", path.display(), line.map(|n| format!(" line {n}")).unwrap_or_default())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which line, from 1, where the file has lines.
        line: Option<u64>,
        /// What is wrong.
        reason: String,
    },
    /// The record has another format.
    #[error("{} has the schema `{found}`, this prony reads `{known}`; use the prony that wrote it", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        found: String,
        /// What can be read.
        known: &'static str,
    },
}

impl StoreError {
    /// For `map_err`: what was tried, and on what.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |cause| StoreError::Io { action, path, cause }
    }

    /// Whether the disk, a quota or a size limit is what stood in the way.
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Io { cause, .. } if is_full(cause))
    }
}

fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

fn advice(cause: &io::Error) -> &'static str {
    match cause.kind() {
        _ if is_full(cause) => "; free some space or name another folder with --out",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "; name another folder with --out",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn the_cause_is_told_once() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let words = full.to_string();
        let error = StoreError::io("write", Path::new("runs/x"))(full);
        assert!(error.is_full());
        assert!(error.to_string().starts_with(&format!("cannot write runs/x: {words}; free some space")), "{error}");
        assert!(error.source().is_none(), "the message already holds it");
    }
}
