//! The nodes of an ONNX graph, and the same file with some of their tensors among its outputs.
//!
//! New outputs are put between the bytes: everything else stays as it was, whatever the file holds.

use std::collections::{HashMap, HashSet};

use prost::Message as _;
use prost::bytes::Bytes;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

use crate::error::ModelError;
use crate::file::ModelFile;
use crate::onnx::{GraphProto, ModelProto, ValueInfo};

/// Field of the graph inside the file.
const GRAPH: u32 = 7;

/// Operators whose output is floats where the model computes, and whole numbers where it only counts axes. What gives
/// bytes or truth values says nothing about noise, and not every backend can hand it out.
const COMPUTES: [&str; 44] = [
    "Add",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "Clip",
    "Concat",
    "Conv",
    "ConvTranspose",
    "DepthToSpace",
    "Div",
    "Einsum",
    "Elu",
    "Erf",
    "Exp",
    "FusedConv",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GridSample",
    "HardSigmoid",
    "HardSwish",
    "InstanceNormalization",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "MatMul",
    "MaxPool",
    "Mish",
    "Mul",
    "PRelu",
    "Pow",
    "ReduceMax",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "Resize",
    "Sigmoid",
    "SiLU",
    "Softmax",
    "Softplus",
    "Sqrt",
    "Sub",
    "Tanh",
    "Upsample",
];

/// A node and one tensor that it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// Name of the node; that of the tensor where it has none.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// Name of the tensor.
    pub tensor: String,
}

/// Tensors that two models both compute, by the same operator and under the same name, in the order of the first. Nodes
/// that only one of them has, like the casts and scalings of a quantised one, are passed over.
pub fn common_taps(a: &ModelFile, b: &ModelFile) -> Result<Vec<Tap>, ModelError> {
    let of_b: HashMap<String, String> = taps(b)?.into_iter().map(|tap| (tap.tensor, tap.op)).collect();
    Ok(taps(a)?.into_iter().filter(|tap| of_b.get(&tap.tensor) == Some(&tap.op)).collect())
}

/// Every tensor of the graph that says something about noise, in topological order.
fn taps(model: &ModelFile) -> Result<Vec<Tap>, ModelError> {
    let decoded = ModelProto::decode(model.bytes.clone()).map_err(|error| not_onnx(model, &error))?;
    let nodes = decoded.graph.unwrap_or_default().node.into_iter();
    let computes = nodes.filter(|node| COMPUTES.contains(&node.op_type.as_str()));
    let tap = |node: crate::onnx::NodeProto| {
        let tensor = node.output.into_iter().next().filter(|name| !name.is_empty())?;
        let name = if node.name.is_empty() { tensor.clone() } else { node.name };
        Some(Tap { node: name, op: node.op_type, tensor })
    };
    Ok(computes.filter_map(tap).collect())
}

impl ModelFile {
    /// The same model with these tensors among its outputs, behind its own. It is in memory alone, so weights in separate files
    /// are not found.
    pub fn with_outputs(&self, tensors: &[&str]) -> Result<ModelFile, ModelError> {
        let own: HashSet<&str> = self.info.outputs.iter().map(|output| output.name.as_str()).collect();
        let output = tensors.iter().filter(|name| !own.contains(**name));
        let output =
            output.map(|&name| ValueInfo { name: name.to_owned(), ty: None, ..ValueInfo::default() }).collect();
        let addition = GraphProto { output, ..GraphProto::default() }.encode_to_vec();
        let bytes = spliced(&self.bytes, &addition).map_err(|error| not_onnx(self, &error))?;
        ModelFile::from_bytes(&self.name(), bytes.into())
    }
}

fn not_onnx(model: &ModelFile, reason: &dyn std::fmt::Display) -> ModelError {
    ModelError::NotOnnx { name: model.name(), reason: reason.to_string() }
}

/// The file with more fields at the end of its graph.
fn spliced(file: &Bytes, addition: &[u8]) -> Result<Vec<u8>, String> {
    let mut rest = file.clone();
    let mut out = Vec::with_capacity(file.len() + addition.len() + 8);
    while !rest.is_empty() {
        let (field, wire) = decode_key(&mut rest).map_err(|e| e.to_string())?;
        encode_key(field, wire, &mut out);
        match wire {
            WireType::Varint => encode_varint(number(&mut rest)?, &mut out),
            WireType::SixtyFourBit => out.extend(take(&mut rest, 8)?),
            WireType::ThirtyTwoBit => out.extend(take(&mut rest, 4)?),
            WireType::LengthDelimited => {
                let length = number(&mut rest)?;
                let value = take(&mut rest, length)?;
                let more: &[u8] = if field == GRAPH { addition } else { &[] };
                encode_varint((value.len() + more.len()) as u64, &mut out);
                out.extend(value);
                out.extend(more);
            }
            WireType::StartGroup | WireType::EndGroup => return Err("it has a kind of field that ONNX has not".into()),
        }
    }
    Ok(out)
}

fn number(rest: &mut Bytes) -> Result<u64, String> {
    decode_varint(rest).map_err(|e| e.to_string())
}

fn take(rest: &mut Bytes, count: u64) -> Result<Bytes, String> {
    let count = usize::try_from(count).ok().filter(|&count| count <= rest.len());
    count.map(|count| rest.split_to(count)).ok_or_else(|| "it was cut short".to_owned())
}

#[cfg(test)]
mod tests {
    use prony_types::SceneKind;

    use super::*;

    #[test]
    fn new_outputs_stand_behind_the_own_ones_and_nothing_else_changes() {
        let model = ModelFile::builtin(SceneKind::Rgb).unwrap();
        let taps = common_taps(&model, &model).unwrap();
        assert!(taps.len() > 10, "{taps:?}");
        let names: Vec<&str> = taps.iter().take(3).map(|tap| tap.tensor.as_str()).collect();
        let more = model.with_outputs(&names).unwrap();
        let outputs = |model: &ModelFile| model.info.outputs.iter().map(|o| o.name.clone()).collect::<Vec<_>>();
        let (before, after) = (outputs(&model), outputs(&more));
        assert_eq!(after[..before.len()], before);
        assert_eq!(after[before.len()..], names);
        assert_eq!(more.bytes.len() - model.bytes.len(), names.iter().map(|n| n.len() + 4).sum::<usize>());
        // An output that is one already is not named twice.
        assert_eq!(outputs(&model.with_outputs(&[before[0].as_str()]).unwrap()), before);
    }

    #[test]
    fn a_field_that_prony_does_not_know_survives() {
        let model = ModelFile::builtin(SceneKind::Rgb).unwrap();
        // Version of the model (a number) and its documentation (a text).
        let unknown = [&[5 << 3, 42][..], &[6 << 3 | 2, 2, b'h', b'i']].concat();
        let mut bytes = model.bytes.to_vec();
        bytes.extend(&unknown);
        let model = ModelFile::from_bytes("m", bytes.into()).unwrap();
        let more = model.with_outputs(&["x"]).unwrap();
        assert!(more.bytes.ends_with(&unknown));
    }

    #[test]
    fn nodes_of_only_one_model_are_passed_over() {
        use crate::onnx::NodeProto;
        let graph = |nodes: Vec<NodeProto>| {
            let (input, output) = (vec![ValueInfo::floats("x", &[1])], vec![ValueInfo::floats("y", &[1])]);
            let graph = GraphProto { node: nodes, input, output, ..GraphProto::default() };
            ModelFile::from_bytes("m", ModelProto::new(graph, &[]).encode_to_vec().into()).unwrap()
        };
        let plain = graph(vec![
            NodeProto::new("Relu", &["x"], &["r"], vec![]),
            NodeProto::new("Tanh", &["r"], &["t"], vec![]),
            NodeProto::new("Sigmoid", &["t"], &["y"], vec![]),
        ]);
        let other = graph(vec![
            NodeProto::new("Relu", &["x"], &["r"], vec![]),
            NodeProto::new("Cast", &["r"], &["c"], vec![]),
            NodeProto::new("Exp", &["c"], &["t"], vec![]),
            NodeProto::new("Sigmoid", &["t"], &["y"], vec![]),
        ]);
        let names: Vec<String> = common_taps(&plain, &other).unwrap().into_iter().map(|tap| tap.tensor).collect();
        assert_eq!(names, ["r", "y"]);
    }
}
