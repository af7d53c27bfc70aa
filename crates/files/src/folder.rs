//! A folder that was opened once. Everything below it is reached through its descriptor and by single names, and no link is
//! followed: a link that somebody put there cannot lead a read or a write out of the folder.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::owner::trusted_users;
use crate::read::{self, all_of};
use crate::{Kind, name};

/// An opened folder.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// Who else has a hand in a folder or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It belongs to another user.
    Owner(u32),
    /// Others may write to it.
    Writable(u32),
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Foreign::Owner(uid) => write!(f, "belongs to user {uid}"),
            Foreign::Writable(mode) => write!(f, "may be written by everybody (mode {mode:04o})"),
        }
    }
}

impl Folder {
    /// Opens a folder; a link to one is the user's own and is followed.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let descriptor = openat(CWD, named, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Folder { descriptor, path: path.to_owned() })
    }

    /// Makes a folder, with those above it, where there is none, and opens it.
    pub fn make(path: &Path) -> io::Result<Folder> {
        fs::create_dir_all(path)?;
        Folder::open(path)
    }

    /// The path it was opened by, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder in this one.
    pub fn sub(&self, name: impl AsRef<Path>) -> io::Result<Folder> {
        let name = name::checked(name.as_ref())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Folder { descriptor, path: self.path.join(name) }),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(self.not_a(name, "folder")),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a folder in this one, which is made where there is none.
    pub fn make_sub(&self, name: impl AsRef<Path>) -> io::Result<Folder> {
        let checked = name::checked(name.as_ref())?;
        match mkdirat(&self.descriptor, checked, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.sub(checked),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, name: impl AsRef<Path>, kind: Kind) -> io::Result<File> {
        let name = name::checked(name.as_ref())?;
        let what = FileType::from_raw_mode(statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
        if what != FileType::RegularFile {
            return Err(self.not_a(name, "regular file"));
        }
        let file = File::from(openat(&self.descriptor, name, read::flags() | OFlags::NOFOLLOW, Mode::empty())?);
        read::accept(&file.metadata()?, kind, false)?;
        Ok(file)
    }

    /// Reads a regular file.
    pub fn read(&self, name: impl AsRef<Path>, kind: Kind) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        all_of(&mut self.open_file(name, kind)?, kind, read::PATIENCE, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a regular file of text.
    pub fn read_text(&self, name: impl AsRef<Path>, kind: Kind) -> io::Result<String> {
        read::text(self.read(name, kind)?)
    }

    /// Makes a file that is not there yet.
    pub fn create_new(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let name = name::checked(name.as_ref())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.descriptor, name, flags, Mode::from_raw_mode(0o666))?))
    }

    /// Opens a file to write at its end; it is made where there is none.
    pub fn append(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let name = name::checked(name.as_ref())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | read::flags();
        let opened = openat(&self.descriptor, name, flags, Mode::from_raw_mode(0o666));
        let file = File::from(opened.map_err(|error| match error {
            Errno::LOOP | Errno::NXIO => self.not_a(name, "regular file"),
            error => error.into(),
        })?);
        if !file.metadata()?.is_file() {
            return Err(self.not_a(name, "regular file"));
        }
        Ok(file)
    }

    /// Replaces a file: it is the old one or the new one, never half of each. A link of that name is replaced, not followed.
    pub fn replace(&self, name: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        let mut draft = self.draft(name)?;
        draft.write_all(bytes)?;
        draft.commit()
    }

    /// Begins a file that takes its name when it is whole.
    pub fn draft(&self, name: impl AsRef<Path>) -> io::Result<Draft> {
        let name = name::checked(name.as_ref())?.to_owned();
        let folder = self.descriptor.try_clone()?;
        loop {
            let temporary = name::draft(&name);
            match self.create_new(&temporary) {
                Ok(file) => return Ok(Draft { folder, name, temporary: Some(temporary), file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether there is anything of that name, be it a link to nowhere.
    pub fn exists(&self, name: impl AsRef<Path>) -> bool {
        name::checked(name.as_ref()).is_ok_and(|name| statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// Removes a file; a link goes, not what it names.
    pub fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, name::checked(name.as_ref())?, AtFlags::empty())?)
    }

    /// The names in this folder, sorted.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        use std::os::unix::ffi::OsStrExt as _;
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Who else owns this folder or may write to it.
    pub fn foreign(&self) -> io::Result<Option<Foreign>> {
        Ok(foreign(&fstat(&self.descriptor)?))
    }

    /// Who else owns a file of this folder or may write to it.
    pub fn foreign_file(&self, name: impl AsRef<Path>) -> io::Result<Option<Foreign>> {
        let name = name::checked(name.as_ref())?;
        Ok(foreign(&statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn not_a(&self, name: &OsStr, expected: &str) -> io::Error {
        let what =
            fs::symlink_metadata(self.path.join(name)).map_or("something else", |it| read::name_of(it.file_type()));
        read::refused(format!("is {what}, not a {expected}"))
    }
}

/// Who but those that are trusted owns this or may write to it.
fn foreign(stat: &rustix::fs::Stat) -> Option<Foreign> {
    if !trusted_users().contains(&stat.st_uid) {
        return Some(Foreign::Owner(stat.st_uid));
    }
    // The mode of a link means nothing.
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    (!is_link && stat.st_mode & 0o002 != 0 && stat.st_mode & 0o1000 == 0)
        .then_some(Foreign::Writable(stat.st_mode & 0o7777))
}

/// A file under way. It has a name that nobody can guess, and goes with this value unless it was committed.
#[derive(Debug)]
pub struct Draft {
    folder: OwnedFd,
    name: OsString,
    temporary: Option<OsString>,
    file: File,
}

impl Draft {
    /// The file, for what needs one: its length, its permissions.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name. Where that fails, what had the name before is untouched.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(temporary) = &self.temporary {
            renameat(&self.folder, temporary, &self.folder, &self.name)?;
        }
        self.temporary = None;
        // The name lives in the folder. Not every file system can sync one, and the data are safe already.
        let _ = rustix::fs::fsync(&self.folder);
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // The error that brought us here is the one to report; a leftover that cannot be removed adds nothing to it.
            let _ = unlinkat(&self.folder, temporary, AtFlags::empty());
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_a_foreign_folder_led_out_of_it() {
        let top = tempfile::tempdir().unwrap();
        let (inside, outside) = (top.path().join("run"), top.path().join("outside"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), b"secret").unwrap();
        symlink(outside.join("secret"), inside.join("report.json")).unwrap();
        symlink(&outside, inside.join("cells")).unwrap();
        let folder = Folder::open(&inside).unwrap();

        let is_link = |error: io::Error| assert!(error.to_string().starts_with("is a symbolic link, "), "{error}");
        is_link(folder.read("report.json", Kind::Record).unwrap_err());
        is_link(folder.append("report.json").unwrap_err());
        is_link(folder.sub("cells").unwrap_err());
        is_link(folder.make_sub("cells").unwrap_err());
        assert_eq!(folder.create_new("report.json").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        for name in ["../outside/secret", "cells/secret", "/etc/passwd", ".."] {
            assert!(folder.read(name, Kind::Record).is_err(), "{name}");
            assert!(folder.replace(name, b"x").is_err(), "{name}");
            assert!(!folder.exists(name), "{name}");
        }

        // A link in the way of a write is replaced; what it named is as it was.
        folder.replace("report.json", b"ours").unwrap();
        assert_eq!(folder.read("report.json", Kind::Record).unwrap(), b"ours");
        assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
        assert_eq!(folder.names().unwrap(), ["cells", "report.json"], "a draft was left");
    }

    #[test]
    fn the_folder_was_exchanged_under_way() {
        let top = tempfile::tempdir().unwrap();
        let (run, other) = (top.path().join("run"), top.path().join("other"));
        fs::create_dir(&other).unwrap();
        let folder = Folder::make(&run).unwrap();
        fs::rename(&run, top.path().join("moved")).unwrap();
        symlink(&other, &run).unwrap();
        folder.replace("a", b"1").unwrap();
        assert!(top.path().join("moved/a").exists());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    }

    #[test]
    fn a_draft_that_is_given_up_leaves_nothing() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::open(top.path()).unwrap();
        folder.replace("a", b"old").unwrap();
        let mut draft = folder.draft("a").unwrap();
        draft.write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(folder.read("a", Kind::Record).unwrap(), b"old");
        // A folder of that name: the rename fails after the write.
        folder.make_sub("taken").unwrap();
        folder.replace("taken", b"x").unwrap_err();
        assert_eq!(folder.names().unwrap(), ["a", "taken"]);
    }

    #[test]
    fn a_folder_that_everybody_may_write_is_foreign() {
        use std::os::unix::fs::PermissionsExt as _;
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::open(top.path()).unwrap();
        for (mode, foreign) in [(0o700, None), (0o777, Some(Foreign::Writable(0o777))), (0o1777, None), (0o775, None)] {
            fs::set_permissions(top.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(folder.foreign().unwrap(), foreign, "{mode:o}");
        }
        if rustix::process::geteuid().is_root() {
            folder.replace("a", b"").unwrap();
            std::os::unix::fs::chown(top.path().join("a"), Some(65534), None).unwrap();
            assert_eq!(folder.foreign_file("a").unwrap(), Some(Foreign::Owner(65534)));
        }
    }
}
