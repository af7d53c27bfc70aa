//! `prony data info` and `prony data subset` by the real binary. Downloads have a file of their own.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use support::{Place, expect_code, prony, stderr, stdout};

fn data(words: &[&str]) -> Output {
    prony().arg("data").args(words).output().unwrap()
}

/// Twelve scenes.
fn scenes(place: &Place) -> PathBuf {
    let set = place.path("set");
    expect_code(&data(&["synth", set.to_str().unwrap(), "--count", "12", "--quiet"]), 0);
    set
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn info(path: &Path, words: &[&str]) -> Output {
    data(&[&["info", path.to_str().unwrap()], words].concat())
}

#[test]
fn info_counts_what_is_there() {
    let place = Place::new();
    let set = scenes(&place);
    let output = info(&set, &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    for expected in ["coco: instances.json, 12 images", "images      12,", "categories  9", "red-ball", "problems    0"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let whole = json(&info(&set, &["--json", "--check"]));
    assert_eq!(whole["schema"], "prony.data/1");
    assert_eq!((&whole["images"], &whole["broken"]), (&12.into(), &Value::Array(Vec::new())));
    let sum: u64 = whole["categories"].as_array().unwrap().iter().map(|c| c["objects"].as_u64().unwrap()).sum();
    assert_eq!(whole["objects"], sum);
    let sizes: u64 = ["small", "medium", "large"].iter().map(|size| whole[size].as_u64().unwrap()).sum();
    assert_eq!(sizes, sum);
    // The same boxes in the other form, but for their areas.
    let yolo = json(&info(&set.join("data.yaml"), &["--json"]));
    assert_eq!(yolo["objects"], whole["objects"]);
    assert_ne!(yolo["sha256"], whole["sha256"]);
}

#[test]
fn info_names_what_is_wrong() {
    let place = Place::new();
    let set = scenes(&place);
    fs::write(set.join("images/000003.png"), b"").unwrap();
    fs::remove_file(set.join("images/000004.png")).unwrap();
    fs::write(set.join("images/000005.png"), b"no picture").unwrap();
    let output = info(&set, &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    for expected in
        ["images      10 of 12 can be used", "problems    2", "000003.png: is empty", "000004.png: cannot open"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let output = info(&set, &["--check"]);
    expect_code(&output, 1);
    let text = stdout(&output);
    assert!(text.contains("decoded     9 of 10 images") && text.contains("000005.png: cannot be decoded"), "{text}");
}

#[test]
fn what_is_no_data_set_is_one_line_and_exit_2() {
    let place = Place::new();
    let set = scenes(&place);
    let empty = place.path("empty");
    fs::create_dir(&empty).unwrap();
    let list = place.path("ids.txt");
    fs::write(&list, "3\nnosuch.png\n").unwrap();
    let cases: &[(&Path, &[&str], &str)] = &[
        (&place.path("nowhere"), &[], "nowhere: cannot open the data set"),
        (&empty, &[], "no data set in this folder"),
        (&set, &["--ids", list.to_str().unwrap()], "no such image in the data set: nosuch.png"),
        (&set, &["--images", "/nowhere"], "/nowhere: no such folder"),
        (&set.join("data.yaml"), &["--split", "test"], "no images for test; it has train, val"),
        (&set, &["--limit", "0"], "--limit"),
    ];
    for (path, words, expected) in cases {
        let output = info(path, words);
        expect_code(&output, 2);
        let text = stderr(&output);
        assert!(text.contains(expected) && text.lines().count() == 1, "{expected}: {text}");
    }
    fs::remove_dir_all(set.join("images")).unwrap();
    let output = info(&set, &[]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("no image of this data set can be used"), "{}", stderr(&output));
}

#[test]
fn a_subset_is_the_same_every_time() {
    let place = Place::new();
    let set = scenes(&place);
    let cut = |name: &str, words: &[&str]| {
        let out = place.path(name);
        let paths = ["subset", set.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"];
        let output = data(&[&paths, words].concat());
        expect_code(&output, 0);
        (out, json(&output))
    };
    let (first, said) = cut("first", &["--limit", "5", "--seed", "3"]);
    assert_eq!((&said["images"], &said["problem_count"]), (&5.into(), &0.into()));
    let seen = json(&info(&first, &["--json", "--check"]));
    assert_eq!((&seen["images"], &seen["sha256"]), (&5.into(), &said["sha256"]));
    let direct = json(&info(&set, &["--json", "--limit", "5", "--seed", "3"]));
    assert_eq!(direct["sha256"], said["sha256"], "the hash is that of the slice");

    let list = first.join("ids.txt");
    let (second, again) = cut("second", &["--ids", list.to_str().unwrap(), "--symlink"]);
    assert_eq!(again["sha256"], said["sha256"]);
    let images: Vec<PathBuf> =
        fs::read_dir(second.join("images")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!((images.len(), images.iter().all(|image| image.is_symlink())), (5, true));
    assert!(fs::read_to_string(&list).unwrap().contains(&format!("# sha256 {}", said["sha256"].as_str().unwrap())));

    let (small, scaled) = cut("small", &["--limit", "5", "--seed", "3", "--max-side", "160"]);
    assert_eq!((&scaled["scaled"], &scaled["objects"]), (&5.into(), &said["objects"]));
    assert_ne!(scaled["sha256"], said["sha256"]);
    let seen = json(&info(&small, &["--json", "--check"]));
    assert_eq!((&seen["broken"], &seen["sha256"]), (&Value::Array(Vec::new()), &scaled["sha256"]));
    assert!(seen["small"].as_u64() > direct["small"].as_u64());

    let output = data(&["subset", set.to_str().unwrap(), "--out", set.to_str().unwrap()]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("not empty and not made by this command"), "{}", stderr(&output));
}

#[test]
fn a_subset_leaves_broken_images_out_and_says_so() {
    let place = Place::new();
    let set = scenes(&place);
    fs::write(set.join("images/000005.png"), b"no picture").unwrap();
    let out = place.path("out");
    let output = data(&["subset", set.to_str().unwrap(), "--out", out.to_str().unwrap(), "--link"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("11 images"), "{}", stdout(&output));
    assert!(stderr(&output).contains("000005.png: cannot be decoded"), "{}", stderr(&output));
    expect_code(&info(&out, &["--check"]), 0);
}
