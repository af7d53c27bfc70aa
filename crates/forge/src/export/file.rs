//! The ONNX file around a graph.

use prony_model::onnx::{
    Dimension, GraphProto, ModelProto, NodeProto, TensorShape, TensorType, TypeProto, ValueInfo, dimension, dtype,
};

use super::graph::{Graph, Value};
use super::{Axis, Exported};

/// Axes of the input.
pub(super) fn input_axes(image: &Value, dynamic: bool) -> Vec<Axis> {
    axes(image, if dynamic { [Some("batch"), None, Some("height"), Some("width")] } else { [None; 4] })
}

/// Axes of the output.
pub(super) fn output_axes(output: &Value, dynamic: bool, end2end: bool) -> Vec<Axis> {
    let places = (!end2end).then_some("anchors");
    axes(output, if dynamic { [Some("batch"), None, places, None] } else { [None; 4] })
}

fn axes(value: &Value, named: [Option<&str>; 4]) -> Vec<Axis> {
    let axis = |(&length, name): (&usize, Option<&str>)| match name {
        Some(name) => Axis::Named(name.to_owned()),
        None => Axis::Fixed(length as u64),
    };
    value.dims.iter().zip(named).map(axis).collect()
}

/// The whole file. The last value gets the name that readers expect.
pub(super) fn file(graph: Graph, made: &Exported, last: &str, opset: u32, facts: &[(&str, String)]) -> ModelProto {
    let (name, _) = &made.output;
    let rename = |mut node: NodeProto| {
        node.output.iter_mut().filter(|output| *output == last).for_each(|output| output.clone_from(name));
        node
    };
    let graph = GraphProto {
        node: graph.nodes.into_iter().map(rename).collect(),
        name: "main_graph".to_owned(),
        initializer: graph.weights,
        input: vec![described(&made.input)],
        output: vec![described(&made.output)],
        ..GraphProto::default()
    };
    let facts: Vec<(&str, &str)> = facts.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let mut model = ModelProto::new(graph, &facts);
    env!("CARGO_PKG_VERSION").clone_into(&mut model.producer_version);
    model.opset_import.iter_mut().for_each(|set| set.version = opset.into());
    model
}

fn described((name, axes): &(String, Vec<Axis>)) -> ValueInfo {
    let dim = |axis: &Axis| {
        let value = match axis {
            Axis::Fixed(length) => dimension::Value::Fixed(i64::try_from(*length).unwrap_or(i64::MAX)),
            Axis::Named(name) => dimension::Value::Named(name.clone()),
        };
        Dimension { value: Some(value), ..Dimension::default() }
    };
    let shape = TensorShape { dim: axes.iter().map(dim).collect() };
    let tensor = TensorType { elem_type: dtype::FLOAT, shape: Some(shape) };
    let ty = Some(TypeProto { tensor: Some(tensor), ..TypeProto::default() });
    ValueInfo { name: name.clone(), ty, ..ValueInfo::default() }
}
