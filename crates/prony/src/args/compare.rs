//! Arguments of `prony compare` and `prony compare-outputs`.

use std::path::PathBuf;

use clap::Args;
use prony_types::{BackendName, HeadChoice, Precision};

use super::{PrintArgs, TrustArgs, WaitArgs};
use prony_plan::engine_options::EngineArgs;
use prony_plan::gate_options::GateLimit;
use prony_plan::options::{ImageSize, NamedLibrary, os_text, os_value};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony compare runs/20261114T041200Z-bench runs/20261115T041200Z-bench
  prony compare before.json after.json --json               records alone will do
  prony compare before after --gate latency_ratio_max=1.05 --gate map_drop_max=0.5
  prony compare before after --force                        although not everything was the same

Cells are matched by id; each is faster, slower, same, inconclusive or not-comparable. Without
--gate, a cell that is slower or less accurate beyond noise, that takes 10 % more memory, or that
no longer runs is a regression. If the interval is too wide to tell, or one of the runs is
unstable, the answer is inconclusive, with how long to measure. Rows of another device, power
mode, input, post-processing or library are refused, and the fields that differ are listed.

Exit codes: 0 no regression; 2 wrong usage, a row was refused, or nothing could be compared; 3 a
regression; 4 inconclusive: measure again.")]
pub(crate) struct CompareArgs {
    /// The run to compare with: a run folder, or a report.json
    pub(crate) baseline: PathBuf,
    /// The run to compare: a run folder, or a report.json
    pub(crate) run: PathBuf,
    /// A limit that must hold instead of the usual ones: map_min, map_drop_max, p99_max_ms, latency_ratio_max,
    /// memory_growth_max; may be repeated
    #[arg(long, value_name = "NAME=LIMIT")]
    pub(crate) gate: Vec<GateLimit>,
    /// Compare rows that are not comparable; they are marked
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[command(after_help = "Examples:
  prony compare-outputs yolo.onnx yolo-fp16.onnx                     and the first node that diverges
  prony compare-outputs yolo.onnx yolo-int8.onnx --bound 20          at least 20 dB everywhere
  prony compare-outputs yolo.onnx yolo.onnx --backend-a ort-cpu --backend-b rten
  prony compare-outputs builtin-rgb builtin-rgb --backend-b openvino --source photos/ --json
  prony compare-outputs yolo.onnx yolo.engine                        a TensorRT engine against its model
  prony compare-outputs yolo.onnx yolo.onnx --backend-b tensorrt --precision-b fp16

Both models run in this very process on the same frames; nothing is timed. An engine that is not
there is built in a process of its own, as `prony bench` builds it. Figures are the worst over the
frames. Nodes are looked at one by one where both are ONNX files with tensors of the same names;
what a node gives then is an output of the model, which keeps the library from fusing it. An engine
has no ONNX nodes, so with one only outputs and boxes are compared.

Exit codes: 0 they agree; 1 a backend failed; 2 wrong usage or bad input; 3 they do not agree.")]
pub(crate) struct CompareOutputsArgs {
    /// The reference: a model file (.onnx, .pt; .engine, .plan or .trt), or builtin-rgb, builtin-thermal
    #[arg(value_parser = os_text())]
    pub(crate) a: String,
    /// What is compared with it
    #[arg(value_parser = os_text())]
    pub(crate) b: String,
    /// What executes the first [default: rten; tensorrt for an engine]
    #[arg(long, value_name = "NAME", help_heading = "Backend")]
    pub(crate) backend_a: Option<BackendName>,
    /// What executes the second [default: tensorrt for an engine, else what --backend-a names, else rten]
    #[arg(long, value_name = "NAME", help_heading = "Backend")]
    pub(crate) backend_b: Option<BackendName>,
    /// Arithmetic of the first [default: what the file brings]
    #[arg(long, value_name = "P", help_heading = "Backend")]
    pub(crate) precision_a: Option<Precision>,
    /// Arithmetic of the second [default: what the file brings]
    #[arg(long, value_name = "P", help_heading = "Backend")]
    pub(crate) precision_b: Option<Precision>,
    /// Try an engine although it was built for another GPU or another TensorRT
    #[arg(long, help_heading = "Backend")]
    pub(crate) force: bool,
    /// Use this library, e.g. onnxruntime=/opt/ort/lib/libonnxruntime.so
    #[arg(long, value_name = "NAME=PATH", value_parser = os_value::<NamedLibrary>(), help_heading = "Backend")]
    pub(crate) library: Vec<NamedLibrary>,

    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Prony's own folder. Default: $PRONY_HOME, else prony in the XDG data folder
    #[arg(long, value_name = "DIR", help_heading = "Backend")]
    pub(crate) home: Option<PathBuf>,
    /// `scenes`, or a folder of images or a data set [default: scenes]
    #[arg(long, value_name = "scenes|DIR", help_heading = "Input")]
    pub(crate) source: Option<PathBuf>,
    /// Frames to run
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Input")]
    pub(crate) frames: u32,
    /// Seed of built-in scenes and random tensors
    #[arg(long, value_name = "N", default_value_t = 7, help_heading = "Input")]
    pub(crate) seed: u64,
    /// Network input, N or HxW [default: what the models say]
    #[arg(long, value_name = "N|HxW", help_heading = "Input")]
    pub(crate) imgsz: Option<ImageSize>,
    /// How outputs become boxes: auto, dense, objectness, dfl, end2end, efficient-nms, rtdetr, none
    #[arg(long, value_name = "HEAD", default_value = "auto", help_heading = "Boxes")]
    pub(crate) head: HeadChoice,
    /// Least signal-to-noise ratio, in dB [default: by the coarser precision, 40 for fp32, 25 for fp16, 10 for int8]
    #[arg(long, value_name = "DB", help_heading = "Bounds")]
    pub(crate) bound: Option<f64>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}
