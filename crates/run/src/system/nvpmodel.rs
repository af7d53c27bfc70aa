//! NVIDIA's program for power modes, asked and told.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use prony_work::{Asking, capture};

/// How long it may take to say which mode is in force.
const QUERY_DEADLINE: Duration = Duration::from_secs(20);
/// How long it may take to change clocks and cores.
const SET_DEADLINE: Duration = Duration::from_secs(120);

/// The mode in force.
pub(super) fn query(program: &Path) -> Option<u32> {
    let output = capture(Command::new(program).arg("-q"), &Asking::within(QUERY_DEADLINE)).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The name, and the number on the line after it.
    text.lines().rev().find_map(|line| line.trim().parse().ok())
}

/// Sets a mode. One that only a reboot can set is refused, and so is the reboot.
pub(super) fn set(program: &Path, mode: u32) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    // It asks "DO YOU WANT TO REBOOT NOW?" where the mode needs one.
    let asking = Asking { input: b"no\n", ..Asking::within(SET_DEADLINE) };
    let output = capture(Command::new(program).args(["-m", &mode.to_string()]), &asking).map_err(failed)?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join("\n");
    if text.to_lowercase().contains("reboot") {
        return Err(format!("it takes a reboot to change that: `sudo nvpmodel -m {mode}`"));
    }
    if !output.status.success() {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        return Err(format!("nvpmodel -m {mode} failed: {}", lines.join("; ")));
    }
    match query(program) {
        Some(now) if now != mode => Err(format!("nvpmodel -m {mode} changed nothing: the mode is {now}")),
        _ => Ok(()),
    }
}
