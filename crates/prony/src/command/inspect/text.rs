//! The findings for people: a title, and a line a fact.

use std::fmt::Write as _;

use prony_backend::precision_of;
use prony_model::EngineFile;
use prony_types::{EngineIdentity, EngineRecord, ModelInfo, ProfileShape};
use serde_json::Value;

use super::Findings;
use super::graph::Graph;

/// Names that are written out; of more, only how many there are.
pub(super) const NAMES: usize = 12;
/// Operators a graph may have to be listed by name.
pub(super) const OPERATORS: usize = 40;

/// Lines under a title.
pub(super) struct Lines(pub(super) String);

impl Lines {
    pub(super) fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "  {key:<14}{value}");
    }

    /// Begins another part.
    pub(super) fn title(&mut self, title: &str) {
        let _ = writeln!(self.0, "\n{title}");
    }

    pub(super) fn maybe(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }
}

impl Findings<'_> {
    pub(super) fn text(&self) -> String {
        let kind = if self.file.engine.is_some() { "TensorRT engine" } else { "ONNX model" };
        let mut lines = Lines(format!("{}: {kind}\n", self.name));
        let path = self.path().map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
        lines.add("file", format!("{path}, {}", size(self.bytes)));
        lines.add("sha256", &self.file.sha256);
        let info = &self.file.info;
        match &self.file.engine {
            Some(engine) => describe_file(&mut lines, engine),
            None => describe_graph(&mut lines, info, self.graph.as_ref()),
        }
        if let Some(graph) = &self.graph {
            graph.cost(&mut lines);
            graph.facts(&mut lines);
        }
        describe_metadata(&mut lines, info);
        match &self.opened {
            Some(Ok(record)) => describe_engine(&mut lines, record),
            Some(Err(reason)) => {
                lines.add("not shown", format!("tensors, profiles and layers, which only TensorRT can tell: {reason}"));
            }
            None => {}
        }
        if let Some(runners) = &self.runners {
            lines.title("backends here");
            runners.lines(&mut lines);
        }
        if let Some(graph) = self.graph.as_ref().filter(|_| self.layers) {
            lines.title("nodes");
            lines.0 += &graph.layers();
        }
        lines.0
    }
}

fn describe_graph(lines: &mut Lines, info: &ModelInfo, graph: Option<&Graph>) {
    graph.iter().for_each(|graph| graph.origin(lines));
    lines.maybe("opset", info.opset);
    let weights = info.weights.map(|dtype| format!(", most weights are {dtype}")).unwrap_or_default();
    lines.add("precision", format!("{}{weights}", precision_of(info)));
    lines.add("parameters", info.parameters);
    graph.iter().for_each(|graph| graph.types(lines));
    info.inputs.iter().for_each(|tensor| lines.add("input", tensor));
    info.outputs.iter().for_each(|tensor| lines.add("output", tensor));
    lines.add("operators", some(&info.operators, OPERATORS));
}

fn describe_metadata(lines: &mut Lines, info: &ModelInfo) {
    let facts = &info.metadata;
    lines.maybe("task", facts.task.as_deref());
    lines.maybe("image size", facts.imgsz.map(|[height, width]| format!("{height}x{width} (height x width)")));
    lines.maybe("stride", facts.stride);
    lines.maybe("end to end", facts.end2end.map(|yes| if yes { "yes: boxes come out final" } else { "no" }));
    if !facts.names.is_empty() {
        lines.add("classes", some(&facts.names, NAMES));
    }
    lines.maybe("classes", facts.names_problem.as_ref().map(|problem| format!("cannot be read: {problem}")));
}

fn describe_file(lines: &mut Lines, engine: &EngineFile) {
    match engine.header_bytes {
        0 => lines.add("header", "none: the plan alone"),
        bytes => {
            let fact = |key: &str| engine.header.get(key).and_then(Value::as_str);
            let by = [("by", fact("author")), ("", fact("version")), ("on", fact("date"))];
            let by =
                by.into_iter().filter_map(|(word, fact)| Some(format!("{word} {}", fact?).trim_start().to_owned()));
            let by: Vec<String> = by.collect();
            lines.add(
                "header",
                [vec![format!("{bytes} bytes")], by].concat().join(" ").replacen("bytes ", "bytes, ", 1),
            );
            lines.maybe("description", fact("description"));
            lines.maybe("batch", engine.header.get("batch"));
            lines.maybe("arguments", engine.header.get("args"));
        }
    }
    let built = match engine.plan.version {
        Some(version) => format!("built by TensorRT {version}"),
        None => "by which TensorRT, it does not tell in a way that is known".to_owned(),
    };
    lines.add("plan", built);
    match &engine.sidecar {
        Some(sidecar) => {
            lines.add("built", format!("{}, says {}", place(&sidecar.identity), sidecar.path.display()));
            let flags = [
                (sidecar.identity.version_compatible, "later versions of TensorRT"),
                (sidecar.identity.hardware_compatible, "other GPUs from Ampere on"),
            ];
            let flags: Vec<&str> = flags.into_iter().filter(|(set, _)| *set).map(|(_, words)| words).collect();
            lines.maybe("also for", (!flags.is_empty()).then(|| flags.join(", ")));
        }
        None => lines.add("built", "on what GPU is not known: there is no file beside it that says so"),
    }
}

fn describe_engine(lines: &mut Lines, record: &EngineRecord) {
    lines.add("opened", place(&record.here));
    lines.maybe("name", (!record.name.is_empty()).then_some(&record.name));
    record.inputs.iter().for_each(|tensor| lines.add("input", tensor));
    record.outputs.iter().for_each(|tensor| lines.add("output", tensor));
    for (index, profile) in record.profiles.iter().enumerate() {
        for shape in profile {
            lines.add(&format!("profile {index}"), shapes(shape));
        }
    }
    lines.maybe("device memory", record.device_memory_bytes.map(size));
    lines.maybe("refit", record.refittable.then_some("its weights can be replaced"));
    if let Some(layers) = &record.layers {
        lines.add("layers", layers);
        for layer in &layers.slowest {
            lines.add("slow layer", format!("{:.3} ms  {}  {}", layer.ms, layer.dtype, layer.name));
        }
    }
}

fn shapes(shape: &ProfileShape) -> String {
    let axes = |axes: &[u64]| axes.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let [min, opt, max] = [&shape.min, &shape.opt, &shape.max].map(|shape| axes(shape));
    format!("{} from {min} to {max}, tuned for {opt}", shape.input)
}

/// A place in words, as far as it is known.
fn place(identity: &EngineIdentity) -> String {
    let mut words = Vec::new();
    let mut add = |word: &str, value: &str| {
        if !value.is_empty() {
            words.push(format!("{word} {value}").trim_start().to_owned());
        }
    };
    add("by TensorRT", &identity.tensorrt);
    add("on", &identity.gpu);
    add("compute capability", &identity.compute_capability);
    if identity.sm_count > 0 {
        add("", &format!("{} SMs", identity.sm_count));
    }
    add("driver", &identity.driver);
    add("CUDA", &identity.cuda);
    if words.is_empty() { "somewhere".to_owned() } else { words.join(", ") }
}

/// The first few, and how many there are.
pub(super) fn some(names: &[String], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    let more = if names.len() > most { ", …" } else { "" };
    format!("{}: {shown}{more}", names.len())
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use prony_types::{DType, Dim, LayerShare, LayersRecord, TensorInfo};

    use super::*;

    #[test]
    fn what_tensorrt_tells_is_told() {
        let tensor = TensorInfo {
            name: "images".into(),
            dtype: DType::F16,
            dims: vec![Dim::Named(String::new()), Dim::Fixed(3), Dim::Fixed(640), Dim::Fixed(640)],
        };
        let shape = |batch: u64| vec![batch, 3, 640, 640];
        let profile = ProfileShape { input: "images".into(), min: shape(1), opt: shape(4), max: shape(8) };
        let share = |dtype: &str, layers| LayerShare { dtype: dtype.into(), layers, time: None };
        let record = EngineRecord {
            here: EngineIdentity { tensorrt: "8.6.0".into(), gpu: "NVIDIA H200".into(), ..Default::default() },
            inputs: vec![tensor],
            profiles: vec![vec![profile]],
            device_memory_bytes: Some(3 << 20),
            layers: Some(LayersRecord {
                layers: 10,
                by_type: vec![share("fp16", 8), share("fp32", 2)],
                reformats: 1,
                reformat_time: None,
                slowest: Vec::new(),
            }),
            ..EngineRecord::default()
        };
        let mut lines = Lines(String::new());
        describe_engine(&mut lines, &record);
        let expected = "  opened        by TensorRT 8.6.0, on NVIDIA H200
  input         images f16[?,3,640,640]
  profile 0     images from 1x3x640x640 to 8x3x640x640, tuned for 4x3x640x640
  device memory 3.0 MiB
  layers        fp16 8 of 10 layers, fp32 2 of 10 layers; 1 only reformat
";
        assert_eq!(lines.0, expected);
    }
}
