//! The embedded engine: pure Rust, always there.

mod defaults;
mod load;
mod window;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use ::rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueOrView, ValueView};
use prony_types::{
    BackendName, BackendRecord, DType, ModelInfo, Precision, ProviderSpec, TensorData, TensorSpec, TensorView,
};
use rten_tensor::prelude::*;

use crate::precision::{as_it_is, made_elsewhere};
use crate::session::decide_inputs;
use crate::{Backend, BackendError, Session, SessionSpec, SlotInput, Timing, Unsupported, affinity, precision_of};

const NAME: &str = "rten";
const SPINNING: &str = "one thread a CPU, spinning while a call is in flight";

/// The backend `rten`.
pub(crate) struct Rten;

impl Backend for Rten {
    fn name(&self) -> BackendName {
        BackendName::Rten
    }

    fn supports(&self, precision: Precision, model: &ModelInfo, _: &ProviderSpec) -> Result<(), Unsupported> {
        if made_elsewhere(precision).is_some() {
            let instead = format!("it executes fp32 and int8, TensorRT also {precision}");
            return Err(Unsupported::Arithmetic { backend: NAME, asked: precision, instead });
        }
        as_it_is(NAME, precision, model)?;
        if model.operators.iter().any(|op| op == "NonMaxSuppression") {
            // rten 0.27 divides by the enclosing box instead of the union there: boxes would be silently wrong.
            return Err(Unsupported::NonMaxSuppression);
        }
        match precision_of(model) {
            brings @ (Precision::Fp16 | Precision::Bf16 | Precision::Fp8 | Precision::Nvfp4) => {
                Err(Unsupported::NarrowFile { brings })
            }
            _ => Ok(()),
        }
    }

    fn open(&self, spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError> {
        let unsupported = |what: String| BackendError::Unsupported { backend: NAME, what };
        self.supports(spec.precision, &spec.model.info, &spec.provider).map_err(|e| unsupported(e.to_string()))?;
        if spec.device > 0 {
            return Err(unsupported(format!("there is no device {}; the CPU is device 0", spec.device)));
        }
        let inputs = decide_inputs(spec)?.into_iter().map(narrowed).collect::<Result<Vec<_>, _>>()?;
        let session = RtenSession::new(spec, inputs)?;
        Ok(Box::new(session))
    }
}

/// rten computes in 32 bits.
fn narrowed(mut input: TensorSpec) -> Result<TensorSpec, BackendError> {
    input.dtype = match input.dtype {
        DType::F32 | DType::F64 => DType::F32,
        DType::I32 | DType::I64 | DType::Bool => DType::I32,
        dtype => return Err(BackendError::InputType { name: input.name, dtype }),
    };
    Ok(input)
}

/// Values of one input, owned so that they can travel to a runner thread and back.
enum Buffer {
    F32(Vec<f32>),
    I32(Vec<i32>),
}

impl Buffer {
    fn view(&self, shape: &[usize]) -> Result<ValueOrView<'_>, String> {
        let view = match self {
            Buffer::F32(data) => ValueView::from_shape(shape, data).map_err(|e| e.to_string()),
            Buffer::I32(data) => ValueView::from_shape(shape, data).map_err(|e| e.to_string()),
        };
        view.map(ValueOrView::from)
    }
}

/// What does the work: shared by all slots.
struct Engine {
    model: Model,
    input_ids: Vec<NodeId>,
    output_ids: Vec<NodeId>,
    specs: Vec<TensorSpec>,
    pool: Arc<ThreadPool>,
    threads: usize,
    /// Whether idle threads stay awake during a call.
    spin: bool,
}

/// A finished call.
struct Done {
    buffers: Vec<Buffer>,
    outcome: Result<(Vec<Value>, u64), String>,
}

impl Engine {
    fn call(&self, buffers: &[Buffer]) -> Result<(Vec<Value>, u64), String> {
        let mut inputs = Vec::with_capacity(buffers.len());
        for (&id, (buffer, spec)) in self.input_ids.iter().zip(buffers.iter().zip(&self.specs)) {
            inputs.push((id, buffer.view(&spec.shape)?));
        }
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)));
        let begun = Instant::now();
        let outputs = self.pool.run(|| {
            let done = AtomicBool::new(false);
            rayon::in_place_scope(|scope| {
                for _ in 1..if self.spin { self.threads } else { 1 } {
                    scope.spawn(|_| stay_awake(&done));
                }
                let outputs = self.model.run(inputs, &self.output_ids, Some(options));
                done.store(true, Ordering::Release);
                outputs
            })
        });
        let outputs = outputs.map_err(|e| e.to_string())?;
        let outputs = outputs.into_iter().map(readable).collect::<Result<Vec<_>, String>>()?;
        Ok((outputs, elapsed_ns(begun)))
    }
}

/// An output as contiguous floats or 32-bit integers. rten may hand out a view into something larger.
fn readable(value: Value) -> Result<Value, String> {
    let widened = match value {
        Value::FloatTensor(mut tensor) => {
            tensor.make_contiguous();
            Value::FloatTensor(tensor)
        }
        Value::Int32Tensor(mut tensor) => {
            tensor.make_contiguous();
            Value::Int32Tensor(tensor)
        }
        Value::Int8Tensor(tensor) => Value::Int32Tensor(tensor.map(|&x| i32::from(x))),
        Value::UInt8Tensor(tensor) => Value::Int32Tensor(tensor.map(|&x| i32::from(x))),
        other => return Err(format!("an output of type {} cannot be read", other.dtype())),
    };
    Ok(widened)
}

/// Keeps a thread of the pool looking for work until the call is over. Left alone, it would go to sleep between any two
/// operators, and waking it costs more than many an operator does: tens of microseconds, on virtual machines hundreds.
fn stay_awake(done: &AtomicBool) {
    while !done.load(Ordering::Acquire) {
        if rayon::yield_now() != Some(rayon::Yield::Executed) {
            std::hint::spin_loop();
        }
    }
}

fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// One call in flight: its input buffers, its last outputs, and a runner for when it overlaps with others.
struct Slot {
    buffers: Vec<Buffer>,
    outputs: Vec<Output>,
    jobs: SyncSender<Vec<Buffer>>,
    done: Receiver<Done>,
}

/// An output value with its shape at hand.
struct Output {
    shape: Vec<usize>,
    value: Value,
}

struct RtenSession {
    engine: Arc<Engine>,
    slots: Vec<Slot>,
    output_names: Vec<String>,
    executed: String,
    threads: u32,
}

impl RtenSession {
    fn new(spec: &SessionSpec<'_>, specs: Vec<TensorSpec>) -> Result<RtenSession, BackendError> {
        let load_error = |reason: String| BackendError::Load { backend: NAME, reason };
        let mut options = ModelOptions::with_all_ops();
        options.prepack_weights(true);
        let model = load::load(&mut options, spec.model).map_err(load_error)?;
        let find = |name: &str| model.node_id(name).map_err(|e| load_error(e.to_string()));
        let input_ids = specs.iter().map(|s| find(&s.name)).collect::<Result<Vec<_>, _>>()?;
        let output_names: Vec<String> = spec.model.info.outputs.iter().map(|t| t.name.clone()).collect();
        let output_ids = output_names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
        let threads = spec.threads.max(1) as usize;
        // With more threads than CPUs, one that spins takes the time of one that works.
        let spin = threads > 1 && threads <= affinity::allowed().len();
        let pool = Arc::new(if spin { pinned_pool(threads) } else { ThreadPool::with_num_threads(threads) });
        let engine = Arc::new(Engine { model, input_ids, output_ids, specs, pool, threads, spin });
        let slots = (0..spec.slots.max(1)).map(|_| Slot::start(&engine)).collect();
        let executed = match spec.model.info.weights {
            Some(DType::I8 | DType::U8) => "int8 weights".to_owned(),
            _ => "fp32".to_owned(),
        };
        Ok(RtenSession { engine, slots, output_names, executed, threads: spec.threads.max(1) })
    }
}

/// A pool with each thread on a CPU of its own. Left to the scheduler, two threads that wake each other end up on one
/// CPU for hundreds of milliseconds while another idles, and a two-thread model runs at one thread's speed.
fn pinned_pool(threads: usize) -> ThreadPool {
    let pool = ThreadPool::with_num_threads(threads);
    let cpus = affinity::allowed();
    pool.run(|| {
        rayon::broadcast(|thread| {
            // Not being allowed to pin is no reason not to run.
            let _ = cpus.get(thread.index()).map(|&cpu| affinity::pin(&[cpu]));
        })
    });
    pool
}

impl Slot {
    fn start(engine: &Arc<Engine>) -> Slot {
        let buffer = |spec: &TensorSpec| match spec.dtype {
            DType::I32 => Buffer::I32(vec![0; spec.len()]),
            _ => Buffer::F32(vec![0.0; spec.len()]),
        };
        let (jobs, inbox) = sync_channel::<Vec<Buffer>>(1);
        let (outbox, done) = sync_channel::<Done>(1);
        let worker = Arc::clone(engine);
        thread::spawn(move || {
            for buffers in inbox {
                let outcome = worker.call(&buffers);
                if outbox.send(Done { buffers, outcome }).is_err() {
                    return;
                }
            }
        });
        Slot { buffers: engine.specs.iter().map(buffer).collect(), outputs: Vec::new(), jobs, done }
    }

    fn keep(&mut self, outcome: Result<(Vec<Value>, u64), String>) -> Result<Timing, BackendError> {
        let (values, inference_ns) = outcome.map_err(|reason| BackendError::Run { backend: NAME, reason })?;
        for (index, value) in values.into_iter().enumerate() {
            match self.outputs.get_mut(index) {
                Some(output) if output.shape == value.shape().as_slice() => output.value = value,
                Some(output) => *output = Output { shape: value.shape().to_vec(), value },
                None => self.outputs.push(Output { shape: value.shape().to_vec(), value }),
            }
        }
        Ok(Timing { h2d_ns: None, inference_ns, d2h_ns: None })
    }
}

impl Session for RtenSession {
    fn record(&self) -> BackendRecord {
        BackendRecord {
            name: NAME.into(),
            version: Some(env!("PRONY_RTEN_VERSION").to_owned()),
            device: Some("CPU".into()),
            threads: Some(self.threads),
            settings: if self.engine.spin { vec![SPINNING.to_owned()] } else { Vec::new() },
            ..BackendRecord::default()
        }
    }

    fn executed(&self) -> String {
        self.executed.clone()
    }

    fn inputs(&self) -> &[TensorSpec] {
        &self.engine.specs
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn input(&mut self, slot: usize, index: usize) -> SlotInput<'_> {
        match &mut self.slots[slot].buffers[index] {
            Buffer::F32(data) => SlotInput::F32(data),
            Buffer::I32(data) => SlotInput::I32(data),
        }
    }

    fn submit(&mut self, slot: usize) -> Result<(), BackendError> {
        let slot = &mut self.slots[slot];
        let buffers = std::mem::take(&mut slot.buffers);
        slot.jobs
            .send(buffers)
            .map_err(|_| BackendError::Run { backend: NAME, reason: "the runner thread is gone".into() })
    }

    fn collect(&mut self, slot: usize) -> Result<Timing, BackendError> {
        let slot = &mut self.slots[slot];
        let done = slot.done.recv().map_err(|_| BackendError::Run {
            backend: NAME,
            reason: "the runner thread panicked; see the cell's log".into(),
        })?;
        slot.buffers = done.buffers;
        slot.keep(done.outcome)
    }

    fn run(&mut self, slot: usize) -> Result<Timing, BackendError> {
        let slot = &mut self.slots[slot];
        let outcome = self.engine.call(&slot.buffers);
        slot.keep(outcome)
    }

    fn output_count(&self) -> usize {
        self.output_names.len()
    }

    fn output(&self, slot: usize, index: usize) -> TensorView<'_> {
        let output = self.slots[slot].outputs.get(index);
        let data = output.and_then(|output| match &output.value {
            Value::FloatTensor(tensor) => tensor.data().map(TensorData::F32),
            Value::Int32Tensor(tensor) => tensor.data().map(TensorData::I32),
            _ => None,
        });
        let shape = output.map_or(&[][..], |output| output.shape.as_slice());
        TensorView { name: &self.output_names[index], shape, data: data.unwrap_or(TensorData::F32(&[])) }
    }
}
