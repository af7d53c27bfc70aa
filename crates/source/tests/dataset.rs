//! Data sets as they are found: read, cut and written again, with everything that is wrong with them named.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use image::{GrayImage, Rgb, RgbImage};
use prony_source::dataset::subset::{self, SubsetSpec, Transfer};
use prony_source::dataset::{self, Dataset, summary};
use prony_source::folder::Loader;
use prony_source::{SourceError, scenes, synth};
use prony_types::{ChosenImages, DataSource, DataSpec, SceneKind};
use tempfile::TempDir;

fn spec(path: &Path) -> DataSpec {
    let source = DataSource::Path(path.to_path_buf());
    DataSpec { source, split: None, limit: None, seed: 7, ids: None, images: None }
}

fn open(path: &Path) -> Dataset {
    dataset::open(&spec(path), SceneKind::Rgb).unwrap()
}

fn refusal(spec: &DataSpec) -> String {
    dataset::open(spec, SceneKind::Rgb).unwrap_err().to_string()
}

fn picture(path: &Path, width: u32, height: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, 99])).save(path).unwrap();
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Everything that the field has seen go wrong, in one COCO set.
fn broken_coco() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let images = root.join("val2017");
    picture(&images.join("good.jpg"), 64, 48);
    picture(&images.join("dot.png"), 1, 1);
    picture(&images.join("strip.png"), 20_000, 20);
    picture(&images.join("other.png"), 30, 20);
    fs::write(images.join("empty.jpg"), b"").unwrap();
    fs::write(images.join("broken.jpg"), b"\xFF\xD8\xFF\xE0 no more of it").unwrap();
    let json = r#"{
      "images": [
        {"id": 9, "file_name": "strip.png", "width": 20000, "height": 20},
        {"id": 4, "file_name": "broken.jpg", "width": 64, "height": 48},
        {"id": 1, "file_name": "good.jpg", "width": 64, "height": 48},
        {"id": 2, "file_name": "dot.png", "width": 1, "height": 1},
        {"id": 3, "file_name": "empty.jpg", "width": 64, "height": 48},
        {"id": 5, "file_name": "gone.jpg", "width": 64, "height": 48},
        {"id": 6, "file_name": "other.png", "width": 60, "height": 40}
      ],
      "annotations": [
        {"id": 11, "image_id": 1, "category_id": 7, "bbox": [1.5, 2, 10, 12.25], "area": 99.5, "iscrowd": 0},
        {"id": 12, "image_id": 1, "category_id": 3, "bbox": [0, 0, 64, 48], "area": 3000, "iscrowd": 1},
        {"id": 13, "image_id": 1, "category_id": 3, "bbox": [NaN, 0, 5, 5], "area": 25, "iscrowd": 0},
        {"id": 14, "image_id": 777, "category_id": 3, "bbox": [0, 0, 5, 5], "area": 25, "iscrowd": 0},
        {"id": 15, "image_id": 2, "category_id": 7, "bbox": [0, 0, 1, 1], "area": 1, "iscrowd": 0},
        {"id": 16, "image_id": 5, "category_id": 7, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}
      ],
      "categories": [{"id": 7, "name": "cat"}, {"id": 3, "name": "dog"}, {"id": 8, "name": "nobody"}]
    }"#;
    put(&root.join("annotations/instances_val2017.json"), json);
    put(&root.join("annotations/captions_val2017.json"), "{}");
    dir
}

#[test]
fn a_broken_coco_set_is_opened_and_everything_wrong_is_named() {
    let dir = broken_coco();
    let data = open(dir.path());
    assert_eq!(data.name, "coco: instances_val2017.json, 7 images");
    assert_eq!(
        data.categories.iter().map(|c| (c.id, c.name.as_str())).collect::<Vec<_>>(),
        [(3, "dog"), (7, "cat"), (8, "nobody")]
    );
    assert_eq!(data.chosen, 7);
    assert_eq!(data.images.iter().map(|image| image.id).collect::<Vec<_>>(), [1, 2, 4, 6, 9]);
    let truths = data.truths(0);
    assert_eq!(truths.len(), 2);
    assert_eq!(
        (truths[0].category, truths[0].x, truths[0].h, truths[0].area, truths[0].crowd),
        (1, 1.5, 12.25, 99.5, false)
    );
    assert_eq!((truths[1].category, truths[1].crowd), (0, true));
    assert_eq!([truths[0].id, truths[1].id, data.truths(1)[0].id], [11, 12, 15]);

    let said: Vec<&str> = data.problems.named().collect();
    for expected in
        ["annotation 13", "annotation 14", "category 8 (nobody)", "empty.jpg: is empty", "gone.jpg: cannot open"]
    {
        assert!(said.iter().any(|line| line.contains(expected)), "{expected}: {said:?}");
    }
    assert_eq!(data.problems.count(), 5, "{said:?}");
    let record = data.record();
    assert_eq!((record.chosen, record.images, record.objects, record.problem_count), (7, 5, 3, 5));

    let mut loader = Loader::default();
    assert_eq!(data.load(0, &mut loader).unwrap().width(), 64);
    let dot = data.load(1, &mut loader).unwrap();
    assert_eq!((dot.width(), dot.height(), data.truths(1).len()), (1, 1, 1));
    let mut why = |index| data.load(index, &mut loader).unwrap_err().to_string();
    assert!(why(2).contains("broken.jpg: cannot be decoded"), "{}", why(2));
    assert!(why(3).contains("other.png: is 30x20, but its labels are for 60x40"), "{}", why(3));
    assert!(why(4).contains("strip.png: 20000x20 is too large to decode"), "{}", why(4));
    let broken = summary::check(&data, &|_| true);
    assert_eq!(broken.len(), 3, "{broken:?}");
    assert!(broken[0].contains("broken.jpg") && broken[2].contains("strip.png"), "{broken:?}");
}

#[test]
fn half_a_jpeg_is_no_image_of_a_data_set() {
    let dir = broken_coco();
    let file = dir.path().join("val2017/good.jpg");
    let whole = fs::read(&file).unwrap();
    // Within the picture: half of so small a file is tables.
    fs::write(&file, &whole[..whole.len() - 200]).unwrap();
    let data = open(dir.path());
    let error = data.load(0, &mut Loader::default()).unwrap_err();
    assert!(matches!(error, SourceError::BadImage { .. }), "{error}");
    assert!(error.to_string().contains("good.jpg: ends early: "), "{error}");
    assert!(summary::check(&data, &|_| true)[0].contains("good.jpg: ends early"));
    assert_eq!(Loader::default().load(&file).unwrap().width(), 64, "a folder shows what there is");
    fs::write(&file, whole).unwrap();
    assert_eq!(data.load(0, &mut Loader::default()).unwrap().width(), 64);
}

#[test]
fn a_summary_counts_by_class_and_by_size() {
    let dir = broken_coco();
    let summary = summary::summary(&open(dir.path()));
    assert_eq!((summary.images, summary.empty_images, summary.objects, summary.crowds), (5, 3, 3, 1));
    assert_eq!((summary.small, summary.medium, summary.large), (2, 1, 0));
    let counts: Vec<_> = summary.categories.iter().map(|c| (c.objects, c.images)).collect();
    assert_eq!(counts, [(1, 1), (2, 2), (0, 0)]);
}

#[test]
fn images_are_found_in_every_usual_place_or_where_one_says() {
    let json =
        r#"{"images": [{"id": 1, "file_name": "a.png"}], "annotations": [], "categories": [{"id": 1, "name": "x"}]}"#;
    let cases = [
        ("annotations/instances_val2017.json", "val2017/a.png"),
        ("annotations/instances_val2017.json", "images/val2017/a.png"),
        ("annotations/instances_val2017.json", "val2017/images/a.png"),
        ("annotations/instances.json", "images/a.png"),
        ("annotations/instances.json", "a.png"),
        ("valid/_annotations.coco.json", "valid/a.png"),
        ("instances.json", "images/a.png"),
    ];
    for (file, image) in cases {
        let dir = tempfile::tempdir().unwrap();
        put(&dir.path().join(file), json);
        picture(&dir.path().join(image), 5, 4);
        let data = open(&dir.path().join(file));
        assert_eq!(data.images.len(), 1, "{file} {image}");
        assert_eq!(data.load(0, &mut Loader::default()).unwrap().width(), 5);
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("instances.json");
    put(&file, json);
    let error = refusal(&spec(&file));
    assert!(error.contains("no image of this data set can be used") && error.contains("--images DIR"), "{error}");
    picture(&dir.path().join("far/away/a.png"), 5, 4);
    let there = DataSpec { images: Some(dir.path().join("far/away")), ..spec(&file) };
    assert_eq!(dataset::open(&there, SceneKind::Rgb).unwrap().images.len(), 1);
    let nowhere = DataSpec { images: Some(dir.path().join("nowhere")), ..spec(&file) };
    assert!(refusal(&nowhere).contains("no such folder"));
}

#[test]
fn of_several_parts_the_named_one_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for (part, image) in [("train2017", "t.png"), ("val2017", "v.png")] {
        let json = format!(
            r#"{{"images": [{{"id": 1, "file_name": "{image}"}}], "annotations": [], "categories": [{{"id": 1, "name": "x"}}]}}"#
        );
        put(&dir.path().join(format!("annotations/instances_{part}.json")), &json);
        picture(&dir.path().join(part).join(image), 5, 4);
    }
    assert_eq!(open(dir.path()).images[0].name, "v.png");
    let split = |name: &str| DataSpec { split: Some(name.to_owned()), ..spec(dir.path()) };
    assert_eq!(dataset::open(&split("train"), SceneKind::Rgb).unwrap().images[0].name, "t.png");
    let error = refusal(&split("test"));
    assert!(error.contains("instances_train2017.json, instances_val2017.json"), "{error}");
}

#[test]
fn what_is_no_data_set_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    assert!(refusal(&spec(&root.join("nowhere"))).contains("cannot open the data set"));
    assert!(refusal(&spec(root)).contains("no data set in this folder"));
    put(&root.join("notes.txt"), "x");
    assert!(refusal(&spec(&root.join("notes.txt"))).contains("not a data set"));
    put(&root.join("instances.json"), "{\"images\": [");
    assert!(matches!(dataset::open(&spec(root), SceneKind::Rgb), Err(SourceError::Malformed { .. })));
    put(&root.join("instances.json"), r#"{"images": [], "annotations": [], "categories": []}"#);
    assert!(refusal(&spec(root)).contains("it has none"));
}

/// A tree of Ultralytics' kind.
fn yolo() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for (name, label) in [
        ("000000000007.jpg", "0 0.5 0.5 0.5 0.5\n1 0.25 0.25 0.5 0.5\n0 0.5 0.5 0.5 0.5\n"),
        ("000000000003.jpg", "1 0.25 0.5 0.75 0.25 0.5 0.75\n"),
        ("12.png", ""),
        ("13.png", "0 0.5 0.5 0.5 0.5\n5 0.5 0.5 0.5 0.5\n"),
        ("14.png", "0 0.5 0.5\n"),
    ] {
        picture(&root.join("images/val").join(name), 80, 40);
        let stem = name.split('.').next().unwrap();
        put(&root.join(format!("labels/val/{stem}.txt")), label);
    }
    picture(&root.join("images/val/deeper/15.png"), 80, 40);
    fs::write(root.join("images/val/16.jpg"), b"no image").unwrap();
    fs::write(root.join("images/val/17.webp"), b"RIFF").unwrap();
    put(
        &root.join("data.yaml"),
        "train: images/train\nval: images/val # the held-out part\nnames:\n  0: cat\n  1: 'big dog'\n",
    );
    dir
}

#[test]
fn a_data_yaml_is_read_as_ultralytics_reads_it() {
    let dir = yolo();
    let data = open(dir.path());
    assert_eq!(data.name, "ultralytics: data.yaml (val), 7 images");
    assert_eq!(data.categories[1].name, "big dog");
    assert_eq!(data.images.iter().map(|image| image.id).collect::<Vec<_>>(), [3, 7, 12, 15]);
    assert_eq!(data.images[0].size, Some((80, 40)));
    let polygon = data.truths(0)[0];
    assert_eq!((polygon.category, polygon.x, polygon.y, polygon.w, polygon.h), (1, 20.0, 10.0, 40.0, 20.0));
    assert_eq!(data.truths(1).len(), 2, "twins count once");
    assert_eq!((data.truths(2).len(), data.truths(3).len()), (0, 0));
    assert_eq!([polygon.id, data.truths(1)[0].id, data.truths(1)[1].id], [1, 2, 3]);
    assert_eq!(data.chosen, 7);
    let kinds: Vec<_> = data.problems.kinds().map(|(kind, count, _)| (kind, count)).collect();
    let expected = [
        ("images of another format", 1),
        ("images that cannot be read", 1),
        ("images with labels twice", 1),
        ("images without a label file", 1),
        ("spoiled label files", 2),
    ];
    assert_eq!(kinds, expected);
    let said: Vec<&str> = data.problems.named().collect();
    assert!(said.iter().any(|line| line.contains("13.txt, line 2: class 5 is not below 2")), "{said:?}");
}

#[test]
fn a_data_yaml_may_have_lists_of_names_folders_and_files() {
    let dir = yolo();
    let root = dir.path();
    picture(&root.join("images/more/20.png"), 10, 10);
    put(&root.join("data.yaml"), "path: .\nval: [images/val, images/more]\nnc: 2\nnames: [cat, 'big dog']\n");
    assert_eq!(open(root).images.len(), 5);
    put(&root.join("some.txt"), "./images/val/12.png\nimages/more/20.png\n\nimages/val/gone.png\n");
    put(&root.join("data.yaml"), "path: /moved/away\nval: some.txt\nnames: [cat, dog]\n");
    let data = open(root);
    // Not every name is a number, so all are counted.
    assert_eq!(
        data.images.iter().map(|image| (image.id, image.name.as_str())).collect::<Vec<_>>(),
        [(0, "20.png"), (1, "12.png")]
    );
    let said: Vec<&str> = data.problems.named().collect();
    assert!(said.iter().any(|line| line.contains("gone.png: cannot open the image")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("/moved/away: no such folder")), "{said:?}");

    put(&root.join("data.yaml"), "val: ../images/val\nnc: 2\n");
    let data = open(root);
    assert_eq!((data.images.len(), data.categories[1].name.as_str()), (4, "class_1"));

    let cases = [
        ("val: images/val\nnc: 3\nnames: [a, b]\n", "nc is 3, but there are 2 names"),
        ("val: images/val\n", "neither names nor nc"),
        ("train: images/val\nnames: [a]\n", "no images for val; it has train"),
        ("val: nowhere\nnames: [a]\n", "nowhere: no such folder or list"),
        ("val: images/val\nnames: {0: a, 2: b}\n", "without holes"),
        ("val: images/val\nnames: &x [a]\n", "data.yaml: line 2: `&`"),
    ];
    for (text, expected) in cases {
        put(&root.join("data.yaml"), text);
        let error = refusal(&spec(root));
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn scenes_on_disk_are_the_scenes_in_memory() {
    for kind in [SceneKind::Rgb, SceneKind::Thermal] {
        let dir = tempfile::tempdir().unwrap();
        synth::write(kind, 6, 99, dir.path(), &|_| true).unwrap();
        let memory = DataSpec { source: DataSource::Scenes, limit: Some(6), seed: 99, ..spec(dir.path()) };
        let memory = dataset::open(&memory, kind).unwrap();
        assert_eq!(memory.name, format!("scenes: {kind}, 6 images, seed 99"));
        // Both forms are in the folder; COCO is preferred.
        let disk = open(dir.path());
        assert!(disk.name.starts_with("coco: instances.json"), "{}", disk.name);
        assert_eq!(disk.sha256, memory.sha256);
        assert!(memory.problems.count() == 0 && memory.objects() > 6);
        let (mut a, mut b) = (Loader::default(), Loader::default());
        for index in 0..6 {
            assert_eq!(memory.load(index, &mut a).unwrap(), disk.load(index, &mut b).unwrap());
            assert_eq!(memory.truths(index), disk.truths(index));
        }
        // The other form has the same boxes, rounded.
        let yolo = open(&dir.path().join("data.yaml"));
        assert_eq!(yolo.objects(), disk.objects());
        for index in 0..6 {
            for (a, b) in yolo.truths(index).iter().zip(disk.truths(index)) {
                assert_eq!(a.category, b.category);
                assert!([a.x - b.x, a.y - b.y, a.w - b.w, a.h - b.h].iter().all(|gap| gap.abs() < 0.01), "{a:?} {b:?}");
            }
        }
        assert_eq!(scenes::scene_truth(kind, 99, 3), scenes::scene(kind, 99, 3).truth);
    }
}

fn many(count: i64) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    // Backwards, so that nothing can rest on the order.
    let images: Vec<String> = (0..count)
        .rev()
        .map(|id| {
            let name = format!("{id:04}.png");
            fs::create_dir_all(dir.path().join("images")).unwrap();
            GrayImage::new(8, 8).save(dir.path().join("images").join(&name)).unwrap();
            format!(r#"{{"id": {id}, "file_name": "{name}", "width": 8, "height": 8}}"#)
        })
        .collect();
    let boxes: Vec<String> = (0..count)
        .map(|id| {
            format!(r#"{{"id": {}, "image_id": {id}, "category_id": 1, "bbox": [1, 1, 4, {}.25], "area": 16, "iscrowd": 0}}"#, id + 1, id % 7)
        })
        .collect();
    let json = format!(
        r#"{{"images": [{}], "annotations": [{}], "categories": [{{"id": 1, "name": "x"}}]}}"#,
        images.join(","),
        boxes.join(",")
    );
    put(&dir.path().join("annotations/instances.json"), &json);
    dir
}

#[test]
fn a_slice_is_the_same_every_time_and_cut_again_from_its_list() {
    let dir = many(60);
    let cut = |limit, seed| dataset::open(&DataSpec { limit, seed, ..spec(dir.path()) }, SceneKind::Rgb).unwrap();
    let first = cut(Some(10), 7);
    assert_eq!(first.name, "coco: instances.json, 10 of 60 images, seed 7");
    assert_eq!((first.images.len(), &first.sha256), (10, &cut(Some(10), 7).sha256));
    assert_ne!(first.sha256, cut(Some(10), 8).sha256);
    assert_ne!(first.sha256, cut(None, 7).sha256);
    assert!(first.images.is_sorted_by_key(|image| image.id));

    let list = dir.path().join("list.txt");
    let lines: Vec<String> = first.images.iter().map(|image| image.id.to_string()).collect();
    fs::write(&list, lines.join("\n")).unwrap();
    let again = DataSpec { ids: Some(list.clone()), ..spec(dir.path()) };
    let again = dataset::open(&again, SceneKind::Rgb).unwrap();
    assert_eq!(again.sha256, first.sha256);
    assert_eq!(again.name, "coco: instances.json, 10 of 60 images of list.txt");

    // A file that is missing here is still part of what was chosen.
    fs::remove_file(dir.path().join("images").join(&first.images[3].name)).unwrap();
    let poorer = cut(Some(10), 7);
    assert_eq!((poorer.chosen, poorer.images.len(), &poorer.sha256), (10, 9, &first.sha256));
}

fn write(
    data: &Dataset,
    out: &Path,
    transfer: Transfer,
    max_side: Option<u32>,
) -> Result<subset::SubsetSummary, SourceError> {
    subset::write(data, &SubsetSpec { out, transfer, max_side }, &|_| true)
}

#[test]
fn a_subset_holds_the_slice_and_has_its_hash() {
    let dir = many(30);
    // From 0, as some programs count; the subset is scored as the whole is.
    let file = dir.path().join("annotations/instances.json");
    let text = fs::read_to_string(&file).unwrap();
    let slice_of_one = dataset::open(&DataSpec { limit: Some(8), ..spec(dir.path()) }, SceneKind::Rgb).unwrap();
    let text = (0..30).fold(text, |text, id| {
        text.replace(&format!(r#""id": {}, "image_id""#, id + 1), &format!(r#""id": {id}, "image_id""#))
    });
    fs::write(&file, text).unwrap();
    let slice = dataset::open(&DataSpec { limit: Some(8), ..spec(dir.path()) }, SceneKind::Rgb).unwrap();
    for transfer in [Transfer::Copy, Transfer::Link, Transfer::Symlink] {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("cut");
        let summary = write(&slice, &out, transfer, None).unwrap();
        assert_eq!((summary.images, summary.objects, summary.scaled), (8, 8, 0));
        assert_eq!(summary.sha256, slice.sha256);
        assert_eq!(summary.sha256, slice_of_one.sha256, "ids of objects are not hashed");
        let back = open(&out);
        for index in 0..8 {
            assert_eq!((back.truths(index), back.truths(index)[0].id), (slice.truths(index), back.images[index].id));
        }
        assert_eq!((back.images.len(), &back.sha256), (8, &slice.sha256));
        let list = DataSpec { ids: Some(out.join("ids.txt")), ..spec(dir.path()) };
        assert_eq!(dataset::open(&list, SceneKind::Rgb).unwrap().sha256, slice.sha256);
        let first = out.join("images").join(&back.images[0].name);
        assert_eq!(first.is_symlink(), transfer == Transfer::Symlink);

        // Once more and smaller: ours to write over, and nothing of the old one stays.
        let fewer = dataset::open(&DataSpec { limit: Some(3), ..spec(dir.path()) }, SceneKind::Rgb).unwrap();
        fs::write(out.join("images/mine.txt"), "keep").unwrap();
        write(&fewer, &out, transfer, None).unwrap();
        assert_eq!(fs::read_dir(out.join("images")).unwrap().count(), 4);
        assert_eq!(open(&out).sha256, fewer.sha256);
        assert!(
            slice.images.iter().all(|image| dir.path().join("images").join(&image.name).exists()),
            "the source stays"
        );
    }
    let error = write(&slice, dir.path(), Transfer::Copy, None).unwrap_err();
    assert!(matches!(error, SourceError::ForeignFolder { .. }), "{error}");
    let place = tempfile::tempdir().unwrap();
    let stopped =
        subset::write(&slice, &SubsetSpec { out: place.path(), transfer: Transfer::Copy, max_side: None }, &|_| false);
    assert!(matches!(stopped, Err(SourceError::Interrupted { .. })), "{stopped:?}");
    write(&slice, place.path(), Transfer::Copy, None).expect("a folder that was left half done is still ours");
}

/// Names and contents of the files of a folder, through links.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// A run that was stopped after six images.
fn interrupted(data: &Dataset, out: &Path, transfer: Transfer) {
    // One after the other: with many threads all could be under way by then.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let spec = SubsetSpec { out, transfer, max_side: None };
    let stopped = alone.install(|| subset::write(data, &spec, &|done| done < 6));
    assert!(matches!(stopped, Err(SourceError::Interrupted { done: 6, .. })), "{stopped:?}");
    let links = fs::read_dir(out.join("images")).unwrap().filter(|entry| {
        let meta = entry.as_ref().unwrap().path().symlink_metadata().unwrap();
        meta.is_symlink() || std::os::unix::fs::MetadataExt::nlink(&meta) > 1
    });
    assert_eq!(links.count(), 6);
}

#[test]
fn what_an_interrupted_run_linked_is_never_written_through() {
    for link in [Transfer::Link, Transfer::Symlink] {
        for (transfer, max_side) in [(link, None), (Transfer::Copy, None), (Transfer::Copy, Some(4)), (link, Some(4))] {
            let dir = many(12);
            let originals = contents(&dir.path().join("images"));
            let data = open(dir.path());
            let place = tempfile::tempdir().unwrap();
            let out = place.path();
            interrupted(&data, out, link);
            // As a run that was killed between two steps leaves it.
            std::os::unix::fs::symlink(&originals[0].0, out.join("images/.prony-1-1.part")).unwrap();

            let again = write(&data, out, transfer, max_side).unwrap();
            assert_eq!(again.images, 12, "{link:?}, then {transfer:?} {max_side:?}");
            assert!(contents(&dir.path().join("images")) == originals, "{link:?}, then {transfer:?} {max_side:?}");
            assert_eq!(contents(&out.join("images")).len(), 12, "{link:?}, then {transfer:?} {max_side:?}");
            assert_eq!(open(out).sha256, again.sha256);

            // A smaller slice after one that was not finished: nothing of the larger one stays, but what is not ours.
            interrupted(&data, out, link);
            fs::write(out.join("images/mine.txt"), "keep").unwrap();
            let few = dataset::open(&DataSpec { limit: Some(2), ..spec(dir.path()) }, SceneKind::Rgb).unwrap();
            write(&few, out, transfer, max_side).unwrap();
            assert_eq!(contents(&out.join("images")).len(), 3);
            assert!(contents(&dir.path().join("images")) == originals);
        }
    }
}

#[test]
fn a_link_that_stands_where_an_image_goes_is_replaced() {
    // Folders of earlier versions do not say what they were going to write.
    let dir = many(3);
    let originals = contents(&dir.path().join("images"));
    let data = open(dir.path());
    for (transfer, max_side) in
        [(Transfer::Link, None), (Transfer::Symlink, None), (Transfer::Copy, None), (Transfer::Copy, Some(4))]
    {
        let place = tempfile::tempdir().unwrap();
        put(&place.path().join("ids.txt"), "# made by `prony data subset` of x\n# not finished\n");
        fs::create_dir(place.path().join("images")).unwrap();
        fs::hard_link(&originals[0].0, place.path().join("images/0000.png")).unwrap();
        std::os::unix::fs::symlink(&originals[1].0, place.path().join("images/0001.png")).unwrap();
        assert_eq!(write(&data, place.path(), transfer, max_side).unwrap().images, 3);
        assert!(contents(&dir.path().join("images")) == originals, "{transfer:?} {max_side:?}");
        assert_eq!(contents(&place.path().join("images")).len(), 3, "{transfer:?} {max_side:?}");
    }
}

#[test]
fn a_slice_is_not_cut_into_the_folder_that_it_is_read_from() {
    let dir = many(6);
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    write(&open(dir.path()), &first, Transfer::Copy, None).unwrap();
    write(&open(&first), &second, Transfer::Symlink, None).unwrap();
    let before = contents(&first.join("images"));
    for from in [&first, &second] {
        let error = write(&open(from), &first, Transfer::Copy, Some(4)).unwrap_err().to_string();
        assert!(error.contains("read from this folder"), "{error}");
        assert!(contents(&first.join("images")) == before);
        assert_eq!(open(&first).images.len(), 6);
    }
}

#[test]
fn a_subset_scales_images_with_their_boxes_and_leaves_broken_ones_out() {
    let dir = broken_coco();
    let data = open(dir.path());
    let place = tempfile::tempdir().unwrap();
    let summary = write(&data, place.path(), Transfer::Symlink, Some(32)).unwrap();
    assert_eq!((summary.images, summary.scaled, summary.objects), (2, 1, 3));
    let said: Vec<&str> = summary.problems.named().collect();
    assert!(said.iter().any(|line| line.contains("strip.png")), "{said:?}");
    let back = open(place.path());
    assert_eq!(back.sha256, summary.sha256);
    assert_eq!(back.images[0].size, Some((32, 24)));
    let truth = back.truths(0)[0];
    assert_eq!([truth.x, truth.y, truth.w, truth.h, truth.area], [0.75, 1.0, 5.0, 6.125, 99.5 / 4.0]);
    assert!(back.truths(0)[1].crowd);
    let mut loader = Loader::default();
    let small = back.load(0, &mut loader).unwrap();
    // The middle of the ramp is still the middle.
    let middle: Vec<u8> = small.as_u8().unwrap()[(12 * 32 + 16) * 3..][..3].to_vec();
    assert!(middle[0].abs_diff(32) < 6 && middle[1].abs_diff(24) < 6 && middle[2].abs_diff(99) < 6, "{middle:?}");
    assert!(place.path().join("images/dot.png").is_symlink(), "small enough as it is");
}

#[test]
fn names_from_a_file_never_leave_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("deep/set");
    let json = r#"{"images": [
        {"id": 1, "file_name": "../../escape.png"}, {"id": 2, "file_name": "a/x.png"}, {"id": 3, "file_name": "b/x.png"}],
        "annotations": [], "categories": [{"id": 1, "name": "x"}]}"#;
    put(&root.join("instances.json"), json);
    picture(&dir.path().join("escape.png"), 4, 4);
    picture(&root.join("a/x.png"), 5, 5);
    picture(&root.join("b/x.png"), 6, 6);
    let out = dir.path().join("one/two/out");
    let summary = write(&open(&root), &out, Transfer::Copy, None).unwrap();
    assert_eq!(summary.images, 3);
    let mut names: Vec<PathBuf> =
        fs::read_dir(out.join("images")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names, ["escape.png", "id-3.png", "x.png"].map(|name| out.join("images").join(name)));
    assert_eq!(open(&out).load(2, &mut Loader::default()).unwrap().width(), 6);
}

#[test]
fn chosen_images_come_back_from_their_file_as_they_were() {
    let (dir, out) = (broken_coco(), tempfile::tempdir().unwrap());
    let data = open(dir.path());
    let (list, root) = data.to_chosen().unwrap();
    assert!(!String::from_utf8_lossy(&list).contains(dir.path().to_str().unwrap()), "paths are relative");
    let file = out.path().join("data.json");
    fs::write(&file, &list).unwrap();
    let chosen = ChosenImages { file, sha256: dataset::chosen_sha256(&list), root, record: data.record() };
    let read = dataset::read_chosen(&chosen).unwrap();
    assert_eq!((&read.images, &read.categories), (&data.images, &data.categories));
    assert!((0..data.images.len()).all(|index| read.truths(index) == data.truths(index)));
    assert_eq!(read.record(), data.record());
    let mut loader = Loader::default();
    assert!((0..read.images.len()).any(|index| read.load(index, &mut loader).is_ok()));
}

#[test]
fn a_list_of_chosen_images_that_others_put_there_is_refused() {
    let (dir, out) = (broken_coco(), tempfile::tempdir().unwrap());
    let data = open(dir.path());
    let (list, root) = data.to_chosen().unwrap();
    let file = out.path().join("data.json");
    let sha256 = dataset::chosen_sha256(&list);
    let chosen = ChosenImages { file: file.clone(), sha256, root, record: data.record() };
    fs::write(&file, [&list[..], b" "].concat()).unwrap();
    let error = dataset::read_chosen(&chosen).unwrap_err().to_string();
    assert!(error.ends_with("the list of chosen images changed during the run"), "{error}");
    fs::remove_file(&file).unwrap();
    fs::write(out.path().join("other"), &list).unwrap();
    std::os::unix::fs::symlink(out.path().join("other"), &file).unwrap();
    assert!(dataset::read_chosen(&chosen).is_err(), "a link is not followed");
    // One whose hash fits, and whose counts do not.
    let text = String::from_utf8(list).unwrap().replacen("\"objects\":", "\"objects\":9", 1);
    fs::remove_file(&file).unwrap();
    fs::write(&file, &text).unwrap();
    let wrong = ChosenImages { sha256: dataset::chosen_sha256(text.as_bytes()), ..chosen };
    assert!(dataset::read_chosen(&wrong).is_err());
}
