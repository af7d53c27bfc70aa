//! What the layers of an engine compute in, from the inspector's JSON, and how long they take, from a profiling pass.
//! Pure.
//!
//! How much the inspector tells depends on how the engine was built: with detailed verbosity a layer is an object with
//! its tensors and their types, otherwise it is a name. The words for a type changed over the versions: `Half`, `FP16` and
//! `Row major linear FP16 format` are the same.

use std::collections::{BTreeMap, HashMap};

use prony_types::{LayerShare, LayerTime, LayersRecord, Precision};
use serde::Deserialize;
use serde_json::Value;

/// The slowest layers that are named.
const SLOWEST: usize = 5;
/// The word for a type that the engine does not tell.
const UNKNOWN: &str = "unknown";

/// A layer of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) name: String,
    /// What it computes in.
    pub(super) dtype: &'static str,
    /// Whether it only changes a tensor's format.
    pub(super) reformats: bool,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "Layers")]
    layers: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct Object {
    #[serde(rename = "Name", default)]
    name: String,
    #[serde(rename = "LayerType", default)]
    kind: String,
    #[serde(rename = "Precision")]
    precision: Option<String>,
    #[serde(rename = "Inputs", default)]
    inputs: Vec<Tensor>,
    #[serde(rename = "Outputs", default)]
    outputs: Vec<Tensor>,
}

#[derive(Deserialize)]
struct Tensor {
    #[serde(rename = "Format/Datatype")]
    format_and_type: Option<String>,
    #[serde(rename = "Datatype", alias = "DataType")]
    datatype: Option<String>,
}

impl Tensor {
    fn dtype(&self) -> Option<&'static str> {
        self.datatype.as_deref().or(self.format_and_type.as_deref()).and_then(word)
    }
}

/// Reads the inspector's JSON of a whole engine. Layers that only order others are left out.
pub(super) fn parse(json: &str) -> Result<Vec<Layer>, String> {
    // TensorRT joins the names of merged layers by a separator that JSON does not permit inside a string.
    let permitted: String = json.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let document: Document =
        serde_json::from_str(&permitted).map_err(|e| format!("the engine's layer information cannot be read: {e}"))?;
    Ok(document.layers.into_iter().filter_map(layer).collect())
}

fn layer(value: Value) -> Option<Layer> {
    let object = match value {
        Value::String(name) => Object { name, ..Object::default() },
        // One of a form that is not known here stays a layer, of which nothing is known.
        other => serde_json::from_value(other).unwrap_or_default(),
    };
    if ["wait", "signal", "noop"].contains(&object.kind.to_lowercase().as_str()) {
        return None;
    }
    // An int8 convolution may well write fp16; what it takes in is what it multiplies.
    let taken = object.inputs.iter().find_map(Tensor::dtype);
    let given = || object.outputs.iter().find_map(Tensor::dtype);
    let told = object.precision.as_deref().and_then(word).or(taken).or_else(given);
    Some(Layer {
        dtype: told.unwrap_or(UNKNOWN),
        reformats: object.kind.eq_ignore_ascii_case("reformat") || object.name.starts_with("Reformatting CopyNode"),
        name: object.name,
    })
}

/// Our word for a type in one of TensorRT's spellings. The narrow ones come first: `BFloat16` is a `Float` too.
fn word(text: &str) -> Option<&'static str> {
    const WORDS: [(&str, &[&str]); 12] = [
        ("bf16", &["bf16", "bfloat16"]),
        ("nvfp4", &["fp4", "e2m1", "float4"]),
        ("fp8", &["fp8", "e4m3", "float8"]),
        ("fp16", &["fp16", "half", "float16"]),
        ("uint8", &["uint8"]),
        ("int8", &["int8"]),
        ("int4", &["int4"]),
        ("int64", &["int64"]),
        ("int32", &["int32"]),
        ("bool", &["bool"]),
        ("fp32", &["fp32", "float"]),
        ("e8m0", &["e8m0"]),
    ];
    let text = text.to_lowercase();
    WORDS.iter().find(|(_, spellings)| spellings.iter().any(|spelling| text.contains(spelling))).map(|(word, _)| *word)
}

/// Counts layers by type, with the times of so many calls where a profiler gave them.
pub(super) fn record(layers: &[Layer], times: &[(String, f32)], calls: usize) -> LayersRecord {
    let mean = means(times, calls);
    let all: f64 = mean.values().sum();
    let share = |ms: f64| (all > 0.0).then(|| ms / all);
    let known: HashMap<&str, &Layer> = layers.iter().map(|layer| (layer.name.as_str(), layer)).collect();
    let mut by_type: BTreeMap<&str, (u32, f64)> = BTreeMap::new();
    for layer in layers.iter().filter(|layer| !layer.reformats) {
        by_type.entry(layer.dtype).or_default().0 += 1;
    }
    let mut reformat_ms = 0.0;
    let mut slowest = Vec::new();
    for (&name, &ms) in &mean {
        let layer = known.get(name);
        let dtype = layer.map_or(UNKNOWN, |layer| layer.dtype);
        slowest.push(LayerTime { name: name.to_owned(), dtype: dtype.to_owned(), ms });
        match layer {
            Some(layer) if layer.reformats => reformat_ms += ms,
            None if name.starts_with("Reformatting CopyNode") => reformat_ms += ms,
            _ => by_type.entry(dtype).or_default().1 += ms,
        }
    }
    slowest.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.name.cmp(&b.name)));
    slowest.truncate(SLOWEST);
    let mut by_type: Vec<LayerShare> = by_type
        .into_iter()
        // A name that the profiler knows and the inspector does not, and that took no time, is nothing to count.
        .filter(|&(_, (layers, ms))| layers > 0 || ms > 0.0)
        .map(|(dtype, (layers, ms))| LayerShare { dtype: dtype.to_owned(), layers, time: share(ms) })
        .collect();
    let time = |share: &LayerShare| share.time.unwrap_or(0.0);
    by_type.sort_by(|a, b| time(b).total_cmp(&time(a)).then(b.layers.cmp(&a.layers)));
    LayersRecord {
        layers: layers.len() as u32,
        by_type,
        reformats: layers.iter().filter(|layer| layer.reformats).count() as u32,
        reformat_time: share(reformat_ms),
        slowest,
    }
}

/// Mean milliseconds of each layer.
fn means(times: &[(String, f32)], calls: usize) -> BTreeMap<&str, f64> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, ms) in times {
        *sums.entry(name).or_default() += f64::from(*ms);
    }
    sums.values_mut().for_each(|sum| *sum /= calls.max(1) as f64);
    sums
}

/// What an engine executes, by its layers where they tell, else as it was asked to be.
pub(super) fn executed(layers: Result<Vec<Layer>, String>, asked: Precision) -> String {
    let asked_for = || match asked {
        Precision::Native => "as built".to_owned(),
        asked => format!("{asked}, as built"),
    };
    let Ok(layers) = layers else { return asked_for() };
    let record = record(&layers, &[], 0);
    // Types of shapes and indices are nobody's precision.
    let computes = |share: &&LayerShare| !["int32", "int64", "bool", "uint8", UNKNOWN].contains(&share.dtype.as_str());
    let mut by_type: Vec<&LayerShare> = record.by_type.iter().filter(computes).collect();
    // What was asked for first, then the narrowest: an engine with int8 layers is not "fp32" because most layers are.
    by_type.sort_by_key(|share| (share.dtype != asked.name(), bits(&share.dtype)));
    let Some((first, others)) = by_type.split_first() else { return asked_for() };
    let others = others.iter().map(|share| format!(", {} ({})", share.dtype, share.layers)).collect::<String>();
    format!("{} ({} of {} layers){others}", first.dtype, first.layers, record.layers - record.reformats)
}

/// Width of a data type, by the digits of its name.
fn bits(dtype: &str) -> u32 {
    let digits: String = dtype.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
