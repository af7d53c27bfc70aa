//! `prony export`: a checkpoint as ONNX, without Python.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use prony_forge::export::{Axis, ExportOptions, Exported};
use prony_model::pt::{Checkpoint, plain};
use prony_model::{ModelFile, sha256_hex};
use prony_types::os_text::path_to_text;
use prony_types::{ExitCode, ModelSource};
use serde_json::{Value, json};

use super::target::Target;
use crate::args::ExportArgs;
use crate::command::with_making_progress;
use crate::error::{CliError, OrCliError as _};
use crate::output::print;
use prony_plan::named::{Located, is_checkpoint, locate};

pub(crate) fn export(args: &ExportArgs) -> Result<ExitCode, CliError> {
    let started = Instant::now();
    refuse_what_is_no_checkpoint(&args.model).usage()?;
    let source = ModelSource::File(args.model.clone());
    let target = Target::find(args.output.as_deref(), &source, "", args.force).usage()?;
    let checkpoint = with_making_progress("reading the checkpoint", || Checkpoint::open(&args.model)).usage()?;
    let options = ExportOptions {
        imgsz: args.imgsz.map(|size| size.0),
        batch: args.batch,
        dynamic: args.dynamic,
        half: args.half,
        opset: args.opset,
        end2end: args.end2end.into(),
    };
    let made = with_making_progress("writing the graph", || prony_forge::export::export(&checkpoint, &options))
        .with_context(|| format!("cannot export {}", args.model.display()))
        .usage()?;
    let seconds = started.elapsed().as_secs_f64();
    let summary = Summary { args, target: &target.file, checkpoint: &checkpoint, made: &made, seconds };
    with_making_progress("writing the file", || target.write(&made.bytes, &summary.json()))?;
    let summary = Summary { seconds: started.elapsed().as_secs_f64(), ..summary };
    let text = match args.print.json {
        true => serde_json::to_string_pretty(&summary.json()).failed()? + "\n",
        false => summary.text(),
    };
    print(text)?;
    Ok(ExitCode::Ok)
}

/// Another kind of model, named with the command that takes it.
fn refuse_what_is_no_checkpoint(path: &Path) -> anyhow::Result<()> {
    let name = path.display().to_string();
    let Located { source, .. } = locate(&name)?;
    if let ModelSource::File(_) = source {
        std::fs::metadata(path).with_context(|| format!("cannot read model {name}"))?;
        if is_checkpoint(path) {
            return Ok(());
        }
    }
    // Whatever cannot be read is left to the reader of checkpoints.
    let Ok(model) = ModelFile::open(&source) else { return Ok(()) };
    ensure!(model.engine.is_none(), "{name} is a TensorRT engine, which cannot become ONNX; give the checkpoint (.pt)");
    bail!(
        "{name} is ONNX already, so there is nothing to export: `prony bench {name}` measures it, `prony convert` makes fp16 or \
         bf16 of it, `prony quantize` int8, and `prony build` a TensorRT engine"
    )
}

/// What is said afterwards.
struct Summary<'a> {
    args: &'a ExportArgs,
    target: &'a Path,
    checkpoint: &'a Checkpoint,
    made: &'a Exported,
    seconds: f64,
}

impl Summary<'_> {
    fn json(&self) -> Value {
        let Summary { args, made, .. } = self;
        let tensor = |(name, axes): &(String, Vec<Axis>)| json!({ "name": name, "dims": axes });
        json!({
            "model": path_to_text(&args.model),
            "ultralytics": self.checkpoint.version,
            "output_file": path_to_text(self.target),
            "bytes": made.bytes.len(),
            "sha256": sha256_hex(&made.bytes),
            "input": tensor(&made.input),
            "output": tensor(&made.output),
            "imgsz": made.imgsz,
            "batch": args.batch,
            "dynamic": args.dynamic,
            "half": args.half,
            "opset": args.opset,
            "end2end": made.end2end,
            "classes": made.names.len(),
            "nodes": made.nodes,
            "parameters": made.parameters,
            "gflops": made.flops as f64 / 1e9,
            "seconds": self.seconds,
            "notes": made.notes,
        })
    }

    fn text(&self) -> String {
        let Summary { made, .. } = self;
        let mut text = format!("{}\n", self.target.display());
        let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<12}  {value}\n"));
        let megabytes = made.bytes.len() as f64 / 1e6;
        line("size", format!("{megabytes:.1} MB, {} nodes, operator set {}", made.nodes, self.args.opset));
        line("input", tensor(&made.input));
        line("output", tensor(&made.output));
        let head = match made.end2end {
            true => "end-to-end: each object once, nothing to suppress (--end2end no for many boxes)",
            false => "one-to-many: boxes are to be suppressed afterwards",
        };
        line("head", head.to_owned());
        const NAMES: usize = 5;
        let some: Vec<String> = made.names.values().take(NAMES).map(|name| plain(name)).collect();
        let more = if made.names.len() > NAMES { ", ..." } else { "" };
        line("classes", format!("{}: {}{more}", made.names.len(), some.join(", ")));
        let (millions, billions) = (made.parameters as f64 / 1e6, made.flops as f64 / 1e9);
        line("parameters", format!("{millions:.2} million, {billions:.2} GFLOPs per image"));
        line("took", format!("{:.2} s", self.seconds));
        made.notes.iter().for_each(|note| line("note", note.clone()));
        text
    }
}

fn tensor((name, axes): &(String, Vec<Axis>)) -> String {
    let axis = |axis: &Axis| match axis {
        Axis::Fixed(length) => length.to_string(),
        Axis::Named(name) => name.clone(),
    };
    format!("{name} [{}]", axes.iter().map(axis).collect::<Vec<_>>().join(", "))
}
