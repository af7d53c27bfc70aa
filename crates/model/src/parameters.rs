//! How many parameters a network has: the weights of the graph that runs, whatever it was made from.
//!
//! Counted are the elements of initializers that hold floats, or the bytes that stand for them. Not counted are scales and
//! zero points, sizes, single numbers that something is multiplied by, and what boxes are decoded with behind the last
//! layer: anchors and strides. A batch norm that was folded into a convolution has no parameters of its own.

use std::collections::{BTreeSet, HashMap};

use prony_types::DType;

use crate::onnx::{GraphProto, NodeProto, dtype};
use crate::tail::tail;

/// Number of weights, and the type that most of them are stored in.
pub(crate) fn count(graph: &GraphProto) -> (u64, Option<DType>) {
    let constants = constants(graph);
    let mut by_type: HashMap<i32, u64> = HashMap::new();
    for tensor in graph.initializer.iter().filter(|tensor| !constants.contains(tensor.name.as_str())) {
        let count = by_type.entry(tensor.data_type).or_default();
        // Shapes may claim anything: the sum of what they claim must not be less than a part of it.
        *count = count.saturating_add(elements(&tensor.dims));
    }
    let is_weight = |n: i32| !matches!(dtype::from_number(n), DType::I64 | DType::I32 | DType::Bool | DType::Other);
    let mut total = 0u64;
    let mut most = (0, None);
    for (n, count) in by_type.into_iter().filter(|&(n, _)| is_weight(n)) {
        total = total.saturating_add(count);
        if count > most.0 {
            most = (count, Some(dtype::from_number(n)));
        }
    }
    (total, most.1)
}

fn elements(dims: &[i64]) -> u64 {
    dims.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?)).unwrap_or(0)
}

/// Initializers that no node reads as a weight. What is read by none at all may be read within a node's own graph.
fn constants(graph: &GraphProto) -> BTreeSet<&str> {
    let sizes: HashMap<&str, u64> =
        graph.initializer.iter().map(|tensor| (tensor.name.as_str(), elements(&tensor.dims))).collect();
    let tail = tail(graph);
    let mut weights: HashMap<&str, bool> = HashMap::new();
    for node in &graph.node {
        let decodes = !node.output.is_empty() && node.output.iter().all(|output| tail.contains(output));
        for (index, name) in node.input.iter().enumerate() {
            if let Some(&size) = sizes.get(name.as_str()) {
                *weights.entry(name).or_default() |= reads_weight(node, index, size, decodes);
            }
        }
    }
    weights.into_iter().filter(|(_, weight)| !weight).map(|(name, _)| name).collect()
}

/// Whether an input of a node is a weight where it is constant.
fn reads_weight(node: &NodeProto, index: usize, elements: u64, decodes: bool) -> bool {
    match node.op_type.as_str() {
        "QuantizeLinear" | "DequantizeLinear" | "Resize" | "Upsample" | "Clip" | "Pad" => index == 0,
        "ConvInteger" | "MatMulInteger" => index < 2,
        // A value, its scale and its zero point; of the second factor too; the result's; the bias.
        op if op.starts_with("QLinear") => matches!(index, 0 | 3 | 8),
        "Conv" | "FusedConv" | "ConvTranspose" | "Gemm" | "MatMul" | "FusedMatMul" | "PRelu" => true,
        op if op.ends_with("Normalization") => true,
        _ => elements > 1 && !decodes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::TensorProto;

    fn graph(nodes: &[(&str, &[&str], &str)], tensors: &[(&str, &[i64])]) -> GraphProto {
        GraphProto {
            node: nodes.iter().map(|(op, inputs, output)| NodeProto::new(op, inputs, &[*output], vec![])).collect(),
            initializer: tensors
                .iter()
                .map(|(name, dims)| TensorProto {
                    name: (*name).into(),
                    dims: dims.to_vec(),
                    data_type: dtype::FLOAT,
                    ..TensorProto::default()
                })
                .collect(),
            ..GraphProto::default()
        }
    }

    #[test]
    fn anchors_strides_and_single_numbers_are_no_parameters() {
        let detector = graph(
            &[
                ("Conv", &["x", "w", "b"], "a"),
                ("Add", &["a", "bias"], "b0"),
                ("Mul", &["b0", "half"], "c"),
                ("Resize", &["c", "", "scales"], "d"),
                ("Conv", &["d", "w"], "e"),
                ("Conv", &["e", "dfl"], "f"),
                ("Add", &["f", "anchors"], "g"),
                ("Mul", &["g", "strides"], "y"),
            ],
            &[
                ("w", &[8, 8, 3, 3]),
                ("b", &[8]),
                ("bias", &[8, 1, 1]),
                ("half", &[]),
                ("scales", &[4]),
                ("dfl", &[1, 8, 1, 1]),
                ("anchors", &[1, 2, 84]),
                ("strides", &[1, 84]),
            ],
        );
        assert_eq!(count(&detector).0, 576 + 8 + 8 + 8);
    }

    #[test]
    fn a_weight_in_bytes_counts_and_its_scale_does_not() {
        let quantised = graph(
            &[
                ("QuantizeLinear", &["x", "x_scale"], "q"),
                ("DequantizeLinear", &["w", "w_scale"], "dq"),
                ("Conv", &["q", "dq", "b"], "y"),
            ],
            &[("w", &[8, 8, 3, 3]), ("w_scale", &[8]), ("x_scale", &[]), ("b", &[8])],
        );
        assert_eq!(count(&quantised).0, 576 + 8);
    }

    #[test]
    fn what_only_an_inner_graph_may_read_is_counted() {
        assert_eq!(count(&graph(&[("If", &["x"], "y")], &[("w", &[3, 3])])).0, 9);
    }
}
