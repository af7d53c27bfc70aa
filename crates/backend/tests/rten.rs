//! Attributes that a file leaves to their defaults, on the embedded engine: the same outputs as with them written out.
#![expect(clippy::unwrap_used, reason = "tests")]

use prony_backend::conformance::model_file;
use prony_backend::{SessionSpec, SlotInput, backend};
use prony_model::ModelFile;
use prony_model::onnx::{AttributeProto, GraphProto, ModelProto, NodeProto, StringEntry, TensorProto, ValueInfo};
use prony_types::{BackendName, Precision, SceneKind, TensorData};
use prost::Message as _;

/// The outputs of a model for one input that is the same every time, as bits; or why there are none.
fn outputs(model: &ModelFile) -> Result<Vec<Vec<u32>>, String> {
    let spec = SessionSpec { precision: Precision::Native, ..SessionSpec::new(model) };
    let mut session = backend(BackendName::Rten).open(&spec).map_err(|e| e.to_string())?;
    for index in 0..session.inputs().len() {
        let SlotInput::F32(data) = session.input(0, index) else { panic!("not a float") };
        data.iter_mut().enumerate().for_each(|(i, x)| *x = ((i * 37 + index * 11) % 101) as f32 / 101.0);
    }
    session.run(0).map_err(|e| e.to_string())?;
    let bits = |index| match session.output(0, index).data {
        TensorData::F32(data) => data.iter().map(|x| x.to_bits()).collect(),
        TensorData::I32(data) => data.iter().map(|x| x.cast_unsigned()).collect(),
        _ => panic!("another type"),
    };
    Ok((0..session.output_count()).map(bits).collect())
}

fn computed(model: &ModelProto) -> Result<Vec<Vec<u32>>, String> {
    outputs(&model_file(model).map_err(|e| e.to_string())?)
}

#[track_caller]
fn refused(model: &ModelProto, words: &str) {
    let error = computed(model).unwrap_err();
    assert!(error.contains(words), "{error}");
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto::ints(name, values)
}

fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { name: name.into(), s: value.to_owned().into(), kind: 3, ..AttributeProto::default() }
}

fn weight(name: &str, dims: &[i64]) -> TensorProto {
    let count = dims.iter().product::<i64>();
    let values: Vec<f32> = (0..count).map(|i| ((i * 29) % 23) as f32 / 23.0 - 0.5).collect();
    TensorProto::floats(name, dims, &values)
}

/// A model with the input `x` and the output `y`.
fn model(nodes: Vec<NodeProto>, weights: Vec<TensorProto>, x: &[i64], y: &[i64]) -> ModelProto {
    let graph = GraphProto {
        node: nodes,
        name: "g".into(),
        initializer: weights,
        input: vec![ValueInfo::floats("x", x)],
        output: vec![ValueInfo::floats("y", y)],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[])
}

/// One node over `x` and a weight.
fn over_weight(op: &str, weight_dims: &[i64], x: &[i64], y: &[i64], attributes: Vec<AttributeProto>) -> ModelProto {
    model(vec![NodeProto::new(op, &["x", "w"], &["y"], attributes)], vec![weight("w", weight_dims)], x, y)
}

/// Without the attributes that say what the specification says anyway.
fn stripped(mut file: ModelProto) -> (ModelProto, usize) {
    let mut gone = 0;
    for node in &mut file.graph.as_mut().unwrap().node {
        let is_pool = node.op_type.ends_with("Pool");
        let is_window = is_pool || node.op_type.starts_with("Conv");
        let before = node.attribute.len();
        node.attribute.retain(|attribute| match attribute.name.as_str() {
            _ if !is_window => true,
            "kernel_shape" => is_pool,
            "strides" | "dilations" => attribute.ints.iter().any(|&value| value != 1),
            "pads" => attribute.ints.iter().any(|&value| value != 0),
            "group" => attribute.i != 1,
            _ => true,
        });
        gone += before - node.attribute.len();
    }
    (file, gone)
}

#[test]
fn detectors_without_kernel_shape_failed() {
    for kind in [SceneKind::Rgb, SceneKind::Thermal] {
        let whole = ModelFile::builtin(kind).unwrap();
        let (bare, gone) = stripped(ModelProto::decode(whole.bytes.clone()).unwrap());
        assert!(gone > 50, "{gone} attributes removed");
        assert!(computed(&bare).unwrap() == outputs(&whole).unwrap(), "{kind}");
    }
}

#[test]
fn convolutions_and_pools_without_attributes_failed() {
    let (square, line) = ([1, 4, 6, 6], [1, 4, 9]);
    let written = |axes: usize| {
        let kernel = ints("kernel_shape", &vec![3; axes]);
        vec![
            kernel,
            ints("strides", &vec![1; axes]),
            ints("dilations", &vec![1; axes]),
            ints("pads", &vec![0; 2 * axes]),
        ]
    };
    let cases = [
        ("Conv", &[5, 4, 3, 3][..], &square[..], &[1, 5, 4, 4][..]),
        ("Conv", &[5, 4, 3], &line, &[1, 5, 7]),
        ("ConvTranspose", &[4, 5, 3, 3], &square, &[1, 5, 8, 8]),
        ("ConvTranspose", &[4, 5, 3], &line, &[1, 5, 11]),
    ];
    for (op, weight, x, y) in cases {
        let whole = computed(&over_weight(op, weight, x, y, written(x.len() - 2))).unwrap();
        let bare = |attributes| computed(&over_weight(op, weight, x, y, attributes));
        assert_eq!(bare(vec![]).unwrap(), whole, "{op} {weight:?}");
        let empty = vec![ints("strides", &[]), ints("dilations", &[]), ints("pads", &[])];
        assert_eq!(bare(empty).unwrap(), whole, "{op} {weight:?} with empty lists");
    }
    for op in ["MaxPool", "AveragePool"] {
        for (x, y, kernel) in [(&square[..], &[1, 4, 5, 4][..], &[2, 3][..]), (&line, &[1, 4, 8], &[2])] {
            let pool =
                |attributes| computed(&model(vec![NodeProto::new(op, &["x"], &["y"], attributes)], vec![], x, y));
            let kernel_shape = ints("kernel_shape", kernel);
            let whole = pool(vec![kernel_shape.clone(), ints("strides", &vec![1; kernel.len()])]).unwrap();
            assert_eq!(pool(vec![kernel_shape]).unwrap(), whole, "{op} {kernel:?}");
        }
    }
}

#[test]
fn a_weight_that_is_no_initializer_has_a_shape() {
    let (x, y) = ([1, 4, 6, 6], [1, 5, 4, 4]);
    let whole = computed(&over_weight("Conv", &[5, 4, 3, 3], &x, &y, vec![ints("kernel_shape", &[3, 3])])).unwrap();
    let conv = || NodeProto::new("Conv", &["x", "w"], &["y"], vec![]);

    let value =
        AttributeProto { name: "value".into(), t: Some(weight("", &[5, 4, 3, 3])), kind: 4, ..Default::default() };
    let constant = NodeProto::new("Constant", &[], &["w"], vec![value]);
    assert_eq!(computed(&model(vec![constant, conv()], vec![], &x, &y)).unwrap(), whole);

    let reshape = NodeProto::new("Reshape", &["flat", "dims"], &["w"], vec![]);
    let weights = vec![weight("flat", &[180]), TensorProto::ints("dims", &[5, 4, 3, 3])];
    assert_eq!(computed(&model(vec![reshape, conv()], weights, &x, &y)).unwrap(), whole);

    // Inside a branch, the weight is that of the graph around it.
    let branch = |name: &str| {
        let graph = GraphProto {
            node: vec![NodeProto::new("Conv", &["x", "w"], &["inner"], vec![])],
            name: name.into(),
            output: vec![ValueInfo::floats("inner", &y)],
            ..GraphProto::default()
        };
        AttributeProto { name: name.into(), g: Some(graph), kind: 5, ..AttributeProto::default() }
    };
    let branches = vec![branch("then_branch"), branch("else_branch")];
    let nodes = vec![NodeProto::new("If", &["yes"], &["y"], branches)];
    let yes = TensorProto { name: "yes".into(), data_type: 9, raw_data: vec![1].into(), ..TensorProto::default() };
    assert_eq!(computed(&model(nodes, vec![weight("w", &[5, 4, 3, 3]), yes], &x, &y)).unwrap(), whole);
}

#[test]
fn weights_beside_a_bare_graph_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (x, y) = ([1, 4, 6, 6], [1, 5, 4, 4]);
    let mut file = over_weight("Conv", &[5, 4, 3, 3], &x, &y, vec![]);
    let whole = computed(&over_weight("Conv", &[5, 4, 3, 3], &x, &y, vec![ints("kernel_shape", &[3, 3])])).unwrap();
    let tensor = &mut file.graph.as_mut().unwrap().initializer[0];
    std::fs::write(folder.path().join("w.data"), std::mem::take(&mut tensor.raw_data)).unwrap();
    tensor.data_location = 1;
    let mut written = |location: &str| {
        let tensor = &mut file.graph.as_mut().unwrap().initializer[0];
        let entry = |key: &str, value: &str| StringEntry { key: key.into(), value: value.into() };
        tensor.external_data = vec![entry("location", location), entry("offset", "0"), entry("length", "720")];
        let path = folder.path().join("m.onnx");
        std::fs::write(&path, file.encode_to_vec()).unwrap();
        let mut read = ModelFile::read(&path).unwrap();
        read.forget_bytes_on_disk();
        read
    };
    assert_eq!(outputs(&written("w.data")).unwrap(), whole);
    for outside in ["../w.data", "/etc/passwd", "gone.data"] {
        let error = outputs(&written(outside)).unwrap_err();
        assert!(error.contains(outside), "{error}");
    }
}

#[test]
fn older_softmax_was_over_the_last_axis() {
    for (op, opset, x, attributes, like) in [
        ("Softmax", 11, &[2, 3, 4][..], vec![], 12),
        ("LogSoftmax", 11, &[2, 3, 4], vec![], 12),
        ("Softmax", 12, &[2, 3, 4], vec![AttributeProto::int("axis", 0)], 24),
        ("Softmax", 12, &[2, 3, 4], vec![AttributeProto::int("axis", 2)], 4),
        ("Softmax", 13, &[2, 3, 4], vec![], 4),
        ("Softmax", 9, &[2, 12], vec![], 12),
    ] {
        let mut file = model(vec![NodeProto::new(op, &["x"], &["y"], attributes)], vec![], x, x);
        file.opset_import[0].version = opset;
        let values: Vec<f32> = computed(&file).unwrap()[0].iter().map(|&bits| f32::from_bits(bits)).collect();
        assert_eq!(values.len(), 24);
        for group in values.chunks(like) {
            let sum: f32 = group.iter().map(|x| if op == "Softmax" { *x } else { x.exp() }).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{op} {opset} {x:?}: {group:?} sums to {sum}");
        }
    }
}

#[test]
fn scales_along_the_channels_were_taken_along_the_width() {
    let (x, y) = ([1, 3, 2, 3], [1, 3, 2, 3]);
    let scales = || TensorProto::floats("w", &[3], &[0.01, 0.02, 0.04]);
    let quantize = |attributes| {
        let nodes = vec![
            NodeProto::new("QuantizeLinear", &["x", "w", "zero"], &["q"], attributes),
            NodeProto::new("DequantizeLinear", &["q", "w", "zero"], &["y"], vec![AttributeProto::int("axis", 1)]),
        ];
        let zero = TensorProto { name: "zero".into(), dims: vec![3], data_type: 2, ..TensorProto::default() };
        let zero = TensorProto { raw_data: vec![0; 3].into(), ..zero };
        computed(&model(nodes, vec![scales(), zero], &x, &y)).unwrap()
    };
    assert_eq!(quantize(vec![]), quantize(vec![AttributeProto::int("axis", 1)]));
}

#[test]
fn what_cannot_be_computed_is_refused_by_name() {
    let space = [1, 4, 6, 6, 6];
    refused(
        &over_weight("Conv", &[5, 4, 3, 3, 3], &space, &[1, 5, 4, 4, 4], vec![]),
        "Conv y: it has 3 spatial axes, and rten computes over 1 or 2; use ort-cpu",
    );
    let pool = |attributes: Vec<AttributeProto>, x: &[i64]| {
        model(vec![NodeProto::new("MaxPool", &["x"], &["y"], attributes)], vec![], x, x)
    };
    refused(&pool(vec![ints("kernel_shape", &[2, 2, 2])], &space), "MaxPool y: it has 3 spatial axes");
    refused(&pool(vec![], &[1, 4, 6, 6]), "MaxPool y: it has no kernel_shape");
    let (x, y) = ([1, 4, 6, 6], [1, 5, 4, 4]);
    let conv = |attributes| over_weight("Conv", &[5, 4, 3, 3], &x, &y, attributes);
    refused(&conv(vec![ints("kernel_shape", &[2, 2])]), "its kernel_shape is [2, 2], and its weight has [3, 3]");
    refused(&over_weight("Conv", &[5, 4], &x, &y, vec![]), "which has no spatial axes");
    let lower = || text("auto_pad", "SAME_LOWER");
    refused(&conv(vec![lower(), ints("strides", &[2, 2])]), "rten computes as SAME_UPPER");
    // Nothing odd is left over: both are the same.
    let same = |attributes| computed(&over_weight("Conv", &[5, 4, 3, 3], &x, &[1, 5, 6, 6], attributes)).unwrap();
    assert_eq!(same(vec![lower()]), same(vec![ints("kernel_shape", &[3, 3]), ints("pads", &[1, 1, 1, 1])]));

    // A weight that is only known when the model runs, over an input of which nothing is known either.
    let unknown = |attributes| {
        let nodes = vec![
            NodeProto::new("Unheard", &["x"], &["w"], vec![]),
            NodeProto::new("Unheard", &["x"], &["z"], vec![]),
            NodeProto::new("Conv", &["z", "w"], &["y"], attributes),
        ];
        model(nodes, vec![], &x, &[-1, 5, 4, 4])
    };
    refused(&unknown(vec![]), "Conv y: it has no kernel_shape, and the shape of its weight w is not known");
}

#[test]
fn a_file_that_took_the_place_of_the_hashed_one_was_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    std::fs::write(&path, prony_model::builtin(SceneKind::Rgb)).unwrap();
    let mut model = ModelFile::read(&path).unwrap();
    model.forget_bytes_on_disk();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, b"something else").unwrap();
    let session = backend(BackendName::Rten).open(&SessionSpec::new(&model)).unwrap();
    assert_eq!(session.inputs()[0].shape, [1, 3, 320, 320]);
}
