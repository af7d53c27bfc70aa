//! The driver of NVIDIA's GPUs, and the GPUs.

use std::ffi::{c_char, c_int, c_uint};

use prony_types::GpuRecord;

use super::Answer;
use super::library::{OpenLibrary, text};
use super::nvidia::cuda_version;

/// Longest name of a device that is asked for, with its zero.
const NAME: usize = 256;
const CLOCK_RATE: c_int = 13;
const MULTIPROCESSOR_COUNT: c_int = 16;
const INTEGRATED: c_int = 18;
const MEMORY_CLOCK_RATE: c_int = 36;
const GLOBAL_MEMORY_BUS_WIDTH: c_int = 37;
const L2_CACHE_SIZE: c_int = 38;
const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
const COMPUTE_CAPABILITY_MINOR: c_int = 76;

/// The driver's functions, with the types of cuda.h. None of those called makes a context.
struct Driver {
    init: unsafe extern "C" fn(c_uint) -> c_int,
    version: unsafe extern "C" fn(*mut c_int) -> c_int,
    count: unsafe extern "C" fn(*mut c_int) -> c_int,
    device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    memory: unsafe extern "C" fn(*mut usize, c_int) -> c_int,
    error_name: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
    error_string: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
}

pub(super) fn ask(library: &OpenLibrary) -> Result<Answer, String> {
    let driver = Driver::new(library)?;
    driver.init()?;
    let gpus: Vec<GpuRecord> = (0..driver.count()?).map(|index| driver.gpu(index)).collect::<Result<_, _>>()?;
    if gpus.is_empty() {
        return Err("the driver sees no GPU".to_owned());
    }
    Ok(Answer { gpus, ..Answer::version(driver.version()?) })
}

#[expect(unsafe_code, reason = "the driver's C interface")]
impl Driver {
    fn new(library: &OpenLibrary) -> Result<Driver, String> {
        // SAFETY: the types are those of cuda.h, for the symbols that its macros stand for.
        unsafe {
            Ok(Driver {
                init: library.function("cuInit")?,
                version: library.function("cuDriverGetVersion")?,
                count: library.function("cuDeviceGetCount")?,
                device: library.function("cuDeviceGet")?,
                name: library.function("cuDeviceGetName")?,
                attribute: library.function("cuDeviceGetAttribute")?,
                memory: library.function("cuDeviceTotalMem_v2")?,
                error_name: library.function("cuGetErrorName")?,
                error_string: library.function("cuGetErrorString")?,
            })
        }
    }

    fn init(&self) -> Result<(), String> {
        // SAFETY: the one argument must be 0.
        self.check("cuInit", unsafe { (self.init)(0) })
    }

    /// The newest CUDA that the driver can do.
    fn version(&self) -> Result<String, String> {
        let mut version = 0;
        // SAFETY: the pointer is to a number that outlives the call.
        self.check("cuDriverGetVersion", unsafe { (self.version)(&raw mut version) })?;
        Ok(cuda_version(version))
    }

    fn count(&self) -> Result<c_int, String> {
        let mut count = 0;
        // SAFETY: the pointer is to a number that outlives the call.
        self.check("cuDeviceGetCount", unsafe { (self.count)(&raw mut count) })?;
        Ok(count)
    }

    fn gpu(&self, index: c_int) -> Result<GpuRecord, String> {
        let mut device = 0;
        // SAFETY: the index is below the count, the pointer to a number that outlives the call.
        self.check("cuDeviceGet", unsafe { (self.device)(&raw mut device, index) })?;
        let mut name: [c_char; NAME] = [0; NAME];
        // SAFETY: so many bytes are there, and they outlive the call.
        self.check("cuDeviceGetName", unsafe { (self.name)(name.as_mut_ptr(), NAME as c_int, device) })?;
        name[NAME - 1] = 0;
        let mut bytes = 0;
        // SAFETY: the pointer is to a size that outlives the call.
        let known = unsafe { (self.memory)(&raw mut bytes, device) } == 0;
        let compute = (
            self.attribute(COMPUTE_CAPABILITY_MAJOR, device), //
            self.attribute(COMPUTE_CAPABILITY_MINOR, device),
        );
        let count = |attribute| self.attribute(attribute, device).and_then(|n| u64::try_from(n).ok());
        Ok(GpuRecord {
            // SAFETY: the last byte is a zero, so the string ends within the buffer.
            name: unsafe { text(name.as_ptr()) }.unwrap_or_default(),
            compute: if let (Some(major), Some(minor)) = compute { Some(format!("{major}.{minor}")) } else { None },
            sms: self.attribute(MULTIPROCESSOR_COUNT, device).and_then(|count| count.try_into().ok()),
            mem_total_bytes: known.then_some(bytes as u64),
            integrated: self.attribute(INTEGRATED, device).map(|integrated| integrated != 0),
            clock_khz: count(CLOCK_RATE),
            memory_khz: count(MEMORY_CLOCK_RATE),
            memory_bits: count(GLOBAL_MEMORY_BUS_WIDTH).and_then(|bits| bits.try_into().ok()),
            cache_bytes: count(L2_CACHE_SIZE),
        })
    }

    fn attribute(&self, attribute: c_int, device: c_int) -> Option<c_int> {
        let mut value = 0;
        // SAFETY: the pointer is to a number that outlives the call; an unknown attribute is an error.
        (unsafe { (self.attribute)(&raw mut value, attribute, device) } == 0).then_some(value)
    }

    /// The driver's own words for a result that is not 0.
    fn check(&self, call: &str, result: c_int) -> Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        let words = |get: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut words = std::ptr::null();
            // SAFETY: the pointer is to a pointer that outlives the call, which sets it to a constant string or null.
            unsafe { get(result, &raw mut words) };
            // SAFETY: as above.
            unsafe { text(words) }
        };
        let name = words(self.error_name).unwrap_or_else(|| "unknown".to_owned());
        let meaning = words(self.error_string).unwrap_or_else(|| "the driver has no words for it".to_owned());
        Err(format!("{call} failed: {result} {name}: {meaning}"))
    }
}
