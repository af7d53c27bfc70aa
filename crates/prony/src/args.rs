//! The command line as it is typed. Nothing beyond [`crate::resolve`] sees these types.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use prony_types::SceneKind;

use crate::options::BenchOptions;
use crate::version::VERSION;

/// Puts vision models on the brake: which model, backend and precision to ship on this device, with evidence.
#[derive(Debug, Parser)]
#[command(name = "prony", version = VERSION, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Examples:
  prony bench                              the built-in detectors on the embedded engine
  prony bench yolo.onnx --source photos/   a model of yours on images of yours
  prony report runs/20261115T041200Z-bench --format md
  prony doctor                             what this machine has, and whether it is fit to be measured on

Exit codes: 0 all well; 1 a cell failed; 2 wrong usage or bad input; 3 a gate or wrong output; 130 interrupted.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Measure models and write a report
    Bench(Box<BenchArgs>),
    /// Make data sets
    Data(DataArgs),
    /// Render the report of a run again
    Report(ReportArgs),
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
  prony bench builtin-rgb --duration 30           30 s a cell, no early stop
  prony bench a.onnx b.onnx --source photos/      your models on your images
  prony bench resnet.onnx --head none             a model that is not a detector, on random input
  prony bench --plan prony.toml --imgsz 640       a plan file; the flag beats the file
  prony bench --dry-run                           what would be measured, and for how long
  prony bench --resume runs/20261115T041200Z-bench

Times take a unit (500ms, 10s, 2m); a bare number is seconds.")]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) options: BenchOptions,

    /// Read options from this file; flags beat it
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub(crate) plan: Option<PathBuf>,

    /// Finish the cells of an earlier run that are missing
    #[arg(long, value_name = "RUN", help_heading = "Run", conflicts_with_all = ["plan", "models", "name"])]
    pub(crate) resume: Option<PathBuf>,

    /// Say what would be measured, then stop
    #[arg(long, help_heading = "Run")]
    pub(crate) dry_run: bool,

    /// Print the report as JSON on stdout
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// No progress, only the result
    #[arg(long, short, help_heading = "Output", conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Say more about what is going on
    #[arg(long, short, help_heading = "Output")]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    pub(crate) verb: DataVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataVerb {
    /// Write built-in scenes as a COCO and Ultralytics data set
    Synth(SynthArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  prony data synth --kind rgb --count 500 --seed 7 scenes/")]
pub(crate) struct SynthArgs {
    /// Folder to make
    pub(crate) out: PathBuf,
    /// Colour or heat
    #[arg(long, default_value = "rgb", value_name = "rgb|thermal")]
    pub(crate) kind: SceneKind,
    /// Number of images
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// The same seed gives the same bytes, everywhere
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
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
  prony report runs/20261115T041200Z-bench --format html --redact -o share.html")]
pub(crate) struct ReportArgs {
    /// A run folder, or a report.json
    pub(crate) run: PathBuf,
    /// What to render
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ReportFormat,
    /// Where to; `-` is stdout. Default: the run folder, stdout for text and json
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Leave host name and paths out
    #[arg(long)]
    pub(crate) redact: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony doctor                          on the terminal
  prony doctor --out env_report.txt     into a file
  prony doctor --json                   the object that is `environment` in report.json

The preflight says PASS, WARN or FAIL and gives a command where one helps. Doctor reports and
does not gate: it exits with 0 whatever it finds, also where nothing is installed.")]
pub(crate) struct DoctorArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Write to this file instead; `-` is stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
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
