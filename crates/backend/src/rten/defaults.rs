//! Attributes that a file leaves to the defaults of the ONNX specification, written out where rten 0.27 has other defaults or
//! none: it takes the spatial axes of a convolution from `kernel_shape`, has no strides for a pool, quantizes along the
//! last axis, and applies the softmax of operator set 13 to older files.

use std::collections::HashMap;

use prony_model::onnx::{AttributeProto, GraphProto, ModelProto, NodeProto};
use prony_model::shape::{Sizes, infer};

use super::window;

/// Operators that may lack something.
const CONCERNED: [&str; 11] = [
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "MaxPool",
    "AveragePool",
    "QuantizeLinear",
    "Softmax",
    "LogSoftmax",
    "Concat",
    "LSTM",
    "GRU",
];

/// Shapes of tensors by name, in a graph and those around it.
pub(super) struct Scope<'a> {
    shapes: HashMap<String, Vec<u64>>,
    around: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    pub(super) fn shape(&self, tensor: Option<&String>) -> Option<&[u64]> {
        let tensor = tensor.filter(|name| !name.is_empty())?;
        match self.shapes.get(tensor) {
            Some(shape) => Some(shape),
            None => self.around?.shape(Some(tensor)),
        }
    }
}

/// What to do with a node.
pub(super) enum Edit {
    /// Attributes in place of what it has under these names.
    Set(Vec<AttributeProto>),
    /// Softmax over all axes from this one on, as before operator set 13.
    Flatten(i64),
}

/// Writes the defaults into a model; whether anything had to be written. An error names the node.
pub(super) fn write_defaults(model: &mut ModelProto) -> Result<bool, String> {
    let standard = model.opset_import.iter().find(|set| is_standard(&set.domain));
    let opset = standard.map_or(i64::MAX, |set| set.version);
    model.graph.as_mut().map_or(Ok(false), |graph| fill(graph, opset, None))
}

fn is_standard(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

fn is_concerned(node: &NodeProto) -> bool {
    is_standard(&node.domain) && CONCERNED.contains(&node.op_type.as_str())
}

fn fill(graph: &mut GraphProto, opset: i64, around: Option<&Scope<'_>>) -> Result<bool, String> {
    let has_graphs = graph.node.iter().flat_map(|node| &node.attribute).any(|a| a.g.is_some() || !a.graphs.is_empty());
    if !has_graphs && !graph.node.iter().any(is_concerned) {
        return Ok(false);
    }
    let scope = Scope { shapes: shapes(graph), around };
    let mut changed = false;
    let mut nodes = Vec::with_capacity(graph.node.len());
    for mut node in std::mem::take(&mut graph.node) {
        for inner in node.attribute.iter_mut().flat_map(|a| a.g.iter_mut().chain(&mut a.graphs)) {
            changed |= fill(inner, opset, Some(&scope))?;
        }
        match edit(&node, opset, &scope).map_err(|reason| refusal(&node, &reason))? {
            None => nodes.push(node),
            Some(Edit::Set(attributes)) => {
                node.attribute.retain(|old| attributes.iter().all(|new| new.name != old.name));
                node.attribute.extend(attributes);
                nodes.push(node);
                changed = true;
            }
            Some(Edit::Flatten(axis)) => {
                nodes.extend(flattened(node, axis));
                changed = true;
            }
        }
    }
    graph.node = nodes;
    Ok(changed)
}

fn shapes(graph: &GraphProto) -> HashMap<String, Vec<u64>> {
    let inferred = infer(graph, &Sizes { batch: 1, imgsz: None });
    let given = graph.input.iter().map(|input| &input.name).chain(graph.initializer.iter().map(|weight| &weight.name));
    let names = given.chain(graph.node.iter().flat_map(|node| &node.output));
    names.filter_map(|name| Some((name.clone(), inferred.get(name)?.to_vec()))).collect()
}

fn refusal(node: &NodeProto, reason: &str) -> String {
    let name = [&node.name].into_iter().chain(node.output.first()).find(|name| !name.is_empty());
    format!("{} {}: {reason}", node.op_type, name.map_or("without a name", String::as_str))
}

/// A list of integers that is there and not empty.
pub(super) fn ints<'n>(node: &'n NodeProto, name: &str) -> Option<&'n [i64]> {
    let attribute = node.attribute.iter().find(|attribute| attribute.name == name)?;
    Some(&attribute.ints[..]).filter(|ints| !ints.is_empty())
}

fn int(node: &NodeProto, name: &str) -> Option<i64> {
    node.attribute.iter().find(|attribute| attribute.name == name).map(|attribute| attribute.i)
}

fn edit(node: &NodeProto, opset: i64, scope: &Scope<'_>) -> Result<Option<Edit>, String> {
    if !is_concerned(node) {
        return Ok(None);
    }
    let set = |attribute| Ok(Some(Edit::Set(vec![attribute])));
    match node.op_type.as_str() {
        "Conv" | "ConvInteger" | "ConvTranspose" => window::convolution(node, scope),
        "MaxPool" | "AveragePool" => window::pool(node),
        // Of one scale for the whole tensor, the axis does not matter.
        "QuantizeLinear" if int(node, "axis").is_none() => match scope.shape(node.input.get(1)) {
            Some(scale) if scale.iter().product::<u64>() == 1 => Ok(None),
            _ => set(AttributeProto::int("axis", 1)),
        },
        "Softmax" | "LogSoftmax" if opset < 13 => Ok(old_softmax(node, scope)),
        "Concat" if opset < 4 && int(node, "axis").is_none() => set(AttributeProto::int("axis", 1)),
        "LSTM" | "GRU" if int(node, "hidden_size").is_none() => {
            let hidden = scope.shape(node.input.get(2)).and_then(|recurrence| recurrence.get(2).copied());
            let hidden = hidden.and_then(|size| i64::try_from(size).ok());
            set(AttributeProto::int("hidden_size", hidden.ok_or("neither hidden_size nor the shape of R is known")?))
        }
        _ => Ok(None),
    }
}

/// Before operator set 13, softmax is over all axes from `axis` on, which is 1 where it is left out.
fn old_softmax(node: &NodeProto, scope: &Scope<'_>) -> Option<Edit> {
    let axis = int(node, "axis").unwrap_or(1);
    match scope.shape(node.input.first()).and_then(|shape| i64::try_from(shape.len()).ok()) {
        Some(rank) if axis == rank - 1 => None,
        _ if axis == -1 => None,
        _ => Some(Edit::Flatten(axis)),
    }
}

fn flattened(mut node: NodeProto, axis: i64) -> Vec<NodeProto> {
    let (Some(input), Some(output)) = (node.input.first().cloned(), node.output.first().cloned()) else {
        return vec![node];
    };
    let inner = |what: &str| format!("{output}/prony_{what}");
    let (shape, flat, soft) = (inner("shape"), inner("flat"), inner("soft"));
    node.attribute = vec![AttributeProto::int("axis", -1)];
    (node.input, node.output) = (vec![flat.clone()], vec![soft.clone()]);
    vec![
        NodeProto::new("Shape", &[&input], &[&shape], vec![]),
        NodeProto::new("Flatten", &[&input], &[&flat], vec![AttributeProto::int("axis", axis)]),
        node,
        NodeProto::new("Reshape", &[&soft, &shape], &[&output], vec![]),
    ]
}
