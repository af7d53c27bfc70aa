//! Reading: regular files only, opened without blocking, up to the cap of their kind, before a deadline.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::Kind;

/// How long a file may take whatever its size; every further MiB is allowed a second more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Opens a regular file, or a link to one, that is no larger than its kind allows.
pub fn open(path: &Path, kind: Kind) -> io::Result<File> {
    open_if(path, kind, false)
}

/// Reads a whole file; see [`open`].
pub fn read(path: &Path, kind: Kind) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_into(path, kind, &mut bytes)?;
    Ok(bytes)
}

/// Reads the rest of a file that [`open`] opened.
pub fn read_open(file: &mut File, kind: Kind) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    all_of(file, kind, PATIENCE, &mut bytes)?;
    Ok(bytes)
}

/// Reads a whole file behind what is in `bytes`; see [`open`].
pub fn read_into(path: &Path, kind: Kind, bytes: &mut Vec<u8>) -> io::Result<()> {
    all_of(&mut open(path, kind)?, kind, PATIENCE, bytes)
}

/// Reads a whole file of text; see [`open`].
pub fn read_text(path: &Path, kind: Kind) -> io::Result<String> {
    text(read(path, kind)?)
}

/// Reads text from a file or a pipe to its end: what people write as `<(…)` or `/dev/stdin`. The cap holds for a pipe too, and one
/// that stays silent or never ends is an error after 30 seconds.
pub fn read_piped(path: &Path, kind: Kind) -> io::Result<String> {
    let mut bytes = Vec::new();
    all_of(&mut open_if(path, kind, true)?, kind, PATIENCE, &mut bytes)?;
    text(bytes)
}

pub(crate) fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("is not UTF-8 text (byte {at})"))
    })
}

fn open_if(path: &Path, kind: Kind, piped: bool) -> io::Result<File> {
    // Looked at before it is opened, because opening a device can have an effect of its own; and again afterwards, because
    // it may be another file by then.
    accept(&fs::metadata(path)?, kind, piped)?;
    let file = OpenOptions::new().read(true).custom_flags(flags().bits().cast_signed()).open(path)?;
    accept(&file.metadata()?, kind, piped)?;
    Ok(file)
}

/// A FIFO is opened without waiting for its writer, a terminal never becomes ours.
pub(crate) fn flags() -> OFlags {
    OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// Refuses what is not a regular file (or a pipe, where one is welcome) and what is too large.
pub(crate) fn accept(metadata: &Metadata, kind: Kind, piped: bool) -> io::Result<()> {
    let what = metadata.file_type();
    if what.is_fifo() && piped {
        return Ok(());
    }
    if !what.is_file() {
        return Err(refused(format!("is {}, not a regular file", name_of(what))));
    }
    if metadata.len() > kind.cap_bytes() {
        return Err(too_large(metadata.len(), kind));
    }
    Ok(())
}

/// What stands at a path, in words.
pub(crate) fn name_of(what: FileType) -> &'static str {
    if what.is_dir() {
        "a folder"
    } else if what.is_fifo() {
        "a FIFO"
    } else if what.is_socket() {
        "a socket"
    } else if what.is_char_device() {
        "a character device"
    } else if what.is_block_device() {
        "a block device"
    } else if what.is_symlink() {
        "a symbolic link"
    } else {
        "a regular file"
    }
}

pub(crate) fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

fn too_large(bytes: u64, kind: Kind) -> io::Error {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let reason = format!("is {} MiB; {kind} may have at most {} MiB", mib(bytes), mib(kind.cap_bytes()));
    io::Error::new(io::ErrorKind::FileTooLarge, reason)
}

/// Reads to the end. The size was checked when the file was opened, but a file may grow and a pipe has none.
pub(crate) fn all_of(file: &mut File, kind: Kind, patience: Duration, bytes: &mut Vec<u8>) -> io::Result<()> {
    const CHUNK: usize = 1 << 20;
    let began = Instant::now();
    let before = bytes.len();
    let expected = file.metadata().map_or(0, |metadata| metadata.len()).min(kind.cap_bytes());
    bytes.try_reserve(usize::try_from(expected).unwrap_or(usize::MAX).saturating_add(1))?;
    loop {
        let read = bytes.len() - before;
        let limit = patience + Duration::from_secs((read >> 20) as u64);
        let Some(left) = limit.checked_sub(began.elapsed()) else {
            let reason = format!("did not end within {} s ({read} bytes read)", limit.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        };
        if read as u64 > kind.cap_bytes() {
            return Err(too_large(read as u64, kind));
        }
        match (&*file).take(CHUNK as u64).read_to_end(bytes) {
            Ok(_) if bytes.len() - before == read => {
                // An end, unless this is a FIFO whose writer has not come yet.
                if read == 0 && waits_for_writer(file) {
                    std::thread::sleep(left.min(Duration::from_millis(20)));
                    continue;
                }
                return Ok(());
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
                let mut ready = [PollFd::new(&*file, PollFlags::IN)];
                // A signal ends the wait early; the clock above decides.
                let _ = poll(&mut ready, Some(&left));
            }
            Err(error) => return Err(error),
        }
    }
}

/// A FIFO that was opened without blocking reads as empty until a writer opens it; `POLLHUP` comes only once one has left.
fn waits_for_writer(file: &File) -> bool {
    if !file.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        return false;
    }
    let mut ready = [PollFd::new(file, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut ready, Some(&now)).is_ok_and(|_| !ready[0].revents().contains(PollFlags::HUP))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::thread;

    use super::*;

    pub(crate) fn fifo(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn a_link_to_dev_zero_was_read_until_memory_ran_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("/dev/zero", at("zero.jpg")).unwrap();
        fifo(&at("fifo.jpg"));
        symlink(at("fifo.jpg"), at("fifo-link.jpg")).unwrap();
        let _socket = UnixListener::bind(at("socket.jpg")).unwrap();
        fs::create_dir(at("folder.jpg")).unwrap();
        for (name, what) in [
            ("zero.jpg", "a character device"),
            ("fifo.jpg", "a FIFO"),
            ("fifo-link.jpg", "a FIFO"),
            ("socket.jpg", "a socket"),
            ("folder.jpg", "a folder"),
        ] {
            let error = read(&at(name), Kind::Image).unwrap_err().to_string();
            assert_eq!(error, format!("is {what}, not a regular file"), "{name}");
        }
        fs::write(at("a.jpg"), b"picture").unwrap();
        symlink(at("a.jpg"), at("link.jpg")).unwrap();
        assert_eq!(read(&at("link.jpg"), Kind::Image).unwrap(), b"picture");
    }

    #[test]
    fn a_sparse_file_of_a_terabyte_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        for kind in [Kind::Plan, Kind::Labels, Kind::Image, Kind::Model, Kind::Array] {
            let error = read(&path, kind).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert!(error.to_string().starts_with("is 1048576 MiB; "), "{error}");
        }
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_never_beyond_the_cap() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        fifo(&path);
        for (bytes, fits) in [(11, true), (Kind::Plan.cap_bytes(), true), (Kind::Plan.cap_bytes() + 1, false)] {
            let to = path.clone();
            let writer = thread::spawn(move || {
                // The writer comes later, and in two pieces: neither is the end.
                thread::sleep(Duration::from_millis(60));
                let mut file = OpenOptions::new().write(true).open(to).unwrap();
                let all = vec![b'x'; usize::try_from(bytes).unwrap()];
                file.write_all(&all[..5]).unwrap();
                thread::sleep(Duration::from_millis(60));
                let _ = file.write_all(&all[5..]);
            });
            let read = read_piped(&path, Kind::Plan);
            assert_eq!(read.as_ref().ok().map(|read| read.len() as u64), fits.then_some(bytes), "{read:?}");
            writer.join().unwrap();
        }
    }

    #[test]
    fn a_fifo_that_nobody_writes_to_was_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        fifo(&path);
        let short = Duration::from_millis(100);
        let mut file = open_if(&path, Kind::Plan, true).unwrap();
        let error = all_of(&mut file, Kind::Plan, short, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "nobody came: {error}");
        // Somebody came, wrote a little and fell silent.
        let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all(b"models =").unwrap();
        let error = all_of(&mut file, Kind::Plan, short, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "did not end within 0 s (8 bytes read)");
    }

    #[test]
    fn what_is_not_text_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.txt");
        fs::write(&path, b"abc\xFF").unwrap();
        assert_eq!(read_text(&path, Kind::List).unwrap_err().to_string(), "is not UTF-8 text (byte 3)");
    }
}
