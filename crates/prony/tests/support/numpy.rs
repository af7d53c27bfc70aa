//! numpy's files by hand, so that what Prony reads and writes is not checked by itself.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

/// An .npy file of version 1.0.
pub(crate) fn npy<const N: usize, T: Copy>(
    descr: &str,
    shape: &[usize],
    values: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> Vec<u8> {
    let mut file = header(descr, false, shape);
    values.iter().for_each(|&x| file.extend(bytes(x)));
    file
}

/// The part before the values.
pub(crate) fn header(descr: &str, fortran: bool, shape: &[usize]) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let fortran = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({shape}), }}");
    header.push_str(&" ".repeat(64 - (10 + header.len() + 1) % 64));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes
}

/// An .npz file of such arrays, deflated as `numpy.savez_compressed` does it.
pub(crate) fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// The arrays of an .npz file.
pub(crate) fn read_npz(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(fs::File::open(path).unwrap()).unwrap();
    let count = archive.len();
    let entry = |i| {
        let mut entry = archive.by_index(i).unwrap();
        let mut bytes = Vec::new();
        std::io::copy(&mut entry, &mut bytes).unwrap();
        (entry.name().unwrap().strip_suffix(".npy").unwrap().to_owned(), bytes)
    };
    (0..count).map(entry).collect()
}

/// Type, shape as written, and the bytes of the values.
pub(crate) fn parse(file: &[u8]) -> (String, String, &[u8]) {
    assert!(file.starts_with(b"\x93NUMPY\x01\x00"));
    let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    assert_eq!(end % 64, 0, "numpy aligns the values");
    let header = std::str::from_utf8(&file[10..end]).unwrap();
    assert!(header.contains("'fortran_order': False") && header.ends_with('\n'), "{header}");
    let between = |a: &str, b: &str| header.split_once(a).unwrap().1.split_once(b).unwrap().0.to_owned();
    (between("'descr': '", "'"), between("'shape': (", ")"), &file[end..])
}

/// 32-bit floats of an .npy file, with the shape as written.
pub(crate) fn floats(file: &[u8]) -> (String, Vec<f32>) {
    let (descr, shape, bytes) = parse(file);
    assert_eq!(descr, "<f4");
    (shape, bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect())
}
