//! Whether rows of two runs may stand beside each other.
//!
//! Two figures are comparable when nothing but the thing under test was another: same kind of device in the same
//! power mode, same input, same work before and after the network, same library. The model's file and the artifact are what
//! one compares, so those are told and no reason to refuse; so are the driver, the kernel and Prony itself.

use prony_types::{
    BackendName, CellRecord, Environment, FieldDifference, PostSpec, RunRecord, RuntimeName, RuntimeState,
};

use crate::difference::is_wrong;

/// A row, and the run it is part of.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The run.
    pub run: &'a RunRecord,
    /// The cell.
    pub cell: &'a CellRecord,
}

/// Fields that make times and memory of two rows not comparable.
pub fn differing(baseline: Row<'_>, row: Row<'_>) -> Vec<FieldDifference> {
    let mut fields = Fields::new(baseline, row);
    fields.machine("processor", |env| shown(env.cpu.name.as_deref()));
    fields.machine("architecture", |env| env.arch.clone());
    fields.machine("CPUs", |env| env.cpu.usable.to_string());
    fields.add("device", |row| shown(row.cell.backend.device.as_deref()));
    fields.machine("power mode", |env| shown(env.power_mode.as_deref()));
    fields.machine("governor", |env| shown(env.cpu.governor.as_deref()));
    shapes(&mut fields);
    fields.add("frames", |row| shown(row.cell.input.as_ref().map(|input| short(&input.sha256))));
    fields.add("post-processing", |row| post(&row.run.plan.post));
    fields.add("version of the backend", |row| shown(row.cell.backend.version.as_deref()));
    fields.add("TensorRT", tensorrt);
    fields.add("threads", |row| row.cell.backend.threads.map_or_else(|| shown(None), |n| n.to_string()));
    // Outputs that became wrong are a regression, not another measurement; only right ones against wrong ones are.
    if is_wrong(baseline.cell) {
        fields.add("outputs", |row| if is_wrong(row.cell) { "wrong" } else { "right" }.to_owned());
    }
    fields.found
}

/// Fields that make the scores of two rows not comparable. On which machine they were made does not matter.
pub fn differing_in_score(baseline: Row<'_>, row: Row<'_>) -> Vec<FieldDifference> {
    let mut fields = Fields::new(baseline, row);
    // Frames a call do not matter, so only what is left of the shapes without them.
    fields.add("input size", |row| shown(row.cell.model.input.as_deref().map(size)));
    fields.add("head", |row| shown(row.cell.model.head.as_deref().and_then(|head| head.split(' ').next())));
    fields.add("data", |row| shown(row.cell.accuracy.as_ref().map(|accuracy| short(&accuracy.data.sha256))));
    fields.add("scored images", |row| row.cell.accuracy.as_ref().map_or_else(|| shown(None), |a| a.images.to_string()));
    fields.add("post-processing of the evaluation", |row| {
        row.cell.accuracy.as_ref().map_or_else(|| shown(None), |accuracy| post(&accuracy.post))
    });
    fields.found
}

/// Fields that are not the same and are told without being a reason to refuse.
pub fn noted(baseline: Row<'_>, row: Row<'_>) -> Vec<FieldDifference> {
    let mut fields = Fields::new(baseline, row);
    fields.add("model", |row| short(&row.cell.model.sha256).to_owned());
    fields.add("artifact", |row| shown(row.cell.artifact.as_ref().map(|artifact| short(&artifact.sha256))));
    fields.add("executed precision", |row| shown(row.cell.precision.executed.as_deref()));
    fields.add("verdict", |row| shown(row.cell.verdict.map(|verdict| verdict.name())));
    fields.machine("GPU driver", |env| shown(env.driver.as_deref()));
    fields.machine("kernel", |env| shown(env.kernel.as_deref()));
    fields.add("prony", |row| row.run.run.version.clone());
    fields.found
}

/// Fields in one line.
pub fn in_words(fields: &[FieldDifference]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What goes in and what comes out. A head names the shapes of its outputs, so those of another input say nothing more.
fn shapes(fields: &mut Fields<'_>) {
    let before = fields.found.len();
    fields.add("input", |row| shown(row.cell.model.input.as_deref()));
    fields.add("batch", |row| row.cell.batch.to_string());
    if fields.found.len() == before {
        fields.add("head", |row| shown(row.cell.model.head.as_deref()));
    }
}

/// Collects what is not the same.
struct Fields<'a> {
    baseline: Row<'a>,
    row: Row<'a>,
    found: Vec<FieldDifference>,
}

impl<'a> Fields<'a> {
    fn new(baseline: Row<'a>, row: Row<'a>) -> Fields<'a> {
        Fields { baseline, row, found: Vec::new() }
    }

    fn add(&mut self, field: &str, value: impl Fn(Row<'a>) -> String) {
        let (baseline, run) = (value(self.baseline), value(self.row));
        if baseline != run {
            self.found.push(FieldDifference { field: field.to_owned(), baseline, run });
        }
    }

    fn machine(&mut self, field: &str, value: impl Fn(&Environment) -> String) {
        self.add(field, |row| value(&row.run.environment));
    }
}

/// TensorRT inside ONNX Runtime has a version of its own; alone it is the backend's.
fn tensorrt(row: Row<'_>) -> String {
    if row.cell.backend.name != BackendName::OrtTensorrt.name() {
        return String::new();
    }
    let runtimes = row.run.environment.runtimes.iter();
    let mut ready = runtimes.filter(|r| r.name == RuntimeName::Nvinfer && r.state == RuntimeState::Ready);
    shown(ready.next().and_then(|runtime| runtime.version.as_deref()))
}

fn post(post: &PostSpec) -> String {
    let classes = if post.multi_label { ", several classes a box" } else { "" };
    format!("conf {}, IoU {}, at most {} boxes{classes}", post.conf, post.iou, post.max_det)
}

fn shown(value: Option<&str>) -> String {
    value.unwrap_or("unknown").to_owned()
}

/// A shape without its first axis.
fn size(shape: &str) -> &str {
    shape.split_once('x').map_or(shape, |(_, rest)| rest)
}

/// Enough of a hash to tell two apart.
fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}
