//! The command line as it is typed. Nothing beyond the commands sees these types.

mod compare;
mod convert;
mod data;
mod engine;
mod eval;
mod export;
mod own_library;
mod quantize;
mod trust;
mod wait;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use prony_types::{BackendName, HeadChoice, Precision};

pub(crate) use self::compare::{CompareArgs, CompareOutputsArgs};
pub(crate) use self::convert::ConvertArgs;
pub(crate) use self::data::{ChoiceArgs, DataArgs, DataVerb, FetchArgs, InfoArgs, SubsetArgs, SynthArgs};
pub(crate) use self::engine::{BuildArgs, CacheArgs, CacheVerb, PruneArgs, PruneRule};
pub(crate) use self::eval::EvalArgs;
pub(crate) use self::export::ExportArgs;
pub(crate) use self::own_library::OwnLibrary;
pub(crate) use self::quantize::QuantizeArgs;
pub(crate) use self::trust::{LibrariesArgs, TrustArgs};
pub(crate) use self::wait::WaitArgs;
use crate::version::VERSION;
use prony_plan::engine_options::EngineArgs;
use prony_plan::options::{BenchOptions, DeviceIndex, ImageSize, NamedLibrary, os_text, os_value};
use prony_run::inline::InputShape;
use prony_runtimes::Request;

/// Puts vision models on the brake: which model, backend and precision to ship on this device, with evidence.
#[derive(Debug, Parser)]
#[command(name = "prony", version = VERSION, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Examples:
  prony bench                              the built-in detectors on the backends that are ready here
  prony bench yolo.onnx --source photos/   a model of yours on images of yours
  prony report runs/20261115T041200Z-bench --format md
  prony compare runs/20261114T041200Z-bench runs/20261115T041200Z-bench
  prony doctor                             what this machine has, and whether it is fit to be measured on

Exit codes: 0 all well; 1 a cell failed; 2 wrong usage or bad input; 3 a broken gate or wrong output;
4 inconclusive; 130 interrupted.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// No progress and no notes: only the result, warnings and errors
    #[arg(long, short, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Measure models and write a report
    Bench(Box<BenchArgs>),
    /// Say how right boxes are: COCO's twelve figures, with an interval
    Eval(Box<EvalArgs>),
    /// Run a model once on your tensors or your image, and look at what comes out
    Run(Box<RunArgs>),
    /// Say what a model file is and what is in it
    Inspect(InspectArgs),
    /// Make an ONNX file of a PyTorch checkpoint, without Python
    Export(ExportArgs),
    /// Bring an ONNX file to 16-bit floats
    Convert(ConvertArgs),
    /// Put int8 quantisers into an ONNX file, with ranges from your data
    Quantize(QuantizeArgs),
    /// Build TensorRT engines from a model, or find them in the cache
    Build(Box<BuildArgs>),
    /// List, check and prune the engines that were built
    Cache(CacheArgs),
    /// Look into data sets, cut, make and download them
    Data(DataArgs),
    /// Hold a run against an earlier one
    Compare(CompareArgs),
    /// Hold the outputs of two models or two backends against each other
    CompareOutputs(Box<CompareOutputsArgs>),
    /// Render the report of a run again
    Report(ReportArgs),
    /// List, install and remove ONNX Runtime, OpenVINO and ffmpeg
    Runtime(RuntimeArgs),
    /// Describe this machine and say whether it is fit to be measured on
    Doctor(DoctorArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[command(after_help = "Examples:
  prony bench                                     both built-in detectors, built-in scenes
  prony bench yolo.onnx                           on the backends that are ready here
  prony bench yolo.onnx --backends tensorrt,ort-cpu --precision fp16,fp32
  prony bench builtin-rgb --duration 30           30 s per cell, no early stop
  prony bench a.onnx b.onnx --source photos/      your models on your images
  prony bench resnet.onnx --head none             a model that is not a detector, on random input
  prony bench --plan prony.toml --imgsz 640       a plan file; the flag beats the file
  prony bench --gate p99_max_ms=20 --baseline runs/20261115T041200Z-bench --gate latency_ratio_max=1.05
  prony bench --dry-run                           what would be measured, and for how long
  prony bench --resume runs/20261115T041200Z-bench

Without --backends, those of tensorrt, ort-cuda, openvino and ort-cpu are measured that are ready
here, on NVIDIA GPUs in fp16 and fp32, on CPUs in fp32; rten only if none of them is.

A p99 gate measures at least the 662 samples that a p99 needs, unless --duration or --samples is given.

One measurement runs at a time on a machine; a second one waits for it and names it (--wait, --no-wait).
The lock is seen within one network namespace: measurements in other containers are not noticed.

Times take a unit (500ms, 10s, 2m); a bare number is seconds.")]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) options: BenchOptions,

    #[command(flatten)]
    pub(crate) libraries: LibrariesArgs,

    /// Read options from this file; flags beat it
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub(crate) plan: Option<PathBuf>,

    /// Finish the cells of an earlier run that are missing
    #[arg(long, value_name = "RUN", help_heading = "Run", conflicts_with_all = ["plan", "models", "name"])]
    pub(crate) resume: Option<PathBuf>,

    /// Say what would be measured, then stop
    #[arg(long, help_heading = "Run")]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) print: PrintArgs,

    /// Say more about what is going on
    #[arg(long, short, help_heading = "Output", conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

/// How a result is printed: part of every command that has one.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PrintArgs {
    /// Print the result as one JSON document on stdout
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[command(after_help = "Examples:
  prony run builtin-rgb --input photo.jpg                      the outputs as a table, and the boxes
  prony run yolo.onnx --input photo.jpg --output boxes.jpg --output boxes.json
  prony run net.onnx --input x.npy --output y.npy              one input, one output
  prony run net.onnx --input a=a.npy --input b=b.npy --output y.npz
  prony run net.onnx --input x.npz --shape ids=1x128 --json    arrays named as the inputs
  prony run half.onnx --backend ort-cpu --library libonnxruntime.so --input x.npy
  prony run yolo.engine --input photo.jpg --output boxes.jpg   a TensorRT engine
  prony run yolo.onnx --backend tensorrt --precision fp16 --input photo.jpg   its engine is built, or found in the cache

Arrays may be in C or Fortran order, of either byte order. Floats are widened, or rounded and
that is said; whole numbers are converted where every one fits; a bf16 input takes its bits as
uint16, or floats. Outputs are written in the type that they are widened to: float32, int32 or
int64. An image is letterboxed as `prony bench` does it.

The model runs in this very process: what crashes it is seen as it is. An engine is built in a
process of its own, as `prony bench` builds it.

outputs_sha256 in --json is the hash that `prony bench` records for its first frame (cells[].outputs
in report.json): with the same image, backend and precision, equal hashes mean equal outputs to
the bit.

Exit codes: 0 all well; 1 the backend failed; 2 wrong usage or bad input; 3 an output holds NaN
or infinity; 130 interrupted while an engine was built.")]
pub(crate) struct RunArgs {
    /// A model file (.onnx, .pt; .engine, .plan or .trt), or builtin-rgb, builtin-thermal
    #[arg(value_parser = os_text())]
    pub(crate) model: String,

    /// What executes it [default: rten; tensorrt for an engine]
    #[arg(long, value_name = "NAME", help_heading = "Backend")]
    pub(crate) backend: Option<BackendName>,

    /// The library of the backend, or any other by its name, e.g. nvonnxparser=/opt/tensorrt/lib/libnvonnxparser.so.10; may be
    /// repeated [default: what is found here; see `prony doctor`]
    #[arg(long, value_name = "[NAME=]FILE", value_parser = os_value::<OwnLibrary>(), help_heading = "Backend")]
    pub(crate) library: Vec<OwnLibrary>,

    /// Prony's own folder. Default: $PRONY_HOME, else prony in the XDG data folder
    #[arg(long, value_name = "DIR", help_heading = "Backend")]
    pub(crate) home: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) trust: TrustArgs,

    /// Arithmetic [default: what the file brings]
    #[arg(long, value_name = "P", help_heading = "Backend")]
    pub(crate) precision: Option<Precision>,

    /// Try an engine although it was built for another GPU or another TensorRT
    #[arg(long, help_heading = "Backend")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    /// Which device, from 0
    #[arg(long, value_name = "N", default_value_t, help_heading = "Backend")]
    pub(crate) device: DeviceIndex,

    /// CPU threads [default: one a physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Backend")]
    pub(crate) threads: Option<u32>,

    /// An image, an .npy, or an .npz with arrays named as the inputs; repeat it as NAME=FILE for several inputs
    #[arg(long, value_name = "[NAME=]FILE", value_parser = os_text(), help_heading = "Input")]
    pub(crate) input: Vec<String>,

    /// Shape of an input whose axes are free, e.g. images=1x3x640x640 [default: that of the array]
    #[arg(long, value_name = "NAME=SHAPE", help_heading = "Input")]
    pub(crate) shape: Vec<InputShape>,

    /// Where to: .npy for one output, .npz for all, .json for boxes, .jpg or .png for a picture of them; may be repeated
    #[arg(long, short, value_name = "[NAME=]FILE", value_parser = os_text(), help_heading = "Output")]
    pub(crate) output: Vec<String>,

    #[command(flatten)]
    pub(crate) print: PrintArgs,

    /// Lowest confidence that is kept [default: 0.25]
    #[arg(long, value_name = "X", help_heading = "Boxes")]
    pub(crate) conf: Option<f32>,

    /// Overlap above which the weaker box goes [default: 0.45]
    #[arg(long, value_name = "X", help_heading = "Boxes")]
    pub(crate) iou: Option<f32>,

    /// How outputs become boxes: auto, dense, objectness, dfl, end2end, efficient-nms, rtdetr, none [default: auto]
    #[arg(long, value_name = "HEAD", help_heading = "Boxes")]
    pub(crate) head: Option<HeadChoice>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// The self-contained page
    Html,
    /// Markdown
    Md,
    /// Comparison table
    Csv,
    /// The record itself
    Json,
    /// The table that `bench` prints
    Text,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony report runs/20261115T041200Z-bench                      the table, on the terminal
  prony report runs/20261115T041200Z-bench --format html        writes report.html anew
  prony report runs/20261115T041200Z-bench --format md -o -     Markdown on stdout
  prony report runs/20261115T041200Z-bench --format html --redact -o share.html
  prony report --replay runs/20261115T041200Z-bench             makes report.json anew, from the logs alone")]
pub(crate) struct ReportArgs {
    /// A run folder, or a report.json
    pub(crate) run: PathBuf,
    /// What to render [default: text, or json with --json]
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReportFormat>,
    /// Where to; `-` is stdout. Default: the run folder, stdout for text and json
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Leave host name, user name and paths out
    #[arg(long)]
    pub(crate) redact: bool,
    /// Make the record anew from the run's events, samples and readings; without --format, --out or --json, report.json
    #[arg(long)]
    pub(crate) replay: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony runtime list                                what is installed, and whether it is whole
  prony runtime install onnxruntime                 the newest
  prony runtime install onnxruntime@1.23.2          that one, beside others
  prony runtime install openvino --from openvino.whl   a wheel that is here already; no network
  ls -l $(prony runtime path onnxruntime)           the library's path, for scripts
  prony runtime remove onnxruntime@1.20.1

Runtimes are onnxruntime, onnxruntime-gpu, openvino and ffmpeg.")]
pub(crate) struct RuntimeArgs {
    /// Prony's own folder. Default: $PRONY_HOME, else prony in the XDG data folder
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) home: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) verb: RuntimeVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RuntimeVerb {
    /// What is installed, and how to get the rest
    List(RuntimeListArgs),
    /// Fetch the official wheel with pip, check it and unpack its libraries
    Install(RuntimeInstallArgs),
    /// Remove a version, or without one all of them
    Remove(RuntimeNameArgs),
    /// Print the path of the library or program: that version's, or the newest's
    Path(RuntimeNameArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  prony runtime list --json")]
pub(crate) struct RuntimeListArgs {
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony runtime install onnxruntime
  prony runtime install onnxruntime-gpu@1.23.2
  prony runtime install ffmpeg --from imageio_ffmpeg-0.7.0-py3-none-manylinux2014_x86_64.whl

The wheel comes through the user's own pip, with its index, proxy and cache settings: PIP_* variables
and pip's configuration apply, relative paths in them from a scratch folder. It runs isolated (python3
-I -m pip), without PYTHON* variables and not in the current folder.")]
pub(crate) struct RuntimeInstallArgs {
    /// onnxruntime, onnxruntime-gpu, openvino or ffmpeg; without a version the newest
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) runtime: Request,
    /// Take this wheel instead of asking pip
    #[arg(long, value_name = "FILE.whl")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony runtime path onnxruntime
  prony runtime remove onnxruntime@1.20.1")]
pub(crate) struct RuntimeNameArgs {
    /// onnxruntime, onnxruntime-gpu, openvino or ffmpeg
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) runtime: Request,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony inspect yolo.onnx               shapes, cost, types, head, classes, what can run it here
  prony inspect yolo.onnx --layers      every node by its share of the arithmetic
  prony inspect yolo.onnx --imgsz 480x640 --batch 4 --json
  prony inspect big.onnx --no-backends  the file alone
  prony inspect yolo.pt                 task, classes, weights, modules; nothing in it is executed
  prony inspect yolo.engine             who built it and for what; with TensorRT also what is in it
  prony inspect yolo.engine --json
  prony inspect nms.engine --plugin libmyplugins.so

A multiply-add counts 2 FLOPs. A predicted time is a floor and no forecast: what the arithmetic
and the memory traffic of the layers take at the peak of the device, which is measured (CPU) or
computed from what the driver says (NVIDIA).

Without a GPU or TensorRT an engine still says what its file says, and one line why the rest is
missing; that is no failure. Exit codes: 0 all well; 1 another measurement did not end in time
(--wait); 2 wrong usage, or no model.")]
pub(crate) struct InspectArgs {
    /// A model file (.onnx, .pt; .engine, .plan or .trt), or builtin-rgb, builtin-thermal
    #[arg(value_parser = os_text())]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    /// List every node of a graph, the most arithmetic first
    #[arg(long)]
    pub(crate) layers: bool,
    /// Input size where the graph leaves it open: N or HxW. Default: what its exporter wrote, else 640
    #[arg(long, value_name = "N|HxW")]
    pub(crate) imgsz: Option<ImageSize>,
    /// Frames a call where the graph leaves it open. Default: 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) batch: Option<u32>,
    /// Do not look for what could run it here, and predict nothing
    #[arg(long)]
    pub(crate) no_backends: bool,
    /// A plugin library that the engine needs
    #[arg(long, value_name = "FILE")]
    pub(crate) plugin: Vec<PathBuf>,
    /// Which GPU opens an engine, or is predicted for, from 0
    #[arg(long, value_name = "N", default_value_t)]
    pub(crate) device: DeviceIndex,
    /// Open an engine although it was built for another GPU or another TensorRT
    #[arg(long)]
    pub(crate) force: bool,
    /// Use this library, e.g. nvinfer=/opt/tensorrt/lib/libnvinfer.so.10
    #[arg(long, value_name = "NAME=PATH", value_parser = os_value::<NamedLibrary>())]
    pub(crate) library: Vec<NamedLibrary>,
    #[command(flatten)]
    pub(crate) libraries: LibrariesArgs,
    /// Prony's own folder. Default: $PRONY_HOME, else prony in the XDG data folder
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony doctor                          on the terminal
  prony doctor --out env_report.txt     into a file
  prony doctor --json                   the object that is `environment` in report.json

The preflight says PASS, WARN or FAIL and gives a command where one helps. Doctor reports and
does not gate: it exits with 0 whatever it finds, also where nothing is installed.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    /// Write to this file instead; `-` is stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Look at this library or program, e.g. onnxruntime=/opt/ort/lib/libonnxruntime.so
    #[arg(long, value_name = "NAME=PATH", value_parser = os_value::<NamedLibrary>())]
    pub(crate) library: Vec<NamedLibrary>,
    #[command(flatten)]
    pub(crate) libraries: LibrariesArgs,
    /// Prony's own folder. Default: $PRONY_HOME, else prony in the XDG data folder
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  prony completions bash > ~/.local/share/bash-completion/completions/prony")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  prony man | man -l -")]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder instead
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
