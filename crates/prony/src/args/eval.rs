//! The command line of `prony eval`.

use std::path::PathBuf;

use clap::Args;

use super::{BenchArgs, LibrariesArgs, PrintArgs, WaitArgs};
use prony_plan::options::BenchOptions;

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[command(after_help = "Examples:
  prony eval builtin-rgb --data scenes                         on 500 built-in scenes
  prony eval yolo.onnx --data instances_val2017.json --limit 500 --seed 1
  prony eval yolo.onnx --data data.yaml --backends all --precision fp32,fp16
  prony eval yolo.engine --data coco/ --gate map_min=0.37
  prony eval --detections detections.json --data instances_val2017.json --per-class
  prony eval --detections detections.json --data scenes/ --json > metrics.json

Models are run as `prony bench --data` runs them, without being timed: confidence 0.001, overlap
0.7, every class of a box that is sure enough, 300 boxes an image, of which COCO's rules take 100.
A result file is in COCO's form: [{\"image_id\": 42, \"category_id\": 18, \"bbox\": [x, y, width,
height], \"score\": 0.236}, …]. The twelve figures are those of pycocotools on the same files; the
interval is a bootstrap over images. What cannot be used is counted and named.

Nothing is timed, so no other measurement is waited for, except where TensorRT has to build an engine.

Exit codes: 0 all well; 1 a cell failed; 2 wrong usage, or nothing that could be scored; 3 a broken
gate or wrong output; 4 inconclusive; 130 interrupted.")]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    pub(crate) options: BenchOptions,

    #[command(flatten)]
    pub(crate) libraries: LibrariesArgs,

    /// Score the boxes of this result file instead of running a model
    #[arg(long, value_name = "FILE", help_heading = "Accuracy", conflicts_with = "models")]
    pub(crate) detections: Option<PathBuf>,

    /// With --detections: leave the interval out
    #[arg(long, help_heading = "Accuracy", requires = "detections")]
    pub(crate) no_interval: bool,

    /// With --detections: each class too
    #[arg(long, help_heading = "Accuracy", requires = "detections")]
    pub(crate) per_class: bool,

    /// Read options from this file; flags beat it
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub(crate) plan: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) print: PrintArgs,

    /// Say more about what is going on
    #[arg(long, short, help_heading = "Output", conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

impl EvalArgs {
    /// The same as a run that is not timed.
    pub(crate) fn as_run(&self) -> BenchArgs {
        BenchArgs {
            options: BenchOptions { only_scored: true, ..self.options.clone() },
            libraries: self.libraries,
            plan: self.plan.clone(),
            resume: None,
            dry_run: false,
            wait: self.wait,
            print: self.print,
            verbose: self.verbose,
        }
    }
}
