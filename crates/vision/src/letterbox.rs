//! Where a frame lies in the network's input: scaled to fit, centred, the rest grey; or stretched over all of it.

/// How an image is brought to the size of the network's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// Keep the shape, and fill the rest with grey.
    #[default]
    Letterbox,
    /// Fill the input and lose the shape: what Ultralytics does for RT-DETR (`scale_fill=True`).
    Stretch,
}

impl Fit {
    /// The placement of `src` in `dst`.
    pub(crate) fn place(self, src_w: u32, src_h: u32, dst_w: u32, dst_h: u32) -> Letterbox {
        match self {
            Fit::Letterbox => Letterbox::new(src_w, src_h, dst_w, dst_h),
            Fit::Stretch => Letterbox::stretch(src_w, src_h, dst_w, dst_h),
        }
    }
}

/// The placement of a source image in the network's input, as Ultralytics' `LetterBox` computes it
/// (`auto=False, scaleup=True, center=True`), or stretched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Letterbox {
    /// Network pixels a source pixel, before the scaled size was rounded; of a stretched image on the axis where it is less.
    pub scale: f32,
    /// Width of the scaled image.
    pub new_w: u32,
    /// Height of the scaled image.
    pub new_h: u32,
    /// Grey columns on the left.
    pub pad_left: u32,
    /// Grey rows above.
    pub pad_top: u32,
    /// Grey columns on the right.
    pub pad_right: u32,
    /// Grey rows below.
    pub pad_bottom: u32,
    /// Width of the source.
    pub src_w: u32,
    /// Height of the source.
    pub src_h: u32,
}

impl Letterbox {
    /// Fits `src` into `dst`. A side of 0 is taken as 1.
    pub fn new(src_w: u32, src_h: u32, dst_w: u32, dst_h: u32) -> Letterbox {
        let (src_w, src_h) = (src_w.max(1), src_h.max(1));
        let (dst_w, dst_h) = (dst_w.max(1), dst_h.max(1));
        let scale = (f64::from(dst_h) / f64::from(src_h)).min(f64::from(dst_w) / f64::from(src_w));
        let (new_w, new_h) = (scaled(src_w, scale, dst_w), scaled(src_h, scale, dst_h));
        let (pad_left, pad_right) = halves(dst_w - new_w);
        let (pad_top, pad_bottom) = halves(dst_h - new_h);
        Letterbox { scale: scale as f32, new_w, new_h, pad_left, pad_top, pad_right, pad_bottom, src_w, src_h }
    }

    /// Stretches `src` over all of `dst`: no bars, and a gain of its own on either axis. A side of 0 is taken as 1.
    pub fn stretch(src_w: u32, src_h: u32, dst_w: u32, dst_h: u32) -> Letterbox {
        let (new_w, new_h) = (dst_w.max(1), dst_h.max(1));
        let (pad_left, pad_top, pad_right, pad_bottom) = (0, 0, 0, 0);
        Letterbox {
            new_w,
            new_h,
            pad_left,
            pad_top,
            pad_right,
            pad_bottom,
            ..Letterbox::new(src_w, src_h, dst_w, dst_h)
        }
    }

    /// A point of the network's input in pixels of the source; may lie outside of it.
    ///
    /// Each axis has its own gain, since each side was rounded to whole pixels on its own (as in current Ultralytics).
    pub fn to_image(&self, x: f32, y: f32) -> (f32, f32) {
        let (gain_x, gain_y) = self.gains();
        ((x - self.pad_left as f32) / gain_x, (y - self.pad_top as f32) / gain_y)
    }

    /// Network pixels a source pixel on either axis, after rounding.
    pub(crate) fn gains(&self) -> (f32, f32) {
        let gain = |new: u32, src: u32| (f64::from(new) / f64::from(src)) as f32;
        (gain(self.new_w, self.src_w), gain(self.new_h, self.src_h))
    }
}

/// Python's `round`, which goes to the even neighbour from the middle; a thin image keeps one pixel.
fn scaled(side: u32, scale: f64, limit: u32) -> u32 {
    ((f64::from(side) * scale).round_ties_even() as u32).clamp(1, limit)
}

/// The odd pixel goes right and below.
fn halves(pad: u32) -> (u32, u32) {
    (pad / 2, pad - pad / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hd_into_a_square_has_bars_above_and_below() {
        let lb = Letterbox::new(1280, 720, 640, 640);
        assert_eq!((lb.new_w, lb.new_h), (640, 360));
        assert_eq!((lb.pad_left, lb.pad_right, lb.pad_top, lb.pad_bottom), (0, 0, 140, 140));
        assert_eq!(lb.to_image(320.0, 320.0), (640.0, 360.0));
        assert_eq!(lb.to_image(0.0, 0.0), (0.0, -280.0));
    }

    #[test]
    fn a_stretched_point_comes_back_on_each_axis() {
        let lb = Letterbox::stretch(1280, 720, 640, 640);
        assert_eq!((lb.new_w, lb.new_h), (640, 640));
        assert_eq!((lb.pad_left, lb.pad_right, lb.pad_top, lb.pad_bottom), (0, 0, 0, 0));
        let (gain_x, gain_y) = lb.gains();
        assert_eq!((gain_x, gain_y), (0.5, 640.0 / 720.0));
        let (x, y) = lb.to_image(900.0 * gain_x, 450.0 * gain_y);
        assert!((x - 900.0).abs() < 1e-3 && (y - 450.0).abs() < 1e-3, "{x}, {y}");
        assert_eq!(lb.to_image(640.0, 640.0), (1280.0, 720.0));
        assert_eq!(Letterbox::stretch(0, 0, 0, 0).new_h, 1);
    }

    #[test]
    fn an_odd_bar_is_wider_below() {
        // 61 * 64/97 = 40.2 -> 40 rows, 24 left over; 60 * 64/96 = 40; 59 * 64/96 = 39.3 -> 39, 25 left over.
        assert_eq!(Letterbox::new(97, 61, 64, 64).pad_top, 12);
        let lb = Letterbox::new(96, 59, 64, 64);
        assert_eq!((lb.new_h, lb.pad_top, lb.pad_bottom), (39, 12, 13));
    }

    #[test]
    fn a_middle_goes_to_the_even_neighbour() {
        // 5 * 0.5 = 2.5 -> 2 and 7 * 0.5 = 3.5 -> 4, as Python rounds.
        assert_eq!(Letterbox::new(128, 5, 64, 64).new_h, 2);
        assert_eq!(Letterbox::new(128, 7, 64, 64).new_h, 4);
    }

    #[test]
    fn a_thin_or_empty_image_keeps_a_pixel() {
        assert_eq!(Letterbox::new(5000, 1, 64, 64).new_h, 1);
        assert_eq!(Letterbox::new(0, 0, 0, 0).new_w, 1);
    }

    proptest! {
        #[test]
        fn the_way_back_inverts_the_way_in(
            sw in 1u32..5000, sh in 1u32..5000, dw in 1u32..2000, dh in 1u32..2000, u in 0.0f32..1.0, v in 0.0f32..1.0,
        ) {
            let lb = Letterbox::new(sw, sh, dw, dh);
            prop_assert_eq!(lb.new_w + lb.pad_left + lb.pad_right, dw);
            prop_assert_eq!(lb.new_h + lb.pad_top + lb.pad_bottom, dh);
            let (x, y) = (u * sw as f32, v * sh as f32);
            let forward_x = x * (lb.new_w as f32 / sw as f32) + lb.pad_left as f32;
            let forward_y = y * (lb.new_h as f32 / sh as f32) + lb.pad_top as f32;
            let (bx, by) = lb.to_image(forward_x, forward_y);
            let (gain_x, gain_y) = lb.gains();
            prop_assert!((bx - x).abs() <= 0.01 + 1e-3 / gain_x, "{} came back as {}", x, bx);
            prop_assert!((by - y).abs() <= 0.01 + 1e-3 / gain_y, "{} came back as {}", y, by);
        }
    }
}
