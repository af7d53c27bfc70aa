//! Width and height of an image as it is shown, from the first bytes of its file: a data set has thousands.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use image::metadata::Orientation;
use image::{ImageDecoder as _, ImageReader};
use prony_files::Kind;

/// Width and height, with the camera's orientation applied as decoding does; or what is wrong with the file.
pub(super) fn size(path: &Path) -> Result<(u32, u32), String> {
    let mut file =
        BufReader::new(prony_files::open(path, Kind::Image).map_err(|e| format!("cannot open the image: {e}"))?);
    let start = file.fill_buf().map_err(|e| format!("cannot read the image: {e}"))?;
    if start.is_empty() {
        return Err("is empty".to_owned());
    }
    if start.starts_with(&[0xFF, 0xD8]) {
        let found = jpeg(&mut file);
        return found.map_err(|e| format!("cannot be decoded: {e}"));
    }
    let other = |e: &dyn std::fmt::Display| format!("cannot be decoded: {e}");
    let reader = ImageReader::new(file).with_guessed_format().map_err(|e| other(&e))?;
    let mut decoder = reader.into_decoder().map_err(|e| other(&e))?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok(turned(decoder.dimensions(), orientation))
}

/// Walks over the segments of a JPEG to the one with its size.
fn jpeg(file: &mut BufReader<File>) -> io::Result<(u32, u32)> {
    file.seek_relative(2)?;
    let mut orientation = Orientation::NoTransforms;
    loop {
        let marker = marker(file)?;
        let mut length = [0; 2];
        file.read_exact(&mut length)?;
        let length = u64::from(u16::from_be_bytes(length)).saturating_sub(2);
        match marker {
            // Frames, but not the tables and the arithmetic conditioning that lie between them.
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                let mut frame = [0; 5];
                file.read_exact(&mut frame)?;
                let [_, h1, h0, w1, w0] = frame;
                let (width, height) = (u16::from_be_bytes([w1, w0]), u16::from_be_bytes([h1, h0]));
                if width == 0 || height == 0 {
                    return Err(io::Error::other("its header has no size"));
                }
                return Ok(turned((u32::from(width), u32::from(height)), orientation));
            }
            0xE1 => {
                let mut segment = Vec::new();
                file.take(length).read_to_end(&mut segment)?;
                let exif = segment.strip_prefix(b"Exif\0\0");
                orientation = exif.and_then(Orientation::from_exif_chunk).unwrap_or(orientation);
            }
            0xDA | 0xD9 => return Err(io::Error::other("its header has no size")),
            _ => {
                file.seek(SeekFrom::Current(length as i64))?;
            }
        }
    }
}

/// The next marker; any number of 0xFF may come before it.
fn marker(file: &mut BufReader<File>) -> io::Result<u8> {
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    if byte[0] != 0xFF {
        return Err(io::Error::other("its header is damaged"));
    }
    while byte[0] == 0xFF {
        file.read_exact(&mut byte)?;
    }
    Ok(byte[0])
}

fn turned((width, height): (u32, u32), orientation: Orientation) -> (u32, u32) {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    match orientation {
        Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH => (height, width),
        _ => (width, height),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder;
    use image::{GrayImage, RgbImage};
    use std::fs;

    #[test]
    fn the_header_says_what_decoding_says() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.jpg", "a.png", "a.bmp"] {
            let path = dir.path().join(name);
            RgbImage::new(37, 21).save(&path).unwrap();
            assert_eq!(size(&path).unwrap(), (37, 21), "{name}");
        }
        let plain = fs::read(dir.path().join("a.jpg")).unwrap();
        // Orientation 6: to be turned by 90 degrees. It comes after a segment with a thumbnail's worth of other things.
        let exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let mut turned = plain[..2].to_vec();
        turned.extend([0xFF, 0xE2, 0x80, 0x02]);
        turned.extend([0xAB; 0x8000]);
        turned.extend([0xFF, 0xFF, 0xE1]);
        turned.extend((exif.len() as u16 + 2).to_be_bytes());
        turned.extend(exif);
        turned.extend(&plain[2..]);
        let path = dir.path().join("turned.jpg");
        fs::write(&path, turned).unwrap();
        assert_eq!(size(&path).unwrap(), (21, 37));
        let image = folder::load(&path).unwrap();
        assert_eq!((image.width(), image.height()), (21, 37));
    }

    #[test]
    fn a_broken_header_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jpg");
        GrayImage::new(8, 8).save(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        let cases: [(&[u8], &str); 5] = [
            (b"", "is empty"),
            (&whole[..12], "cannot be decoded"),
            (b"\xFF\xD8\xFF\xDA\0\x02", "its header has no size"),
            (b"\xFF\xD8hello", "its header is damaged"),
            (b"not an image", "cannot be decoded"),
        ];
        for (bytes, expected) in cases {
            fs::write(&path, bytes).unwrap();
            let error = size(&path).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(size(&dir.path().join("nowhere.png")).unwrap_err().contains("cannot open the image"));
    }
}
