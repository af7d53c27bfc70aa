//! Arguments of `prony export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prony_forge::export::{EndToEnd, OPSETS};

use super::PrintArgs;
use prony_plan::options::ImageSize;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony export best.pt                           best.onnx beside it, at the size it was trained with
  prony export best.pt -o out/yolo.onnx --imgsz 480x640 --force
  prony export best.pt --dynamic                 batch, height and width chosen when the graph runs
  prony export yolo26n.pt --end2end no           many boxes, to be suppressed afterwards
  prony export best.pt --json                    what was written, for a machine

Detectors of Ultralytics: YOLOv5u, v8, v9, v10, 11, 12 and 26 of any size, with any number of classes
and with P2 or P6 heads. The checkpoint is read as data and never executed; no Python is needed.
Batch norms and parallel branches are folded in double precision.")]
pub(crate) struct ExportArgs {
    /// A checkpoint (.pt)
    #[arg(value_name = "MODEL.pt")]
    pub(crate) model: PathBuf,

    /// Where to write it [default: beside the checkpoint, as .onnx]
    #[arg(long, short, value_name = "X.onnx")]
    pub(crate) output: Option<PathBuf>,

    /// Network input, N or HxW [default: what it was trained with, or 640]
    #[arg(long, value_name = "N|HxW")]
    pub(crate) imgsz: Option<ImageSize>,

    /// Images a call
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) batch: u32,

    /// Let batch, height and width be chosen when the graph runs
    #[arg(long)]
    pub(crate) dynamic: bool,

    /// 16-bit floats: weights, input and output
    #[arg(long)]
    pub(crate) half: bool,

    /// Operator set, 13 to 18
    #[arg(long, value_name = "N", default_value_t = 17, value_parser = opset)]
    pub(crate) opset: u32,

    /// Give each object once (yes), or many boxes that are suppressed afterwards (no); auto takes what the model was
    /// trained for
    #[arg(long, value_name = "auto|yes|no", default_value = "auto", hide_default_value = true)]
    pub(crate) end2end: EndToEndChoice,

    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// Which branches of the head.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EndToEndChoice {
    Auto,
    Yes,
    No,
}

impl From<EndToEndChoice> for EndToEnd {
    fn from(choice: EndToEndChoice) -> EndToEnd {
        match choice {
            EndToEndChoice::Auto => EndToEnd::Auto,
            EndToEndChoice::Yes => EndToEnd::Yes,
            EndToEndChoice::No => EndToEnd::No,
        }
    }
}

fn opset(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| OPSETS.contains(number));
    number.ok_or_else(|| {
        format!("`{text}` is no operator set that can be written; {} to {} are", OPSETS.start(), OPSETS.end())
    })
}
