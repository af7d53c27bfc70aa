//! Where a network ends and the arithmetic on its outputs begins.

use std::collections::{BTreeSet, HashMap};

use prost::Message as _;
use prost::bytes::Bytes;

use crate::onnx::{GraphProto, ModelProto, NodeProto};

/// Fewest weights of a layer that learns. The convolution that turns a distribution into a distance has 16.
const LEAST_WEIGHTS: i64 = 64;

/// Tensors of the main graph that no layer with learnt weights comes after: what the last layers give, and all that makes
/// boxes and scores of it. There, coordinates in hundreds of pixels meet scores below one, which no common scale of 8 bits
/// can hold. Empty where the graph has no such layer, or cannot be read.
pub fn decoding_tail(onnx: &Bytes) -> BTreeSet<String> {
    let graph = ModelProto::decode(onnx.clone()).ok().and_then(|model| model.graph);
    graph.map(|graph| tail(&graph)).unwrap_or_default()
}

pub(crate) fn tail(graph: &GraphProto) -> BTreeSet<String> {
    let mut weights: HashMap<&str, &[i64]> =
        graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor.dims.as_slice())).collect();
    for node in graph.node.iter().filter(|node| node.op_type == "Constant") {
        let value = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
        weights.extend(node.output.first().zip(value).map(|(name, tensor)| (name.as_str(), tensor.dims.as_slice())));
    }
    if !graph.node.iter().any(|node| learns(node, &weights)) {
        return BTreeSet::new();
    }
    let mut before: BTreeSet<&str> = BTreeSet::new();
    // Nodes stand in topological order: backwards, every consumer comes before its producer.
    for node in graph.node.iter().rev() {
        let leads_on = node.output.iter().any(|output| before.contains(output.as_str()));
        if leads_on || learns(node, &weights) {
            before.extend(node.input.iter().map(String::as_str).filter(|name| !name.is_empty()));
        }
    }
    let outputs = graph.node.iter().flat_map(|node| &node.output);
    outputs.filter(|name| !name.is_empty() && !before.contains(name.as_str())).cloned().collect()
}

fn learns(node: &NodeProto, weights: &HashMap<&str, &[i64]>) -> bool {
    let convolution = matches!(node.op_type.as_str(), "Conv" | "ConvTranspose");
    if !convolution && !matches!(node.op_type.as_str(), "Gemm" | "MatMul") {
        return false;
    }
    let Some(dims) = node.input.get(1).and_then(|name| weights.get(name.as_str())) else { return false };
    // A shape may claim anything; what is more than a number is more than the least.
    let weights = dims.iter().fold(1i64, |all, &axis| all.saturating_mul(axis));
    weights >= LEAST_WEIGHTS && !(convolution && dims.first() == Some(&1))
}

#[cfg(test)]
mod tests {
    use prony_types::SceneKind;

    use super::*;
    use crate::builtin;
    use crate::onnx::TensorProto;

    fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
        NodeProto {
            op_type: op.into(),
            input: inputs.iter().map(|&name| name.into()).collect(),
            output: vec![output.into()],
            ..NodeProto::default()
        }
    }

    fn weight(name: &str, dims: &[i64]) -> TensorProto {
        TensorProto { name: name.into(), dims: dims.to_vec(), ..TensorProto::default() }
    }

    #[test]
    fn it_begins_at_the_last_learnt_layer_of_every_branch() {
        let graph = GraphProto {
            node: vec![
                node("Conv", &["x", "w"], "a"),
                node("Relu", &["a"], "b"),
                node("Conv", &["b", "w"], "boxes"),
                node("Conv", &["b", "w"], "scores"),
                node("Softmax", &["boxes"], "soft"),
                node("Conv", &["soft", "dfl"], "distances"),
                node("Concat", &["distances", "scores"], "y"),
            ],
            initializer: vec![weight("w", &[8, 8, 3, 3]), weight("dfl", &[1, 16, 1, 1])],
            ..GraphProto::default()
        };
        let expected = ["boxes", "distances", "scores", "soft", "y"].map(String::from);
        assert_eq!(tail(&graph), BTreeSet::from(expected));
    }

    #[test]
    fn a_weight_larger_than_any_number_does_not_overflow() {
        let nodes = vec![node("MatMul", &["x", "w"], "y")];
        let weights = vec![weight("w", &[i64::MAX, i64::MAX, 3])];
        let graph = GraphProto { node: nodes, initializer: weights, ..GraphProto::default() };
        assert_eq!(tail(&graph), BTreeSet::from(["y".to_owned()]));
    }

    #[test]
    fn a_graph_that_learnt_nothing_has_none() {
        let nodes = vec![node("Relu", &["x"], "a"), node("MatMul", &["a", "a"], "y")];
        assert_eq!(tail(&GraphProto { node: nodes, ..GraphProto::default() }), BTreeSet::new());
        assert_eq!(decoding_tail(&Bytes::from_static(b"no model")), BTreeSet::new());
    }

    #[test]
    fn of_the_built_in_detectors_it_is_the_last_part() {
        for &kind in SceneKind::ALL {
            let model = ModelProto::decode(Bytes::from_static(builtin(kind))).unwrap();
            let graph = model.graph.unwrap();
            let tail = tail(&graph);
            let last: Vec<&NodeProto> =
                graph.node.iter().filter(|node| node.output.iter().any(|name| tail.contains(name))).collect();
            assert!(tail.contains(&graph.output[0].name), "{tail:?}");
            assert!((10..80).contains(&last.len()) && graph.node.len() > 2 * last.len(), "{} nodes", last.len());
            // Three sizes of objects, boxes and scores each.
            assert_eq!(last.iter().filter(|node| node.op_type == "Conv" && node.name.contains('.')).count(), 6);
        }
    }
}
