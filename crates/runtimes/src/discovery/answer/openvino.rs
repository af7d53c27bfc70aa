//! OpenVINO: its version and the devices that its plugins find.

use std::ptr;

use openvino_sys::{ov_available_devices_t, ov_core_t, ov_version_t};

use super::Answer;
use super::library::{OpenLibrary, text};

/// `OK` of `ov_status_e`; taken as a number, since a library may return one that the enum does not know.
const OK: i32 = 0;

#[expect(unsafe_code, reason = "the library's C interface")]
pub(super) fn ask(library: &OpenLibrary) -> Result<Answer, String> {
    // SAFETY: the type is that of the C header.
    let get = unsafe { library.function::<unsafe extern "C" fn(*mut ov_version_t) -> i32>("ov_get_openvino_version") }?;
    let mut version = ov_version_t { buildNumber: ptr::null(), description: ptr::null() };
    // SAFETY: the pointer is to a version that outlives the call.
    let status = unsafe { get(&raw mut version) };
    if status != OK {
        return Err(format!("tells no version ({})", reason(library, status)));
    }
    // SAFETY: the call succeeded, so this is null or a string, which is not freed in this process.
    let build = unsafe { text(version.buildNumber) }.ok_or("tells no version")?;
    Ok(Answer { provides: devices(library)?, ..Answer::version(shorten(&build)) })
}

/// `2025.3.0` of `2025.3.0-19807-44526285f24-releases/2025/3`.
fn shorten(build: &str) -> &str {
    build.split('-').next().unwrap_or(build)
}

#[expect(unsafe_code, reason = "the library's C interface")]
fn devices(library: &OpenLibrary) -> Result<Vec<String>, String> {
    type Create = unsafe extern "C" fn(*mut *mut ov_core_t) -> i32;
    type Available = unsafe extern "C" fn(*const ov_core_t, *mut ov_available_devices_t) -> i32;
    // SAFETY: the types are those of the C header.
    let (create, available) = unsafe {
        (library.function::<Create>("ov_core_create")?, library.function::<Available>("ov_core_get_available_devices")?)
    };
    let mut core = ptr::null_mut();
    // SAFETY: the pointer is to a pointer that outlives the call.
    let status = unsafe { create(&raw mut core) };
    if status != OK || core.is_null() {
        return Err(format!("makes no core: {}", reason(library, status)));
    }
    let mut list = ov_available_devices_t { devices: ptr::null_mut(), size: 0 };
    // SAFETY: the core is the one that was made above and is never freed; the list outlives the call.
    let status = unsafe { available(core, &raw mut list) };
    if status != OK {
        return Err(format!("cannot list its devices: {}", reason(library, status)));
    }
    if list.devices.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the call succeeded, so there are so many pointers, each to a string; none is freed in this process.
    let devices = unsafe { std::slice::from_raw_parts(list.devices, list.size) };
    // SAFETY: as above.
    Ok(devices.iter().filter_map(|&device| unsafe { text(device) }).collect())
}

/// The library's words for what went wrong, on one line.
#[expect(unsafe_code, reason = "the library's C interface")]
fn reason(library: &OpenLibrary, status: i32) -> String {
    type LastError = unsafe extern "C" fn() -> *const std::ffi::c_char;
    // SAFETY: the type is that of the C header; older libraries do not have the function.
    let last = unsafe { library.function::<LastError>("ov_get_last_err_msg") }.ok();
    // SAFETY: returns null or a string that belongs to the caller.
    let words = last.and_then(|last| unsafe { text(last()) }).unwrap_or_default();
    let words: Vec<&str> = words.split_whitespace().collect();
    if words.is_empty() { format!("status {status}") } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_number_is_shortened_to_the_version() {
        assert_eq!(shorten("2025.3.0-19807-44526285f24-releases/2025/3"), "2025.3.0");
        assert_eq!(shorten("2024.0.0"), "2024.0.0");
    }
}
