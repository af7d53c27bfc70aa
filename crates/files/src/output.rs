//! Outputs that the user named. A regular file is replaced whole; a device or a pipe is written through, because a rename
//! would put a file in its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::read::{self, refused};
use crate::{Draft, Folder};

/// How many links in a row are followed: the kernel's own limit.
const MAX_LINKS: usize = 40;

/// Writes an output that the user named; see [`Output::create`].
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut output = Output::create(path)?;
    output.write_all(bytes)?;
    output.finish()
}

/// An output that the user named, under way. A regular file takes its name at [`Output::finish`] and not before.
#[derive(Debug)]
pub struct Output {
    to: To,
}

#[derive(Debug)]
enum To {
    Draft(Draft),
    Through(File),
}

impl Output {
    /// Begins an output. A regular file, or one that is not there yet, is written beside and renamed; a link is followed;
    /// character devices and pipes are written through. Folders, sockets, block devices and a FIFO that nobody reads are
    /// errors.
    pub fn create(path: &Path) -> io::Result<Output> {
        let path = followed(path)?;
        // What the shell or a parent opened for us keeps its place in the file: `-o /dev/stdout >> log` appends.
        let inherited = path.starts_with("/proc");
        let through = |options: &mut OpenOptions| Ok(Output { to: To::Through(options.open(&path)?) });
        match fs::metadata(&path) {
            Ok(at) if at.file_type().is_fifo() => Ok(Output { to: To::Through(open_fifo(&path)?) }),
            Ok(at) if at.file_type().is_char_device() => {
                through(OpenOptions::new().write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed()))
            }
            Ok(at) if !at.is_file() => {
                Err(refused(format!("is {}, which cannot be written to", read::name_of(at.file_type()))))
            }
            Ok(_) if inherited => through(OpenOptions::new().append(true)),
            Ok(at) => match draft(&path) {
                Ok(draft) => {
                    draft.file().set_permissions(at.permissions())?;
                    Ok(Output { to: To::Draft(draft) })
                }
                // A file of ours in a folder that is not: it cannot be replaced, only written.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    through(OpenOptions::new().write(true).truncate(true))
                }
                Err(error) => Err(error),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Output { to: To::Draft(draft(&path)?) }),
            Err(error) => Err(error),
        }
    }

    /// Ends the output: only now does a regular file have its new content.
    pub fn finish(self) -> io::Result<()> {
        match self.to {
            To::Draft(draft) => draft.commit(),
            To::Through(mut file) => file.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Draft(draft) => draft.write(bytes),
            To::Through(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Draft(draft) => draft.flush(),
            To::Through(file) => file.flush(),
        }
    }
}

/// Where a chain of links ends. Names in `/proc` are left as they are: those links name open files, not paths.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            let name = path.file_name().unwrap_or_default();
            return Ok(folder.canonicalize()?.join(name));
        }
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

fn draft(path: &Path) -> io::Result<Draft> {
    let Some(name) = path.file_name() else { return Err(refused("is not the name of a file".to_owned())) };
    Folder::open(path.parent().unwrap_or(Path::new("")))?.draft(name)
}

/// Opens a FIFO that somebody reads; without a reader the kernel would wait for one.
fn open_fifo(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path).map_err(|error| {
        let nobody = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        if nobody { refused("is a FIFO that nobody reads".to_owned()) } else { error }
    })?;
    // From here on a slow reader is waited for.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;
    use crate::read::tests::fifo;

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        Folder::open(folder).unwrap().names().unwrap()
    }

    #[test]
    fn a_device_was_replaced_by_a_file() {
        for device in ["/dev/null", "/dev/full"] {
            let written = write(Path::new(device), b"page");
            assert_eq!(written.is_ok(), device == "/dev/null", "{written:?}");
            assert!(fs::metadata(device).unwrap().file_type().is_char_device());
        }
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/dev/null", &link).unwrap();
        write(&link, b"page").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_fifo_was_replaced_by_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        fifo(&path);
        assert_eq!(write(&path, b"page").unwrap_err().to_string(), "is a FIFO that nobody reads");
        let from = path.clone();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            File::open(from).unwrap().read_to_string(&mut text).unwrap();
            text
        });
        // More than a pipe holds, so that the writer has to wait for the reader.
        let page = "x".repeat(1 << 20);
        while write(&path, page.as_bytes()).is_err() {
            thread::yield_now();
        }
        assert_eq!(reader.join().unwrap(), page);
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    }

    #[test]
    fn folders_and_sockets_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(write(&socket, b"x").unwrap_err().to_string(), "is a socket, which cannot be written to");
        assert_eq!(write(folder.path(), b"x").unwrap_err().to_string(), "is a folder, which cannot be written to");
        let nowhere = write(&folder.path().join("no/such/page"), b"x").unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
        let round = folder.path().join("round");
        symlink(&round, &round).unwrap();
        assert_eq!(write(&round, b"x").unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert_eq!(names(folder.path()), ["round", "socket"]);
    }

    #[test]
    fn a_link_of_the_users_was_replaced_instead_of_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("pages")).unwrap();
        fs::write(at("pages/old.html"), b"old").unwrap();
        fs::set_permissions(at("pages/old.html"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("pages/old.html", at("latest.html")).unwrap();
        symlink("latest.html", at("again.html")).unwrap();
        symlink("pages/new.html", at("dangling.html")).unwrap();
        write(&at("again.html"), b"new").unwrap();
        write(&at("dangling.html"), b"first").unwrap();
        assert_eq!(fs::read(at("pages/old.html")).unwrap(), b"new");
        assert_eq!(fs::metadata(at("pages/old.html")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read(at("pages/new.html")).unwrap(), b"first");
        for link in ["latest.html", "again.html", "dangling.html"] {
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
        }
        assert_eq!(names(&at("pages")), ["new.html", "old.html"]);
    }

    #[test]
    fn an_output_that_is_given_up_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        fs::write(&path, b"old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"half").unwrap();
        drop(output);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["page.html"]);
    }
}
