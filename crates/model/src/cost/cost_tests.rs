use prost::Message as _;

use super::*;
use crate::onnx::{ModelProto, TensorProto, ValueInfo};
use crate::shape::{Sizes, infer};

const SIZES: Sizes = Sizes { batch: 1, imgsz: None };

/// A convolution of `x` [1,3,8,8] with 16 kernels of 3x3, then what follows.
fn convolution(more: Vec<NodeProto>, bias: bool) -> GraphProto {
    let pads = AttributeProto::ints("pads", &[1, 1, 1, 1]);
    let inputs: &[&str] = if bias { &["x", "w", "b"] } else { &["x", "w"] };
    let mut node = vec![NodeProto::new("Conv", inputs, &["c"], vec![pads])];
    node.extend(more);
    GraphProto {
        node,
        initializer: vec![
            TensorProto::floats("w", &[16, 3, 3, 3], &[0.0; 432]),
            TensorProto::floats("b", &[16], &[0.0; 16]),
        ],
        input: vec![ValueInfo::floats("x", &[1, 3, 8, 8])],
        ..GraphProto::default()
    }
}

fn cost(graph: &GraphProto) -> Cost {
    Cost::of(graph, &infer(graph, &SIZES))
}

#[test]
fn a_multiply_add_counts_two() {
    let elements = 16 * 8 * 8;
    let plain = cost(&convolution(vec![], false));
    assert_eq!(plain.flops(), elements * 27 * 2);
    let weights = 432 * 4;
    assert_eq!(plain.nodes[0].weight_bytes, weights);
    assert_eq!(plain.bytes(), weights + 4 * (3 * 64 + elements));
    assert_eq!(cost(&convolution(vec![], true)).flops(), elements * 27 * 2 + elements);
}

/// The figures that the authors publish, at the size that they publish them for; a convolution's work goes with the area.
#[test]
fn published_figures_are_met_within_3_percent() {
    let cases =
        [("yolov8n", 1, 8.7e9, 640.0), ("yolov5n-dynamic", 2, 7.7e9, 640.0), ("resnet18", 2, 2.0 * 1.81e9, 224.0)];
    for (name, batch, published, side) in cases {
        let path = format!("{}/tests/golden/shapes/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
        let model = ModelProto::decode(&std::fs::read(path).unwrap()[..]).unwrap();
        let graph = model.graph.unwrap();
        let cost = Cost::of(&graph, &infer(&graph, &Sizes { batch, imgsz: Some([160, 192]) }));
        assert_eq!(cost.unknown().count(), 0, "{name}");
        let flops = cost.flops() as f64 / batch as f64 * (side * side) / (160.0 * 192.0);
        assert!((flops / published - 1.0).abs() < 0.03, "{name}: {flops:e} for {published:e}");
    }
}

#[test]
fn what_works_element_by_element_moves_nothing_at_least() {
    let relu = NodeProto::new("Relu", &["c"], &["y"], vec![]);
    let cost = cost(&convolution(vec![relu], false));
    assert_eq!(cost.nodes[1].flops, Some(1024));
    assert_eq!(cost.nodes[1].bytes, Some(2 * 4 * 1024));
    assert_eq!(cost.layers[1], LayerCost { flops: 1024, ..LayerCost::default() });
    assert_eq!(cost.layers[0].activation_bytes, 4 * (3 * 64 + 1024));
    assert_eq!(cost.by_operator()["Relu"], OperatorCost { nodes: 1, flops: 1024, bytes: 8192 });
}

#[test]
fn products_count_their_inner_axis_and_sums_of_letters_all_of_them() {
    let input = |name: &str, dims: &[i64]| ValueInfo::floats(name, dims);
    let equation = AttributeProto { s: b"bij,bjk->bik".to_vec().into(), kind: 3, ..AttributeProto::int("equation", 0) };
    let graph = GraphProto {
        input: vec![input("a", &[2, 3, 4]), input("b", &[2, 4, 5]), input("m", &[4, 3]), input("n", &[5, 4])],
        node: vec![
            NodeProto::new("MatMul", &["a", "b"], &["p"], vec![]),
            NodeProto::new("Einsum", &["a", "b"], &["e"], vec![equation]),
            NodeProto::new(
                "Gemm",
                &["m", "n"],
                &["g"],
                vec![AttributeProto::int("transA", 1), AttributeProto::int("transB", 1)],
            ),
        ],
        ..GraphProto::default()
    };
    let flops: Vec<_> = cost(&graph).nodes.into_iter().map(|node| node.flops).collect();
    assert_eq!(flops, [Some(2 * 2 * 3 * 5 * 4), Some(2 * 2 * 3 * 5 * 4), Some(2 * 3 * 5 * 4)]);
}

#[test]
fn what_is_known_beforehand_costs_nothing() {
    let nodes = vec![
        NodeProto::new("Mul", &["w", "w"], &["square"], vec![]),
        NodeProto::new("Shape", &["c"], &["s"], vec![]),
        NodeProto::new("Add", &["s", "s"], &["t"], vec![]),
    ];
    let cost = cost(&convolution(nodes, false));
    assert!(cost.nodes[1..].iter().all(|node| node.flops == Some(0) && node.bytes == Some(0)), "{:?}", cost.nodes);
}

#[test]
fn what_is_not_known_is_not_zero() {
    let custom = NodeProto { domain: "mine".into(), ..NodeProto::new("Magic", &["c"], &["y"], vec![]) };
    let after = NodeProto::new("Relu", &["y"], &["z"], vec![]);
    let cost = cost(&convolution(vec![custom, after], false));
    let unknown: Vec<&str> = cost.unknown().map(|node| node.op.as_str()).collect();
    assert_eq!(unknown, ["Magic", "Relu"]);
}

#[test]
fn only_what_is_fed_by_quantisers_on_both_sides_is_covered() {
    let quantised = |weights: bool| {
        let zero =
            |name: &str| TensorProto { data_type: 3, raw_data: vec![0].into(), ..TensorProto::floats(name, &[], &[]) };
        let bytes = TensorProto {
            data_type: 3,
            raw_data: vec![0; 432].into(),
            ..TensorProto::floats("wq", &[16, 3, 3, 3], &[])
        };
        let factor = if weights { "wd" } else { "w" };
        GraphProto {
            node: vec![
                NodeProto::new("QuantizeLinear", &["x", "scale", "zero"], &["xq"], vec![]),
                NodeProto::new("DequantizeLinear", &["xq", "scale", "zero"], &["xd"], vec![]),
                NodeProto::new("DequantizeLinear", &["wq", "scale", "zero"], &["wd"], vec![]),
                NodeProto::new("Conv", &["xd", factor], &["c"], vec![]),
                NodeProto::new("Conv", &["c", "v"], &["y"], vec![]),
            ],
            initializer: vec![
                bytes,
                zero("zero"),
                TensorProto::floats("scale", &[], &[0.5]),
                TensorProto::floats("w", &[16, 3, 3, 3], &[0.0; 432]),
                TensorProto::floats("v", &[1, 16, 1, 1], &[0.0; 16]),
            ],
            input: vec![ValueInfo::floats("x", &[1, 3, 8, 8])],
            ..GraphProto::default()
        }
    };
    let whole = cost(&quantised(true));
    let coverage = whole.coverage();
    assert_eq!((coverage.nodes, coverage.of_nodes), (1, 2));
    assert_eq!((coverage.flops, coverage.of_flops), (2 * 27 * 576, 2 * 27 * 576 + 2 * 16 * 36));
    // Bytes as they are stored, where a backend keeps them so.
    assert_eq!(whole.layers[3], LayerCost { flops: 2 * 27 * 576, weight_bytes: 432, activation_bytes: 192 + 576 });
    assert_eq!(cost(&quantised(false)).coverage().nodes, 0);
}
