//! Work in order on a GPU: streams, marks between its parts, and work that was recorded once and is launched whole.

use std::ffi::c_void;

use cudarc::driver::{result, sys};

use super::{DeviceMemory, Gpu, GpuError, Pinned, has};

/// Work in order.
#[derive(Debug)]
pub struct Stream {
    stream: sys::CUstream,
    _gpu: Gpu,
}

impl Gpu {
    /// A stream of our own, which waits for no other.
    pub fn stream(&self) -> Result<Stream, GpuError> {
        self.bind()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        Ok(Stream { stream, _gpu: self.clone() })
    }

    /// So many marks, not yet set.
    pub fn marks(&self, count: usize, wait: Wait) -> Result<Marks, GpuError> {
        self.bind()?;
        let mut marks = Marks { events: Vec::with_capacity(count), wait };
        let flags = match wait {
            Wait::Spin => sys::CUevent_flags::CU_EVENT_DEFAULT,
            Wait::Block => sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC,
        };
        for _ in 0..count {
            marks.events.push(result::event::create(flags)?);
        }
        Ok(marks)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made by `stream` and given back once; the driver finishes what is on it.
        let _ = unsafe { result::stream::destroy(self.stream) };
    }
}

impl Stream {
    /// The stream, as libraries take it.
    pub fn pointer(&self) -> *mut c_void {
        self.stream.cast()
    }

    /// Starts a copy to the GPU.
    pub(crate) fn upload(&self, from: &Pinned, to: &DeviceMemory) -> Result<(), GpuError> {
        let bytes = &from.as_bytes()[..from.bytes().min(to.bytes())];
        // SAFETY: so many bytes are on both sides; both live until the stream was waited for, because the slot that
        // owns them is not touched while it is in flight.
        unsafe { result::memcpy_htod_async(to.pointer() as sys::CUdeviceptr, bytes, self.stream) }
            .map_err(GpuError::from)
    }

    /// Starts a copy of `bytes` from the GPU.
    pub(crate) fn download(&self, from: *const c_void, to: &mut Pinned, bytes: usize) -> Result<(), GpuError> {
        debug_assert!(bytes <= to.bytes());
        // SAFETY: `from` is memory of this GPU with at least `bytes`, made in order on this stream; see also `upload`.
        unsafe { result::memcpy_dtoh_async(to.first_mut(bytes), from as sys::CUdeviceptr, self.stream) }
            .map_err(GpuError::from)
    }

    /// Has everything that comes later on this stream wait for a mark of another.
    pub(crate) fn wait_for(&self, marks: &Marks, index: usize) -> Result<(), GpuError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: stream and event are alive.
        unsafe { result::stream::wait_event(self.stream, marks.events[index], flags) }.map_err(GpuError::from)
    }

    /// Waits until nothing is left on it.
    pub fn finish(&self) -> Result<(), GpuError> {
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.stream) }.map_err(GpuError::from)
    }

    /// Records what `enqueue` puts on this stream instead of doing it. Whatever happens, the stream records no more
    /// afterwards.
    pub(crate) fn capture(&self, enqueue: impl FnOnce() -> Result<(), GpuError>) -> Result<Graph, GpuError> {
        for symbol in ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch"]
        {
            if !has(symbol) {
                return Err(GpuError::NoFunction(symbol));
            }
        }
        // Other threads may go on as they like.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive and belongs to this thread.
        unsafe { result::stream::begin_capture(self.stream, mode) }?;
        let enqueued = enqueue();
        let mut graph: sys::CUgraph = std::ptr::null_mut();
        // SAFETY: recording was begun above; the pointer is to a graph that outlives the call.
        let ended = unsafe { sys::cuStreamEndCapture(self.stream, &raw mut graph) }.result();
        let recorded = enqueued.and_then(|()| ended.map_err(GpuError::from));
        if graph.is_null() {
            return recorded.and_then(|()| Err(GpuError::NothingRecorded));
        }
        let mut exec: sys::CUgraphExec = std::ptr::null_mut();
        let made = recorded.and_then(|()| {
            // SAFETY: the graph was just given by the driver; the pointer is to a handle that outlives the call.
            unsafe { sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, 0) }.result().map_err(GpuError::from)
        });
        // SAFETY: given by the driver and destroyed once; what was made of it stands alone.
        let _ = unsafe { sys::cuGraphDestroy(graph) }.result();
        made.map(|()| Graph { exec })
    }

    /// Starts work that was recorded.
    pub(crate) fn launch(&self, graph: &Graph) -> Result<(), GpuError> {
        // SAFETY: graph and stream are alive, and so is the memory that was recorded in it: it belongs to the session.
        unsafe { result::graph::launch(graph.exec, self.stream) }.map_err(GpuError::from)
    }
}

/// Work that was recorded once.
#[derive(Debug)]
pub struct Graph {
    exec: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `capture`, destroyed once.
        let _ = unsafe { sys::cuGraphExecDestroy(self.exec) }.result();
    }
}

/// How the host waits for the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Asking again and again: the shortest latency, and a busy core.
    #[default]
    Spin,
    /// Asleep until the driver wakes it.
    Block,
}

/// Events around the parts of a call.
#[derive(Debug)]
pub struct Marks {
    events: Vec<sys::CUevent>,
    wait: Wait,
}

impl Drop for Marks {
    fn drop(&mut self) {
        for &event in &self.events {
            // SAFETY: made in `marks`, destroyed once.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

impl Marks {
    /// Sets a mark behind everything that is on the stream now.
    pub(crate) fn set(&self, index: usize, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(self.events[index], stream.stream) }.map_err(GpuError::from)
    }

    /// Waits until a mark was passed.
    pub(crate) fn wait(&self, index: usize) -> Result<(), GpuError> {
        let event = self.events[index];
        if self.wait == Wait::Block {
            // SAFETY: the event is alive.
            return unsafe { result::event::synchronize(event) }.map_err(GpuError::from);
        }
        loop {
            // SAFETY: the event is alive.
            match unsafe { sys::cuEventQuery(event) } {
                sys::CUresult::CUDA_ERROR_NOT_READY => std::hint::spin_loop(),
                answer => return answer.result().map_err(GpuError::from),
            }
        }
    }

    /// Time from a mark to a later one.
    pub(crate) fn between_ns(&self, from: usize, to: usize) -> Result<u64, GpuError> {
        // SAFETY: both were recorded, and the later one was waited for.
        let ms = unsafe { result::event::elapsed(self.events[from], self.events[to]) }?;
        Ok((f64::from(ms) * 1e6) as u64)
    }
}
