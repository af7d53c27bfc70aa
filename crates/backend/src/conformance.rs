//! What every backend must do, as checks that any backend can be put through. `tests/conformance.rs` runs them all
//! on every backend that is there.

use half::f16;
use prony_model::onnx::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo, dtype};
use prony_model::{ModelError, ModelFile, sha256_hex};
use prony_types::{ModelInfo, Precision, RuntimeSpec, SceneKind, TensorData};
use prost::Message as _;

use crate::{Backend, BackendError, Session, SessionSpec, SlotInput};

/// A backend with the library it is to use.
pub struct Subject {
    /// The backend.
    pub backend: Box<dyn Backend>,
    /// Its library; `None` for the embedded engine.
    pub runtime: Option<RuntimeSpec>,
}

impl Subject {
    fn spec<'a>(&self, model: &'a ModelFile) -> SessionSpec<'a> {
        SessionSpec { runtime: self.runtime.clone(), ..SessionSpec::new(model) }
    }
}

/// Why a check does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// The model of the check cannot be written.
    #[error("{0}")]
    File(std::io::Error),
    /// It cannot be read either.
    #[error("{0}")]
    Model(ModelError),
    /// The backend failed.
    #[error("{0}")]
    Backend(BackendError),
    /// The backend did something else than it must.
    #[error("{0}")]
    Wrong(String),
}

/// A check: its name and what it does. The error says what was wrong.
pub type Check = (&'static str, fn(&Subject) -> Result<(), Broken>);

/// All checks.
pub const CHECKS: &[Check] = &[
    ("identity gives back the input to the bit", identity),
    ("a convolution is computed right", convolution),
    ("a kernel's shape is taken from its weights where the file leaves it out", bare_convolution),
    ("several inputs and outputs keep their order", several),
    ("a free batch axis takes any batch", free_batch),
    ("a fixed batch axis refuses another batch", fixed_batch),
    ("the same input gives the same output", repeatable),
    ("calls in flight do not mix their slots", slots_apart),
    ("an input stays as it was written", inputs_stay),
    ("outputs stay until the slot's next call", outputs_stay),
    ("an output that is a slice of something larger is whole", sliced_output),
    ("integer inputs and outputs keep their values", integers),
    ("half-precision inputs and outputs keep their values", halves),
    ("an input that nothing uses is still an input", unused_input),
    ("a precision that is not supported is not opened", unsupported_precision),
    ("a device that is not there is refused", no_such_device),
    ("an operator that does not exist is an error", unknown_operator),
    ("the built-in detectors run", builtin_models),
    ("the record names library, version and threads", record),
];

/// A model file around a graph, as if it had been read.
pub fn model_file(proto: &ModelProto) -> Result<ModelFile, Broken> {
    let bytes = proto.encode_to_vec();
    let path = std::env::temp_dir().join(format!("prony-conformance-{}.onnx", sha256_hex(&bytes)));
    std::fs::write(&path, &bytes).map_err(Broken::File)?;
    let read = ModelFile::read(&path).map_err(Broken::Model);
    let _ = std::fs::remove_file(&path);
    // Without the path: the bytes are all there is.
    read.map(|file| ModelFile { path: None, descriptor: None, bytes: bytes.into(), ..file })
}

fn graph(
    node: Vec<NodeProto>,
    initializer: Vec<TensorProto>,
    input: Vec<ValueInfo>,
    output: Vec<ValueInfo>,
) -> ModelProto {
    ModelProto::new(GraphProto { node, name: "check".into(), initializer, input, output, ..GraphProto::default() }, &[])
}

fn identity_model(batch: i64) -> ModelProto {
    graph(
        vec![NodeProto::new("Identity", &["x"], &["y"], vec![])],
        vec![],
        vec![ValueInfo::floats("x", &[batch, 3, 4, 4])],
        vec![ValueInfo::floats("y", &[batch, 3, 4, 4])],
    )
}

fn open(subject: &Subject, model: &ModelFile, batch: u32) -> Result<Box<dyn Session>, Broken> {
    let spec = SessionSpec { batch, slots: 2, ..subject.spec(model) };
    subject.backend.open(&spec).map_err(Broken::Backend)
}

fn fill(session: &mut dyn Session, slot: usize, index: usize, value: impl Fn(usize) -> f32) -> Result<(), Broken> {
    match session.input(slot, index) {
        SlotInput::F32(data) => data.iter_mut().enumerate().for_each(|(i, x)| *x = value(i)),
        other => return Err(Broken::Wrong(format!("an f32 input has another buffer: {other:?}"))),
    }
    Ok(())
}

fn output(session: &dyn Session, slot: usize, index: usize) -> Result<Vec<f32>, Broken> {
    let view = session.output(slot, index);
    let elements: usize = view.shape.iter().product();
    match view.data {
        TensorData::F32(data) if data.len() == elements => Ok(data.to_vec()),
        TensorData::F32(data) => {
            Err(Broken::Wrong(format!("output {} has {} values for {:?}", view.name, data.len(), view.shape)))
        }
        _ => Err(Broken::Wrong(format!("output {} is not f32", view.name))),
    }
}

fn run(session: &mut dyn Session, slot: usize) -> Result<(), Broken> {
    session.run(slot).map(|_| ()).map_err(Broken::Backend)
}

fn expect(what: &str, got: &[f32], want: &[f32]) -> Result<(), Broken> {
    let same = got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0));
    if same { Ok(()) } else { Err(Broken::Wrong(format!("{what}: {got:?} instead of {want:?}"))) }
}

/// Values of every magnitude and sign, none of them special.
fn pattern(seed: u32) -> impl Fn(usize) -> f32 {
    move |i| {
        let x = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(40_503));
        (x >> 8) as f32 / 65_536.0 - 128.0
    }
}

fn identity(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&identity_model(1))?;
    let mut session = open(subject, &model, 1)?;
    let value = pattern(1);
    fill(&mut *session, 0, 0, &value)?;
    run(&mut *session, 0)?;
    let want: Vec<f32> = (0..48).map(value).collect();
    let got = output(&*session, 0, 0)?;
    let bits = |data: &[f32]| data.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    if bits(&got) == bits(&want) { Ok(()) } else { Err(Broken::Wrong(format!("{got:?} instead of {want:?}"))) }
}

fn convolution(subject: &Subject) -> Result<(), Broken> {
    let pads = AttributeProto::ints("pads", &[1, 1, 1, 1]);
    convolve(subject, vec![AttributeProto::ints("kernel_shape", &[3, 3]), pads])
}

fn bare_convolution(subject: &Subject) -> Result<(), Broken> {
    convolve(subject, vec![AttributeProto::ints("pads", &[1, 1, 1, 1])])
}

fn convolve(subject: &Subject, attributes: Vec<AttributeProto>) -> Result<(), Broken> {
    let weights: Vec<f32> = (0..9).map(|i| i as f32).collect();
    let model = model_file(&graph(
        vec![
            NodeProto::new("Conv", &["x", "w", "b"], &["c"], attributes),
            NodeProto::new("Relu", &["c"], &["y"], vec![]),
        ],
        vec![TensorProto::floats("w", &[1, 1, 3, 3], &weights), TensorProto::floats("b", &[1], &[-100.0])],
        vec![ValueInfo::floats("x", &[1, 1, 3, 3])],
        vec![ValueInfo::floats("y", &[1, 1, 3, 3])],
    ))?;
    let mut session = open(subject, &model, 1)?;
    fill(&mut *session, 0, 0, |i| (i + 1) as f32)?;
    run(&mut *session, 0)?;
    expect("conv", &output(&*session, 0, 0)?, &convolved())
}

/// 1..9 against 0..8 with zero padding, minus 100, clamped at 0: the same by a plain loop.
fn convolved() -> Vec<f32> {
    let x = |r: i32, c: i32| if (0..3).contains(&r) && (0..3).contains(&c) { (r * 3 + c + 1) as f32 } else { 0.0 };
    let mut out = Vec::new();
    for r in 0..3 {
        for c in 0..3 {
            let mut sum = -100.0;
            for dr in 0..3 {
                for dc in 0..3 {
                    sum += x(r + dr - 1, c + dc - 1) * (dr * 3 + dc) as f32;
                }
            }
            out.push(f32::max(sum, 0.0));
        }
    }
    out
}

fn several(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&graph(
        vec![NodeProto::new("Sub", &["a", "b"], &["d"], vec![]), NodeProto::new("Add", &["a", "b"], &["s"], vec![])],
        vec![],
        vec![ValueInfo::floats("a", &[1, 2]), ValueInfo::floats("b", &[1, 2])],
        vec![ValueInfo::floats("s", &[1, 2]), ValueInfo::floats("d", &[1, 2])],
    ))?;
    let mut session = open(subject, &model, 1)?;
    fill(&mut *session, 0, 0, |i| 10.0 + i as f32)?;
    fill(&mut *session, 0, 1, |_| 1.0)?;
    run(&mut *session, 0)?;
    if session.output_count() != 2 || session.output(0, 0).name != "s" {
        return Err(Broken::Wrong("outputs are not in the order of the file".to_owned()));
    }
    expect("sum", &output(&*session, 0, 0)?, &[11.0, 12.0])?;
    expect("difference", &output(&*session, 0, 1)?, &[9.0, 10.0])
}

fn free_batch(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&identity_model(-1))?;
    for batch in [1, 3] {
        let mut session = open(subject, &model, batch)?;
        fill(&mut *session, 0, 0, pattern(2))?;
        run(&mut *session, 0)?;
        let got = session.output(0, 0).shape.to_vec();
        if got != [batch as usize, 3, 4, 4] {
            return Err(Broken::Wrong(format!("batch {batch} gave {got:?}")));
        }
    }
    Ok(())
}

fn fixed_batch(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&identity_model(1))?;
    match open(subject, &model, 2) {
        Err(error) if error.to_string().contains("batch 2") => Ok(()),
        Err(error) => Err(Broken::Wrong(format!("the error does not name the batch: {error}"))),
        Ok(_) => Err(Broken::Wrong("batch 2 was taken by a model fixed at 1".to_owned())),
    }
}

fn detector(subject: &Subject, kind: SceneKind) -> Result<(Box<dyn Session>, ModelInfo), Broken> {
    let model = ModelFile::builtin(kind).map_err(Broken::Model)?;
    let session = open(subject, &model, 1)?;
    Ok((session, model.info))
}

fn repeatable(subject: &Subject) -> Result<(), Broken> {
    let (mut session, _) = detector(subject, SceneKind::Rgb)?;
    let value = |i: usize| (pattern(3)(i) / 256.0) + 0.5;
    fill(&mut *session, 0, 0, value)?;
    run(&mut *session, 0)?;
    let first = output(&*session, 0, 0)?;
    run(&mut *session, 0)?;
    if first == output(&*session, 0, 0)? {
        Ok(())
    } else {
        Err(Broken::Wrong("two calls on one input differ".to_owned()))
    }
}

fn slots_apart(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&identity_model(1))?;
    let mut session = open(subject, &model, 1)?;
    if session.slots() != 2 {
        return Err(Broken::Wrong(format!("{} slots instead of 2", session.slots())));
    }
    for turn in 0..4u32 {
        fill(&mut *session, 0, 0, pattern(10 + turn))?;
        session.submit(0).map_err(Broken::Backend)?;
        fill(&mut *session, 1, 0, pattern(20 + turn))?;
        session.submit(1).map_err(Broken::Backend)?;
        session.collect(1).map_err(Broken::Backend)?;
        session.collect(0).map_err(Broken::Backend)?;
        expect("slot 0", &output(&*session, 0, 0)?, &(0..48).map(pattern(10 + turn)).collect::<Vec<_>>())?;
        expect("slot 1", &output(&*session, 1, 0)?, &(0..48).map(pattern(20 + turn)).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn inputs_stay(subject: &Subject) -> Result<(), Broken> {
    let (mut session, _) = detector(subject, SceneKind::Rgb)?;
    fill(&mut *session, 0, 0, pattern(6))?;
    run(&mut *session, 0)?;
    match session.input(0, 0) {
        SlotInput::F32(data) if data.iter().enumerate().all(|(i, &x)| x == pattern(6)(i)) => Ok(()),
        other => Err(Broken::Wrong(format!("the call wrote to its own input of {} values", other.len()))),
    }
}

fn outputs_stay(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&identity_model(1))?;
    let mut session = open(subject, &model, 1)?;
    fill(&mut *session, 0, 0, pattern(4))?;
    run(&mut *session, 0)?;
    fill(&mut *session, 0, 0, |_| 0.0)?;
    fill(&mut *session, 1, 0, pattern(5))?;
    run(&mut *session, 1)?;
    expect("slot 0", &output(&*session, 0, 0)?, &(0..48).map(pattern(4)).collect::<Vec<_>>())
}

fn sliced_output(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&graph(
        vec![
            NodeProto::new("Neg", &["x"], &["n"], vec![]),
            NodeProto::new("Slice", &["n", "from", "to", "axes"], &["y"], vec![]),
        ],
        vec![TensorProto::ints("from", &[0]), TensorProto::ints("to", &[2]), TensorProto::ints("axes", &[2])],
        vec![ValueInfo::floats("x", &[1, 3, 4, 4])],
        vec![ValueInfo::floats("y", &[1, 3, 2, 4])],
    ))?;
    let mut session = open(subject, &model, 1)?;
    fill(&mut *session, 0, 0, |i| i as f32)?;
    run(&mut *session, 0)?;
    let want: Vec<f32> = (0..48).filter(|i| i % 16 < 8).map(|i| -(i as f32)).collect();
    expect("slice", &output(&*session, 0, 0)?, &want)
}

/// ONNX's number for half precision.
const FLOAT16: i32 = 10;

/// A model that gives back its input, of any element type.
fn typed_identity(elem_type: i32) -> ModelProto {
    let typed = |name: &str| {
        let mut info = ValueInfo::floats(name, &[1, 6]);
        if let Some(tensor) = info.ty.as_mut().and_then(|ty| ty.tensor.as_mut()) {
            tensor.elem_type = elem_type;
        }
        info
    };
    graph(vec![NodeProto::new("Identity", &["x"], &["y"], vec![])], vec![], vec![typed("x")], vec![typed("y")])
}

fn integers(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&typed_identity(dtype::INT64))?;
    let mut session = open(subject, &model, 1)?;
    let value = |i: usize| 1000 * i as i32 - 2500;
    // A backend that computes in 32 bits says so by its buffer.
    match session.input(0, 0) {
        SlotInput::I64(data) => data.iter_mut().enumerate().for_each(|(i, x)| *x = i64::from(value(i))),
        SlotInput::I32(data) => data.iter_mut().enumerate().for_each(|(i, x)| *x = value(i)),
        other => return Err(Broken::Wrong(format!("an i64 input has another buffer: {other:?}"))),
    }
    run(&mut *session, 0)?;
    let view = session.output(0, 0);
    let same = match view.data {
        TensorData::I64(data) => data.iter().copied().eq((0..6).map(|i| i64::from(value(i)))),
        TensorData::I32(data) => data.iter().copied().eq((0..6).map(value)),
        TensorData::F32(_) => false,
    };
    if same && view.shape == [1, 6] {
        Ok(())
    } else {
        Err(Broken::Wrong(format!("{:?} of {:?}", view.data, view.shape)))
    }
}

fn halves(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&typed_identity(FLOAT16))?;
    let mut session = open(subject, &model, 1)?;
    let value = |i: usize| i as f32 * 0.375 - 1.0;
    match session.input(0, 0) {
        SlotInput::F16(data) => data.iter_mut().enumerate().for_each(|(i, x)| *x = f16::from_f32(value(i))),
        other => return Err(Broken::Wrong(format!("an f16 input has another buffer: {other:?}"))),
    }
    run(&mut *session, 0)?;
    expect("halves", &output(&*session, 0, 0)?, &(0..6).map(value).collect::<Vec<_>>())
}

fn unused_input(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&graph(
        vec![NodeProto::new("Neg", &["b"], &["y"], vec![])],
        vec![],
        vec![ValueInfo::floats("a", &[1, 2]), ValueInfo::floats("b", &[1, 2])],
        vec![ValueInfo::floats("y", &[1, 2])],
    ))?;
    let mut session = open(subject, &model, 1)?;
    fill(&mut *session, 0, 0, |_| 7.0)?;
    fill(&mut *session, 0, 1, |i| i as f32 + 1.0)?;
    run(&mut *session, 0)?;
    expect("negation of the second", &output(&*session, 0, 0)?, &[-1.0, -2.0])
}

fn unsupported_precision(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&identity_model(1))?;
    for &precision in Precision::ALL {
        let spec = SessionSpec { precision, ..subject.spec(&model) };
        let supported = subject.backend.supports(precision, &model.info, &spec.provider);
        if supported.is_err() && subject.backend.open(&spec).is_ok() {
            return Err(Broken::Wrong(format!("{precision} was opened although it is not supported")));
        }
    }
    Ok(())
}

fn no_such_device(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&identity_model(1))?;
    let spec = SessionSpec { device: 99, ..subject.spec(&model) };
    match subject.backend.open(&spec) {
        Err(error) if error.to_string().contains("99") => Ok(()),
        Err(error) => Err(Broken::Wrong(format!("the error does not name the device: {error}"))),
        Ok(_) => Err(Broken::Wrong("device 99 was opened".to_owned())),
    }
}

fn unknown_operator(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&graph(
        vec![NodeProto::new("FrobnicateTensor", &["x"], &["y"], vec![])],
        vec![],
        vec![ValueInfo::floats("x", &[1, 2])],
        vec![ValueInfo::floats("y", &[1, 2])],
    ))?;
    let mut session = match open(subject, &model, 1) {
        Ok(session) => session,
        Err(error) if error.to_string().contains("FrobnicateTensor") => return Ok(()),
        Err(error) => return Err(Broken::Wrong(format!("the error does not name the operator: {error}"))),
    };
    match session.run(0) {
        Err(_) => Ok(()),
        Ok(_) => Err(Broken::Wrong("an operator that does not exist was executed".to_owned())),
    }
}

fn builtin_models(subject: &Subject) -> Result<(), Broken> {
    for &kind in SceneKind::ALL {
        let (mut session, info) = detector(subject, kind)?;
        fill(&mut *session, 0, 0, |_| 0.5)?;
        run(&mut *session, 0)?;
        let shape = session.output(0, 0).shape.to_vec();
        if shape.len() != 3 || shape[1] != 4 + info.metadata.names.len() {
            return Err(Broken::Wrong(format!("builtin-{kind} gave {shape:?}")));
        }
        if !output(&*session, 0, 0)?.iter().all(|x| x.is_finite()) {
            return Err(Broken::Wrong(format!("builtin-{kind} gave values that are not finite")));
        }
    }
    Ok(())
}

fn record(subject: &Subject) -> Result<(), Broken> {
    let model = model_file(&identity_model(1))?;
    let session = open(subject, &model, 1)?;
    let record = session.record();
    if record.name != subject.backend.name().name() || record.version.is_none() || record.device.is_none() {
        return Err(Broken::Wrong(format!("incomplete: {record:?}")));
    }
    if session.executed().is_empty() {
        Err(Broken::Wrong("the executed precision is empty".to_owned()))
    } else {
        Ok(())
    }
}
