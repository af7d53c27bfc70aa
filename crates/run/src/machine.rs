//! This machine as reports describe it: the one place where what the probe reads and what discovery finds come together.

use std::path::{Path, PathBuf};

use prony_types::{Environment, RuntimeName};

use prony_runtimes::home;
use prony_runtimes::{Found, discover};

/// The machine, with the room that is left where runs are written, and what it can execute models with.
pub fn machine(
    runs: &Path,
    home: Option<&Path>,
    explicit: &[(RuntimeName, PathBuf)],
) -> anyhow::Result<(Environment, Found)> {
    // Without a home there is nothing of ours to find; the rest of the machine is still there.
    let home = match home {
        Some(_) => home::folder(home)?,
        None => home::folder(None).unwrap_or_default(),
    };
    let found = discover(&home, explicit)?;
    let mut environment = prony_probe::environment_for(runs);
    environment.driver.clone_from(&found.driver);
    environment.gpus.clone_from(&found.gpus);
    environment.runtimes.clone_from(&found.runtimes);
    Ok((environment, found))
}
