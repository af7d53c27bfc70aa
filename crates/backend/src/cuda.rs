//! NVIDIA's driver, as far as a session needs it: a device with its primary context and one stream of ours, memory on both
//! sides, and events that tell how long each part took.
#![expect(unsafe_code, reason = "calls of the CUDA driver; each block says why it holds")]

use std::ffi::c_void;
use std::rc::Rc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use half::{bf16, f16};
use prony_types::{DType, TensorSpec};

use crate::SlotInput;
use crate::buffer::element_bytes;

/// The driver's word for an error, and what it means.
fn words(error: DriverError) -> String {
    let text = |name: Result<&std::ffi::CStr, DriverError>| {
        name.map_or_else(|_| format!("{:?}", error.0), |name| name.to_string_lossy().into_owned())
    };
    format!("{}: {}", text(error.error_name()), text(error.error_string()))
}

/// A GPU in use by this process.
pub(crate) struct Device(Rc<Handle>);

struct Handle {
    number: i32,
    stream: sys::CUstream,
    name: String,
    /// Free memory when only the context was there.
    free_at_first: usize,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The primary context stays: libraries free their memory in it when the process ends, and abort without it.
        // SAFETY: made in `open` and given back once; everything that used it holds an `Rc` to this.
        unsafe {
            let _ = result::stream::destroy(self.stream);
        }
    }
}

impl Device {
    /// Opens a GPU by number; says in one line why it cannot.
    pub(crate) fn open(number: u32) -> Result<Device, String> {
        // SAFETY: only looks for the library.
        if !unsafe { sys::is_culib_present() } {
            return Err("no NVIDIA driver: libcuda.so.1 cannot be opened; install the driver".into());
        }
        result::init().map_err(|e| format!("the NVIDIA driver does not start: {}", words(e)))?;
        let count = result::device::get_count().map_err(words)?;
        let ordinal = i32::try_from(number).ok().filter(|&n| n < count);
        let ordinal = ordinal.ok_or_else(|| format!("there is no GPU {number}; there are {count}, numbered from 0"))?;
        let device = result::device::get(ordinal).map_err(words)?;
        // SAFETY: the device was just given by the driver; the context is retained until the process ends.
        unsafe {
            let context = result::primary_ctx::retain(device).map_err(words)?;
            result::ctx::set_current(context).map_err(words)?;
        }
        let free_at_first = result::mem_get_info().map_err(words)?.0;
        let name = result::device::get_name(device).map_err(words)?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(words)?;
        Ok(Device(Rc::new(Handle { number: ordinal, stream, name, free_at_first })))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// Its number, as libraries count.
    pub(crate) fn number(&self) -> i32 {
        self.0.number
    }

    /// The stream, as libraries take it.
    pub(crate) fn stream_pointer(&self) -> *mut () {
        self.0.stream.cast()
    }

    /// Memory that went away on this GPU since it was opened, without the context itself. What other processes took or
    /// gave back meanwhile is in it, so it is asked for while none of ours does.
    pub(crate) fn used_bytes(&self) -> Option<u64> {
        let (free, _) = result::mem_get_info().ok()?;
        Some(self.0.free_at_first.saturating_sub(free) as u64)
    }

    /// Four marks on the stream.
    pub(crate) fn marks(&self) -> Result<Marks, String> {
        let mut marks = Marks { events: Vec::with_capacity(4), device: Rc::clone(&self.0) };
        for _ in 0..4 {
            marks.events.push(result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(words)?);
        }
        Ok(marks)
    }

    /// Memory on the GPU.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<DeviceMemory, String> {
        // SAFETY: the context is current; the memory is freed by its owner's drop.
        let pointer = unsafe { result::malloc_sync(bytes.max(1)) }.map_err(words)?;
        Ok(DeviceMemory { pointer, _device: Rc::clone(&self.0) })
    }

    /// Page-locked memory on the host, which can be copied from and to while the host does something else.
    pub(crate) fn pinned(&self, bytes: usize) -> Result<Pinned, String> {
        // SAFETY: as above; what a fresh buffer holds is cleared, so that it is initialised.
        let pointer = unsafe {
            let pointer = result::malloc_host(bytes.max(1), 0).map_err(words)?;
            std::ptr::write_bytes(pointer.cast::<u8>(), 0, bytes.max(1));
            pointer
        };
        Ok(Pinned { pointer, bytes, _device: Rc::clone(&self.0) })
    }

    /// Starts a copy to the GPU.
    pub(crate) fn upload(&self, from: &Pinned, to: &DeviceMemory) -> Result<(), String> {
        // SAFETY: `to` was made with at least as many bytes; both live until the stream was waited for, because the
        // slot that owns them is not touched while it is in flight.
        unsafe {
            let bytes = std::slice::from_raw_parts(from.pointer.cast::<u8>(), from.bytes);
            result::memcpy_htod_async(to.pointer, bytes, self.0.stream).map_err(words)
        }
    }

    /// Starts a copy of `bytes` from the GPU.
    pub(crate) fn download(&self, from: *const c_void, to: &mut Pinned, bytes: usize) -> Result<(), String> {
        debug_assert!(bytes <= to.bytes);
        // SAFETY: `from` is memory of this GPU with at least `bytes`, made in order on this stream; see also `upload`.
        unsafe {
            let target = std::slice::from_raw_parts_mut(to.pointer.cast::<u8>(), bytes.min(to.bytes));
            result::memcpy_dtoh_async(target, from as sys::CUdeviceptr, self.0.stream).map_err(words)
        }
    }
}

/// Events around the parts of a call.
pub(crate) struct Marks {
    events: Vec<sys::CUevent>,
    device: Rc<Handle>,
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
    pub(crate) fn set(&self, index: usize) -> Result<(), String> {
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(self.events[index], self.device.stream) }.map_err(words)
    }

    /// Waits until the stream has passed the last mark.
    pub(crate) fn wait(&self) -> Result<(), String> {
        // SAFETY: the event is alive.
        unsafe { result::event::synchronize(self.events[3]) }.map_err(words)
    }

    /// Time between a mark and the next.
    pub(crate) fn between_ns(&self, index: usize) -> Result<u64, String> {
        // SAFETY: both were recorded, and the later one was waited for.
        let ms = unsafe { result::event::elapsed(self.events[index], self.events[index + 1]) }.map_err(words)?;
        Ok((f64::from(ms) * 1e6) as u64)
    }
}

/// Memory on the GPU.
pub(crate) struct DeviceMemory {
    pointer: sys::CUdeviceptr,
    _device: Rc<Handle>,
}

impl DeviceMemory {
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer as *mut c_void
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: made by `allocate`, freed once.
        let _ = unsafe { result::free_sync(self.pointer) };
    }
}

/// Page-locked host memory.
pub(crate) struct Pinned {
    pointer: *mut c_void,
    bytes: usize,
    _device: Rc<Handle>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: made by `pinned`, freed once.
        let _ = unsafe { result::free_host(self.pointer) };
    }
}

impl Pinned {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn pointer(&self) -> *const c_void {
        self.pointer
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
}
