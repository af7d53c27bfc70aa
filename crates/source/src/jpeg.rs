//! Small pictures for people: lossy, a tenth of a PNG's size for noisy frames. Never for data.

use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use prony_types::{Image, PixelFormat};

use crate::SourceError;

/// The bytes of a JPEG file of an RGB image.
pub fn encode_jpeg(image: &Image) -> Result<Vec<u8>, SourceError> {
    let failed = |reason: String| SourceError::Encode { reason };
    let Some(bytes) = image.as_u8().filter(|_| image.format() == PixelFormat::Rgb8) else {
        return Err(failed(format!("a picture for people is RGB, not {:?}", image.format())));
    };
    let mut file = Vec::with_capacity(bytes.len() / 8);
    JpegEncoder::new_with_quality(&mut file, 85)
        .encode(bytes, image.width(), image.height(), ExtendedColorType::Rgb8)
        .map_err(|e| failed(e.to_string()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_looks_like_what_it_was_made_of() {
        let orange = [250u8, 120, 10].repeat(64 * 48);
        let image = Image::from_u8(64, 48, PixelFormat::Rgb8, orange).unwrap();
        let file = encode_jpeg(&image).unwrap();
        let back = image::load_from_memory_with_format(&file, image::ImageFormat::Jpeg).unwrap().into_rgb8();
        assert_eq!(back.dimensions(), (64, 48));
        let near = |a: u8, b: u8| a.abs_diff(b) <= 6;
        assert!(back.pixels().all(|p| near(p[0], 250) && near(p[1], 120) && near(p[2], 10)));
    }

    #[test]
    fn other_formats_are_refused() {
        assert!(encode_jpeg(&Image::from_u16(1, 1, vec![7]).unwrap()).is_err());
    }
}
