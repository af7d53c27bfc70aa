//! A library that was opened in this process, and stays so until the process ends: closing one runs code too.

use std::ffi::{CStr, c_char, c_int};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Handle, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};
use prony_types::RuntimeName;

use super::names;

/// An open library.
pub(super) struct OpenLibrary {
    handle: ManuallyDrop<Handle>,
    /// Its file.
    pub(super) path: PathBuf,
    /// The name that such a library usually has.
    usual: &'static str,
}

impl OpenLibrary {
    /// Opens what should be a runtime.
    pub(super) fn of(name: RuntimeName, path: &Path) -> Result<OpenLibrary, String> {
        // TensorRT's own are opened as the backend opens them: they name functions of cuBLAS and cuDNN that nothing calls
        // where no kernel is taken from there.
        let tensorrt = matches!(
            name,
            RuntimeName::Nvinfer | RuntimeName::NvinferLean | RuntimeName::Nvonnxparser | RuntimeName::NvinferPlugin
        );
        let how = if tensorrt { RTLD_LAZY } else { RTLD_NOW };
        Ok(OpenLibrary { usual: names::file_name(name), ..OpenLibrary::opened(path, how)? })
    }

    /// Opens a file, or what the loader finds under a name. The error is the loader's own text, which names the
    /// dependency that is missing.
    pub(super) fn open(path: &Path) -> Result<OpenLibrary, String> {
        OpenLibrary::opened(path, RTLD_NOW)
    }

    #[expect(unsafe_code, reason = "opening a library runs its initialisers")]
    fn opened(path: &Path, how: c_int) -> Result<OpenLibrary, String> {
        // SAFETY: initialisers may do anything. That is why this runs in a process made for it, which holds nothing
        // of value and whose death is a finding.
        let handle = unsafe { Handle::open(Some(path), how | RTLD_LOCAL) }.map_err(|error| {
            let text = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            text.trim_end_matches(": No such file or directory").to_owned()
        })?;
        Ok(OpenLibrary { handle: ManuallyDrop::new(handle), path: path.to_owned(), usual: "what was asked for" })
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to the function that the library has under this name.
    #[expect(unsafe_code, reason = "the type of a symbol is known from its documentation alone")]
    pub(super) unsafe fn function<F: Copy>(&self, symbol: &str) -> Result<F, String> {
        // SAFETY: the caller vouches for the type; the library is never closed, so the copy stays good.
        let found = unsafe { self.handle.get::<F>(symbol) };
        let stem = self.usual.split(".so").next().unwrap_or(self.usual);
        found.map(|pointer| *pointer).map_err(|_| format!("does not export {symbol}, so it is not {stem}"))
    }
}

/// A string that a library returned; `None` for a null pointer.
///
/// # Safety
/// `text` must be null or point at a string that ends with a zero and stays as it is during the call.
#[expect(unsafe_code, reason = "strings come as pointers")]
pub(super) unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller vouches for the rest.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
