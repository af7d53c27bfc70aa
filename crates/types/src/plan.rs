//! What was asked: the cells and the budget.

use serde::{Deserialize, Serialize};

use crate::{
    ArtifactSpec, BackendName, EngineSpec, EvaluationSpec, GateSpec, HeadChoice, InputSpec, ModelSpec, PostSpec,
    Precision, ProviderSpec, Resident, RewriteSpec, RuntimeSpec,
};

/// One model x backend x precision at one input size, batch and device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSpec {
    /// `model:backend:precision`, plus a mark where that is ambiguous.
    pub id: String,
    /// The model.
    pub model: ModelSpec,
    /// What is to execute it.
    pub backend: BackendName,
    /// Arithmetic asked for.
    pub precision: Precision,
    /// Height and width of the network's input. `None` for models that are not detectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imgsz: Option<[u32; 2]>,
    /// How its outputs become boxes.
    pub head: HeadChoice,
    /// Frames a call.
    pub batch: u32,
    /// Index of the device; 0 is the first.
    pub device: u32,
    /// CPU threads; `None` lets the backend choose and record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// The library that is to execute it; `None` for the embedded engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeSpec>,
    /// The library that builds its engine, where that is another than the one that executes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builder: Option<RuntimeSpec>,
    /// What its provider is told.
    #[serde(default)]
    pub provider: ProviderSpec,
    /// How the graph is rewritten first, where the file does not bring the precision that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<RewriteSpec>,
    /// The engine to build from the model, where the backend runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineSpec>,
    /// What really runs, where that is not the model's own file; known once it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactSpec>,
    /// Whether the user asked for this backend and precision by name (then "cannot run here" is a failure).
    pub named: bool,
}

impl CellSpec {
    /// A cell of batch 1 on the first device, everything else as the model and the backend choose.
    pub fn new(model: ModelSpec, backend: BackendName, precision: Precision) -> CellSpec {
        CellSpec {
            id: format!("{}:{backend}:{precision}", model.name),
            model,
            backend,
            precision,
            imgsz: None,
            head: HeadChoice::Auto,
            batch: 1,
            device: 0,
            threads: None,
            runtime: None,
            builder: None,
            provider: ProviderSpec::default(),
            rewrite: None,
            engine: None,
            artifact: None,
            named: false,
        }
    }

    /// What must be made before it can run, where that is not the model's own file: the last step.
    pub const fn artifact_kind(&self) -> Option<ArtifactKind> {
        match (&self.engine, &self.rewrite) {
            (Some(_), _) => Some(ArtifactKind::Engine),
            (None, Some(_)) => Some(ArtifactKind::Graph),
            (None, None) => None,
        }
    }

    /// The cell's folder name: the id without characters a file system or shell minds.
    pub fn slug(&self) -> String {
        slug_of(&self.id)
    }
}

/// The name of the folder of the cell with this id.
pub fn slug_of(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' }).collect()
}

/// What is made for a cell, and kept for the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactKind {
    /// An ONNX file.
    Graph,
    /// A TensorRT engine.
    Engine,
}

impl ArtifactKind {
    /// Both.
    pub const ALL: [ArtifactKind; 2] = [ArtifactKind::Engine, ArtifactKind::Graph];

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            ArtifactKind::Graph => "graph",
            ArtifactKind::Engine => "engine",
        }
    }
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetSpec {
    /// Warm up this long; `None` until steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// Measure this long and do not stop early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Stop after this many samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Without `duration_s`, stop at this many measured seconds even if the interval is still wide.
    pub limit_s: f64,
    /// Go on beyond `duration_s` and `limit_s` until there are this many samples. Never together with `samples`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<SampleFloor>,
    /// A worker silent for this long is killed.
    pub timeout_s: f64,
}

/// A number of samples that is worth more time than the rest of the budget allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleFloor {
    /// How many.
    pub samples: u64,
    /// Measured seconds after which a cell stops without them.
    pub limit_s: f64,
}

/// What outputs are held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceSpec {
    /// The model that computes it; `None` for each cell's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSpec>,
    /// What executes it, the file as it is; the embedded engine stands in where this one cannot.
    pub backend: BackendName,
    /// Its library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeSpec>,
}

impl Default for ReferenceSpec {
    fn default() -> ReferenceSpec {
        ReferenceSpec { model: None, backend: BackendName::Rten, runtime: None }
    }
}

/// One execution, fully decided: nothing after this looks at flags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Part of the run folder's name.
    pub name: String,
    /// The cells, in the order of the report.
    pub cells: Vec<CellSpec>,
    /// Cells that are measured only if every other cell of their model is skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standby: Vec<CellSpec>,
    /// What they are fed.
    pub input: InputSpec,
    /// What becomes of their outputs.
    pub post: PostSpec,
    /// How long they are measured.
    pub budget: BudgetSpec,
    /// Precisions that the user named: one that no cell of a model completes in has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_precisions: Vec<Precision>,
    /// What the cells' outputs are held against.
    pub reference: ReferenceSpec,
    /// What cells are scored on, beside being timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<EvaluationSpec>,
    /// Cells are timed; otherwise they are only scored.
    #[serde(default = "yes")]
    pub timed: bool,
    /// How many cells are loaded at a time.
    #[serde(default)]
    pub resident: Resident,
    /// Limits that must hold.
    #[serde(default)]
    pub gates: GateSpec,
    /// Every verdict but `valid`, and every skipped cell, fails the run.
    pub strict: bool,
    /// What was decided for the user and should be known, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelSource, SceneKind};

    #[test]
    fn a_slug_has_no_colon() {
        let source = ModelSource::Builtin(SceneKind::Rgb);
        let model = ModelSpec::new("my model", source, "");
        let mut cell = CellSpec::new(model, BackendName::Rten, Precision::Fp32);
        cell.id.push_str("#2");
        assert_eq!(cell.slug(), "my_model_rten_fp32_2");
    }
}
