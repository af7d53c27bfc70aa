//! The colour camera: a lit world with a textured ground, shadows and sensor noise.

use super::angle::ONE;
use super::noise::texture;
use super::rng::Rng;
use super::shape::{Part, Shape, UNIT};
use super::view::{Mask, SAMPLES, View, spread};
use super::world::World;

type Color = [i32; 3];

/// Interleaved RGB bytes of what `view` sees.
pub(super) fn render(view: &View, world: &World, masks: &[Mask], seed: u64, index: u32) -> Vec<u8> {
    let mut rng = Rng::new(seed, index, 1);
    let mut canvas = ground(view, world, &mut rng);
    for patch in &world.patches {
        spread(view, patch, |i, cover| {
            let strength = patch.strength * cover / 600;
            canvas[i] = canvas[i].map(|c| (c + c * strength / 100).clamp(0, 255));
        });
    }
    let shade = rng.range(90, 170);
    for mask in masks {
        let look = Paint::new(&mut rng, mask);
        cast_shadow(view, world, mask, shade, &mut canvas);
        paint(view, world, mask, &look, &mut canvas);
    }
    develop(view, world, &canvas, &mut rng)
}

/// Ground of two mixed colours, and above the horizon a sky of one.
fn ground(view: &View, world: &World, rng: &mut Rng) -> Vec<Color> {
    let (width, height) = (view.width as usize, view.height as usize);
    let field = texture(rng, width, height, 6);
    let hue = rng.range(0, 1535);
    let first = hsv(hue, rng.range(10, 110), rng.range(60, 190));
    let second = hsv(hue + rng.range(-200, 200), rng.range(10, 110), rng.range(60, 190));
    let sky = hsv(rng.range(850, 1050), rng.range(10, 100), rng.range(120, 230));
    let hills = rng.range(0, 50);
    let mut canvas = Vec::with_capacity(field.len());
    for (y, row) in field.chunks_exact(width).enumerate() {
        // How far below the horizon; without one everything is.
        let below = world.horizon.map_or(view.height, |h| y as i32 - (h - view.top) / view.step);
        // The line of hills repeats the middle of the texture, whatever the row.
        let ridge = &field[(height / 2) * width..][..width];
        for (&n, &r) in row.iter().zip(ridge) {
            canvas.push(if below + ((hills * (r - 128)) >> 7) < 0 {
                let haze = 256 + below / 6 + ((n - 128) >> 4);
                sky.map(|c| (c * haze) >> 8)
            } else {
                [0, 1, 2].map(|k| first[k] + (((second[k] - first[k]) * n + (n - 128) * 40) >> 8))
            });
        }
    }
    canvas
}

/// The colours of one object.
struct Paint {
    body: Color,
    dark: Color,
    light: Color,
}

impl Paint {
    fn new(rng: &mut Rng, mask: &Mask) -> Paint {
        let (saturation, value) = (rng.range(150, 240), rng.range(130, 250));
        let hue = rng.range(0, 1535);
        let turn = rng.range(-60, 60);
        let body = match mask.object.class {
            // The twins: nothing but the hue tells them apart.
            0 => hsv(turn, saturation, value),
            1 => hsv(512 + turn, saturation, value),
            _ => hsv(hue, saturation, value),
        };
        let light = match mask.object.shape {
            Shape::Person => hsv(rng.range(70, 130), rng.range(70, 150), rng.range(90, 240)),
            Shape::Car => hsv(rng.range(900, 1000), rng.range(20, 70), rng.range(150, 230)),
            _ => body.map(|c| (c + 2 * 240) / 3),
        };
        let dark = match mask.object.shape {
            Shape::Car => [rng.range(20, 55); 3],
            Shape::Person => hsv(rng.range(0, 1535), rng.range(20, 150), rng.range(40, 120)),
            _ => body.map(|c| c * 5 / 8),
        };
        Paint { body, dark, light }
    }

    fn color(&self, part: Part) -> Color {
        match part {
            Part::Body => self.body,
            Part::Dark => self.dark,
            Part::Light => self.light,
        }
    }
}

fn cast_shadow(view: &View, world: &World, mask: &Mask, shade: i32, canvas: &mut [Color]) {
    let (lx, ly) = world.light_vector();
    let length = mask.object.radius.0.min(mask.object.radius.1) / (4 * view.step);
    let (dx, dy) = (-lx * length / ONE, -ly * length / ONE);
    for (y, left, row) in mask.rows() {
        let y = y + dy;
        if !(0..view.height).contains(&y) {
            continue;
        }
        for (x, &hits) in (left + dx..).zip(row) {
            if hits > 0 && (0..view.width).contains(&x) {
                let pixel = &mut canvas[(y * view.width + x) as usize];
                let keep = 256 - (256 - shade) * i32::from(hits) / i32::from(SAMPLES);
                *pixel = pixel.map(|c| (c * keep) >> 8);
            }
        }
    }
}

fn paint(view: &View, world: &World, mask: &Mask, look: &Paint, canvas: &mut [Color]) {
    let (lx, ly) = mask.light(world);
    let shape = mask.object.shape;
    for (y, left, row) in mask.rows() {
        let start = (y * view.width + left) as usize;
        let line = &mut canvas[start..start + row.len()];
        for ((pixel, &hits), (u, v)) in line.iter_mut().zip(row).zip(mask.points(view, y)) {
            if hits == 0 {
                continue;
            }
            let color = look.color(shape.part(u, v).unwrap_or(Part::Body));
            let facing = (u * lx + v * ly) / UNIT;
            let (lit, gleam) = if shape == Shape::Ball {
                // A sphere: bright where it faces the light, with a spot of the lamp itself.
                let (hu, hv) = (u - lx * 2 / 5, v - ly * 2 / 5);
                let spot = 80 - (hu * hu + hv * hv) / 1500;
                (256 + facing / 9 - (u * u + v * v) / 14_000, spot.max(0))
            } else {
                (256 + facing / 20, 0)
            };
            let hits = i32::from(hits);
            for (out, c) in pixel.iter_mut().zip(color) {
                let lit = ((c * lit) >> 8) + gleam;
                *out = (*out * (i32::from(SAMPLES) - hits) + lit.clamp(0, 255) * hits) / i32::from(SAMPLES);
            }
        }
    }
}

/// Exposure, falling light and noise: from the lit world to bytes.
fn develop(view: &View, world: &World, canvas: &[Color], rng: &mut Rng) -> Vec<u8> {
    let exposure = rng.range(200, 300);
    let fall = rng.range(0, 70);
    let grain = rng.range(2, 14);
    let (lx, ly) = world.light_vector();
    let mut bytes = vec![0; canvas.len() * 3];
    let rows = canvas.chunks_exact(view.width as usize).zip(bytes.chunks_exact_mut(view.width as usize * 3));
    for (y, (row, out)) in rows.enumerate() {
        let down = (y as i32 - view.height / 2) * ly / ONE;
        for (x, (color, out)) in row.iter().zip(out.as_chunks_mut::<3>().0).enumerate() {
            let across = (x as i32 - view.width / 2) * lx / ONE;
            let light = exposure + (across + down) * fall / 400;
            let dice = rng.bits();
            *out = [0, 1, 2].map(|k| {
                // Two bytes together: a triangle around 0, near enough to the noise of a sensor.
                let pair = (dice >> (16 * k)) as i32;
                let noise = (((pair & 255) + (pair >> 8 & 255) - 255) * grain) >> 7;
                (((color[k] * light) >> 8) + noise).clamp(0, 255) as u8
            });
        }
    }
    bytes
}

/// Colour from hue (1536 to the circle), saturation and value (0 to 255).
fn hsv(hue: i32, saturation: i32, value: i32) -> Color {
    let hue = hue.rem_euclid(1536);
    let low = value * (255 - saturation) / 255;
    let rising = low + (value - low) * (hue & 255) / 255;
    let falling = value - (value - low) * (hue & 255) / 255;
    match hue >> 8 {
        0 => [value, rising, low],
        1 => [falling, value, low],
        2 => [low, value, rising],
        3 => [low, falling, value],
        4 => [rising, low, value],
        _ => [value, low, falling],
    }
}

#[cfg(test)]
mod tests {
    use super::hsv;

    #[test]
    fn hues_are_where_they_belong() {
        assert_eq!(hsv(0, 255, 200), [200, 0, 0]);
        assert_eq!(hsv(512, 255, 200), [0, 200, 0]);
        assert_eq!(hsv(1024, 255, 200), [0, 0, 200]);
        assert_eq!(hsv(-512, 255, 200), hsv(1024, 255, 200));
        assert_eq!(hsv(700, 0, 90), [90, 90, 90]);
    }
}
