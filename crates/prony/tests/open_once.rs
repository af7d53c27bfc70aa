//! How often a run opens the files that it is given.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use prony_types::SceneKind;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use support::{Place, SHORT, expect_code, prony};

/// Counts how often files are opened, by whomever.
struct Opens {
    inotify: rustix::fd::OwnedFd,
    watched: BTreeMap<i32, PathBuf>,
}

impl Opens {
    fn of(files: &[&Path]) -> Opens {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
        // Of equal events in a row only one is kept, so closing is watched too.
        let flags = WatchFlags::OPEN | WatchFlags::CLOSE;
        let watch = |&file: &&Path| (add_watch(&inotify, file, flags).unwrap(), file.to_owned());
        let watched = files.iter().map(watch).collect();
        Opens { inotify, watched }
    }

    fn counted(&self, file: &Path) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 64 << 10];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        let mut count = 0;
        while let Ok(event) = events.next() {
            assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW));
            let opened = event.events().contains(ReadFlags::OPEN);
            count += usize::from(opened && self.watched[&event.wd()] == file);
        }
        count
    }
}

/// Scenes as a data set on disk; its annotations.
fn data(place: &Place) -> (PathBuf, PathBuf) {
    let set = place.path("set");
    let args = ["data", "synth", "--kind", "rgb", "--count", "12", "--seed", "99"];
    expect_code(&prony().args(args).arg(&set).output().unwrap(), 0);
    let is_annotations = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let mut folders = vec![set.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if is_annotations(&path) {
                return (set, path);
            }
        }
    }
    panic!("no annotations");
}

fn model(place: &Place) -> PathBuf {
    let path = place.path("x.onnx");
    fs::write(&path, prony_model::builtin(SceneKind::Rgb)).unwrap();
    path
}

#[test]
fn the_annotations_were_read_again_by_every_cell() {
    let place = Place::new();
    let ((set, annotations), model) = (data(&place), model(&place));
    let opens = Opens::of(&[&annotations]);
    let args = [&["--precision", "fp32,int8", "--limit", "4", "--calibration-frames", "4"][..], &SHORT].concat();
    let home = place.path("home");
    let output = place.bench(&args).arg(&model).arg("--data").arg(&set).env("PRONY_HOME", &home).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    assert_eq!(record.cells.len(), 2);
    assert!(record.cells.iter().all(|cell| cell.accuracy.as_ref().is_some_and(|accuracy| accuracy.images == 4)));
    assert_eq!(opens.counted(&annotations), 1);
}

#[test]
fn a_model_was_read_for_every_question_about_it() {
    let place = Place::new();
    let model = model(&place);
    let opens = Opens::of(&[&model]);
    let mut planned = place.bench(&["--dry-run", "--precision", "fp32,int8", "--batch", "1,2", "--data", "scenes"]);
    // Twice among the models, and what outputs are compared with: all the same file.
    planned.arg(&model).arg(&model).arg("--reference").arg(&model);
    expect_code(&planned.output().unwrap(), 0);
    assert_eq!(opens.counted(&model), 1);
}
