//! Intel's OpenVINO through its own C library: CPUs of any make, Intel's GPUs and NPUs.

mod device;
mod library;
mod session;
mod tensor;

use ::openvino::{Core, DeviceType, Model, PartialShape, RwPropertyKey};
use prony_types::{BackendName, Dim, ModelInfo, Precision, ProviderSpec, RuntimeName, RuntimeSpec, TensorSpec};

use crate::precision::as_it_is;
use crate::session::decide_inputs;
use crate::{Backend, BackendError, Session, SessionSpec, Unsupported, precision_of};

use device::CPU;
use session::OpenvinoSession;

const NAME: &str = "openvino";

/// The backend `openvino`.
pub(crate) struct Openvino;

impl Backend for Openvino {
    fn name(&self) -> BackendName {
        BackendName::Openvino
    }

    fn supports(&self, precision: Precision, model: &ModelInfo, _: &ProviderSpec) -> Result<(), Unsupported> {
        match precision {
            // By a hint, with no artifact; whether this CPU has it is proved when the model is compiled.
            Precision::Fp16 | Precision::Bf16 if precision_of(model) == Precision::Fp32 => Ok(()),
            Precision::Tf32 | Precision::Fp8 | Precision::Nvfp4 => {
                let instead = "it executes fp32, fp16, bf16 and int8".to_owned();
                Err(Unsupported::Arithmetic { backend: NAME, asked: precision, instead })
            }
            _ => match precision_of(model) {
                brings @ (Precision::Fp8 | Precision::Nvfp4) => {
                    Err(Unsupported::FileArithmetic { backend: NAME, brings })
                }
                _ => as_it_is(NAME, precision, model),
            },
        }
    }

    fn open(&self, spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError> {
        self.supports(spec.precision, &spec.model.info, &spec.provider).map_err(|e| unsupported(e.to_string()))?;
        let inputs = decide_inputs(spec)?;
        let runtime = spec.runtime.as_ref().ok_or_else(|| {
            unsupported(format!("no library was named; run `prony runtime install {}`", RuntimeName::Openvino))
        })?;
        let mut core = library::core(&runtime.library).map_err(unsupported)?;
        let device = device::resolve(&core, spec.provider.openvino_device.as_deref().unwrap_or(CPU), spec.device)
            .map_err(unsupported)?;
        Ok(Box::new(open_on(&mut core, &device, runtime, spec, inputs)?))
    }
}

fn open_on(
    core: &mut Core,
    device: &str,
    runtime: &RuntimeSpec,
    spec: &SessionSpec<'_>,
    inputs: Vec<TensorSpec>,
) -> Result<OpenvinoSession, BackendError> {
    let mut model = read(core, spec)?;
    let positions = positions(&model, &spec.model.info)?;
    reshape(&mut model, &spec.model.info, &inputs, &positions)?;
    let device_type = || DeviceType::from(device);
    for (key, value) in properties(device, spec) {
        core.set_property(&device_type(), &key, &value)
            .map_err(|e| unsupported(format!("{device} refuses {} = {value}: {}", key.as_ref(), words(&e))))?;
    }
    let compiled = core.compile_model(&model, device_type()).map_err(|e| load_error(&e))?;
    OpenvinoSession::new(compiled, device::in_words(core, device), runtime, spec, inputs, &positions)
}

fn read(core: &mut Core, spec: &SessionSpec<'_>) -> Result<Model, BackendError> {
    let Some(path) = &spec.model.load_path() else {
        return core.read_model_from_buffer(&spec.model.bytes, None).map_err(|e| load_error(&e));
    };
    // By path, so that weights in a separate file beside it are found.
    let text = path.to_str().ok_or_else(|| BackendError::Load {
        backend: NAME,
        reason: format!("{} is not UTF-8, which OpenVINO needs; rename it", path.display()),
    })?;
    core.read_model_from_file(text, "").map_err(|e| load_error(&e))
}

/// Where each input of the file is among those of OpenVINO, which leaves out what nothing uses. A port has any one of
/// its names (an `Identity` gives it the name of an output), so one that is not known goes by its position.
fn positions(model: &Model, info: &ModelInfo) -> Result<Vec<Option<usize>>, BackendError> {
    let load = |e| load_error(&e);
    let (inputs, outputs) = (model.get_inputs_len().map_err(load)?, model.get_outputs_len().map_err(load)?);
    let mut positions = vec![None; info.inputs.len()];
    for port in 0..inputs {
        let name = model.get_input_by_index(port).and_then(|node| node.get_name()).map_err(load)?;
        let known = info.inputs.iter().position(|input| input.name == name);
        let index = known.or_else(|| (inputs == info.inputs.len()).then_some(port));
        match index.and_then(|index| positions.get_mut(index)) {
            Some(position @ None) => *position = Some(port),
            _ => {
                let reason = format!("its input `{name}` is none of the file's");
                return Err(BackendError::Load { backend: NAME, reason });
            }
        }
    }
    if outputs != info.outputs.len() {
        let reason = format!("it sees {outputs} outputs where the file declares {}", info.outputs.len());
        return Err(BackendError::Load { backend: NAME, reason });
    }
    Ok(positions)
}

/// Decides the free axes.
fn reshape(
    model: &mut Model,
    info: &ModelInfo,
    inputs: &[TensorSpec],
    positions: &[Option<usize>],
) -> Result<(), BackendError> {
    let mut shapes = Vec::new();
    for (position, (input, declared)) in positions.iter().zip(inputs.iter().zip(&info.inputs)) {
        if let Some(port) = position
            && declared.dims.iter().any(|dim| matches!(dim, Dim::Named(_)))
        {
            let dims: Vec<i64> = input.shape.iter().map(|&n| n as i64).collect();
            let shape = PartialShape::new_static(dims.len() as i64, &dims).map_err(|e| load_error(&e))?;
            shapes.push((*port, shape));
        }
    }
    let shapes: Vec<(usize, &PartialShape)> = shapes.iter().map(|(port, shape)| (*port, shape)).collect();
    if shapes.is_empty() { Ok(()) } else { model.reshape_by_port_indexes(&shapes).map_err(|e| load_error(&e)) }
}

/// What the device is told. The rest, streams and pinning among it, follows from the performance hint.
fn properties(device: &str, spec: &SessionSpec<'_>) -> Vec<(RwPropertyKey, String)> {
    let mut properties = vec![
        // A CPU that has bf16 computes fp32 models in it unless told otherwise.
        (RwPropertyKey::HintInferencePrecision, precision_hint(spec.precision, &spec.model.info).to_owned()),
        // For every batch: the other hint splits the threads between streams, and one call would get a part of them.
        (RwPropertyKey::HintPerformanceMode, "LATENCY".to_owned()),
    ];
    if device == CPU {
        properties.push((RwPropertyKey::InferenceNumThreads, spec.threads.max(1).to_string()));
    }
    properties
}

/// OpenVINO's word for the arithmetic of what a file does not quantise.
fn precision_hint(asked: Precision, model: &ModelInfo) -> &'static str {
    let precision = if asked == Precision::Native { precision_of(model) } else { asked };
    match precision {
        Precision::Fp16 => "f16",
        Precision::Bf16 => "bf16",
        _ => "f32",
    }
}

fn unsupported(what: String) -> BackendError {
    BackendError::Unsupported { backend: NAME, what }
}

fn load_error(error: &::openvino::InferenceError) -> BackendError {
    BackendError::Load { backend: NAME, reason: words(error) }
}

/// What OpenVINO says, in one line, without the places in its source where it said it.
fn words(error: &::openvino::InferenceError) -> String {
    let kind = error.kind.to_string();
    let message = error.message.as_deref().unwrap_or(&kind);
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let said: Vec<&str> = lines.filter(|line| !(line.starts_with("Exception from ") && line.ends_with(':'))).collect();
    if said.is_empty() { kind } else { said.join(" ") }
}

#[cfg(test)]
mod tests {
    use ::openvino::{InferenceError, InferenceErrorKind};
    use prony_types::DType;

    use super::*;

    fn model(weights: DType, operators: &[&str]) -> ModelInfo {
        crate::precision::tests::model(Some(weights), operators)
    }

    fn supports(precision: Precision, model: &ModelInfo) -> Result<(), Unsupported> {
        Openvino.supports(precision, model, &ProviderSpec::default())
    }

    #[test]
    fn an_fp32_file_can_be_executed_in_16_bits_and_an_int8_file_as_it_is() {
        let single = model(DType::F32, &["Conv"]);
        for precision in [Precision::Fp32, Precision::Fp16, Precision::Bf16, Precision::Native] {
            assert_eq!(supports(precision, &single), Ok(()), "{precision}");
        }
        assert!(supports(Precision::Int8, &single).unwrap_err().to_string().contains("not int8"));
        assert!(supports(Precision::Tf32, &single).unwrap_err().to_string().contains("no tf32"));
        let quantised = crate::precision::tests::quantised(Precision::Int8);
        assert_eq!(supports(Precision::Int8, &quantised), Ok(()));
        assert!(supports(Precision::Bf16, &quantised).is_err());
        assert!(supports(Precision::Fp32, &model(DType::F16, &["Conv"])).is_err());
    }

    #[test]
    fn fp32_is_never_left_to_the_cpu() {
        let single = model(DType::F32, &["Conv"]);
        assert_eq!(precision_hint(Precision::Fp32, &single), "f32");
        assert_eq!(precision_hint(Precision::Native, &single), "f32");
        assert_eq!(precision_hint(Precision::Bf16, &single), "bf16");
        assert_eq!(precision_hint(Precision::Native, &model(DType::F16, &["Conv"])), "f16");
        assert_eq!(precision_hint(Precision::Int8, &model(DType::F32, &["QuantizeLinear"])), "f32");
    }

    #[test]
    fn an_error_of_many_lines_becomes_one() {
        let message = "Exception from src/inference/src/cpp/core.cpp:97:\nException from a.cpp:1:\n\nno op:\n  Frob\n";
        let error = |message: Option<&str>| InferenceError {
            kind: InferenceErrorKind::GeneralError,
            message: message.map(str::to_owned),
        };
        assert_eq!(words(&error(Some(message))), "no op: Frob");
        assert_eq!(words(&error(None)), "general error");
    }

    #[test]
    fn without_a_library_the_error_says_how_to_get_one() {
        let file = prony_model::ModelFile::builtin(prony_types::SceneKind::Rgb).unwrap();
        let error = Openvino.open(&SessionSpec::new(&file)).err().unwrap().to_string();
        assert!(error.contains("prony runtime install openvino"), "{error}");
    }
}
