//! Checkpoints as ONNX: the module tree is walked, batch norms are folded, and a graph is written as Ultralytics names it.
//! Nothing of the checkpoint is executed, and what is not wholly understood is refused.

mod block;
mod file;
mod fuse;
mod graph;
mod guard;
mod head;
mod limit;
mod metadata;
mod place;
mod walk;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use prony_backend::ModelFile;
use prony_model::pt::Checkpoint;
use prony_model::shape::Sizes;
use prony_model::{Anatomy, ModelError};
use prony_types::{HalfSpec, Precision};
use prost::Message as _;
use prost::bytes::Bytes;
use serde::Serialize;

use self::graph::{Graph, Value};
use self::guard::Ledger;
use self::place::Place;
use self::walk::Walk;
use crate::ForgeError;
use crate::convert::convert;

/// Height and width of images where neither the user nor the checkpoint says.
pub const DEFAULT_IMGSZ: [u32; 2] = [640, 640];
/// Operator sets that can be written.
pub const OPSETS: RangeInclusive<u32> = 13..=18;

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportOptions {
    /// Height and width; what the model was trained with if nothing is said.
    pub imgsz: Option<[u32; 2]>,
    /// Images a call.
    pub batch: u32,
    /// Whether batch, height and width are chosen when the graph runs.
    pub dynamic: bool,
    /// Whether weights, inputs and outputs are 16-bit floats.
    pub half: bool,
    /// Operator set.
    pub opset: u32,
    /// Which branches of the head.
    pub end2end: EndToEnd,
}

impl Default for ExportOptions {
    fn default() -> ExportOptions {
        ExportOptions { imgsz: None, batch: 1, dynamic: false, half: false, opset: 17, end2end: EndToEnd::Auto }
    }
}

/// Whether the graph gives each object once, or many boxes that must be suppressed afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndToEnd {
    /// Each object once where the checkpoint has branches that were trained for it.
    Auto,
    /// Each object once.
    Yes,
    /// Many boxes.
    No,
}

/// A file, and what is to be said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// The ONNX file.
    pub bytes: Vec<u8>,
    /// Name and shape of the input; a text where an axis is chosen when the graph runs.
    pub input: (String, Vec<Axis>),
    /// The same of the output.
    pub output: (String, Vec<Axis>),
    /// Height and width of the images.
    pub imgsz: [u32; 2],
    /// Class names by number.
    pub names: BTreeMap<i64, String>,
    /// Whether each object comes once.
    pub end2end: bool,
    /// How many nodes.
    pub nodes: usize,
    /// Weights of the graph, counted as `prony inspect` counts those of its file.
    pub parameters: u64,
    /// Operations per image, counted the same way: a multiply-add is two.
    pub flops: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// One axis of an input or output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Axis {
    /// Of this length.
    Fixed(u64),
    /// Chosen when the graph runs.
    Named(String),
}

/// Writes a checkpoint as ONNX.
pub fn export(checkpoint: &Checkpoint, options: &ExportOptions) -> Result<Exported, ForgeError> {
    if let Some(reason) = checkpoint.refusal() {
        return Err(ForgeError::Unsupported(reason));
    }
    limit::check(options)?;
    limit::bounded(checkpoint)?;
    let [height, width] = limit::image_size(checkpoint, options.imgsz)?;
    let model = checkpoint.model.as_ref().ok_or_else(|| ForgeError::Model("it holds no model".to_owned()))?;
    let root = Place { module: model, path: String::new(), scope: String::new() };
    let layers = model.child("model").ok_or_else(|| ForgeError::Model("its model has no layers".to_owned()))?;
    let layers = Place { module: layers, path: "model".to_owned(), scope: "/model".to_owned() };
    let channels = limit::channels(checkpoint, &layers)?;
    let dims = [options.batch, u32::try_from(channels).unwrap_or(u32::MAX), height, width].map(|side| side as usize);
    let image = Value { name: "images".to_owned(), dims: dims.to_vec() };
    let mut walk = Walk {
        checkpoint,
        graph: Graph::default(),
        ledger: Ledger::default(),
        dynamic: options.dynamic,
        opset: options.opset,
    };
    let (head, pictures) = walk.layers(&layers, &image)?;
    let decoded = head::decode(&mut walk, &head, &pictures, options.end2end, &image)?;
    balance(&walk, &root, &layers)?;
    let (names, mut notes) = names(checkpoint, decoded.classes);
    notes.extend(limits(options, decoded.end2end, &decoded.output));
    let graph = walk.graph;
    let mut made = Exported {
        bytes: Vec::new(),
        input: (image.name.clone(), file::input_axes(&image, options.dynamic)),
        output: ("output0".to_owned(), file::output_axes(&decoded.output, options.dynamic, decoded.end2end)),
        imgsz: [height, width],
        names,
        end2end: decoded.end2end,
        nodes: graph.nodes.len(),
        parameters: 0,
        flops: 0,
        notes,
    };
    let facts = metadata::facts(checkpoint, options, &made, channels);
    let file = file::file(graph, &made, &decoded.output.name, options.opset, &facts);
    made.bytes = file.encode_to_vec();
    if options.half {
        made.bytes = halved(made.bytes)?;
        made.notes.push(
            "boxes come out in 16 bits too: to a quarter of a pixel from 256 on, to a half from 512 on".to_owned(),
        );
    }
    (made.parameters, made.flops) = counts(&made, options.batch)?;
    Ok(made)
}

/// Parameters, and operations per image, of the file that was made.
fn counts(made: &Exported, batch: u32) -> Result<(u64, u64), ForgeError> {
    let unreadable =
        |reason: ModelError| ForgeError::Build(format!("the graph that was made cannot be read: {reason}"));
    let bytes = Bytes::from(made.bytes.clone());
    let sizes = Sizes { batch: u64::from(batch), imgsz: Some(made.imgsz.map(u64::from)) };
    let cost = Anatomy::of(&bytes, &sizes).map_err(unreadable)?.cost;
    let file = ModelFile::from_bytes("the graph", bytes).map_err(unreadable)?;
    Ok((file.info.parameters, cost.flops() / u64::from(batch)))
}

/// The file in 16-bit floats, inputs and outputs too.
fn halved(bytes: Vec<u8>) -> Result<Vec<u8>, ForgeError> {
    let model = ModelFile::from_bytes("the exported graph", bytes.into());
    let model = model.map_err(|error| ForgeError::Build(error.to_string()))?;
    let spec = HalfSpec { keep_io: false, ..HalfSpec::new(Precision::Fp16) };
    convert(&model, &spec).map(|converted| converted.bytes)
}

/// Every weight must have been used, those beside the layers too.
fn balance(walk: &Walk<'_>, root: &Place<'_>, layers: &Place<'_>) -> Result<(), ForgeError> {
    walk.ledger.balance(layers)?;
    let beside = root.module.children.iter().find(|(name, child)| name != "model" && child.is_some());
    match (beside, root.module.parameters.is_empty()) {
        (None, true) => Ok(()),
        (Some((name, _)), _) => {
            Err(root.fault(format!("it has a `{}` beside its layers", prony_model::pt::plain(name))))
        }
        (None, false) => Err(root.fault("it has weights beside its layers")),
    }
}

/// Names of the classes; where the checkpoint has none, or others than its head, that is said.
fn names(checkpoint: &Checkpoint, classes: usize) -> (BTreeMap<i64, String>, Vec<String>) {
    let expected = 0..i64::try_from(classes).unwrap_or(i64::MAX);
    if checkpoint.names.keys().copied().eq(expected.clone()) {
        return (checkpoint.names.clone(), Vec::new());
    }
    let name = |number: i64| {
        let known = checkpoint.names.get(&number).cloned();
        (number, known.unwrap_or_else(|| format!("class{number}")))
    };
    let note = format!(
        "the checkpoint names {} classes and its head has {classes}: the others are called class0, class1 and so on",
        checkpoint.names.len()
    );
    (expected.map(name).collect(), vec![note])
}

/// What a dynamic graph that picks the best boxes cannot do.
fn limits(options: &ExportOptions, end2end: bool, output: &Value) -> Option<String> {
    let boxes = output.dims.get(1).filter(|_| options.dynamic && end2end)?;
    Some(format!("every image must have at least {boxes} places, the cells of all levels together"))
}
