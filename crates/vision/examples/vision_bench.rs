//! The Rust side of `bench/vision_vs_python`: `vision_bench DIR` loads `image.npy` (BGR) and `tensor.npy` from DIR and
//! then answers one line of JSON a command on stdin, so that both sides can take turns.
//!
//! `letterbox N`: milliseconds of N runs; the network's input goes to DIR/input.f32.
//! `decode CONF IOU N`: milliseconds of N runs, and the boxes.
#![expect(clippy::disallowed_macros, reason = "a tool for developers, whose output nobody cuts short")]

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use npyz::NpyFile;
use prony_types::{
    DType, Detection, HeadChoice, Image, Metadata, PixelFormat, PostSpec, TensorData, TensorSpec, TensorView,
};
use prony_vision::{Decoder, Head, Letterbox, Preprocessor};
use serde_json::{Value, json};

const SIDE: u32 = 640;

struct Bench {
    dir: PathBuf,
    image: Image,
    shape: Vec<usize>,
    tensor: Vec<f32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("usage: vision_bench DIR")?);
    let (shape, pixels) = read::<u8>(&dir.join("image.npy"))?;
    let image = Image::from_u8(shape[1] as u32, shape[0] as u32, PixelFormat::Bgr8, pixels).ok_or("not an image")?;
    let (shape, tensor) = read::<f32>(&dir.join("tensor.npy"))?;
    let bench = Bench { dir, image, shape, tensor };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["letterbox", count] => bench.letterbox(count.parse()?)?,
            ["decode", conf, iou, count] => bench.decode(conf.parse()?, iou.parse()?, count.parse()?)?,
            _ => return Err(format!("unknown command `{line}`").into()),
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn read<T: npyz::Deserialize>(path: &Path) -> Result<(Vec<usize>, Vec<T>), Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let file = NpyFile::new(&bytes[..])?;
    let shape = file.shape().iter().map(|&d| d as usize).collect();
    Ok((shape, file.into_vec()?))
}

fn timed(count: usize, mut work: impl FnMut()) -> Vec<f64> {
    let run = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..count).map(run).collect()
}

impl Bench {
    fn letterbox(&self, count: usize) -> Result<Value, Box<dyn Error>> {
        let mut pre = Preprocessor::new(SIDE, SIDE);
        let mut out = vec![0.0f32; (3 * SIDE * SIDE) as usize];
        pre.run(&self.image, &mut out);
        let ms = timed(count, || {
            black_box(pre.run(black_box(&self.image), &mut out));
        });
        let bytes: Vec<u8> = out.iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(self.dir.join("input.f32"), bytes)?;
        Ok(json!({ "ms": ms }))
    }

    fn decode(&self, conf: f32, iou: f32, count: usize) -> Result<Value, Box<dyn Error>> {
        let spec = TensorSpec { name: "output0".into(), dtype: DType::F32, shape: self.shape.clone() };
        let head = Head::choose(HeadChoice::Auto, &[spec], &Metadata::default(), Some([SIDE, SIDE]))?;
        let mut decoder = Decoder::new(head, &PostSpec { conf, iou, max_det: 300, multi_label: false }, [SIDE, SIDE]);
        let placed = Letterbox::new(self.image.width(), self.image.height(), SIDE, SIDE);
        let view = TensorView { name: "output0", shape: &self.shape, data: TensorData::F32(&self.tensor) };
        let mut found: Vec<Detection> = Vec::new();
        decoder.decode(&[view], 0, &placed, &mut found)?;
        let mut failed = None;
        let ms = timed(count, || {
            failed = decoder.decode(black_box(&[view]), 0, &placed, &mut found).err();
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let boxes: Vec<_> = found.iter().map(|b| [b.x1, b.y1, b.x2, b.y2, b.score, b.class as f32]).collect();
        Ok(json!({ "ms": ms, "boxes": boxes }))
    }
}
