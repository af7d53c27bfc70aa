//! Device memory of this process by NVML's word.

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

/// As many processes as are asked for; a GPU with more is not one to measure on.
const MOST: usize = 256;
/// What NVML says where it does not know.
const UNKNOWN: c_ulonglong = c_ulonglong::MAX;

/// `nvmlProcessInfo_t` of the functions with `_v2` and `_v3`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ProcessInfo {
    pid: c_uint,
    used: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

type Init = unsafe extern "C" fn() -> c_int;
type ByBusId = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
type Processes = unsafe extern "C" fn(*mut c_void, *mut c_uint, *mut ProcessInfo) -> c_int;

/// What this process holds on the GPU at that place of the bus.
pub(super) fn held_bytes(bus_id: &str) -> Option<u64> {
    find(&processes(bus_id)?, std::process::id())
}

/// The entry of a process. In a container the numbers are those of another world; but this process uses the GPU, so a
/// list of one is its own.
fn find(processes: &[(u32, u64)], pid: u32) -> Option<u64> {
    let own = processes.iter().find(|(number, _)| *number == pid);
    let only = match processes {
        [only] => Some(only),
        _ => None,
    };
    own.or(only).map(|(_, used)| *used).filter(|&used| used != UNKNOWN)
}

/// Every process that computes on a GPU, with the memory that it holds.
fn processes(bus_id: &str) -> Option<Vec<(u32, u64)>> {
    let bus_id = CString::new(bus_id).ok()?;
    // SAFETY: NVML runs nothing of ours when it is opened. It stays open: it is asked a few times a process.
    let library = Box::leak(Box::new(unsafe { Library::new("libnvidia-ml.so.1") }.ok()?));
    // SAFETY: the types are those of nvml.h.
    let (init, by_bus_id, running) = unsafe {
        let running = library.get::<Processes>(b"nvmlDeviceGetComputeRunningProcesses_v3");
        (
            library.get::<Init>(b"nvmlInit_v2").ok()?,
            library.get::<ByBusId>(b"nvmlDeviceGetHandleByPciBusId_v2").ok()?,
            running.or_else(|_| library.get::<Processes>(b"nvmlDeviceGetComputeRunningProcesses_v2")).ok()?,
        )
    };
    let mut device = std::ptr::null_mut();
    let mut infos = [ProcessInfo::default(); MOST];
    let mut count = MOST as c_uint;
    // SAFETY: the text ends with a zero, the device is set by NVML before it is used, and there is room for as many
    // entries as `count` says.
    let answered = unsafe {
        init() == 0
            && by_bus_id(bus_id.as_ptr(), &raw mut device) == 0
            && running(device, &raw mut count, infos.as_mut_ptr()) == 0
    };
    let infos = infos.get(..count as usize).filter(|_| answered)?;
    Some(infos.iter().map(|info| (info.pid, info.used)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_number_or_by_being_alone() {
        assert_eq!(find(&[(7, 100), (8, 200)], 8), Some(200));
        assert_eq!(find(&[(7, 100)], 8), Some(100), "numbers of another world");
        assert_eq!(find(&[(7, 100), (9, 200)], 8), None);
        assert_eq!(find(&[], 8), None);
        assert_eq!(find(&[(8, UNKNOWN)], 8), None);
    }
}
