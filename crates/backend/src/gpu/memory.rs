//! Memory of a GPU, and memory of the host that it can reach.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use half::{bf16, f16};
use prony_types::{DType, TensorSpec};

use super::{Budget, DriverStatus, Gpu, GpuError, Reserved};
use crate::SlotInput;
use crate::buffer::{Raw, element_bytes};

/// Memory on a GPU; goes back when this is dropped.
#[derive(Debug)]
pub struct DeviceMemory {
    pointer: sys::CUdeviceptr,
    bytes: usize,
    gpu: Gpu,
    _reserved: Option<Reserved>,
}

impl Gpu {
    /// Memory on the GPU that no budget counts.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceMemory, GpuError> {
        self.allocate_reserved(bytes, None)
    }

    /// Memory on the GPU out of a budget.
    pub fn allocate_within(&self, budget: &Arc<Budget>, bytes: usize) -> Result<DeviceMemory, GpuError> {
        let reserved = budget.reserve(bytes as u64)?;
        self.allocate_reserved(bytes, Some(reserved))
    }

    fn allocate_reserved(&self, bytes: usize, reserved: Option<Reserved>) -> Result<DeviceMemory, GpuError> {
        self.bind()?;
        // SAFETY: the context is current; the memory is freed by its owner's drop.
        let pointer = unsafe { result::malloc_sync(bytes.max(1)) };
        let pointer =
            pointer.map_err(|e| GpuError::DeviceMemory { bytes: bytes as u64, reason: DriverStatus::from(e).text })?;
        Ok(DeviceMemory { pointer, bytes, gpu: self.clone(), _reserved: reserved })
    }

    /// Page-locked memory on the host, which can be copied from and to while the host does something else.
    pub fn pinned(&self, bytes: usize) -> Result<Pinned, GpuError> {
        self.pinned_with(bytes, 0, None)
    }

    /// Page-locked memory on the host that the GPU works in itself. It is counted in the budget: on the GPUs that this
    /// is for, all memory is one.
    pub fn mapped(&self, budget: &Arc<Budget>, bytes: usize) -> Result<Pinned, GpuError> {
        let reserved = budget.reserve(bytes as u64)?;
        let mut pinned = self.pinned_with(bytes, sys::CU_MEMHOSTALLOC_DEVICEMAP, Some(reserved))?;
        // SAFETY: the memory was made mapped in the context that is current.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut pinned.on_device, pinned.pointer, 0) }.result()?;
        Ok(pinned)
    }

    fn pinned_with(&self, bytes: usize, flags: u32, reserved: Option<Reserved>) -> Result<Pinned, GpuError> {
        self.bind()?;
        // SAFETY: the context is current; what a fresh buffer holds is cleared, so that it is initialised.
        let pointer = unsafe {
            let pointer = result::malloc_host(bytes.max(1), flags);
            let pointer = pointer.map_err(|e| GpuError::HostMemory { bytes, reason: e.into() })?;
            std::ptr::write_bytes(pointer.cast::<u8>(), 0, bytes.max(1));
            pointer
        };
        Ok(Pinned { pointer, on_device: 0, bytes, gpu: self.clone(), _reserved: reserved })
    }
}

impl DeviceMemory {
    /// Where it is.
    pub fn pointer(&self) -> *mut c_void {
        self.pointer as *mut c_void
    }

    /// How much it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies from the host to its beginning, and returns when that is done.
    pub fn fill(&mut self, from: &[u8]) -> Result<(), GpuError> {
        if from.len() > self.bytes {
            return Err(GpuError::DoesNotFit { bytes: from.len(), there: self.bytes });
        }
        self.gpu.bind()?;
        // SAFETY: so many bytes fit, as was just seen, and `from` outlives the call, which ends with the copy.
        unsafe { result::memcpy_htod_sync(self.pointer, from) }.map_err(GpuError::from)
    }

    /// Copies its beginning to the host, and returns when that is done.
    pub fn read(&self, into: &mut [u8]) -> Result<(), GpuError> {
        if into.len() > self.bytes {
            return Err(GpuError::TooShort { bytes: into.len(), there: self.bytes });
        }
        self.gpu.bind()?;
        // SAFETY: as many bytes are there, as was just seen, and `into` outlives the call, which ends with the copy.
        unsafe { result::memcpy_dtoh_sync(into, self.pointer) }.map_err(GpuError::from)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let _ = self.gpu.bind();
        // SAFETY: made by `allocate_reserved`, freed once.
        let _ = unsafe { result::free_sync(self.pointer) };
    }
}

/// Page-locked host memory.
#[derive(Debug)]
pub struct Pinned {
    pointer: *mut c_void,
    /// Where the GPU sees it; 0 where it does not.
    on_device: sys::CUdeviceptr,
    bytes: usize,
    gpu: Gpu,
    _reserved: Option<Reserved>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.gpu.bind();
        // SAFETY: made by `pinned_with`, freed once.
        let _ = unsafe { result::free_host(self.pointer) };
    }
}

impl Pinned {
    /// How much it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it is on the host.
    pub fn pointer(&self) -> *const c_void {
        self.pointer
    }

    /// Where the GPU sees it, if it was made mapped.
    pub fn on_device(&self) -> Option<*mut c_void> {
        (self.on_device != 0).then_some(self.on_device as *mut c_void)
    }

    /// All of it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are there and were cleared when they were made.
        unsafe { std::slice::from_raw_parts(self.pointer.cast(), self.bytes) }
    }

    /// Its beginning, to be written.
    pub(super) fn first_mut(&mut self, bytes: usize) -> &mut [u8] {
        // SAFETY: as above; `&mut self` keeps others away.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.cast(), bytes.min(self.bytes)) }
    }

    /// The memory as an input of that type.
    pub(crate) fn as_input(&mut self, spec: &TensorSpec) -> SlotInput<'_> {
        let size = element_bytes(spec.dtype).unwrap_or(1);
        let n = spec.len().min(self.bytes / size);
        // SAFETY: `n` elements fit; page-locked memory is aligned to a page and was cleared when it was made; every
        // bit pattern is a value of these types; `&mut self` keeps others away.
        unsafe {
            match spec.dtype {
                DType::F32 => SlotInput::F32(std::slice::from_raw_parts_mut(self.pointer.cast(), n)),
                DType::F16 => SlotInput::F16(std::slice::from_raw_parts_mut(self.pointer.cast::<f16>(), n)),
                DType::Bf16 => SlotInput::Bf16(std::slice::from_raw_parts_mut(self.pointer.cast::<bf16>(), n)),
                DType::F64 => SlotInput::F64(std::slice::from_raw_parts_mut(self.pointer.cast(), n)),
                DType::I8 => SlotInput::I8(std::slice::from_raw_parts_mut(self.pointer.cast(), n)),
                DType::I32 => SlotInput::I32(std::slice::from_raw_parts_mut(self.pointer.cast(), n)),
                DType::I64 => SlotInput::I64(std::slice::from_raw_parts_mut(self.pointer.cast(), n)),
                DType::U8 | DType::Bool | DType::Other => {
                    SlotInput::U8(std::slice::from_raw_parts_mut(self.pointer.cast(), n))
                }
            }
        }
    }

    /// The memory as an output of that type with so many elements; `None` for a type that has no size here.
    pub(crate) fn as_output(&self, dtype: DType, elements: usize) -> Option<Raw<'_>> {
        let n = elements.min(self.bytes / element_bytes(dtype)?);
        // SAFETY: as for `as_input`, and nothing writes while it is borrowed: the slot that owns it is not in flight.
        Some(unsafe {
            match dtype {
                DType::F32 => Raw::F32(std::slice::from_raw_parts(self.pointer.cast(), n)),
                DType::F16 => Raw::F16(std::slice::from_raw_parts(self.pointer.cast::<f16>(), n)),
                DType::Bf16 => Raw::Bf16(std::slice::from_raw_parts(self.pointer.cast::<bf16>(), n)),
                DType::F64 => Raw::F64(std::slice::from_raw_parts(self.pointer.cast(), n)),
                DType::I8 => Raw::I8(std::slice::from_raw_parts(self.pointer.cast(), n)),
                DType::U8 | DType::Bool => Raw::U8(std::slice::from_raw_parts(self.pointer.cast(), n)),
                DType::I32 => Raw::I32(std::slice::from_raw_parts(self.pointer.cast(), n)),
                DType::I64 => Raw::I64(std::slice::from_raw_parts(self.pointer.cast(), n)),
                DType::Other => return None,
            }
        })
    }
}
