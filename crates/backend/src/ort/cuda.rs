//! A session on CUDA memory: pinned buffers, our own stream, and marks between copying and computing.

use std::mem::ManuallyDrop;

use ort::memory::{AllocationDevice, AllocatorType, MemoryInfo, MemoryType};
use prony_types::{BackendRecord, DType, DeviceUse, TensorData, TensorSpec, TensorView};

use super::host::Parts;
use super::raw::{Binding, Model, Value};
use crate::buffer::{Raw, Widened, element_bytes};
use crate::gpu::{DeviceMemory, Gpu, GpuError, Marks, Pinned, Stream, Wait};
use crate::{BackendError, Session, SlotInput, Timing};

/// A GPU and the one stream that the library and our copies share.
pub(super) struct Device {
    gpu: Gpu,
    stream: Stream,
}

impl Device {
    /// Opens a GPU by number; says in one line why it cannot.
    pub(super) fn open(number: u32) -> Result<Device, GpuError> {
        let gpu = Gpu::open(number)?;
        let stream = gpu.stream()?;
        Ok(Device { gpu, stream })
    }

    pub(super) fn name(&self) -> &str {
        self.gpu.name()
    }

    /// The stream, as the library takes it.
    pub(super) fn stream_pointer(&self) -> *mut () {
        self.stream.pointer().cast()
    }
}

/// An input of a slot: filled on the host, copied to the GPU.
struct Input {
    host: Pinned,
    device: DeviceMemory,
    /// Over `device`.
    _value: Value,
}

/// An output of a slot, copied to the host.
struct Output {
    host: Pinned,
    shape: Vec<usize>,
    dtype: DType,
    widened: Widened,
    /// Where it is on the GPU when its shape cannot change.
    fixed: Option<(DeviceMemory, Value)>,
}

struct Slot {
    binding: Binding,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// Outputs that the library made in the last call; they stay until they were copied.
    made: Vec<Value>,
    marks: Marks,
}

/// A session of ONNX Runtime whose tensors are in GPU memory.
///
/// It is never taken apart: when a session goes, ONNX Runtime 1.31 frees pinned memory of some models in a callback of the
/// stream, which CUDA does not permit, and the process aborts. A process has one or two of these and ends soon; the driver
/// takes everything back.
pub(super) struct CudaSession {
    slots: ManuallyDrop<Vec<Slot>>,
    model: ManuallyDrop<Model>,
    device: ManuallyDrop<Device>,
    backend: &'static str,
    specs: Vec<TensorSpec>,
    output_names: Vec<String>,
    record: BackendRecord,
    executed: String,
}

impl Slot {
    fn new(parts: &Parts, device: &Device, memory: &MemoryInfo<'_>) -> Result<Slot, String> {
        let mut binding = Binding::new(&parts.model)?;
        let mut inputs = Vec::new();
        for (index, spec) in parts.specs.iter().enumerate() {
            let bytes = bytes_of(spec).ok_or_else(|| format!("input {spec} has a type that cannot be fed"))?;
            let (host, memory_on_device) = (device.gpu.pinned(bytes)?, device.gpu.allocate(bytes)?);
            // SAFETY: as many bytes of GPU memory as `spec` needs; they live beside the value.
            #[expect(unsafe_code, reason = "a tensor over GPU memory that lives as long")]
            let value = unsafe { Value::over(memory, memory_on_device.pointer(), spec)? };
            binding.input(&parts.model, index, &value)?;
            inputs.push(Input { host, device: memory_on_device, _value: value });
        }
        let mut outputs = Vec::new();
        for (index, (info, fixed)) in parts.outputs.iter().zip(parts.fixed_outputs()).enumerate() {
            let shape: Vec<usize> = info
                .dims
                .iter()
                .map(|dim| match dim {
                    prony_types::Dim::Fixed(n) => *n as usize,
                    prony_types::Dim::Named(_) => 0,
                })
                .collect();
            let spec = TensorSpec { name: info.name.clone(), dtype: info.dtype, shape };
            let bytes = bytes_of(&spec).ok_or_else(|| format!("output {spec} has a type that cannot be read"))?;
            let fixed = if fixed {
                let memory_on_device = device.gpu.allocate(bytes)?;
                // SAFETY: as above.
                #[expect(unsafe_code, reason = "a tensor over GPU memory that lives as long")]
                let value = unsafe { Value::over(memory, memory_on_device.pointer(), &spec)? };
                binding.output(&parts.model, index, &value)?;
                Some((memory_on_device, value))
            } else {
                binding.output_in(&parts.model, index, memory)?;
                None
            };
            let host = device.gpu.pinned(bytes)?;
            outputs.push(Output { host, shape: spec.shape, dtype: spec.dtype, widened: Widened::default(), fixed });
        }
        Ok(Slot { binding, inputs, outputs, made: Vec::new(), marks: device.gpu.marks(4, Wait::Spin)? })
    }

    /// Puts a whole call on the stream.
    fn submit(&mut self, model: &Model, device: &Device) -> Result<(), String> {
        self.made.clear();
        self.marks.set(0, &device.stream)?;
        for input in &self.inputs {
            device.stream.upload(&input.host, &input.device)?;
        }
        self.marks.set(1, &device.stream)?;
        self.binding.run(model)?;
        self.marks.set(2, &device.stream)?;
        if self.outputs.iter().any(|output| output.fixed.is_none()) {
            self.made = self.binding.outputs()?;
        }
        for (index, output) in self.outputs.iter_mut().enumerate() {
            let from = match &output.fixed {
                Some((memory, _)) => memory.pointer(),
                None => {
                    let value = self.made.get(index).ok_or_else(|| "an output is missing".to_owned())?;
                    output.dtype = value.describe(&mut output.shape)?;
                    value.data()?
                }
            };
            let bytes = output.bytes()?;
            if output.host.bytes() < bytes {
                output.host = device.gpu.pinned(bytes)?;
            }
            device.stream.download(from, &mut output.host, bytes)?;
        }
        Ok(self.marks.set(3, &device.stream)?)
    }

    /// Waits for the call, once.
    fn collect(&mut self) -> Result<Timing, String> {
        self.marks.wait(3)?;
        for output in &mut self.outputs {
            output.widen();
        }
        Ok(Timing {
            h2d_ns: Some(self.marks.between_ns(0, 1)?),
            inference_ns: self.marks.between_ns(1, 2)?,
            d2h_ns: Some(self.marks.between_ns(2, 3)?),
        })
    }
}

impl Output {
    fn bytes(&self) -> Result<usize, String> {
        let size = element_bytes(self.dtype).ok_or_else(|| "an output has a type that cannot be read".to_owned())?;
        Ok(self.shape.iter().product::<usize>() * size)
    }

    fn raw(&self) -> Option<Raw<'_>> {
        self.host.as_output(self.dtype, self.shape.iter().product())
    }

    fn widen(&mut self) {
        let mut widened = std::mem::take(&mut self.widened);
        if let Some(raw) = self.raw() {
            widened.take(raw);
        }
        self.widened = widened;
    }

    fn data(&self) -> TensorData<'_> {
        self.raw().and_then(|raw| raw.direct()).unwrap_or_else(|| self.widened.data())
    }
}

fn bytes_of(spec: &TensorSpec) -> Option<usize> {
    Some(spec.len() * element_bytes(spec.dtype)?)
}

impl CudaSession {
    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    pub(super) fn new(parts: Parts, device: Device) -> Result<CudaSession, BackendError> {
        let refuse = |reason: String| BackendError::Load { backend: parts.backend, reason };
        let memory =
            MemoryInfo::new(AllocationDevice::CUDA, device.gpu.number(), AllocatorType::Device, MemoryType::Default);
        let memory = memory.map_err(|e| refuse(e.to_string()))?;
        let slots = (0..parts.slots.max(1)).map(|_| Slot::new(&parts, &device, &memory));
        let slots = slots.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
        Ok(CudaSession {
            slots: ManuallyDrop::new(slots),
            output_names: parts.output_names(),
            model: ManuallyDrop::new(parts.model),
            device: ManuallyDrop::new(device),
            backend: parts.backend,
            specs: parts.specs,
            record: parts.record,
            executed: parts.executed,
        })
    }

    fn failed(&self, reason: &str) -> BackendError {
        BackendError::Run { backend: self.backend, reason: reason.replace('\n', " ") }
    }
}

impl Session for CudaSession {
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
        self.slots[slot].inputs[index].host.as_input(&self.specs[index])
    }

    fn submit(&mut self, slot: usize) -> Result<(), BackendError> {
        let submitted = self.slots[slot].submit(&self.model, &self.device);
        submitted.map_err(|reason| self.failed(&reason))
    }

    fn collect(&mut self, slot: usize) -> Result<Timing, BackendError> {
        let collected = self.slots[slot].collect();
        collected.map_err(|reason| self.failed(&reason))
    }

    fn output_count(&self) -> usize {
        self.output_names.len()
    }

    fn output(&self, slot: usize, index: usize) -> TensorView<'_> {
        let output = &self.slots[slot].outputs[index];
        TensorView { name: &self.output_names[index], shape: &output.shape, data: output.data() }
    }

    fn device_use(&self) -> Option<DeviceUse> {
        Some(DeviceUse { taken_bytes: self.device.gpu.used_bytes(), ..DeviceUse::default() })
    }
}
