//! NVIDIA's program for power modes, asked and told.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The mode in force.
pub(super) fn query(program: &Path) -> Option<u32> {
    let output = Command::new(program).arg("-q").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The name, and the number on the line after it.
    text.lines().rev().find_map(|line| line.trim().parse().ok())
}

/// Sets a mode. One that only a reboot can set is refused, and so is the reboot.
pub(super) fn set(program: &Path, mode: u32) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut command = Command::new(program);
    command.args(["-m", &mode.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    // It asks "DO YOU WANT TO REBOOT NOW?" where the mode needs one; a program that asks nothing may be gone by now.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(b"no\n"));
    let output = child.wait_with_output().map_err(failed)?;
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
