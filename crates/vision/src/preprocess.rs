//! A frame becomes the network's input: letterbox, colour order, 0 to 1, planes; row by row, so that nothing but the
//! input itself is written to memory.

use prony_types::{Image, PixelFormat, Pixels};

use crate::dispatch::widest;
use crate::letterbox::{Fit, Letterbox};
use crate::resize::{Resizer, Size};
use crate::thermal::Stretcher;

/// The grey level around a letterboxed image.
pub const PAD: u8 = 114;

/// Makes network inputs of one size out of frames of any size and format.
///
/// It owns its scratch: after the first frame of a size and format it does not allocate.
pub struct Preprocessor {
    dst_w: u32,
    dst_h: u32,
    fit: Fit,
    resizer: Resizer,
    stretcher: Stretcher,
    /// The 8-bit form of a 16-bit frame.
    grey: Vec<u8>,
}

impl Preprocessor {
    /// For letterboxed inputs of this width and height. A side of 0 is taken as 1.
    pub fn new(dst_w: u32, dst_h: u32) -> Preprocessor {
        Preprocessor::with_fit(dst_w, dst_h, Fit::Letterbox)
    }

    /// For inputs of this width and height, filled as a head wants it ([`crate::Head::fit`]). A side of 0 is taken as 1.
    pub fn with_fit(dst_w: u32, dst_h: u32, fit: Fit) -> Preprocessor {
        Preprocessor {
            dst_w: dst_w.max(1),
            dst_h: dst_h.max(1),
            fit,
            resizer: Resizer::default(),
            stretcher: Stretcher::new(),
            grey: Vec::new(),
        }
    }

    /// Another one for inputs of the same size and fit, with scratch of its own.
    pub fn fresh(&self) -> Preprocessor {
        Preprocessor::with_fit(self.dst_w, self.dst_h, self.fit)
    }

    /// Values of one input: three planes.
    pub fn input_len(&self) -> usize {
        3 * self.dst_w as usize * self.dst_h as usize
    }

    /// Fills `out` with the letterboxed (or stretched) image as planes of red, green and blue, each value a grey level over 255.
    ///
    /// # Panics
    /// When `out` is not `3 * dst_w * dst_h` long: the caller made the buffer for another size.
    pub fn run(&mut self, image: &Image, out: &mut [f32]) -> Letterbox {
        self.run_over(image, out, None)
    }

    /// The same where `out` may still hold an image: of one that was placed as `held` says, grey bars that fall on its own
    /// are left as they are. The caller vouches that nobody else wrote there. In a stream that spares a quarter of the
    /// writes of a 4:3 frame.
    ///
    /// # Panics
    /// As [`Preprocessor::run`].
    pub fn run_over(&mut self, image: &Image, out: &mut [f32], held: Option<Letterbox>) -> Letterbox {
        let (w, h) = (self.dst_w as usize, self.dst_h as usize);
        assert_eq!(out.len(), 3 * w * h, "the input buffer is not 3x{h}x{w}");
        let placed = self.fit.place(image.width(), image.height(), self.dst_w, self.dst_h);
        let (top, left) = (placed.pad_top as usize, placed.pad_left as usize);
        let new_w = placed.new_w as usize;
        if held != Some(placed) {
            fill_bars(out, w, h, &placed);
        }
        let order = channel_order(image.format());
        self.each_row(image, &placed, |y, planes| {
            for (channel, source) in order.into_iter().enumerate() {
                let line = &mut out[channel * w * h + (top + y) * w + left..][..new_w];
                normalise(&planes[source * new_w..][..new_w], line);
            }
        });
        placed
    }

    /// Fills `out` (resized to fit) with the letterboxed (or stretched) image as interleaved red, green and blue bytes.
    pub fn letterbox_u8(&mut self, image: &Image, out: &mut Vec<u8>) -> Letterbox {
        let (w, h) = (self.dst_w as usize, self.dst_h as usize);
        let placed = self.fit.place(image.width(), image.height(), self.dst_w, self.dst_h);
        let (top, left, new_w) = (placed.pad_top as usize, placed.pad_left as usize, placed.new_w as usize);
        out.clear();
        out.resize(3 * w * h, PAD);
        let order = channel_order(image.format());
        self.each_row(image, &placed, |y, planes| {
            let line = &mut out[3 * ((top + y) * w + left)..][..3 * new_w];
            for (channel, source) in order.into_iter().enumerate() {
                let plane = &planes[source * new_w..][..new_w];
                for (pixel, &value) in line.chunks_exact_mut(3).zip(plane) {
                    pixel[channel] = value;
                }
            }
        });
        placed
    }

    /// The scaled rows, planar in the order of the image's own channels.
    fn each_row(&mut self, image: &Image, placed: &Letterbox, emit: impl FnMut(usize, &[u8])) {
        let from = Size { w: image.width() as usize, h: image.height() as usize };
        let to = Size { w: placed.new_w as usize, h: placed.new_h as usize };
        let src: &[u8] = match image.pixels() {
            Pixels::U8(bytes) => bytes,
            Pixels::U16(words) => {
                self.stretcher.run(words, &mut self.grey);
                &self.grey
            }
        };
        self.resizer.each_row(src, image.format().channels(), from, to, emit);
    }
}

/// The grey around an image in planes of this width and height.
fn fill_bars(planes: &mut [f32], w: usize, h: usize, placed: &Letterbox) {
    let pad = level(PAD);
    let (top, left) = (placed.pad_top as usize, placed.pad_left as usize);
    let (right, bottom) = (left + placed.new_w as usize, top + placed.new_h as usize);
    for plane in planes.chunks_exact_mut(w * h) {
        plane[..top * w].fill(pad);
        plane[bottom * w..].fill(pad);
        for line in plane[top * w..bottom * w].chunks_exact_mut(w) {
            line[..left].fill(pad);
            line[right..].fill(pad);
        }
    }
}

/// Which plane of the image is red, green and blue.
fn channel_order(format: PixelFormat) -> [usize; 3] {
    match format {
        PixelFormat::Rgb8 => [0, 1, 2],
        PixelFormat::Bgr8 => [2, 1, 0],
        PixelFormat::Gray8 | PixelFormat::Gray16 => [0, 0, 0],
    }
}

/// The upper 16 bits of 1/255: times a byte it is exact in 32-bit float, so that one rounding is left.
const INVERSE_HIGH: f32 = f32::from_bits((1.0f32 / 255.0).to_bits() & 0xffff_ff00);
/// What is missing from it.
const INVERSE_LOW: f32 = (1.0f64 / 255.0 - INVERSE_HIGH as f64) as f32;

/// A byte over 255, rounded as a division rounds it, without the division.
#[inline(always)]
fn level(value: u8) -> f32 {
    let value = f32::from(value);
    value * INVERSE_HIGH + value * INVERSE_LOW
}

widest! {
    fn normalise(row: &[u8], out: &mut [f32]) {
        for (&value, out) in row.iter().zip(out) {
            *out = level(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_the_quotient() {
        for value in 0..=255u8 {
            assert_eq!(level(value).to_bits(), (f32::from(value) / 255.0).to_bits(), "{value}");
        }
    }

    fn run(image: &Image, w: u32, h: u32) -> (Vec<f32>, Letterbox) {
        let mut out = vec![f32::NAN; (3 * w * h) as usize];
        let placed = Preprocessor::new(w, h).run(image, &mut out);
        (out.iter().map(|v| v * 255.0).collect(), placed)
    }

    #[test]
    fn blue_green_red_comes_out_as_red_green_blue_planes() {
        let rgb = Image::from_u8(2, 1, PixelFormat::Rgb8, vec![1, 2, 3, 4, 5, 6]).unwrap();
        let bgr = Image::from_u8(2, 1, PixelFormat::Bgr8, vec![3, 2, 1, 6, 5, 4]).unwrap();
        let want = vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        assert_eq!(run(&rgb, 2, 1).0, want);
        assert_eq!(run(&bgr, 2, 1).0, want);
    }

    #[test]
    fn grey_fills_all_three_planes_and_bars_are_114() {
        let grey = Image::from_u8(2, 1, PixelFormat::Gray8, vec![0, 255]).unwrap();
        let (out, placed) = run(&grey, 2, 4);
        let plane = [114.0, 114.0, 0.0, 255.0, 114.0, 114.0, 114.0, 114.0];
        assert_eq!((placed.pad_top, placed.pad_bottom), (1, 2));
        assert_eq!(out, [plane, plane, plane].concat());
        let (out, _) = run(&Image::from_u8(1, 2, PixelFormat::Gray8, vec![9, 9]).unwrap(), 4, 2);
        assert_eq!(out[..8], [114.0, 9.0, 114.0, 114.0, 114.0, 9.0, 114.0, 114.0]);
    }

    #[test]
    fn over_a_held_image_the_outcome_is_that_of_a_fresh_buffer() {
        let grey = |w: u32, h: u32, value: u8| {
            Image::from_u8(w, h, PixelFormat::Gray8, vec![value; (w * h) as usize]).unwrap()
        };
        let mut pre = Preprocessor::new(6, 6);
        let mut out = vec![f32::NAN; 3 * 36];
        let mut held = None;
        // The same place again, other bars, bars at the sides, none, and back.
        for (i, (w, h)) in [(6, 4), (6, 4), (6, 2), (2, 6), (6, 6), (6, 4)].into_iter().enumerate() {
            let image = grey(w, h, i as u8);
            held = Some(pre.run_over(&image, &mut out, held));
            let mut fresh = vec![f32::NAN; out.len()];
            assert_eq!(held, Some(Preprocessor::new(6, 6).run(&image, &mut fresh)));
            assert_eq!(out, fresh, "image {i}");
        }
        // What is vouched for is not looked at.
        out.fill(7.0);
        pre.run_over(&grey(6, 4, 9), &mut out, held);
        assert_eq!((out[0], out[35]), (7.0, 7.0));
    }

    #[test]
    fn a_stretched_image_leaves_no_grey() {
        let grey = Image::from_u8(2, 1, PixelFormat::Gray8, vec![0, 200]).unwrap();
        let mut out = vec![f32::NAN; 3 * 8];
        let placed = Preprocessor::with_fit(2, 4, Fit::Stretch).run(&grey, &mut out);
        assert_eq!(placed, Letterbox::stretch(2, 1, 2, 4));
        let levels: Vec<f32> = out.iter().map(|v| v * 255.0).collect();
        assert_eq!(levels, [0.0, 200.0].repeat(12));
    }

    #[test]
    fn sixteen_bits_go_through_the_stretch() {
        let heat = Image::from_u16(3, 1, vec![8000, 8005, 8010]).unwrap();
        assert_eq!(run(&heat, 3, 1).0[..3], [0.0, 128.0, 255.0]);
    }

    #[test]
    fn bytes_and_floats_hold_the_same_picture() {
        let data: Vec<u8> = (0..37 * 23 * 3).map(|i| (i * 7919 % 251) as u8).collect();
        let image = Image::from_u8(37, 23, PixelFormat::Bgr8, data).unwrap();
        let mut pre = Preprocessor::new(20, 24);
        let (mut bytes, mut floats) = (Vec::new(), vec![0.0; 3 * 20 * 24]);
        assert_eq!(pre.letterbox_u8(&image, &mut bytes), pre.run(&image, &mut floats));
        for (i, &byte) in bytes.iter().enumerate() {
            assert_eq!(f32::from(byte) / 255.0, floats[i % 3 * 480 + i / 3]);
        }
    }

    #[test]
    #[should_panic(expected = "not 3x4x4")]
    fn a_buffer_of_another_size_is_refused() {
        let image = Image::from_u8(1, 1, PixelFormat::Gray8, vec![1]).unwrap();
        Preprocessor::new(4, 4).run(&image, &mut [0.0; 5]);
    }
}
