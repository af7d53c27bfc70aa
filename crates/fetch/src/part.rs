//! A file that is not whole yet, and the note of which version of which file it is a part of.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use prony_files::{Folder, Kind};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::download::hex;
use super::url::Url;

/// Which version of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    /// SHA-256 of the address, which may hold a secret.
    url_sha256: String,
    etag: Option<String>,
    last_modified: Option<String>,
    /// Bytes of the whole.
    pub(super) total: Option<u64>,
    /// Bytes behind this many are not known to be of this version.
    #[serde(default)]
    checked_to: Option<u64>,
}

impl Stamp {
    pub(super) fn new(url: &Url, etag: Option<String>, last_modified: Option<String>, total: Option<u64>) -> Stamp {
        let url_sha256 = hex(&Sha256::digest(url.address()));
        Stamp { url_sha256, etag, last_modified, total, checked_to: None }
    }

    /// What `If-Range` takes: a strong ETag, else the time.
    pub(super) fn condition(&self) -> Option<&str> {
        let condition = self.etag.as_deref().filter(|etag| !etag.starts_with("W/")).or(self.last_modified.as_deref());
        condition.filter(|text| !text.contains(char::is_control))
    }

    /// Whether a rest with that stamp is of the same version: by what was asked for, and nothing known differs.
    pub(super) fn is_continued_by(&self, rest: &Stamp) -> bool {
        let differs = |then: &Option<String>, now: &Option<String>| then.is_some() && now.is_some() && then != now;
        self.url_sha256 == rest.url_sha256
            && self.condition().is_some()
            && self.condition() == rest.condition()
            && !differs(&self.etag, &rest.etag)
            && !differs(&self.last_modified, &rest.last_modified)
            && self.total.zip(rest.total).is_none_or(|(then, now)| then == now)
    }
}

/// An open `.part`. Only one process has it at a time.
#[derive(Debug)]
pub(super) struct Part {
    folder: Folder,
    whole: String,
    part: OsString,
    note: OsString,
    file: File,
}

impl Part {
    /// The part of the file `whole` of a folder, made where there is none. What cannot be continued is not kept.
    pub(super) fn open(folder: Folder, whole: &str, url: &Url) -> anyhow::Result<Part> {
        let (part, note) = (OsString::from(format!("{whole}.part")), OsString::from(format!("{whole}.part.json")));
        let path = folder.path().join(&part);
        let file = folder.append(&part).with_context(|| format!("{}: cannot write the file", path.display()))?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        // Whoever had it may have finished it between the two lines above: then this is the whole file.
        let is_same = |about: &std::fs::Metadata| {
            std::fs::symlink_metadata(&path).is_ok_and(|now| (now.ino(), now.dev()) == (about.ino(), about.dev()))
        };
        if !locked || !file.metadata().is_ok_and(|about| is_same(&about)) {
            bail!("{}: another process is fetching it", path.display());
        }
        let part = Part { folder, whole: whole.to_owned(), part, note, file };
        let length = part.len()?;
        let asked = Stamp::new(url, None, None, None).url_sha256;
        match part.stamp().filter(|stamp| stamp.url_sha256 == asked && stamp.condition().is_some()) {
            Some(stamp) => part.cut(stamp.checked_to.unwrap_or(length).min(length))?,
            None => part.clear()?,
        }
        Ok(part)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.part)
    }

    /// The file, open for writing at its end.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn len(&self) -> anyhow::Result<u64> {
        Ok(self.file.metadata().with_context(|| self.path().display().to_string())?.len())
    }

    /// What it is a part of, where that is known.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        serde_json::from_slice(&self.folder.read(&self.note, Kind::Sidecar).ok()?).ok()
    }

    /// Notes what it is a part of.
    pub(super) fn mark(&self, stamp: &Stamp) -> anyhow::Result<()> {
        let written = self.folder.replace(&self.note, &serde_json::to_vec(stamp)?);
        written.with_context(|| format!("{}: cannot write the file", self.folder.path().join(&self.note).display()))
    }

    /// Notes that bytes will come of which it is not known yet what they are: if this process is killed, they go.
    pub(super) fn expect_rest(&self, stamp: &Stamp) -> anyhow::Result<()> {
        self.mark(&Stamp { checked_to: Some(self.len()?), ..stamp.clone() })
    }

    /// Back to this length.
    pub(super) fn cut(&self, length: u64) -> anyhow::Result<()> {
        self.file.set_len(length).with_context(|| format!("{}: cannot cut the file", self.path().display()))
    }

    /// Back to nothing.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        let _ = self.folder.remove(&self.note);
        self.cut(0)
    }

    /// Removes it.
    pub(super) fn discard(&self) -> anyhow::Result<()> {
        let _ = self.folder.remove(&self.note);
        self.folder.remove(&self.part).with_context(|| format!("{}: cannot remove it", self.path().display()))
    }

    /// Keeps what can be continued and removes the rest; how many bytes are kept.
    pub(super) fn keep(&self) -> anyhow::Result<u64> {
        let length = self.len()?;
        if length > 0 && self.stamp().is_some_and(|stamp| stamp.condition().is_some()) {
            return Ok(length);
        }
        self.discard()?;
        Ok(0)
    }

    /// It is whole: it gets its name.
    pub(super) fn finish(self) -> anyhow::Result<PathBuf> {
        let whole = self.folder.path().join(&self.whole);
        let named = self.file.sync_all().and_then(|()| {
            match renameat_with(CWD, self.path(), CWD, &whole, RenameFlags::NOREPLACE) {
                // Not every file system can refuse to replace.
                Err(Errno::INVAL | Errno::NOSYS) => std::fs::rename(self.path(), &whole),
                renamed => renamed.map_err(io::Error::from),
            }
        });
        named.with_context(|| format!("{}: cannot finish the file", whole.display()))?;
        let _ = self.folder.remove(&self.note);
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> Url {
        "http://h/x.zip?token=secret".parse().unwrap()
    }

    fn stamp(etag: Option<&str>, time: Option<&str>, total: Option<u64>) -> Stamp {
        let text = |value: Option<&str>| value.map(str::to_owned);
        Stamp::new(&url(), text(etag), text(time), total)
    }

    fn open(folder: &tempfile::TempDir) -> anyhow::Result<Part> {
        Part::open(Folder::open(folder.path()).unwrap(), "x.zip", &url())
    }

    #[test]
    fn a_rest_without_a_version_was_joined() {
        let then = stamp(Some("\"a\""), Some("Mon"), Some(9));
        assert!(then.is_continued_by(&then.clone()));
        assert!(then.is_continued_by(&stamp(Some("\"a\""), None, None)));
        for now in [
            stamp(Some("\"b\""), Some("Mon"), Some(9)),
            stamp(Some("\"a\""), Some("Tue"), Some(9)),
            stamp(Some("\"a\""), Some("Mon"), Some(8)),
            stamp(None, Some("Mon"), Some(9)),
            stamp(None, None, Some(9)),
        ] {
            assert!(!then.is_continued_by(&now), "{now:?}");
        }
        let unknown = stamp(None, None, Some(9));
        assert!(!unknown.is_continued_by(&unknown.clone()));
        assert_eq!(then.condition(), Some("\"a\""));
        assert_eq!(stamp(Some("W/\"a\""), Some("Mon"), None).condition(), Some("Mon"));
        assert_eq!(stamp(Some("\"a\r\nX: y\""), None, None).condition(), None);
    }

    #[test]
    fn only_one_process_writes_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(&folder).unwrap();
        let error = open(&folder).unwrap_err().to_string();
        assert!(error.ends_with("x.zip.part: another process is fetching it"), "{error}");
        drop(first);
        open(&folder).unwrap();
    }

    #[test]
    fn bytes_that_were_never_checked_are_not_kept() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let known = stamp(Some("\"a\""), None, Some(9));
        let part = open(&folder).unwrap();
        part.file().write_all(b"12345").unwrap();
        part.mark(&known).unwrap();
        let note = std::fs::read_to_string(folder.path().join("x.zip.part.json")).unwrap();
        assert!(!note.contains("secret"), "{note}");
        drop(part);
        let part = open(&folder).unwrap();
        assert_eq!(part.len().unwrap(), 5);
        part.expect_rest(&known).unwrap();
        part.file().write_all(b"<html>").unwrap();
        drop(part);
        assert_eq!(open(&folder).unwrap().len().unwrap(), 5, "killed before the rest was looked at");
        open(&folder).unwrap().mark(&stamp(None, None, Some(9))).unwrap();
        assert_eq!(open(&folder).unwrap().len().unwrap(), 0, "no version");
    }

    #[test]
    fn a_link_in_the_way_was_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, b"mine").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("x.zip.part")).unwrap();
        assert!(format!("{:#}", open(&folder).unwrap_err()).contains("symbolic link"));
        assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
    }

    #[test]
    fn a_file_that_came_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let part = open(&folder).unwrap();
        std::fs::write(folder.path().join("x.zip"), b"other").unwrap();
        part.finish().unwrap_err();
        assert_eq!(std::fs::read(folder.path().join("x.zip")).unwrap(), b"other");
    }
}
