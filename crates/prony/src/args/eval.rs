//! The command line of `prony eval`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony eval --detections detections.json --data instances_val2017.json
  prony eval --detections detections.json --data scenes/ --per-class
  prony eval --detections detections.json --data scenes/ --json > metrics.json

The file is in COCO's result form: [{\"image_id\": 42, \"category_id\": 18, \"bbox\": [x, y, width, height],
\"score\": 0.236}, …]. The twelve figures are those of pycocotools on the same files; the interval is
a bootstrap over images. Boxes and objects that cannot be used are counted and named.

Exit codes: 0 all well; 2 wrong usage, or nothing that could be scored.")]
pub(crate) struct EvalArgs {
    /// Score the boxes of this result file
    #[arg(long, value_name = "FILE")]
    pub(crate) detections: PathBuf,

    /// The truth: a COCO instances*.json, or a folder that holds one, itself or in annotations/
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) data: PathBuf,

    /// Decides which images the bootstrap draws
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) seed: u64,

    /// Leave the interval out
    #[arg(long)]
    pub(crate) no_interval: bool,

    /// Each class too
    #[arg(long)]
    pub(crate) per_class: bool,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}
