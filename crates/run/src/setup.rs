//! What a run begins with, whether it is new or goes on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use prony_bench::now_ns;
use prony_types::{Environment, Fate, Plan, RunInfo, RunRecord, Sitting};

use crate::clock::utc_now;
use crate::lock::MachineLock;

/// Everything that is decided before the first worker starts.
#[derive(Debug)]
pub struct RunSetup {
    /// Which run, when and by whom.
    pub info: RunInfo,
    /// What is to be measured.
    pub plan: Plan,
    /// Cells that will not run, by id.
    pub fates: BTreeMap<String, Fate>,
    /// Cells of an earlier sitting: those that are completed stay as they are.
    pub earlier: Option<RunRecord>,
    /// The machine, as it was found.
    pub environment: Environment,
    /// Where references are kept from run to run; `None` where there is no home.
    pub reference_cache: Option<PathBuf>,
    /// Where engines are; `None` where there is no home: then the run folder has them.
    pub artifact_cache: Option<PathBuf>,
    /// What relative limits are held against.
    pub baseline: Option<RunRecord>,
    /// Held until the last cell has ended.
    pub lock: Option<MachineLock>,
}

/// The identity of a run that begins now.
pub fn run_info(id: String, command: Vec<String>, version: &str) -> anyhow::Result<RunInfo> {
    let binary = std::fs::read(std::env::current_exe()?).context("cannot read this very binary")?;
    Ok(RunInfo {
        id,
        started: utc_now(),
        finished: None,
        command,
        version: version.to_owned(),
        binary_sha256: prony_model::sha256_hex(&binary),
        exit_code: None,
        anchor_ns: now_ns(),
        resumed: Vec::new(),
        wall_s: None,
        redacted: false,
    })
}

/// The identity of a run that goes on now.
pub fn resumed_info(earlier: &RunInfo) -> RunInfo {
    let mut info = RunInfo { finished: None, exit_code: None, ..earlier.clone() };
    info.resumed.push(Sitting { started: utc_now(), anchor_ns: now_ns() });
    info
}
