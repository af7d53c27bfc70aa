//! What a cell is fed: distinct frames, decoded and resident before anything is timed.

use std::path::Path;

use prony_source::{folder, scenes};
use prony_types::{DType, Image, InputSpec, Pixels, SceneKind, SourceSpec, TensorSpec};
use sha2::{Digest, Sha256};

use crate::now_ns;
use crate::tensors::{ArrayFile, Values};

/// Decoded frames beyond this are not kept: a small board has little more.
const MAX_RESIDENT_BYTES: usize = 512 << 20;

/// Frames, or tensors for models that are not detectors.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) items: Items,
    /// In words, for the record.
    pub(crate) source: String,
    /// Files that could not be used, each with its reason.
    pub(crate) skipped: Vec<String>,
    /// How long each image file took to decode.
    pub(crate) decode_ns: Vec<u64>,
    /// Whether these are the scenes that a built-in model was made for.
    pub(crate) home_scenes: bool,
}

#[derive(Debug)]
pub(crate) enum Items {
    Images(Vec<Image>),
    /// One entry a frame, each with one vector an input of the model.
    Tensors(Vec<Vec<Values>>),
}

impl Feed {
    pub(crate) fn len(&self) -> usize {
        match &self.items {
            Items::Images(images) => images.len(),
            Items::Tensors(tensors) => tensors.len(),
        }
    }

    pub(crate) fn size(&self) -> Option<[u32; 2]> {
        match &self.items {
            Items::Images(images) => images.first().map(|image| [image.width(), image.height()]),
            Items::Tensors(_) => None,
        }
    }

    /// Memory that the frames take.
    pub(crate) fn bytes(&self) -> usize {
        let image = |image: &Image| match image.pixels() {
            Pixels::U8(data) => data.len(),
            Pixels::U16(data) => data.len() * 2,
        };
        match &self.items {
            Items::Images(images) => images.iter().map(image).sum(),
            Items::Tensors(tensors) => tensors.iter().flatten().map(Values::bytes).sum(),
        }
    }

    /// Hash of everything that is fed, in order.
    pub(crate) fn sha256(&self) -> String {
        self.sha256_of(self.len())
    }

    /// Hash of the first frames.
    pub(crate) fn sha256_of(&self, count: usize) -> String {
        let mut hash = Sha256::new();
        match &self.items {
            Items::Images(images) => images.iter().take(count).for_each(|image| hash_image(&mut hash, image)),
            Items::Tensors(tensors) => {
                tensors.iter().take(count).flatten().for_each(|values| values.each_value(|bytes| hash.update(bytes)));
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn hash_image(hash: &mut Sha256, image: &Image) {
    hash.update(image.width().to_le_bytes());
    hash.update(image.height().to_le_bytes());
    match image.pixels() {
        Pixels::U8(data) => hash.update(data),
        Pixels::U16(data) => data.iter().for_each(|x| hash.update(x.to_le_bytes())),
    }
}

/// Images for a detector, `count` of them where the source has as many. `beat` is called after each.
pub(crate) fn images(spec: &InputSpec, kind: SceneKind, count: u32, beat: &(dyn Fn() + Sync)) -> Result<Feed, String> {
    match &spec.source {
        SourceSpec::Scenes => {
            let source = format!("built-in {kind} scenes, seed {}", spec.seed);
            let items = Items::Images(render(kind, spec.seed, count, beat));
            Ok(Feed { items, source, skipped: Vec::new(), decode_ns: Vec::new(), home_scenes: true })
        }
        SourceSpec::Dir(dir) => from_folder(dir, count as usize, beat),
        SourceSpec::Tensor(path) => Err(format!(
            "{} holds tensors, which a detector does not take; use --source, or --head none",
            path.display()
        )),
    }
}

fn render(kind: SceneKind, seed: u64, count: u32, beat: &(dyn Fn() + Sync)) -> Vec<Image> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(count as usize);
    let mut images: Vec<Option<Image>> = vec![None; count as usize];
    let share = images.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (part, chunk) in images.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                for (i, image) in chunk.iter_mut().enumerate() {
                    *image = Some(scenes::scene(kind, seed, (part * share + i) as u32).image);
                    beat();
                }
            });
        }
    });
    images.into_iter().flatten().collect()
}

fn from_folder(dir: &Path, count: usize, beat: &dyn Fn()) -> Result<Feed, String> {
    let files = folder::images(dir).map_err(|e| e.to_string())?;
    let mut images = Vec::new();
    let mut skipped = Vec::new();
    let mut decode_ns = Vec::new();
    let mut bytes = 0;
    let total = files.len();
    let mut loader = folder::Loader::default();
    for path in files {
        if images.len() >= count || bytes >= MAX_RESIDENT_BYTES {
            break;
        }
        beat();
        let begun = now_ns();
        match loader.load(&path) {
            Ok(image) => {
                decode_ns.push(now_ns() - begun);
                bytes += image.width() as usize * image.height() as usize * 3;
                // A copy stays: fresh memory every time would be timed as decoding.
                images.push(image.clone());
            }
            Err(error) => skipped.push(error.to_string()),
        }
    }
    if images.is_empty() {
        return Err(format!("none of the {total} images in {} can be read: {}", dir.display(), skipped.join("; ")));
    }
    let source = format!("{} of {total} images in {}", images.len(), dir.display());
    Ok(Feed { items: Items::Images(images), source, skipped, decode_ns, home_scenes: false })
}

/// Tensors for a model that is not a detector: from a file, or random.
pub(crate) fn tensors(spec: &InputSpec, inputs: &[TensorSpec]) -> Result<Feed, String> {
    let (items, source) = match &spec.source {
        SourceSpec::Tensor(path) => {
            let (values, notes) = from_file(path, inputs)?;
            (vec![values], [vec![format!("tensors in {}", path.display())], notes].concat().join("; "))
        }
        _ => (random(spec, inputs)?, format!("random values from 0 to 1, seed {}", spec.seed)),
    };
    Ok(Feed { items: Items::Tensors(items), source, skipped: Vec::new(), decode_ns: Vec::new(), home_scenes: false })
}

fn random(spec: &InputSpec, inputs: &[TensorSpec]) -> Result<Vec<Vec<Values>>, String> {
    // At most; nothing hangs on the exact number.
    let width = |dtype: DType| if dtype == DType::F64 { 8 } else { 4 };
    let bytes: usize = inputs.iter().map(|t| t.len() * width(t.dtype)).sum();
    let frames = (MAX_RESIDENT_BYTES / bytes.max(1)).clamp(1, spec.frames.max(1) as usize);
    let mut state = spec.seed ^ 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        // An LCG with Knuth's multiplier; the upper bits are good enough to be "some input".
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let mut values = |tensor: &TensorSpec| {
        Values::floats(tensor.dtype, (0..tensor.len()).map(|_| next())).ok_or_else(|| {
            format!("input {tensor} takes no floats, and only you know what it takes; give --input x.npz")
        })
    };
    (0..frames).map(|_| inputs.iter().map(&mut values).collect()).collect()
}

/// The values, and what had to be done to them.
fn from_file(path: &Path, inputs: &[TensorSpec]) -> Result<(Vec<Values>, Vec<String>), String> {
    let file = ArrayFile::open(path).map_err(|e| e.to_string())?;
    if file.names().is_none() && inputs.len() != 1 {
        return Err(format!("the model has {} inputs; give an .npz with one array for each", inputs.len()));
    }
    let (mut values, mut notes) = (Vec::new(), Vec::new());
    for input in inputs {
        let array = file.read(&input.name, input).map_err(|e| e.to_string())?;
        values.push(array.values);
        notes.extend(array.note);
    }
    Ok((values, notes))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use half::f16;
    use prony_types::{TensorData, TensorView};

    use super::*;
    use crate::tensors::{npy_bytes, npz_bytes};

    fn spec(source: SourceSpec) -> InputSpec {
        InputSpec { source, seed: 7, frames: 4 }
    }

    fn view<'a>(name: &'a str, shape: &'a [usize], data: &'a [f32]) -> TensorView<'a> {
        TensorView { name, shape, data: TensorData::F32(data) }
    }

    #[test]
    fn scenes_are_distinct_and_the_first_is_the_same_alone() {
        let kind = SceneKind::Thermal;
        let beats = AtomicU32::new(0);
        let beat = || {
            beats.fetch_add(1, Ordering::Relaxed);
        };
        let all = images(&spec(SourceSpec::Scenes), kind, 4, &beat).unwrap();
        assert_eq!(beats.load(Ordering::Relaxed), 4);
        let first = images(&spec(SourceSpec::Scenes), kind, 1, &|| {}).unwrap();
        let (Items::Images(all), Items::Images(first)) = (&all.items, &first.items) else { panic!("no images") };
        assert_eq!((all.len(), first.len()), (4, 1));
        assert_eq!(all[0], first[0]);
        assert!((1..4).all(|i| all[i] != all[0]));
    }

    #[test]
    fn an_npy_of_another_shape_names_the_axis() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npy");
        std::fs::write(&path, npy_bytes(&view("", &[1, 3], &[1.0, 2.0, 3.0]))).unwrap();
        let input = |n| TensorSpec { name: "x".into(), dtype: DType::F32, shape: vec![1, n] };
        let feed = tensors(&spec(SourceSpec::Tensor(path.clone())), &[input(3)]).unwrap();
        let Items::Tensors(items) = &feed.items else { panic!("no tensors") };
        assert_eq!(items[0][0], Values::F32(vec![1.0, 2.0, 3.0]));
        let error = tensors(&spec(SourceSpec::Tensor(path)), &[input(4)]).unwrap_err();
        assert!(error.contains("the model takes f32[1,4]: axis 1 is 3 instead of 4"), "{error}");
    }

    #[test]
    fn an_npz_has_an_array_for_each_input_or_says_which_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        std::fs::write(&path, npz_bytes(&[view("x", &[1, 2], &[3.0, 4.0])]).unwrap()).unwrap();
        let input = |name: &str| TensorSpec { name: name.into(), dtype: DType::F32, shape: vec![1, 2] };
        let feed = tensors(&spec(SourceSpec::Tensor(path.clone())), &[input("x")]).unwrap();
        let Items::Tensors(items) = &feed.items else { panic!("no tensors") };
        assert_eq!(items[0][0], Values::F32(vec![3.0, 4.0]));
        let error = tensors(&spec(SourceSpec::Tensor(path)), &[input("y")]).unwrap_err();
        assert!(error.contains("no array `y`; it has x"), "{error}");
    }

    #[test]
    fn a_half_precision_input_takes_rounded_values_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npy");
        std::fs::write(&path, npy_bytes(&view("", &[2], &[0.5, 0.1]))).unwrap();
        let input = TensorSpec { name: "x".into(), dtype: DType::F16, shape: vec![2] };
        let feed = tensors(&spec(SourceSpec::Tensor(path)), std::slice::from_ref(&input)).unwrap();
        let Items::Tensors(items) = &feed.items else { panic!("no tensors") };
        assert_eq!(items[0][0], Values::F16([0.5, 0.1].map(f16::from_f32).to_vec()));
        assert!(feed.source.ends_with("x.npy; array `x` rounded from f32 to f16"), "{}", feed.source);
        assert_eq!(feed.bytes(), 4);
        let random = tensors(&spec(SourceSpec::Scenes), &[input]).unwrap();
        let Items::Tensors(items) = &random.items else { panic!("no tensors") };
        assert!(matches!(&items[0][0], Values::F16(data) if data.len() == 2));
    }

    #[test]
    fn random_tensors_lie_between_0_and_1_and_differ() {
        let input = TensorSpec { name: "x".into(), dtype: DType::F32, shape: vec![1, 100] };
        let feed = tensors(&spec(SourceSpec::Scenes), std::slice::from_ref(&input)).unwrap();
        let Items::Tensors(items) = &feed.items else { panic!("no tensors") };
        assert_eq!(items.len(), 4);
        assert_ne!(items[0], items[1]);
        let Values::F32(data) = &items[0][0] else { panic!("no floats") };
        assert!(data.iter().all(|x| (0.0..1.0).contains(x)) && data.iter().any(|x| *x > 0.5));
        let ids = TensorSpec { dtype: DType::I32, ..input };
        assert!(tensors(&spec(SourceSpec::Scenes), &[ids]).unwrap_err().contains("--input"));
    }
}
