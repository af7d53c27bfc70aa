//! Batches of calibration data, one at a time: a small board need not hold them all.

use std::ops::Range;
use std::path::PathBuf;
use std::vec;

use half::f16;
use prony_source::arrays::{ArrayFile, Values};
use prony_source::{folder, scenes};
use prony_types::{CalibrationSpec, DType, Image, SceneKind, SourceSpec, TensorSpec};
use prony_vision::{Fit, Preprocessor};

use super::{Used, files};
use crate::error::ForgeError;

/// Batches of what a model takes.
pub(crate) struct CalibrationFeed {
    inputs: Vec<TensorSpec>,
    from: From,
    used: Used,
    /// Frames that there are, as far as that is known before they are read.
    available: usize,
    /// Made before anything was built, so that bad data are found out at once.
    first: Option<Vec<Vec<u8>>>,
}

enum From {
    Images {
        images: Images,
        preprocessor: Box<Preprocessor>,
        plane: Vec<f32>,
    },
    /// Each input's bytes, batch after batch.
    Arrays {
        inputs: Vec<Vec<u8>>,
        batches: Range<usize>,
    },
}

enum Images {
    Scenes { kind: SceneKind, seed: u64, left: Range<u32> },
    Files(vec::IntoIter<PathBuf>),
}

impl CalibrationFeed {
    /// Looks at the data and makes the first batch.
    pub(crate) fn new(
        spec: &CalibrationSpec,
        kind: SceneKind,
        inputs: Vec<TensorSpec>,
        fit: Fit,
    ) -> Result<CalibrationFeed, ForgeError> {
        let (from, available) = match &spec.source {
            SourceSpec::Tensor(path) => {
                let file = ArrayFile::open(path).map_err(|e| ForgeError::Calibration(e.to_string()))?;
                let (arrays, batches) = arrays(&file, &inputs)?;
                let wanted = (spec.frames as usize).div_ceil(batch(&inputs)).max(1);
                let batches = batches.min(wanted);
                (From::Arrays { inputs: arrays, batches: 0..batches }, batches * batch(&inputs))
            }
            SourceSpec::Scenes => {
                let (seed, left) = (spec.seed, 0..spec.frames);
                (images(Images::Scenes { kind, seed, left }, &inputs, fit)?, spec.frames as usize)
            }
            SourceSpec::Dir(dir) => {
                let files = files(dir, spec.frames)?;
                let available = files.len();
                (images(Images::Files(files.into_iter()), &inputs, fit)?, available)
            }
        };
        let mut feed = CalibrationFeed { inputs, from, used: Used::default(), available, first: None };
        feed.first = feed.make_batch().map_err(ForgeError::Calibration)?;
        if feed.first.is_none() {
            let skipped = &feed.used.skipped;
            let reasons = if skipped.is_empty() { "there are none".to_owned() } else { skipped.join("; ") };
            return Err(ForgeError::Calibration(format!("no frame can be used: {reasons}")));
        }
        Ok(feed)
    }

    pub(crate) fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    /// Frames a batch.
    pub(crate) fn batch(&self) -> usize {
        batch(&self.inputs)
    }

    /// Frames that there are; some of them may turn out to be unreadable.
    pub(crate) fn available(&self) -> usize {
        self.available
    }

    /// What was used so far.
    pub(crate) fn used(&self) -> &Used {
        &self.used
    }

    /// The bytes of each input; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Vec<Vec<u8>>>, String> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.make_batch(),
        }
    }

    fn make_batch(&mut self) -> Result<Option<Vec<Vec<u8>>>, String> {
        let size = self.batch();
        match &mut self.from {
            From::Arrays { inputs, batches } => {
                let Some(index) = batches.next() else { return Ok(None) };
                self.used.frames += size as u32;
                let part = |(bytes, spec): (&Vec<u8>, &TensorSpec)| {
                    let length = spec.len() * width(spec.dtype);
                    bytes[index * length..(index + 1) * length].to_vec()
                };
                Ok(Some(inputs.iter().zip(&self.inputs).map(part).collect()))
            }
            From::Images { images, preprocessor, plane } => {
                let mut bytes = Vec::new();
                let mut made = 0;
                while made < size {
                    let Some(image) = next_image(images, &mut self.used.skipped) else { break };
                    preprocessor.run(&image, plane);
                    push(&mut bytes, self.inputs[0].dtype, plane);
                    made += 1;
                }
                if made == 0 {
                    return Ok(None);
                }
                self.used.frames += made as u32;
                // A batch is whole: the frames that there are come again.
                bytes = bytes.iter().copied().cycle().take(bytes.len() / made * size).collect();
                Ok(Some(vec![bytes]))
            }
        }
    }
}

/// Frames a batch: the first axis.
fn batch(inputs: &[TensorSpec]) -> usize {
    inputs.first().and_then(|input| input.shape.first()).copied().unwrap_or(1).max(1)
}

fn images(images: Images, inputs: &[TensorSpec], fit: Fit) -> Result<From, ForgeError> {
    match inputs {
        [TensorSpec { dtype: DType::F32 | DType::F16, shape, .. }] if shape.len() == 4 && shape[1] == 3 => {
            let preprocessor = Box::new(Preprocessor::with_fit(shape[3] as u32, shape[2] as u32, fit));
            Ok(From::Images { images, preprocessor, plane: vec![0.0; 3 * shape[2] * shape[3]] })
        }
        _ => {
            let takes: Vec<String> = inputs.iter().map(ToString::to_string).collect();
            Err(ForgeError::Calibration(format!(
                "the model takes {}, not one image [N,3,H,W]; give its tensors as an .npz with arrays of these names",
                takes.join(", ")
            )))
        }
    }
}

fn next_image(images: &mut Images, skipped: &mut Vec<String>) -> Option<Image> {
    match images {
        Images::Scenes { kind, seed, left } => left.next().map(|index| scenes::scene(*kind, *seed, index).image),
        Images::Files(paths) => paths.find_map(|path| {
            folder::load(&path).map_err(|error| skipped.push(error.to_string())).ok() //
        }),
    }
}

fn push(bytes: &mut Vec<u8>, dtype: DType, plane: &[f32]) {
    match dtype {
        DType::F16 => plane.iter().for_each(|&x| bytes.extend(f16::from_f32(x).to_le_bytes())),
        _ => plane.iter().for_each(|x| bytes.extend(x.to_le_bytes())),
    }
}

const fn width(dtype: DType) -> usize {
    match dtype {
        DType::F64 | DType::I64 => 8,
        DType::F32 | DType::I32 => 4,
        DType::F16 | DType::Bf16 => 2,
        _ => 1,
    }
}

/// The bytes of every input and how many batches they are: an array may hold several, in a first axis of its own or along
/// the model's.
fn arrays(file: &ArrayFile, inputs: &[TensorSpec]) -> Result<(Vec<Vec<u8>>, usize), ForgeError> {
    let wrong = |e: &dyn std::fmt::Display| ForgeError::Calibration(e.to_string());
    let mut all = Vec::new();
    let mut counts = Vec::new();
    for input in inputs {
        let shape = file.shape(&input.name).map_err(|e| wrong(&e))?;
        let count = batches(&shape, &input.shape);
        let whole = TensorSpec { shape: if count.is_some() { shape } else { input.shape.clone() }, ..input.clone() };
        let read = file.read(&input.name, &whole).map_err(|e| wrong(&e))?;
        let mut bytes = Vec::with_capacity(read.values.bytes());
        Values::each_value(&read.values, |value| bytes.extend(value));
        all.push(bytes);
        counts.push((input.name.clone(), count.unwrap_or(1)));
    }
    let least = counts.iter().map(|(_, count)| *count).min().unwrap_or(0);
    if let Some((name, count)) = counts.iter().find(|(_, count)| *count != least) {
        return Err(ForgeError::Calibration(format!(
            "array `{name}` holds {count} batches and another one {least}; every input needs as many"
        )));
    }
    Ok((all, least))
}

/// How many batches of an input an array of that shape is; `None` where it is none.
fn batches(shape: &[usize], input: &[usize]) -> Option<usize> {
    if shape.len() == input.len() + 1 && shape[1..] == *input {
        return Some(shape[0]).filter(|&count| count > 0);
    }
    let same = shape.len() == input.len() && !input.is_empty() && shape[1..] == input[1..];
    (same && input[0] > 0 && shape[0] > 0 && shape[0].is_multiple_of(input[0])).then(|| shape[0] / input[0])
}
