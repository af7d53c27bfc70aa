//! Scenes as the network sees them, for `tools/train_detector.py`: `training_frames KIND COUNT SEED OUT`.
//!
//! Writes `frames.bin` (bytes, `[COUNT, H, W, C]`, resized and stretched as at run time but not yet padded),
//! `boxes.bin` (records of six little-endian 32-bit floats: frame, class, x1, y1, x2, y2 in pixels of those frames) and
//! `shape.json`. Every hundred scenes come from another seed, so that no sensor pattern can be learnt by heart.
#![expect(clippy::disallowed_macros, reason = "a tool for developers, whose output nobody cuts short")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use prony_source::scenes::{Scene, class_names, scene};
use prony_types::{Pixels, SceneKind};
use rayon::prelude::*;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, count, seed, out] = args.as_slice() else {
        eprintln!("usage: training_frames KIND COUNT SEED OUT");
        return ExitCode::from(2);
    };
    let (Ok(kind), Ok(count), Ok(seed)) = (kind.parse(), count.parse(), seed.parse()) else {
        eprintln!("KIND is rgb or thermal, COUNT and SEED are whole numbers");
        return ExitCode::from(2);
    };
    match write(kind, count, seed, Path::new(out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{out}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(kind: SceneKind, count: u32, seed: u64, out: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(out)?;
    let mut frames = BufWriter::new(File::create(out.join("frames.bin"))?);
    let mut boxes = BufWriter::new(File::create(out.join("boxes.bin"))?);
    // In slices, so that memory stays small however many are asked for.
    let numbers: Vec<u32> = (0..count).collect();
    for slice in numbers.chunks(1024) {
        let made: Vec<(u32, Scene, Vec<u8>)> = slice
            .par_iter()
            .map(|&i| {
                let scene = scene(kind, seed + u64::from(i / 100), i);
                let frame = shrink(&scene);
                (i, scene, frame)
            })
            .collect();
        for (i, scene, frame) in made {
            frames.write_all(&frame)?;
            let scale = 320.0 / scene.image.width() as f32;
            for t in &scene.truth {
                for value in
                    [i as f32, t.class as f32, t.x * scale, t.y * scale, (t.x + t.w) * scale, (t.y + t.h) * scale]
                {
                    boxes.write_all(&value.to_le_bytes())?;
                }
            }
        }
    }
    let (height, channels) = match kind {
        SceneKind::Rgb => (240, 3),
        SceneKind::Thermal => (256, 1),
    };
    let shape = serde_json::json!({
        "kind": kind.to_string(), "shape": [count, height, 320, channels], "names": class_names(kind),
    });
    std::fs::write(out.join("shape.json"), shape.to_string())?;
    frames.flush()?;
    boxes.flush()
}

fn shrink(scene: &Scene) -> Vec<u8> {
    match scene.image.pixels() {
        Pixels::U8(data) => halve(data, scene.image.width() as usize),
        Pixels::U16(data) => stretch(data),
    }
}

/// Bilinear at exactly half the size is the mean of two by two.
fn halve(data: &[u8], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() / 4);
    for rows in data.chunks_exact(width * 6) {
        let (above, below) = rows.split_at(width * 3);
        for (a, b) in above.chunks_exact(6).zip(below.chunks_exact(6)) {
            for k in 0..3 {
                let sum = u16::from(a[k]) + u16::from(a[k + 3]) + u16::from(b[k]) + u16::from(b[k + 3]);
                out.push(((sum + 2) / 4) as u8);
            }
        }
    }
    out
}

/// The contrast stretch of the run time: 1st to 99th percentile onto 0 to 255.
fn stretch(data: &[u16]) -> Vec<u8> {
    let mut histogram = vec![0_u64; 1 << 16];
    for &v in data {
        histogram[usize::from(v)] += 1;
    }
    let n = data.len() as u64;
    let percentile = |reached: &dyn Fn(u64) -> bool| {
        let mut below = 0;
        histogram.iter().position(|&here| {
            below += here;
            reached(below)
        })
    };
    let low = percentile(&|count| count * 100 > n).unwrap_or(0) as i64;
    let high = percentile(&|count| count * 100 >= 99 * n).unwrap_or(0) as i64;
    let range = (high - low).max(1);
    let level = |v: u16| ((((i64::from(v) - low) * 255 * 2 + range) / (range * 2)).clamp(0, 255)) as u8;
    if high == low { vec![0; data.len()] } else { data.iter().map(|&v| level(v)).collect() }
}
