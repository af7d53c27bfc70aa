//! What was read of the models of a plan, each file once: what it says about itself, and what its graph costs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use prony_model::shape::Sizes;
use prony_model::{Anatomy, Cost, ModelError, ModelFile};
use prony_types::{CellSpec, ModelFormat, ModelInfo, ModelSource};

/// A graph's cost, or why it is not known. Cells share it.
pub type GraphCost = Arc<Result<Cost, String>>;

/// Height and width of a size, and a batch.
type Size = (Option<[u32; 2]>, u32);

/// Models by their identity. What is not there yet is read when it is asked for, and then known.
#[derive(Clone, Debug, Default)]
pub struct OpenedModels {
    infos: BTreeMap<String, Arc<ModelInfo>>,
    costs: BTreeMap<(String, Size), GraphCost>,
}

impl OpenedModels {
    /// Takes what is needed of a file that was read, at the sizes that cells may have.
    pub fn add(&mut self, file: &ModelFile, sizes: impl IntoIterator<Item = (Option<[u32; 2]>, u32)>) {
        self.infos.entry(file.sha256.clone()).or_insert_with(|| Arc::new(file.info.clone()));
        if file.info.format != ModelFormat::Onnx {
            return;
        }
        for size in sizes {
            let cost = || cost(Anatomy::of(&file.bytes, &sizes_of(size)));
            self.costs.entry((file.sha256.clone(), size)).or_insert_with(cost);
        }
    }

    /// What a model says about itself, by its identity.
    pub fn info(&self, sha256: &str) -> Option<&Arc<ModelInfo>> {
        self.infos.get(sha256)
    }

    /// What a cell's graph costs: that of the file that was made of the model where one runs, else the model's own. An engine
    /// is told by the graph that it was built from.
    pub fn cost(&mut self, spec: &CellSpec) -> GraphCost {
        let size = (spec.imgsz, spec.batch);
        let made = spec.artifact.as_ref().filter(|artifact| is_graph(&artifact.path));
        let identity = made.map_or(&spec.model.sha256, |artifact| &artifact.sha256);
        let read = || match (made, &spec.model.source) {
            (Some(artifact), _) => cost(Anatomy::read(&artifact.path, &sizes_of(size))),
            (None, ModelSource::Builtin(kind)) => cost(Anatomy::builtin(*kind, &sizes_of(size))),
            (None, ModelSource::File(path)) if is_graph(path) => cost(Anatomy::read(path, &sizes_of(size))),
            (None, ModelSource::File(_)) => Arc::new(Err("what an engine costs is known to TensorRT alone".to_owned())),
        };
        if identity.is_empty() {
            return read();
        }
        self.costs.entry((identity.clone(), size)).or_insert_with(read).clone()
    }
}

fn is_graph(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

fn sizes_of((imgsz, batch): Size) -> Sizes {
    Sizes { batch: batch.into(), imgsz: imgsz.map(|size| size.map(u64::from)) }
}

fn cost(anatomy: Result<Anatomy, ModelError>) -> GraphCost {
    Arc::new(anatomy.map(|anatomy| anatomy.cost).map_err(|reason| format!("its graph cannot be read: {reason}")))
}

#[cfg(test)]
mod tests {
    use prony_types::{BackendName, ModelSpec, Precision, SceneKind};

    use super::*;

    fn spec(backend: BackendName) -> CellSpec {
        let model = ModelSpec::new("m", ModelSource::Builtin(SceneKind::Rgb), "");
        CellSpec { imgsz: Some([320, 320]), ..CellSpec::new(model, backend, Precision::Fp32) }
    }

    #[test]
    fn a_graph_has_twice_the_cost_for_twice_the_frames() {
        let mut models = OpenedModels::default();
        let one = models.cost(&spec(BackendName::Rten));
        let double = models.cost(&CellSpec { batch: 2, ..spec(BackendName::Rten) });
        assert_eq!(double.as_ref().as_ref().unwrap().flops(), 2 * one.as_ref().as_ref().unwrap().flops());
    }

    #[test]
    fn an_engine_has_no_cost() {
        let mut models = OpenedModels::default();
        let mut spec = spec(BackendName::Tensorrt);
        spec.model.source = ModelSource::File("/nowhere/yolo.engine".into());
        let reason = models.cost(&spec).as_ref().clone().unwrap_err();
        assert!(reason.contains("known to TensorRT alone"), "{reason}");
        spec.model.source = ModelSource::File("/nowhere/yolo.onnx".into());
        assert!(models.cost(&spec).as_ref().clone().unwrap_err().starts_with("its graph cannot be read"));
    }

    #[test]
    fn cells_of_one_model_share_a_cost_and_the_file_is_not_read_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.onnx");
        std::fs::write(&path, prony_model::builtin(SceneKind::Rgb)).unwrap();
        let file = ModelFile::read(&path).unwrap();
        let mut models = OpenedModels::default();
        models.add(&file, [(Some([320, 320]), 1)]);
        std::fs::remove_file(&path).unwrap();
        let mut cell = spec(BackendName::Rten);
        cell.model = ModelSpec::new("m", ModelSource::File(path), file.sha256.clone());
        let one = models.cost(&cell);
        cell.backend = BackendName::OrtCpu;
        assert!(one.is_ok() && Arc::ptr_eq(&one, &models.cost(&cell)));
        assert_eq!(models.info(&file.sha256).unwrap().format, ModelFormat::Onnx);
    }
}
