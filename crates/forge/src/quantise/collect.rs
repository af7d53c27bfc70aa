//! Magnitudes of the tensors of a graph, found by running it over the calibration data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use prony_backend::{ModelFile, Session, SessionSpec, SlotInput, affinity, backend};
use prony_model::sha256_hex;
use prony_source::scenes::kind_for;
use prony_types::{
    BackendName, BuildProgress, CalibrationSpec, DType, Dim, ModelSource, Precision, SceneKind, TensorData,
};

use super::Site;
use super::histogram::Histogram;
use crate::calibration::{CalibrationFeed, Used, data_sha256, keep_ranges, read_ranges};
use crate::error::ForgeError;
use crate::prepare::fit;

/// Bytes of tensors that are looked at in one run; more are looked at in several.
const AT_ONCE_BYTES: usize = 512 << 20;
/// Tensors whose sizes are asked for at a time: a model may give many times more than what fits.
const ASKED_AT_ONCE: usize = 32;

/// Magnitudes by tensor, and on what they were found.
pub(crate) struct Collected {
    pub(crate) histograms: BTreeMap<String, Histogram>,
    pub(crate) data_sha256: String,
    pub(crate) from_cache: bool,
    /// What of the data they were found on.
    pub(crate) used: Used,
}

/// A model and what it is fed with.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) model: &'a ModelFile,
    pub(crate) source: &'a ModelSource,
    pub(crate) data: &'a CalibrationSpec,
    pub(crate) site: &'a Site<'a>,
}

/// Who wants to know how far it is.
pub(crate) struct Told<'a> {
    pub(crate) on_progress: &'a mut dyn FnMut(BuildProgress),
    pub(crate) beat: &'a dyn Fn() -> Result<(), ForgeError>,
}

impl Told<'_> {
    pub(crate) fn tell(&mut self, doing: String, done: f64) -> Result<(), ForgeError> {
        (self.beat)()?;
        (self.on_progress)(BuildProgress { doing, done: Some(done), eta_s: None });
        Ok(())
    }
}

impl Subject<'_> {
    /// The embedded engine, or ONNX Runtime on the CPU.
    pub(crate) fn backend(&self) -> BackendName {
        if self.site.runtime.is_some() { BackendName::OrtCpu } else { BackendName::Rten }
    }

    /// Opens a model of the same inputs.
    pub(crate) fn open(&self, model: &ModelFile, precision: Precision) -> Result<Box<dyn Session>, ForgeError> {
        let batch = match model.info.inputs.first().and_then(|input| input.dims.first()) {
            Some(Dim::Fixed(n)) => u32::try_from(*n).unwrap_or(1),
            _ => 1,
        };
        let spec = SessionSpec {
            precision,
            batch,
            imgsz: self.site.imgsz,
            threads: self.site.threads.unwrap_or_else(|| affinity::choose(None).len() as u32),
            runtime: self.site.runtime.cloned(),
            ..SessionSpec::new(model)
        };
        backend(self.backend()).open(&spec).map_err(|error| ForgeError::Model(error.to_string()))
    }

    /// Of which kind built-in scenes are.
    fn scenes(&self) -> SceneKind {
        kind_for(self.source, &self.model.info.metadata.names)
    }

    /// The calibration data for a session, from the beginning.
    pub(crate) fn feed(&self, session: &dyn Session) -> Result<CalibrationFeed, ForgeError> {
        let inputs = session.inputs().to_vec();
        let fit = fit(&self.model.info, &inputs);
        CalibrationFeed::new(self.data, self.scenes(), inputs, fit)
    }

    /// The same model with these tensors among its outputs.
    pub(crate) fn tapped(&self, model: &ModelFile, taps: &[&str]) -> Result<ModelFile, ForgeError> {
        model.with_outputs(taps).map_err(|error| ForgeError::Model(error.to_string()))
    }
}

/// Magnitudes of tensors over the calibration data: those of an earlier time, or found now.
pub(crate) fn collect(
    subject: Subject<'_>,
    tensors: &BTreeSet<String>,
    told: &mut Told<'_>,
) -> Result<Collected, ForgeError> {
    let data_sha256 = data_sha256(subject.data, subject.scenes())?;
    let kept = subject.site.cache.map(|folder| cache_file(folder, subject, tensors, &data_sha256));
    if let Some((used, histograms)) = kept.as_deref().and_then(read) {
        return Ok(Collected { histograms, data_sha256, from_cache: true, used });
    }
    let mut collected =
        Collected { histograms: BTreeMap::new(), data_sha256, from_cache: false, used: Used::default() };
    let inputs: BTreeSet<&str> = subject.model.info.inputs.iter().map(|input| input.name.as_str()).collect();
    let taps: Vec<&str> = tensors.iter().map(String::as_str).filter(|name| !inputs.contains(name)).collect();
    let portions = portions(subject, &taps)?;
    for (index, portion) in portions.iter().enumerate() {
        // Inputs are seen by every run, and counted by one.
        let inputs = tensors.iter().filter(|name| index == 0 && inputs.contains(name.as_str()));
        let wanted: Vec<&str> = inputs.map(String::as_str).chain(portion.iter().copied()).collect();
        look(subject, &wanted, [index, portions.len()], &mut collected, told)?;
    }
    if let Some(file) = &kept {
        let trimmed: BTreeMap<&String, Histogram> =
            collected.histograms.iter().map(|(name, histogram)| (name, histogram.clone().trimmed())).collect();
        let histograms = serde_json::to_vec(&trimmed).map_err(ForgeError::json("histograms of calibration"))?;
        keep_ranges(file, &collected.used, &histograms)?;
    }
    Ok(collected)
}

/// Where magnitudes are kept: under all that decides them, which is not what is made of them.
fn cache_file(folder: &Path, subject: Subject<'_>, tensors: &BTreeSet<String>, data_sha256: &str) -> PathBuf {
    let size = subject.site.imgsz.map_or_else(|| "own size".to_owned(), |[height, width]| format!("{height}x{width}"));
    let names: Vec<&str> = tensors.iter().map(String::as_str).collect();
    let version = subject.site.runtime.map(|runtime| runtime.library.display().to_string()).unwrap_or_default();
    let facts = [subject.model.sha256.as_str(), data_sha256, &size, subject.backend().name(), &version];
    let key = sha256_hex(format!("{}\n{}", facts.join("\n"), names.join("\n")).as_bytes());
    folder.join(format!("calibration-{}.histograms.cache", &key[..32]))
}

fn read(file: &Path) -> Option<(Used, BTreeMap<String, Histogram>)> {
    let (used, histograms) = read_ranges(file)?;
    Some((used, serde_json::from_slice(&histograms).ok()?))
}

/// Tensors by runs, so that no run gives more than fits. How large they are is found out with one frame.
fn portions<'a>(subject: Subject<'_>, taps: &[&'a str]) -> Result<Vec<Vec<&'a str>>, ForgeError> {
    if taps.len() <= ASKED_AT_ONCE {
        return Ok(vec![taps.to_vec()]);
    }
    let mut portions: Vec<Vec<&str>> = vec![Vec::new()];
    let mut bytes = 0;
    for chunk in taps.chunks(ASKED_AT_ONCE) {
        let model = subject.tapped(subject.model, chunk)?;
        let mut session = subject.open(&model, Precision::Fp32)?;
        let mut feed = subject.feed(&*session)?;
        let _ = step(&mut *session, &mut feed)?;
        for &tap in chunk {
            let at = place(&model, tap)?;
            let size = session.output(0, at).shape.iter().product::<usize>() * size_of::<f32>();
            bytes += size;
            if bytes > AT_ONCE_BYTES && portions.last().is_some_and(|portion| !portion.is_empty()) {
                portions.push(Vec::new());
                bytes = size;
            }
            portions.last_mut().into_iter().for_each(|portion| portion.push(tap));
        }
    }
    Ok(portions)
}

/// The values of some tensors over all data.
fn look(
    subject: Subject<'_>,
    wanted: &[&str],
    [portion, portions]: [usize; 2],
    collected: &mut Collected,
    told: &mut Told<'_>,
) -> Result<(), ForgeError> {
    let of_inputs = |name: &str| subject.model.info.inputs.iter().position(|input| input.name == name);
    let taps: Vec<&str> = wanted.iter().copied().filter(|name| of_inputs(name).is_none()).collect();
    let model = subject.tapped(subject.model, &taps)?;
    let mut session = subject.open(&model, Precision::Fp32)?;
    let mut feed = subject.feed(&*session)?;
    let batches = feed.available().div_ceil(feed.batch()).max(1);
    let places = taps.iter().map(|tap| place(&model, tap)).collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<Histogram> = vec![Histogram::default(); wanted.len()];
    let mut done = 0usize;
    while let Some(batch) = step(&mut *session, &mut feed)? {
        let mut outputs = places.iter();
        for (name, histogram) in wanted.iter().zip(&mut found) {
            let sound = match of_inputs(name) {
                Some(index) => histogram.add(&floats(&batch[index], session.inputs()[index].dtype)),
                None => match outputs.next().map(|&at| session.output(0, at).data) {
                    Some(TensorData::F32(values)) => histogram.add(values),
                    _ => return Err(ForgeError::Model(format!("tensor `{name}` is no floats"))),
                },
            };
            if !sound {
                return Err(ForgeError::Calibration(format!(
                    "tensor `{name}` has a value that is not finite on frame {}; int8 has no range for it",
                    done * feed.batch()
                )));
            }
        }
        done += 1;
        let (frames, available) = ((done * feed.batch()).min(feed.available()), feed.available());
        let part = (portion * batches + done) as f64 / (portions * batches) as f64;
        told.tell(format!("finding ranges: frame {frames} of {available}"), part.min(1.0))?;
    }
    if portion == 0 {
        collected.used = feed.used().clone();
    }
    collected.histograms.extend(wanted.iter().map(|&name| name.to_owned()).zip(found));
    Ok(())
}

/// Feeds the next batch and runs the model; `None` at the end of the data.
pub(crate) fn step(session: &mut dyn Session, feed: &mut CalibrationFeed) -> Result<Option<Vec<Vec<u8>>>, ForgeError> {
    let Some(batch) = feed.next_batch().map_err(ForgeError::Calibration)? else { return Ok(None) };
    for (index, bytes) in batch.iter().enumerate() {
        fill(bytes, session.input(0, index));
    }
    session.run(0).map_err(|error| ForgeError::Model(error.to_string()))?;
    Ok(Some(batch))
}

/// Where an output stands.
pub(crate) fn place(model: &ModelFile, tensor: &str) -> Result<usize, ForgeError> {
    let at = model.info.outputs.iter().position(|output| output.name == tensor);
    at.ok_or_else(|| ForgeError::Model(format!("tensor `{tensor}` did not come out")))
}

/// Values as they lie in memory, into what a session reads.
fn fill(bytes: &[u8], input: SlotInput<'_>) {
    fn each<T, const N: usize>(bytes: &[u8], values: &mut [T], from: impl Fn([u8; N]) -> T) {
        values.iter_mut().zip(bytes.as_chunks::<N>().0).for_each(|(value, &bytes)| *value = from(bytes));
    }
    match input {
        SlotInput::F32(values) => each(bytes, values, f32::from_le_bytes),
        SlotInput::F16(values) => each(bytes, values, half::f16::from_le_bytes),
        SlotInput::Bf16(values) => each(bytes, values, half::bf16::from_le_bytes),
        SlotInput::F64(values) => each(bytes, values, f64::from_le_bytes),
        SlotInput::I8(values) => each(bytes, values, i8::from_le_bytes),
        SlotInput::U8(values) => each(bytes, values, u8::from_le_bytes),
        SlotInput::I32(values) => each(bytes, values, i32::from_le_bytes),
        SlotInput::I64(values) => each(bytes, values, i64::from_le_bytes),
    }
}

/// The values of an input as floats; none for what is not quantised.
fn floats(bytes: &[u8], dtype: DType) -> Vec<f32> {
    match dtype {
        DType::F32 => bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
        _ => Vec::new(),
    }
}
