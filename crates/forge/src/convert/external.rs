//! Weights that lie in files of their own are brought into the graph: what is written is one file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_model::onnx::{GraphProto, TensorProto};
use prony_model::{ModelFile, beside_model};
use prost::bytes::Bytes;

use crate::error::ForgeError;

/// The largest file that ONNX's container can be.
const LARGEST: u64 = (2 << 30) - 1;

/// Files beside the model, read once each.
struct Beside<'a> {
    model: Option<&'a Path>,
    files: HashMap<PathBuf, Bytes>,
    bytes: u64,
}

/// Reads them all; most models have none.
pub(super) fn take_in(graph: &mut GraphProto, model: &ModelFile) -> Result<(), ForgeError> {
    let bytes = model.bytes.len() as u64;
    Beside { model: model.path.as_deref(), files: HashMap::new(), bytes }.graph(graph)
}

impl Beside<'_> {
    fn graph(&mut self, graph: &mut GraphProto) -> Result<(), ForgeError> {
        graph.initializer.iter_mut().try_for_each(|tensor| self.tensor(tensor))?;
        for attribute in graph.node.iter_mut().flat_map(|node| &mut node.attribute) {
            attribute.t.iter_mut().chain(&mut attribute.tensors).try_for_each(|tensor| self.tensor(tensor))?;
            attribute.g.iter_mut().chain(&mut attribute.graphs).try_for_each(|graph| self.graph(graph))?;
        }
        Ok(())
    }

    fn tensor(&mut self, tensor: &mut TensorProto) -> Result<(), ForgeError> {
        if !tensor.is_external() {
            return Ok(());
        }
        let refused = |reason: String| ForgeError::Model(format!("weight {}: {reason}", tensor.name));
        let said = |key: &str| tensor.external_data.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let number = |key: &str| match said(key).map(|text| text.parse::<u64>()) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(refused(format!("its {key} is no number"))),
        };
        let location = said("location").ok_or_else(|| refused("no file is named for its elements".into()))?;
        let file = self.read(location).map_err(&refused)?;
        let offset = number("offset")?.unwrap_or(0);
        let end = match number("length")? {
            Some(length) => offset.checked_add(length),
            None => Some(file.len() as u64),
        };
        let part = end.filter(|&end| offset <= end && end <= file.len() as u64);
        let end = part.ok_or_else(|| refused(format!("{location} is too short for it")))?;
        self.bytes += end - offset;
        if self.bytes > LARGEST {
            return Err(ForgeError::Model("the model is above 2 GiB, which one ONNX file cannot hold".into()));
        }
        tensor.raw_data = file.slice(offset as usize..end as usize);
        tensor.external_data.clear();
        tensor.data_location = 0;
        Ok(())
    }

    fn read(&mut self, location: &str) -> Result<Bytes, String> {
        let model = self.model.ok_or("the model is in memory and has no folder")?;
        let path = beside_model(model, location).map_err(|error| error.to_string())?;
        match self.files.entry(path) {
            Entry::Occupied(known) => Ok(known.get().clone()),
            Entry::Vacant(new) => {
                let bytes =
                    prony_files::read(new.key(), Kind::Weights).map_err(|e| format!("{}: {e}", new.key().display()))?;
                Ok(new.insert(bytes.into()).clone())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_model::onnx::StringEntry;
    use prony_types::SceneKind;

    use super::*;

    /// A weight of 3 floats in `location`, from the fourth byte on.
    fn graph(location: &str, length: &str) -> GraphProto {
        let entry = |key: &str, value: &str| StringEntry { key: key.into(), value: value.into() };
        let external_data = vec![entry("location", location), entry("offset", "4"), entry("length", length)];
        let (dims, raw_data) = (vec![3], Bytes::new());
        let tensor =
            TensorProto { external_data, data_location: 1, dims, raw_data, ..TensorProto::floats("w", &[], &[]) };
        GraphProto { initializer: vec![tensor], ..GraphProto::default() }
    }

    #[test]
    fn elements_are_cut_out_of_the_file_beside_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let data: Vec<u8> = [9.0_f32, 1.0, 2.0, 3.0, 9.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(folder.path().join("w.data"), data).unwrap();
        let mut model = ModelFile::builtin(SceneKind::Rgb).unwrap();
        model.path = Some(folder.path().join("m.onnx"));
        let mut found = graph("w.data", "12");
        take_in(&mut found, &model).unwrap();
        assert_eq!(found.initializer[0].to_f32s(), Some(vec![1.0, 2.0, 3.0]));
        for (location, length, words) in [
            ("w.data", "20", "w.data is too short"),
            ("w.data", "18446744073709551615", "w.data is too short"),
            ("w.data", "x", "its length is no number"),
            ("gone.data", "12", "gone.data: No such file"),
            ("../w.data", "12", "`../w.data` is not a file beside the model"),
            ("/etc/passwd", "12", "`/etc/passwd` is not a file beside the model"),
        ] {
            let error = take_in(&mut graph(location, length), &model).unwrap_err().to_string();
            assert!(error.starts_with("weight w: ") && error.contains(words), "{error}");
        }
    }
}
