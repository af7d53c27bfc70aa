//! The library: opened, asked for its version, and the source of every object.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL};

use crate::object::{Held, Object};
use crate::tables::{Ptr, Str};
use crate::{Builder, Driver, Error, Family, Logger, Runtime, Version};

type Create = unsafe extern "C" fn(Ptr, i32) -> Ptr;

/// An open `libnvinfer`, or its lean or dispatch runtime. It stays open until the process ends.
#[derive(Clone)]
pub struct Library(Arc<Inner>);

struct Inner {
    path: PathBuf,
    version: Version,
    family: Family,
    create_runtime: Create,
    create_builder: Option<Create>,
    /// 8.x: whether a builder could be made, which tells that a runtime can be.
    tried: Mutex<bool>,
}

/// Drivers of CUDA 12 run whatever 8.x was built for. With older ones it is tried out first, which loads the builder with
/// all its kernels: ten seconds and gigabytes.
const SUITS_EVERY_8: i32 = 12_000;

impl Library {
    /// Opens a library and asks for its version. Nothing is created, so no driver is needed.
    pub fn open(path: &Path) -> Result<Library, Error> {
        let handle = open(path, RTLD_LOCAL)?;
        // SAFETY: the C functions that every TensorRT has, with their signatures.
        unsafe {
            let version = symbol::<unsafe extern "C" fn() -> i32>(handle, path, "getInferLibVersion")?;
            let version = Version::from_number(version());
            let family = Family::of(version).ok_or_else(|| Error::UnknownMajor { path: path.to_owned(), version })?;
            if version < family.first() {
                let what = format!("{}: reading its objects", path.display());
                return Err(Error::TooOld { what, since: family.first(), version });
            }
            Ok(Library(Arc::new(Inner {
                path: path.to_owned(),
                version,
                family,
                create_runtime: symbol(handle, path, "createInferRuntime_INTERNAL")?,
                create_builder: symbol(handle, path, "createInferBuilder_INTERNAL").ok(),
                tried: Mutex::new(false),
            })))
        }
    }

    /// What was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// What it says that it is.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// How its objects are laid out.
    pub fn family(&self) -> Family {
        self.0.family
    }

    /// Whether it can build engines: a lean or dispatch runtime cannot.
    pub fn can_build(&self) -> bool {
        self.0.create_builder.is_some()
    }

    /// Registers NVIDIA's own plugins from `libnvinfer_plugin`.
    pub fn init_plugins(&self, plugin_library: &Path, logger: &Logger) -> Result<(), Error> {
        let handle = open(plugin_library, RTLD_LOCAL)?;
        let since = logger.mark();
        // SAFETY: the documented C function; the logger lives until the process ends.
        let done = unsafe {
            let init: unsafe extern "C" fn(Ptr, Str) -> bool = symbol(handle, plugin_library, "initLibNvInferPlugins")?;
            init(logger.object(self.family()), c"".as_ptr())
        };
        let what = || format!("to register the plugins of {}", plugin_library.display());
        if done { Ok(()) } else { Err(Error::Refused { what: what(), log: logger.errors_since(since) }) }
    }

    /// Opens a plugin library of the user's own, whose initialisers register what it has.
    pub fn load_plugin(&self, path: &Path) -> Result<(), Error> {
        // Plugins need not say that they need TensorRT, so its symbols must be there for all to see.
        open(self.path(), RTLD_GLOBAL)?;
        open(path, RTLD_GLOBAL)?;
        Ok(())
    }

    /// Something that loads engines.
    pub fn runtime(&self, driver: &Driver, logger: &Logger) -> Result<Runtime, Error> {
        if self.family() == Family::V8 && self.can_build() && driver.version() < SUITS_EVERY_8 {
            self.try_builder(driver, logger)?;
        }
        Ok(Runtime::new(self.create(self.0.create_runtime, "runtime", driver, logger)?))
    }

    /// Something that builds engines.
    pub fn builder(&self, driver: &Driver, logger: &Logger) -> Result<Builder, Error> {
        let create = self
            .0
            .create_builder
            .ok_or_else(|| Error::Symbol { path: self.path().to_owned(), symbol: "createInferBuilder_INTERNAL" })?;
        Ok(Builder::new(self.create(create, "builder", driver, logger)?))
    }

    /// In 8.x a runtime that cannot be made, because the driver is too old, crashes where a builder is merely null, so a builder is made first, once.
    fn try_builder(&self, driver: &Driver, logger: &Logger) -> Result<(), Error> {
        let mut tried = self.0.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if !*tried {
            drop(self.builder(driver, logger)?);
            *tried = true;
        }
        Ok(())
    }

    fn create(&self, create: Create, what: &str, _: &Driver, logger: &Logger) -> Result<Held, Error> {
        let since = logger.mark();
        // SAFETY: the create functions take a logger, which lives until the process ends, and the library's own version;
        // that there is a driver was checked.
        let pointer = unsafe { create(logger.object(self.family()), self.version().number()) };
        Object::root(self, logger, what, pointer, since)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("path", &self.0.path).field("version", &self.0.version).finish()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_or_is_something_else_is_named_with_the_reason() {
        let error = Library::open(Path::new("/nowhere/libnvinfer.so.10")).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Open { .. }), "{text}");
        assert!(text.starts_with("/nowhere/libnvinfer.so.10: cannot be opened: "), "{text}");
        assert!(text.contains("No such file"), "{text}");
        let error = Library::open(Path::new("libc.so.6")).unwrap_err();
        assert!(matches!(error, Error::Symbol { symbol: "getInferLibVersion", .. }), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvinfer.so.10");
        std::fs::write(&path, "no library at all").unwrap();
        let text = Library::open(&path).unwrap_err().to_string();
        assert!(text.contains(path.to_str().unwrap()) && text.contains("file too short"), "{text}");
    }
}
