//! What only a machine with an NVIDIA GPU can show. Elsewhere it says that it was skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::tools;

/// The kernel's sign of a GPU: a PC's, or a Jetson's.
const SIGNS: [&str; 3] = ["/dev/nvidia0", "/dev/nvhost-gpu", "/dev/nvgpu/igpu0/power"];

/// Builds the release binary and has `tools/gpu_check` look at it, with these models beside the built-in ones, and then
/// `tools/gpu_check_tensorrt` and `tools/gpu_check_engines`, which skip themselves where there is no TensorRT.
pub(crate) fn run(models: &[String]) -> Result<()> {
    if !SIGNS.iter().any(|sign| Path::new(sign).exists()) {
        eprintln!("gpu: SKIPPED: no NVIDIA GPU here ({} and the like are not there)", SIGNS[0]);
        return Ok(());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies outside a repository")?;
    let build = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut cargo = Command::new("cargo");
    tools::run(cargo.current_dir(root).args(["build", "--release", "--locked"])).context("prony was not built")?;
    let mut check = Command::new("python3");
    check.arg(root.join("tools/gpu_check")).arg(build.join("release/prony")).arg(build.join("gpu-runs")).args(models);
    tools::run(&mut check).context("a check does not hold")?;
    let mut check = Command::new("python3");
    check
        .arg(root.join("tools/gpu_check_tensorrt"))
        .arg(build.join("release/prony"))
        .arg(build.join("gpu-runs/tensorrt"));
    // The quickest builds: what is checked does not depend on how hard TensorRT looked for kernels.
    check.args(["--options", "--opt-level 0"]);
    tools::run(&mut check).context("a check of TensorRT does not hold")?;
    let mut check = Command::new("python3");
    check
        .arg(root.join("tools/gpu_check_engines"))
        .arg(build.join("release/prony"))
        .arg(build.join("gpu-runs/engines"));
    tools::run(&mut check).context("a check of engines does not hold")
}
