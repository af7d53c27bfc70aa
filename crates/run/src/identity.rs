//! Which run it is.

use anyhow::Context as _;
use prony_bench::now_ns;
use prony_types::{RunInfo, Sitting};

use crate::clock::utc_now;

/// The identity of a run that begins now.
pub(crate) fn run_info(id: String, command: Vec<String>, version: &str) -> anyhow::Result<RunInfo> {
    let binary = std::env::current_exe().and_then(|path| prony_model::sha256_file(&path));
    Ok(RunInfo {
        id,
        started: utc_now(),
        finished: None,
        command,
        version: version.to_owned(),
        binary_sha256: binary.context("cannot read this very binary")?,
        exit_code: None,
        anchor_ns: now_ns(),
        resumed: Vec::new(),
        wall_s: None,
        redacted: false,
    })
}

/// The identity of a run that goes on now.
pub(crate) fn resumed_info(earlier: &RunInfo) -> RunInfo {
    let mut info = RunInfo { finished: None, exit_code: None, ..earlier.clone() };
    info.resumed.push(Sitting { started: utc_now(), anchor_ns: now_ns() });
    info
}
