use std::fs;

use prony_model::onnx::{AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfo, dtype};
use prony_types::{CalibrationMethod, CalibrationSpec, QuantiseFor, SceneKind, SourceSpec};

use super::*;

fn spec(target: QuantiseFor) -> QuantiseSpec {
    let calibration =
        CalibrationSpec { method: CalibrationMethod::Mse, source: SourceSpec::Scenes, frames: 2, seed: 5 };
    QuantiseSpec { calibration, per_channel: true, exclude: Vec::new(), target }
}

fn run(model: &ModelFile, spec: &QuantiseSpec, site: &Site<'_>) -> Result<Quantised, ForgeError> {
    quantise(model, &ModelSource::Builtin(SceneKind::Rgb), spec, site, &mut |_| {}, &|| Ok(()))
}

#[test]
fn a_built_in_detector_is_quantised_for_every_target() {
    let model = ModelFile::builtin(SceneKind::Rgb).unwrap();
    for (target, layers) in [(QuantiseFor::Tensorrt, 41), (QuantiseFor::Any, 28), (QuantiseFor::Onnxruntime, 41)] {
        let made = run(&model, &spec(target), &Site::default()).unwrap();
        let report = &made.report;
        assert_eq!((report.layers.len(), report.layers.len() + report.float.len()), (layers, 72), "{target}");
        assert!(report.layers.iter().all(|layer| layer.weight_sqnr_db.is_some_and(|db| db > 25.0)), "{target}");
        assert!(report.layers.iter().all(|layer| layer.output_sqnr_db.is_some_and(|db| db > 5.0)), "{target}");
        let file = ModelProto::decode(made.bytes.as_slice()).unwrap();
        let graph = file.graph.unwrap();
        let constants: BTreeMap<&str, &TensorProto> = graph.initializer.iter().map(|t| (t.name.as_str(), t)).collect();
        let quantisers = graph
            .node
            .iter()
            .filter(|node| node.op_type.ends_with("quantizeLinear") || node.op_type == "QuantizeLinear");
        let mut count = 0;
        for node in quantisers {
            count += 1;
            let scales = constants[node.input[1].as_str()].to_f32s().unwrap();
            assert!(scales.iter().all(|scale| scale.is_normal() && *scale > 0.0), "{}", node.name);
            let zero = constants[node.input[2].as_str()];
            let signed = zero.data_type == dtype::INT8 && zero.raw_data.iter().all(|&byte| byte == 0);
            let unsigned = zero.data_type == dtype::UINT8 && zero.raw_data.as_ref() == [128];
            assert!(if target == QuantiseFor::Onnxruntime { signed || unsigned } else { signed }, "{}", node.name);
        }
        assert!(count > 80, "{count}");
        // What it was is still there, and what became of it.
        let facts: BTreeMap<&str, &str> =
            file.metadata_props.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect();
        assert!(facts["names"].contains("red-ball") && facts[FACT].starts_with("int8, mse of 2 frames"), "{facts:?}");
        let again = ModelFile::from_bytes("m", made.bytes.clone().into()).unwrap();
        assert_eq!(precision_of(&again.info), Precision::Int8);
    }
}

#[test]
fn magnitudes_are_kept_for_another_method_and_not_believed_when_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let model = small();
    let site = Site { cache: Some(folder.path()), ..Site::default() };
    let first = run(&model, &spec(QuantiseFor::Any), &site).unwrap();
    assert!(!first.report.ranges_from_cache);
    let second = run(&model, &spec(QuantiseFor::Any), &site).unwrap();
    assert!(second.report.ranges_from_cache);
    assert_eq!(first.bytes, second.bytes);
    let mut other = spec(QuantiseFor::Any);
    other.calibration.method = CalibrationMethod::MinMax;
    let third = run(&model, &other, &site).unwrap();
    assert!(third.report.ranges_from_cache && third.bytes != first.bytes);
    // Fewer layers need no new run either; other data do.
    other.exclude = vec!["c1".to_owned()];
    assert!(run(&model, &other, &site).unwrap().report.ranges_from_cache);
    other.calibration.seed += 1;
    assert!(!run(&model, &other, &site).unwrap().report.ranges_from_cache);
    for file in fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let again = run(&model, &spec(QuantiseFor::Any), &site).unwrap();
    assert!(!again.report.ranges_from_cache && again.bytes == first.bytes);
}

/// What the embedded engine wants to be told.
fn conv() -> Vec<AttributeProto> {
    let of = |name: &str, values: &[i64]| AttributeProto::ints(name, values);
    vec![of("strides", &[1, 1]), of("dilations", &[1, 1]), of("pads", &[0, 0, 0, 0])]
}

/// Two layers and a head.
fn small() -> ModelFile {
    let weight = |name: &str, inputs: i64| {
        let count = 8 * inputs * 9;
        let values: Vec<f32> = (0..count).map(|i| ((i * 31 % 17) as f32 - 8.0) * 0.02).collect();
        TensorProto::floats(name, &[8, inputs, 3, 3], &values)
    };
    let graph = GraphProto {
        input: vec![ValueInfo::floats("x", &[1, 3, 32, 32])],
        output: vec![ValueInfo::floats("y", &[1, 8, 26, 26])],
        initializer: vec![weight("w1", 3), weight("w2", 8), weight("w3", 8)],
        node: vec![
            NodeProto::new("Conv", &["x", "w1"], &["c1"], conv()),
            NodeProto::new("Relu", &["c1"], &["r1"], vec![]),
            NodeProto::new("Conv", &["r1", "w2"], &["c2"], conv()),
            NodeProto::new("Relu", &["c2"], &["r2"], vec![]),
            NodeProto::new("Conv", &["r2", "w3"], &["y"], conv()),
        ],
        ..GraphProto::default()
    };
    ModelFile::from_bytes("m", ModelProto::new(graph, &[]).encode_to_vec().into()).unwrap()
}

#[test]
fn the_dearest_layer_comes_first() {
    let model = small();
    let source = ModelSource::Builtin(SceneKind::Rgb);
    let losses =
        sensitivity(&model, &source, &spec(QuantiseFor::Any), &Site::default(), &mut |_| {}, &|| Ok(())).unwrap();
    assert_eq!(losses.len(), 2);
    let db: Vec<f64> = losses.iter().map(|loss| loss.sqnr_db.unwrap()).collect();
    assert!(db[0] <= db[1] && db[1] < 60.0, "{losses:?}");
}

#[test]
fn what_cannot_be_quantised_is_refused_with_the_reason() {
    let refused = |model: &ModelFile| run(model, &spec(QuantiseFor::Any), &Site::default()).unwrap_err().to_string();
    let once = run(&small(), &spec(QuantiseFor::Any), &Site::default()).unwrap();
    let twice = ModelFile::from_bytes("m", once.bytes.into()).unwrap();
    assert_eq!(refused(&twice), "it is quantised already, to int8; give the fp32 model");
    let mut external = ModelProto::decode(small().bytes).unwrap();
    external.graph.as_mut().unwrap().initializer[0].data_location = 1;
    let external = ModelFile::from_bytes("m", external.encode_to_vec().into()).unwrap();
    assert!(refused(&external).contains("save it as one file"), "{}", refused(&external));
    let mut plain = ModelProto::decode(small().bytes).unwrap();
    let graph = plain.graph.as_mut().unwrap();
    graph.node = vec![NodeProto::new("Relu", &["x"], &["y"], vec![])];
    graph.initializer.clear();
    let plain = ModelFile::from_bytes("m", plain.encode_to_vec().into()).unwrap();
    assert!(refused(&plain).contains("no convolution and no matrix product"), "{}", refused(&plain));
}
