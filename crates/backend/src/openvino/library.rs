//! Opening OpenVINO's C library. The bindings panic on the first call of a function that the library lacks, so every
//! function that is used is looked for first.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ::openvino::{Core, SetupError};

use super::words;

/// Earlier libraries number the element types differently, so that a tensor would silently have the wrong one.
const LOWEST: &str = "2025.1";

/// Every function that this backend calls, directly or through the bindings.
const FUNCTIONS: &[&str] = &[
    "ov_available_devices_free",
    "ov_compiled_model_create_infer_request",
    "ov_compiled_model_free",
    "ov_compiled_model_get_property",
    "ov_compiled_model_inputs_size",
    "ov_compiled_model_output_by_index",
    "ov_compiled_model_outputs_size",
    "ov_core_compile_model",
    "ov_core_create",
    "ov_core_free",
    "ov_core_get_available_devices",
    "ov_core_get_property",
    "ov_core_read_model",
    "ov_core_read_model_from_memory_buffer",
    "ov_core_set_property",
    "ov_get_last_err_msg",
    "ov_get_openvino_version",
    "ov_infer_request_free",
    "ov_infer_request_get_input_tensor_by_index",
    "ov_infer_request_get_output_tensor_by_index",
    "ov_infer_request_infer",
    "ov_infer_request_set_input_tensor_by_index",
    "ov_infer_request_start_async",
    "ov_infer_request_wait_for",
    "ov_model_const_input_by_index",
    "ov_model_free",
    "ov_model_inputs_size",
    "ov_model_outputs_size",
    "ov_model_reshape_by_port_indexes",
    "ov_partial_shape_create_static",
    "ov_partial_shape_free",
    "ov_partial_shape_is_dynamic",
    "ov_port_get_any_name",
    "ov_port_get_element_type",
    "ov_port_get_partial_shape",
    "ov_shape_create",
    "ov_shape_free",
    "ov_tensor_create",
    "ov_tensor_data",
    "ov_tensor_free",
    "ov_tensor_get_byte_size",
    "ov_tensor_get_element_type",
    "ov_tensor_get_shape",
    "ov_version_free",
];

/// The library of this process: the bindings hold one, for good.
static OPENED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// OpenVINO's entry point, from a library.
pub(super) fn core(library: &Path) -> Result<Core, String> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    match &*opened {
        Some(earlier) if earlier == library => {}
        Some(earlier) => {
            return Err(format!("{} is open in this process already, not {}", earlier.display(), library.display()));
        }
        None => {
            has_functions(library)?;
            // Set before the bindings open it: they keep it even where they then find its version too old.
            *opened = Some(library.to_owned());
            bind(library)?;
        }
    }
    Core::new().map_err(|error| match error {
        SetupError::Inference(error) => format!("{}: {}", library.display(), words(&error)),
        SetupError::Loading(error) => format!("{}: {error}", library.display()),
    })
}

fn bind(library: &Path) -> Result<(), String> {
    let next = format!("OpenVINO {LOWEST} or later is needed; run `prony runtime install openvino`");
    // The bindings panic where the version of a home-made build is not a number.
    match catch_unwind(|| openvino_sys::library::load_from(library)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => Err(format!("{}: {reason}; {next}", library.display())),
        Err(_) => Err(format!("{}: its version cannot be read; {next}", library.display())),
    }
}

#[expect(unsafe_code, reason = "a shared library is opened and asked for its functions")]
fn has_functions(library: &Path) -> Result<(), String> {
    // SAFETY: initialisers of the library run here, as they would a moment later in the bindings; that it is the
    // user's OpenVINO, and that this process may die of it, is what workers are for.
    let handle = unsafe { libloading::Library::new(library) }
        .map_err(|error| format!("{} cannot be opened: {}", library.display(), error.to_string().replace('\n', " ")))?;
    for name in FUNCTIONS {
        // SAFETY: the symbol is only looked for, never called or read through this type.
        let found = unsafe { handle.get::<*const ()>(*name) }.is_ok();
        if !found {
            return Err(format!(
                "{} has no function {name}: OpenVINO {LOWEST} or later is needed; run `prony runtime install openvino`",
                library.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_something_else_is_refused_by_the_function_it_lacks() {
        // The C library is in every process, and it is not OpenVINO.
        let error = core(Path::new("libc.so.6")).err().unwrap();
        assert!(error.starts_with("libc.so.6 has no function ov_"), "{error}");
        assert!(error.contains(LOWEST) && error.contains("prony runtime install openvino"), "{error}");
    }

    #[test]
    fn a_text_file_is_refused_by_name() {
        let path = std::env::temp_dir().join(format!("prony-{}-libopenvino_c.so", std::process::id()));
        std::fs::write(&path, "not a library").unwrap();
        let error = core(&path).err().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(error.contains("libopenvino_c.so cannot be opened"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
