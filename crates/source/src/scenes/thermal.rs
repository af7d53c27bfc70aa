//! The heat camera: the same world in 14-bit counts. Warm things are a few percent of the range above their
//! surroundings, under sensor noise, the stripes of the columns' amplifiers and a lens that darkens the corners.

use super::noise::texture;
use super::rng::Rng;
use super::shape::{Part, Shape};
use super::view::{Mask, SAMPLES, View, spread};
use super::world::World;

/// The sensor counts to this.
const FULL: i32 = (1 << 14) - 1;

/// Counts of what `view` sees.
pub(super) fn render(view: &View, world: &World, masks: &[Mask], seed: u64, index: u32) -> Vec<u16> {
    let mut rng = Rng::new(seed, index, 2);
    let ambient = rng.range(6800, 8800);
    let mut canvas = ground(view, world, ambient, &mut rng);
    for patch in &world.patches {
        spread(view, patch, |i, cover| canvas[i] += patch.strength * cover / 150);
    }
    for mask in masks {
        warm(view, world, mask, ambient, &mut rng, &mut canvas);
    }
    let canvas = blur(view, &canvas);
    read_out(view, seed, &canvas, &mut rng)
}

fn ground(view: &View, world: &World, ambient: i32, rng: &mut Rng) -> Vec<i32> {
    let (width, height) = (view.width as usize, view.height as usize);
    let mut canvas = texture(rng, width, height, 5);
    let relief = rng.range(80, 320);
    let slope = (rng.range(-120, 120), rng.range(-120, 120));
    let sky = rng.range(-320, -80);
    let skyline = world.horizon.map_or(i32::MIN, |h| (h - view.top) / view.step);
    for (y, row) in canvas.chunks_exact_mut(width).enumerate() {
        for (x, pixel) in row.iter_mut().enumerate() {
            let tilt = slope.0 * x as i32 / view.width + slope.1 * y as i32 / view.height;
            let above = (y as i32) < skyline;
            let texture = (*pixel - 128) * relief / if above { 1024 } else { 256 };
            *pixel = ambient + tilt + texture + if above { sky } else { 0 };
        }
    }
    canvas
}

fn warm(view: &View, world: &World, mask: &Mask, ambient: i32, rng: &mut Rng, canvas: &mut [i32]) {
    let shape = mask.object.shape;
    let heat = rng.range(260, 900);
    // Heads and engines are warmer than clothes and glass.
    let (dark, light) = match shape {
        Shape::Person => (heat * 7 / 8, heat * 5 / 4),
        Shape::Car => (heat * 5 / 4, heat / 2),
        _ => (heat * 3 / 4, heat * 5 / 4),
    };
    let (lx, ly) = mask.light(world);
    for (y, left, row) in mask.rows() {
        let start = (y * view.width + left) as usize;
        let line = &mut canvas[start..start + row.len()];
        for ((pixel, &hits), (u, v)) in line.iter_mut().zip(row).zip(mask.points(view, y)) {
            if hits == 0 {
                continue;
            }
            let level = match shape.part(u, v) {
                Some(Part::Dark) => dark,
                Some(Part::Light) => light,
                Some(Part::Body) | None => heat,
            };
            // The side towards the sun is warmer; a ball is cooler at its limb.
            let limb = if shape == Shape::Ball { ((u * u + v * v) >> 10) * heat / 4096 } else { 0 };
            let sun = ((u * lx + v * ly) >> 10) * heat / 8192;
            let (hits, all) = (i32::from(hits), i32::from(SAMPLES));
            *pixel = (*pixel * (all - hits) + (ambient + level + sun - limb) * hits) / all;
        }
    }
}

/// The lens: one, two, one in both directions.
fn blur(view: &View, canvas: &[i32]) -> Vec<i32> {
    let width = view.width as usize;
    let mut across = Vec::with_capacity(canvas.len());
    for row in canvas.chunks_exact(width) {
        let at = |x: usize| row[x.min(width - 1)];
        across.extend((0..width).map(|x| at(x.saturating_sub(1)) + 2 * at(x) + at(x + 1)));
    }
    let rows = canvas.len() / width;
    let mut out = Vec::with_capacity(canvas.len());
    for y in 0..rows {
        let line = |y: usize| &across[y.min(rows - 1) * width..][..width];
        let (above, here, below) = (line(y.saturating_sub(1)), line(y), line(y + 1));
        out.extend((0..width).map(|x| (above[x] + 2 * here[x] + below[x] + 8) >> 4));
    }
    out
}

fn read_out(view: &View, seed: u64, canvas: &[i32], rng: &mut Rng) -> Vec<u16> {
    // The pattern belongs to the sensor: it is the same in every scene of a seed.
    let mut sensor = Rng::new(seed, 0, 3);
    let uneven = sensor.range(8, 24);
    let columns: Vec<i32> = (0..view.width).map(|_| sensor.range(-uneven, uneven)).collect();
    let vignette = sensor.range(40, 160);
    let grain = rng.range(14, 60);
    let (cx, cy) = (view.width / 2, view.height / 2);
    let corner = cx * cx + cy * cy;
    let mut counts = Vec::with_capacity(canvas.len());
    for (y, row) in canvas.chunks_exact(view.width as usize).enumerate() {
        for ((x, &heat), &column) in row.iter().enumerate().zip(&columns) {
            let (dx, dy) = (x as i32 - cx, y as i32 - cy);
            let dice = rng.bits();
            // Four bytes together come close to a bell.
            let bell = (0..4).map(|k| (dice >> (8 * k) & 255) as i32).sum::<i32>() - 510;
            let dim = (dx * dx + dy * dy) * vignette / corner;
            counts.push((heat + column - dim + ((bell * grain) >> 8)).clamp(0, FULL) as u16);
        }
    }
    counts
}
