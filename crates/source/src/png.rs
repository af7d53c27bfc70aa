//! Frames as PNG files: lossless, 16-bit grey included.

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use prony_types::{Image, PixelFormat, Pixels};

use crate::SourceError;

/// The bytes of a PNG file that holds exactly the samples of `image`; BGR is stored as RGB, the only order PNG has.
pub fn encode_png(image: &Image) -> Result<Vec<u8>, SourceError> {
    let swapped;
    let (bytes, color): (&[u8], _) = match (image.pixels(), image.format()) {
        (Pixels::U8(data), PixelFormat::Gray8) => (data, ExtendedColorType::L8),
        (Pixels::U8(data), PixelFormat::Bgr8) => {
            swapped = data.as_chunks::<3>().0.iter().flat_map(|&[b, g, r]| [r, g, b]).collect::<Vec<u8>>();
            (&swapped, ExtendedColorType::Rgb8)
        }
        (Pixels::U8(data), _) => (data, ExtendedColorType::Rgb8),
        (Pixels::U16(data), _) => {
            // The encoder takes native words and stores them big-endian.
            swapped = data.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>();
            (&swapped, ExtendedColorType::L16)
        }
    };
    let mut file = Vec::with_capacity(bytes.len() / 2);
    PngEncoder::new(&mut file)
        .write_image(bytes, image.width(), image.height(), color)
        .map_err(|e| SourceError::Encode { reason: e.to_string() })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::DynamicImage;

    fn decode(file: &[u8]) -> DynamicImage {
        image::load_from_memory_with_format(file, image::ImageFormat::Png).unwrap()
    }

    #[test]
    fn sixteen_bit_grey_survives() {
        let data = vec![0, 1, 255, 256, 7999, 65535];
        let file = encode_png(&Image::from_u16(3, 2, data.clone()).unwrap()).unwrap();
        let DynamicImage::ImageLuma16(back) = decode(&file) else { panic!("not 16-bit grey") };
        assert_eq!(back.dimensions(), (3, 2));
        assert_eq!(back.into_raw(), data);
    }

    #[test]
    fn bgr_is_stored_as_rgb() {
        let image = Image::from_u8(2, 1, PixelFormat::Bgr8, vec![1, 2, 3, 4, 5, 6]).unwrap();
        let DynamicImage::ImageRgb8(back) = decode(&encode_png(&image).unwrap()) else { panic!("not RGB") };
        assert_eq!(back.into_raw(), vec![3, 2, 1, 6, 5, 4]);
    }

    #[test]
    fn rgb_and_grey_survive() {
        let rgb: Vec<u8> = (0..36).map(|i| i * 7).collect();
        let image = Image::from_u8(4, 3, PixelFormat::Rgb8, rgb.clone()).unwrap();
        assert_eq!(decode(&encode_png(&image).unwrap()).into_rgb8().into_raw(), rgb);
        let grey: Vec<u8> = (0..12).map(|i| i * 21).collect();
        let image = Image::from_u8(4, 3, PixelFormat::Gray8, grey.clone()).unwrap();
        assert_eq!(decode(&encode_png(&image).unwrap()).into_luma8().into_raw(), grey);
    }
}
