use prony_model::onnx::{AttributeProto, ValueInfo};

use super::*;

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto::new(op, inputs, outputs, vec![])
}

fn weight(name: &str, dims: &[i64]) -> TensorProto {
    let count = dims.iter().product::<i64>() as usize;
    TensorProto::floats(name, dims, &vec![0.5; count])
}

/// A stem with SiLU, a branch through a slice that is added and concatenated, a layer behind the concatenation, and a head.
fn graph() -> GraphProto {
    GraphProto {
        input: vec![ValueInfo::floats("x", &[1, 8, 4, 4])],
        output: vec![ValueInfo::floats("y", &[1, 8, 4, 4])],
        initializer: vec![weight("w", &[8, 8, 3, 3]), weight("wide", &[8, 16, 1, 1]), TensorProto::ints("at", &[0])],
        node: vec![
            node("Conv", &["x", "w"], &["c1"]),
            node("Sigmoid", &["c1"], &["s1"]),
            node("Mul", &["c1", "s1"], &["m1"]),
            node("Slice", &["m1", "at", "at"], &["part"]),
            node("Conv", &["part", "w"], &["c2"]),
            node("Add", &["part", "c2"], &["sum"]),
            node("Concat", &["part", "sum"], &["both"]),
            node("Conv", &["both", "wide"], &["c3"]),
            node("Relu", &["c3"], &["r3"]),
            node("Conv", &["r3", "w"], &["y"]),
        ],
        ..GraphProto::default()
    }
}

fn placed(graph: &GraphProto, exclude: &[&str], target: QuantiseFor) -> Placement {
    let exclude: Vec<String> = exclude.iter().map(|name| (*name).to_owned()).collect();
    place(&Known::new(graph, BTreeSet::from(["y".to_owned()])), &exclude, target).unwrap()
}

fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    names.into_iter().map(String::as_str).collect()
}

fn layers(placement: &Placement) -> Vec<&str> {
    placement.layers.iter().map(|layer| layer.name.as_str()).collect()
}

#[test]
fn for_tensorrt_bytes_are_at_the_inputs_of_layers() {
    let graph = graph();
    let placement = placed(&graph, &[], QuantiseFor::Tensorrt);
    assert_eq!(layers(&placement), ["c1", "c2", "c3"]);
    assert_eq!(
        placement.float.iter().map(|layer| layer.why).collect::<Vec<_>>(),
        ["it gives or decodes boxes and scores"]
    );
    // Nothing between a convolution and its activation.
    assert_eq!(names(placement.tensors.scales.keys()), ["both", "part", "x"]);
    assert_eq!(names(&placement.tensors.measured), ["both", "part", "x"]);
    assert!(!placement.tensors.for_all);
}

#[test]
fn for_any_a_layer_behind_a_concatenation_stays_in_float() {
    let placement = placed(&graph(), &[], QuantiseFor::Any);
    assert_eq!(layers(&placement), ["c1", "c2"]);
    assert!(placement.float.iter().any(|layer| layer.name == "c3" && layer.why.contains("concatenation")));
    assert_eq!(names(placement.tensors.scales.keys()), ["part", "x"]);
}

#[test]
fn for_onnxruntime_whole_chains_are_in_bytes() {
    let placement = placed(&graph(), &[], QuantiseFor::Onnxruntime);
    assert_eq!(layers(&placement), ["c1", "c2", "c3"]);
    // Of the last layer it is what its activation gives.
    let expected = ["both", "c1", "c2", "m1", "part", "r3", "s1", "sum", "x"];
    assert_eq!(names(placement.tensors.scales.keys()), expected);
    assert_eq!(names(&placement.tensors.unit), ["s1"]);
    assert!(!placement.tensors.measured.contains("s1") && placement.tensors.for_all);
    // What is only passed on has the scale that it had; what is put together has its own.
    let scale = |name: &str| placement.tensors.scales[name].as_str();
    assert_eq!(scale("part"), scale("m1"));
    assert!(scale("both") != scale("m1") && scale("both") != scale("sum"));
    assert!(!placement.tensors.measured.contains("part") && placement.tensors.measured.contains("both"));
}

#[test]
fn both_sides_of_a_sum_that_a_layer_reads_are_in_bytes() {
    let mut graph = graph();
    graph.node[6] = node("Identity", &["sum"], &["same"]);
    graph.node[7] = node("Conv", &["sum", "w"], &["c3"]);
    let placement = placed(&graph, &[], QuantiseFor::Tensorrt);
    assert_eq!(names(placement.tensors.scales.keys()), ["c2", "part", "sum", "x"]);
    assert!(placement.tensors.inside.contains(&5));
}

#[test]
fn fewer_layers_need_no_tensors_that_all_of_them_did_not() {
    let graph = graph();
    for &target in QuantiseFor::ALL {
        let all = placed(&graph, &[], target);
        for layer in &all.layers {
            if let Some(other) = all.layers.iter().find(|other| other.name != layer.name) {
                let fewer = placed(&graph, &[&layer.name], target);
                assert!(fewer.tensors.measured.is_subset(&all.tensors.measured), "{target} without {}", layer.name);
                assert!(layers(&fewer).contains(&other.name.as_str()));
            }
        }
    }
}

#[test]
fn layers_are_excluded_by_name_and_by_operator() {
    let graph = graph();
    assert_eq!(layers(&placed(&graph, &["c1"], QuantiseFor::Tensorrt)), ["c2", "c3"]);
    let known = Known::new(&graph, BTreeSet::new());
    let refused = |exclude: &str| place(&known, &[exclude.to_owned()], QuantiseFor::Any).unwrap_err().to_string();
    assert!(refused("Conv").starts_with("nothing in the graph can be quantised: excluded"), "{}", refused("Conv"));
    assert!(refused("nobody").contains("`nobody`, neither a node nor an operator"), "{}", refused("nobody"));
    assert!(refused("bot").contains("did you mean `both`?"), "{}", refused("bot"));
}

#[test]
fn attention_stays_in_float() {
    let mut graph = graph();
    graph.node.insert(9, node("MatMul", &["r3", "r3"], &["attended"]));
    graph.node[10].input[0] = "attended".into();
    let placement = placed(&graph, &[], QuantiseFor::Onnxruntime);
    let kept = placement.float.iter().find(|layer| layer.name == "attended").unwrap();
    assert!(kept.why.contains("attention"), "{kept:?}");
}

#[test]
fn channels_lie_along_the_axis_of_the_operator() {
    let turned = vec![AttributeProto::int("transB", 1)];
    let graph = GraphProto {
        input: vec![ValueInfo::floats("x", &[1, 8])],
        output: vec![ValueInfo::floats("z", &[1, 8])],
        initializer: vec![weight("w", &[8, 8]), weight("t", &[8, 8, 3, 3])],
        node: vec![
            node("MatMul", &["x", "w"], &["a"]),
            node("Gemm", &["a", "w"], &["b"]),
            NodeProto::new("Gemm", &["b", "w"], &["c"], turned),
            node("ConvTranspose", &["c", "t"], &["d"]),
            node("Relu", &["d"], &["z"]),
        ],
        ..GraphProto::default()
    };
    let placement = place(&Known::new(&graph, BTreeSet::new()), &[], QuantiseFor::Any).unwrap();
    assert_eq!(placement.layers.iter().map(|layer| layer.axis).collect::<Vec<_>>(), [1, 1, 0, 1]);
}

#[test]
fn names_are_made_that_nothing_has() {
    let mut names = Names::of(&graph());
    assert_eq!(names.fresh("c1_scale"), "c1_scale");
    assert_eq!(names.fresh("c1_scale"), "c1_scale_2");
    assert_eq!(names.fresh("w"), "w_2");
}

#[test]
fn branches_of_a_head_stay_in_float() {
    let mut graph = graph();
    // The neck leads to boxes and to scores, each over a layer of its own.
    graph.node.truncate(9);
    for (branch, last) in [("bc", "boxes"), ("sc", "scores")] {
        graph.node.push(node("Conv", &["r3", "w"], &[branch]));
        graph.node.push(node("Conv", &[branch, "w"], &[last]));
    }
    graph.node.push(node("Concat", &["boxes", "scores"], &["y"]));
    let tail = BTreeSet::from(["boxes", "scores", "y"].map(String::from));
    let placement = place(&Known::new(&graph, tail), &[], QuantiseFor::Tensorrt).unwrap();
    assert_eq!(layers(&placement), ["c1", "c2", "c3"]);
    let why = |name: &str| placement.float.iter().find(|layer| layer.name == name).unwrap().why;
    assert!(why("bc").contains("branch of the detection head") && why("sc") == why("bc"));
    assert_eq!(why("boxes"), "it gives or decodes boxes and scores");
}
