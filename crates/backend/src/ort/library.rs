//! The library itself: loaded once a process, and never twice from different files.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;
use prony_types::RuntimeSpec;

static LOADED: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// The environment of the library at that path.
pub(super) fn environment(runtime: &RuntimeSpec) -> Result<Environment, String> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((path, environment)) = &*loaded {
        if *path == runtime.library {
            return Ok(environment.clone());
        }
        return Err(format!(
            "{} is loaded in this process already, so {} cannot be",
            path.display(),
            runtime.library.display()
        ));
    }
    let builder = ort::init_from(&runtime.library).map_err(|e| e.to_string())?;
    let environment = builder.with_name("prony").with_telemetry(false).build().map_err(|e| e.to_string())?;
    *loaded = Some((runtime.library.clone(), environment.clone()));
    Ok(environment)
}
