//! Errors of the disk, with what to do about them.

use std::io;
use std::path::Path;

/// For `map_err`: what was tried on what, and what to do where there is something to do.
pub fn disk_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    use io::ErrorKind as Kind;
    let path = path.to_owned();
    move |error| {
        let advice = match error.kind() {
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
                "; free some space or name another folder with --home"
            }
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => "; name another folder with --home",
            _ => "",
        };
        let text = format!("cannot {action} {}: {error}{advice}", path.display());
        anyhow::Error::new(DiskError { text })
    }
}

/// The disk, not the input, stood in the way.
#[derive(Debug)]
pub struct DiskError {
    text: String,
}

impl std::fmt::Display for DiskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for DiskError {}
