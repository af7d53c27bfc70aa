//! What is known of a graph before it is decided on: who gives and takes which tensor, and which of them hold fp32.

use std::collections::{BTreeSet, HashMap, HashSet};

use prony_model::onnx::{AttributeProto, Elements, GraphProto, NodeProto, TensorProto, dtype};

/// A graph, looked at from its tensors.
pub(super) struct Facts<'a> {
    pub(super) graph: &'a GraphProto,
    elements: Elements,
    /// The node that gives a tensor.
    pub(super) giver: HashMap<&'a str, usize>,
    /// The nodes that take it, each with the slot.
    takers: HashMap<&'a str, Vec<(usize, usize)>>,
    /// Weights in fp32, and constants among the nodes.
    pub(super) constants: HashMap<&'a str, TensorProto>,
    /// Outputs of the graph.
    pub(super) outputs: HashSet<&'a str>,
    /// Tensors that a graph within the graph uses by their name.
    pub(super) captured: BTreeSet<&'a str>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(graph: &'a GraphProto) -> Facts<'a> {
        let mut facts = Facts {
            graph,
            elements: Elements::of(graph),
            giver: HashMap::new(),
            takers: HashMap::new(),
            constants: HashMap::new(),
            outputs: graph.output.iter().map(|output| output.name.as_str()).collect(),
            captured: BTreeSet::new(),
        };
        let weights = graph.initializer.iter().filter(|tensor| tensor.data_type == dtype::FLOAT);
        facts.constants.extend(weights.map(|tensor| (tensor.name.as_str(), tensor.clone())));
        for (at, node) in graph.node.iter().enumerate() {
            for output in node.output.iter().filter(|name| !name.is_empty()) {
                facts.giver.insert(output, at);
            }
            for (slot, input) in node.input.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
                facts.takers.entry(input).or_default().push((at, slot));
            }
            if let (Some(name), Some(value)) = (node.output.first(), constant(node)) {
                facts.constants.insert(name, value);
            }
            inner_graphs(node).for_each(|inner| names(inner, &mut facts.captured));
        }
        facts
    }

    /// Whether a tensor holds fp32.
    pub(super) fn is_float(&self, tensor: &str) -> bool {
        self.elements.get(tensor) == Some(dtype::FLOAT)
    }

    /// Its type, where it can be told.
    pub(super) fn element(&self, tensor: &str) -> Option<i32> {
        self.elements.get(tensor)
    }

    /// The nodes that take a tensor, each with the slot.
    pub(super) fn takers(&self, tensor: &str) -> &[(usize, usize)] {
        self.takers.get(tensor).map_or(&[], Vec::as_slice)
    }

    /// Inputs of a node that hold fp32, each with its slot.
    pub(super) fn floats_in<'n>(&'n self, node: &'n NodeProto) -> impl Iterator<Item = (usize, &'n str)> {
        node.input.iter().map(String::as_str).enumerate().filter(|(_, name)| self.is_float(name))
    }

    /// Outputs of a node that hold fp32.
    pub(super) fn floats_out<'n>(&'n self, node: &'n NodeProto) -> impl Iterator<Item = &'n str> {
        node.output.iter().map(String::as_str).filter(|name| self.is_float(name))
    }
}

/// What a node is called in reports: by its name, else by what it gives.
pub(super) fn called(node: &NodeProto) -> &str {
    let output = node.output.iter().find(|name| !name.is_empty());
    if node.name.is_empty() { output.map_or("", String::as_str) } else { &node.name }
}

/// Whether it is of the operators that every ONNX file has.
pub(super) fn is_standard(node: &NodeProto) -> bool {
    node.domain.is_empty() || node.domain == "ai.onnx"
}

/// An attribute by its name.
pub(super) fn attribute<'a>(node: &'a NodeProto, name: &str) -> Option<&'a AttributeProto> {
    node.attribute.iter().find(|attribute| attribute.name == name)
}

/// Graphs that a node executes.
pub(super) fn inner_graphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

/// The floats that a `Constant` gives, however it has them.
fn constant(node: &NodeProto) -> Option<TensorProto> {
    if node.op_type != "Constant" || !is_standard(node) {
        return None;
    }
    let value = node.attribute.first()?;
    match value.name.as_str() {
        "value" => value.t.clone().filter(|tensor| tensor.data_type == dtype::FLOAT),
        "value_float" => Some(TensorProto::floats("", &[], &[value.f])),
        "value_floats" => Some(TensorProto::floats("", &[value.floats.len() as i64], &value.floats)),
        _ => None,
    }
}

/// Every name that a graph within a graph, or one within that, may mean an outer tensor by.
fn names<'a>(graph: &'a GraphProto, into: &mut BTreeSet<&'a str>) {
    into.extend(graph.output.iter().map(|output| output.name.as_str()));
    for node in &graph.node {
        into.extend(node.input.iter().map(String::as_str));
        inner_graphs(node).for_each(|inner| names(inner, into));
    }
}
