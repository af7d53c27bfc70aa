//! Small graphs, each with one thing to get right.

use std::collections::HashMap;

use prony_model::ModelFile;
use prony_model::onnx::{
    AttributeProto, Elements, GraphProto, ModelProto, NodeProto, StringEntry, TensorProto, ValueInfo, dtype,
};
use prony_types::{HalfSpec, Precision, SceneKind};
use prost::Message as _;

use super::{Converted, Why, convert};

fn node(op: &str, input: &[&str], output: &str) -> NodeProto {
    NodeProto::new(op, input, &[output], vec![])
}

/// A model from `x` to `outputs`, with weights by name.
fn model(nodes: Vec<NodeProto>, weights: Vec<TensorProto>, outputs: &[&str]) -> ModelFile {
    let graph = GraphProto {
        node: nodes,
        name: "small".into(),
        initializer: weights,
        input: vec![ValueInfo::floats("x", &[1, 8])],
        output: outputs.iter().map(|name| ValueInfo::floats(name, &[1, 8])).collect(),
        ..GraphProto::default()
    };
    ModelFile::from_bytes("small", ModelProto::new(graph, &[("names", "{0: 'a'}")]).encode_to_vec().into()).unwrap()
}

fn square(name: &str, value: f32) -> TensorProto {
    TensorProto::floats(name, &[8, 8], &[value; 64])
}

fn half() -> HalfSpec {
    HalfSpec::new(Precision::Fp16)
}

#[track_caller]
fn converted(model: &ModelFile, spec: &HalfSpec) -> (GraphProto, Converted) {
    let made = convert(model, spec).unwrap();
    let decoded = ModelProto::decode(&made.bytes[..]).unwrap();
    assert!(decoded.metadata_props.contains(&StringEntry { key: "names".into(), value: "{0: 'a'}".into() }));
    let graph = decoded.graph.unwrap();
    consistent(&graph);
    (graph, made)
}

/// Every node takes floats of one width, but for what its operator says, and nothing is used before it is given.
#[track_caller]
fn consistent(graph: &GraphProto) {
    let elements = Elements::of(graph);
    let inputs = graph.input.iter().map(|input| input.name.as_str());
    let mut given: Vec<&str> = inputs.chain(graph.initializer.iter().map(|tensor| tensor.name.as_str())).collect();
    let cast: Vec<&str> =
        graph.node.iter().filter(|node| node.op_type == "Cast").map(|node| node.output[0].as_str()).collect();
    for node in &graph.node {
        for name in node.input.iter().filter(|name| !name.is_empty()) {
            assert!(given.contains(&name.as_str()), "{name} is used before it is given");
            assert!(node.op_type != "Cast" || !cast.contains(&name.as_str()), "two casts in a row at {name}");
        }
        let slots = if node.op_type == "Resize" { 1 } else { node.input.len() };
        let widths: Vec<i32> = node.input[..slots.min(node.input.len())]
            .iter()
            .filter_map(|name| elements.get(name))
            .filter(|number| [dtype::FLOAT, dtype::FLOAT16, dtype::BFLOAT16].contains(number))
            .collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{} mixes {widths:?}", node.name);
        given.extend(node.output.iter().map(String::as_str));
    }
    for output in &graph.output {
        let declared = output.ty.as_ref().unwrap().tensor.as_ref().unwrap().elem_type;
        // What the nodes give, without what is declared.
        let bare = GraphProto { output: vec![], value_info: vec![], ..graph.clone() };
        assert_eq!(Elements::of(&bare).get(&output.name), Some(declared), "{}", output.name);
    }
}

fn operators(graph: &GraphProto) -> Vec<&str> {
    graph.node.iter().map(|node| node.op_type.as_str()).collect()
}

fn weight<'a>(graph: &'a GraphProto, name: &str) -> &'a TensorProto {
    graph.initializer.iter().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("no weight {name}"))
}

fn why(made: &Converted) -> HashMap<&str, Why> {
    made.report.kept.iter().map(|kept| (kept.node.as_str(), kept.why)).collect()
}

#[test]
fn a_layer_gets_one_cast_before_it_and_one_behind() {
    let model = model(vec![node("MatMul", &["x", "w"], "y")], vec![square("w", 0.5)], &["y"]);
    let (graph, made) = converted(&model, &half());
    assert_eq!(operators(&graph), ["Cast", "MatMul", "Cast"]);
    assert_eq!((weight(&graph, "w").data_type, made.report.casts), (dtype::FLOAT16, 2));
    assert_eq!(weight(&graph, "w").to_f32s().unwrap(), [0.5; 64]);
    let (graph, made) = converted(&model, &HalfSpec { keep_io: false, ..half() });
    assert_eq!((operators(&graph), made.report.casts), (vec!["MatMul"], 0));
    assert_eq!(ModelFile::from_bytes("m", made.bytes.into()).unwrap().info.inputs[0].to_string(), "x f16[1,8]");
}

#[test]
fn a_tensor_with_many_takers_is_cast_once() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("MatMul", &["x", "w"], "b"),
        node("Exp", &["a"], "c"),
        node("ReduceSum", &["a"], "d"),
        node("Add", &["c", "d"], "e"),
        node("MatMul", &["e", "w"], "f"),
        node("Mul", &["b", "f"], "g"),
        node("MatMul", &["g", "w"], "y"),
    ];
    let (graph, made) = converted(&model(nodes, vec![square("w", 0.5)], &["y"]), &half());
    // x, a for both that stay, e, and the output.
    assert_eq!(made.report.casts, 4);
    assert_eq!(graph.node.iter().filter(|node| node.op_type == "Cast" && node.input == ["a"]).count(), 1);
    let why = why(&made);
    assert_eq!((why["c"], why["d"], why["e"]), (Why::Operator, Why::Operator, Why::Between));
    assert_eq!((why.len(), made.report.nodes_half), (3, 5));
}

#[test]
fn a_constant_of_both_sides_is_there_in_both_forms() {
    let value = AttributeProto { t: Some(TensorProto::floats("", &[8], &[3.0; 8])), ..AttributeProto::int("value", 0) };
    let nodes = vec![
        NodeProto::new("Constant", &[], &["k"], vec![AttributeProto { kind: 4, ..value }]),
        node("MatMul", &["x", "w"], "a"),
        node("Mul", &["a", "k"], "b"),
        node("Pow", &["b", "s"], "c"),
        node("ReduceMean", &["c"], "d"),
        node("Sub", &["d", "s"], "e"),
        node("Add", &["e", "b"], "f"),
        node("Add", &["f", "s"], "g"),
        node("Pow", &["g", "k"], "h"),
        node("MatMul", &["h", "w"], "y"),
    ];
    let weights = vec![square("w", 0.25), TensorProto::floats("s", &[1], &[2.0])];
    let (graph, made) = converted(&model(nodes, weights, &["y"]), &half());
    for (full, narrow) in [("s", "s_fp16"), ("k", "k_fp16")] {
        assert_eq!(weight(&graph, narrow).data_type, dtype::FLOAT16);
        let takes = |name: &str| {
            let takers = graph.node.iter().filter(|node| node.input.iter().any(|input| input == name));
            takers.map(|node| node.op_type.as_str()).collect::<Vec<_>>()
        };
        assert!(takes(full).contains(&"Pow") && !takes(narrow).contains(&"Pow"), "{full}");
        assert!(!takes(narrow).is_empty(), "{full}");
    }
    assert_eq!(weight(&graph, "s").data_type, dtype::FLOAT);
    assert_eq!((weight(&graph, "w").data_type, made.report.weights_doubled), (dtype::FLOAT16, 2));
}

#[test]
fn an_output_that_is_used_inside_keeps_its_name() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("Exp", &["a"], "b"),
        node("MatMul", &["a", "w"], "c"),
        node("Add", &["b", "c"], "d"),
        node("MatMul", &["d", "w"], "y"),
    ];
    let small = model(nodes, vec![square("w", 0.5)], &["a", "y"]);
    let (graph, _) = converted(&small, &half());
    assert_eq!(graph.output[0].name, "a");
    // The exponent takes the very output, the layer what it was cast from.
    let takes = |output: &str| graph.node.iter().find(|node| node.output[0] == output).unwrap().input[0].as_str();
    assert_eq!((takes("b"), takes("c"), takes("a")), ("a", "a_fp16", "a_fp16"));
    let (graph, _) = converted(&small, &HalfSpec { keep_io: false, ..half() });
    let takes = |output: &str| graph.node.iter().find(|node| node.output[0] == output).unwrap().input[0].as_str();
    assert_eq!((takes("b"), takes("c")), ("a_fp32", "a"));
}

#[test]
fn factors_of_sizes_stay_in_fp32() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("Resize", &["a", "", "scales"], "b"),
        node("MatMul", &["b", "w"], "y"),
    ];
    let weights = vec![square("w", 0.5), TensorProto::floats("scales", &[2], &[1.0, 1.0])];
    let (graph, _) = converted(&model(nodes, weights, &["y"]), &half());
    assert_eq!(weight(&graph, "scales").data_type, dtype::FLOAT);
    assert_eq!(operators(&graph), ["Cast", "MatMul", "Resize", "MatMul", "Cast"]);
}

#[test]
fn a_softmax_stays_with_what_feeds_it() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "scores"),
        node("Mul", &["scores", "scale"], "scaled"),
        node("Softmax", &["scaled"], "shares"),
        node("MatMul", &["shares", "w"], "y"),
    ];
    let weights = vec![square("w", 0.5), TensorProto::floats("scale", &[1], &[0.3])];
    let (graph, made) = converted(&model(nodes, weights, &["y"]), &half());
    assert_eq!(operators(&graph), ["Cast", "MatMul", "Cast", "Mul", "Softmax", "Cast", "MatMul", "Cast"]);
    assert_eq!(why(&made), HashMap::from([("scaled", Why::FeedsSoftmax), ("shares", Why::Operator)]));
    assert_eq!(weight(&graph, "scale").data_type, dtype::FLOAT);
}

#[test]
fn what_decodes_boxes_stays_and_the_last_layers_do_not() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("Relu", &["a"], "r"),
        node("MatMul", &["r", "w"], "boxes"),
        node("MatMul", &["r", "w"], "scores"),
        node("Mul", &["boxes", "stride"], "pixels"),
        node("Sigmoid", &["scores"], "sure"),
        node("Concat", &["pixels", "sure"], "y"),
    ];
    let weights = vec![square("w", 0.5), TensorProto::floats("stride", &[1], &[32.0])];
    let (graph, made) = converted(&model(nodes, weights, &["y"]), &half());
    assert_eq!(why(&made), HashMap::from(["pixels", "sure", "y"].map(|name| (name, Why::Decoding))));
    assert_eq!((made.report.nodes_half, made.report.casts), (4, 3));
    assert_eq!(weight(&graph, "stride").data_type, dtype::FLOAT);
}

#[test]
fn a_weight_that_would_be_infinite_keeps_its_node_in_fp32() {
    let nodes =
        vec![node("MatMul", &["x", "w"], "a"), node("MatMul", &["a", "large"], "b"), node("MatMul", &["b", "w"], "y")];
    let mut tiny = vec![1.0; 64];
    tiny[0] = 1e-6;
    tiny[1] = 1e-9;
    let weights = vec![TensorProto::floats("w", &[8, 8], &tiny), square("large", 1e6)];
    let model = model(nodes, weights, &["y"]);
    let (graph, made) = converted(&model, &half());
    assert_eq!(why(&made), HashMap::from([("b", Why::Overflow)]));
    assert_eq!(weight(&graph, "large").to_f32s().unwrap(), [1e6; 64]);
    let losses = made.report.losses;
    assert_eq!((losses.overflowed, losses.subnormal, losses.zeroed), (64, 1, 1));
    let told: Vec<_> = made.report.tensors.iter().map(|tensor| (tensor.tensor.as_str(), tensor.kept)).collect();
    assert_eq!(told, [("w", false), ("large", true)]);
    // bf16 holds it.
    let (_, made) = converted(&model, &HalfSpec::new(Precision::Bf16));
    assert!(made.report.kept.is_empty() && made.report.losses.is_none(), "{:?}", made.report);
}

#[test]
fn casts_of_the_graph_give_what_is_wanted() {
    let to = |number: i32| vec![AttributeProto::int("to", number.into())];
    let nodes = vec![
        NodeProto::new("Shape", &["x"], &["shape"], vec![]),
        NodeProto::new("Cast", &["shape"], &["only"], to(dtype::FLOAT)),
        NodeProto::new("Cast", &["shape"], &["both"], to(dtype::FLOAT)),
        NodeProto::new("Cast", &["x"], &["idle"], to(dtype::FLOAT)),
        node("MatMul", &["idle", "w"], "a"),
        node("Mul", &["a", "only"], "b"),
        node("Mul", &["b", "both"], "c"),
        node("Pow", &["both", "both"], "d"),
        node("Add", &["c", "d"], "e"),
        node("MatMul", &["e", "w"], "f"),
        NodeProto::new("Cast", &["f"], &["y"], to(dtype::INT64)),
    ];
    let mut small = model(nodes, vec![square("w", 0.5)], &["y"]);
    let mut decoded = ModelProto::decode(small.bytes.clone()).unwrap();
    decoded.graph.as_mut().unwrap().output[0].ty.as_mut().unwrap().tensor.as_mut().unwrap().elem_type = dtype::INT64;
    small.bytes = decoded.encode_to_vec().into();
    let (graph, made) = converted(&small, &half());
    let made_by = |output: &str| graph.node.iter().find(|node| node.output[0] == output).unwrap();
    assert_eq!(made_by("only").attribute[0].i, i64::from(dtype::FLOAT16));
    assert_eq!((made_by("both").attribute[0].i, made_by("both_fp16").input[0].as_str()), (1, "shape"));
    assert_eq!((made_by("idle").op_type.as_str(), made_by("y").input[0].as_str()), ("Identity", "f"));
    // x, both and d in 16 bits: no more.
    assert_eq!(made.report.casts, 3);
}

#[test]
fn nodes_are_blocked_by_name_and_operator_and_a_name_of_none_is_refused() {
    let nodes = vec![node("MatMul", &["x", "w"], "a"), node("Relu", &["a"], "b"), node("MatMul", &["b", "w"], "y")];
    let small = model(nodes, vec![square("w", 0.5)], &["y"]);
    let blocked = |names: &[&str]| HalfSpec { block: names.iter().map(|&name| name.into()).collect(), ..half() };
    let (_, made) = converted(&small, &blocked(&["a", "Relu"]));
    assert_eq!(why(&made), HashMap::from([("a", Why::Blocked), ("b", Why::Blocked)]));
    let error = convert(&small, &blocked(&["nosuch"])).unwrap_err().to_string();
    assert!(error.starts_with("--block nosuch: no node has that name"), "{error}");
    let error = convert(&small, &blocked(&["MatMul", "Relu"])).unwrap_err().to_string();
    assert!(error.contains("nothing to convert"), "{error}");
}

#[test]
fn graphs_within_the_graph_get_what_they_name_in_fp32() {
    let branch = |output: &str| GraphProto {
        node: vec![node("Add", &["a", "s"], output)],
        name: output.into(),
        output: vec![ValueInfo::floats(output, &[1, 8])],
        ..GraphProto::default()
    };
    let inner = |name: &str, graph: GraphProto| AttributeProto {
        name: name.into(),
        g: Some(graph),
        kind: 5,
        ..AttributeProto::default()
    };
    let attributes = vec![inner("then_branch", branch("t")), inner("else_branch", branch("e"))];
    let nodes = vec![
        node("MatMul", &["x", "w"], "m"),
        node("Relu", &["m"], "a"),
        NodeProto::new("If", &["yes"], &["chosen"], attributes),
        node("MatMul", &["chosen", "w"], "z"),
        node("MatMul", &["a", "s"], "y"),
    ];
    let yes =
        TensorProto { name: "yes".into(), data_type: dtype::BOOL, raw_data: vec![1].into(), ..TensorProto::default() };
    let small = model(nodes, vec![square("w", 0.5), square("s", 0.25), yes], &["y", "z"]);
    let (graph, made) = converted(&small, &half());
    // What the branches name is there in fp32, whoever else takes it.
    let elements = Elements::of(&GraphProto { value_info: vec![], ..graph.clone() });
    assert_eq!((elements.get("a"), elements.get("s")), (Some(dtype::FLOAT), Some(dtype::FLOAT)));
    assert_eq!(weight(&graph, "s_fp16").data_type, dtype::FLOAT16);
    let why = why(&made);
    // What comes out of the branches cannot be told, so the layer behind stays too.
    assert_eq!((why["a"], why["chosen"], why["z"]), (Why::Opaque, Why::Opaque, Why::Opaque));
    assert_eq!(made.report.nodes_half, 2);
}

#[test]
fn what_is_quantised_or_narrow_already_is_refused() {
    for kind in SceneKind::ALL {
        let detector = ModelFile::builtin(*kind).unwrap();
        let once = convert(&detector, &half()).unwrap();
        let once = ModelFile::from_bytes("once", once.bytes.into()).unwrap();
        for precision in [Precision::Fp16, Precision::Bf16] {
            let error = convert(&once, &HalfSpec::new(precision)).unwrap_err().to_string();
            assert!(error.contains("16-bit floats already"), "{error}");
        }
    }
    let weights = || vec![TensorProto::floats("scale", &[], &[0.5])];
    let nodes = vec![
        NodeProto::new("QuantizeLinear", &["x", "scale"], &["q"], vec![]),
        NodeProto::new("DequantizeLinear", &["q", "scale"], &["y"], vec![]),
    ];
    let error = convert(&model(nodes, weights(), &["y"]), &half()).unwrap_err().to_string();
    assert!(error.contains("it is quantised"), "{error}");
    let error = convert(&ModelFile::builtin(SceneKind::Rgb).unwrap(), &HalfSpec::new(Precision::Int8)).unwrap_err();
    assert!(error.to_string().contains("fp16 or bf16, not to int8"), "{error}");
}

#[test]
fn bf16_raises_the_operator_set_only_where_it_must() {
    let nodes = vec![node("MatMul", &["x", "w"], "a"), node("MatMul", &["a", "w"], "y")];
    let (graph, made) = converted(&model(nodes, vec![square("w", 0.3)], &["y"]), &HalfSpec::new(Precision::Bf16));
    assert_eq!((made.report.opset, weight(&graph, "w").data_type), (None, dtype::BFLOAT16));
    let made = convert(&ModelFile::builtin(SceneKind::Rgb).unwrap(), &HalfSpec::new(Precision::Bf16)).unwrap();
    assert_eq!(made.report.opset, Some([17, 22]));
    consistent(ModelProto::decode(&made.bytes[..]).unwrap().graph.as_ref().unwrap());
}

#[test]
fn of_the_built_in_detectors_the_layers_are_narrow_and_the_decoding_is_not() {
    for kind in SceneKind::ALL {
        let detector = ModelFile::builtin(*kind).unwrap();
        let made = convert(&detector, &half()).unwrap();
        let graph = ModelProto::decode(&made.bytes[..]).unwrap().graph.unwrap();
        consistent(&graph);
        let kept: Vec<&str> = made.report.kept.iter().map(|kept| kept.op.as_str()).collect();
        assert!(kept.contains(&"Softmax") && kept.iter().filter(|op| **op == "Conv").count() == 1, "{kept:?}");
        // One behind the input, one behind each of the six last layers.
        assert_eq!(made.report.casts, 7);
        assert!(made.bytes.len() < detector.bytes.len() * 6 / 10, "{} of {}", made.bytes.len(), detector.bytes.len());
        let read = ModelFile::from_bytes("half", made.bytes.into()).unwrap();
        assert_eq!(read.info.metadata, detector.info.metadata);
        assert_eq!((&read.info.inputs, &read.info.outputs), (&detector.info.inputs, &detector.info.outputs));
    }
}
