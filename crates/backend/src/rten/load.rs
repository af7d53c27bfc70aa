//! A model file as rten reads it.

use std::path::{Component, Path};

use ::rten::{Model, ModelOptions};
use prony_files::Kind;
use prony_model::ModelFile;
use prony_model::onnx::{GraphProto, ModelProto, TensorProto};
use prost::Message as _;
use prost::bytes::Bytes;

use super::defaults::write_defaults;

/// Loads a model: the file itself where rten can read it as it is, else the graph with its defaults written out.
pub(super) fn load(options: &mut ModelOptions, model: &ModelFile) -> Result<Model, String> {
    let bytes = match &model.path {
        Some(path) if model.bytes.is_empty() => {
            prony_model::map_file(path).map_err(|e| format!("{}: {e}", path.display()))?
        }
        _ => model.bytes.clone(),
    };
    let loaded = match (written_out(bytes)?, &model.path) {
        (Some(graph), path) => {
            give_weights(options, &graph, path.as_deref())?;
            let bytes = graph.encode_to_vec();
            drop(graph);
            options.load(bytes)
        }
        // By path, so that weights in a separate file beside it are found.
        (None, Some(path)) => options.load_file(path),
        (None, None) => options.load(model.bytes.to_vec()),
    };
    loaded.map_err(|e| e.to_string())
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
