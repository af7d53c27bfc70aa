//! Held against OpenCV and Ultralytics: the files in `golden/` come from `tools/golden/vision_golden.py`.
#![expect(clippy::disallowed_macros, reason = "tests")]
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::path::PathBuf;

use npyz::NpyFile;
use prony_types::{
    DType, Detection, HeadChoice, Image, Metadata, PixelFormat, PostSpec, TensorData, TensorSpec, TensorView,
};
use prony_vision::{Decoder, Head, Letterbox, Preprocessor};
use serde::Deserialize;

#[derive(Deserialize)]
struct Index {
    letterboxes: Vec<LetterboxCase>,
    decodings: Vec<DecodingCase>,
}

#[derive(Deserialize)]
struct LetterboxCase {
    name: String,
    seed: u32,
    src: [u32; 2],
    dst: [u32; 2],
    grey: bool,
    scaled: [u32; 2],
    pad: [u32; 4],
}

#[derive(Deserialize)]
struct DecodingCase {
    file: String,
    head: String,
    conf: f32,
    iou: f32,
    max_det: u32,
    src: [u32; 2],
    #[serde(default)]
    multi_label: bool,
    boxes: Vec<[f32; 6]>,
}

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

fn index() -> Index {
    serde_json::from_slice(&std::fs::read(path("index.json")).unwrap()).unwrap()
}

fn read<T: npyz::Deserialize>(name: &str) -> (Vec<usize>, Vec<T>) {
    let bytes = std::fs::read(path(&format!("{name}.npy"))).unwrap();
    let file = NpyFile::new(&bytes[..]).unwrap();
    let shape = file.shape().iter().map(|&d| d as usize).collect();
    (shape, file.into_vec().unwrap())
}

/// The bytes that the script made its images of.
fn noise(count: usize, seed: u32) -> Vec<u8> {
    let byte = |i: u32| {
        let h = i.wrapping_add(seed).wrapping_mul(747796405).wrapping_add(2891336453);
        let h = (h ^ (h >> 15)).wrapping_mul(277803737);
        ((h ^ (h >> 13)) >> 24) as u8
    };
    (0..count as u32).map(byte).collect()
}

#[test]
fn letterboxes_are_opencvs_to_the_pixel() {
    let cases = index().letterboxes;
    assert!(cases.len() >= 16);
    for case in cases {
        let ([sw, sh], [dw, dh]) = (case.src, case.dst);
        let (format, channels) = if case.grey { (PixelFormat::Gray8, 1) } else { (PixelFormat::Bgr8, 3) };
        let pixels = noise((sw * sh) as usize * channels, case.seed);
        let image = Image::from_u8(sw, sh, format, pixels).unwrap();
        let mut got = Vec::new();
        let placed = Preprocessor::new(dw, dh).letterbox_u8(&image, &mut got);
        assert_eq!([placed.new_w, placed.new_h], case.scaled, "{}", case.name);
        let pad = [placed.pad_left, placed.pad_top, placed.pad_right, placed.pad_bottom];
        assert_eq!(pad, case.pad, "{}", case.name);

        let (shape, want) = read::<u8>(&format!("letterbox_{}", case.name));
        assert_eq!(shape[..2], [dh as usize, dw as usize], "{}", case.name);
        let want = if case.grey { want.into_iter().flat_map(|v| [v; 3]).collect() } else { want };
        assert_eq!(got.len(), want.len(), "{}", case.name);
        let worst = got.iter().zip(&want).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        let exact = got.iter().zip(&want).filter(|(a, b)| a == b).count();
        println!("{}: {exact} of {} exact, at most {worst} off", case.name, got.len());
        assert!(worst <= 1, "{}: {worst} grey levels off", case.name);
    }
}

/// Rows become columns, as other exporters write the same head.
fn transposed(shape: &[usize], data: &[f32]) -> (Vec<usize>, Vec<f32>) {
    let (rows, columns) = (shape[1], shape[2]);
    let turned = (0..rows * columns).map(|i| data[i % rows * columns + i / rows]).collect();
    (vec![shape[0], columns, rows], turned)
}

fn check(case: &DecodingCase, head: Head, shape: &[usize], data: &[f32]) {
    let what = format!("{} at {} and {}: {head}", case.file, case.conf, case.iou);
    let post = PostSpec { conf: case.conf, iou: case.iou, max_det: case.max_det, multi_label: case.multi_label };
    let mut decoder = Decoder::new(head, &post, [160, 160]);
    let placed = Letterbox::new(case.src[0], case.src[1], 160, 160);
    let mut found: Vec<Detection> = Vec::new();
    let view = TensorView { name: "output0", shape, data: TensorData::F32(data) };
    for _ in 0..2 {
        decoder.decode(&[view], 0, &placed, &mut found).unwrap();
        assert_eq!(found.len(), case.boxes.len(), "{what}");
        for (i, (got, want)) in found.iter().zip(&case.boxes).enumerate() {
            let numbers = [got.x1, got.y1, got.x2, got.y2, got.score, got.class as f32];
            let near = numbers.iter().zip(want).all(|(a, b)| (a - b).abs() <= 1e-3);
            assert!(near && got.class == want[5] as u32, "{what}, box {i}: {numbers:?} instead of {want:?}");
        }
    }
}

#[test]
fn boxes_are_ultralytics_in_the_same_order() {
    let cases = index().decodings;
    let most = cases.iter().map(|case| case.boxes.len()).max();
    let several = cases.iter().filter(|case| case.multi_label).count();
    assert!(cases.len() >= 26 && most > Some(300) && several >= 8, "the golden files hold too little");
    for case in cases {
        let (shape, data) = read::<f32>(&case.file);
        let choice: HeadChoice = case.head.parse().unwrap();
        let spec = |shape: &[usize]| [TensorSpec { name: "output0".into(), dtype: DType::F32, shape: shape.into() }];
        let head = Head::choose(choice, &spec(&shape), &Metadata::default(), Some([160, 160])).unwrap();
        check(&case, head, &shape, &data);
        if choice == HeadChoice::Dense {
            let (shape, data) = transposed(&shape, &data);
            let head = Head::choose(choice, &spec(&shape), &Metadata::default(), Some([160, 160])).unwrap();
            assert!(matches!(head, Head::Dense { transposed: true, .. }));
            check(&case, head, &shape, &data);
        }
    }
}
