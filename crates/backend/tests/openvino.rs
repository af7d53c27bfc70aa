//! What only OpenVINO does: arithmetic by a hint, devices by name, shapes that depend on the values.

mod runtimes;

use prony_backend::conformance::{Subject, model_file};
use prony_backend::{SessionSpec, SlotInput};
use prony_model::ModelFile;
use prony_model::onnx::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo, dtype};
use prony_types::{BackendName, Precision, ProviderSpec, SceneKind, TensorData};

/// ONNX's number for truth values.
const BOOL: i32 = 9;

fn spec<'a>(subject: &Subject, model: &'a ModelFile) -> SessionSpec<'a> {
    SessionSpec { runtime: subject.runtime.clone(), ..SessionSpec::new(model) }
}

#[test]
fn the_executed_precision_is_the_one_asked_for_or_an_error_names_both() {
    let Some(subject) = runtimes::subject(BackendName::Openvino) else { return };
    let model = ModelFile::builtin(SceneKind::Rgb).unwrap();
    for (precision, hint) in [(Precision::Fp32, "f32"), (Precision::Bf16, "bf16"), (Precision::Fp16, "f16")] {
        match subject.backend.open(&SessionSpec { precision, ..spec(&subject, &model) }) {
            Ok(session) => {
                assert_eq!(session.executed(), precision.name());
                let settings = session.record().settings;
                assert!(settings.contains(&format!("precision {hint}")), "{settings:?}");
                assert!(settings.contains(&"hint LATENCY".to_owned()), "{settings:?}");
            }
            // Not every CPU has 16-bit arithmetic, but each has this.
            Err(error) => {
                assert_ne!(precision, Precision::Fp32, "{error}");
                assert!(error.to_string().contains(&format!("asked for {hint}, but")), "{error}");
            }
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_refused_with_those_that_are() {
    let Some(subject) = runtimes::subject(BackendName::Openvino) else { return };
    let model = ModelFile::builtin(SceneKind::Rgb).unwrap();
    let provider = ProviderSpec { openvino_device: Some("GPU.7".into()), ..ProviderSpec::default() };
    let error = subject.backend.open(&SessionSpec { provider, ..spec(&subject, &model) }).err().unwrap().to_string();
    assert!(error.contains("no device GPU.7") && error.contains("CPU"), "{error}");
}

#[test]
fn an_output_whose_shape_depends_on_the_values_is_measured_after_every_call() {
    let Some(subject) = runtimes::subject(BackendName::Openvino) else { return };
    let mut found = ValueInfo::floats("y", &[2, -1]);
    found.ty.as_mut().and_then(|ty| ty.tensor.as_mut()).unwrap().elem_type = dtype::INT64;
    let node = vec![NodeProto::new("NonZero", &["x"], &["y"], vec![])];
    let input = vec![ValueInfo::floats("x", &[1, 4])];
    let graph = GraphProto {
        node,
        name: "where".into(),
        initializer: vec![],
        input,
        output: vec![found],
        ..GraphProto::default()
    };
    let model = model_file(&ModelProto::new(graph, &[])).unwrap();
    let mut session = subject.backend.open(&spec(&subject, &model)).unwrap();
    for (values, columns) in [([0.0, 1.0, 0.0, 1.0], &[1i64, 3][..]), ([0.0; 4], &[]), ([1.0; 4], &[0, 1, 2, 3])] {
        let SlotInput::F32(data) = session.input(0, 0) else { panic!("the input is f32") };
        data.copy_from_slice(&values);
        session.run(0).unwrap();
        let view = session.output(0, 0);
        assert_eq!(view.shape, [2, columns.len()]);
        let TensorData::I64(data) = view.data else { panic!("the output is i64") };
        assert_eq!(&data[columns.len()..], columns);
    }
}

#[test]
fn truth_values_are_read_as_integers() {
    let Some(subject) = runtimes::subject(BackendName::Openvino) else { return };
    let mut truth = ValueInfo::floats("y", &[1, 3]);
    truth.ty.as_mut().and_then(|ty| ty.tensor.as_mut()).unwrap().elem_type = BOOL;
    let graph = GraphProto {
        node: vec![NodeProto::new("Greater", &["x", "zero"], &["y"], vec![])],
        name: "positive".into(),
        initializer: vec![TensorProto::floats("zero", &[1], &[0.0])],
        input: vec![ValueInfo::floats("x", &[1, 3])],
        output: vec![truth],
        ..GraphProto::default()
    };
    let model = model_file(&ModelProto::new(graph, &[])).unwrap();
    let mut session = subject.backend.open(&spec(&subject, &model)).unwrap();
    let SlotInput::F32(data) = session.input(0, 0) else { panic!("the input is f32") };
    data.copy_from_slice(&[-1.0, 2.0, 0.0]);
    session.run(0).unwrap();
    assert_eq!(session.output(0, 0).data, TensorData::I32(&[0, 1, 0]));
}

#[test]
fn collecting_what_was_not_submitted_is_an_error() {
    let Some(subject) = runtimes::subject(BackendName::Openvino) else { return };
    let model = ModelFile::builtin(SceneKind::Rgb).unwrap();
    let mut session = subject.backend.open(&spec(&subject, &model)).unwrap();
    let error = session.collect(0).unwrap_err().to_string();
    assert!(error.contains("no call is in flight"), "{error}");
}
