//! `prony convert`: an ONNX file in 16-bit floats, and beside it how it was made.

use std::fmt::Write as _;

use anyhow::{Context as _, bail, ensure};
use prony_backend::made_elsewhere;
use prony_forge::convert::{ConvertReport, Converted, Why, convert as to_half};
use prony_model::{ModelFile, sha256_hex};
use prony_types::os_text::path_to_text;
use prony_types::{ExitCode, HalfSpec, Precision};
use serde_json::{Value, json};

use super::target::Target;
use crate::args::ConvertArgs;
use crate::command::with_making_progress;
use crate::error::{CliError, OrCliError as _};
use crate::output::{View, print};
use crate::version::VERSION;
use prony_plan::named::{Located, Opening, locate, open};
use prony_work::megabytes;

/// The form of what is written beside the file.
const SCHEMA: &str = "prony.convert/1";
/// Most constants that are told one by one.
const SHOWN: usize = 8;

pub(crate) fn convert(args: &ConvertArgs) -> Result<ExitCode, CliError> {
    let spec = spec(args).usage()?;
    let Located { source, note } = locate(&args.model).usage()?;
    note.iter().for_each(|note| note!("{note}"));
    let target = Target::find(args.output.as_deref(), &source, &format!("-{}", spec.precision), args.force).usage()?;
    let (made, model) = with_making_progress("converting", || -> anyhow::Result<(Converted, ModelFile)> {
        let model = open(&args.model, &Opening::in_home(None, &View))?.file;
        let made = to_half(&model, &spec).with_context(|| args.model.clone())?;
        Ok((made, model))
    })
    .usage()?;
    let sidecar = sidecar(args, &spec, &model, &made);
    target.write(&made.bytes, &sidecar)?;
    let told = match args.print.json {
        true => {
            let mut told = sidecar;
            told["output"] = json!(path_to_text(&target.file));
            serde_json::to_string_pretty(&told).failed()? + "\n"
        }
        false => summary(&made.report, &target),
    };
    print(told)?;
    Ok(ExitCode::Ok)
}

fn spec(args: &ConvertArgs) -> anyhow::Result<HalfSpec> {
    let asked = args.precision;
    if let Some(how) = made_elsewhere(asked) {
        bail!("--precision {asked}: {how}");
    }
    ensure!(
        matches!(asked, Precision::Fp16 | Precision::Bf16),
        "--precision {asked}: a graph is converted to fp16 or bf16; int8 is made by `prony quantize`"
    );
    Ok(HalfSpec { precision: asked, keep_io: args.keep_io, block: args.block.clone() })
}

fn sidecar(args: &ConvertArgs, spec: &HalfSpec, model: &ModelFile, made: &Converted) -> Value {
    json!({
        "schema": SCHEMA,
        "prony": VERSION,
        "model": args.model,
        "source_sha256": model.sha256,
        "spec": spec,
        "sha256": sha256_hex(&made.bytes),
        "report": made.report,
    })
}

fn summary(report: &ConvertReport, target: &Target) -> String {
    let (before, after) = (megabytes(report.bytes_before), megabytes(report.bytes_after));
    let mut text = format!("{}: {}, {before} became {after}\n", target.file.display(), report.precision);
    let io = if report.keep_io { "inputs and outputs in fp32" } else { "inputs and outputs too" };
    let (half, kept) = (report.nodes_half, report.kept.len());
    let _ = writeln!(text, "  nodes    {half} in {}, {kept} in fp32, {} casts; {io}", report.precision, report.casts);
    for (why, count) in report.kept_by_reason() {
        let _ = writeln!(text, "           {count:4}  {}", reason(why));
    }
    let (tensors, elements) = (report.weights_half, report.elements_half);
    let _ = writeln!(
        text,
        "  weights  {tensors} with {elements} elements; {} are there in both forms",
        report.weights_doubled
    );
    let lost = report.losses;
    let _ = writeln!(
        text,
        "  lost     {} would overflow and stayed in fp32, {} are subnormal, {} became 0",
        lost.overflowed, lost.subnormal, lost.zeroed
    );
    let mut tensors: Vec<_> = report.tensors.iter().collect();
    tensors.sort_by_key(|tensor| std::cmp::Reverse((tensor.kept, tensor.losses.zeroed, tensor.losses.subnormal)));
    for tensor in tensors.iter().take(SHOWN) {
        let (losses, of) = (tensor.losses, tensor.elements);
        let (over, small, zero) = (losses.overflowed, losses.subnormal, losses.zeroed);
        let _ = writeln!(text, "           {}: {over} over, {small} subnormal, {zero} to 0, of {of}", tensor.tensor);
    }
    if let Some(more) = tensors.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        let _ = writeln!(text, "           and {more} more; all of them are in {}", target.beside.display());
    }
    if let Some([from, to]) = report.opset {
        let _ = writeln!(text, "  opset    {from} became {to}, the first in which bf16 is allowed here");
    }
    text
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::Operator => "sum, take exponents, find the best, or are of no operator that is known to hold 16 bits",
        Why::Decoding => "make boxes and scores of what the network gives",
        Why::Blocked => "are blocked by --block",
        Why::Overflow => "have a constant that would be infinite",
        Why::FeedsSoftmax => "feed a softmax and nothing else",
        Why::Between => "stand between nodes that stay",
        Why::Opaque => "have graphs within, or types that cannot be told",
    }
}
