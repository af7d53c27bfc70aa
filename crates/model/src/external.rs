//! Weights in files of their own beside an ONNX file. They are part of the model: its identity covers them.
//!
//! The SHA-256 of a model in one file is that of the file. The SHA-256 of a model with external data is taken over a list as
//! `sha256sum` prints it: the graph first, named `-`, then each external file once, sorted by its location as the graph has
//! it: `{ sha256sum < m.onnx; sha256sum a.data b.data; } | sha256sum`, run in the model's folder.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use prony_files::Kind;
use prony_types::ModelPart;

use crate::error::ModelError;
use crate::hash::{sha256_hex, sha256_of};
use crate::onnx::{GraphProto, TensorProto};

/// How deep graphs in attributes are followed.
const DEPTH: u32 = 16;

/// The files of a graph's external data by their locations, each once and sorted.
pub(crate) fn parts(graph: &GraphProto) -> Vec<ModelPart> {
    let mut found = BTreeSet::new();
    collect(graph, &mut found, 0);
    found.into_iter().map(|file| ModelPart { file, ..ModelPart::default() }).collect()
}

fn collect(graph: &GraphProto, into: &mut BTreeSet<String>, depth: u32) {
    graph.initializer.iter().for_each(|tensor| into.extend(location(tensor)));
    for attribute in graph.node.iter().flat_map(|node| &node.attribute) {
        attribute.t.iter().chain(&attribute.tensors).for_each(|tensor| into.extend(location(tensor)));
        if depth < DEPTH {
            attribute.g.iter().chain(&attribute.graphs).for_each(|graph| collect(graph, into, depth + 1));
        }
    }
}

fn location(tensor: &TensorProto) -> Option<String> {
    // Some writers leave the flag out; what is named is then read all the same.
    let entry = tensor.external_data.iter().find(|entry| entry.key == "location");
    entry.map(|entry| entry.value.clone())
}

/// Where external data lies, if its location stays inside the model's folder.
pub fn beside_model(model: &Path, location: &str) -> Result<PathBuf, ModelError> {
    let inside = !location.is_empty()
        && !location.contains(char::is_control)
        && Path::new(location).components().all(|part| matches!(part, Component::Normal(_)));
    let folder = model.parent().filter(|_| inside);
    folder.map(|folder| folder.join(location)).ok_or_else(|| ModelError::Outside { location: location.to_owned() })
}

/// The identity of a model with external data, and its files with their hashes.
pub(crate) fn identity(
    path: Option<&Path>,
    graph_sha256: String,
    graph_bytes: u64,
    external: Vec<ModelPart>,
) -> (String, Vec<ModelPart>) {
    let name = path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut list = format!("{graph_sha256}  -\n");
    let graph = ModelPart { file: name, sha256: Some(graph_sha256), bytes: Some(graph_bytes), problem: None };
    let mut parts = vec![graph];
    for mut part in external {
        match hashed(path, &part.file) {
            Ok((sha256, bytes)) => (part.sha256, part.bytes) = (Some(sha256), Some(bytes)),
            // A file that is missing is no reason not to describe the rest; see `ModelFile::ensure_whole`.
            Err(problem) => part.problem = Some(problem),
        }
        let _ = writeln!(list, "{}  {}", part.sha256.as_deref().unwrap_or("unreadable"), part.file);
        parts.push(part);
    }
    (sha256_hex(list.as_bytes()), parts)
}

fn hashed(model: Option<&Path>, location: &str) -> Result<(String, u64), String> {
    let model = model.ok_or("the model is in memory and has no folder")?;
    let path = beside_model(model, location).map_err(|error| error.to_string())?;
    let hash = || {
        let file = prony_files::open(&path, Kind::Weights)?;
        let bytes = file.metadata()?.len();
        Ok((sha256_of(file)?, bytes))
    };
    hash().map_err(|e: std::io::Error| e.to_string())
}

#[cfg(test)]
mod tests {
    use prony_types::SceneKind;
    use prost::Message as _;

    use super::*;
    use crate::ModelFile;
    use crate::onnx::{AttributeProto, ModelProto, NodeProto, StringEntry};

    /// A detector that names these files, two of them inside attributes.
    fn write(folder: &Path, locations: [&str; 3]) -> PathBuf {
        let entry = |key: &str, value: &str| StringEntry { key: key.into(), value: value.into() };
        let tensor = |location: &str| TensorProto {
            name: location.to_owned(),
            external_data: vec![entry("location", location), entry("offset", "0")],
            data_location: 1,
            ..TensorProto::default()
        };
        let builtin = ModelFile::builtin(SceneKind::Thermal).unwrap();
        let mut model = ModelProto::decode(builtin.bytes).unwrap();
        let graph = model.graph.as_mut().unwrap();
        let inner = GraphProto { initializer: vec![tensor(locations[1])], ..GraphProto::default() };
        let of_graph = AttributeProto { name: "body".into(), g: Some(inner), ..AttributeProto::default() };
        let of_tensor =
            AttributeProto { name: "value".into(), t: Some(tensor(locations[2])), ..AttributeProto::default() };
        let node = NodeProto { attribute: vec![of_graph, of_tensor], ..NodeProto::default() };
        graph.initializer.push(tensor(locations[0]));
        graph.node.push(node);
        let path = folder.join("m.onnx");
        std::fs::write(&path, model.encode_to_vec()).unwrap();
        path
    }

    #[test]
    fn changed_weights_were_taken_for_the_same_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), ["b.data", "a.data", "sub/c.data"]);
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        for name in ["a.data", "b.data", "sub/c.data"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let before = ModelFile::read(&path).unwrap();
        let names: Vec<&str> = before.info.files.iter().map(|part| part.file.as_str()).collect();
        assert_eq!(names, ["m.onnx", "a.data", "b.data", "sub/c.data"]);
        // In an initializer, in a graph inside a node, and in a node's own tensor.
        for name in ["a.data", "b.data", "sub/c.data"] {
            std::fs::write(folder.path().join(name), "other").unwrap();
            let changed = ModelFile::read(&path).unwrap();
            assert_ne!(changed.sha256, before.sha256, "{name}");
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        // Two files that change places are another model too.
        std::fs::rename(folder.path().join("a.data"), folder.path().join("x")).unwrap();
        std::fs::rename(folder.path().join("b.data"), folder.path().join("a.data")).unwrap();
        std::fs::rename(folder.path().join("x"), folder.path().join("b.data")).unwrap();
        assert_ne!(ModelFile::read(&path).unwrap().sha256, before.sha256);
        std::fs::remove_file(folder.path().join("a.data")).unwrap();
        let missing = ModelFile::read(&path).unwrap();
        assert!(missing.info.files[1].problem.as_ref().unwrap().contains("No such file"));
        assert!(missing.ensure_whole().unwrap_err().to_string().contains("a.data"));
    }

    #[test]
    fn the_identity_can_be_repeated_in_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), ["a.data", "a.data", "b c.data"]);
        std::fs::write(folder.path().join("a.data"), b"aaa").unwrap();
        std::fs::write(folder.path().join("b c.data"), b"bb").unwrap();
        let script = "{ sha256sum < m.onnx; sha256sum a.data 'b c.data'; } | sha256sum | cut -c1-64";
        let shell = std::process::Command::new("sh").args(["-c", script]).current_dir(folder.path()).output().unwrap();
        assert_eq!(ModelFile::read(&path).unwrap().sha256, String::from_utf8(shell.stdout).unwrap().trim());
    }

    #[test]
    fn a_model_in_one_file_keeps_its_hash() {
        let model = ModelFile::builtin(SceneKind::Rgb).unwrap();
        assert_eq!((&model.sha256, model.info.files.len()), (&sha256_hex(&model.bytes), 0));
    }

    #[test]
    fn weights_outside_the_model_s_folder_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("models");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(folder.path().join("up.data"), b"x").unwrap();
        make_fifo(&inner.join("pipe"));
        let model = ModelFile::read(&write(&inner, ["../up.data", "/etc/passwd", "pipe"])).unwrap();
        let problems: Vec<&str> = model.info.files[1..].iter().map(|part| part.problem.as_deref().unwrap()).collect();
        assert_eq!(problems[0], "`../up.data` is not a file beside the model");
        assert_eq!(problems[1], "`/etc/passwd` is not a file beside the model");
        assert!(problems[2].contains("regular file"), "{problems:?}");
        let error = model.ensure_whole().unwrap_err().to_string();
        assert!(error.contains("up.data"), "{error}");
    }

    fn make_fifo(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }
}
