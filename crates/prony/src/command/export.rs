//! `prony export`: a checkpoint as ONNX, without Python.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use prony_forge::export::{Axis, ExportOptions, Exported};
use prony_model::pt::{Checkpoint, plain};
use prony_model::sha256_hex;
use prony_types::{ExitCode, ModelSource};
use serde_json::{Value, json};

use super::target::Target;
use crate::args::ExportArgs;
use crate::command::with_making_progress;
use crate::output::print;

pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let source = ModelSource::File(args.model.clone());
    let target = Target::find(args.output.as_deref(), &source, "", args.force)?;
    let checkpoint = with_making_progress("reading the checkpoint", || Checkpoint::open(&args.model))?;
    let options = ExportOptions {
        imgsz: args.imgsz.map(|size| size.0),
        batch: args.batch,
        dynamic: args.dynamic,
        half: args.half,
        opset: args.opset,
        end2end: args.end2end.into(),
    };
    let made = with_making_progress("writing the graph", || prony_forge::export::export(&checkpoint, &options))
        .with_context(|| format!("cannot export {}", args.model.display()))?;
    let seconds = started.elapsed().as_secs_f64();
    let summary = Summary { args, target: &target.file, checkpoint: &checkpoint, made: &made, seconds };
    with_making_progress("writing the file", || target.write(&made.bytes, &summary.json()))?;
    let summary = Summary { seconds: started.elapsed().as_secs_f64(), ..summary };
    let text = match args.print.json {
        true => serde_json::to_string_pretty(&summary.json())? + "\n",
        false => summary.text(),
    };
    print(text)?;
    Ok(ExitCode::Ok)
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
            "model": args.model,
            "ultralytics": self.checkpoint.version,
            "output_file": self.target,
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
