//! One process at a time makes an engine. The kernel lets go of a lock when its holder dies, whatever way.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// How often a lock that another process holds is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// A lock on a file that is there for nothing else.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Waits for the lock. `waiting` is called again and again while another process holds it.
    pub(crate) fn wait(path: &Path, waiting: &mut dyn FnMut()) -> io::Result<Lock> {
        loop {
            if let Some(lock) = Lock::attempt(path)? {
                return Ok(lock);
            }
            waiting();
            std::thread::sleep(PAUSE);
        }
    }

    /// The lock, unless another process holds it.
    pub(crate) fn attempt(path: &Path) -> io::Result<Option<Lock>> {
        loop {
            // A link or a pipe in its place is not ours: neither followed nor waited for.
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            let file = File::options().create(true).truncate(false).write(true).custom_flags(flags).open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // Whoever held it may have removed the file meanwhile: a lock on a file that nobody can find is none.
            let here = file.metadata()?;
            if fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino())) {
                return Ok(Some(Lock { path: path.to_owned(), _file: file }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While the lock is still held, so that nothing is left over; see the end of `attempt`.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_freed_by_dropping_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let first = Lock::attempt(&path).unwrap().unwrap();
        assert!(Lock::attempt(&path).unwrap().is_none());
        drop(first);
        assert!(!path.exists());
        assert!(Lock::attempt(&path).unwrap().is_some());
    }

    #[test]
    fn a_lock_on_a_removed_file_is_not_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let first = Lock::attempt(&path).unwrap().unwrap();
        let mut first = Some(first);
        let mut waits = 0;
        let second = Lock::wait(&path, &mut || {
            waits += 1;
            drop(first.take());
        });
        let _second = second.unwrap();
        assert!(waits >= 1 && path.exists());
        assert!(Lock::attempt(&path).unwrap().is_none());
    }
}
