//! Laws of the built-in scenes, and their bytes, which must be the same on every machine.

use prony_source::scenes::{CLASS_NAMES, Scene, class_names, scene, scene_size};
use prony_types::{PixelFormat, Pixels, SceneKind};
use sha2::{Digest, Sha256};

const KINDS: [SceneKind; 2] = [SceneKind::Rgb, SceneKind::Thermal];

fn digest(scenes: impl Iterator<Item = Scene>) -> String {
    let mut hash = Sha256::new();
    for scene in scenes {
        match scene.image.pixels() {
            Pixels::U8(data) => hash.update(data),
            Pixels::U16(data) => data.iter().for_each(|v| hash.update(v.to_le_bytes())),
        }
        for t in &scene.truth {
            for figure in [t.x, t.y, t.w, t.h, t.area, t.class as f32, f32::from(u8::from(t.crowd))] {
                hash.update(figure.to_le_bytes());
            }
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The detectors were trained on exactly these worlds: a change here means training them again.
#[test]
fn bytes_are_pinned() {
    let rgb = digest((0..6).map(|i| scene(SceneKind::Rgb, 7, i)));
    let thermal = digest((0..6).map(|i| scene(SceneKind::Thermal, 7, i)));
    assert_eq!(rgb, "9b1c2dd549916cf5af508a1b143120e9bab0e05cb30364fb10873ccc04d9b018");
    assert_eq!(thermal, "72f5efa48fed738356d6e137c22973e88eabd639ac3a02d42e3ed6ebbfbec7a7");
}

#[test]
fn seed_and_index_decide_everything() {
    for kind in KINDS {
        let base = scene(kind, 11, 3);
        assert_eq!(base, scene(kind, 11, 3));
        assert_ne!(base.image, scene(kind, 12, 3).image);
        assert_ne!(base.truth, scene(kind, 12, 3).truth);
        assert_ne!(base.image, scene(kind, 11, 4).image);
    }
}

#[test]
fn classes_are_named_and_the_twins_merge_in_heat() {
    assert_eq!(class_names(SceneKind::Rgb), CLASS_NAMES);
    assert_eq!(CLASS_NAMES[..2], ["red-ball", "green-ball"]);
    assert_eq!(class_names(SceneKind::Thermal)[0], "ball");
    assert_eq!(class_names(SceneKind::Thermal)[1..], CLASS_NAMES[2..]);
}

#[test]
fn every_class_and_every_coco_size_occurs() {
    for kind in KINDS {
        let mut classes = vec![0; class_names(kind).len()];
        let mut sizes = [0; 3];
        let mut at_border = 0;
        for index in 0..50 {
            let (width, height) = scene_size(kind);
            for t in scene(kind, 21, index).truth {
                classes[t.class as usize] += 1;
                sizes[if t.area < 32.0 * 32.0 { 0 } else { 1 + usize::from(t.area >= 96.0 * 96.0) }] += 1;
                at_border +=
                    i32::from(t.x == 0.0 || t.y == 0.0 || t.x + t.w == width as f32 || t.y + t.h == height as f32);
            }
        }
        assert!(classes.iter().all(|&n| n >= 5), "{kind}: {classes:?}");
        assert!(sizes.iter().all(|&n| n >= 5), "{kind}: {sizes:?}");
        assert!(at_border >= 10, "{kind}: {at_border}");
    }
}

#[test]
fn boxes_lie_inside_and_hold_their_pixels() {
    for kind in KINDS {
        let (width, height) = scene_size(kind);
        let mut overlaps = 0;
        for index in 0..50 {
            let Scene { image, truth } = scene(kind, 5, index);
            assert_eq!((image.width(), image.height()), (width, height));
            assert!(truth.len() <= 14);
            for t in &truth {
                assert!(t.x >= 0.0 && t.y >= 0.0 && t.w >= 1.0 && t.h >= 1.0, "{t:?}");
                assert!(t.x + t.w <= width as f32 && t.y + t.h <= height as f32, "{t:?}");
                assert!(t.area >= 30.0 && t.area <= t.w * t.h, "{t:?}");
                assert!(!t.crowd);
            }
            for (i, a) in truth.iter().enumerate() {
                overlaps += truth[..i]
                    .iter()
                    .filter(|b| a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
                    .count();
            }
        }
        assert!(overlaps > 25, "{kind}: {overlaps}");
    }
}

/// The hue inside a ball's box says which twin it is, and nothing else does: the same share of both is bright.
#[test]
fn twins_differ_in_hue() {
    let mut seen = [0, 0];
    for index in 0..40 {
        let Scene { image, truth } = scene(SceneKind::Rgb, 9, index);
        let data = image.as_u8().unwrap();
        for t in truth.iter().filter(|t| t.class < 2 && t.area > 0.7 * t.w * t.h) {
            let (x, y) = ((t.x + t.w / 2.0) as usize, (t.y + t.h / 2.0) as usize);
            let (mut red, mut green) = (0, 0);
            for pixel in data[(y * 640 + x - 2) * 3..][..15].chunks(3) {
                red += i32::from(pixel[0]);
                green += i32::from(pixel[1]);
            }
            seen[t.class as usize] += 1;
            assert_eq!(u32::from(green > red), t.class, "scene {index}: {t:?}");
        }
    }
    assert!(seen.iter().all(|&n| n > 10), "{seen:?}");
}

#[test]
fn heat_is_a_few_percent_of_the_sensor_and_in_the_same_places() {
    let mut compared = 0;
    for index in 0..10 {
        let cold = scene(SceneKind::Thermal, 4, index);
        assert_eq!(cold.image.format(), PixelFormat::Gray16);
        let mut counts = cold.image.as_u16().unwrap().to_vec();
        counts.sort_unstable();
        let spread = counts[counts.len() * 99 / 100] - counts[counts.len() / 100];
        assert!((150..2500).contains(&spread), "{spread}");
        assert!(counts[0] > 4000 && *counts.last().unwrap() < 12_000);
        // A box of the colour image, halved and moved down by the rows that only the heat camera sees.
        for t in scene(SceneKind::Rgb, 4, index).truth {
            let same = |h: &&prony_types::GroundTruth| {
                let off = (h.x - t.x / 2.0).abs().max((h.y - 8.0 - t.y / 2.0).abs());
                h.class == t.class.saturating_sub(1) && off <= 1.5
            };
            compared += usize::from(cold.truth.iter().any(|h| same(&h)));
        }
    }
    assert!(compared > 40, "{compared}");
}
