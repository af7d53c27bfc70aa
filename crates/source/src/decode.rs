//! One image file in memory becomes a frame. JPEGs, which is what cameras and data sets deliver, go to their decoder
//! directly: the header is read once and the caller's memory used again. The rest goes through `image`.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, GrayImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};
use prony_types::{Image, PixelFormat};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

/// Longest side that is decoded. A header may claim anything; memory is only taken for what a camera could make.
const MAX_SIDE: u32 = 16_384;
/// Most bytes that the decoded samples of one file may take.
const MAX_BYTES: u64 = 512 << 20;

/// The frame that `file` holds, or what is wrong with it. Content decides, not the name: a JPEG that is called .png is
/// still a JPEG. `spare` is memory that may become the frame's; what it holds does not matter.
pub(crate) fn frame(file: &[u8], spare: Vec<u8>) -> Result<Image, String> {
    let jpeg = image::guess_format(file).is_ok_and(|format| format == ImageFormat::Jpeg);
    let (mut decoded, orientation) = if jpeg { from_jpeg(file, spare)? } else { from_other(file)? };
    decoded.apply_orientation(orientation);
    into_frame(decoded).ok_or_else(|| "has no pixels".to_owned())
}

/// As [`frame`], but a JPEG that ends before its picture does is refused: what is missing would be grey, and objects on it
/// would count as overlooked.
pub(crate) fn whole_frame(file: &[u8], spare: Vec<u8>) -> Result<Image, String> {
    if ends_early(file) {
        return Err(format!(
            "ends early: {} bytes, without the end of the picture; fetch or copy it again",
            file.len()
        ));
    }
    frame(file, spare)
}

/// Whether a JPEG has a picture without an end. Files that are damaged before that are left to the decoder.
fn ends_early(file: &[u8]) -> bool {
    // From behind, because that is where it is; anything may follow it. Within a picture these two bytes never stand
    // together, and a thumbnail, which has an end of its own, lies in a segment before it.
    picture(file).is_some_and(|picture| !picture.windows(2).rev().any(|pair| pair == [0xFF, 0xD9]))
}

/// What follows the header of a JPEG's first scan.
fn picture(file: &[u8]) -> Option<&[u8]> {
    let mut rest = file.strip_prefix(&[0xFF, 0xD8])?;
    loop {
        // Bytes that do not belong there are passed over, as the decoder does.
        let start = rest.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF))?;
        let marker = rest[start + 1];
        rest = &rest[start + 2..];
        if matches!(marker, 0x01 | 0xD0..=0xD8) {
            continue;
        }
        let length = usize::from(u16::from_be_bytes(*rest.first_chunk()?));
        rest = rest.get(length..)?;
        if marker == 0xDA {
            return Some(rest);
        }
    }
}

fn from_jpeg(file: &[u8], mut samples: Vec<u8>) -> Result<(DynamicImage, Orientation), String> {
    // Viewers show what there is of a damaged file, and OpenCV too. The sides are checked below, with our own words.
    let side = usize::from(u16::MAX);
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(side).set_max_height(side);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(unreadable)?;
    let (width, height) = decoder.dimensions().map_or((0, 0), |(width, height)| (width as u32, height as u32));
    // Grey stays grey; CMYK and the like become RGB.
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let space = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(decoder.options().jpeg_set_out_colorspace(space));
    let bytes = u64::from(width) * u64::from(height) * space.num_components() as u64;
    check_size(width, height, bytes)?;

    // Zeroed, because a damaged file may leave some of it as it was, and that would be a piece of another image.
    samples.clear();
    samples.resize(bytes as usize, 0);
    decoder.decode_into(&mut samples).map_err(unreadable)?;
    let orientation = decoder.exif().and_then(|exif| Orientation::from_exif_chunk(exif));
    let decoded = if grey {
        GrayImage::from_raw(width, height, samples).map(DynamicImage::from)
    } else {
        RgbImage::from_raw(width, height, samples).map(DynamicImage::from)
    };
    let decoded = decoded.ok_or_else(|| unreadable("fewer samples than its size says"))?;
    Ok((decoded, orientation.unwrap_or(Orientation::NoTransforms)))
}

fn from_other(file: &[u8]) -> Result<(DynamicImage, Orientation), String> {
    let mut reader = ImageReader::new(Cursor::new(file)).with_guessed_format().map_err(unreadable)?;
    let mut limits = Limits::default();
    // The sides are checked below, with our own words.
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);

    let mut decoder = reader.into_decoder().map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height, decoder.total_bytes())?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder).map_err(unreadable)?, orientation))
}

fn check_size(width: u32, height: u32, bytes: u64) -> Result<(), String> {
    if width > MAX_SIDE || height > MAX_SIDE || bytes > MAX_BYTES {
        return Err(format!("{width}x{height} is too large to decode; the limit is {MAX_SIDE} pixels a side"));
    }
    Ok(())
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("cannot be decoded: {error}")
}

fn into_frame(decoded: DynamicImage) -> Option<Image> {
    let (width, height) = (decoded.width(), decoded.height());
    match decoded {
        DynamicImage::ImageLuma16(grey) => Image::from_u16(width, height, grey.into_raw()),
        DynamicImage::ImageLumaA16(_) => Image::from_u16(width, height, decoded.into_luma16().into_raw()),
        DynamicImage::ImageLuma8(_) | DynamicImage::ImageLumaA8(_) => {
            Image::from_u8(width, height, PixelFormat::Gray8, decoded.into_luma8().into_raw())
        }
        other => Image::from_u8(width, height, PixelFormat::Rgb8, other.into_rgb8().into_raw()),
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
