//! NVIDIA's driver, as far as Prony needs it: a device with its primary context, memory on both sides, streams, the marks
//! that tell how long each part took, and the budget that memory comes out of.
#![expect(unsafe_code, reason = "calls of the CUDA driver; each block says why it holds")]

mod budget;
mod error;
mod memory;
mod process;
mod stream;

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use cudarc::driver::{result, sys};
use prony_types::DeviceUse;

pub use self::budget::{Budget, Reserved};
pub use self::error::{DriverStatus, GpuError};
pub use self::memory::{DeviceMemory, Pinned};
pub use self::stream::{Graph, Marks, Stream, Wait};

/// Longest name of a place on the bus, with its zero.
const BUS_ID: usize = 32;

/// A GPU in use by this process. Clones are the same GPU.
#[derive(Clone, Debug)]
pub struct Gpu(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    number: i32,
    context: sys::CUcontext,
    name: String,
    compute: (u32, u32),
    sms: u32,
    driver: u32,
    integrated: bool,
    bus_id: Option<String>,
    /// Free memory when only the context was there.
    free_at_first: u64,
}

// SAFETY: a context may be made current in any thread, and the primary one is never given back: libraries free their
// memory in it when the process ends, and abort without it.
unsafe impl Send for Handle {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Handle {}

/// Memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Nobody's.
    pub free_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

impl Gpu {
    /// Opens a GPU by number and makes its context current; says in one line why it cannot.
    pub fn open(number: u32) -> Result<Gpu, GpuError> {
        // SAFETY: only looks for the library.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuError::NoDriver);
        }
        result::init().map_err(|e| GpuError::Start(e.into()))?;
        let count = result::device::get_count()?;
        let ordinal = i32::try_from(number).ok().filter(|&n| n < count);
        let ordinal = ordinal.ok_or(GpuError::NoSuchGpu { number, count })?;
        let device = result::device::get(ordinal)?;
        // SAFETY: the device was just given by the driver; the context is retained until the process ends.
        let context = unsafe {
            let context = result::primary_ctx::retain(device)?;
            result::ctx::set_current(context)?;
            context
        };
        use sys::CUdevice_attribute as Attribute;
        // SAFETY: the device was given by the driver.
        let attribute = |attribute| unsafe { result::device::get_attribute(device, attribute) }.map_err(GpuError::from);
        let number_of = |value: i32| u32::try_from(value).unwrap_or(0);
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let integrated = attribute(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0;
        let maps = attribute(Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)? != 0;
        Ok(Gpu(Arc::new(Handle {
            number: ordinal,
            context,
            name: result::device::get_name(device)?,
            compute: (number_of(major), number_of(minor)),
            sms: number_of(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?),
            driver: driver_version()?,
            integrated: integrated && maps,
            bus_id: bus_id(device),
            free_at_first: result::mem_get_info()?.0 as u64,
        })))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its number, as libraries count.
    pub fn number(&self) -> i32 {
        self.0.number
    }

    /// Compute capability, major and minor.
    pub fn compute(&self) -> (u32, u32) {
        self.0.compute
    }

    /// Multiprocessors.
    pub fn sms(&self) -> u32 {
        self.0.sms
    }

    /// The newest CUDA that the driver can do, e.g. 12040.
    pub fn driver(&self) -> u32 {
        self.0.driver
    }

    /// Whether host and device share their memory, so that nothing must be copied.
    pub fn integrated(&self) -> bool {
        self.0.integrated
    }

    /// Makes its context current in this thread. Whoever calls from a thread that this module did not open does it first.
    pub fn bind(&self) -> Result<(), GpuError> {
        // SAFETY: the primary context, which is never given back.
        unsafe { result::ctx::set_current(self.0.context) }.map_err(GpuError::from)
    }

    /// Its memory now, all processes counted.
    pub fn memory(&self) -> Result<Memory, GpuError> {
        self.bind()?;
        let (free, total) = result::mem_get_info()?;
        Ok(Memory { free_bytes: free as u64, total_bytes: total as u64 })
    }

    /// Memory that went away on this GPU since it was opened, without the context itself. What other processes took or
    /// gave back meanwhile is in it, so it is asked for while none of ours does.
    pub fn used_bytes(&self) -> Option<u64> {
        Some(self.0.free_at_first.saturating_sub(self.memory().ok()?.free_bytes))
    }

    /// What the driver says this process holds, context and kernels included; `None` where it does not say.
    pub fn process_bytes(&self) -> Option<u64> {
        process::held_bytes(self.0.bus_id.as_deref()?)
    }

    /// What is used of its memory, by every count there is.
    pub fn usage(&self, budget: &Budget) -> DeviceUse {
        DeviceUse {
            taken_bytes: self.used_bytes(),
            allocator_peak_bytes: Some(budget.peak()),
            process_bytes: self.process_bytes(),
            hard_limit: budget.limit().is_some(),
            unified: self.integrated(),
            violations: budget.violations(),
        }
    }
}

fn driver_version() -> Result<u32, GpuError> {
    let mut version = 0;
    // SAFETY: the pointer is to a number that outlives the call.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    Ok(u32::try_from(version).unwrap_or(0))
}

/// Its place on the bus, which NVML knows it by; numbers need not be the same there.
fn bus_id(device: sys::CUdevice) -> Option<String> {
    let mut id: [c_char; BUS_ID] = [0; BUS_ID];
    // SAFETY: so many bytes are there, and they outlive the call.
    unsafe { sys::cuDeviceGetPCIBusId(id.as_mut_ptr(), BUS_ID as i32, device) }.result().ok()?;
    id[BUS_ID - 1] = 0;
    // SAFETY: the last byte is a zero, so the string ends within the buffer.
    Some(unsafe { CStr::from_ptr(id.as_ptr()) }.to_string_lossy().into_owned())
}

/// Whether the driver has a function. Asked for those that are younger than the oldest driver that may be met, because a
/// call of one that is missing panics.
fn has(symbol: &str) -> bool {
    // SAFETY: the library is there, or no `Gpu` would be; the symbol is looked for and not called.
    unsafe { sys::culib().get::<*const ()>(symbol.as_bytes()).is_ok() }
}
