//! All that a graph tells about itself at one input size, from the bytes of its file: one call for whoever describes a
//! model, wherever its ONNX comes from.

use std::collections::BTreeMap;
use std::path::Path;

use prony_types::{DType, Dim, SceneKind, TensorInfo};
use prost::Message as _;
use prost::bytes::Bytes;

use crate::builtin::builtin;
use crate::cost::{Cost, type_name};
use crate::error::ModelError;
use crate::info;
use crate::map::map_file;
use crate::onnx::{Elements, GraphProto, ModelProto, dtype};
use crate::shape::{self, Shape, Sizes};

/// An output with the shape that it has at the input size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputShape {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Its shape, where it is known.
    pub shape: Option<Shape>,
}

/// What a graph is made of and what it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anatomy {
    /// Version of the container format.
    pub ir_version: i64,
    /// The tool that wrote it, with its version.
    pub producer: String,
    /// Operator sets by domain; the standard one is `ai.onnx`.
    pub opsets: BTreeMap<String, i64>,
    /// Everything that its exporter wrote beside the graph.
    pub metadata: BTreeMap<String, String>,
    /// Axes of inputs that the caller chooses, as `images[0] batch`.
    pub free_axes: Vec<String>,
    /// Weights by element type: how many there are.
    pub weights: BTreeMap<&'static str, u64>,
    /// Results of nodes by element type: how many there are.
    pub activations: BTreeMap<&'static str, u64>,
    /// Weights that lie in other files.
    pub external: usize,
    /// The outputs at the input size.
    pub outputs: Vec<OutputShape>,
    /// Nodes that have an output of unknown shape.
    pub unknown_shapes: usize,
    /// What it costs.
    pub cost: Cost,
}

impl Anatomy {
    /// Takes a file on disk apart; its weights are not read.
    pub fn read(path: &Path, sizes: &Sizes) -> Result<Anatomy, ModelError> {
        let bytes = map_file(path).map_err(|reason| ModelError::Unmapped { path: path.to_owned(), reason })?;
        Anatomy::of(&bytes, sizes)
    }

    /// Takes one of the detectors inside the binary apart.
    pub fn builtin(kind: SceneKind, sizes: &Sizes) -> Result<Anatomy, ModelError> {
        Anatomy::of(&Bytes::from_static(builtin(kind)), sizes)
    }

    /// Takes a file apart. The error says why it is no ONNX model.
    pub fn of(bytes: &Bytes, sizes: &Sizes) -> Result<Anatomy, ModelError> {
        let unreadable = || ModelError::NoGraph(info::sniff(bytes));
        let model = ModelProto::decode(bytes.clone()).map_err(|_| unreadable())?;
        let graph = model.graph.as_ref().ok_or_else(unreadable)?;
        let shapes = shape::infer(graph, sizes);
        let elements = Elements::of(graph);
        let output = |value: &crate::onnx::ValueInfo| OutputShape {
            name: value.name.clone(),
            dtype: elements.get(&value.name).map_or(DType::Other, dtype::from_number),
            shape: shapes.get(&value.name).map(<[u64]>::to_vec),
        };
        let producer = format!("{} {}", model.producer_name, model.producer_version);
        let opset = |set: &crate::onnx::OperatorSetId| {
            let domain = if set.domain.is_empty() { "ai.onnx" } else { &set.domain };
            (domain.to_owned(), set.version)
        };
        Ok(Anatomy {
            ir_version: model.ir_version,
            producer: producer.trim().to_owned(),
            opsets: model.opset_import.iter().map(opset).collect(),
            metadata: model.metadata_props.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect(),
            free_axes: free_axes(&info::inputs(graph)),
            weights: weights(graph),
            activations: activations(graph, &elements),
            external: graph.initializer.iter().filter(|tensor| tensor.is_external()).count(),
            outputs: graph.output.iter().map(output).collect(),
            unknown_shapes: shapes.unknown().len(),
            cost: Cost::of(graph, &shapes),
        })
    }
}

fn free_axes(inputs: &[TensorInfo]) -> Vec<String> {
    let axes = |input: &TensorInfo| {
        let free = input.dims.iter().enumerate().filter(|(_, dim)| matches!(dim, Dim::Named(_)));
        free.map(|(at, dim)| format!("{}[{at}] {dim}", input.name)).collect::<Vec<_>>()
    };
    inputs.iter().flat_map(axes).collect()
}

fn weights(graph: &GraphProto) -> BTreeMap<&'static str, u64> {
    let mut types: BTreeMap<&'static str, u64> = BTreeMap::new();
    for tensor in &graph.initializer {
        let sum = types.entry(type_name(tensor.data_type)).or_default();
        *sum = sum.saturating_add(tensor.count().unwrap_or(0) as u64);
    }
    types
}

fn activations(graph: &GraphProto, elements: &Elements) -> BTreeMap<&'static str, u64> {
    let mut types: BTreeMap<&'static str, u64> = BTreeMap::new();
    let computed = graph.node.iter().filter(|node| node.op_type != "Constant").flat_map(|node| &node.output);
    for name in computed.filter(|name| !name.is_empty()) {
        *types.entry(elements.get(name).map_or("unknown", type_name)).or_default() += 1;
    }
    types
}
