//! The readers, each as a function of bytes that goes as deep as the reader does.

mod documents;

use std::cell::RefCell;
use std::path::PathBuf;

use prony_model::onnx::{Elements, GraphProto, ModelProto};
use prony_model::pt::{Archive, Checkpoint, Pickle, Value, read_pickle};
use prony_model::{ModelFile, common_taps, decoding_tail};
use prony_source::arrays::ArrayFile;
use prony_types::{DType, TensorSpec};
use prost::Message as _;
use prost::bytes::Bytes;
use tempfile::TempDir;

use crate::traces::Traces;

/// Members that a container of torch's has.
const MEMBERS: [&str; 5] = ["data.pkl", "byteorder", "version", "data/0", "data/1"];
/// Outputs that are asked for when a graph is taken apart.
const TAPS: usize = 4;

/// A reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The pickle machine.
    Pickle,
    /// The container of a checkpoint.
    Zip,
    /// A whole checkpoint.
    Checkpoint,
    /// An ONNX file.
    Onnx,
    /// One array.
    Npy,
    /// Several arrays.
    Npz,
    /// `report.json`, and what is rendered from it.
    Record,
    /// `events.jsonl`.
    Events,
    /// `samples.csv`.
    Samples,
    /// A plan file.
    Plan,
    /// `data.yaml`.
    DataYaml,
    /// `instances*.json` and result files.
    Coco,
    /// What stands beside an engine or a graph.
    Sidecar,
    /// A wheel.
    Wheel,
}

impl Reader {
    /// All of them.
    pub const ALL: [Reader; 14] = [
        Reader::Pickle,
        Reader::Zip,
        Reader::Checkpoint,
        Reader::Onnx,
        Reader::Npy,
        Reader::Npz,
        Reader::Record,
        Reader::Events,
        Reader::Samples,
        Reader::Plan,
        Reader::DataYaml,
        Reader::Coco,
        Reader::Sidecar,
        Reader::Wheel,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Reader::Pickle => "pickle",
            Reader::Zip => "zip",
            Reader::Checkpoint => "checkpoint",
            Reader::Onnx => "onnx",
            Reader::Npy => "npy",
            Reader::Npz => "npz",
            Reader::Record => "record",
            Reader::Events => "events",
            Reader::Samples => "samples",
            Reader::Plan => "plan",
            Reader::DataYaml => "data-yaml",
            Reader::Coco => "coco",
            Reader::Sidecar => "sidecar",
            Reader::Wheel => "wheel",
        }
    }

    /// Reads an input; how far that got is left in the traces.
    pub fn read(self, input: &[u8], traces: &mut Traces) {
        match self {
            Reader::Pickle => pickle(input, traces),
            Reader::Zip => zip(input, traces),
            Reader::Checkpoint => checkpoint(input, traces),
            Reader::Onnx => onnx(input, traces),
            Reader::Npy => arrays(input, "npy", traces),
            Reader::Npz => arrays(input, "npz", traces),
            Reader::Record => documents::record(input, traces),
            Reader::Events => documents::events(input, traces),
            Reader::Samples => documents::samples(input, traces),
            Reader::Plan => documents::plan(input, traces),
            Reader::DataYaml => documents::data_yaml(input, traces),
            Reader::Coco => documents::coco(input, traces),
            Reader::Sidecar => documents::sidecar(input, traces),
            Reader::Wheel => documents::wheel(input, traces),
        }
    }
}

fn pickle(input: &[u8], traces: &mut Traces) {
    match read_pickle(input) {
        Ok(pickle) => values(&pickle, traces),
        Err(error) => traces.at("pickle", error),
    }
}

/// Asks a pickle everything that it can be asked.
fn values(pickle: &Pickle, traces: &mut Traces) {
    let root = pickle.root();
    traces.count("values", pickle.values().len());
    for value in pickle.values() {
        let filled = match value {
            Value::Reduce(made) | Value::Object(made) => (made.entries.len().min(2), made.elements.len().min(2)),
            Value::List(elements) | Value::Set(elements) => (0, elements.len().min(4)),
            Value::Dict(entries) => (entries.len().min(4), 0),
            _ => (0, 0),
        };
        traces.at_number("value", (std::mem::discriminant(value), filled));
    }
    traces.count("entries", pickle.entries(root).map_or(0, <[_]>::len));
    traces.count("elements", pickle.elements(root).map_or(0, <[_]>::len));
    let facts = (pickle.text(root).is_some(), pickle.number(root).is_some(), pickle.ints(root).is_some());
    traces.at("root", format!("{:?} {:?}", facts, pickle.global(root).is_some()));
    traces.count("ema", usize::from(pickle.entry(root, "ema").is_some()));
}

fn zip(input: &[u8], traces: &mut Traces) {
    let archive = match Archive::read(Bytes::copy_from_slice(input)) {
        Ok(archive) => archive,
        Err(error) => return traces.at("zip", error),
    };
    traces.count("members", archive.members());
    for name in MEMBERS {
        match archive.member(name) {
            Ok(bytes) => traces.count(name, bytes.len()),
            Err(error) => traces.at(name, error),
        }
        let _ = archive.text(name);
    }
}

fn checkpoint(input: &[u8], traces: &mut Traces) {
    let checkpoint = match Checkpoint::read(Bytes::copy_from_slice(input)) {
        Ok(checkpoint) => checkpoint,
        Err(error) => return traces.at("checkpoint", error),
    };
    traces.at("refusal", checkpoint.refusal().unwrap_or_default());
    traces.count("tensors", checkpoint.tensors());
    traces.count("stored elements", checkpoint.stored_elements().values().sum());
    traces.count("modules", checkpoint.modules().len());
    traces.count("names", checkpoint.names.len());
    traces.count("strides", checkpoint.strides.len());
    let weights = checkpoint.weights.iter().map(|(_, tensor)| tensor);
    let mut tensors: Vec<_> = weights.collect();
    if let Some(model) = &checkpoint.model {
        model.visit(&mut |module| {
            tensors.extend(module.parameters.iter().chain(&module.buffers).filter_map(|(_, tensor)| tensor.as_ref()));
        });
    }
    for tensor in tensors {
        match tensor.to_f32(&checkpoint.archive) {
            Ok(elements) => {
                traces.at("elements", format!("{:?} {}", tensor.element, elements.len() == tensor.elements()));
            }
            Err(error) => traces.at("elements", error),
        }
    }
}

fn onnx(input: &[u8], traces: &mut Traces) {
    let bytes = Bytes::copy_from_slice(input);
    traces.count("tail", decoding_tail(&bytes).len());
    match ModelProto::decode(bytes.clone()) {
        Ok(decoded) => {
            graph(&decoded.graph.clone().unwrap_or_default(), 0, traces);
            // Written again it is no larger than it was, but for packing.
            traces.count("encoded", decoded.encode_to_vec().len() / (input.len() + 1));
        }
        Err(error) => traces.at("decode", error),
    }
    let model = match ModelFile::from_bytes("case", bytes) {
        Ok(model) => model,
        Err(error) => return traces.at("onnx", error),
    };
    traces.at("info", format!("{:?} {:?}", model.info.quantised, model.info.weights));
    traces.count("inputs", model.info.inputs.len());
    traces.count("operators", model.info.operators.len());
    traces.count("names", model.info.metadata.names.len());
    let taps = common_taps(&model, &model).unwrap_or_default();
    traces.count("taps", taps.len());
    let names: Vec<&str> = taps.iter().map(|tap| tap.tensor.as_str()).take(TAPS).collect();
    match model.with_outputs(&names) {
        Ok(more) => traces.count("outputs", more.info.outputs.len()),
        Err(error) => traces.at("outputs", error),
    }
}

/// Types and elements of a graph, and of those within it.
fn graph(graph: &GraphProto, depth: usize, traces: &mut Traces) {
    let elements = Elements::of(graph);
    traces.count("nodes", graph.node.len());
    traces.count("depth", depth);
    for node in &graph.node {
        let told: Vec<_> = node.output.iter().map(|name| elements.get(name)).collect();
        traces.at_number("node", (node.op_type.len(), node.attribute.len().min(8), told));
        node.attribute
            .iter()
            .filter_map(|attribute| attribute.g.as_ref())
            .for_each(|g| self::graph(g, depth + 1, traces));
    }
    for tensor in &graph.initializer {
        let read = (tensor.to_f32s().is_some(), tensor.to_i64s().is_some(), tensor.is_external());
        traces.at_number("weight", (read, tensor.dims.len().min(8), tensor.data_type, tensor.count().is_some()));
    }
}

thread_local! {
    /// The reader of arrays takes files, so every case is one, in memory where the system has a place for that.
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

fn case_file(ending: &str) -> Option<PathBuf> {
    FOLDER.with_borrow_mut(|folder| {
        let made = folder.take().or_else(|| tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).ok());
        let path = made.as_ref().map(|made| made.path().join(format!("case.{ending}")));
        *folder = made;
        path
    })
}

fn arrays(input: &[u8], ending: &str, traces: &mut Traces) {
    let Some(path) = case_file(ending) else { return };
    if std::fs::write(&path, input).is_err() {
        return;
    }
    let file = match ArrayFile::open(&path) {
        Ok(file) => file,
        Err(error) => return traces.at(ending, error.what),
    };
    let names = file.names().map_or_else(|| vec![String::new()], <[String]>::to_vec);
    traces.count("arrays", names.len());
    for name in names.iter().take(8) {
        let shape = match file.shape(name) {
            Ok(shape) => shape,
            Err(error) => {
                traces.at("shape", error.what);
                continue;
            }
        };
        traces.count("axes", shape.len());
        for dtype in [DType::F32, DType::I64, DType::U8] {
            match file.read(name, &TensorSpec { name: name.clone(), dtype, shape: shape.clone() }) {
                Ok(read) => traces.at("values", format!("{dtype} {}", read.note.unwrap_or_default())),
                Err(error) => traces.at("values", error.what),
            }
        }
    }
}
