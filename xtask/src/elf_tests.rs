//! Files made here byte by byte, and the test's own executable.

use super::*;

/// A minimal ELF file that needs the given versions: header, the list, its names, three section headers.
pub(crate) fn file(machine: u16, needs: &[(&str, &[&str])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut intern = |name: &str| {
        let offset = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        offset
    };
    let mut list: Vec<u8> = Vec::new();
    for (index, (library, versions)) in needs.iter().enumerate() {
        let last = index + 1 == needs.len();
        list.extend(1u16.to_le_bytes());
        list.extend((versions.len() as u16).to_le_bytes());
        list.extend(intern(library).to_le_bytes());
        list.extend(16u32.to_le_bytes());
        list.extend((if last { 0 } else { 16 + 16 * versions.len() as u32 }).to_le_bytes());
        for (index, version) in versions.iter().enumerate() {
            let next: u32 = if index + 1 == versions.len() { 0 } else { 16 };
            list.extend([0; 8]);
            list.extend(intern(version).to_le_bytes());
            list.extend(next.to_le_bytes());
        }
    }
    let (list_at, names_at) = (64, 64 + list.len());
    let headers_at = names_at + names.len();
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(3u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.resize(40, 0);
    bytes.extend((headers_at as u64).to_le_bytes());
    bytes.resize(58, 0);
    bytes.extend(64u16.to_le_bytes());
    bytes.extend(3u16.to_le_bytes());
    bytes.resize(64, 0);
    bytes.extend(&list);
    bytes.extend(&names);
    for (kind, at, size, link, info) in [
        (0, 0, 0, 0, 0),
        (SHT_GNU_VERNEED, list_at, list.len(), 2u32, needs.len() as u32),
        (3, names_at, names.len(), 0, 0),
    ] {
        let start = bytes.len();
        bytes.extend([0; 4]);
        bytes.extend(kind.to_le_bytes());
        bytes.resize(start + 24, 0);
        bytes.extend((at as u64).to_le_bytes());
        bytes.extend((size as u64).to_le_bytes());
        bytes.extend(link.to_le_bytes());
        bytes.extend(info.to_le_bytes());
        bytes.resize(start + SECTION_HEADER, 0);
    }
    bytes
}

const TWO_LIBRARIES: &[(&str, &[&str])] =
    &[("libm.so.6", &["GLIBC_2.29"]), ("libc.so.6", &["GLIBC_2.17", "GLIBC_2.31", "GLIBC_2.18"])];

#[test]
fn libraries_and_versions_are_read_in_order() {
    let needs = read(&file(183, TWO_LIBRARIES)).unwrap();
    assert_eq!(needs.machine, 183);
    let read: Vec<(&str, &str)> = needs.versions.iter().map(|n| (n.library.as_str(), n.version.as_str())).collect();
    let c = "libc.so.6";
    assert_eq!(read, [("libm.so.6", "GLIBC_2.29"), (c, "GLIBC_2.17"), (c, "GLIBC_2.31"), (c, "GLIBC_2.18")]);
}

#[test]
fn a_file_that_needs_nothing_has_an_empty_list() {
    assert_eq!(read(&file(62, &[])).unwrap(), Needs { machine: 62, versions: Vec::new() });
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let whole = file(62, TWO_LIBRARIES);
    // The last header's unused tail is not looked at.
    for length in 0..whole.len() - SECTION_HEADER {
        assert!(read(&whole[..length]).is_err(), "{length} of {}", whole.len());
    }
}

#[test]
fn no_byte_turned_makes_it_panic() {
    let whole = file(62, TWO_LIBRARIES);
    let good = read(&whole).unwrap();
    let mut noticed = 0;
    for index in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[index] = value;
            noticed += usize::from(read(&bytes).map_or(true, |needs| needs != good));
        }
    }
    assert!(noticed > whole.len() / 4, "{noticed}");
}

#[test]
fn other_files_are_refused_by_kind() {
    let refusal = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(refusal(b"#!/bin/sh\n"), "not an ELF file");
    let mut other = file(62, TWO_LIBRARIES);
    other[4] = 1;
    assert_eq!(refusal(&other), "not a 64-bit little-endian ELF file");
    let mut bare = file(62, TWO_LIBRARIES);
    bare[60..62].fill(0);
    assert!(refusal(&bare).contains("no section headers"));
}

#[test]
fn its_own_executable_needs_libc() {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let needs = read(&bytes).unwrap();
    assert_eq!(needs.machine, if cfg!(target_arch = "aarch64") { 183 } else { 62 });
    let from_libc = |need: &VersionNeed| need.library == "libc.so.6" && need.version.starts_with("GLIBC_2.");
    assert!(needs.versions.iter().any(from_libc), "{:?}", needs.versions);
}
