//! The library: opened and asked for its version. What is created from it stands with what is created.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use libloading::os::unix::{RTLD_GLOBAL, RTLD_LOCAL};

use crate::loader::{open, symbol};
use crate::pointer::{Ptr, Str};
use crate::{Error, Family, Logger, Version};

/// A create function: takes a logger and the version that the caller was written for.
pub(crate) type Create = unsafe extern "C" fn(Ptr, i32) -> Ptr;

/// An open `libnvinfer`, or its lean or dispatch runtime. It stays open until the process ends.
#[derive(Clone)]
pub struct Library(Arc<Inner>);

struct Inner {
    path: PathBuf,
    version: Version,
    family: Family,
    create_runtime: Create,
    create_builder: Option<Create>,
    tried: Mutex<bool>,
}

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

    /// What creates a runtime.
    pub(crate) fn create_runtime(&self) -> Create {
        self.0.create_runtime
    }

    /// What creates a builder, where there is one.
    pub(crate) fn create_builder(&self) -> Option<Create> {
        self.0.create_builder
    }

    /// 8.x: whether a builder could be made, which tells that a runtime can be.
    pub(crate) fn builder_tried(&self) -> &Mutex<bool> {
        &self.0.tried
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
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("path", &self.0.path).field("version", &self.0.version).finish()
    }
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
