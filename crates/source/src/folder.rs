//! A folder of images as a source of frames. Listing says what is there; loading says what one file holds.

use std::fs;
use std::io;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use prony_types::{Image, PixelFormat};

use crate::SourceError;

/// Longest side that is decoded. A header may claim anything; memory is only taken for what a camera could make.
const MAX_SIDE: u32 = 16_384;
/// Most bytes that the decoded samples of one file may take.
const MAX_BYTES: u64 = 512 << 20;
/// File name endings that count as images, in lower case.
const ENDINGS: [&str; 4] = ["jpg", "jpeg", "png", "bmp"];

/// The images directly inside `dir`, sorted by name. At least one, or an error.
pub fn images(dir: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let path = dir.to_path_buf();
    match fs::metadata(dir) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(SourceError::NotAFolder { path }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(SourceError::MissingFolder { path }),
        Err(e) => return Err(SourceError::io(dir, "open the folder")(e)),
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(SourceError::io(dir, "list the folder"))? {
        let file = entry.map_err(SourceError::io(dir, "list the folder"))?.path();
        if is_image_name(&file) && !file.is_dir() {
            found.push(file);
        }
    }
    if found.is_empty() {
        return Err(SourceError::EmptyFolder { path });
    }
    found.sort_unstable();
    Ok(found)
}

/// Decodes one file: 8-bit RGB, or grey of 8 or 16 bits as stored. Alpha is dropped, 16-bit colour reduced to 8, and
/// the camera's orientation applied, as OpenCV does.
pub fn load(path: &Path) -> Result<Image, SourceError> {
    let bad = |reason: String| SourceError::BadImage { path: path.to_path_buf(), reason };
    // In one read: decoders ask for it in many small ones.
    let file = fs::read(path).map_err(SourceError::io(path, "open the image"))?;
    let reader = ImageReader::new(Cursor::new(file));
    // Content decides, not the name: a JPEG that is called .png is still a JPEG.
    let mut reader = reader.with_guessed_format().map_err(SourceError::io(path, "read the image"))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);

    let mut decoder = reader.into_decoder().map_err(|e| bad(unreadable(&e)))?;
    let (width, height) = decoder.dimensions();
    if width > MAX_SIDE || height > MAX_SIDE || decoder.total_bytes() > MAX_BYTES {
        return Err(bad(format!("{width}x{height} is too large to decode; the limit is {MAX_SIDE} pixels a side")));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(|e| bad(unreadable(&e)))?;
    decoded.apply_orientation(orientation);
    into_frame(decoded).ok_or_else(|| bad("has no pixels".to_owned()))
}

fn unreadable(error: &image::ImageError) -> String {
    format!("cannot be decoded: {error}")
}

fn is_image_name(path: &Path) -> bool {
    path.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
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
