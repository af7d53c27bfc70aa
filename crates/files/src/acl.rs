//! POSIX access control lists, as the kernel hands them out.

use std::io;
use std::path::Path;

use rustix::io::Errno;

const ATTRIBUTE: &str = "system.posix_acl_access";
const VERSION: u32 = 2;
const WRITE: u16 = 2;
/// Kinds of entries.
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;

/// Someone beside the owner whom a list lets write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    User(u32),
    /// The group that the file belongs to.
    OwningGroup,
    Group(u32),
}

/// Those whom the list of a file lets write; `None` where it has no list.
pub(crate) fn writers(path: &Path) -> io::Result<Option<Vec<Writer>>> {
    // A list has 8 bytes an entry; one that is longer than this is an error.
    let mut bytes = [0; 8192];
    match rustix::fs::getxattr(path, ATTRIBUTE, &mut bytes[..]) {
        Ok(length) => parse(&bytes[..length]).map(Some),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn parse(bytes: &[u8]) -> io::Result<Vec<Writer>> {
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "its form is not known");
    let (version, entries) = bytes.split_first_chunk::<4>().ok_or_else(odd)?;
    let (entries, rest) = entries.as_chunks::<8>();
    if u32::from_le_bytes(*version) != VERSION || !rest.is_empty() {
        return Err(odd());
    }
    let fields = |entry: &[u8; 8]| {
        let [a, b, c, d, id @ ..] = *entry;
        (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]), u32::from_le_bytes(id))
    };
    let entries: Vec<(u16, u16, u32)> = entries.iter().map(fields).collect();
    let mask = entries.iter().find(|entry| entry.0 == MASK).map_or(u16::MAX, |entry| entry.1);
    let writing = entries.iter().filter(|entry| entry.1 & mask & WRITE != 0);
    Ok(writing
        .filter_map(|&(tag, _, id)| match tag {
            USER => Some(Writer::User(id)),
            GROUP_OBJ => Some(Writer::OwningGroup),
            GROUP => Some(Writer::Group(id)),
            _ => None,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(permissions.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_list_names_its_writers_within_its_mask() {
        let none = u32::MAX;
        let entries = [(1, 7, none), (USER, 7, 1001), (USER, 5, 1002), (GROUP_OBJ, 6, none), (GROUP, 2, 44)];
        let all = [Writer::User(1001), Writer::OwningGroup, Writer::Group(44)];
        assert_eq!(parse(&list(&[&entries[..], &[(MASK, 7, none), (0x20, 5, none)]].concat())).unwrap(), all);
        assert_eq!(parse(&list(&[&entries[..], &[(MASK, 5, none)]].concat())).unwrap(), []);
        for damaged in [&b""[..], b"\x02\0\0", b"\x03\0\0\0", b"\x02\0\0\0\x01"] {
            assert!(parse(damaged).is_err(), "{damaged:?}");
        }
    }
}
