//! How far bytes reach from the layers into what lies between them.
//!
//! For TensorRT and OpenVINO a layer's input is all that matters: they fuse what comes behind a convolution into it, where
//! a quantiser in between would tear that apart, and carry quantisers over what only passes values on. Only where two
//! branches are added must both come in bytes. ONNX Runtime fuses by pattern: it computes an operator in bytes where a
//! dequantiser stands at each input and a single quantiser behind, so there every tensor between two layers is in bytes,
//! and whoever reads it reads bytes.

use std::collections::{BTreeMap, BTreeSet};

use prony_model::onnx::NodeProto;
use prony_types::QuantiseFor;

use super::{Known, Layer, readers};

/// Operators whose outputs hold no other values than their input: they pass bytes on as they are, if all have one scale.
const PASSES: [&str; 4] = ["MaxPool", "Resize", "Slice", "Split"];
/// Operators that ONNX Runtime computes in bytes beside the layers, each tensor with a scale of its own. A concatenation is
/// one of them: what it puts together may be of very different sizes.
const CHAINS: [&str; 5] = ["Add", "Concat", "LeakyRelu", "Mul", "Sigmoid"];
/// Activations that every library computes within the layer before them.
const WITHIN: [&str; 2] = ["Clip", "Relu"];

/// The tensors that are in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tensors {
    /// Each with the tensor whose scale it has: its own, or that of those it is put together with.
    pub(crate) scales: BTreeMap<String, String>,
    /// Nodes that read bytes: the layers, and what lies between them.
    pub(crate) inside: BTreeSet<usize>,
    /// Tensors whose ranges are measured. The others hold no values that these do not.
    pub(crate) measured: BTreeSet<String>,
    /// Tensors that cannot leave the range from 0 to 1.
    pub(crate) unit: BTreeSet<String>,
    /// Whether every node that reads such a tensor reads bytes, even one that computes in float.
    pub(crate) for_all: bool,
}

/// Finds the tensors and the nodes.
pub(crate) fn reach(known: &Known<'_>, layers: &[Layer], target: QuantiseFor) -> Tensors {
    let nodes = &known.graph.node;
    let mut bytes: BTreeSet<&str> = layers.iter().map(|layer| nodes[layer.node].input[0].as_str()).collect();
    let mut inside: BTreeSet<usize> = layers.iter().map(|layer| layer.node).collect();
    if target == QuantiseFor::Onnxruntime {
        forwards(known, layers, &mut bytes, &mut inside);
    }
    backwards(known, target, &mut bytes, &mut inside);
    let mut groups = Groups::default();
    for node in inside.iter().map(|&index| &nodes[index]).filter(|node| passes(node)) {
        let mut members = data(node).into_iter().chain(node.output.iter().map(String::as_str));
        let first = members.next().unwrap_or_default();
        members.for_each(|other| groups.join(first, other));
    }
    let given =
        |name: &&str| nodes.iter().enumerate().find(|(_, node)| node.output.iter().any(|output| output == name));
    let passed_on = |name: &&str| given(name).is_some_and(|(index, node)| inside.contains(&index) && passes(node));
    let of_sigmoid = |name: &&str| given(name).is_some_and(|(_, node)| node.op_type == "Sigmoid");
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let unit: Vec<&str> = bytes.iter().copied().filter(of_sigmoid).collect();
    let measured = bytes.iter().copied().filter(|name| !passed_on(name) && !of_sigmoid(name)).collect();
    Tensors {
        scales: bytes.iter().map(|&name| (name.to_owned(), groups.find(name).to_owned())).collect(),
        measured: owned(measured),
        unit: owned(unit),
        for_all: target == QuantiseFor::Onnxruntime,
        inside,
    }
}

/// From what the layers give, as far as every operator can be computed in bytes.
fn forwards<'a>(known: &Known<'a>, layers: &[Layer], bytes: &mut BTreeSet<&'a str>, inside: &mut BTreeSet<usize>) {
    let nodes = &known.graph.node;
    let readers = readers(known.graph);
    for layer in layers {
        let mut given = nodes[layer.node].output[0].as_str();
        // The quantiser comes behind an activation that is computed within the layer.
        while let Some([reader]) = readers.get(given).map(Vec::as_slice)
            && WITHIN.contains(&nodes[*reader].op_type.as_str())
            && nodes[*reader].output.first().is_some_and(|output| known.computed(output))
        {
            given = &nodes[*reader].output[0];
        }
        bytes.insert(given);
    }
    // Nodes stand in topological order.
    for (index, node) in nodes.iter().enumerate() {
        let chains = CHAINS.contains(&node.op_type.as_str()) || passes(node);
        let inputs = data(node);
        let fits = chains && !inputs.is_empty() && inputs.iter().all(|name| bytes.contains(name));
        if fits && node.output.iter().all(|output| known.computed(output)) {
            bytes.extend(node.output.iter().map(String::as_str));
            inside.insert(index);
        }
    }
}

/// From what the layers take, through sums, and for ONNX Runtime through what is only passed on, to where it is computed.
fn backwards<'a>(known: &Known<'a>, target: QuantiseFor, bytes: &mut BTreeSet<&'a str>, inside: &mut BTreeSet<usize>) {
    let passed = |node: &NodeProto| target == QuantiseFor::Onnxruntime && (passes(node) || node.op_type == "Concat");
    for (index, node) in known.graph.node.iter().enumerate().rev() {
        let wanted = node.output.iter().any(|output| bytes.contains(output.as_str()));
        let inputs = data(node);
        let fits = (passed(node) || node.op_type == "Add") && inputs.iter().all(|name| known.computed(name));
        if wanted && fits {
            bytes.extend(inputs);
            bytes.extend(node.output.iter().map(String::as_str));
            inside.insert(index);
        }
    }
}

/// Whether a node passes values on.
pub(super) fn passes(node: &NodeProto) -> bool {
    // A cubic curve goes beyond the values that it connects.
    let cubic = |node: &NodeProto| node.attribute.iter().any(|a| a.name == "mode" && a.s.as_ref() == b"cubic");
    let plain = PASSES.contains(&node.op_type.as_str()) && !cubic(node);
    // The second output of a pooling is whole numbers.
    plain && (node.op_type != "MaxPool" || node.output.len() == 1)
}

/// The inputs of a node that hold values, and not shapes.
fn data(node: &NodeProto) -> Vec<&str> {
    let count = match node.op_type.as_str() {
        "Concat" | "Add" | "Mul" => node.input.len(),
        _ => 1,
    };
    node.input.iter().take(count).map(String::as_str).collect()
}

/// Tensors that have one scale.
#[derive(Default)]
struct Groups<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Groups<'a> {
    fn find(&self, mut name: &'a str) -> &'a str {
        while let Some(&next) = self.0.get(name) {
            name = next;
        }
        name
    }

    fn join(&mut self, a: &'a str, b: &'a str) {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            self.0.insert(b, a);
        }
    }
}
