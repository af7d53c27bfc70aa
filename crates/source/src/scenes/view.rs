//! What a camera sees of the world: the pixels each object covers, and what is left of them behind nearer objects.

use prony_types::GroundTruth;

use super::angle::ONE;
use super::shape::UNIT;
use super::world::{Frame, Object, PIXEL, Patch, World};

/// Samples a pixel, two by two: edges come in four steps.
pub(super) const SAMPLES: u8 = 4;

/// A camera: its pixels, and the part of the world that they look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// Columns.
    pub(super) width: i32,
    /// Rows.
    pub(super) height: i32,
    /// World units to a pixel.
    pub(super) step: i32,
    /// World height of the first row.
    pub(super) top: i32,
    /// Objects with fewer visible pixels are left out.
    pub(super) min_pixels: u32,
}

impl View {
    /// The colour camera: 640x480.
    pub(super) const RGB: View = View { width: 640, height: 480, step: PIXEL, top: 16 * PIXEL, min_pixels: 60 };
    /// The heat camera: 320x256, the same world at half the scale.
    pub(super) const THERMAL: View = View { width: 320, height: 256, step: 2 * PIXEL, top: 0, min_pixels: 30 };

    /// Pixels.
    pub(super) fn len(&self) -> usize {
        (self.width * self.height) as usize
    }
}

/// The pixels of one object, clipped to the image.
pub(super) struct Mask {
    /// The object.
    pub(super) object: Object,
    /// First column.
    pub(super) left: i32,
    /// First row.
    pub(super) top: i32,
    /// Columns.
    pub(super) width: i32,
    /// Samples that hit, by pixel, from 0 to [`SAMPLES`].
    pub(super) cover: Vec<u8>,
    /// Pixels that it would have without borders and neighbours.
    whole: u32,
}

impl Mask {
    fn new(view: &View, object: Object) -> Mask {
        let reach = object.reach();
        let span = |center: i32, origin: i32, size: i32| {
            let first = (center - reach - origin).div_euclid(view.step);
            let last = (center + reach - origin).div_euclid(view.step);
            (first, last, first.clamp(0, size), (last + 1).clamp(0, size))
        };
        let (x0, x1, left, right) = span(object.x, 0, view.width);
        let (y0, y1, top, bottom) = span(object.y, view.top, view.height);
        let frame = Frame::new((object.x, object.y), object.radius, object.angle, UNIT);
        let width = right - left;
        let mut cover = vec![0; (width * (bottom - top)) as usize];
        let mut whole = 0;
        let mut line = vec![0_u8; (x1 - x0 + 1) as usize];
        for y in y0..=y1 {
            line.fill(0);
            for half in [1, 3] {
                let quarter = view.step / 4;
                let points =
                    frame.row(x0 * view.step + quarter, view.top + y * view.step + half * quarter, 2 * quarter);
                for (i, (u, v)) in points.take(line.len() * 2).enumerate() {
                    line[i / 2] += u8::from(object.shape.part(u, v).is_some());
                }
            }
            whole += line.iter().filter(|&&hits| owns(hits)).count() as u32;
            if (top..bottom).contains(&y) {
                let row = &mut cover[((y - top) * width) as usize..][..width as usize];
                row.copy_from_slice(&line[(left - x0) as usize..][..width as usize]);
            }
        }
        Mask { object, left, top, width, cover, whole }
    }

    /// Each row: its number, its first column and the samples that hit.
    pub(super) fn rows(&self) -> impl Iterator<Item = (i32, i32, &[u8])> {
        let rows = self.cover.chunks_exact(self.width.max(1) as usize);
        rows.zip(self.top..).map(|(row, y)| (y, self.left, row))
    }

    /// The object's own coordinates at the middle of each pixel of a row.
    pub(super) fn points(&self, view: &View, y: i32) -> impl Iterator<Item = (i32, i32)> + use<> {
        let half = view.step / 2;
        let object = &self.object;
        let frame = Frame::new((object.x, object.y), object.radius, object.angle, UNIT);
        frame.row(self.left * view.step + half, view.top + y * view.step + half, view.step)
    }

    /// The direction to the light in the object's own coordinates, [`UNIT`] long.
    pub(super) fn light(&self, world: &World) -> (i32, i32) {
        let angle = world.light - self.object.angle;
        (super::angle::cos(angle) * UNIT / ONE, super::angle::sin(angle) * UNIT / ONE)
    }
}

/// Whether a pixel counts as the object's.
fn owns(hits: u8) -> bool {
    hits * 2 >= SAMPLES
}

/// The masks that stay, far to near, and the truth about each in the same order. An object of which less than a
/// quarter can be seen is taken out of the picture: it would be a riddle, and no one could say whether it is there.
pub(super) fn look(view: &View, world: &World) -> (Vec<Mask>, Vec<GroundTruth>) {
    let mut taken = vec![false; view.len()];
    let mut kept = Vec::new();
    for object in world.objects.iter().rev() {
        let mask = Mask::new(view, *object);
        let (mut x0, mut y0, mut x1, mut y1, mut seen) = (i32::MAX, i32::MAX, i32::MIN, i32::MIN, 0_u32);
        for (y, left, row) in mask.rows() {
            for (x, &hits) in (left..).zip(row) {
                if owns(hits) && !taken[(y * view.width + x) as usize] {
                    (x0, y0, x1, y1) = (x0.min(x), y0.min(y), x1.max(x), y1.max(y));
                    seen += 1;
                }
            }
        }
        if seen < view.min_pixels || seen * 4 < mask.whole {
            continue;
        }
        for (y, left, row) in mask.rows() {
            for (x, &hits) in (left..).zip(row) {
                taken[(y * view.width + x) as usize] |= owns(hits);
            }
        }
        let truth = GroundTruth {
            x: x0 as f32,
            y: y0 as f32,
            w: (x1 - x0 + 1) as f32,
            h: (y1 - y0 + 1) as f32,
            class: object.class as u32,
            area: seen as f32,
            crowd: false,
        };
        kept.push((mask, truth));
    }
    kept.reverse();
    kept.into_iter().unzip()
}

/// Calls `paint` with each pixel of a patch that lies in the image and how strongly it is covered, up to 256.
pub(super) fn spread(view: &View, patch: &Patch, mut paint: impl FnMut(usize, i32)) {
    const EDGE: i32 = 256;
    let reach = patch.radius.0.max(patch.radius.1);
    let clip = |center: i32, origin: i32, size: i32| {
        let first = (center - reach - origin).div_euclid(view.step).clamp(0, size);
        (first, ((center + reach - origin).div_euclid(view.step) + 1).clamp(0, size))
    };
    let (left, right) = clip(patch.x, 0, view.width);
    let (top, bottom) = clip(patch.y, view.top, view.height);
    let frame = Frame::new((patch.x, patch.y), patch.radius, patch.angle, EDGE);
    for y in top..bottom {
        let points = frame.row(left * view.step, view.top + y * view.step, view.step);
        for (x, (u, v)) in (left..right).zip(points) {
            let inside = EDGE * EDGE - u * u - v * v;
            if inside > 0 {
                paint((y * view.width + x) as usize, inside / EDGE);
            }
        }
    }
}
