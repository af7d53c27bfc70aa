//! The zip container of torch 1.6 and later. The directory is read here and not by a library, because its size must be
//! limited before anything is allocated for it, and because members that are stored are then parts of the file.

use std::collections::HashMap;
use std::io::Read as _;
use std::ops::Range;

use prost::bytes::Bytes;

use super::{PtError, plain};

/// Bytes that a directory may have. The largest checkpoints have a few thousand members of about 100 bytes each.
const DIRECTORY: u64 = 8 << 20;
/// Bytes that a compressed member may unfold to. torch compresses nothing; this is for files that were packed again.
const INFLATED: u64 = 64 << 20;
/// The record that ends a zip, without its comment.
const END: usize = 22;
/// What the pickle is called below the root folder.
const PICKLE: &str = "data.pkl";
/// The first bytes of what torch wrote before 1.6: a pickled magic number.
const LEGACY: &[u8] = &[0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46];

/// Where a member is.
#[derive(Clone, Debug)]
struct Member {
    header: u64,
    packed: u64,
    size: u64,
    method: u16,
    encrypted: bool,
}

/// A checkpoint's container: members by their names below the root folder.
#[derive(Clone, Debug)]
pub struct Archive {
    bytes: Bytes,
    root: String,
    members: HashMap<String, Member>,
}

fn bad<T>(reason: impl Into<String>) -> Result<T, PtError> {
    Err(PtError::Container(reason.into()))
}

/// Little-endian numbers of a record; what is not there is an error.
struct Record<'a>(&'a [u8]);

impl Record<'_> {
    fn number<const N: usize>(&self, at: usize) -> Result<u64, PtError> {
        let Some(bytes) = self.0.get(at..at + N) else { return bad("it is cut short: its zip directory is not whole") };
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn u16(&self, at: usize) -> Result<u64, PtError> {
        self.number::<2>(at)
    }

    fn u32(&self, at: usize) -> Result<u64, PtError> {
        self.number::<4>(at)
    }

    fn u64(&self, at: usize) -> Result<u64, PtError> {
        self.number::<8>(at)
    }
}

impl Archive {
    /// Reads the directory of a container.
    pub fn read(bytes: Bytes) -> Result<Archive, PtError> {
        if bytes.starts_with(LEGACY) {
            return bad("it was saved in the format of torch before 1.6, which is not supported; \
                load it with torch and save it again");
        }
        if !bytes.starts_with(b"PK\x03\x04") {
            return bad("it does not start as the zip file that torch.save writes");
        }
        let (range, count) = directory(&bytes)?;
        let all = members(&bytes[range], count)?;
        let outside = |member: &Member| member.header.saturating_add(member.packed) > bytes.len() as u64;
        if let Some((name, member)) = all.iter().find(|(_, member)| outside(member)) {
            return bad(format!("it is cut short: its member {} claims {} bytes", plain(name), member.packed));
        }
        let torch_script = all.iter().any(|(name, _)| name.ends_with("/constants.pkl") || name.contains("/code/"));
        if torch_script {
            return bad("it is a TorchScript program, not a checkpoint; give the .pt that training wrote");
        }
        let suffix = format!("/{PICKLE}");
        let roots: Vec<&str> = all.iter().filter_map(|(name, _)| name.strip_suffix(&suffix)).collect();
        let root = match roots[..] {
            [root] if !root.contains('/') => root.to_owned(),
            [] => return bad(format!("it is a zip file without the {PICKLE} of a checkpoint")),
            _ => return bad(format!("it has {} members called {PICKLE}, where a checkpoint has one", roots.len())),
        };
        let below = |(name, member): (String, Member)| {
            let name = name.strip_prefix(&root)?.strip_prefix('/')?.to_owned();
            Some((name, member))
        };
        let members = all.into_iter().filter_map(below).collect();
        Ok(Archive { bytes, root, members })
    }

    /// The root folder, which is the file's stem when it was saved.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Bytes of the file.
    #[expect(clippy::len_without_is_empty, reason = "an archive is never empty: it has a pickle")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many members it has.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Size of a member as the directory says; a stored one cannot be larger than the file.
    pub fn size(&self, name: &str) -> Option<u64> {
        self.members.get(name).map(|member| member.size)
    }

    /// A short text, such as the version of the container.
    pub fn text(&self, name: &str) -> Option<String> {
        const SHORT: u64 = 4096;
        let bytes = self.size(name).filter(|size| *size <= SHORT).and_then(|_| self.member(name).ok())?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The bytes of a member: a part of the file where it is stored, unfolded where it is compressed.
    pub fn member(&self, name: &str) -> Result<Bytes, PtError> {
        let Some(member) = self.members.get(name) else { return bad(format!("it has no member {name}")) };
        if member.encrypted {
            return bad(format!("its member {name} is encrypted"));
        }
        let start = usize::try_from(member.header).unwrap_or(usize::MAX);
        let Some(local) = self.bytes.get(start..).filter(|local| local.starts_with(b"PK\x03\x04")) else {
            return bad(format!("it is damaged: its member {name} is not where the directory says"));
        };
        let record = Record(local);
        let skip = 30 + record.u16(26)? + record.u16(28)?;
        let end = skip.checked_add(member.packed).and_then(|end| usize::try_from(end).ok());
        let Some(end) = end.filter(|end| *end <= local.len()) else {
            return bad(format!("it is cut short: its member {name} claims {} bytes", member.packed));
        };
        match member.method {
            0 if member.packed == member.size => Ok(self.bytes.slice(start + skip as usize..start + end)),
            0 => bad(format!("its member {name} is stored with two different sizes")),
            8 => inflate(name, local, member),
            method => bad(format!("its member {name} is compressed by method {method}, which torch never uses")),
        }
    }
}

/// Unfolds a member, never further than the directory says.
fn inflate(name: &str, mut local: &[u8], member: &Member) -> Result<Bytes, PtError> {
    if member.size > INFLATED {
        return bad(format!("its compressed member {name} claims {} bytes, and {INFLATED} are allowed", member.size));
    }
    let damaged = |reason: &dyn std::fmt::Display| PtError::Container(format!("its member {name}: {reason}"));
    let stream = zip::read::read_zipfile_from_stream(&mut local).map_err(|error| damaged(&error))?;
    let stream = stream.ok_or_else(|| damaged(&"is not there"))?;
    let mut bytes = Vec::new();
    stream.take(member.size + 1).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
    match bytes.len() as u64 == member.size {
        true => Ok(bytes.into()),
        false => Err(damaged(&format!("unfolds to another size than the {} bytes it claims", member.size))),
    }
}

/// Where the directory is, and how many members it lists.
fn directory(bytes: &[u8]) -> Result<(Range<usize>, u64), PtError> {
    let tail = bytes.len().saturating_sub(END + usize::from(u16::MAX));
    let whole = |at: &usize| bytes[*at..].starts_with(b"PK\x05\x06");
    let Some(at) = (tail..(bytes.len() + 1).saturating_sub(END)).rev().find(whole) else {
        return bad("it is cut short: the end of a zip file is missing; copy it again");
    };
    let end = Record(&bytes[at..]);
    let (mut count, mut size, mut start) = (end.u16(10)?, end.u32(12)?, end.u32(16)?);
    // A 64-bit record stands before, and a locator of 20 bytes points at it.
    let locator = at.checked_sub(20).map(|at| &bytes[at..]).filter(|locator| locator.starts_with(b"PK\x06\x07"));
    if let Some(locator) = locator {
        let at = usize::try_from(Record(locator).u64(8)?).unwrap_or(usize::MAX);
        let Some(record) = bytes.get(at..).filter(|record| record.starts_with(b"PK\x06\x06")) else {
            return bad("it is damaged: its 64-bit zip directory is not where it should be");
        };
        let record = Record(record);
        (count, size, start) = (record.u64(32)?, record.u64(40)?, record.u64(48)?);
    }
    if size > DIRECTORY {
        return bad(format!("its zip directory claims {size} bytes, and {DIRECTORY} are allowed"));
    }
    match start.checked_add(size).filter(|end| *end <= at as u64) {
        Some(end) => Ok((start as usize..end as usize, count)),
        None => bad("it is cut short: its zip directory lies outside of the file"),
    }
}

/// Every member that the directory lists.
fn members(mut directory: &[u8], count: u64) -> Result<Vec<(String, Member)>, PtError> {
    let mut members = Vec::new();
    for _ in 0..count {
        if !directory.starts_with(b"PK\x01\x02") {
            return bad(format!("it is damaged: its zip directory lists {} members of {count}", members.len()));
        }
        let record = Record(directory);
        let (name, extra) = (46..46 + record.u16(28)? as usize, record.u16(30)? as usize);
        let extra = name.end..name.end + extra;
        let next = extra.end + record.u16(32)? as usize;
        let (Some(name), Some(extra), Some(rest)) = (directory.get(name), directory.get(extra), directory.get(next..))
        else {
            return bad("it is damaged: its zip directory is not whole");
        };
        let mut wide = wide(extra);
        // A field of all ones is in the extra field instead, in this order.
        let mut field = |at| record.u32(at).map(|n| if n == 0xffff_ffff { wide.next().unwrap_or(n) } else { n });
        let (size, packed, header) = (field(24)?, field(20)?, field(42)?);
        let (method, encrypted) = (record.u16(10)? as u16, record.u16(8)? & 1 == 1);
        members.push((String::from_utf8_lossy(name).into_owned(), Member { header, packed, size, method, encrypted }));
        directory = rest;
    }
    Ok(members)
}

/// The 64-bit numbers of a member's extra field.
fn wide(mut extra: &[u8]) -> impl Iterator<Item = u64> + use<> {
    let mut numbers = Vec::new();
    while let [a, b, c, d, rest @ ..] = extra {
        let (kind, len) = (u16::from_le_bytes([*a, *b]), usize::from(u16::from_le_bytes([*c, *d])));
        let Some((field, after)) = rest.split_at_checked(len) else { break };
        if kind == 1 {
            numbers.extend(field.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)));
        }
        extra = after;
    }
    numbers.into_iter()
}
