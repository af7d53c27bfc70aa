//! An engine in use: buffers made once, addresses set once, every slot's work recorded once and launched whole.
//!
//! There is one execution context, so calls compute one after the other, on one stream. A call that is alone does all of
//! its work there. With several in flight each copies on a stream of its own, beside the computing of another.

use std::ffi::c_void;
use std::sync::Arc;

use prony_nvinfer::{Context, Engine, Error, OutputAllocator, Profiler};
use prony_types::{BackendRecord, DType, DeviceUse, Precision, TensorData, TensorSpec, TensorView};

use super::growing::Growing;
use super::inspect::profiles;
use super::io::{self, Wish};
use super::load::{Loaded, trouble};
use super::{NAME, layers};
use crate::buffer::{Raw, Widened, element_bytes};
use crate::gpu::{Budget, DeviceMemory, Gpu, GpuError, Graph, Marks, Pinned, Stream, Wait};
use crate::{BackendError, Session, SlotInput, Timing};

/// The marks of a call: before the first copy, after it, before computing where that had to wait, after computing, and
/// after the last copy.
const BEGUN: usize = 0;
const UPLOADED: usize = 1;
const COMPUTING: usize = 2;
const COMPUTED: usize = 3;
const DOWNLOADED: usize = 4;
const MARKS: usize = 5;

/// How an engine is to be used.
pub(super) struct Setup<'a> {
    pub(super) wish: Wish<'a>,
    pub(super) slots: usize,
    pub(super) wait: Wait,
    /// Where layers report their times; calls are slow then.
    pub(super) profiler: Option<&'a Profiler>,
    /// What was asked for.
    pub(super) precision: Precision,
}

/// Where a tensor is for the GPU.
enum Place {
    /// In memory of its own, copied.
    Device(DeviceMemory),
    /// In the host's memory, which is the GPU's as well.
    Shared(*mut c_void),
    /// In memory that TensorRT asks for when it knows how much.
    Growing(Arc<Growing>, OutputAllocator),
}

struct Input {
    host: Pinned,
    place: Place,
}

struct Output {
    host: Pinned,
    place: Place,
    dtype: DType,
    shape: Vec<usize>,
    widened: Widened,
}

struct Slot {
    /// Before everything that it uses.
    graph: Option<Graph>,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    marks: Marks,
    copies: Stream,
    in_flight: bool,
    /// Whether another call was in flight when this one began.
    beside: bool,
}

/// An output whose shape is decided, or of which only the type and the number of axes are.
struct OutputSpec {
    name: String,
    dtype: DType,
    shape: Option<Vec<usize>>,
    /// The most that it can need.
    bytes: usize,
}

/// A session of TensorRT. The order of the fields is that in which they go: recorded work, buffers, context, engine.
pub(super) struct TrtSession {
    slots: Vec<Slot>,
    context: Context,
    engine: Engine,
    compute: Stream,
    budget: Arc<Budget>,
    gpu: Gpu,
    inputs: Vec<TensorSpec>,
    output_names: Vec<String>,
    /// Whether tensors are copied between host and device.
    copies: bool,
    /// Whether an output's size is known only when it is there.
    growing: bool,
    /// The slot whose addresses the context has.
    bound: Option<usize>,
    /// The slot that was started last.
    last: usize,
    record: BackendRecord,
    executed: String,
}

impl Drop for TrtSession {
    fn drop(&mut self) {
        // Nothing may be in flight when what it works with goes.
        let _ = self.compute.finish();
        for slot in &self.slots {
            let _ = slot.copies.finish();
        }
    }
}

impl TrtSession {
    /// Makes contexts and buffers, runs the engine once, and records it.
    pub(super) fn new(loaded: Loaded, setup: &Setup<'_>) -> Result<TrtSession, BackendError> {
        let Loaded { engine, gpu, budget, library, here, notes, warnings } = loaded;
        let blame = |reason: String| trouble(&gpu, &budget, reason);
        let failed = |error: Error| blame(error.to_string());
        let tensors = engine.io().map_err(failed)?;
        tensors.iter().try_for_each(io::check)?;
        let (inputs, outputs): (Vec<_>, Vec<_>) = tensors.into_iter().partition(|tensor| tensor.is_input);
        let (profile, inputs) = io::decide(&inputs, &profiles(&engine, &inputs).map_err(failed)?, &setup.wish)?;
        let compute = gpu.stream().map_err(|error| blame(error.to_string()))?;
        let mut context = engine.context().map_err(failed)?;
        choose_profile(&mut context, profile, &compute).map_err(blame)?;
        for input in &inputs {
            let shape: Vec<i64> = input.shape.iter().map(|&size| size as i64).collect();
            context.set_input_shape(&input.name, &shape).map_err(failed)?;
        }
        context.infer_shapes().map_err(failed)?;
        if let Some(profiler) = setup.profiler {
            context.set_profiler(profiler);
        }
        let outputs = outputs.iter().map(|output| OutputSpec::of(&context, &io::info(output)));
        let outputs = outputs.collect::<Result<Vec<_>, _>>().map_err(blame)?;
        let slot = |_| Slot::new(&gpu, &budget, &inputs, &outputs, setup.wait);
        let slots = (0..setup.slots).map(slot).collect::<Result<Vec<_>, _>>().map_err(blame)?;
        let told = layers_of(&engine, &context).map_err(|error| error.to_string());
        let mut session = TrtSession {
            slots,
            context,
            compute,
            inputs,
            output_names: outputs.iter().map(|output| output.name.clone()).collect(),
            copies: !gpu.integrated(),
            growing: outputs.iter().any(|output| output.shape.is_none()),
            bound: None,
            last: 0,
            record: BackendRecord {
                name: NAME.into(),
                version: Some(here.tensorrt),
                library: Some(library.display().to_string()),
                device: Some(gpu.name().to_owned()),
                warnings,
                ..BackendRecord::default()
            },
            executed: layers::executed(told.and_then(|text| layers::parse(&text)), setup.precision),
            engine,
            budget,
            gpu,
        };
        let graph = session.warm_up(setup).map_err(|reason| trouble(&session.gpu, &session.budget, reason))?;
        session.record.settings = session.settings(setup, profile, notes, graph);
        Ok(session)
    }

    /// Runs every slot once, which loads kernels, and records it where that works. Says which.
    fn warm_up(&mut self, setup: &Setup<'_>) -> Result<String, String> {
        for slot in 0..self.slots.len() {
            self.enqueue(slot)?;
            self.compute.finish()?;
        }
        let mut captured = Ok(());
        if setup.profiler.is_some() {
            captured = Err("layers are timed one by one".to_owned());
        } else if self.growing {
            captured = Err("the data decide the size of an output".to_owned());
        }
        for slot in 0..self.slots.len() {
            captured = captured.and_then(|()| self.capture(slot));
        }
        let Err(reason) = captured else { return Ok("CUDA graph: captured".into()) };
        // All or none: slots are not to differ. And what failed to be recorded must still run.
        for slot in 0..self.slots.len() {
            self.slots[slot].graph = None;
            self.enqueue(slot)?;
            self.compute.finish()?;
        }
        Ok(format!("CUDA graph: not possible: {}", reason.replace('\n', " ")))
    }

    fn capture(&mut self, slot: usize) -> Result<(), String> {
        self.bind(slot)?;
        let (context, stream) = (&mut self.context, self.compute.pointer());
        // SAFETY: the stream is ours, and every tensor has its address: `bind` was called.
        #[expect(unsafe_code, reason = "TensorRT trusts its caller with addresses")]
        let enqueue = || unsafe { context.enqueue(stream) }.map_err(|e| GpuError::Work(e.to_string()));
        self.slots[slot].graph = Some(self.compute.capture(enqueue)?);
        Ok(())
    }

    fn settings(&self, setup: &Setup<'_>, profile: usize, notes: Vec<String>, graph: String) -> Vec<String> {
        let mut settings = vec![graph];
        settings.push(match setup.wait {
            Wait::Spin => "the host spins while it waits for the GPU".into(),
            Wait::Block => "the host sleeps while it waits for the GPU".into(),
        });
        settings.push(match self.copies {
            true => "page-locked host buffers; with several calls in flight, copies beside computing".into(),
            false => "host and GPU share their memory: mapped buffers, no copies".into(),
        });
        settings.push("the first inference, which loads kernels, is part of loading".into());
        if profile > 0 {
            settings.push(format!("profile {profile}"));
        }
        if let Some(limit) = self.budget.limit() {
            settings.push(format!("GPU memory limit: {limit} bytes, held by our allocator"));
        }
        settings.extend(notes);
        settings
    }

    /// The inspector's word on every layer.
    pub(super) fn layers(&self) -> Result<String, String> {
        layers_of(&self.engine, &self.context).map_err(|error| error.to_string())
    }

    /// Tells the context where a slot's tensors are, unless it knows.
    fn bind(&mut self, slot: usize) -> Result<(), String> {
        if self.bound == Some(slot) {
            return Ok(());
        }
        self.bound = None;
        let parts = &self.slots[slot];
        let inputs = self.inputs.iter().map(|input| &input.name).zip(parts.inputs.iter().map(|input| &input.place));
        let outputs = self.output_names.iter().zip(parts.outputs.iter().map(|output| &output.place));
        for (name, place) in inputs.chain(outputs) {
            place.set(&mut self.context, name).map_err(|e| e.to_string())?;
        }
        self.bound = Some(slot);
        Ok(())
    }

    /// Puts the computing of a slot on the stream.
    fn enqueue(&mut self, slot: usize) -> Result<(), String> {
        if let Some(graph) = &self.slots[slot].graph {
            return Ok(self.compute.launch(graph)?);
        }
        self.bind(slot)?;
        // SAFETY: the stream is ours; every tensor has its address, in memory that lives as long as the session.
        #[expect(unsafe_code, reason = "TensorRT trusts its caller with addresses")]
        unsafe { self.context.enqueue(self.compute.pointer()) }.map_err(|e| e.to_string())
    }

    /// Puts a whole call on the streams.
    fn start(&mut self, slot: usize) -> Result<(), String> {
        let beside = self.last != slot && self.slots[self.last].in_flight;
        self.last = slot;
        self.slots[slot].beside = beside;
        self.slots[slot].upload(&self.compute, self.copies)?;
        self.enqueue(slot)?;
        let (copies, growing) = (self.copies, self.growing);
        let slot = &mut self.slots[slot];
        slot.marks.set(COMPUTED, &self.compute)?;
        if copies && !growing {
            slot.download(&self.compute)?;
        }
        slot.in_flight = true;
        Ok(())
    }

    /// Waits for a call, once, and reads its marks.
    fn end(&mut self, slot: usize) -> Result<Timing, String> {
        let copies = self.copies;
        let slot = &mut self.slots[slot];
        slot.in_flight = false;
        if self.growing {
            slot.marks.wait(COMPUTED)?;
            slot.look_at_shapes(&self.gpu)?;
            slot.download(&self.compute)?;
        }
        let copied_back = copies || self.growing;
        slot.marks.wait(if copied_back { DOWNLOADED } else { COMPUTED })?;
        for output in &mut slot.outputs {
            output.widen();
        }
        let marks = &slot.marks;
        let computing = if slot.beside { COMPUTING } else { UPLOADED };
        Ok(Timing {
            h2d_ns: copies.then(|| marks.between_ns(BEGUN, UPLOADED)).transpose()?,
            inference_ns: marks.between_ns(computing, COMPUTED)?,
            d2h_ns: copied_back.then(|| marks.between_ns(COMPUTED, DOWNLOADED)).transpose()?,
        })
    }

    fn failed(&self, reason: &str) -> BackendError {
        trouble(&self.gpu, &self.budget, reason.replace('\n', " "))
    }
}

/// The inspector's word on every layer. With free shapes it knows the formats of a context alone.
fn layers_of(engine: &Engine, context: &Context) -> Result<String, prony_nvinfer::Error> {
    let mut inspector = engine.inspector()?;
    inspector.set_context(context)?;
    inspector.engine_json()
}

fn choose_profile(context: &mut Context, profile: usize, stream: &Stream) -> Result<(), String> {
    if profile == 0 {
        // As every context begins.
        return Ok(());
    }
    let number = i32::try_from(profile).map_err(|e| e.to_string())?;
    // SAFETY: a stream of ours on the engine's device.
    #[expect(unsafe_code, reason = "TensorRT trusts its caller with streams")]
    unsafe { context.set_profile(number, stream.pointer()) }.map_err(|e| e.to_string())?;
    Ok(stream.finish()?)
}

impl OutputSpec {
    fn of(context: &Context, output: &prony_types::TensorInfo) -> Result<OutputSpec, String> {
        let shape = context.shape(&output.name).map_err(|e| e.to_string())?;
        let shape: Option<Vec<usize>> = shape.iter().map(|&size| usize::try_from(size).ok()).collect();
        let size = element_bytes(output.dtype).ok_or_else(|| format!("output `{}` cannot be read", output.name))?;
        let bytes = match &shape {
            Some(shape) => shape.iter().product::<usize>() * size,
            None => context.max_output_bytes(&output.name).and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
        };
        Ok(OutputSpec { name: output.name.clone(), dtype: output.dtype, shape, bytes })
    }
}

impl Place {
    fn set(&self, context: &mut Context, name: &str) -> Result<(), Error> {
        let address = match self {
            Place::Device(memory) => memory.pointer(),
            Place::Shared(address) => *address,
            Place::Growing(_, allocator) => return context.set_output_allocator(name, allocator),
        };
        // SAFETY: memory of the GPU, as large as the tensor, that lives as long as the session.
        #[expect(unsafe_code, reason = "TensorRT trusts its caller with addresses")]
        unsafe {
            context.set_address(name, address)
        }
    }
}

impl Slot {
    fn new(
        gpu: &Gpu,
        budget: &Arc<Budget>,
        inputs: &[TensorSpec],
        outputs: &[OutputSpec],
        wait: Wait,
    ) -> Result<Slot, String> {
        let buffer = |bytes: usize| -> Result<(Pinned, Place), String> {
            if gpu.integrated() {
                let host = gpu.mapped(budget, bytes)?;
                let address = host.on_device().ok_or_else(|| "host memory is not mapped".to_owned())?;
                return Ok((host, Place::Shared(address)));
            }
            Ok((gpu.pinned(bytes)?, Place::Device(gpu.allocate_within(budget, bytes)?)))
        };
        let input = |spec: &TensorSpec| {
            let size = element_bytes(spec.dtype).ok_or_else(|| format!("input {spec} cannot be fed"))?;
            let (host, place) = buffer(spec.len() * size)?;
            Ok(Input { host, place })
        };
        let output = |spec: &OutputSpec| {
            let (host, place) = match &spec.shape {
                Some(_) => buffer(spec.bytes)?,
                None => {
                    let growing = Growing::new(gpu, budget, spec.bytes)?;
                    let allocator = growing.allocator();
                    (gpu.pinned(spec.bytes)?, Place::Growing(growing, allocator))
                }
            };
            let shape = spec.shape.clone().unwrap_or_default();
            Ok(Output { host, place, dtype: spec.dtype, shape, widened: Widened::default() })
        };
        Ok(Slot {
            graph: None,
            inputs: inputs.iter().map(input).collect::<Result<_, String>>()?,
            outputs: outputs.iter().map(output).collect::<Result<_, String>>()?,
            marks: gpu.marks(MARKS, wait)?,
            copies: gpu.stream()?,
            in_flight: false,
            beside: false,
        })
    }

    /// Brings the inputs over, and has computing wait for them.
    fn upload(&self, compute: &Stream, copies: bool) -> Result<(), String> {
        if !copies {
            self.marks.set(UPLOADED, compute)?;
            return if self.beside { Ok(self.marks.set(COMPUTING, compute)?) } else { Ok(()) };
        }
        let stream = if self.beside { &self.copies } else { compute };
        self.marks.set(BEGUN, stream)?;
        for input in &self.inputs {
            if let Place::Device(memory) = &input.place {
                stream.upload(&input.host, memory)?;
            }
        }
        self.marks.set(UPLOADED, stream)?;
        if self.beside {
            compute.wait_for(&self.marks, UPLOADED)?;
            self.marks.set(COMPUTING, compute)?;
        }
        Ok(())
    }

    /// Brings the outputs back once they are computed.
    fn download(&mut self, compute: &Stream) -> Result<(), String> {
        let stream = if self.beside { &self.copies } else { compute };
        if self.beside {
            stream.wait_for(&self.marks, COMPUTED)?;
        }
        for output in &mut self.outputs {
            let bytes = output.bytes();
            match &output.place {
                Place::Device(memory) => stream.download(memory.pointer(), &mut output.host, bytes)?,
                Place::Growing(growing, _) => stream.download(growing.now().0, &mut output.host, bytes)?,
                Place::Shared(_) => {}
            }
        }
        Ok(self.marks.set(DOWNLOADED, stream)?)
    }

    /// Takes over the shapes that the data decided, and makes room for them on the host.
    fn look_at_shapes(&mut self, gpu: &Gpu) -> Result<(), String> {
        for output in &mut self.outputs {
            let Place::Growing(growing, _) = &output.place else { continue };
            let (_, there, shape) = growing.now();
            output.shape = shape;
            let bytes = output.bytes();
            if bytes > there {
                return Err(format!("an output of {bytes} bytes was announced in {there} bytes of memory"));
            }
            if bytes > output.host.bytes() {
                output.host = gpu.pinned(bytes)?;
            }
        }
        Ok(())
    }
}

impl Output {
    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * element_bytes(self.dtype).unwrap_or(0)
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

impl Session for TrtSession {
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
        self.slots[slot].inputs[index].host.as_input(&self.inputs[index])
    }

    fn submit(&mut self, slot: usize) -> Result<(), BackendError> {
        self.start(slot).map_err(|reason| self.failed(&reason))
    }

    fn collect(&mut self, slot: usize) -> Result<Timing, BackendError> {
        self.end(slot).map_err(|reason| self.failed(&reason))
    }

    fn output_count(&self) -> usize {
        self.output_names.len()
    }

    fn output(&self, slot: usize, index: usize) -> TensorView<'_> {
        let output = &self.slots[slot].outputs[index];
        TensorView { name: &self.output_names[index], shape: &output.shape, data: output.data() }
    }

    fn device_use(&self) -> Option<DeviceUse> {
        Some(self.gpu.usage(&self.budget))
    }
}
