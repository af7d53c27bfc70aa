//! Weights that lie in files of their own beside an ONNX file: its hash does not cover them, and they decide an engine too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use prony_backend::ModelFile;
use prony_model::onnx::{GraphProto, ModelProto};
use prost::Message as _;

use crate::cache::hash_file;
use crate::error::ForgeError;

/// Weights beside a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weights {
    /// By file name, with their SHA-256.
    pub(crate) hashes: BTreeMap<String, String>,
    /// All of them.
    pub(crate) bytes: u64,
}

/// Finds and hashes them; most models have none.
pub(crate) fn weights(model: &ModelFile) -> Result<Weights, ForgeError> {
    let mut names = BTreeSet::new();
    // What is no ONNX file was refused before.
    if let Ok(ModelProto { graph: Some(graph), .. }) = ModelProto::decode(model.bytes.clone()) {
        collect(&graph, &mut names);
    }
    let folder = model.path.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let mut weights = Weights::default();
    for name in names {
        let path = folder.join(&name);
        let unreadable =
            |e| ForgeError::Model(format!("the model's weights in {} cannot be read: {e}", path.display()));
        weights.bytes += std::fs::metadata(&path).map_err(unreadable)?.len();
        weights.hashes.insert(name, hash_file(&path).map_err(unreadable)?);
    }
    Ok(weights)
}

fn collect(graph: &GraphProto, names: &mut BTreeSet<String>) {
    let attributes = || graph.node.iter().flat_map(|node| &node.attribute);
    let tensors = graph.initializer.iter().chain(attributes().filter_map(|attribute| attribute.t.as_ref()));
    let entries = tensors.flat_map(|tensor| &tensor.external_data).filter(|entry| entry.key == "location");
    names.extend(entries.map(|entry| entry.value.clone()));
    attributes().filter_map(|attribute| attribute.g.as_ref()).for_each(|graph| collect(graph, names));
}

#[cfg(test)]
mod tests {
    use prony_model::onnx::{AttributeProto, NodeProto, StringEntry, TensorProto};
    use prony_types::SceneKind;

    use super::*;

    fn model(folder: &Path, locations: [&str; 2]) -> ModelFile {
        let entry = |key: &str, value: &str| StringEntry { key: key.into(), value: value.into() };
        let tensor = |location: &str| TensorProto {
            external_data: vec![entry("location", location), entry("offset", "0")],
            ..TensorProto::default()
        };
        let inner = GraphProto { initializer: vec![tensor(locations[1])], ..GraphProto::default() };
        let attribute = vec![AttributeProto { g: Some(inner), ..AttributeProto::default() }];
        let node = vec![NodeProto { attribute, ..NodeProto::default() }];
        let graph = GraphProto { node, initializer: vec![tensor(locations[0])], ..GraphProto::default() };
        let mut file = ModelFile::builtin(SceneKind::Rgb).unwrap();
        file.bytes = ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec().into();
        file.path = Some(folder.join("m.onnx"));
        file
    }

    #[test]
    fn weights_of_their_own_files_are_hashed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.data"), b"aaa").unwrap();
        std::fs::write(folder.path().join("b.data"), b"bb").unwrap();
        let found = weights(&model(folder.path(), ["a.data", "b.data"])).unwrap();
        assert_eq!(found.bytes, 5);
        assert_eq!(found.hashes["a.data"], prony_model::sha256_hex(b"aaa"));
        assert_eq!(found.hashes["b.data"], prony_model::sha256_hex(b"bb"));
        let error = weights(&model(folder.path(), ["a.data", "gone.data"])).unwrap_err();
        assert_eq!(error.kind(), prony_types::FailureKind::Model);
        assert!(error.to_string().contains("gone.data"), "{error}");
    }

    #[test]
    fn a_model_in_one_file_has_none() {
        assert_eq!(weights(&ModelFile::builtin(SceneKind::Thermal).unwrap()).unwrap(), Weights::default());
    }
}
