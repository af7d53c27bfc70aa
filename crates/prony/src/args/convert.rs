//! Arguments of `prony convert`.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use prony_types::Precision;

use super::PrintArgs;
use prony_plan::options::{os_text, yes_or_no};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony convert yolo.onnx --precision fp16                     yolo-fp16.onnx beside it
  prony convert yolo.onnx --precision fp16 -o half.onnx --force
  prony convert yolo.onnx --precision bf16 --keep-io no        16-bit inputs and outputs too
  prony convert net.onnx --precision fp16 --block Gemm --block /head/Conv_3
  prony compare-outputs yolo.onnx yolo-fp16.onnx --backend-a ort-cpu

Sums, exponents, norms, the decoding of boxes and what feeds a softmax stay in fp32, and so does a
node one of whose weights would be infinite. How the file was made is written beside it, as
Y.onnx.json. Weights in files of their own are taken into the new file.

Exit codes: 0 written; 1 the file could not be written; 2 wrong usage or bad input, nothing was written.")]
pub(crate) struct ConvertArgs {
    /// A model file (.onnx), or builtin-rgb, builtin-thermal
    #[arg(value_parser = os_text())]
    pub(crate) model: String,
    /// fp16 or bf16
    #[arg(long, value_name = "fp16|bf16")]
    pub(crate) precision: Precision,
    /// The new file [default: MODEL-PRECISION.onnx beside the model]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Leave inputs and outputs in fp32
    #[arg(long, value_name = "yes|no", default_value = "yes", action = ArgAction::Set, value_parser = yes_or_no)]
    pub(crate) keep_io: bool,
    /// Leave nodes in fp32, by name or operator; may be repeated
    #[arg(long, value_name = "NAME|TYPE")]
    pub(crate) block: Vec<String>,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}
