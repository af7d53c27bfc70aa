//! Detections drawn onto a frame, for people to look at.

use prony_types::{Detection, Image, PixelFormat};

use crate::font;
use crate::preprocess::Preprocessor;

/// Colours that are told apart on daylight and on heat; classes take them in turn.
const PALETTE: [[u8; 3]; 10] = [
    [255, 75, 75],
    [64, 160, 255],
    [70, 210, 90],
    [255, 190, 40],
    [200, 110, 255],
    [40, 215, 205],
    [255, 130, 200],
    [170, 220, 60],
    [255, 145, 60],
    [150, 150, 255],
];

/// The image in colour with its detections, each in the colour of its class and labelled with name and score.
///
/// It is scaled down so that neither side is longer than `max_side` (never up; 0 means 1). Detections are in pixels of
/// `image`; a class without a name is shown by its number. The surest box is drawn last, on top.
pub fn detections(image: &Image, detections: &[Detection], names: &[String], max_side: u32) -> Image {
    let longest = image.width().max(image.height());
    let side = |side: u32| {
        let scaled = u64::from(side) * u64::from(max_side.max(1)) / u64::from(longest);
        if longest <= max_side { side } else { (scaled as u32).max(1) }
    };
    let (w, h) = (side(image.width()), side(image.height()));
    let mut pixels = Vec::new();
    let placed = Preprocessor::new(w, h).letterbox_u8(image, &mut pixels);
    let mut canvas = Canvas { w: w as usize, h: h as usize, pixels };
    let scale_x = f64::from(placed.new_w) / f64::from(image.width());
    let scale_y = f64::from(placed.new_h) / f64::from(image.height());
    let thick = (w.max(h) as usize / 240).clamp(1, 4);
    for detection in detections.iter().rev() {
        // Far outside is far enough: sums of coordinates must not overflow.
        let at = |v: f32, scale: f64, pad: u32| (f64::from(v) * scale).clamp(-1e6, 1e6) as i64 + i64::from(pad);
        let (x1, x2) = (at(detection.x1, scale_x, placed.pad_left), at(detection.x2, scale_x, placed.pad_left));
        let (y1, y2) = (at(detection.y1, scale_y, placed.pad_top), at(detection.y2, scale_y, placed.pad_top));
        let colour = PALETTE[detection.class as usize % PALETTE.len()];
        canvas.frame([x1, y1, x2, y2], thick as i64, colour);
        let percent = (detection.score * 100.0).round().clamp(0.0, 100.0) as u8;
        let label = match names.get(detection.class as usize) {
            Some(name) => format!("{name} {percent}"),
            None => format!("#{} {percent}", detection.class),
        };
        canvas.label(&label, x1, y1, thick.max(2) as i64, colour);
    }
    Image::from_u8(w, h, PixelFormat::Rgb8, canvas.pixels).expect("the canvas has the length of its sides")
}

struct Canvas {
    w: usize,
    h: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    /// Fills what lies inside of the canvas; the right and lower bounds are exclusive.
    fn fill(&mut self, [x1, y1, x2, y2]: [i64; 4], colour: [u8; 3]) {
        let inside = |v: i64, limit: usize| v.clamp(0, limit as i64) as usize;
        let (x1, x2) = (inside(x1, self.w), inside(x2, self.w));
        for y in inside(y1, self.h)..inside(y2, self.h) {
            for pixel in self.pixels[3 * (y * self.w)..][..3 * self.w].chunks_exact_mut(3).take(x2).skip(x1) {
                pixel.copy_from_slice(&colour);
            }
        }
    }

    /// Four bars along the inside of a rectangle.
    fn frame(&mut self, [x1, y1, x2, y2]: [i64; 4], thick: i64, colour: [u8; 3]) {
        // A box that ends at the border shows its edge there, and one without extent still shows.
        let (x2, y2) = (x2.max(x1 + 1), y2.max(y1 + 1));
        self.fill([x1, y1, x2, y1 + thick], colour);
        self.fill([x1, y2 - thick, x2, y2], colour);
        self.fill([x1, y1, x1 + thick, y2], colour);
        self.fill([x2 - thick, y1, x2, y2], colour);
    }

    /// Black on a plate of the colour, above the point where there is room, otherwise below, moved to stay inside.
    fn label(&mut self, text: &str, x: i64, y: i64, dot: i64, colour: [u8; 3]) {
        let (advance, height) = ((font::WIDTH as i64 + 1) * dot, (font::HEIGHT as i64 + 2) * dot);
        let width = text.chars().count() as i64 * advance + dot;
        let x = x.min(self.w as i64 - width).max(0);
        let y = if y >= height { y - height } else { y.max(0) };
        self.fill([x, y, x + width, y + height], colour);
        for (c, left) in text.chars().zip((x + dot..).step_by(advance as usize)) {
            for (bits, top) in font::rows(c).into_iter().zip((y + dot..).step_by(dot as usize)) {
                for column in (0..font::WIDTH as i64).filter(|column| bits >> (2 - column) & 1 == 1) {
                    let dot_x = left + column * dot;
                    self.fill([dot_x, top, dot_x + dot, top + dot], [0, 0, 0]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(w: u32, h: u32) -> Image {
        Image::from_u8(w, h, PixelFormat::Gray8, vec![90; (w * h) as usize]).unwrap()
    }

    fn pixel(image: &Image, x: u32, y: u32) -> [u8; 3] {
        let at = 3 * (y * image.width() + x) as usize;
        image.as_u8().unwrap()[at..at + 3].try_into().unwrap()
    }

    #[test]
    fn a_box_has_the_colour_of_its_class_and_an_empty_middle() {
        let found = Detection { x1: 20.0, y1: 40.0, x2: 80.0, y2: 90.0, score: 0.5, class: 2 };
        let drawn = detections(&grey(100, 100), &[found], &[], 100);
        assert_eq!((drawn.width(), drawn.height(), drawn.format()), (100, 100, PixelFormat::Rgb8));
        for (x, y) in [(20, 40), (79, 89), (20, 89), (79, 60)] {
            assert_eq!(pixel(&drawn, x, y), PALETTE[2], "{x},{y}");
        }
        assert_eq!(pixel(&drawn, 50, 65), [90; 3]);
        assert_eq!(pixel(&drawn, 80, 90), [90; 3]);
        // The label lies above it: plate and ink.
        let plate = (20..60).flat_map(|x| (26..40).map(move |y| (x, y)));
        assert!(plate.clone().any(|(x, y)| pixel(&drawn, x, y) == [0; 3]));
        assert!(plate.clone().any(|(x, y)| pixel(&drawn, x, y) == PALETTE[2]));
    }

    #[test]
    fn large_images_shrink_with_their_boxes_and_small_ones_stay() {
        let found = Detection { x1: 400.0, y1: 200.0, x2: 800.0, y2: 400.0, score: 0.9, class: 0 };
        let drawn = detections(&grey(800, 400), &[found], &["x".into()], 200);
        assert_eq!((drawn.width(), drawn.height()), (200, 100));
        assert_eq!(pixel(&drawn, 199, 99), PALETTE[0]);
        assert_eq!(pixel(&drawn, 100, 75), PALETTE[0]);
        assert_eq!(pixel(&drawn, 150, 75), [90; 3]);
        assert_eq!(detections(&grey(8, 4), &[], &[], 200).width(), 8);
    }

    #[test]
    fn wild_boxes_and_names_stay_inside() {
        let wild = |v: f32| Detection { x1: -v, y1: v, x2: v, y2: -v, score: v, class: u32::MAX };
        let found = [wild(1e30), wild(f32::NAN), wild(f32::INFINITY), wild(0.0), wild(50.0)];
        for side in [0, 1, 7, 100] {
            let drawn = detections(&grey(31, 17), &found, &["a long name that has no room".into()], side);
            assert!(drawn.width() <= side.max(1));
        }
        let thermal = Image::from_u16(3, 2, vec![1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(detections(&thermal, &[], &[], 10).format(), PixelFormat::Rgb8);
    }
}
