//! The quantised graph: quantisers and dequantisers put in, weights replaced by bytes. Everything else stays as it is.

use std::collections::{BTreeMap, HashMap, HashSet};

use prony_model::onnx::{AttributeProto, GraphProto, ModelProto, NodeProto, StringEntry, TensorProto, dtype};
use prony_types::QuantiseFor;
use prost::bytes::Bytes;

use super::place::{Known, Layer, Names, Placement};
use super::weight::{Channels, Rounded, round};
use crate::error::ForgeError;

/// The first operator set in which a weight may have a scale for each channel.
const OPSET: i64 = 13;
/// From here on, raising to [`OPSET`] changes no operator but those below.
const RAISABLE: i64 = 11;
/// Operators that mean something else, or are written differently, from 13 on.
const CHANGED: [&str; 7] = ["Squeeze", "Unsqueeze", "ReduceSum", "Split", "Softmax", "LogSoftmax", "Hardmax"];
/// The container in which weights need not be listed as inputs.
const IR_VERSION: i64 = 7;
/// Largest bias in steps of the accumulator. ONNX Runtime makes an int32 of the float, without a look at whether it fits.
const BIAS_STEPS: f32 = (1 << 30) as f32;

/// How a graph is quantised, with everything decided.
pub(crate) struct Plan<'a> {
    pub(crate) placement: &'a Placement,
    /// What a step is worth, by tensor.
    pub(crate) scales: &'a BTreeMap<String, f32>,
    pub(crate) per_channel: bool,
    pub(crate) target: QuantiseFor,
}

/// Why an operator set does not do; `Ok` with the one that the file should have.
pub(crate) fn opset(model: &ModelProto) -> Result<i64, ForgeError> {
    let own = model.opset_import.iter().find(|set| set.domain.is_empty() || set.domain == "ai.onnx");
    let version = own.map_or(1, |set| set.version);
    if version >= OPSET {
        return Ok(version);
    }
    let nodes = model.graph.iter().flat_map(|graph| &graph.node);
    let stands_in_the_way = nodes.map(|node| node.op_type.as_str()).find(|op| CHANGED.contains(op));
    let why = match stands_in_the_way {
        _ if version < RAISABLE => "many operators have changed since".to_owned(),
        Some(op) => format!("{op} has changed since"),
        None => return Ok(OPSET),
    };
    Err(ForgeError::Model(format!(
        "the file has operator set {version} and quantisers by channel need {OPSET}, but {why}; export it with opset {OPSET} or higher"
    )))
}

/// The quantised file, and how well each layer's weights became bytes, by layer.
pub(crate) fn write(
    model: &ModelProto,
    known: &Known<'_>,
    plan: &Plan<'_>,
    facts: &[(&str, String)],
) -> Result<(ModelProto, Vec<Option<f64>>), ForgeError> {
    let mut writer = Writer::new(known, plan);
    let sqnr_db = plan.placement.layers.iter().map(|layer| writer.weights(layer)).collect::<Result<Vec<_>, _>>()?;
    let graph = writer.graph();
    let opset = opset(model)?;
    let mut file = ModelProto { graph: Some(graph), ir_version: model.ir_version.max(IR_VERSION), ..model.clone() };
    for set in file.opset_import.iter_mut().filter(|set| set.domain.is_empty() || set.domain == "ai.onnx") {
        set.version = opset;
    }
    file.metadata_props.retain(|entry| !facts.iter().any(|(key, _)| entry.key == *key));
    let entry = |(key, value): &(&str, String)| StringEntry { key: (*key).to_owned(), value: value.clone() };
    file.metadata_props.extend(facts.iter().map(entry));
    Ok((file, sqnr_db))
}

struct Writer<'a> {
    known: &'a Known<'a>,
    plan: &'a Plan<'a>,
    names: Names,
    new: Vec<TensorProto>,
    /// Dequantised names of tensors that are in bytes.
    tensors: HashMap<&'a str, Pair>,
    /// Dequantisers of weights, each before the node that reads it first.
    before: HashMap<usize, Vec<NodeProto>>,
    /// What a layer reads instead of its weights.
    weights: HashMap<usize, String>,
}

/// The two nodes behind a tensor.
struct Pair {
    nodes: [NodeProto; 2],
    read_as: String,
}

impl<'a> Writer<'a> {
    fn new(known: &'a Known<'a>, plan: &'a Plan<'a>) -> Writer<'a> {
        let mut writer = Writer {
            known,
            plan,
            names: Names::of(known.graph),
            new: Vec::new(),
            tensors: HashMap::new(),
            before: HashMap::new(),
            weights: HashMap::new(),
        };
        let read: HashSet<&str> = known
            .graph
            .node
            .iter()
            .enumerate()
            .filter(|(index, _)| plan.placement.tensors.for_all || plan.placement.tensors.inside.contains(index))
            .flat_map(|(_, node)| node.input.iter().map(String::as_str))
            .collect();
        for name in plan.placement.tensors.scales.keys().filter(|name| read.contains(name.as_str())) {
            let pair = writer.pair(name);
            writer.tensors.insert(name, pair);
        }
        writer
    }

    /// A quantiser and a dequantiser behind a tensor. Both have scalars of their own: some parsers do not share them.
    fn pair(&mut self, tensor: &str) -> Pair {
        let scale = self.names.fresh(&format!("{tensor}_scale"));
        let zero = self.names.fresh(&format!("{tensor}_zero_point"));
        self.new.push(TensorProto::floats(&scale, &[], &[self.plan.scales[tensor]]));
        let (kind, byte) = match self.plan.target {
            QuantiseFor::Any | QuantiseFor::Tensorrt => (dtype::INT8, 0),
            QuantiseFor::Onnxruntime | QuantiseFor::Openvino => (dtype::UINT8, 128),
        };
        self.new.push(bytes(&zero, &[], kind, vec![byte]));
        let quantised = self.names.fresh(&format!("{tensor}_quantized"));
        let read_as = self.names.fresh(&format!("{tensor}_dequantized"));
        let quantise = NodeProto::new("QuantizeLinear", &[tensor, &scale, &zero], &[&quantised], vec![]);
        let dequantise = NodeProto::new("DequantizeLinear", &[&quantised, &scale, &zero], &[&read_as], vec![]);
        Pair { nodes: [quantise, dequantise], read_as }
    }

    /// Makes bytes of a layer's weights. Layers that share them get bytes of their own: their biases differ.
    fn weights(&mut self, layer: &'a Layer) -> Result<Option<f64>, ForgeError> {
        let tensor = self.known.constants[layer.weight.as_str()];
        let unreadable = || ForgeError::Model(format!("the weights of `{}` cannot be read", layer.name));
        let floats = tensor.to_f32s().ok_or_else(unreadable)?;
        let channels = Channels::along(layer.axis, &tensor.dims).filter(|_| self.plan.per_channel);
        let rounded = round(&floats, channels, self.floor(layer));
        let read_as = self.dequantiser(layer, tensor, &rounded, channels.is_some());
        self.weights.insert(layer.node, read_as);
        Ok(rounded.sqnr_db)
    }

    /// The least that a step of a channel's weights may be worth, for its bias to fit into the accumulator.
    fn floor(&self, layer: &Layer) -> impl Fn(usize) -> f32 + use<> {
        let node = &self.known.graph.node[layer.node];
        let step = self.plan.scales.get(&node.input[0]).copied().unwrap_or(1.0);
        let bias = node.input.get(2).and_then(|name| self.known.constants.get(name.as_str()));
        let bias = bias.and_then(|bias| bias.to_f32s()).unwrap_or_default();
        let one = !self.plan.per_channel;
        move |channel| {
            let largest = bias.iter().fold(0.0f32, |max, bias| max.max(bias.abs()));
            let bias = if one { largest } else { bias.get(channel).copied().unwrap_or(0.0).abs() };
            bias / (step * BIAS_STEPS)
        }
    }

    fn dequantiser(&mut self, layer: &Layer, tensor: &TensorProto, rounded: &Rounded, each: bool) -> String {
        let name = &layer.weight;
        let quantised = self.names.fresh(&format!("{name}_quantized"));
        let scale = self.names.fresh(&format!("{name}_scale"));
        let zero = self.names.fresh(&format!("{name}_zero_point"));
        let read_as = self.names.fresh(&format!("{name}_dequantized"));
        let count = [rounded.scales.len() as i64];
        let dims: &[i64] = if each { &count } else { &[] };
        let raw = rounded.bytes.iter().map(|byte| byte.cast_unsigned()).collect();
        self.new.push(bytes(&quantised, &tensor.dims, dtype::INT8, raw));
        self.new.push(TensorProto::floats(&scale, dims, &rounded.scales));
        self.new.push(bytes(&zero, dims, dtype::INT8, vec![0; rounded.scales.len()]));
        let axis = if each { vec![AttributeProto::int("axis", layer.axis as i64)] } else { vec![] };
        let node = NodeProto::new("DequantizeLinear", &[&quantised, &scale, &zero], &[&read_as], axis);
        self.before.entry(layer.node).or_default().push(node);
        read_as
    }

    /// The graph with everything in its place, in topological order.
    fn graph(mut self) -> GraphProto {
        let old = self.known.graph;
        let mut nodes = Vec::new();
        for input in &old.input {
            nodes.extend(self.tensors.get(input.name.as_str()).into_iter().flat_map(|pair| pair.nodes.clone()));
        }
        for (index, node) in old.node.iter().enumerate() {
            nodes.extend(self.before.remove(&index).unwrap_or_default());
            let mut node = node.clone();
            let reads_bytes =
                self.plan.placement.tensors.for_all || self.plan.placement.tensors.inside.contains(&index);
            for input in node.input.iter_mut().filter(|_| reads_bytes) {
                if let Some(pair) = self.tensors.get(input.as_str()) {
                    *input = pair.read_as.clone();
                }
            }
            if let Some(weights) = self.weights.get(&index) {
                node.input[1] = weights.clone();
            }
            let given = node.output.clone();
            nodes.push(node);
            for output in &given {
                nodes.extend(self.tensors.get(output.as_str()).into_iter().flat_map(|pair| pair.nodes.clone()));
            }
        }
        let mut read = HashSet::new();
        nodes.iter().for_each(|node| reads(node, &mut read));
        let replaced: HashSet<&str> = self.plan.placement.layers.iter().map(|layer| layer.weight.as_str()).collect();
        let gone = |name: &str| replaced.contains(name) && !read.contains(name);
        let initializer =
            old.initializer.iter().filter(|tensor| !gone(&tensor.name)).cloned().chain(self.new).collect();
        let input = old.input.iter().filter(|value| !gone(&value.name)).cloned().collect();
        let value_info = old.value_info.iter().filter(|value| !gone(&value.name)).cloned().collect();
        let stays = |node: &NodeProto| !(node.op_type == "Constant" && node.output.iter().all(|name| gone(name)));
        let stays: Vec<bool> = nodes.iter().map(stays).collect();
        let node = nodes.into_iter().zip(stays).filter_map(|(node, stays)| stays.then_some(node)).collect();
        GraphProto { node, initializer, input, value_info, ..old.clone() }
    }
}

/// The tensors that a node reads, those of graphs within it too.
fn reads<'a>(node: &'a NodeProto, read: &mut HashSet<&'a str>) {
    read.extend(node.input.iter().map(String::as_str));
    let inner = node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs));
    inner.flat_map(|graph| &graph.node).for_each(|node| reads(node, read));
}

/// A tensor of bytes.
fn bytes(name: &str, dims: &[i64], data_type: i32, raw: Vec<u8>) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: dims.into(),
        data_type,
        raw_data: Bytes::from(raw),
        ..TensorProto::default()
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
