use std::collections::BTreeSet;

use prony_backend::{ModelFile, SessionSpec, SlotInput, backend};
use prony_model::onnx::{OperatorSetId, ValueInfo};
use prony_types::{BackendName, Precision, TensorData};
use prost::Message as _;

use super::super::place::place;
use super::*;

const WEIGHTS: usize = 64;

/// Weights of many sizes; the second half of the channels is a hundred times smaller.
fn weights() -> Vec<f32> {
    (0..WEIGHTS).map(|i| ((i * 37 % 23) as f32 - 11.0) * if i < WEIGHTS / 2 { 0.1 } else { 0.001 }).collect()
}

fn bias() -> Vec<f32> {
    (0..8).map(|i| i as f32 * 0.25 - 1.0).collect()
}

/// What the embedded engine wants to be told.
fn conv() -> Vec<AttributeProto> {
    let of = |name: &str, values: &[i64]| AttributeProto::ints(name, values);
    vec![of("strides", &[1, 1]), of("dilations", &[1, 1]), of("pads", &[0, 0, 0, 0])]
}

/// One convolution by points and its activation.
fn model() -> ModelProto {
    let graph = GraphProto {
        input: vec![ValueInfo::floats("x", &[1, 8, 1, 2])],
        output: vec![ValueInfo::floats("y", &[1, 8, 1, 2])],
        initializer: vec![TensorProto::floats("w", &[8, 8, 1, 1], &weights()), TensorProto::floats("b", &[8], &bias())],
        node: vec![
            NodeProto::new("Conv", &["x", "w", "b"], &["c"], conv()),
            NodeProto::new("Relu", &["c"], &["y"], vec![]),
        ],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[("names", "{0: 'a'}"), ("prony.quantise", "old")])
}

fn written(model: &ModelProto, per_channel: bool, target: QuantiseFor, scale: f32) -> ModelProto {
    let known = Known::new(model.graph.as_ref().unwrap(), BTreeSet::new());
    let placement = place(&known, &[], target).unwrap();
    let scales = placement.tensors.scales.keys().map(|name| (name.clone(), scale)).collect();
    let plan = Plan { placement: &placement, scales: &scales, per_channel, target };
    write(model, &known, &plan, &[("prony.quantise", "new".to_owned())]).unwrap().0
}

fn constant<'a>(graph: &'a GraphProto, name: &str) -> &'a TensorProto {
    graph.initializer.iter().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn run(model: &ModelProto, input: &[f32]) -> Vec<f32> {
    let file = ModelFile::from_bytes("m", model.encode_to_vec().into()).unwrap();
    let spec = SessionSpec { precision: Precision::Native, ..SessionSpec::new(&file) };
    let mut session = backend(BackendName::Rten).open(&spec).unwrap();
    let SlotInput::F32(values) = session.input(0, 0) else { panic!() };
    values.copy_from_slice(input);
    session.run(0).unwrap();
    let TensorData::F32(values) = session.output(0, 0).data else { panic!() };
    values.to_vec()
}

#[test]
fn the_graph_computes_what_bytes_stand_for() {
    let input: Vec<f32> = (0..16).map(|i| (i as f32 - 7.3) * 0.31).collect();
    let step = 0.02f32;
    for &target in QuantiseFor::ALL {
        let model = written(&model(), true, target, step);
        let got = run(&model, &input);
        // By hand: every value to its byte and back, halves to the even one, then the plain sum.
        let back = |x: f32, step: f32| {
            (f64::from(x) / f64::from(step)).round_ties_even().clamp(-127.0, 127.0) * f64::from(step)
        };
        for channel in 0..8 {
            let row = &weights()[channel * 8..][..8];
            let of_channel = row.iter().fold(0.0f32, |max, w| max.max(w.abs())) / 127.0;
            for at in 0..2 {
                let sum: f64 = (0..8).map(|i| back(input[i * 2 + at], step) * back(row[i], of_channel)).sum();
                let expected = (sum + f64::from(bias()[channel])).max(0.0);
                let got = f64::from(got[channel * 2 + at]);
                assert!((got - expected).abs() < 1e-4, "{target} channel {channel}: {got} {expected}");
            }
        }
    }
}

#[test]
fn weights_are_bytes_with_a_scale_a_channel_and_biases_stay() {
    let model = written(&model(), true, QuantiseFor::Any, 0.5);
    let graph = model.graph.as_ref().unwrap();
    let ops: Vec<&str> = graph.node.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!(ops, ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv", "Relu"]);
    assert_eq!(graph.node[3].input, ["x_dequantized", "w_dequantized", "b"]);
    assert_eq!(constant(graph, "w_quantized").data_type, dtype::INT8);
    assert_eq!((constant(graph, "w_scale").dims.as_slice(), constant(graph, "x_scale").dims.len()), (&[8][..], 0));
    assert_eq!(constant(graph, "x_scale").to_f32s(), Some(vec![0.5]));
    assert_eq!(constant(graph, "x_zero_point").raw_data.as_ref(), [0]);
    assert_eq!(constant(graph, "b").data_type, dtype::FLOAT);
    assert!(!graph.initializer.iter().any(|tensor| tensor.name == "w"), "the floats are gone");
    assert_eq!(graph.node[2].attribute[0], AttributeProto::int("axis", 0));
    let facts: Vec<(&str, &str)> = model.metadata_props.iter().map(|e| (e.key.as_str(), e.value.as_str())).collect();
    assert_eq!(facts, [("names", "{0: 'a'}"), ("prony.quantise", "new")]);
    let plain = written(&self::model(), false, QuantiseFor::Any, 0.5);
    let graph = plain.graph.as_ref().unwrap();
    assert!(constant(graph, "w_scale").dims.is_empty() && graph.node[2].attribute.is_empty());
}

#[test]
fn unsigned_bytes_have_a_zero_point_in_the_middle() {
    let model = written(&model(), true, QuantiseFor::Openvino, 0.5);
    let graph = model.graph.as_ref().unwrap();
    let zero = constant(graph, "x_zero_point");
    assert_eq!((zero.data_type, zero.raw_data.as_ref()), (dtype::UINT8, &[128][..]));
    assert_eq!(constant(graph, "w_zero_point").data_type, dtype::INT8);
}

#[test]
fn a_bias_fits_into_the_accumulator_whatever_the_weights() {
    let mut model = model();
    let mut dead = weights();
    dead[..8].fill(0.0);
    dead[8..16].fill(1e-20);
    model.graph.as_mut().unwrap().initializer[0] = TensorProto::floats("w", &[8, 8, 1, 1], &dead);
    let step = 1e-3;
    let model = written(&model, true, QuantiseFor::Any, step);
    let scales = constant(model.graph.as_ref().unwrap(), "w_scale").to_f32s().unwrap();
    for (scale, bias) in scales.iter().zip(bias()) {
        assert!(scale.is_normal() && (bias.abs() / (scale * step)) <= i32::MAX as f32, "{scale} {bias}");
    }
}

#[test]
fn weights_that_others_read_too_stay() {
    let mut model = model();
    let graph = model.graph.as_mut().unwrap();
    graph.node.push(NodeProto::new("Identity", &["w"], &["copy"], vec![]));
    let model = written(&model, true, QuantiseFor::Any, 0.5);
    constant(model.graph.as_ref().unwrap(), "w");
}

#[test]
fn an_old_operator_set_is_raised_where_nothing_changes_its_meaning() {
    let set = |version| vec![OperatorSetId { domain: String::new(), version }];
    let mut model = model();
    assert_eq!(opset(&model).unwrap(), 17);
    model.opset_import = set(11);
    assert_eq!(opset(&model).unwrap(), 13);
    assert_eq!(written(&model, true, QuantiseFor::Any, 0.5).opset_import[0].version, 13);
    model.opset_import = set(9);
    assert!(opset(&model).unwrap_err().to_string().contains("operator set 9"), "{:?}", opset(&model));
    model.opset_import = set(12);
    model.graph.as_mut().unwrap().node.push(NodeProto::new("Softmax", &["y"], &["z"], vec![]));
    let error = opset(&model).unwrap_err().to_string();
    assert!(error.contains("Softmax has changed since") && error.contains("opset 13"), "{error}");
}
