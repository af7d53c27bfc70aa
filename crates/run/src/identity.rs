//! Which run it is.

use std::sync::OnceLock;

use anyhow::Context as _;
use prony_bench::now_ns;
use prony_types::{RunInfo, Sitting};

use crate::clock::utc_now;

/// Begins to hash this very binary, which takes a while, beside all that comes before a run.
pub fn hash_binary_early() {
    std::thread::spawn(binary_sha256);
}

/// The hash of this very binary, found once.
fn binary_sha256() -> anyhow::Result<String> {
    static KNOWN: OnceLock<Result<String, String>> = OnceLock::new();
    let hash =
        || std::env::current_exe().and_then(|binary| prony_model::sha256_file(&binary)).map_err(|e| e.to_string());
    let known = KNOWN.get_or_init(hash).clone();
    known.map_err(anyhow::Error::msg).context("cannot read this very binary")
}

/// The identity of a run that begins now.
pub(crate) fn run_info(id: String, command: Vec<String>, version: &str) -> anyhow::Result<RunInfo> {
    Ok(RunInfo {
        id,
        started: utc_now(),
        finished: None,
        command,
        version: version.to_owned(),
        binary_sha256: binary_sha256()?,
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
