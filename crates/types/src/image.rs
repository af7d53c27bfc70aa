//! Decoded frames in host memory.

/// How the channels of an [`Image`] are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PixelFormat {
    /// Three interleaved bytes: red, green, blue.
    Rgb8,
    /// Three interleaved bytes: blue, green, red (what OpenCV and most cameras hand over).
    Bgr8,
    /// One byte a pixel.
    Gray8,
    /// One 16-bit word a pixel, as thermal sensors deliver it.
    Gray16,
}

impl PixelFormat {
    /// Interleaved samples a pixel.
    pub const fn channels(self) -> usize {
        match self {
            PixelFormat::Rgb8 | PixelFormat::Bgr8 => 3,
            PixelFormat::Gray8 | PixelFormat::Gray16 => 1,
        }
    }
}

/// The samples of an [`Image`]; 16-bit only for [`PixelFormat::Gray16`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pixels {
    /// Eight bits a sample.
    U8(Vec<u8>),
    /// Sixteen bits a sample.
    U16(Vec<u16>),
}

/// A decoded frame: rows top to bottom, no padding between rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    width: u32,
    height: u32,
    format: PixelFormat,
    pixels: Pixels,
}

impl Image {
    /// An 8-bit image. `None` when a side is zero, the format is 16-bit, or the length does not fit.
    pub fn from_u8(width: u32, height: u32, format: PixelFormat, data: Vec<u8>) -> Option<Image> {
        let want = (width as usize).checked_mul(height as usize)?.checked_mul(format.channels())?;
        let fits = want > 0 && data.len() == want && format != PixelFormat::Gray16;
        fits.then_some(Image { width, height, format, pixels: Pixels::U8(data) })
    }

    /// A 16-bit grey image. `None` when a side is zero or the length does not fit.
    pub fn from_u16(width: u32, height: u32, data: Vec<u16>) -> Option<Image> {
        let want = (width as usize).checked_mul(height as usize)?;
        let fits = want > 0 && data.len() == want;
        fits.then_some(Image { width, height, format: PixelFormat::Gray16, pixels: Pixels::U16(data) })
    }

    /// Columns; never 0.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows; never 0.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Channel layout.
    pub fn format(&self) -> PixelFormat {
        self.format
    }

    /// The samples, rows top to bottom.
    pub fn pixels(&self) -> &Pixels {
        &self.pixels
    }

    /// The bytes of an 8-bit image; `None` for [`PixelFormat::Gray16`].
    pub fn as_u8(&self) -> Option<&[u8]> {
        match &self.pixels {
            Pixels::U8(data) => Some(data),
            Pixels::U16(_) => None,
        }
    }

    /// The bytes of an 8-bit image, to be used again; `None` for [`PixelFormat::Gray16`].
    pub fn into_u8(self) -> Option<Vec<u8>> {
        match self.pixels {
            Pixels::U8(data) => Some(data),
            Pixels::U16(_) => None,
        }
    }

    /// The words of a 16-bit image; `None` for the 8-bit formats.
    pub fn as_u16(&self) -> Option<&[u16]> {
        match &self.pixels {
            Pixels::U16(data) => Some(data),
            Pixels::U8(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_whose_length_does_not_fit_cannot_exist() {
        assert!(Image::from_u8(2, 2, PixelFormat::Rgb8, vec![0; 12]).is_some());
        assert!(Image::from_u8(2, 2, PixelFormat::Rgb8, vec![0; 11]).is_none());
        assert!(Image::from_u8(0, 2, PixelFormat::Gray8, vec![]).is_none());
        assert!(Image::from_u8(2, 1, PixelFormat::Gray16, vec![0, 0]).is_none());
        assert!(Image::from_u8(u32::MAX, u32::MAX, PixelFormat::Rgb8, vec![]).is_none());
        assert!(Image::from_u16(2, 1, vec![1, 2]).is_some());
    }
}
