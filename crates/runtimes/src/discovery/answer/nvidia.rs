//! NVIDIA's libraries beside the driver. Only functions that tell a version are called: those that make something can
//! crash where there is no driver.

use std::ffi::{c_char, c_int, c_uint};

use super::Answer;
use super::library::{OpenLibrary, text};
use crate::discovery::names::version_in;

/// Longest version of a driver, with its zero: `NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE`.
const DRIVER_VERSION: usize = 80;

/// TensorRT, whole or lean.
#[expect(unsafe_code, reason = "the library's C interface")]
pub(super) fn nvinfer(library: &OpenLibrary) -> Result<Answer, String> {
    // SAFETY: the type is that of NvInferRuntime.h: no arguments, a 32-bit number.
    let version = unsafe { library.function::<unsafe extern "C" fn() -> i32>("getInferLibVersion")?() };
    Ok(Answer::version(tensorrt_version(version)))
}

/// TensorRT's reader of ONNX files.
#[expect(unsafe_code, reason = "the library's C interface")]
pub(super) fn parser(library: &OpenLibrary) -> Result<Answer, String> {
    // SAFETY: the type is that of NvOnnxParser.h: no arguments, a number.
    let version = unsafe { library.function::<unsafe extern "C" fn() -> c_int>("getNvOnnxParserVersion")?() };
    // For years every release has called itself 0.1.0; the name of the file knows better.
    let own = decimal(version, 10_000);
    Ok(Answer::version(file_version(library).filter(|_| version < 10_000).unwrap_or(own)))
}

/// TensorRT's plugins, which tell no version.
#[expect(unsafe_code, reason = "the library's C interface")]
pub(super) fn plugin(library: &OpenLibrary) -> Result<Answer, String> {
    // SAFETY: only its presence is asked for; it is not called.
    unsafe { library.function::<unsafe extern "C" fn()>("initLibNvInferPlugins") }?;
    Ok(Answer { version: file_version(library), ..Answer::default() })
}

/// The CUDA runtime.
#[expect(unsafe_code, reason = "the library's C interface")]
pub(super) fn cudart(library: &OpenLibrary) -> Result<Answer, String> {
    // SAFETY: the type is that of cuda_runtime_api.h.
    let get = unsafe { library.function::<unsafe extern "C" fn(*mut c_int) -> c_int>("cudaRuntimeGetVersion") }?;
    let mut version = 0;
    // SAFETY: the pointer is to a number that outlives the call.
    match unsafe { get(&raw mut version) } {
        0 => Ok(Answer::version(cuda_version(version))),
        status => Err(format!("tells no version: cudaRuntimeGetVersion returned {status}")),
    }
}

/// cuDNN.
#[expect(unsafe_code, reason = "the library's C interface")]
pub(super) fn cudnn(library: &OpenLibrary) -> Result<Answer, String> {
    // SAFETY: the type is that of cudnn.h: no arguments, a size.
    let version = unsafe { library.function::<unsafe extern "C" fn() -> usize>("cudnnGetVersion")?() };
    Ok(Answer::version(cudnn_version(i32::try_from(version).unwrap_or(0))))
}

/// The GPU's sensors; their version is the driver's.
#[expect(unsafe_code, reason = "the library's C interface")]
pub(super) fn nvml(library: &OpenLibrary) -> Result<Answer, String> {
    type DriverVersion = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
    // SAFETY: the types are those of nvml.h.
    let (init, driver) = unsafe {
        let init = library.function::<unsafe extern "C" fn() -> c_int>("nvmlInit_v2")?;
        (init, library.function::<DriverVersion>("nvmlSystemGetDriverVersion")?)
    };
    // SAFETY: takes nothing.
    let status = unsafe { init() };
    if status != 0 {
        return Err(format!("nvmlInit_v2: {}", nvml_error(library, status)));
    }
    let mut version: [c_char; DRIVER_VERSION] = [0; DRIVER_VERSION];
    // SAFETY: so many bytes are there, and they outlive the call.
    let status = unsafe { driver(version.as_mut_ptr(), DRIVER_VERSION as c_uint) };
    if status != 0 {
        // As on some Jetsons: it opens, and answers question by question.
        return Ok(Answer::default());
    }
    version[DRIVER_VERSION - 1] = 0;
    // SAFETY: the last byte is a zero, so the string ends within the buffer.
    Ok(Answer { version: unsafe { text(version.as_ptr()) }, ..Answer::default() })
}

#[expect(unsafe_code, reason = "the library's C interface")]
fn nvml_error(library: &OpenLibrary, status: c_int) -> String {
    // SAFETY: the type is that of nvml.h; it returns a constant string.
    let words = unsafe {
        let string = library.function::<unsafe extern "C" fn(c_int) -> *const c_char>("nvmlErrorString").ok();
        string.and_then(|string| text(string(status)))
    };
    words.map_or_else(|| format!("status {status}"), |words| format!("{words} (status {status})"))
}

fn file_version(library: &OpenLibrary) -> Option<String> {
    library.path.file_name().and_then(|file| version_in(file.to_str()?)).map(str::to_owned)
}

/// 8601 is 8.6.1 and 101600 is 10.16.0: the place of the major version moved with 10.
pub(super) fn tensorrt_version(version: i32) -> String {
    decimal(version, if version < 100_000 { 1000 } else { 10_000 })
}

/// 8907 is 8.9.7 and 90100 is 9.1.0: the place of the major version moved with 9.
fn cudnn_version(version: i32) -> String {
    decimal(version, if version < 90_000 { 1000 } else { 10_000 })
}

fn decimal(version: i32, major: i32) -> String {
    format!("{}.{}.{}", version / major, version % major / 100, version % 100)
}

/// 12020 is 12.2.
pub(super) fn cuda_version(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_their_numbers() {
        assert_eq!(tensorrt_version(8601), "8.6.1");
        assert_eq!(tensorrt_version(8502), "8.5.2");
        assert_eq!(tensorrt_version(100_300), "10.3.0");
        assert_eq!(tensorrt_version(101_600), "10.16.0");
        assert_eq!(cudnn_version(8907), "8.9.7");
        assert_eq!(cudnn_version(90_100), "9.1.0");
        assert_eq!(cuda_version(12_020), "12.2");
        assert_eq!(cuda_version(11_040), "11.4");
        assert_eq!(cuda_version(13_000), "13.0");
        assert_eq!(decimal(100, 10_000), "0.1.0");
    }
}
