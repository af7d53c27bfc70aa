//! A session on host memory: the CPU provider, and OpenVINO's.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ort::memory::MemoryInfo;
use ort::sys::OrtValue;
use prony_types::{BackendRecord, DType, Dim, TensorData, TensorSpec, TensorView};

use super::raw::{self, Model, Value};
use crate::buffer::{Buffer, Widened};
use crate::{BackendError, Session, SlotInput, Timing};

/// An output of a slot.
#[derive(Default)]
struct Output {
    value: Option<Value>,
    shape: Vec<usize>,
    dtype: Option<DType>,
    /// Its shape cannot change, so its memory is used again.
    fixed: bool,
    widened: Widened,
}

/// All that one call needs; it travels to a runner thread and back when calls overlap.
struct Call {
    buffers: Vec<Buffer>,
    /// Over `buffers`, whose memory does not move when this does.
    inputs: Vec<Value>,
    outputs: Vec<Output>,
    output_pointers: Vec<*mut OrtValue>,
}

// SAFETY: the pointers are of values that this owns, and null between calls.
#[expect(unsafe_code, reason = "raw pointers to values that the call owns")]
unsafe impl Send for Call {}

impl Call {
    fn new(specs: &[TensorSpec], fixed: &[bool], memory: &MemoryInfo<'_>) -> Result<Call, String> {
        let unknown = |spec: &TensorSpec| format!("input {spec} has a type that cannot be fed");
        let buffers = specs.iter().map(|spec| Buffer::zeroed(spec).ok_or_else(|| unknown(spec)));
        let mut buffers = buffers.collect::<Result<Vec<_>, _>>()?;
        let inputs = buffers.iter_mut().zip(specs).map(|(buffer, spec)| {
            // SAFETY: the buffer has room for `spec`, is never resized, and is dropped together with the value.
            #[expect(unsafe_code, reason = "a tensor over a buffer that lives as long")]
            unsafe {
                Value::over(memory, buffer.as_mut_ptr(), spec)
            }
        });
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let outputs: Vec<Output> = fixed.iter().map(|&fixed| Output { fixed, ..Output::default() }).collect();
        Ok(Call { output_pointers: vec![null_mut(); outputs.len()], buffers, inputs, outputs })
    }

    /// Runs the model on the buffers. The time is that of the library's call alone.
    fn run(&mut self, model: &Model) -> Result<u64, String> {
        const FEW: usize = 8;
        let count = self.inputs.len();
        let few: [*const OrtValue; FEW] =
            std::array::from_fn(|i| self.inputs.get(i).map_or(std::ptr::null(), Value::ptr));
        let many: Vec<*const OrtValue> =
            if count > FEW { self.inputs.iter().map(Value::ptr).collect() } else { Vec::new() };
        for (pointer, output) in self.output_pointers.iter_mut().zip(&mut self.outputs) {
            if !output.fixed {
                output.value = None;
            }
            *pointer = output.value.as_ref().map_or(null_mut(), |value| value.ptr().cast_mut());
        }
        let begun = Instant::now();
        model.run(if count > FEW { &many } else { &few[..count] }, &mut self.output_pointers)?;
        let elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        for (pointer, output) in self.output_pointers.iter_mut().zip(&mut self.outputs) {
            if output.value.is_none() {
                // SAFETY: the library made it in this call and hands it over.
                #[expect(unsafe_code, reason = "a value that the call made")]
                let value = unsafe { raw::adopt(*pointer) };
                let value = value.ok_or_else(|| "an output is missing".to_owned())?;
                output.dtype = Some(value.describe(&mut output.shape)?);
                output.value = Some(value);
            }
            *pointer = null_mut();
            output.widen()?;
        }
        Ok(elapsed_ns)
    }
}

impl Output {
    fn raw(&self) -> Option<crate::buffer::Raw<'_>> {
        let (value, dtype) = (self.value.as_ref()?, self.dtype?);
        let data = value.data().ok()?;
        // SAFETY: a host tensor of this shape and type, which nobody writes to until the slot's next call.
        #[expect(unsafe_code, reason = "reading a tensor of the library")]
        unsafe {
            raw::elements(dtype, data, self.shape.iter().product())
        }
    }

    fn widen(&mut self) -> Result<(), String> {
        if matches!(self.dtype, Some(DType::F32 | DType::I32 | DType::I64)) {
            return Ok(());
        }
        let mut widened = std::mem::take(&mut self.widened);
        let raw = self.raw().ok_or_else(|| "an output has a type that cannot be read".to_owned())?;
        widened.take(raw);
        self.widened = widened;
        Ok(())
    }

    fn data(&self) -> TensorData<'_> {
        self.raw().and_then(|raw| raw.direct()).unwrap_or_else(|| self.widened.data())
    }
}

/// A call that came back from its runner.
type Done = (Call, Result<u64, String>);

struct Slot {
    /// `None` while it is in flight.
    call: Option<Call>,
    /// Dropping it ends the runner.
    jobs: Option<SyncSender<Call>>,
    done: Receiver<Done>,
    runner: Option<JoinHandle<()>>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.jobs = None;
        // Until the runner has let go of the model, the library is not done with it.
        if let Some(runner) = self.runner.take() {
            let _ = runner.join();
        }
    }
}

impl Slot {
    fn start(model: &Arc<Model>, call: Call) -> Slot {
        let (jobs, inbox) = sync_channel::<Call>(1);
        let (outbox, done) = sync_channel::<Done>(1);
        let model = Arc::clone(model);
        let runner = thread::spawn(move || {
            for mut call in inbox {
                let outcome = call.run(&model);
                if outbox.send((call, outcome)).is_err() {
                    return;
                }
            }
        });
        Slot { call: Some(call), jobs: Some(jobs), done, runner: Some(runner) }
    }
}

/// A session of ONNX Runtime whose tensors are in host memory.
pub(super) struct HostSession {
    model: Arc<Model>,
    backend: &'static str,
    slots: Vec<Slot>,
    specs: Vec<TensorSpec>,
    output_names: Vec<String>,
    record: BackendRecord,
    executed: String,
}

/// What a session is made from, whatever memory it uses.
pub(super) struct Parts {
    pub(super) backend: &'static str,
    pub(super) model: Model,
    pub(super) specs: Vec<TensorSpec>,
    pub(super) outputs: Vec<prony_types::TensorInfo>,
    pub(super) slots: usize,
    pub(super) record: BackendRecord,
    pub(super) executed: String,
}

impl Parts {
    /// Which outputs have a shape that cannot change.
    pub(super) fn fixed_outputs(&self) -> Vec<bool> {
        let fixed = |dims: &[Dim]| !dims.is_empty() && dims.iter().all(|dim| matches!(dim, Dim::Fixed(_)));
        self.outputs.iter().map(|output| fixed(&output.dims)).collect()
    }

    pub(super) fn output_names(&self) -> Vec<String> {
        self.outputs.iter().map(|output| output.name.clone()).collect()
    }
}

impl HostSession {
    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    pub(super) fn new(parts: Parts) -> Result<HostSession, BackendError> {
        let refuse = |reason: String| BackendError::Load { backend: parts.backend, reason };
        let memory = MemoryInfo::default();
        let fixed = parts.fixed_outputs();
        let calls = (0..parts.slots.max(1)).map(|_| Call::new(&parts.specs, &fixed, &memory));
        let calls = calls.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
        let output_names = parts.output_names();
        let model = Arc::new(parts.model);
        let slots = calls.into_iter().map(|call| Slot::start(&model, call)).collect();
        Ok(HostSession {
            slots,
            model,
            backend: parts.backend,
            specs: parts.specs,
            output_names,
            record: parts.record,
            executed: parts.executed,
        })
    }

    fn failed(&self, reason: &str) -> BackendError {
        BackendError::Run { backend: self.backend, reason: reason.replace('\n', " ") }
    }
}

const IN_FLIGHT: &str = "the slot is in flight";

impl Session for HostSession {
    fn record(&self) -> BackendRecord {
        self.record.clone()
    }

    fn executed(&self) -> String {
        self.executed.clone()
    }

    fn inputs(&self) -> &[TensorSpec] {
        &self.specs
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn input(&mut self, slot: usize, index: usize) -> SlotInput<'_> {
        self.slots[slot].call.as_mut().expect(IN_FLIGHT).buffers[index].as_input()
    }

    fn submit(&mut self, slot: usize) -> Result<(), BackendError> {
        let Some(call) = self.slots[slot].call.take() else { return Err(self.failed(IN_FLIGHT)) };
        let sent = self.slots[slot].jobs.as_ref().map(|jobs| jobs.send(call).is_ok());
        if sent == Some(true) { Ok(()) } else { Err(self.failed("the runner thread is gone")) }
    }

    fn collect(&mut self, slot: usize) -> Result<Timing, BackendError> {
        let Ok((call, outcome)) = self.slots[slot].done.recv() else {
            return Err(self.failed("the runner thread panicked; see the cell's log"));
        };
        self.slots[slot].call = Some(call);
        let inference_ns = outcome.map_err(|reason| self.failed(&reason))?;
        Ok(Timing { h2d_ns: None, inference_ns, d2h_ns: None })
    }

    fn run(&mut self, slot: usize) -> Result<Timing, BackendError> {
        let Some(call) = &mut self.slots[slot].call else { return Err(self.failed(IN_FLIGHT)) };
        let outcome = call.run(&self.model);
        let inference_ns = outcome.map_err(|reason| self.failed(&reason))?;
        Ok(Timing { h2d_ns: None, inference_ns, d2h_ns: None })
    }

    fn output_count(&self) -> usize {
        self.output_names.len()
    }

    fn output(&self, slot: usize, index: usize) -> TensorView<'_> {
        let output = &self.slots[slot].call.as_ref().expect(IN_FLIGHT).outputs[index];
        TensorView { name: &self.output_names[index], shape: &output.shape, data: output.data() }
    }
}
