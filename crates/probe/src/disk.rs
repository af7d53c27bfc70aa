//! Room on a disk.

use std::path::Path;

/// Bytes that this user may still write in a folder. One that is not there yet will lie in the nearest that is.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let whole = std::path::absolute(folder).ok()?;
    let there = whole.ancestors().find(|path| path.exists())?;
    let room = rustix::fs::statvfs(there).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}
