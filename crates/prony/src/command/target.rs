//! The ONNX file that is made of a model, and what is written beside it.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use prony_store::write_atomic;
use prony_types::ModelSource;

use crate::error::{CliError, OrCliError as _, OrUnwritten as _};

/// Where a file goes that is made.
#[derive(Debug)]
pub(super) struct Target {
    /// The graph.
    pub(super) file: PathBuf,
    /// How it came about.
    pub(super) beside: PathBuf,
}

impl Target {
    /// The file that was named, or one beside the model whose name ends in `mark`; beside a built-in one is the current
    /// folder. What is there stays unless it may be replaced, and the model itself always does.
    pub(super) fn find(
        asked: Option<&Path>,
        source: &ModelSource,
        mark: &str,
        replace: bool,
    ) -> anyhow::Result<Target> {
        let file = asked.map_or_else(|| usual(source, mark), Path::to_owned);
        let shown = file.display();
        ensure!(!file.is_dir(), "{shown} is a folder; name a file in it with -o");
        if let ModelSource::File(model) = source {
            let same = match (model.canonicalize(), file.canonicalize()) {
                (Ok(model), Ok(file)) => model == file,
                _ => *model == file,
            };
            ensure!(!same, "{shown} is the model itself; name another file with -o");
        }
        ensure!(file.extension().is_some_and(|ending| ending == "onnx"), "{shown}: the output must end in .onnx");
        let beside = file.with_added_extension("json");
        for path in [&file, &beside] {
            // A device or a pipe is written through and replaced by nothing.
            let there = path.metadata().map_or(path.is_symlink(), |metadata| metadata.is_file());
            ensure!(
                replace || !there,
                "{} is there already; give --force to replace it, or another file with -o",
                path.display()
            );
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(missing) = folder.filter(|folder| !folder.is_dir()) {
            anyhow::bail!("{} is no folder; make it first", missing.display());
        }
        Ok(Target { file, beside })
    }

    /// Writes both, each whole or not at all.
    pub(super) fn write(&self, graph: &[u8], sidecar: &impl serde::Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(sidecar).failed()? + "\n";
        write_atomic(&self.file, graph).written()?;
        write_atomic(&self.beside, text.as_bytes()).written()
    }
}

fn usual(source: &ModelSource, mark: &str) -> PathBuf {
    match source {
        ModelSource::Builtin(kind) => format!("builtin-{kind}{mark}.onnx").into(),
        ModelSource::File(path) => {
            let mut name = path.file_stem().unwrap_or_default().to_owned();
            name.push(format!("{mark}.onnx"));
            path.with_file_name(name)
        }
    }
}
