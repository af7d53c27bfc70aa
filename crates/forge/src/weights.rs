//! Weights that lie in files of their own beside an ONNX file, as whoever opened the model has hashed them.

use std::collections::BTreeMap;

use prony_backend::ModelFile;

use crate::error::ForgeError;

/// Weights beside a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weights {
    /// By file name, with their SHA-256.
    pub(crate) hashes: BTreeMap<String, String>,
    /// All of them.
    pub(crate) bytes: u64,
}

/// What the model has of them; most models have none.
pub(crate) fn weights(model: &ModelFile) -> Result<Weights, ForgeError> {
    model.ensure_whole().map_err(|e| ForgeError::Model(e.to_string()))?;
    let mut weights = Weights::default();
    // The first file is the graph.
    for part in model.info.files.iter().skip(1) {
        weights.bytes += part.bytes.unwrap_or(0);
        weights.hashes.extend(part.sha256.clone().map(|sha256| (part.file.clone(), sha256)));
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use prony_model::onnx::{ModelProto, StringEntry, TensorProto};
    use prony_types::SceneKind;
    use prost::Message as _;

    use super::*;

    fn model(folder: &Path, locations: [&str; 2]) -> ModelFile {
        let entry = |key: &str, value: &str| StringEntry { key: key.into(), value: value.into() };
        let tensor = |location: &&str| TensorProto {
            external_data: vec![entry("location", location), entry("offset", "0")],
            ..TensorProto::default()
        };
        let mut model = ModelProto::decode(ModelFile::builtin(SceneKind::Thermal).unwrap().bytes).unwrap();
        model.graph.as_mut().unwrap().initializer.extend(locations.iter().map(tensor));
        let path = folder.join("m.onnx");
        std::fs::write(&path, model.encode_to_vec()).unwrap();
        ModelFile::read(&path).unwrap()
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
