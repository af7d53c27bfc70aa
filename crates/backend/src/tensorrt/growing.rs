//! Outputs whose size only the data decide: TensorRT asks for their memory while it computes, and tells their shape.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prony_nvinfer::{OutputAllocator, OutputMemory};

use crate::gpu::{Budget, DeviceMemory, Gpu, GpuError};

/// The memory of one such output, which only grows.
pub(super) struct Growing {
    gpu: Gpu,
    budget: Arc<Budget>,
    state: Mutex<State>,
}

struct State {
    memory: DeviceMemory,
    shape: Vec<usize>,
}

impl Growing {
    /// Memory for an output, of `bytes` at first.
    pub(super) fn new(gpu: &Gpu, budget: &Arc<Budget>, bytes: usize) -> Result<Arc<Growing>, GpuError> {
        let memory = gpu.allocate_within(budget, bytes)?;
        let state = Mutex::new(State { memory, shape: Vec::new() });
        Ok(Arc::new(Growing { gpu: gpu.clone(), budget: Arc::clone(budget), state }))
    }

    /// What TensorRT is given.
    pub(super) fn allocator(self: &Arc<Growing>) -> OutputAllocator {
        OutputAllocator::new(Arc::clone(self) as Arc<dyn OutputMemory>)
    }

    /// Where the output is now, how much there is, and its shape.
    pub(super) fn now(&self) -> (*const c_void, usize, Vec<usize>) {
        let state = self.state();
        (state.memory.pointer(), state.memory.bytes(), state.shape.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputMemory for Growing {
    fn reallocate(&self, tensor: &str, _current: *mut c_void, bytes: u64, _alignment: u64) -> *mut c_void {
        let mut state = self.state();
        let Ok(bytes) = usize::try_from(bytes) else { return null_mut() };
        if bytes > state.memory.bytes() {
            match self.gpu.allocate_within(&self.budget, bytes) {
                Ok(memory) => state.memory = memory,
                Err(reason) => {
                    tracing::error!("output `{tensor}`: {reason}");
                    return null_mut();
                }
            }
        }
        state.memory.pointer()
    }

    fn shape(&self, _tensor: &str, dims: &[i64]) {
        let mut state = self.state();
        state.shape.clear();
        state.shape.extend(dims.iter().map(|&size| usize::try_from(size).unwrap_or(0)));
    }
}
