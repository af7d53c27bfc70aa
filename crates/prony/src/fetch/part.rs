//! A file that is not whole yet, and the note of which version of which file it is a part of.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// Which version of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) url: String,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// Bytes of the whole.
    pub(super) total: Option<u64>,
}

impl Stamp {
    /// Whether the server still has the same: nothing that both sides know differs, and they know something.
    pub(super) fn is_same(&self, now: &Stamp) -> bool {
        let strings = [(&self.etag, &now.etag), (&self.last_modified, &now.last_modified)];
        let totals = self.total.zip(now.total).map(|(then, now)| then == now);
        let known = strings.iter().filter_map(|(then, now)| Some(then.as_ref()? == now.as_ref()?)).chain(totals);
        let mut any = false;
        let mut same = true;
        known.for_each(|equal| {
            any = true;
            same &= equal;
        });
        any && same
    }

    /// What `If-Range` takes: a strong ETag, else the time.
    pub(super) fn condition(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/")).or(self.last_modified.as_deref())
    }
}

/// An open `.part`. Only one process has it at a time.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    note: PathBuf,
    file: File,
}

impl Part {
    /// The part of the file `whole`, made where there is none.
    pub(super) fn open(whole: &Path) -> anyhow::Result<Part> {
        let beside = |ending: &str| {
            let mut name = whole.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let (path, note) = (beside(".part"), beside(".part.json"));
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("{}: cannot write the file", path.display()))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("{}: another process is fetching it", path.display());
        }
        Ok(Part { path, note, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> anyhow::Result<u64> {
        Ok(self.file.metadata().with_context(|| self.path.display().to_string())?.len())
    }

    /// What it is a part of, where that is known.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        serde_json::from_slice(&fs::read(&self.note).ok()?).ok()
    }

    /// Notes what the next bytes are a part of.
    pub(super) fn mark(&self, stamp: &Stamp) -> anyhow::Result<()> {
        fs::write(&self.note, serde_json::to_vec(stamp)?)
            .with_context(|| format!("{}: cannot write the file", self.note.display()))
    }

    /// Back to nothing.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        let _ = fs::remove_file(&self.note);
        self.file.set_len(0).with_context(|| format!("{}: cannot empty the file", self.path.display()))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Removes it.
    pub(super) fn discard(&self) -> anyhow::Result<()> {
        let _ = fs::remove_file(&self.note);
        fs::remove_file(&self.path).with_context(|| format!("{}: cannot remove it", self.path.display()))
    }

    /// It is whole: it gets its name.
    pub(super) fn finish(self, whole: &Path) -> anyhow::Result<()> {
        let named = self.file.sync_all().and_then(|()| fs::rename(&self.path, whole));
        named.with_context(|| format!("{}: cannot finish the file", whole.display()))?;
        let _ = fs::remove_file(&self.note);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(etag: Option<&str>, time: Option<&str>, total: Option<u64>) -> Stamp {
        let text = |value: Option<&str>| value.map(str::to_owned);
        Stamp { url: String::new(), etag: text(etag), last_modified: text(time), total }
    }

    #[test]
    fn a_file_is_the_same_when_nothing_known_differs() {
        let then = stamp(Some("\"a\""), Some("Mon"), Some(9));
        assert!(then.is_same(&then.clone()));
        assert!(then.is_same(&stamp(None, Some("Mon"), None)));
        assert!(!then.is_same(&stamp(Some("\"b\""), Some("Mon"), Some(9))));
        assert!(!then.is_same(&stamp(Some("\"a\""), Some("Mon"), Some(8))));
        assert!(!then.is_same(&stamp(None, None, None)), "nothing is known");
        assert_eq!(then.condition(), Some("\"a\""));
        assert_eq!(stamp(Some("W/\"a\""), Some("Mon"), None).condition(), Some("Mon"));
    }

    #[test]
    fn only_one_process_writes_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("x.zip");
        let first = Part::open(&whole).unwrap();
        let error = Part::open(&whole).unwrap_err().to_string();
        assert!(error.ends_with("x.zip.part: another process is fetching it"), "{error}");
        drop(first);
        Part::open(&whole).unwrap();
    }
}
