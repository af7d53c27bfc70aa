//! The header of a file, read before anything opens it: a text file, a library for another machine and a program are
//! told apart here, in the parent, at no risk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;

use prony_files::Kind;

/// Bytes of the header of a 64-bit ELF file.
const HEADER: usize = 64;
/// Bytes of an entry of its program header table.
const PROGRAM_HEADER: usize = 56;
/// More of anything than this is no library but damage.
const SENSIBLE: usize = 1 << 20;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Whether a file is a shared library for this machine; why not.
pub(super) fn check_library(path: &Path) -> Result<(), String> {
    let header = header(path, "a library")?;
    check_machine(&header)?;
    match u16_at(&header, 16) {
        3 => Ok(()),
        1 => Err("an object file, not a shared library".to_owned()),
        2 => Err("a program, not a shared library".to_owned()),
        other => Err(format!("not a shared library (ELF type {other})")),
    }
}

/// Whether a file is a program for this machine, or a script; why not.
pub(super) fn check_program(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(&error))?;
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("may not be executed; chmod +x it".to_owned());
    }
    if !metadata.is_file() {
        return Err("not a file, let alone a program".to_owned());
    }
    let mut start = [0; 256];
    let file = prony_files::open(path, Kind::Library).map_err(|error| unreadable(&error))?;
    let length = file.read_at(&mut start, 0).map_err(|error| unreadable(&error))?;
    match start[..length].strip_prefix(b"#!") {
        // The kernel takes a relative interpreter from the current folder.
        Some(line) if line.trim_ascii_start().starts_with(b"/") => Ok(()),
        Some(_) => Err("a script whose first line names no absolute path".to_owned()),
        None => check_machine(&header(path, "a program")?),
    }
}

fn header(path: &Path, what: &str) -> Result<[u8; HEADER], String> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(format!("not a file, let alone {what}"));
    }
    if metadata.len() == 0 {
        return Err(format!("an empty file, not {what}"));
    }
    let file = prony_files::open(path, Kind::Library).map_err(|error| unreadable(&error))?;
    let mut header = [0; HEADER];
    let mut length = 0;
    while length < HEADER {
        match file.read_at(&mut header[length..], length as u64).map_err(|error| unreadable(&error))? {
            0 => break,
            more => length += more,
        }
    }
    if !header.starts_with(b"\x7fELF") {
        let text = header[..length].iter().all(|&byte| byte >= 0x20 || byte.is_ascii_whitespace());
        return Err(if text { format!("a text file, not {what}") } else { format!("not an ELF file, so not {what}") });
    }
    if length < HEADER {
        return Err(format!("cut off after {length} bytes"));
    }
    Ok(header)
}

fn check_machine(header: &[u8; HEADER]) -> Result<(), String> {
    if header[4] != 2 {
        return Err("a 32-bit file, Prony is 64-bit".to_owned());
    }
    let here = std::env::consts::ARCH;
    let there = match (header[5], u16_at(header, 18)) {
        (1, 62) => "x86_64".to_owned(),
        (1, 183) => "aarch64".to_owned(),
        (1, 243) => "riscv64".to_owned(),
        (1, 21) => "powerpc64le".to_owned(),
        (1, other) => format!("another processor (ELF machine {other})"),
        _ => "a big-endian processor".to_owned(),
    };
    if there == here { Ok(()) } else { Err(format!("built for {there}, this machine is {here}")) }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

/// What a library asks the loader for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Sonames of the libraries it needs.
    pub(super) needed: Vec<String>,
    /// Folders where it wants them looked for, `$ORIGIN` being its own and an empty one the current folder.
    pub(super) folders: Vec<String>,
}

/// Reads what a library needs, without opening it as one. `None` where its tables make no sense.
pub(super) fn needs(path: &Path) -> Option<Needs> {
    let header = header(path, "a library").ok()?;
    check_machine(&header).ok()?;
    let file = prony_files::open(path, Kind::Library).ok()?;
    let count = usize::from(u16_at(&header, 56));
    let table = read(&file, u64_at(&header, 32), count * PROGRAM_HEADER)?;
    let segments: Vec<&[u8]> = table.chunks_exact(PROGRAM_HEADER).collect();
    let dynamic = segments.iter().find(|segment| u32_at(segment, 0) == PT_DYNAMIC)?;
    let entries = read(&file, u64_at(dynamic, 8), usize::try_from(u64_at(dynamic, 32)).ok()?)?;
    let entries: Vec<(u64, u64)> =
        entries.chunks_exact(16).map(|entry| (u64_at(entry, 0), u64_at(entry, 8))).take_while(|e| e.0 != 0).collect();
    let strings = entries.iter().find(|entry| entry.0 == DT_STRTAB)?.1;
    // The table's address is one in memory; the segment that holds it says where that is in the file.
    let strings = segments.iter().filter(|segment| u32_at(segment, 0) == PT_LOAD).find_map(|segment| {
        let (offset, address, size) = (u64_at(segment, 8), u64_at(segment, 16), u64_at(segment, 32));
        let inside = strings.checked_sub(address).filter(|&inside| inside < size)?;
        offset.checked_add(inside)
    })?;
    let text = |offset: u64| string(&file, strings.checked_add(offset)?);
    let all = |tag: u64| entries.iter().filter(move |entry| entry.0 == tag).filter_map(|entry| text(entry.1));
    let lists = all(DT_RUNPATH).chain(all(DT_RPATH)).filter(|list| !list.is_empty());
    let folders = lists.flat_map(|list| list.split(':').map(str::to_owned).collect::<Vec<_>>());
    Some(Needs { needed: all(DT_NEEDED).collect(), folders: folders.collect() })
}

fn read(file: &File, offset: u64, length: usize) -> Option<Vec<u8>> {
    if length > SENSIBLE {
        return None;
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

/// A string that ends with a zero.
fn string(file: &File, offset: u64) -> Option<String> {
    let mut bytes = [0; 1024];
    let length = file.read_at(&mut bytes, offset).ok()?;
    let end = bytes[..length].iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
