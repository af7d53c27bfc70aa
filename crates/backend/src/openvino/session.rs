//! A compiled model with a request a slot.

use std::time::Instant;

use ::openvino::{CompiledModel, InferRequest, PropertyKey, RwPropertyKey, Tensor};
use prony_types::{BackendRecord, Precision, RuntimeSpec, TensorSpec, TensorView};

use super::device::CPU;
use super::tensor::{self, Output};
use super::{NAME, load_error, precision_hint, unsupported, words};
use crate::{BackendError, Session, SessionSpec, SlotInput, Timing, precision_of};

/// OpenVINO's wait has a limit, and forgets to say when it was reached: a year, which still fits its clock.
const FOREVER_MS: i64 = 365 * 24 * 3600 * 1000;

/// One call in flight. Its tensors are bound to the request once.
struct Slot {
    request: InferRequest,
    inputs: Vec<Tensor>,
    outputs: Vec<Output>,
    /// When the call in flight was started.
    begun: Option<Instant>,
}

pub(super) struct OpenvinoSession {
    slots: Vec<Slot>,
    inputs: Vec<TensorSpec>,
    output_names: Vec<String>,
    executed: String,
    record: BackendRecord,
}

impl OpenvinoSession {
    pub(super) fn new(
        mut compiled: CompiledModel,
        device: String,
        runtime: &RuntimeSpec,
        spec: &SessionSpec<'_>,
        inputs: Vec<TensorSpec>,
        positions: &[Option<usize>],
    ) -> Result<OpenvinoSession, BackendError> {
        let executed = executed(&compiled, spec, &device)?;
        let output_names: Vec<String> = spec.model.info.outputs.iter().map(|t| t.name.clone()).collect();
        let slots = (0..spec.slots.max(1))
            .map(|_| Slot::new(&mut compiled, &inputs, positions, output_names.len()))
            .collect::<Result<Vec<_>, _>>()?;
        let threads = answer(&compiled, RwPropertyKey::InferenceNumThreads).and_then(|n| n.parse().ok());
        let record = BackendRecord {
            name: NAME.into(),
            version: Some(runtime.version.clone()),
            library: Some(runtime.library.display().to_string()),
            threads: threads.filter(|_| device.starts_with(CPU)),
            device: Some(device),
            settings: settings(&compiled),
            ..BackendRecord::default()
        };
        Ok(OpenvinoSession { slots, inputs, output_names, executed, record })
    }
}

/// The arithmetic that the compiled model says it has, held against what was asked for.
fn executed(compiled: &CompiledModel, spec: &SessionSpec<'_>, device: &str) -> Result<String, BackendError> {
    let asked = precision_hint(spec.precision, &spec.model.info);
    let answered = compiled
        .get_property(&PropertyKey::Rw(RwPropertyKey::HintInferencePrecision))
        .map_err(|e| unsupported(format!("{device} does not say its precision: {}", words(&e))))?;
    // A file that brings its own arithmetic is executed as the device can, and the record says how.
    if answered != asked && spec.precision != Precision::Native {
        let way_out = if precision_of(&spec.model.info) == Precision::Fp32 { "fp32" } else { "native" };
        let what =
            format!("asked for {asked}, but this device executes {answered} ({device}); use --precision {way_out}");
        return Err(unsupported(what));
    }
    let word = match &*answered {
        "f32" => "fp32",
        "f16" => "fp16",
        other => other,
    };
    let quantised = precision_of(&spec.model.info) == Precision::Int8;
    Ok(if quantised { format!("int8 weights, the rest {word}") } else { word.to_owned() })
}

/// What was chosen, in the compiled model's own answers; a device that does not know a property leaves it out.
fn settings(compiled: &CompiledModel) -> Vec<String> {
    let said = |key: RwPropertyKey, word: &str| answer(compiled, key).map(|value| format!("{word} {value}"));
    let count = |key: RwPropertyKey, word: &str| {
        answer(compiled, key).map(|n| if n == "1" { format!("1 {word}") } else { format!("{n} {word}s") })
    };
    [
        said(RwPropertyKey::HintPerformanceMode, "hint"),
        said(RwPropertyKey::HintInferencePrecision, "precision"),
        count(RwPropertyKey::InferenceNumThreads, "thread"),
        count(RwPropertyKey::NumStreams, "stream"),
        said(RwPropertyKey::HintEnableCpuPinning, "pinning"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn answer(compiled: &CompiledModel, key: RwPropertyKey) -> Option<String> {
    compiled.get_property(&PropertyKey::Rw(key)).ok().map(|value| value.into_owned())
}

impl Slot {
    fn new(
        compiled: &mut CompiledModel,
        specs: &[TensorSpec],
        positions: &[Option<usize>],
        outputs: usize,
    ) -> Result<Slot, BackendError> {
        let mut request = compiled.create_infer_request().map_err(|e| load_error(&e))?;
        let mut inputs = Vec::with_capacity(specs.len());
        for (spec, position) in specs.iter().zip(positions) {
            let made = tensor::input(spec).map_err(|e| load_error(&e))?;
            let input = made.ok_or_else(|| BackendError::InputType { name: spec.name.clone(), dtype: spec.dtype })?;
            if let Some(port) = position {
                request.set_input_tensor_by_index(*port, &input).map_err(|e| load_error(&e))?;
            }
            inputs.push(input);
        }
        let outputs = (0..outputs)
            .map(|index| Output::new(compiled, &request, index))
            .collect::<Result<Vec<_>, _>>()
            .map_err(unsupported)?;
        Ok(Slot { request, inputs, outputs, begun: None })
    }

    fn keep(&mut self, inference_ns: u64) -> Result<Timing, BackendError> {
        for output in &mut self.outputs {
            output.refresh(&self.request).map_err(run_error)?;
        }
        Ok(Timing { h2d_ns: None, inference_ns, d2h_ns: None })
    }
}

fn run_error(reason: String) -> BackendError {
    BackendError::Run { backend: NAME, reason }
}

fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Session for OpenvinoSession {
    fn record(&self) -> BackendRecord {
        self.record.clone()
    }

    fn executed(&self) -> String {
        self.executed.clone()
    }

    fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn input(&mut self, slot: usize, index: usize) -> SlotInput<'_> {
        tensor::slot_input(&mut self.slots[slot].inputs[index], self.inputs[index].dtype)
    }

    fn submit(&mut self, slot: usize) -> Result<(), BackendError> {
        let slot = &mut self.slots[slot];
        let begun = Instant::now();
        slot.request.infer_async().map_err(|e| run_error(words(&e)))?;
        slot.begun = Some(begun);
        Ok(())
    }

    /// The duration reaches from `submit` to the end of the wait: OpenVINO does not say when it was done in between.
    fn collect(&mut self, slot: usize) -> Result<Timing, BackendError> {
        let slot = &mut self.slots[slot];
        let begun = slot.begun.take().ok_or_else(|| run_error("no call is in flight in this slot".into()))?;
        slot.request.wait(FOREVER_MS).map_err(|e| run_error(words(&e)))?;
        slot.keep(elapsed_ns(begun))
    }

    fn run(&mut self, slot: usize) -> Result<Timing, BackendError> {
        let slot = &mut self.slots[slot];
        let begun = Instant::now();
        slot.request.infer().map_err(|e| run_error(words(&e)))?;
        slot.keep(elapsed_ns(begun))
    }

    fn output_count(&self) -> usize {
        self.output_names.len()
    }

    fn output(&self, slot: usize, index: usize) -> TensorView<'_> {
        let output = &self.slots[slot].outputs[index];
        TensorView { name: &self.output_names[index], shape: output.shape(), data: output.data() }
    }
}
