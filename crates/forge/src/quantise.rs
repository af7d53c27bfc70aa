//! Graphs with quantisers around what is computed in bytes.
//!
//! [`quantise`] decides which layers (`place`), runs the graph over calibration data to see how large its tensors get
//! (`collect`, `histogram`), turns that into ranges (`range`), rounds the weights (`weight`) and writes the new graph
//! (`write`). [`sensitivity`] tells what each layer costs.

mod collect;
mod histogram;
mod loss;
mod place;
mod range;
mod report;
mod weight;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use prony_backend::precision_of;
use prony_model::onnx::ModelProto;
use prony_model::{ModelFile, decoding_tail};
use prony_types::{BuildProgress, ModelSource, Precision, QuantiseFor, QuantiseSpec, RuntimeSpec};
use prost::Message as _;

use self::collect::{Collected, Subject, Told, collect};
use self::histogram::Histogram;
use self::place::{Known, Placement, place};
use self::range::{LEVELS, clip};
use self::write::{Plan, opset, write};
use crate::error::ForgeError;

pub use self::loss::{LayerLoss, sensitivity};
pub use self::range::PERCENTILE;
pub use self::report::{FloatLayer, QuantiseReport, QuantisedLayer, QuantisedTensor, SCHEMA};

/// Key of the fact in the file that says how it was made.
pub const FACT: &str = "prony.quantise";

/// A quantised graph and how it came about.
#[derive(Clone, Debug)]
pub struct Quantised {
    /// The ONNX file.
    pub bytes: Vec<u8>,
    /// What is in bytes, what is not and why, and what it costs.
    pub report: QuantiseReport,
}

/// Where and with what ranges are found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site<'a> {
    /// Folder in which magnitudes are kept for the next time.
    pub cache: Option<&'a Path>,
    /// ONNX Runtime; `None` for the embedded engine.
    pub runtime: Option<&'a RuntimeSpec>,
    /// Height and width for inputs whose size is free.
    pub imgsz: Option<[u32; 2]>,
    /// CPU threads; one a core where nothing is said.
    pub threads: Option<u32>,
}

/// Quantises a model. `beat` is called after every frame; its error ends the work.
pub fn quantise(
    model: &ModelFile,
    source: &ModelSource,
    spec: &QuantiseSpec,
    site: &Site<'_>,
    on_progress: &mut dyn FnMut(BuildProgress),
    beat: &dyn Fn() -> Result<(), ForgeError>,
) -> Result<Quantised, ForgeError> {
    let told = &mut Told { on_progress, beat };
    let subject = Subject { model, source, data: &spec.calibration, site };
    examined(subject, spec, told, written)
}

/// What is known of a model before anything is written.
struct Examined<'a> {
    subject: Subject<'a>,
    spec: &'a QuantiseSpec,
    file: &'a ModelProto,
    known: &'a Known<'a>,
    placement: Placement,
    collected: Collected,
}

/// Reads the graph, decides which layers, and looks at how large its tensors get.
fn examined<T>(
    subject: Subject<'_>,
    spec: &QuantiseSpec,
    told: &mut Told<'_>,
    work: impl FnOnce(Examined<'_>, &mut Told<'_>) -> Result<T, ForgeError>,
) -> Result<T, ForgeError> {
    let file = &decode(subject.model)?;
    let graph = file.graph.as_ref().ok_or_else(|| ForgeError::Model("the file has no graph".into()))?;
    let known = &Known::new(graph, decoding_tail(&subject.model.bytes));
    let placement = place(known, &spec.exclude, spec.target)?;
    let collected = measure(subject, known, spec, told)?;
    work(Examined { subject, spec, file, known, placement, collected }, told)
}

/// The graph with its quantisers, and what they cost.
fn written(examined: Examined<'_>, told: &mut Told<'_>) -> Result<Quantised, ForgeError> {
    let Examined { subject, spec, file, known, placement, collected } = examined;
    let ranges = ranges(&placement, &collected.histograms, spec);
    let scales: BTreeMap<String, f32> = ranges.iter().map(|(name, range)| (name.clone(), range.scale)).collect();
    let plan = Plan { placement: &placement, scales: &scales, per_channel: spec.per_channel, target: spec.target };
    let facts = [(FACT, report::fact(spec, &collected))];
    let (quantised, weights) = write(file, known, &plan, &facts)?;
    let bytes = quantised.encode_to_vec();
    let rewritten = ModelFile::from_bytes("the quantised model", bytes.clone().into())
        .map_err(|error| ForgeError::Build(error.to_string()))?;
    let activations = loss::activations(subject, &rewritten, known, &placement, told)?;
    let report = report::report(subject, spec, &placement, &collected, &ranges, &weights, &activations);
    Ok(Quantised { bytes, report })
}

/// What a file is made of, where it can be quantised.
fn decode(model: &ModelFile) -> Result<ModelProto, ForgeError> {
    let refuse = |why: &str| Err(ForgeError::Model(why.to_owned()));
    if model.engine.is_some() {
        return refuse("it is an engine; give the ONNX file that it was built from");
    }
    match precision_of(&model.info) {
        Precision::Fp32 => {}
        narrow @ (Precision::Fp16 | Precision::Bf16) => {
            return refuse(&format!("it is in {narrow}; give the fp32 model that it was made from"));
        }
        narrow => return refuse(&format!("it is quantised already, to {narrow}; give the fp32 model")),
    }
    let file = ModelProto::decode(model.bytes.clone()).map_err(|error| ForgeError::Model(error.to_string()))?;
    if file.graph.iter().flat_map(|graph| &graph.initializer).any(|tensor| tensor.is_external()) {
        return refuse("its weights are in a file of their own, which cannot be quantised yet; save it as one file");
    }
    opset(&file)?;
    Ok(file)
}

/// Magnitudes of every tensor that may be in bytes, whatever is excluded and whatever the target: one run does for all
/// choices of layers and for all targets of a model.
fn measure(
    subject: Subject<'_>,
    known: &Known<'_>,
    spec: &QuantiseSpec,
    told: &mut Told<'_>,
) -> Result<Collected, ForgeError> {
    let mut measured = place(known, &[], spec.target)?.tensors.measured;
    // A target for which nothing can be quantised has nothing to add.
    let others = QuantiseFor::ALL.iter().filter_map(|&target| place(known, &[], target).ok());
    measured.extend(others.flat_map(|placement| placement.tensors.measured));
    collect(subject, &measured, told)
}

/// The range of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    /// The largest magnitude that was seen, where it was measured.
    pub(crate) max: Option<f32>,
    /// The magnitude that the largest byte stands for.
    pub(crate) clip: f64,
    /// What a step is worth.
    pub(crate) scale: f32,
}

/// The range of every tensor in bytes. Those of one scale are looked at together.
fn ranges(
    placement: &Placement,
    histograms: &BTreeMap<String, Histogram>,
    spec: &QuantiseSpec,
) -> BTreeMap<String, Range> {
    let mut together: BTreeMap<&str, Histogram> = BTreeMap::new();
    let mut unit: BTreeSet<&str> = BTreeSet::new();
    for (name, group) in &placement.tensors.scales {
        let whole = together.entry(group).or_default();
        histograms
            .get(name)
            .filter(|_| placement.tensors.measured.contains(name))
            .into_iter()
            .for_each(|h| whole.merge(h));
        if placement.tensors.unit.contains(name) {
            unit.insert(group);
        }
    }
    let of_group = |group: &str| {
        let found = clip(&together[group], spec.calibration.method);
        let clip = if unit.contains(group) { found.max(1.0) } else { found };
        // A tensor that is always zero has any range.
        let clip = if clip > 0.0 { clip } else { 1.0 };
        (clip, weight::positive((clip / LEVELS) as f32))
    };
    let groups: BTreeMap<&str, (f64, f32)> = together.keys().map(|&group| (group, of_group(group))).collect();
    let range = |(name, group): (&String, &String)| {
        let (clip, scale) = groups[group.as_str()];
        (name.clone(), Range { max: histograms.get(name).map(Histogram::max), clip, scale })
    };
    placement.tensors.scales.iter().map(range).collect()
}

#[cfg(test)]
#[path = "quantise/quantise_tests.rs"]
mod tests;
