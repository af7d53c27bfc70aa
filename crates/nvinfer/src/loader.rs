//! Libraries and their functions, as the loader gives them.

use std::path::Path;

use libloading::os::unix::{Library as Handle, RTLD_LAZY};

use crate::Error;

/// Opens a library for good: TensorRT has threads and exit handlers that must not lose their code. Functions are bound
/// when they are called: the plugins name all of cuBLAS and cuDNN and need none of it for most models.
pub(crate) fn open(path: &Path, scope: i32) -> Result<&'static Handle, Error> {
    let fail = |error: libloading::Error| Error::Open { path: path.to_owned(), reason: loader_said(path, &error) };
    // SAFETY: the user named this library in order to have its code run.
    let handle = unsafe { Handle::open(Some(path), RTLD_LAZY | scope) }.map_err(fail)?;
    Ok(Box::leak(Box::new(handle)))
}

/// What the loader said about a library, which is behind the error and begins with the path.
pub(crate) fn loader_said(path: &Path, error: &libloading::Error) -> String {
    let said = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let path = format!("{}: ", path.display());
    said.strip_prefix(&path).map(str::to_owned).unwrap_or(said)
}

/// A function of a library.
///
/// # Safety
/// `F` is the function pointer type of that symbol.
pub(crate) unsafe fn symbol<F: Copy>(handle: &Handle, path: &Path, symbol: &'static str) -> Result<F, Error> {
    // SAFETY: the caller's promise.
    let found = unsafe { handle.get::<F>(symbol) };
    found.map(|found| *found).map_err(|_| Error::Symbol { path: path.to_owned(), symbol })
}
