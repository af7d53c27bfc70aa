//! Files as memory.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;
use prony_files::Kind;
use prost::bytes::Bytes;

/// A whole file as bytes that are read from the disk when they are looked at, and given back when they are dropped.
pub fn map_file(path: &Path) -> io::Result<Bytes> {
    map(&prony_files::open(path, Kind::Model)?)
}

/// The same of an open file.
#[expect(unsafe_code, reason = "a file as memory, so that a large engine is never held twice")]
pub(crate) fn map(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is private and read-only. If someone cuts the file short meanwhile, looking at what is gone
    // raises SIGBUS: that ends the process, it does not make it compute nonsense.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
