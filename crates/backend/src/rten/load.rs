//! A model file as rten reads it.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Component, Path};

use ::rten::{LoadError, Model, ModelOptions};
use prony_files::Kind;
use prony_model::ModelFile;
use prony_model::onnx::{GraphProto, ModelProto, TensorProto};
use prost::Message as _;
use prost::bytes::Bytes;

use super::defaults::write_defaults;

/// Loads a model: the file itself where rten can read it as it is, else the graph with its defaults written out.
pub(super) fn load(options: &mut ModelOptions, model: &ModelFile) -> Result<Model, String> {
    let path = || model.path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default();
    let bytes = model.bytes_or_map().map_err(|e| format!("{}{e}", path()))?;
    let loaded = match (written_out(bytes.clone())?, &model.path) {
        (Some(graph), path) => {
            give_weights(options, &graph, path.as_deref())?;
            let bytes = graph.encode_to_vec();
            drop(graph);
            options.load(bytes)
        }
        // By path, so that weights in a separate file beside it are found.
        (None, Some(path)) => match model.descriptor_path() {
            Some(open) => load_open(options, &open, &bytes),
            None => options.load_file(path),
        },
        (None, None) => options.load(model.bytes.to_vec()),
    };
    loaded.map_err(|e| model.with_its_own_path(&e.to_string()))
}

/// Loads an open file. rten goes by the ending of a name, which a descriptor has not, so it is given a link to it. Where none can be
/// made, or the file has no name any more, it is given the bytes, which takes more memory.
fn load_open(options: &ModelOptions, open: &Path, bytes: &Bytes) -> Result<Model, LoadError> {
    let folder = std::env::temp_dir().join(format!("prony-{}", prony_files::unguessable()));
    let link = folder.join("model.onnx");
    let made = DirBuilder::new().mode(0o700).create(&folder).and_then(|()| symlink(open, &link));
    let leads_there = made.is_ok() && link.canonicalize().is_ok();
    let loaded = if leads_there { options.load_file(&link) } else { options.load(bytes.to_vec()) };
    let _ = std::fs::remove_file(&link).and_then(|()| std::fs::remove_dir(&folder));
    loaded
}

/// The model with its defaults written out; `None` where nothing is missing.
fn written_out(bytes: Bytes) -> Result<Option<ModelProto>, String> {
    let mut graph = ModelProto::decode(bytes).map_err(|e| format!("not an ONNX model: {e}"))?;
    Ok(write_defaults(&mut graph)?.then_some(graph))
}

/// Hands over the files of weights that lie beside the model: rten looks for them by the path of a file, and there is none.
fn give_weights(options: &mut ModelOptions, model: &ModelProto, path: Option<&Path>) -> Result<(), String> {
    let mut names = Vec::new();
    model.graph.iter().for_each(|graph| locations(graph, &mut names));
    names.sort_unstable();
    names.dedup();
    for name in names {
        let mut parts = Path::new(name).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        let folder = path.and_then(Path::parent).filter(|_| plain);
        let file =
            folder.ok_or_else(|| format!("its weights are in `{name}`, which is not a file beside it"))?.join(name);
        let bytes = prony_files::read(&file, Kind::Weights).map_err(|e| format!("{}: {e}", file.display()))?;
        options.external_data(name, bytes);
    }
    Ok(())
}

fn locations<'g>(graph: &'g GraphProto, names: &mut Vec<&'g str>) {
    let mut take = |tensor: &'g TensorProto| {
        let location = tensor.external_data.iter().find(|entry| entry.key == "location");
        names.extend(location.filter(|_| tensor.is_external()).map(|entry| entry.value.as_str()));
    };
    graph.initializer.iter().for_each(&mut take);
    let attributes = || graph.node.iter().flat_map(|node| &node.attribute);
    attributes().flat_map(|attribute| attribute.t.iter().chain(&attribute.tensors)).for_each(&mut take);
    attributes()
        .flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
        .for_each(|inner| locations(inner, names));
}
