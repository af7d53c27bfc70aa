//! The machine a run was made on.

use serde::{Deserialize, Serialize};

use crate::{PeakRecord, RuntimeName};

/// The machine, as far as it can be read. What is not there is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Distribution and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Kernel release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// The board or machine model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Hypervisor, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<String>,
    /// The processor.
    pub cpu: CpuRecord,
    /// All memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_total_bytes: Option<u64>,
    /// Memory the system could give at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_available_bytes: Option<u64>,
    /// All swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_total_bytes: Option<u64>,
    /// Load average over one minute at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load1: Option<f64>,
    /// Swap in use at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_used_bytes: Option<u64>,
    /// Room left where runs are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
    /// Release of Jetson Linux, e.g. `R36.4.3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l4t: Option<String>,
    /// Release of JetPack, e.g. `6.2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jetpack: Option<String>,
    /// Power mode of a Jetson, e.g. `MAXN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_mode: Option<String>,
    /// Version of the GPU driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuRecord>,
    /// The most that the devices in use can do; measured where a cell was timed on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peaks: Vec<PeakRecord>,
    /// Libraries and programs that were looked for: each copy that is there, or one line for what is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<RuntimeRecord>,
    /// Python packages that matter here, read from their metadata.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<PythonPackage>,
    /// Whether the machine is fit to be measured on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preflight: Vec<Check>,
    /// Names of the sensors that answered.
    #[serde(default)]
    pub sensors: Vec<String>,
    /// Things worth knowing before trusting figures: load, governor, missing sensors.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuRecord {
    /// Marketing name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// CPUs this process may use.
    pub usable: u32,
    /// Physical cores, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Frequency governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Highest frequency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
    /// Instruction sets that matter here.
    #[serde(default)]
    pub features: Vec<String>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuRecord {
    /// Marketing name.
    pub name: String,
    /// Compute capability, e.g. `9.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<String>,
    /// Streaming multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sms: Option<u32>,
    /// Its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_total_bytes: Option<u64>,
    /// Whether it shares its memory with the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrated: Option<bool>,
    /// Highest clock of its multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_khz: Option<u64>,
    /// Clock of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_khz: Option<u64>,
    /// Width of the way to its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bits: Option<u32>,
    /// Its last-level cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
}

/// Whether a runtime can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeState {
    /// It was opened and answered.
    Ready,
    /// It was not found.
    Missing,
    /// It is there and cannot be used.
    Broken,
    /// It is there and was not opened, because it is not the user's to trust.
    #[serde(rename = "not-opened")]
    NotOpened,
}

impl RuntimeState {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            RuntimeState::Ready => "ready",
            RuntimeState::Missing => "missing",
            RuntimeState::Broken => "broken",
            RuntimeState::NotOpened => "not opened",
        }
    }
}

/// One copy of a library or program, or the fact that there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuntimeRecord {
    /// What it is.
    pub name: RuntimeName,
    /// Whether it can be used.
    pub state: RuntimeState,
    /// Its file, symbolic links followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How it was found: `PRONY_HOME`, `loader`, `python`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_by: Option<String>,
    /// Its version, by its own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it brings: providers, devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Why it is broken, or was not opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who else owns it or may write to it, where it was opened all the same because of `--trust-library`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<String>,
    /// Where it was looked for in vain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked: Vec<String>,
    /// How to get it or mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// An installed Python package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonPackage {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// The site-packages folder it lies in.
    pub place: String,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// Good.
    Pass,
    /// Figures may suffer.
    Warn,
    /// Figures will be worthless.
    Fail,
}

impl Outcome {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Pass => "PASS",
            Outcome::Warn => "WARN",
            Outcome::Fail => "FAIL",
        }
    }
}

/// One line of the preflight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it came out.
    pub outcome: Outcome,
    /// What was seen.
    pub finding: String,
    /// The command that mends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}
