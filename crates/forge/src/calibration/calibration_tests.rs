use std::fs;
use std::path::Path;

use prony_source::arrays::npz_bytes;
use prony_types::{CalibrationMethod, DType, TensorData, TensorSpec, TensorView};
use prony_vision::{Fit, Preprocessor};

use super::*;

const KIND: SceneKind = SceneKind::Rgb;

fn spec(source: SourceSpec, frames: u32) -> CalibrationSpec {
    CalibrationSpec { method: CalibrationMethod::Entropy, source, frames, seed: 7 }
}

fn image(dtype: DType, batch: usize) -> Vec<TensorSpec> {
    vec![TensorSpec { name: "images".into(), dtype, shape: vec![batch, 3, 32, 48] }]
}

fn feed(spec: &CalibrationSpec, inputs: Vec<TensorSpec>) -> Result<CalibrationFeed, ForgeError> {
    CalibrationFeed::new(spec, KIND, inputs, Fit::Letterbox)
}

fn batches(mut feed: CalibrationFeed) -> Vec<Vec<Vec<u8>>> {
    std::iter::from_fn(|| feed.next_batch().unwrap()).collect()
}

fn photos(dir: &Path, count: u32) {
    for index in 0..count {
        let png = prony_source::png::encode_png(&scenes::scene(SceneKind::Rgb, 3, index).image);
        fs::write(dir.join(format!("{index}.png")), png.unwrap()).unwrap();
    }
}

#[test]
fn a_frame_is_what_bench_would_feed() {
    let made = batches(feed(&spec(SourceSpec::Scenes, 3), image(DType::F32, 1)).unwrap());
    assert_eq!(made.len(), 3);
    let mut plane = vec![0.0; 3 * 32 * 48];
    Preprocessor::new(48, 32).run(&scenes::scene(SceneKind::Rgb, 7, 1).image, &mut plane);
    let expected: Vec<u8> = plane.iter().flat_map(|x| x.to_le_bytes()).collect();
    assert!(made[1] == [expected], "the second scene, letterboxed and from 0 to 1");
    assert_ne!(made[0], made[1]);
}

#[test]
fn a_last_batch_is_filled_up_and_half_precision_is_half_as_long() {
    let made = batches(feed(&spec(SourceSpec::Scenes, 3), image(DType::F16, 2)).unwrap());
    let item = 3 * 32 * 48 * 2;
    assert_eq!(made.iter().map(|batch| batch[0].len()).collect::<Vec<_>>(), [2 * item, 2 * item]);
    assert!(made[1][0][..item] == made[1][0][item..] && made[0][0][..item] != made[0][0][item..]);
}

#[test]
fn a_folder_skips_what_is_no_image_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    photos(dir.path(), 3);
    fs::write(dir.path().join("1.png"), b"no image").unwrap();
    let mut folder = feed(&spec(SourceSpec::Dir(dir.path().into()), 8), image(DType::F32, 1)).unwrap();
    let mut made = 0;
    while folder.next_batch().unwrap().is_some() {
        made += 1;
    }
    let skipped = folder.used().skipped.clone();
    assert_eq!((made, skipped.len()), (2, 1));
    assert!(skipped[0].contains("1.png"), "{skipped:?}");
    fs::write(dir.path().join("0.png"), b"no image").unwrap();
    fs::write(dir.path().join("2.png"), b"no image").unwrap();
    let error = feed(&spec(SourceSpec::Dir(dir.path().into()), 8), image(DType::F32, 1)).err().unwrap();
    assert_eq!(error.kind(), prony_types::FailureKind::Input);
    assert!(error.to_string().starts_with("calibration: no frame can be used: "), "{error}");
}

#[test]
fn arrays_hold_several_batches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npz");
    let write = |shape: &[usize]| {
        let data: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| i as f32).collect();
        let view = TensorView { name: "x", shape, data: TensorData::F32(&data) };
        fs::write(&path, npz_bytes(&[view]).unwrap()).unwrap();
    };
    let input = || vec![TensorSpec { name: "x".into(), dtype: DType::F32, shape: vec![2, 2] }];
    let count = |frames| feed(&spec(SourceSpec::Tensor(path.clone()), frames), input()).map(|feed| batches(feed).len());
    for (shape, expected) in [(&[2, 2][..], 1), (&[6, 2], 3), (&[3, 2, 2], 3)] {
        write(shape);
        assert_eq!(count(100).unwrap(), expected, "{shape:?}");
    }
    assert_eq!(count(3).unwrap(), 2, "three frames are two batches of two");
    write(&[3, 2]);
    let error = count(100).unwrap_err().to_string();
    assert!(error.contains("array `x` is f32[3,2], the model takes f32[2,2]"), "{error}");
}

#[test]
fn a_model_that_takes_no_image_needs_arrays() {
    let ids = vec![TensorSpec { name: "ids".into(), dtype: DType::I64, shape: vec![1, 8] }];
    let error = feed(&spec(SourceSpec::Scenes, 3), ids).err().unwrap().to_string();
    assert!(error.contains("ids i64[1, 8], not one image") && error.contains(".npz"), "{error}");
}

#[test]
fn the_identity_of_data_is_their_content() {
    let hash = |spec: &CalibrationSpec| data_sha256(spec, KIND).unwrap();
    let scenes = spec(SourceSpec::Scenes, 8);
    assert_eq!(hash(&scenes), hash(&scenes));
    assert_ne!(hash(&scenes), hash(&spec(SourceSpec::Scenes, 9)));
    assert_ne!(hash(&scenes), hash(&CalibrationSpec { seed: 8, ..scenes.clone() }));
    assert_ne!(hash(&scenes), data_sha256(&scenes, SceneKind::Thermal).unwrap());
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    photos(here.path(), 3);
    photos(there.path(), 3);
    let of = |dir: &Path, frames| hash(&spec(SourceSpec::Dir(dir.into()), frames));
    assert_eq!(of(here.path(), 2), of(there.path(), 2));
    assert_ne!(of(here.path(), 2), of(here.path(), 3));
    fs::write(there.path().join("1.png"), b"other").unwrap();
    assert_ne!(of(here.path(), 2), of(there.path(), 2));
    let missing = data_sha256(&spec(SourceSpec::Dir("/no/such".into()), 2), KIND).unwrap_err();
    assert_eq!(missing.kind(), prony_types::FailureKind::Input);
}

/// Keeps what was uploaded on the host, where a test can look at it.
#[derive(Default)]
struct Kept(Vec<Box<[u8]>>);

impl Upload for Kept {
    fn upload(&mut self, input: usize, bytes: &[u8]) -> Result<*mut c_void, String> {
        if input > 0 {
            return Err("no room".into());
        }
        self.0.push(bytes.into());
        Ok(self.0.last_mut().map_or(std::ptr::null_mut(), |kept| kept.as_mut_ptr().cast()))
    }
}

fn learn(frames: u32) -> Learn {
    Learn {
        feed: feed(&spec(SourceSpec::Scenes, frames), image(DType::F32, 1)).unwrap(),
        upload: Box::new(Kept::default()),
        told: Arc::default(),
        done: Box::new(|| {}),
    }
}

#[test]
fn batches_come_until_there_are_no_more() {
    let mut learn = learn(2);
    let mut addresses = [std::ptr::null_mut()];
    assert!(learn.next_batch(&["images"], &mut addresses) && !addresses[0].is_null());
    assert!(learn.next_batch(&["images"], &mut addresses));
    assert!(!learn.next_batch(&["images"], &mut addresses));
    assert_eq!(*learn.told.lock().unwrap(), Told { used: Used { frames: 2, skipped: Vec::new() }, ..Told::default() });
}

#[test]
fn an_input_that_nobody_knows_ends_it_with_a_reason() {
    let mut learn = learn(2);
    assert!(!learn.next_batch(&["other"], &mut [std::ptr::null_mut()]));
    learn.write_cache(b"ranges of half the data");
    let told = learn.told.lock().unwrap().clone();
    assert_eq!(told.problem.as_deref(), Some("the builder asks for an input `other` that the model has not"));
    assert_eq!(told.ranges, None);
}

#[test]
fn what_is_learnt_is_told_and_then_it_is_done() {
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let heard = Arc::clone(&done);
    let hear = Box::new(move || heard.store(true, std::sync::atomic::Ordering::Relaxed));
    let mut learn = Learn { done: hear, ..learn(1) };
    assert_eq!(learn.read_cache(), None);
    learn.write_cache(b"TRT-8600-EntropyCalibration2\nimages: 3c010a14");
    assert!(done.load(std::sync::atomic::Ordering::Relaxed));
    let ranges = learn.told.lock().unwrap().ranges.clone().unwrap();
    let mut known = Known { batch: 1, ranges };
    assert_eq!(known.read_cache().unwrap(), b"TRT-8600-EntropyCalibration2\nimages: 3c010a14");
    assert!(!known.next_batch(&["images"], &mut [std::ptr::null_mut()]), "no batch is needed");
}

#[test]
fn ranges_are_kept_and_not_believed_when_they_were_changed() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("c.cache");
    assert_eq!(read_ranges(&cache), None);
    let used = Used { frames: 2, skipped: vec!["a\nb".to_owned()] };
    let ranges = b"TRT-8600-EntropyCalibration2\nimages: 3c010a14";
    keep_ranges(&cache, &used, ranges).unwrap();
    assert_eq!(read_ranges(&cache).unwrap(), (used, ranges.to_vec()));
    let mut bytes = fs::read(&cache).unwrap();
    *bytes.last_mut().unwrap() = b'5';
    fs::write(&cache, bytes).unwrap();
    assert_eq!(read_ranges(&cache), None);
    fs::write(&cache, b"short").unwrap();
    assert_eq!(read_ranges(&cache), None);
}

#[test]
fn tensors_that_stay_in_float_lose_their_range() {
    let ranges = b"TRT-8600-EntropyCalibration2\nimages: 3c010a14\na: b: 3d\n/Concat_output_0: 3e5a\noutput0: 40\n";
    let float = BTreeSet::from(["output0", "a: b", "/Concat"].map(String::from));
    let (left, gone) = without(ranges, &float);
    assert_eq!(gone, 2);
    assert_eq!(left, b"TRT-8600-EntropyCalibration2\nimages: 3c010a14\n/Concat_output_0: 3e5a\n");
    assert_eq!(without(ranges, &BTreeSet::new()), (ranges.to_vec(), 0));
}

#[test]
fn frames_that_fill_up_a_batch_are_not_counted_again() {
    let mut three = feed(&spec(SourceSpec::Scenes, 3), image(DType::F32, 2)).unwrap();
    while three.next_batch().unwrap().is_some() {}
    assert_eq!(three.used().frames, 3, "two batches of two, the last with one frame twice");
    assert_eq!(three.used().warnings(3), Vec::<String>::new());
    assert_eq!(three.used().warnings(128), ["only 3 of the 128 requested calibration frames were available"]);
}
