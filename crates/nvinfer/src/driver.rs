//! The NVIDIA driver, asked before TensorRT is: without one 8.x crashes and later majors return addresses that are none.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr::null;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};

use crate::Error;
use crate::loader::loader_said;

/// What to do when there is no driver.
const ADVICE: &str = "install the driver of this GPU and see that nvidia-smi (on a Jetson: the l4t packages) works";

/// Proof that there is a driver, started, with a device.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    version: i32,
    devices: i32,
}

impl Driver {
    /// Opens the driver's library, `libcuda.so.1` unless another is named, starts it and counts its devices.
    pub fn open(library: Option<&Path>) -> Result<Driver, Error> {
        let path = library.unwrap_or(Path::new("libcuda.so.1"));
        let name = path.display();
        let fail = |reason: String| Error::Driver { reason: format!("{name}: {reason}; {ADVICE}") };
        // SAFETY: a library of the driver, whose initialisers are meant to run in any process.
        let handle =
            unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| fail(loader_said(path, &e)))?;
        // The driver has threads and handlers of its own: it stays.
        let handle: &'static Handle = Box::leak(Box::new(handle));
        let check = |what: &str, result: i32| match result {
            0 => Ok(()),
            code => Err(fail(format!("{what} failed with {}", error_name(handle, code)))),
        };
        // SAFETY: the driver's documented C functions, with places to write to that outlive the calls.
        unsafe {
            let missing = |symbol: &str| fail(format!("has no symbol {symbol}"));
            let init = handle.get::<unsafe extern "C" fn(u32) -> i32>("cuInit").map_err(|_| missing("cuInit"))?;
            check("cuInit", init(0))?;
            let ask = |symbol: &'static str| -> Result<i32, Error> {
                let function = handle.get::<unsafe extern "C" fn(*mut i32) -> i32>(symbol);
                let mut answer = 0;
                check(symbol, function.map_err(|_| missing(symbol))?(&raw mut answer))?;
                Ok(answer)
            };
            let (version, devices) = (ask("cuDriverGetVersion")?, ask("cuDeviceGetCount")?);
            if devices < 1 {
                return Err(fail("it sees no device".to_owned()));
            }
            Ok(Driver { version, devices })
        }
    }

    /// The CUDA version that it is good for: 12040 is 12.4.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// Number of devices, at least one.
    pub fn devices(&self) -> i32 {
        self.devices
    }
}

/// The driver's name for an error, with its number.
fn error_name(handle: &Handle, code: i32) -> String {
    let mut name: *const c_char = null();
    // SAFETY: the driver's documented C function; it writes a static text or null.
    unsafe {
        if let Ok(ask) = handle.get::<unsafe extern "C" fn(i32, *mut *const c_char) -> i32>("cuGetErrorName") {
            ask(code, &raw mut name);
        }
        if name.is_null() {
            return format!("error {code}");
        }
        format!("{} ({code})", CStr::from_ptr(name).to_string_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_not_there_is_named_with_what_to_do() {
        let error = Driver::open(Some(Path::new("/nowhere/libcuda.so.1"))).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Driver { .. }), "{text}");
        assert!(text.starts_with("NVIDIA driver: /nowhere/libcuda.so.1: ") && text.contains("nvidia-smi"), "{text}");
    }

    #[test]
    fn a_library_that_is_no_driver_is_refused() {
        let error = Driver::open(Some(Path::new("libc.so.6"))).unwrap_err().to_string();
        assert!(error.contains("libc.so.6") && error.contains("cuInit"), "{error}");
    }

    #[test]
    fn the_machines_own_driver_is_whole_or_refused_by_name() {
        match Driver::open(None) {
            Ok(driver) => assert!(driver.devices() >= 1 && driver.version() >= 10_000, "{driver:?}"),
            Err(error) => assert!(error.to_string().starts_with("NVIDIA driver: libcuda.so.1: "), "{error}"),
        }
    }
}
