//! One image of a slice: copied, linked, or scaled down and written anew.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::symlink;
use std::path::Path;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::{FilterType, resize};
use image::{GrayImage, ImageBuffer, Luma, RgbImage};
use prony_files::Kind;
use prony_types::{Image, PixelFormat, Pixels};

use super::folder::{put, replace};
use super::{SubsetSpec, Transfer};
use crate::SourceError;
use crate::dataset::{Dataset, Origin};
use crate::folder::Loader;
use crate::png::encode_png;

/// Quality of a JPEG that was scaled down: what is lost by it is far below what scaling loses.
const QUALITY: u8 = 95;

/// What became of an image.
pub(super) enum Made {
    /// It is there.
    Written {
        size: (u32, u32),
        /// How much smaller it is, across and down.
        scale: (f64, f64),
        bytes: u64,
    },
    /// It cannot be decoded, and why.
    Broken(String),
}

/// Puts an image into the folder. An error is one of the folder; an image that is broken is no error.
pub(super) fn make(
    data: &Dataset,
    index: usize,
    name: &str,
    spec: &SubsetSpec<'_>,
    loader: &mut Loader,
) -> Result<Made, SourceError> {
    let image = match data.load(index, loader) {
        Ok(image) => image,
        Err(error) => return Ok(Made::Broken(error.to_string())),
    };
    let to = spec.out.join("images").join(name);
    let from = &data.images[index].origin;
    let size = (image.width(), image.height());
    let small = smaller(size, spec.max_side);
    let scale = (f64::from(small.0) / f64::from(size.0), f64::from(small.1) / f64::from(size.1));
    let bytes = match from {
        Origin::File(from) if small == size => transfer(from, &to, spec.transfer)?,
        Origin::File(from) => {
            let file = encode(&scaled(image, small), is_jpeg(from))?;
            put(&to, &file)?;
            file.len() as u64
        }
        Origin::Scene(_) => {
            let file = if small == size { encode_png(image)? } else { encode(&scaled(image, small), false)? };
            put(&to, &file)?;
            file.len() as u64
        }
    };
    Ok(Made::Written { size: small, scale, bytes })
}

/// Width and height with no side above `limit`, and none of 0.
fn smaller((width, height): (u32, u32), limit: Option<u32>) -> (u32, u32) {
    let longest = width.max(height);
    let Some(limit) = limit.filter(|limit| *limit < longest) else { return (width, height) };
    let scale = |side: u32| ((f64::from(side) * f64::from(limit) / f64::from(longest)).round() as u32).max(1);
    (scale(width), scale(height))
}

fn transfer(from: &Path, to: &Path, how: Transfer) -> Result<u64, SourceError> {
    // A second name of a link would be one of the link, and a pointer is to lead to the file from anywhere.
    let file = fs::canonicalize(from).map_err(SourceError::io(from, "open the image"))?;
    replace(to, |temporary| match how {
        Transfer::Copy => fs::copy(&file, temporary).map_err(SourceError::io(to, "copy the image here")),
        Transfer::Link => {
            fs::hard_link(&file, temporary).map_err(|e| match e.kind() {
                io::ErrorKind::CrossesDevices => {
                    SourceError::data(to, "cannot link a file of another disk; use --symlink or --copy")
                }
                _ => SourceError::io(to, "link the image here")(e),
            })?;
            length(&file)
        }
        Transfer::Symlink => {
            symlink(&file, temporary).map_err(SourceError::io(to, "link the image here"))?;
            length(&file)
        }
    })
}

fn length(path: &Path) -> Result<u64, SourceError> {
    fs::metadata(path).map(|meta| meta.len()).map_err(SourceError::io(path, "open the image"))
}

fn is_jpeg(path: &Path) -> bool {
    let mut start = [0; 2];
    prony_files::open(path, Kind::Image).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == [0xFF, 0xD8]
}

/// Every new pixel is the mean of those it covers.
fn scaled(image: &Image, (width, height): (u32, u32)) -> Image {
    let (from_width, from_height) = (image.width(), image.height());
    let filter = FilterType::Triangle;
    let made = match image.pixels() {
        Pixels::U16(words) => ImageBuffer::<Luma<u16>, _>::from_raw(from_width, from_height, words.as_slice())
            .and_then(|from| Image::from_u16(width, height, resize(&from, width, height, filter).into_raw())),
        Pixels::U8(bytes) if image.format() == PixelFormat::Gray8 => {
            ImageBuffer::<Luma<u8>, _>::from_raw(from_width, from_height, bytes.as_slice()).and_then(|from| {
                let small: GrayImage = resize(&from, width, height, filter);
                Image::from_u8(width, height, PixelFormat::Gray8, small.into_raw())
            })
        }
        Pixels::U8(bytes) => ImageBuffer::<image::Rgb<u8>, _>::from_raw(from_width, from_height, bytes.as_slice())
            .and_then(|from| {
                let small: RgbImage = resize(&from, width, height, filter);
                Image::from_u8(width, height, image.format(), small.into_raw())
            }),
    };
    made.expect("an image has as many samples as its size says")
}

fn encode(image: &Image, jpeg: bool) -> Result<Vec<u8>, SourceError> {
    let color = match image.format() {
        PixelFormat::Rgb8 => image::ExtendedColorType::Rgb8,
        PixelFormat::Gray8 => image::ExtendedColorType::L8,
        _ => return encode_png(image),
    };
    let Some(bytes) = image.as_u8().filter(|_| jpeg) else { return encode_png(image) };
    let mut file = Vec::with_capacity(bytes.len() / 4);
    JpegEncoder::new_with_quality(&mut file, QUALITY)
        .encode(bytes, image.width(), image.height(), color)
        .map_err(|e| SourceError::Encode { reason: e.to_string() })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_side_is_above_the_limit_and_none_vanishes() {
        assert_eq!(smaller((640, 480), None), (640, 480));
        assert_eq!(smaller((640, 480), Some(640)), (640, 480));
        assert_eq!(smaller((640, 480), Some(320)), (320, 240));
        assert_eq!(smaller((20, 16_000), Some(100)), (1, 100));
    }

    #[test]
    fn every_depth_can_be_scaled() {
        let deep = Image::from_u16(4, 2, vec![1000, 3000, 5000, 7000, 1000, 3000, 5000, 7000]).unwrap();
        let small = scaled(&deep, (2, 1));
        assert_eq!((small.width(), small.height()), (2, 1));
        let words = small.as_u16().unwrap();
        assert!(words[0] < 3500 && words[1] > 4500, "{words:?}");
        let grey = Image::from_u8(4, 4, PixelFormat::Gray8, vec![77; 16]).unwrap();
        assert_eq!(scaled(&grey, (2, 2)).as_u8().unwrap(), [77; 4]);
        let rgb = Image::from_u8(4, 4, PixelFormat::Rgb8, [9, 8, 7].repeat(16)).unwrap();
        assert_eq!(scaled(&rgb, (1, 1)).as_u8().unwrap(), [9, 8, 7]);
    }
}
