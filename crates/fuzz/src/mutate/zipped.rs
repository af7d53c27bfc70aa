//! Containers: their records are found by their marks and changed field by field, or a member is and all is packed anew.

use std::io::{Cursor, Read as _, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::random::Random;

/// Where a number of a record is: offset and width.
type Place = (usize, usize);

/// The kinds of records, each with its mark and where its numbers are.
const RECORDS: [(&[u8], &[Place]); 5] = [
    (b"PK\x01\x02", &[(8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4)]),
    (b"PK\x03\x04", &[(6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)]),
    (b"PK\x05\x06", &[(8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]),
    (b"PK\x06\x06", &[(4, 8), (24, 8), (32, 8), (40, 8), (48, 8)]),
    (b"PK\x06\x07", &[(4, 4), (8, 8), (16, 4)]),
];
/// Most that a member unfolds to before it is changed.
const UNFOLDED: u64 = 1 << 17;

/// Changes a field of a record, or puts a 64-bit directory behind the members.
pub(super) fn mutate(mut input: Vec<u8>, random: &mut Random) -> Vec<u8> {
    if random.once_in(12) {
        return with_wide_directory(input, random);
    }
    let (mark, fields) = RECORDS[random.below(RECORDS.len())];
    let places: Vec<usize> = (0..input.len()).filter(|&at| input[at..].starts_with(mark)).collect();
    if let (Some(&at), Some(&(offset, width))) = (random.pick(&places), random.pick(fields)) {
        let number = if random.once_in(3) { random.below(input.len() * 2) as u64 } else { random.edge() };
        for (place, byte) in input.iter_mut().skip(at + offset).zip(number.to_le_bytes()).take(width) {
            *place = byte;
        }
    }
    input
}

/// A record of 64-bit sizes and its locator, before the end of the directory.
fn with_wide_directory(mut input: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let Some(end) = (0..input.len()).rev().find(|&at| input[at..].starts_with(b"PK\x05\x06")) else { return input };
    let mut record = b"PK\x06\x06".to_vec();
    record.resize(56, 0);
    let start = (0..end).find(|&at| input[at..].starts_with(b"PK\x01\x02")).unwrap_or(end);
    let sizes = [random.below(8) as u64, (end - start) as u64, start as u64];
    for (place, size) in [32, 40, 48].into_iter().zip(sizes) {
        let size = if random.once_in(4) { random.edge() } else { size };
        record[place..place + 8].copy_from_slice(&size.to_le_bytes());
    }
    record.extend(b"PK\x06\x07\0\0\0\0");
    record.extend((end as u64).to_le_bytes());
    record.extend([1, 0, 0, 0]);
    input.splice(end..end, record);
    input
}

/// Changes what is in a member whose name ends so, and packs everything again.
pub(super) fn mutate_member(
    input: &[u8],
    ending: &str,
    random: &mut Random,
    change: impl Fn(&[u8], &mut Random) -> Vec<u8>,
) -> Vec<u8> {
    repacked(input, ending, random, change).unwrap_or_else(|| mutate(input.to_vec(), random))
}

fn repacked(
    input: &[u8],
    ending: &str,
    random: &mut Random,
    change: impl Fn(&[u8], &mut Random) -> Vec<u8>,
) -> Option<Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(input)).ok()?;
    let mut packed = ZipWriter::new(Cursor::new(Vec::new()));
    let method = if random.once_in(3) { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options = SimpleFileOptions::default().compression_method(method);
    for at in 0..archive.len().min(16) {
        let entry = archive.by_index(at).ok()?;
        let name = entry.name().ok()?.into_owned();
        let mut bytes = Vec::new();
        entry.take(UNFOLDED).read_to_end(&mut bytes).ok()?;
        if name.ends_with(ending) {
            bytes = change(&bytes, random);
        }
        packed.start_file(name, options).ok()?;
        packed.write_all(&bytes).ok()?;
    }
    Some(packed.finish().ok()?.into_inner())
}
