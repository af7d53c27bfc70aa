//! The command line of engines: `prony build` and `prony cache`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use prony_types::Precision;

use super::{PrintArgs, TrustArgs, WaitArgs};
use prony_plan::engine_options::EngineArgs;
use prony_plan::options::{DeviceIndex, ImageSize, NamedLibrary, Size, os_text, os_value};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[command(after_help = "Examples:
  prony build yolo.onnx --precision fp16                    an engine in the cache, for `prony bench`
  prony build yolo.onnx --precision fp32,fp16,int8 --calibration photos/ --out engines/
  prony build builtin-rgb --precision int8 --opt-level 0    calibrated on built-in scenes
  prony build net.onnx --profile ids=1x16:1x128:8x512       an input with free axes
  prony build yolo.onnx --precision fp16 --low-memory       on a board with little memory
  sudo prony build yolo.onnx --prepare                      drop caches, swap earlier, full power; undone afterwards

On TensorRT 8 and 10 a precision is permitted to the builder: int8 permits int8 and fp32, as trtexec
does. On 11 the graph itself must carry it. What the layers really compute in is shown by
`prony inspect X.engine` and proved in every `prony bench`.

A build is ended by Ctrl-C: its process is killed, the cache stays whole.

Exit codes: 0 every engine is there; 1 one is not; 2 wrong usage or bad input; 130 interrupted.")]
pub(crate) struct BuildArgs {
    /// A model file (.onnx), or builtin-rgb, builtin-thermal
    #[arg(value_parser = os_text())]
    pub(crate) model: String,

    /// Precisions, separated by commas: fp32, tf32, fp16, bf16, int8, fp8, nvfp4, native
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "fp32")]
    pub(crate) precision: Vec<Precision>,

    /// Frames a call, for inputs whose batch is free
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) batch: u32,

    /// Network input, N or HxW, for inputs whose size is free [default: what the model says]
    #[arg(long, value_name = "N|HxW")]
    pub(crate) imgsz: Option<ImageSize>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    /// Which GPU, from 0
    #[arg(long, value_name = "N", default_value_t, help_heading = "Machine")]
    pub(crate) device: DeviceIndex,

    /// CPU threads of the builder [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Machine")]
    pub(crate) threads: Option<u32>,

    /// Most GPU memory that the build may take, e.g. 4GB
    #[arg(long, value_name = "SIZE", help_heading = "Machine")]
    pub(crate) gpu_mem_limit: Option<Size>,

    /// Drop caches, swap earlier and raise the power mode while building; needs root, and is undone afterwards
    #[arg(long, help_heading = "Machine")]
    pub(crate) prepare: bool,

    /// Use this library, e.g. nvinfer=/opt/tensorrt/lib/libnvinfer.so.10
    #[arg(long, value_name = "NAME=PATH", value_parser = os_value::<NamedLibrary>(), help_heading = "Machine")]
    pub(crate) library: Vec<NamedLibrary>,

    #[command(flatten)]
    pub(crate) trust: TrustArgs,

    /// Prony's own folder. Default: $PRONY_HOME, else prony in the XDG data folder
    #[arg(long, value_name = "DIR", help_heading = "Machine")]
    pub(crate) home: Option<PathBuf>,

    /// Also put engines and sidecars into this folder, as MODEL-PRECISION.engine
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,

    /// Build although the cache has it
    #[arg(long, help_heading = "Output")]
    pub(crate) rebuild: bool,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony cache list                        engines, the longest unused first
  prony cache verify                      every engine against the hash in its sidecar
  prony cache prune --older-than 30d      what was not used for a month
  prony cache prune --to 2GB              the longest unused, until the rest fits
  prony cache prune --all")]
pub(crate) struct CacheArgs {
    /// Prony's own folder. Default: $PRONY_HOME, else prony in the XDG data folder
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) home: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) verb: CacheVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheVerb {
    /// What is in the cache
    #[command(after_help = "Example:\n  prony cache list --json")]
    List(PrintArgs),
    /// Remove engines; those that are being made stay
    Prune(PruneArgs),
    /// Hash every engine and hold it against its sidecar; exit 1 where one does not fit
    #[command(after_help = "Example:\n  prony cache verify")]
    Verify(PrintArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony cache prune --older-than 30d
  prony cache prune --to 2GB
  prony cache prune --all                 timing and calibration caches too")]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    pub(crate) what: PruneRule,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// What goes; one of them at least.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct PruneRule {
    /// What was not used for this long, e.g. 12h or 30d
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<Age>,
    /// The longest unused, until the rest is no larger than this
    #[arg(long, value_name = "SIZE")]
    pub(crate) to: Option<Size>,
    /// Everything
    #[arg(long)]
    pub(crate) all: bool,
}

/// How long something was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Age, String> {
        let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];
        let wrong = || format!("`{text}` is not an age, like 12h, 30d or 8w");
        let (number, unit) =
            units.iter().find_map(|&(name, unit)| Some((text.trim().strip_suffix(name)?, unit))).ok_or_else(wrong)?;
        let seconds = number.trim().parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)?;
        Ok(Age(Duration::from_secs(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_a_unit() {
        assert_eq!("30d".parse(), Ok(Age(Duration::from_secs(30 * 86_400))));
        assert_eq!("12h".parse(), Ok(Age(Duration::from_secs(12 * 3600))));
        for bad in ["30", "d", "-1d", "1y", "99999999999999999999d"] {
            assert!(bad.parse::<Age>().unwrap_err().contains("is not an age"), "{bad}");
        }
    }
}
