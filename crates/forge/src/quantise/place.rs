//! Which layers are computed in bytes, and which tensors between them are.

mod reach;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use prony_model::onnx::{Elements, GraphProto, NodeProto, TensorProto, dtype};
use prony_types::QuantiseFor;

use crate::error::ForgeError;

pub(crate) use self::reach::{Tensors, reach};

/// Fewest weights of a layer that is worth it: below, scales and zero points are more than what they replace.
const LEAST_WEIGHTS: usize = 64;

/// A layer that is computed in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Index of its node.
    pub(crate) node: usize,
    /// What it is called.
    pub(crate) name: String,
    /// Its operator.
    pub(crate) op: String,
    /// The tensor of its weights.
    pub(crate) weight: String,
    /// The axis of the weights along which its output channels lie.
    pub(crate) axis: usize,
}

/// A layer that stays in float.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InFloat {
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) why: &'static str,
}

/// What is quantised.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placement {
    pub(crate) layers: Vec<Layer>,
    pub(crate) float: Vec<InFloat>,
    pub(crate) tensors: Tensors,
}

/// A graph and what is known about it.
pub(crate) struct Known<'a> {
    pub(crate) graph: &'a GraphProto,
    /// Constants by name: initialisers, and what `Constant` nodes give.
    pub(crate) constants: HashMap<&'a str, &'a TensorProto>,
    pub(crate) elements: Elements,
    /// See [`prony_model::decoding_tail`].
    pub(crate) tail: BTreeSet<String>,
    /// What the last layers give, before boxes and scores are made of it.
    pub(crate) ends: Vec<&'a str>,
    /// Tensors that lead to one of several ends alone: the branches of a detection head.
    branches: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    pub(crate) fn new(graph: &'a GraphProto, tail: BTreeSet<String>) -> Known<'a> {
        let mut constants: HashMap<&str, &TensorProto> =
            graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        for node in graph.node.iter().filter(|node| node.op_type == "Constant") {
            let value = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
            constants.extend(node.output.first().zip(value).map(|(name, tensor)| (name.as_str(), tensor)));
        }
        let ends = ends(graph, &constants, &tail);
        let branches = branches(graph, &ends);
        Known { graph, constants, elements: Elements::of(graph), tail, ends, branches }
    }

    /// Whether a tensor is floats that are computed, and not yet boxes and scores.
    pub(crate) fn computed(&self, tensor: &str) -> bool {
        !tensor.is_empty()
            && !self.tail.contains(tensor)
            && !self.constants.contains_key(tensor)
            && self.elements.get(tensor) == Some(dtype::FLOAT)
    }
}

/// What the last layers give.
fn ends<'a>(graph: &'a GraphProto, constants: &HashMap<&str, &TensorProto>, tail: &BTreeSet<String>) -> Vec<&'a str> {
    let last = |node: &&NodeProto| {
        let learns = node.input.get(1).is_some_and(|weight| constants.contains_key(weight.as_str()));
        learnt(node).is_some()
            && learns
            && node.input.first().is_some_and(|input| !tail.contains(input))
            && node.output.first().is_some_and(|output| tail.contains(output))
    };
    graph.node.iter().filter(last).filter_map(|node| node.output.first().map(String::as_str)).collect()
}

/// Tensors from which exactly one of several ends can be reached.
fn branches<'a>(graph: &'a GraphProto, ends: &[&'a str]) -> BTreeSet<&'a str> {
    if ends.len() < 2 {
        return BTreeSet::new();
    }
    let mut reached: BTreeMap<&str, BTreeSet<usize>> =
        ends.iter().enumerate().map(|(end, name)| (*name, BTreeSet::from([end]))).collect();
    let own = reached.keys().copied().collect::<BTreeSet<&str>>();
    // Backwards, every reader comes before what it reads; what comes behind an end leads to none.
    for node in graph.node.iter().rev() {
        let outputs = node.output.iter().filter_map(|output| reached.get(output.as_str()));
        let leads_to: BTreeSet<usize> = outputs.flatten().copied().collect();
        if !leads_to.is_empty() {
            node.input.iter().for_each(|input| reached.entry(input).or_default().extend(&leads_to));
        }
    }
    let one = |(name, ends): &(&str, BTreeSet<usize>)| ends.len() == 1 && !own.contains(name);
    reached.into_iter().filter(one).map(|(name, _)| name).collect()
}

/// What a node is called: by its own name, or by what it gives.
pub(crate) fn name_of(node: &NodeProto) -> &str {
    if node.name.is_empty() { node.output.first().map_or("", String::as_str) } else { &node.name }
}

/// Decides what is quantised. Each name or operator in `exclude` must be there.
pub(crate) fn place(known: &Known<'_>, exclude: &[String], target: QuantiseFor) -> Result<Placement, ForgeError> {
    check_names(known.graph, exclude)?;
    let mut layers = Vec::new();
    let mut float = Vec::new();
    for (index, node) in known.graph.node.iter().enumerate() {
        let Some(learnt) = learnt(node) else { continue };
        let excluded = || exclude.iter().any(|name| name == name_of(node) || *name == node.op_type);
        let why = if excluded() { Some("excluded") } else { unfit(known, node, target) };
        let (name, op) = (name_of(node).to_owned(), node.op_type.clone());
        match why {
            Some(why) => float.push(InFloat { name, op, why }),
            None => {
                let rank = known.constants[node.input[1].as_str()].dims.len();
                let axis = match learnt {
                    Axis::First(axis) => axis,
                    Axis::Last => rank - 1,
                };
                layers.push(Layer { node: index, name, op, weight: node.input[1].clone(), axis });
            }
        }
    }
    if layers.is_empty() {
        let first = float.iter().map(|layer| layer.why).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        let reason =
            if first.is_empty() { "it has no convolution and no matrix product".into() } else { first.join("; ") };
        return Err(ForgeError::Model(format!("nothing in the graph can be quantised: {reason}")));
    }
    let tensors = reach(known, &layers, target);
    Ok(Placement { layers, float, tensors })
}

enum Axis {
    First(usize),
    Last,
}

/// The axis of the output channels, for operators that have weights.
fn learnt(node: &NodeProto) -> Option<Axis> {
    let turned = || node.attribute.iter().any(|attribute| attribute.name == "transB" && attribute.i != 0);
    match node.op_type.as_str() {
        _ if !(node.domain.is_empty() || node.domain == "ai.onnx") => None,
        "Conv" => Some(Axis::First(0)),
        "ConvTranspose" => Some(Axis::First(1)),
        "Gemm" => Some(Axis::First(usize::from(!turned()))),
        "MatMul" => Some(Axis::Last),
        _ => None,
    }
}

/// Why a layer stays in float.
fn unfit(known: &Known<'_>, node: &NodeProto, target: QuantiseFor) -> Option<&'static str> {
    let (Some(input), Some(output)) = (node.input.first(), node.output.first()) else { return Some("no input") };
    let Some(weight) = node.input.get(1).and_then(|name| known.constants.get(name.as_str())) else {
        return Some("both factors are computed, as in attention");
    };
    if known.tail.contains(output) {
        return Some("it gives or decodes boxes and scores");
    }
    if known.branches.contains(output.as_str()) {
        return Some("it belongs to a branch of the detection head");
    }
    if weight.data_type != dtype::FLOAT || !known.computed(input) {
        return Some("it is not computed in fp32");
    }
    if weight.dims.len() < 2 || weight.count().is_none_or(|count| count < LEAST_WEIGHTS) {
        return Some("it has few weights");
    }
    if target == QuantiseFor::Any && behind_concat(known, input) {
        return Some("it reads a concatenation, where OpenVINO 2026.4 gets signed bytes wrong (--for tensorrt has it)");
    }
    match weight.to_f32s() {
        Some(weights) if weights.iter().all(|weight| weight.is_finite()) => None,
        Some(_) => Some("a weight is not finite"),
        None => Some("its weights cannot be read"),
    }
}

/// Whether a tensor is a concatenation, or a part of one.
fn behind_concat(known: &Known<'_>, tensor: &str) -> bool {
    let given = |name: &str| known.graph.node.iter().find(|node| node.output.iter().any(|output| output == name));
    let mut node = given(tensor);
    while let Some(passing) = node.filter(|node| reach::passes(node)) {
        node = passing.input.first().and_then(|name| given(name));
    }
    node.is_some_and(|node| node.op_type == "Concat")
}

/// A name that matches nothing is a mistake of whoever wrote it.
fn check_names(graph: &GraphProto, exclude: &[String]) -> Result<(), ForgeError> {
    let there = |name: &String| graph.node.iter().any(|node| name == name_of(node) || *name == node.op_type);
    match exclude.iter().find(|name| !there(name)) {
        None => Ok(()),
        Some(stranger) => {
            let alike = graph.node.iter().map(name_of).find(|name| name.contains(stranger.as_str()));
            let hint = alike.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            Err(ForgeError::Model(format!(
                "nothing in the graph is called `{stranger}`, neither a node nor an operator{hint} \
                 (`prony inspect --layers` lists them)"
            )))
        }
    }
}

/// Names that are taken, and new ones beside them.
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    pub(crate) fn of(graph: &GraphProto) -> Names {
        let nodes = graph.node.iter();
        let values = nodes.flat_map(|node| node.input.iter().chain(&node.output).chain([&node.name]));
        let constants = graph.initializer.iter().map(|tensor| &tensor.name);
        let ends = graph.input.iter().chain(&graph.output).map(|value| &value.name);
        Names(values.chain(constants).chain(ends).cloned().collect())
    }

    /// A name that nothing has yet.
    pub(crate) fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut count = 1;
        while !self.0.insert(name.clone()) {
            count += 1;
            name = format!("{wanted}_{count}");
        }
        name
    }
}

/// Nodes by the tensor that they read.
pub(crate) fn readers(graph: &GraphProto) -> BTreeMap<&str, Vec<usize>> {
    let mut readers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        node.input.iter().for_each(|name| readers.entry(name).or_default().push(index));
    }
    readers
}

#[cfg(test)]
#[path = "place/place_tests.rs"]
mod tests;
