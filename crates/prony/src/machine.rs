//! This machine as reports describe it: the one place where what the probe reads and what discovery finds come together.

use std::path::Path;

use prony_types::Environment;

/// The machine, with the room that is left where runs are written.
///
/// `driver`, `gpus` and `runtimes` are discovery's to fill in, here.
pub(crate) fn machine(runs: &Path) -> Environment {
    prony_probe::environment_for(runs)
}
