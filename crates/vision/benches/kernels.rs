//! Our own kernels by themselves: `cargo bench -p prony-vision`.

use divan::{Bencher, black_box};
use prony_types::{Detection, Image, PixelFormat, PostSpec, TensorData, TensorView};
use prony_vision::{Decoder, Head, Letterbox, Preprocessor, Suppressor, thermal};

fn main() {
    divan::main();
}

/// Numbers without order, the same in every run.
fn noise(i: u32) -> u32 {
    let h = i.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let h = (h ^ (h >> 15)).wrapping_mul(277_803_737);
    h ^ (h >> 13)
}

fn unit(i: u32) -> f32 {
    (noise(i) >> 8) as f32 / (1 << 24) as f32
}

fn frame(w: u32, h: u32, format: PixelFormat) -> Image {
    let count = w * h * format.channels() as u32;
    let image = match format {
        PixelFormat::Gray16 => Image::from_u16(w, h, (0..count).map(|i| 8000 + (noise(i) % 900) as u16).collect()),
        _ => Image::from_u8(w, h, format, (0..count).map(|i| noise(i) as u8).collect()),
    };
    image.expect("the length is that of the sides")
}

fn preprocess(bencher: Bencher<'_, '_>, image: &Image, side: u32) {
    let mut pre = Preprocessor::new(side, side);
    let mut out = vec![0.0f32; (3 * side * side) as usize];
    bencher.bench_local(|| pre.run(black_box(image), &mut out));
}

/// Source width, height and network side: halved, thirded, shrunk unevenly, enlarged, copied.
#[divan::bench(args = [(1280, 720, 640), (1920, 1080, 640), (1280, 720, 320), (500, 375, 640), (640, 480, 640)])]
fn letterbox_colour(bencher: Bencher<'_, '_>, (w, h, side): (u32, u32, u32)) {
    preprocess(bencher, &frame(w, h, PixelFormat::Bgr8), side);
}

#[divan::bench(args = [(640, 512, 640), (320, 256, 320), (640, 512, 320)])]
fn letterbox_thermal(bencher: Bencher<'_, '_>, (w, h, side): (u32, u32, u32)) {
    preprocess(bencher, &frame(w, h, PixelFormat::Gray16), side);
}

#[divan::bench]
fn thermal_stretch(bencher: Bencher<'_, '_>) {
    let image = frame(640, 512, PixelFormat::Gray16);
    let words = image.as_u16().expect("made so");
    let mut out = Vec::new();
    bencher.bench_local(|| thermal::stretch(black_box(words), &mut out));
}

/// Boxes on a grid, one in `1/share` with a sure class.
fn dense(classes: usize, anchors: usize, share: f32, channel_major: bool) -> Vec<f32> {
    let width = 4 + classes;
    let value = |channel: usize, anchor: usize| {
        let seed = (anchor * width + channel) as u32;
        match channel {
            0 | 1 => 640.0 * unit(seed),
            2 | 3 => 10.0 + 100.0 * unit(seed),
            _ if unit(anchor as u32) < share && channel == 4 + anchor % classes => 0.3 + 0.7 * unit(seed),
            _ => 0.0009 * unit(seed),
        }
    };
    if channel_major {
        (0..width).flat_map(|c| (0..anchors).map(move |a| value(c, a))).collect()
    } else {
        (0..anchors).flat_map(|a| (0..width).map(move |c| value(c, a))).collect()
    }
}

fn decode(bencher: Bencher<'_, '_>, head: Head, shape: [usize; 3], data: &[f32]) {
    let mut decoder =
        Decoder::new(head, &PostSpec { conf: 0.25, iou: 0.45, max_det: 300, multi_label: false }, [640, 640]);
    let placed = Letterbox::new(1280, 720, 640, 640);
    let view = TensorView { name: "output0", shape: &shape, data: TensorData::F32(data) };
    let mut found = Vec::new();
    bencher.bench_local(|| decoder.decode(black_box(&[view]), 0, &placed, &mut found));
}

/// Share of anchors that are candidates.
#[divan::bench(args = [0.0, 0.1, 0.6])]
fn dense_80(bencher: Bencher<'_, '_>, share: f32) {
    let shape = [1, 84, 8400];
    let head = Head::Dense { output: 0, shape, classes: 80, transposed: false };
    decode(bencher, head, shape, &dense(80, 8400, share, true));
}

#[divan::bench(args = [0.0, 0.1, 0.6])]
fn dense_80_transposed(bencher: Bencher<'_, '_>, share: f32) {
    let shape = [1, 8400, 84];
    let head = Head::Dense { output: 0, shape, classes: 80, transposed: true };
    decode(bencher, head, shape, &dense(80, 8400, share, false));
}

#[divan::bench(args = [100, 1000, 10_000])]
fn suppress(bencher: Bencher<'_, '_>, count: u32) {
    let boxes: Vec<Detection> = (0..count)
        .map(|i| {
            let [x1, y1, w, h, score] = std::array::from_fn(|k| unit(5 * i + k as u32));
            let (x1, y1) = (600.0 * x1, 600.0 * y1);
            let (x2, y2) = (x1 + 10.0 + 100.0 * w, y1 + 10.0 + 100.0 * h);
            Detection { x1, y1, x2, y2, score, class: noise(i) % 10 }
        })
        .collect();
    let mut suppressor = Suppressor::default();
    bencher.bench_local(|| suppressor.run(black_box(&boxes), 0.45, 300).len());
}
