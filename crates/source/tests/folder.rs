//! Folders of images: what is listed, what is loaded, and what is said about the rest.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use image::{DynamicImage, GrayAlphaImage, GrayImage, ImageBuffer, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use prony_source::{SourceError, folder, png};
use prony_types::{Image, PixelFormat};

fn saved(dir: &Path, name: &str, image: impl Into<DynamicImage>) -> PathBuf {
    let path = dir.join(name);
    image.into().save(&path).unwrap();
    path
}

#[test]
fn images_are_listed_by_name_whatever_the_case_of_the_ending() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b.PNG", "a.jpg", "d.Jpeg", "c.bmp", "notes.txt", "png", "e.gif"] {
        fs::write(dir.path().join(name), b"").unwrap();
    }
    fs::create_dir(dir.path().join("sub.png")).unwrap();
    let names: Vec<_> = folder::images(dir.path())
        .unwrap()
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["a.jpg", "b.PNG", "c.bmp", "d.Jpeg"]);
}

#[test]
fn missing_wrong_and_empty_folders_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("nowhere");
    let error = folder::images(&missing).unwrap_err();
    assert!(matches!(error, SourceError::MissingFolder { .. }));
    assert!(error.to_string().contains("nowhere: no such folder"), "{error}");
    let file = dir.path().join("notes.txt");
    fs::write(&file, b"x").unwrap();
    assert!(matches!(folder::images(&file).unwrap_err(), SourceError::NotAFolder { .. }));
    assert!(matches!(folder::images(&file.join("below")).unwrap_err(), SourceError::Io { .. }));
    let error = folder::images(dir.path()).unwrap_err();
    assert!(matches!(error, SourceError::EmptyFolder { .. }));
    assert!(error.to_string().contains("no images"), "{error}");
}

#[test]
fn depths_and_channels_arrive_as_they_should() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let load = |path: PathBuf| folder::load(&path).unwrap();

    let rgb = RgbImage::from_fn(3, 2, |x, y| Rgb([x as u8 * 50, y as u8 * 90, 7]));
    for name in ["a.png", "a.bmp"] {
        let frame = load(saved(dir, name, rgb.clone()));
        assert_eq!((frame.width(), frame.height(), frame.format()), (3, 2, PixelFormat::Rgb8));
        assert_eq!(frame.as_u8().unwrap(), rgb.as_raw().as_slice());
    }
    let clear = load(saved(dir, "b.png", RgbaImage::from_pixel(2, 1, Rgba([9, 8, 7, 0]))));
    assert_eq!(clear.as_u8().unwrap(), [9, 8, 7, 9, 8, 7]);

    let grey = load(saved(dir, "c.png", GrayImage::from_raw(2, 1, vec![3, 200]).unwrap()));
    assert_eq!((grey.format(), grey.as_u8().unwrap()), (PixelFormat::Gray8, [3, 200].as_slice()));
    let grey = load(saved(dir, "d.png", GrayAlphaImage::from_raw(1, 1, vec![77, 0]).unwrap()));
    assert_eq!((grey.format(), grey.as_u8().unwrap()), (PixelFormat::Gray8, [77].as_slice()));

    let heat: ImageBuffer<Luma<u16>, _> = ImageBuffer::from_raw(2, 1, vec![7900_u16, 65535]).unwrap();
    let heat = load(saved(dir, "e.png", heat));
    assert_eq!((heat.format(), heat.as_u16().unwrap()), (PixelFormat::Gray16, [7900, 65535].as_slice()));

    let deep: ImageBuffer<Rgb<u16>, _> = ImageBuffer::from_raw(1, 1, vec![65535_u16, 257 * 100, 0]).unwrap();
    let deep = load(saved(dir, "f.png", deep));
    assert_eq!((deep.format(), deep.as_u8().unwrap()), (PixelFormat::Rgb8, [255, 100, 0].as_slice()));
}

#[test]
fn jpeg_is_near_and_content_beats_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let jpeg = saved(dir.path(), "a.jpg", RgbImage::from_pixel(16, 16, Rgb([200, 100, 50])));
    let renamed = dir.path().join("b.png");
    fs::copy(&jpeg, &renamed).unwrap();
    let frame = folder::load(&renamed).unwrap();
    assert_eq!(frame.format(), PixelFormat::Rgb8);
    assert!(frame.as_u8().unwrap().iter().zip([200, 100, 50].iter().cycle()).all(|(a, b)| a.abs_diff(*b) <= 4));
}

#[test]
fn a_bad_image_names_itself_and_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let good = png::encode_png(&Image::from_u8(40, 40, PixelFormat::Gray8, vec![5; 1600]).unwrap()).unwrap();
    for (name, bytes) in [("empty.png", &[][..]), ("text.jpg", b"hello, world"), ("cut.png", &good[..good.len() / 2])] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = folder::load(&path).unwrap_err();
        assert!(matches!(error, SourceError::BadImage { .. }), "{name}: {error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    let error = folder::load(&dir.path().join("gone.png")).unwrap_err();
    assert!(matches!(error, SourceError::Io { .. }), "{error}");
}

#[test]
fn a_header_that_claims_gigabytes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let good = png::encode_png(&Image::from_u8(1, 1, PixelFormat::Gray8, vec![5]).unwrap()).unwrap();
    for (width, height) in [(60_000_u32, 60_000_u32), (16_384, 40_000)] {
        let mut bytes = good.clone();
        bytes[16..20].copy_from_slice(&width.to_be_bytes());
        bytes[20..24].copy_from_slice(&height.to_be_bytes());
        let sum = crc(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&sum.to_be_bytes());
        let path = dir.path().join("huge.png");
        fs::write(&path, &bytes).unwrap();
        let error = folder::load(&path).unwrap_err();
        assert!(matches!(error, SourceError::BadImage { .. }), "{error}");
    }
}

/// PNG's checksum, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xEDB8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}
