//! The direct way of a JPEG against `image`'s own, on whole and on damaged files.

use image::codecs::jpeg::JpegEncoder;
use image::{GenericImageView, Rgb};

use super::*;

/// Bands and noise, so that blocks differ and the file is long enough to be cut.
fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let noise = (x * 7919 + y * 104_729) % 61;
        Rgb([(x * 5 % 256) as u8, (y * 9 % 256) as u8, (noise * 4) as u8])
    })
}

fn jpeg(image: &DynamicImage) -> Vec<u8> {
    let mut file = Vec::new();
    let (width, height) = image.dimensions();
    let color = image.color().into();
    JpegEncoder::new_with_quality(&mut file, 90).encode(image.as_bytes(), width, height, color).unwrap();
    file
}

/// What `image` makes of it, if anything.
fn reference(file: &[u8]) -> Option<DynamicImage> {
    image::load_from_memory_with_format(file, ImageFormat::Jpeg).ok()
}

/// The file with a segment put behind its first two bytes.
fn with_segment(file: &[u8], marker: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16 + 2).to_be_bytes();
    [&file[..2], &[0xff, marker], &length, content, &file[2..]].concat()
}

#[test]
fn colour_and_grey_come_out_as_they_were_stored() {
    let colour = DynamicImage::from(picture(61, 45));
    for (image, format) in [(colour.clone(), PixelFormat::Rgb8), (colour.grayscale(), PixelFormat::Gray8)] {
        let file = jpeg(&image);
        let got = frame(&file, Vec::new()).unwrap();
        assert_eq!((got.width(), got.height(), got.format()), (61, 45, format));
        assert_eq!(got.as_u8().unwrap(), reference(&file).unwrap().as_bytes());
    }
}

#[test]
fn a_damaged_file_fares_as_in_the_reference_whatever_the_memory_held() {
    let file = jpeg(&picture(64, 48).into());
    let mut damaged: Vec<Vec<u8>> = (0..file.len()).step_by(37).map(|end| file[..end].to_vec()).collect();
    for at in (0..file.len()).step_by(53) {
        let mut broken = file.clone();
        broken[at] ^= 0xff;
        damaged.push(broken);
    }
    let mut readable = 0;
    for (i, file) in damaged.iter().enumerate() {
        // Without its first bytes it is no JPEG, and the reference was told that it is one.
        let want = reference(file).filter(|_| file.starts_with(&[0xff, 0xd8, 0xff]));
        let got = frame(file, vec![77; 5000]).ok();
        let pixels = |image: &Image| image.as_u8().unwrap().to_vec();
        assert_eq!(got.as_ref().map(pixels), want.map(|image| image.into_bytes()), "number {i}");
        readable += usize::from(got.is_some());
    }
    assert!((1..damaged.len()).contains(&readable), "{readable} of {}: both fates were meant", damaged.len());
}

#[test]
fn the_camera_s_orientation_is_applied() {
    let upright = DynamicImage::from(picture(16, 8));
    // A big-endian TIFF header and one entry: tag 0x112, a short, once, 6 (turned by 90 degrees).
    let exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let file = with_segment(&jpeg(&upright), 0xe1, exif);
    let got = frame(&file, Vec::new()).unwrap();
    assert_eq!((got.width(), got.height()), (8, 16));
    let want = reference(&file).unwrap().rotate90();
    assert_eq!(want.dimensions(), (8, 16));
    assert_eq!(got.as_u8().unwrap(), want.as_bytes());
}

#[test]
fn four_inks_become_rgb() {
    // A grey file of one block, with a frame and a scan of four components in its place. The standard tables say "00"
    // for no change of the mean and "1010" for the end of a block: four times that is the whole scan.
    let grey = jpeg(&GrayImage::from_pixel(8, 8, image::Luma([128])).into());
    let start = |marker: u8| grey.windows(2).position(|pair| pair == [0xff, marker]).unwrap();
    let tables: Vec<u8> = segments(&grey).filter(|(marker, _)| [0xdb, 0xc4].contains(marker)).flat_map(raw).collect();
    let adobe = raw((0xee, b"Adobe\0\x64\0\0\0\0\0"));
    let frame_of_four = raw((0xc0, &[8, 0, 8, 0, 8, 4, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0, 4, 0x11, 0]));
    let scan = raw((0xda, &[4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0]));
    let file = [&grey[..2], &adobe, &tables, &frame_of_four, &scan, &[0x28, 0xa2, 0x8a], &grey[start(0xd9)..]].concat();
    let got = frame(&file, Vec::new()).unwrap();
    assert_eq!((got.width(), got.height(), got.format()), (8, 8, PixelFormat::Rgb8));
    assert_eq!(got.as_u8().unwrap(), reference(&file).unwrap().as_bytes());
}

/// Marker and content of the segments before the scan.
fn segments(file: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut at = 2;
    std::iter::from_fn(move || {
        let marker = file[at + 1];
        let length = usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        let content = &file[at + 4..at + 2 + length];
        at += 2 + length;
        (marker != 0xda).then_some((marker, content))
    })
}

fn raw((marker, content): (u8, &[u8])) -> Vec<u8> {
    [&[0xff, marker], &(content.len() as u16 + 2).to_be_bytes()[..], content].concat()
}

#[test]
fn a_jpeg_that_claims_too_much_is_refused_before_memory_is_taken() {
    let file = jpeg(&picture(8, 8).into());
    let at = file.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
    for (height, width) in [(16_385_u16, 1_u16), (1, 65_535), (16_384, 16_384)] {
        let mut huge = file.clone();
        huge[at..at + 2].copy_from_slice(&height.to_be_bytes());
        huge[at + 2..at + 4].copy_from_slice(&width.to_be_bytes());
        let error = frame(&huge, Vec::new()).unwrap_err();
        assert!(error.contains(&format!("{width}x{height} is too large to decode")), "{error}");
    }
}

#[test]
fn a_jpeg_that_ends_early_is_refused_where_it_must_be_whole() {
    let image = Image::from_u8(64, 48, PixelFormat::Rgb8, picture(64, 48).into_raw()).unwrap();
    let colour = crate::jpeg::encode_jpeg(&image).unwrap();
    let grey = jpeg(&DynamicImage::from(picture(64, 48)).grayscale());
    for file in [colour, grey] {
        let whole = frame(&file, Vec::new()).unwrap();
        assert_eq!(whole_frame(&file, Vec::new()).unwrap(), whole);
        // Cameras and programs put things behind the end.
        let longer = [&file[..], b"trailer \xff\x00\xff"].concat();
        assert_eq!(whole_frame(&longer, Vec::new()).unwrap(), whole);

        // The thumbnail has an end of its own, which is not that of the picture.
        let thumbnail = [b"Exif\0\0", &file[..file.len().min(5000)], b"\xff\xd9"].concat();
        let with_thumbnail = with_segment(&file, 0xe1, &thumbnail);
        assert_eq!(whole_frame(&with_thumbnail, Vec::new()).unwrap(), whole);
        let half = |file: &[u8]| file[..file.len() - 700].to_vec();
        for cut in
            [half(&file), half(&with_thumbnail), file[..file.len() - 1].to_vec(), file[..file.len() - 2].to_vec()]
        {
            let error = whole_frame(&cut, Vec::new()).unwrap_err();
            assert!(error.starts_with(&format!("ends early: {} bytes", cut.len())), "{error}");
            assert!(frame(&cut, Vec::new()).is_ok(), "a folder shows what there is");
        }
    }
}

#[test]
fn restarts_and_further_scans_are_no_end() {
    let scan = |content: &[u8]| [&raw((0xda, &[1, 1, 0, 0, 63, 0])), content].concat();
    let head = [&[0xff, 0xd8][..], &raw((0xc2, &[8, 0, 8, 0, 8, 1, 1, 0x11, 0]))].concat();
    let first = [&head[..], &scan(b"\x12\xff\x00\xd9\xff\xd0\x34\xff\xd7\x56")].concat();
    let second = [&first[..], &raw((0xc4, &[0; 17])), &scan(b"\x78")].concat();
    for cut in [&first, &second] {
        assert!(ends_early(cut));
        assert!(!ends_early(&[cut, b"\xff\xd9".as_slice()].concat()));
        assert!(!ends_early(&[cut, b"\xff\xff\xd9more".as_slice()].concat()), "filled up");
    }
    // No picture yet: the decoder has better words for it.
    assert!(!ends_early(&head) && !ends_early(b"") && !ends_early(b"\x89PNG"));
}
