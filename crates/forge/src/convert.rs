//! Graphs in 16-bit floats: weights and activations, with casts where fp32 has to stay.
//!
//! [`convert`] decides node by node (`choose`), then writes the graph anew (`rewrite`). What it did and what that cost is
//! in the report: nodes that stay and why, constants that overflow, and how many of the rest lost bits.

mod choose;
mod external;
mod facts;
mod narrow;
mod operators;
mod opset;
mod report;
mod rewrite;

#[cfg(test)]
mod tests;

use prony_model::onnx::{Elements, GraphProto, ModelProto, NodeProto, dtype};
use prony_model::{ModelFile, decoding_tail};
use prony_types::{HalfSpec, ModelFormat, Precision};
use prost::Message as _;

pub use self::choose::Why;
use self::choose::{Class, choose};
use self::facts::{Facts, attribute, is_standard};
pub use self::narrow::Losses;
pub use self::report::{ConvertReport, KeptNode, TensorLosses};
use self::rewrite::rewrite;
use crate::error::ForgeError;
use crate::weights::weights;

/// The first container version in which weights need not be listed among the inputs.
const WEIGHTS_APART: i64 = 4;

/// A graph in 16-bit floats, and what it cost.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The ONNX file.
    pub bytes: Vec<u8>,
    /// What was done.
    pub report: ConvertReport,
}

/// Brings a model to 16-bit floats.
pub fn convert(model: &ModelFile, spec: &HalfSpec) -> Result<Converted, ForgeError> {
    if !matches!(spec.precision, Precision::Fp16 | Precision::Bf16) {
        let asked = spec.precision;
        return Err(ForgeError::Unsupported(format!("a graph is converted to fp16 or bf16, not to {asked}")));
    }
    if model.info.format == ModelFormat::Engine {
        return Err(ForgeError::Model("it is a TensorRT engine; give the ONNX file that it was built from".into()));
    }
    let unreadable = |e| ForgeError::Model(format!("it cannot be read: {e}"));
    let mut decoded = ModelProto::decode(model.bytes.clone()).map_err(unreadable)?;
    let mut graph = decoded.graph.take().unwrap_or_default();
    refuse(model, &graph)?;
    let beside = weights(model)?.bytes;
    external::take_in(&mut graph, model)?;
    drop_idle_casts(&mut graph);
    let facts = Facts::of(&graph);
    let classes = choose(&facts, &decoding_tail(&model.bytes), spec)?;
    if !classes.contains(&Class::Half) {
        let precision = spec.precision;
        return Err(ForgeError::Model(format!(
            "no node of it can be computed in {precision}, so there is nothing to convert"
        )));
    }
    let (written, mut report) = rewrite(&facts, &classes, spec)?;
    decoded.graph = Some(written);
    decoded.ir_version = decoded.ir_version.max(WEIGHTS_APART);
    if spec.precision == Precision::Bf16 {
        report.opset = opset::raise(&mut decoded, needed(&graph, &classes))?;
    }
    let bytes = decoded.encode_to_vec();
    report.bytes_before = model.bytes.len() as u64 + beside;
    report.bytes_after = bytes.len() as u64;
    Ok(Converted { bytes, report })
}

/// The operator set in which every node that computes in bf16 may do so.
fn needed(graph: &GraphProto, classes: &[Class]) -> i64 {
    let narrow = graph.node.iter().zip(classes).filter(|(_, class)| matches!(class, Class::Half | Class::Source));
    narrow.map(|(node, _)| operators::bf16_since(&node.op_type)).max().unwrap_or(1)
}

/// What is not converted, and what to give instead.
fn refuse(model: &ModelFile, graph: &GraphProto) -> Result<(), ForgeError> {
    let operators = &model.info.operators;
    let quantiser = |op: &&String| op.contains("QuantizeLinear") || op.contains("DequantizeLinear");
    if model.info.quantised.is_some() || operators.iter().any(|op| quantiser(&op)) {
        let text = "it is quantised, and the scales of quantisers must stay in fp32; convert the fp32 model";
        return Err(ForgeError::Model(text.into()));
    }
    if let Some(op) = operators.iter().find(|op| op.contains("Sequence") && *op != "ReverseSequence") {
        return Err(ForgeError::Unsupported(format!("{op}: sequences of tensors are not converted")));
    }
    let elements = Elements::of(graph);
    let outputs = graph.node.iter().flat_map(|node| &node.output);
    let mut names = outputs.chain(graph.input.iter().map(|input| &input.name));
    let narrow = |number: Option<i32>| matches!(number, Some(dtype::FLOAT16 | dtype::BFLOAT16));
    let narrow_weight = graph.initializer.iter().find(|tensor| narrow(Some(tensor.data_type)));
    let found = narrow_weight.map(|tensor| &tensor.name).or_else(|| names.find(|name| narrow(elements.get(name))));
    match found {
        None => Ok(()),
        Some(name) => Err(ForgeError::Model(format!(
            "it holds 16-bit floats already ({name}); give the fp32 model that it was made from"
        ))),
    }
}

/// A cast from fp32 to fp32 does nothing, and would follow a cast of ours.
fn drop_idle_casts(graph: &mut GraphProto) {
    let elements = Elements::of(graph);
    let idle = |node: &NodeProto| {
        let to = attribute(node, "to").map(|attribute| attribute.i);
        let from = node.input.first().and_then(|name| elements.get(name));
        node.op_type == "Cast" && is_standard(node) && to == Some(dtype::FLOAT.into()) && from == Some(dtype::FLOAT)
    };
    for node in graph.node.iter_mut().filter(|node| idle(node)) {
        node.op_type = "Identity".into();
        node.attribute.clear();
    }
}
