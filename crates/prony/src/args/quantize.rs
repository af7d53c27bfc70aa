//! Arguments of `prony quantize`.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use prony_types::{BackendName, CalibrationMethod, QuantiseFor};

use super::{PrintArgs, TrustArgs};
use prony_plan::engine_options::{CALIBRATION_FRAMES, CALIBRATION_SEED, REWRITE_METHOD};
use prony_plan::gate_options::GateLimit;
use prony_plan::options::{ImageSize, NamedLibrary, os_text, os_value, yes_or_no};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony quantize yolo.onnx --calib photos/ --samples 300           makes yolo-int8.onnx
  prony quantize yolo.onnx --calib photos/ --for onnxruntime -o yolo-ort.onnx
  prony quantize yolo.onnx --calib photos/ --exclude /model.0/conv/Conv --exclude ConvTranspose
  prony quantize yolo.onnx --calib photos/ --sensitivity           what each layer costs
  prony quantize yolo.onnx --calib photos/ --sensitivity --gate map_drop_max=1 --data val.yaml
  prony quantize builtin-rgb --calib scenes --samples 200 --json

Quantisers are symmetric. What gives or decodes boxes and scores stays in float, and so does attention.
`--for any` is taken by all libraries; `--for onnxruntime` is fast there on x86, `--for tensorrt` has
more layers in bytes. Magnitudes are kept in Prony's folder: another method needs no new run. Beside
the file stands FILE.json with layers, ranges and signal-to-noise ratios.

Exit codes: 0 all well; 1 a backend failed; 2 wrong usage or bad input; 3 the gate held with no choice
of layers; 130 interrupted.")]
pub(crate) struct QuantizeArgs {
    /// A model file (.onnx), or builtin-rgb, builtin-thermal
    #[arg(value_parser = os_text())]
    pub(crate) model: String,

    /// What ranges are found on: `scenes`, a folder of images or a data set, or tensors
    #[arg(long, value_name = "scenes|DIR|x.npz", help_heading = "Calibration")]
    pub(crate) calib: Option<PathBuf>,
    /// How many frames of it
    #[arg(long, value_name = "N", default_value_t = CALIBRATION_FRAMES, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Calibration")]
    pub(crate) samples: u32,
    /// How ranges are found: minmax, percentile (99.99 % of the values), entropy or mse
    #[arg(long, value_name = "METHOD", default_value_t = REWRITE_METHOD, help_heading = "Calibration")]
    pub(crate) method: CalibrationMethod,
    /// Seed of built-in scenes; not that of a measurement
    #[arg(long, value_name = "N", default_value_t = CALIBRATION_SEED, help_heading = "Calibration")]
    pub(crate) seed: u64,
    /// Network input, N or HxW [default: what the model says]
    #[arg(long, value_name = "N|HxW", help_heading = "Calibration")]
    pub(crate) imgsz: Option<ImageSize>,

    /// Whose patterns the graph is written in: any, onnxruntime, openvino or tensorrt
    #[arg(long = "for", value_name = "TARGET", default_value = "any", help_heading = "Graph")]
    pub(crate) target: QuantiseFor,
    /// A scale for every output channel of a weight, or one for all
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = yes_or_no, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "yes", help_heading = "Graph")]
    pub(crate) per_channel: bool,
    /// Keep these in float: a node by its name, or all of an operator. May be given again
    #[arg(long, value_name = "NAME|TYPE", help_heading = "Graph")]
    pub(crate) exclude: Vec<String>,

    /// Rank the layers by what each costs when it alone is quantised
    #[arg(long, help_heading = "Sensitivity")]
    pub(crate) sensitivity: bool,
    /// Keep the dearest layers in float until this holds: map_drop_max=POINTS
    #[arg(long, value_name = "NAME=LIMIT", requires = "sensitivity", help_heading = "Sensitivity")]
    pub(crate) gate: Option<GateLimit>,
    /// What the gate is judged on: `scenes`, or a data set [default: scenes for the built-in detectors]
    #[arg(long, value_name = "scenes|PATH", requires = "gate", help_heading = "Sensitivity")]
    pub(crate) data: Option<PathBuf>,
    /// Judge on so many images only
    #[arg(long, value_name = "N", requires = "gate", help_heading = "Sensitivity")]
    pub(crate) limit: Option<u32>,

    /// What runs the graph: rten or ort-cpu
    #[arg(long, value_name = "NAME", default_value = "rten", help_heading = "Backend")]
    pub(crate) backend: BackendName,
    /// Use this library, e.g. onnxruntime=/opt/ort/lib/libonnxruntime.so
    #[arg(long, value_name = "NAME=PATH", value_parser = os_value::<NamedLibrary>(), help_heading = "Backend")]
    pub(crate) library: Vec<NamedLibrary>,

    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// CPU threads [default: one a physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Backend")]
    pub(crate) threads: Option<u32>,
    /// Prony's own folder. Default: $PRONY_HOME, else prony in the XDG data folder
    #[arg(long, value_name = "DIR", help_heading = "Backend")]
    pub(crate) home: Option<PathBuf>,

    /// The file to make [default: MODEL-int8.onnx beside the model]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Replace what is there
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}
