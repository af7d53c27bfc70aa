//! What an ONNX file says about itself.

use std::collections::{BTreeSet, HashSet};

use prony_types::{DType, Dim, Metadata, ModelFormat, ModelInfo, TensorInfo};
use prost::Message as _;
use prost::bytes::Bytes;

use crate::external;
use crate::literal::{self, Literal};
use crate::names;
use crate::onnx::{GraphProto, ModelProto, StringEntry, ValueInfo, dimension, dtype};
use crate::parameters;
use crate::quantisation::quantised;

/// Reads the facts of a file, or says why it is no ONNX model. Files of external data are named and not looked at.
pub(crate) fn read(bytes: &Bytes) -> Result<ModelInfo, String> {
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    let model = ModelProto::decode(bytes.clone()).map_err(|_| sniff(bytes).to_owned())?;
    let graph = model.graph.as_ref().ok_or_else(|| sniff(bytes).to_owned())?;
    if graph.node.is_empty() || graph.output.is_empty() {
        return Err("its graph has no nodes or no outputs".into());
    }
    let inputs = inputs(graph);
    if inputs.is_empty() {
        return Err("its graph has no inputs".into());
    }
    let opset = model.opset_import.iter().find(|set| set.domain.is_empty() || set.domain == "ai.onnx");
    let mut operators = BTreeSet::new();
    collect_operators(graph, &mut operators, 0);
    let (parameters, weights) = parameters::count(graph);
    Ok(ModelInfo {
        format: ModelFormat::Onnx,
        inputs,
        outputs: graph.output.iter().map(tensor).collect(),
        metadata: metadata(&model.metadata_props),
        opset: opset.map(|set| set.version),
        operators: operators.into_iter().collect(),
        quantised: quantised(graph),
        weights,
        parameters,
        files: external::parts(graph),
    })
}

/// What a caller must feed; older files list weights among the inputs too.
pub(crate) fn inputs(graph: &GraphProto) -> Vec<TensorInfo> {
    let weights: HashSet<&str> = graph.initializer.iter().map(|t| t.name.as_str()).collect();
    graph.input.iter().filter(|input| !weights.contains(input.name.as_str())).map(tensor).collect()
}

/// A few words on what the bytes look like instead.
pub(crate) fn sniff(bytes: &[u8]) -> &'static str {
    look(bytes).unwrap_or("its bytes are not ONNX, or it was cut short")
}

/// What a file is that is no model, where that can be told from how it begins.
pub(crate) fn look(bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(512)];
    Some(if head.starts_with(b"PK") {
        "it is a zip archive (a PyTorch checkpoint?)"
    } else if head.starts_with(b"\x89HDF") {
        "it is an HDF5 file"
    } else if head.starts_with(b"\x7fELF") {
        "it is an ELF file"
    } else if head.starts_with(b"version https://git-lfs") {
        "it is a Git LFS pointer; run `git lfs pull`"
    } else if head.iter().all(|b| matches!(b, 9 | 10 | 13 | 32..127)) {
        "it is a text file"
    } else {
        return None;
    })
}

fn tensor(value: &ValueInfo) -> TensorInfo {
    let tensor = value.ty.as_ref().and_then(|ty| ty.tensor.as_ref());
    let shape = tensor.and_then(|t| t.shape.as_ref());
    let dim = |value: &Option<dimension::Value>| match value {
        Some(dimension::Value::Fixed(n)) => u64::try_from(*n).map_or(Dim::Named(String::new()), Dim::Fixed),
        Some(dimension::Value::Named(name)) => Dim::Named(name.clone()),
        None => Dim::Named(String::new()),
    };
    TensorInfo {
        name: value.name.clone(),
        dtype: tensor.map_or(DType::Other, |t| dtype::from_number(t.elem_type)),
        dims: shape.map(|s| s.dim.iter().map(|d| dim(&d.value)).collect()).unwrap_or_default(),
    }
}

fn collect_operators(graph: &GraphProto, into: &mut BTreeSet<String>, depth: u32) {
    for node in &graph.node {
        into.insert(node.op_type.clone());
        for inner in node.attribute.iter().filter_map(|a| a.g.as_ref()) {
            if depth < 16 {
                collect_operators(inner, into, depth + 1);
            }
        }
    }
}

fn metadata(props: &[StringEntry]) -> Metadata {
    let get = |key: &str| props.iter().find(|p| p.key == key).map(|p| p.value.as_str());
    let imgsz = match get("imgsz").and_then(literal::parse) {
        Some(Literal::List(sides)) => match sides[..] {
            [Literal::Int(h), Literal::Int(w)] => u32::try_from(h).ok().zip(u32::try_from(w).ok()).map(|(h, w)| [h, w]),
            _ => None,
        },
        Some(Literal::Int(side)) => u32::try_from(side).ok().map(|side| [side, side]),
        _ => None,
    };
    let named = get("names").map(|text| names::read("names", text)).transpose();
    Metadata {
        names_problem: named.as_ref().err().cloned(),
        names: named.ok().flatten().unwrap_or_default(),
        stride: get("stride").and_then(|s| s.trim().parse().ok()),
        task: get("task").map(str::to_owned),
        imgsz,
        end2end: get("end2end").and_then(|s| match s {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::onnx::{NodeProto, TensorProto};

    fn tiny() -> ModelProto {
        let graph = GraphProto {
            node: vec![NodeProto::new("Mul", &["x", "w"], &["y"], vec![])],
            name: "tiny".into(),
            initializer: vec![TensorProto::floats("w", &[2], &[1.0, 2.0])],
            input: vec![ValueInfo::floats("x", &[-1, 2]), ValueInfo::floats("w", &[2])],
            output: vec![ValueInfo::floats("y", &[-1, 2])],
            ..GraphProto::default()
        };
        ModelProto::new(graph, &[("names", "{1: 'b', 0: 'a'}"), ("imgsz", "[320, 640]"), ("stride", "32")])
    }

    #[test]
    fn facts_are_read_and_weights_are_no_inputs() {
        let info = read(&tiny().encode_to_vec().into()).unwrap();
        assert_eq!(info.inputs.len(), 1);
        assert_eq!(info.inputs[0].to_string(), "x f32[batch,2]");
        assert_eq!(info.metadata.names, ["a", "b"]);
        assert_eq!(info.metadata.imgsz, Some([320, 640]));
        assert_eq!(info.metadata.stride, Some(32));
        assert_eq!((info.parameters, info.weights, info.opset), (2, Some(DType::F32), Some(17)));
        assert_eq!(info.operators, ["Mul"]);
    }

    #[test]
    fn weights_that_claim_more_than_any_number_are_counted_without_overflow() {
        let mut model = tiny();
        let graph = model.graph.as_mut().unwrap();
        for (name, data_type) in [("a", dtype::FLOAT), ("b", dtype::FLOAT), ("c", dtype::FLOAT16)] {
            let dims = vec![i64::MAX, 2];
            graph.initializer.push(TensorProto { name: name.into(), dims, data_type, ..TensorProto::default() });
        }
        assert_eq!(read(&model.encode_to_vec().into()).unwrap().parameters, u64::MAX);
    }

    proptest! {
        #[test]
        fn a_cut_file_is_an_error_or_a_smaller_model_but_never_a_panic(cut in 0usize..200) {
            let bytes = tiny().encode_to_vec();
            let len = bytes.len();
            let _ = read(&Bytes::from(bytes).slice(..cut.min(len)));
        }

        #[test]
        fn random_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            prop_assert!(read(&bytes.into()).is_err());
        }
    }
}
