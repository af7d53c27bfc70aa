//! Data sets on disk: readable, consistent with each other, the same bytes every time, and careful with other's files.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use prony_source::scenes::{class_names, scene};
use prony_source::{SourceError, folder, synth};
use prony_types::SceneKind;
use serde_json::Value;

fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            files.extend(tree(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn coco_and_ultralytics_say_what_the_scenes_say() {
    for kind in [SceneKind::Rgb, SceneKind::Thermal] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("new/set");
        let summary = synth::write(kind, 4, 7, &out, &|_| true).unwrap();
        let coco: Value = serde_json::from_slice(&fs::read(out.join("annotations/instances.json")).unwrap()).unwrap();
        let entries = |key: &str| coco[key].as_array().unwrap().clone();
        let names: Vec<_> = entries("categories").iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(names, class_names(kind));
        assert_eq!(entries("annotations").len() as u64, summary.objects);
        assert_eq!(entries("images").len(), 4);
        assert!(coco["info"]["description"].as_str().unwrap().contains(&kind.to_string()));

        let yaml = fs::read_to_string(out.join("data.yaml")).unwrap();
        for (class, name) in names.iter().enumerate() {
            assert!(yaml.contains(&format!("\n  {class}: {name}\n")), "{yaml}");
        }
        for (index, entry) in (0..).zip(entries("images")) {
            let made = scene(kind, 7, index);
            let file = out.join("images").join(entry["file_name"].as_str().unwrap());
            assert_eq!(folder::load(&file).unwrap(), made.image, "lossless");
            let (width, height) = (entry["width"].as_f64().unwrap(), entry["height"].as_f64().unwrap());
            assert_eq!((width as u32, height as u32), (made.image.width(), made.image.height()));

            let text = fs::read_to_string(out.join(format!("labels/{index:06}.txt"))).unwrap();
            let boxes: Vec<Value> =
                entries("annotations").into_iter().filter(|a| a["image_id"] == entry["id"]).collect();
            assert_eq!((boxes.len(), text.lines().count()), (made.truth.len(), made.truth.len()));
            for ((a, t), line) in boxes.iter().zip(&made.truth).zip(text.lines()) {
                let bbox: Vec<f64> = a["bbox"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
                assert_eq!(bbox, [t.x, t.y, t.w, t.h].map(f64::from));
                assert_eq!(a["area"].as_f64().unwrap(), f64::from(t.area));
                assert_eq!((a["category_id"].as_u64(), a["iscrowd"].as_u64()), (Some(u64::from(t.class) + 1), Some(0)));
                let label: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
                assert_eq!(label[0], f64::from(t.class));
                let [cx, cy, w, h] = [label[1] * width, label[2] * height, label[3] * width, label[4] * height];
                for (a, b) in [cx - w / 2.0, cy - h / 2.0, w, h].iter().zip(&bbox) {
                    assert!((a - b).abs() < 1e-3, "{line} {bbox:?}");
                }
            }
        }
        let mut ids: Vec<u64> = entries("annotations").iter().map(|a| a["id"].as_u64().unwrap()).collect();
        ids.dedup();
        assert_eq!(ids.len() as u64, summary.objects, "annotation ids are distinct");
    }
}

#[test]
fn same_seed_same_bytes_and_an_older_set_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    synth::write(SceneKind::Thermal, 3, 1, &a, &|_| true).unwrap();
    synth::write(SceneKind::Thermal, 5, 2, &b, &|_| true).unwrap();
    assert_ne!(tree(&a)["images/000000.png"], tree(&b)["images/000000.png"]);
    synth::write(SceneKind::Thermal, 3, 1, &b, &|_| true).unwrap();
    assert_eq!(tree(&a), tree(&b));
}

#[test]
fn progress_counts_and_can_stop() {
    let dir = tempfile::tempdir().unwrap();
    let calls = AtomicU32::new(0);
    let count = |_| calls.fetch_add(1, Ordering::Relaxed) < u32::MAX;
    synth::write(SceneKind::Thermal, 6, 1, dir.path(), &count).unwrap();
    assert_eq!(calls.into_inner(), 6);
    let error = synth::write(SceneKind::Thermal, 200, 1, dir.path(), &|done| done < 2).unwrap_err();
    assert!(matches!(error, SourceError::Interrupted { count: 200, done, .. } if (2..200).contains(&done)), "{error}");
    assert!(!dir.path().join("annotations/instances.json").exists(), "no truth about a part");
    synth::write(SceneKind::Thermal, 2, 1, dir.path(), &|_| true).unwrap();
}

#[test]
fn folders_of_others_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.txt"), b"years of work").unwrap();
    let error = synth::write(SceneKind::Rgb, 1, 1, dir.path(), &|_| true).unwrap_err();
    assert!(matches!(error, SourceError::ForeignFolder { .. }), "{error}");
    assert_eq!(tree(dir.path()).len(), 1);
    let file = dir.path().join("thesis.txt");
    assert!(matches!(
        synth::write(SceneKind::Rgb, 1, 1, &file, &|_| true).unwrap_err(),
        SourceError::NotAFolder { .. }
    ));
    let error = synth::write(SceneKind::Rgb, 0, 1, &dir.path().join("new"), &|_| true).unwrap_err();
    assert!(matches!(error, SourceError::Count { count: 0, .. }), "{error}");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn a_place_that_cannot_be_written_is_named_with_the_reason() {
    let error = synth::write(SceneKind::Thermal, 1, 1, Path::new("/proc/nowhere"), &|_| true).unwrap_err();
    assert!(matches!(error, SourceError::Io { .. }), "{error}");
    assert!(error.to_string().starts_with("/proc/nowhere"), "{error}");
    // A folder in the place of an older image.
    let dir = tempfile::tempdir().unwrap();
    synth::write(SceneKind::Thermal, 1, 1, dir.path(), &|_| true).unwrap();
    let image = dir.path().join("images/000000.png");
    fs::remove_file(&image).unwrap();
    fs::create_dir(&image).unwrap();
    let error = synth::write(SceneKind::Thermal, 1, 1, dir.path(), &|_| true).unwrap_err().to_string();
    assert!(error.contains("000000.png: cannot remove the old file: "), "{error}");
}
