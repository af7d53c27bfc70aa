//! The files that are made: the graph, and beside it how it came about.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use prony_forge::quantise::Quantised;
use prony_types::ModelSource;

use crate::args::QuantizeArgs;

/// Where the graph goes.
pub(super) struct Target {
    pub(super) file: PathBuf,
    pub(super) beside: PathBuf,
}

impl Target {
    /// The file that was named, or one beside the model. What is there stays, unless it may be replaced.
    pub(super) fn find(args: &QuantizeArgs, source: &ModelSource) -> anyhow::Result<Target> {
        let file = match (&args.output, source) {
            (Some(file), _) => file.clone(),
            (None, ModelSource::Builtin(kind)) => PathBuf::from(format!("builtin-{kind}-int8.onnx")),
            (None, ModelSource::File(path)) => {
                let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
                path.with_file_name(format!("{stem}-int8.onnx"))
            }
        };
        ensure!(
            file.extension().is_some_and(|ending| ending == "onnx"),
            "-o {} should end in .onnx, which is what is written",
            file.display()
        );
        ensure!(!file.is_dir(), "-o {} is a folder; name a file", file.display());
        let beside = PathBuf::from(format!("{}.json", file.display()));
        for there in [&file, &beside].into_iter().filter(|path| !args.force && path.exists()) {
            anyhow::bail!("{} is there already; use --force to replace it, or -o for another file", there.display());
        }
        if let ModelSource::File(model) = source {
            let same = |a: &Path, b: &Path| a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
            ensure!(!same(model, &file), "-o {} is the model itself; name another file", file.display());
        }
        Ok(Target { file, beside })
    }

    /// Writes both, each whole or not at all.
    pub(super) fn write(&self, quantised: &Quantised) -> anyhow::Result<()> {
        if let Some(folder) = self.file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let report = serde_json::to_vec_pretty(&quantised.report)?;
        prony_store::write_atomic(&self.file, &quantised.bytes)?;
        prony_store::write_atomic(&self.beside, &report)?;
        Ok(())
    }
}
