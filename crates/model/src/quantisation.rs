//! What the quantisers of a graph quantise to. Their operators are the same for bytes and for narrow floats: the type of
//! the zero point, or an attribute, tells them apart.

use std::collections::HashMap;

use prony_types::Precision;

use crate::onnx::{GraphProto, NodeProto, dtype};

/// How deep graphs within graphs are looked at.
const DEPTH: u32 = 16;

/// The narrowest arithmetic that the quantisers carry; `None` for a graph without any. A graph of nvfp4 has scales of fp8
/// beside it, and one of fp8 may keep bytes for what fp8 has no kernels for.
pub(crate) fn quantised(graph: &GraphProto) -> Option<Precision> {
    let mut nodes = Vec::new();
    let mut types = HashMap::new();
    collect(graph, &mut nodes, &mut types, 0);
    let carried: Vec<Precision> = nodes.iter().filter_map(|node| carries(node, &types)).collect();
    [Precision::Nvfp4, Precision::Fp8, Precision::Int8].into_iter().find(|precision| carried.contains(precision))
}

/// Every node, and the type of every constant by its name.
fn collect<'a>(graph: &'a GraphProto, nodes: &mut Vec<&'a NodeProto>, types: &mut HashMap<&'a str, i32>, depth: u32) {
    types.extend(graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor.data_type)));
    for node in &graph.node {
        nodes.push(node);
        let constant = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
        if let (Some(tensor), Some(name), "Constant") = (constant, node.output.first(), node.op_type.as_str()) {
            types.insert(name, tensor.data_type);
        }
        for inner in node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()).filter(|_| depth < DEPTH) {
            collect(inner, nodes, types, depth + 1);
        }
    }
}

/// What one node quantises to, or from.
fn carries(node: &NodeProto, types: &HashMap<&str, i32>) -> Option<Precision> {
    let input = |at: usize| node.input.get(at).and_then(|name| types.get(name.as_str())).copied();
    let declared = || {
        let attribute = node.attribute.iter().find(|attribute| attribute.name == "output_dtype");
        attribute.and_then(|attribute| i32::try_from(attribute.i).ok()).filter(|&number| number != 0)
    };
    match node.op_type.as_str() {
        // Bytes, unless something says otherwise.
        "QuantizeLinear" => Some(declared().or_else(|| input(2)).map_or(Precision::Int8, by_number)),
        // Its attribute is what comes out; what goes in has the zero point's type. A bias in 32 bits says nothing.
        "DequantizeLinear" => {
            let number = input(2).or_else(|| input(0));
            (number != Some(dtype::INT32)).then(|| number.map_or(Precision::Int8, by_number))
        }
        // What ModelOpt writes where the operator set has no such type yet.
        "TRT_FP8QuantizeLinear" | "TRT_FP8DequantizeLinear" => Some(Precision::Fp8),
        "TRT_FP4DynamicQuantize" => Some(Precision::Nvfp4),
        "ConvInteger" | "MatMulInteger" => Some(Precision::Int8),
        other => other.starts_with("QLinear").then_some(Precision::Int8),
    }
}

fn by_number(number: i32) -> Precision {
    match number {
        dtype::FLOAT4E2M1 => Precision::Nvfp4,
        dtype::FLOAT8E4M3FN | dtype::FLOAT8E4M3FNUZ | dtype::FLOAT8E5M2 | dtype::FLOAT8E5M2FNUZ => Precision::Fp8,
        _ => Precision::Int8,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::onnx::{AttributeProto, ModelProto, TensorProto, ValueInfo};

    const INT8: i32 = 3;
    const UINT8: i32 = 2;

    /// One element of a type.
    fn constant(name: &str, data_type: i32) -> TensorProto {
        TensorProto { name: name.into(), data_type, raw_data: vec![0; 4].into(), ..TensorProto::default() }
    }

    fn graph(node: Vec<NodeProto>, initializer: Vec<TensorProto>) -> GraphProto {
        GraphProto {
            node,
            name: "small".into(),
            initializer,
            input: vec![ValueInfo::floats("x", &[1, 4])],
            output: vec![ValueInfo::floats("y", &[1, 4])],
            ..GraphProto::default()
        }
    }

    /// `x` quantised and taken back, with a zero point of a type.
    fn pair(zero_point: i32) -> GraphProto {
        let nodes = vec![
            NodeProto::new("QuantizeLinear", &["x", "scale", "zero"], &["q"], vec![]),
            NodeProto::new("DequantizeLinear", &["q", "scale", "zero"], &["y"], vec![]),
        ];
        graph(nodes, vec![TensorProto::floats("scale", &[], &[0.5]), constant("zero", zero_point)])
    }

    #[test]
    fn the_zero_point_tells_the_type() {
        for number in [INT8, UINT8] {
            assert_eq!(quantised(&pair(number)), Some(Precision::Int8), "{number}");
        }
        for number in [dtype::FLOAT8E4M3FN, dtype::FLOAT8E5M2] {
            assert_eq!(quantised(&pair(number)), Some(Precision::Fp8), "{number}");
        }
        assert_eq!(quantised(&pair(dtype::FLOAT4E2M1)), Some(Precision::Nvfp4));
        // As the file is read, not only as the graph is made.
        let bytes = ModelProto::new(pair(dtype::FLOAT8E4M3FN), &[]).encode_to_vec();
        assert_eq!(crate::info::read(&bytes.into()).unwrap().quantised, Some(Precision::Fp8));
    }

    #[test]
    fn without_a_zero_point_the_attribute_does() {
        let quantiser = |attributes| {
            let nodes = vec![
                NodeProto::new("QuantizeLinear", &["x", "scale"], &["q"], attributes),
                NodeProto::new("DequantizeLinear", &["q", "scale"], &["y"], vec![]),
            ];
            quantised(&graph(nodes, vec![TensorProto::floats("scale", &[], &[0.5])]))
        };
        assert_eq!(quantiser(vec![]), Some(Precision::Int8), "bytes where nothing is said");
        let asked = |number: i32| vec![AttributeProto::int("output_dtype", number.into())];
        assert_eq!(quantiser(asked(dtype::FLOAT8E4M3FN)), Some(Precision::Fp8));
        assert_eq!(quantiser(asked(dtype::FLOAT4E2M1)), Some(Precision::Nvfp4));
    }

    #[test]
    fn weights_that_are_stored_narrow_count_and_biases_do_not() {
        let dequantised = |data_type| {
            let nodes = vec![NodeProto::new("DequantizeLinear", &["w", "scale"], &["y"], vec![])];
            quantised(&graph(nodes, vec![TensorProto::floats("scale", &[], &[0.5]), constant("w", data_type)]))
        };
        assert_eq!(dequantised(dtype::FLOAT8E4M3FN), Some(Precision::Fp8));
        assert_eq!(dequantised(INT8), Some(Precision::Int8));
        assert_eq!(dequantised(dtype::INT32), None);
    }

    #[test]
    fn scales_of_fp8_do_not_hide_nvfp4() {
        let mut both = pair(dtype::FLOAT4E2M1);
        both.node.push(NodeProto::new("DequantizeLinear", &["scales", "scale"], &["z"], vec![]));
        both.initializer.push(constant("scales", dtype::FLOAT8E4M3FN));
        assert_eq!(quantised(&both), Some(Precision::Nvfp4));
    }

    #[test]
    fn constants_are_nodes_too_and_other_operators_say_it_by_name() {
        let zero = AttributeProto { t: Some(constant("", dtype::FLOAT8E4M3FN)), ..AttributeProto::int("value", 0) };
        let mut as_node = pair(INT8);
        as_node.initializer.pop();
        as_node.node.insert(0, NodeProto::new("Constant", &[], &["zero"], vec![zero]));
        assert_eq!(quantised(&as_node), Some(Precision::Fp8));
        let one = |op: &str| quantised(&graph(vec![NodeProto::new(op, &["x"], &["y"], vec![])], vec![]));
        assert_eq!(one("QLinearConv"), Some(Precision::Int8));
        assert_eq!(one("TRT_FP8QuantizeLinear"), Some(Precision::Fp8));
        assert_eq!(one("TRT_FP4DynamicQuantize"), Some(Precision::Nvfp4));
        assert_eq!(one("Conv"), None);
    }
}
