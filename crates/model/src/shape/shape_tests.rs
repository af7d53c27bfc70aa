use std::fs;
use std::path::Path;

use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::onnx::{AttributeProto, ModelProto, NodeProto, TensorProto};

/// Of the exports that have free axes, as `tools/golden/shape_golden.py` ran them.
const SIZES: Sizes = Sizes { batch: 2, imgsz: Some([160, 192]) };

fn golden(name: &str) -> GraphProto {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/shapes").join(format!("{name}.onnx"));
    ModelProto::decode(&fs::read(path).unwrap()[..]).unwrap().graph.unwrap()
}

/// Every shape of an export must be the one that ONNX Runtime saw, and none may be missing.
fn is_as_seen(name: &str) {
    let mut graph = golden(name);
    let seen = std::mem::take(&mut graph.value_info);
    let shapes = infer(&graph, &SIZES);
    assert!(seen.len() > 50);
    for value in &seen {
        let maker = graph.node.iter().find(|node| node.output.contains(&value.name));
        let op = maker.map(|node| node.op_type.as_str());
        assert_eq!(shapes.get(&value.name).map(<[u64]>::to_vec), all_fixed(value), "{name}: {} of {op:?}", value.name);
    }
    assert_eq!(shapes.unknown(), [0usize; 0]);
}

#[test]
fn detectors_are_as_onnx_runtime_saw_them() {
    for name in ["yolov8n", "yolov10n", "builtin-qdq", "builtin-qoperator"] {
        is_as_seen(name);
    }
}

#[test]
fn detectors_of_free_size_are_as_onnx_runtime_saw_them() {
    for name in ["yolov5n-dynamic", "yolo11n-seg-dynamic", "yolo12n-dynamic", "yolo26n-dynamic"] {
        is_as_seen(name);
    }
}

#[test]
fn transformers_and_classifiers_are_as_onnx_runtime_saw_them() {
    for name in ["yolov8n-rtdetr", "resnet18", "mobilenet_v3_small"] {
        is_as_seen(name);
    }
}

fn graph(node: Vec<NodeProto>, initializer: Vec<TensorProto>) -> GraphProto {
    let input = vec![ValueInfo::floats("x", &[-1, 3, 8, 6])];
    GraphProto { node, initializer, input, ..GraphProto::default() }
}

/// The shape of `y` after one node on `x`, which is `[2,3,8,6]`.
fn after(op: &str, more: &[TensorProto], attribute: Vec<AttributeProto>) -> Option<Shape> {
    let names: Vec<&str> = std::iter::once("x").chain(more.iter().map(|tensor| tensor.name.as_str())).collect();
    let graph = graph(vec![NodeProto::new(op, &names, &["y"], attribute)], more.to_vec());
    infer(&graph, &SIZES).get("y").map(<[u64]>::to_vec)
}

fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: value.as_bytes().to_vec().into(), kind: 3, ..AttributeProto::int(name, 0) }
}

#[test]
fn windows_are_padded_and_rounded_as_told() {
    let kernel = || AttributeProto::ints("kernel_shape", &[3, 3]);
    let stride = || AttributeProto::ints("strides", &[2, 2]);
    assert_eq!(after("MaxPool", &[], vec![kernel(), stride()]), Some(vec![2, 3, 3, 2]));
    let ceil = AttributeProto::int("ceil_mode", 1);
    assert_eq!(after("MaxPool", &[], vec![kernel(), stride(), ceil]), Some(vec![2, 3, 4, 3]));
    let same = text("auto_pad", "SAME_UPPER");
    assert_eq!(after("AveragePool", &[], vec![kernel(), stride(), same]), Some(vec![2, 3, 4, 3]));
    let weights = TensorProto::floats("w", &[3, 5, 2, 2], &[0.0; 60]);
    assert_eq!(after("ConvTranspose", &[weights], vec![stride()]), Some(vec![2, 5, 16, 12]));
}

#[test]
fn slices_run_both_ways_and_to_the_end() {
    let cut = |starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64]| {
        let inputs = [("s", starts), ("e", ends), ("a", axes), ("t", steps)];
        after("Slice", &inputs.map(|(name, values)| TensorProto::ints(name, values)), vec![])
    };
    assert_eq!(cut(&[1], &[i64::MAX], &[2], &[2]), Some(vec![2, 3, 4, 6]));
    assert_eq!(cut(&[-1], &[i64::MIN], &[3], &[-1]), Some(vec![2, 3, 8, 6]));
    assert_eq!(cut(&[0, -2], &[2, -1], &[2, 3], &[1, 1]), Some(vec![2, 3, 2, 1]));
    assert_eq!(cut(&[0], &[1], &[2], &[0]), None);
    assert_eq!(cut(&[0], &[1], &[9], &[1]), None);
}

#[test]
fn what_is_not_known_is_counted_and_what_is_declared_is_used() {
    let custom = NodeProto { domain: "mine".into(), ..NodeProto::new("Magic", &["x"], &["m"], vec![]) };
    let mut graph = graph(vec![custom, NodeProto::new("Relu", &["m"], &["y"], vec![])], vec![]);
    let shapes = infer(&graph, &SIZES);
    assert_eq!((shapes.unknown(), shapes.get("y")), (&[0, 1][..], None));
    graph.value_info.push(ValueInfo::floats("m", &[2, 7]));
    let shapes = infer(&graph, &SIZES);
    assert_eq!((shapes.unknown(), shapes.get("y")), (&[][..], Some(&[2, 7][..])));
    // A declared axis that is open says nothing.
    graph.value_info[0] = ValueInfo::floats("m", &[-1, 7]);
    assert_eq!(infer(&graph, &SIZES).get("y"), None);
}

#[test]
fn a_size_that_is_not_given_is_not_made_up() {
    let free = |imgsz| {
        let sizes = Sizes { batch: 1, imgsz };
        sizes.shape(&[Dim::Named("n".into()), Dim::Fixed(3), Dim::Named("h".into()), Dim::Named(String::new())])
    };
    assert_eq!(free(Some([4, 5])), Some(vec![1, 3, 4, 5]));
    assert_eq!(free(None), None);
    let channels = [Dim::Fixed(1), Dim::Named("c".into()), Dim::Fixed(4), Dim::Fixed(4)];
    assert_eq!(SIZES.shape(&channels), None);
}

#[test]
fn sizes_beyond_all_numbers_end_in_unknown() {
    let huge = TensorProto::ints("s", &[i64::MAX, i64::MAX, 4]);
    assert_eq!(after("Expand", std::slice::from_ref(&huge), vec![]), None);
    assert_eq!(after("Reshape", &[huge], vec![]), None);
    let times = TensorProto::ints("t", &[i64::MAX, 2, 2, 2]);
    assert_eq!(after("Tile", &[times], vec![]), None);
    let pads = AttributeProto::ints("pads", &[i64::MAX; 4]);
    let wide = after("MaxPool", &[], vec![AttributeProto::ints("kernel_shape", &[i64::MAX; 2]), pads]);
    assert!(wide.is_none_or(|shape| shape.len() == 4));
    // Made of nothing, as large as can be said: known, and not allocated.
    let shape = TensorProto::ints("s", &[1 << 60]);
    let node = NodeProto::new("ConstantOfShape", &["s"], &["y"], vec![]);
    assert_eq!(infer(&graph(vec![node], vec![shape]), &SIZES).get("y"), Some(&[1u64 << 60][..]));
}

#[test]
fn cycles_and_missing_inputs_give_no_shapes() {
    let nodes = vec![
        NodeProto::new("Add", &["a", "b"], &["b"], vec![]),
        NodeProto::new("Relu", &["nowhere"], &["y"], vec![]),
        NodeProto::new("Concat", &[], &["z"], vec![]),
    ];
    assert_eq!(infer(&graph(nodes, vec![]), &SIZES).unknown(), [0, 1, 2]);
}

const OPERATORS: &[&str] = &[
    "Conv",
    "ConvTranspose",
    "MaxPool",
    "MatMul",
    "Gemm",
    "Einsum",
    "Add",
    "Div",
    "Mod",
    "Where",
    "Reshape",
    "Transpose",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Concat",
    "Split",
    "Expand",
    "Tile",
    "Pad",
    "DepthToSpace",
    "Resize",
    "Slice",
    "Gather",
    "GatherND",
    "TopK",
    "ReduceProd",
    "ArgMax",
    "OneHot",
    "Shape",
    "Size",
    "Range",
    "ConstantOfShape",
    "Cast",
    "QLinearConv",
    "GridSample",
    "RoiAlign",
    "Constant",
];
const ATTRIBUTES: &[&str] = &[
    "axis",
    "axes",
    "perm",
    "pads",
    "strides",
    "dilations",
    "kernel_shape",
    "group",
    "starts",
    "ends",
    "to",
    "blocksize",
    "start",
    "end",
    "split",
    "keepdims",
    "batch_dims",
    "output_shape",
    "output_padding",
    "ceil_mode",
    "value_ints",
];

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-9i64..9, Just(i64::MAX), Just(i64::MIN), Just(1 << 40), any::<i64>()]
}

prop_compose! {
    fn attribute()(at in 0..ATTRIBUTES.len(), i in number(), ints in prop::collection::vec(number(), 0..6)) -> AttributeProto {
        AttributeProto { i, ..AttributeProto::ints(ATTRIBUTES[at], &ints) }
    }
}

prop_compose! {
    fn hostile()(
        op in 0..OPERATORS.len(),
        inputs in prop::collection::vec(0u8..12, 0..6),
        outputs in 0usize..3,
        attribute in prop::collection::vec(attribute(), 0..4),
    ) -> (usize, Vec<u8>, usize, Vec<AttributeProto>) {
        (op, inputs, outputs, attribute)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever a graph says: no panic, no allocation by a declared size, and its cost can be asked for.
    #[test]
    fn hostile_graphs_end_without_a_panic(
        nodes in prop::collection::vec(hostile(), 1..12),
        numbers in prop::collection::vec(number(), 0..6),
        dims in prop::collection::vec(number(), 0..5),
    ) {
        let weights = vec![
            TensorProto::ints("t0", &numbers),
            TensorProto { dims: dims.clone(), data_location: 1, ..TensorProto::floats("t1", &[], &[]) },
            TensorProto { dims: vec![], ..TensorProto::ints("t2", &numbers[..numbers.len().min(1)]) },
        ];
        let name = |at: u8| format!("t{at}");
        let node = |(at, (op, inputs, outputs, attribute)): (usize, (usize, Vec<u8>, usize, Vec<AttributeProto>))| NodeProto {
            op_type: OPERATORS[op].into(),
            input: inputs.into_iter().map(name).collect(),
            output: (0..outputs).map(|nth| format!("t{}", 4 + at + 2 * nth)).collect(),
            attribute,
            ..NodeProto::default()
        };
        let node = nodes.into_iter().enumerate().map(node).collect();
        let mut graph = graph(node, weights);
        graph.input.push(ValueInfo::floats("t3", &dims));
        let shapes = infer(&graph, &SIZES);
        prop_assert!(shapes.unknown().len() <= graph.node.len());
        prop_assert!(shapes.values.values().all(|value| value.content.as_ref().is_none_or(|content| content.len() <= 64)));
        let cost = crate::Cost::of(&graph, &shapes);
        prop_assert_eq!(cost.nodes.len(), graph.node.len());
        prop_assert!(cost.flops() >= cost.nodes.iter().filter_map(|node| node.flops).max().unwrap_or(0));
    }
}
