//! Models by the name that was typed: one that is built in, a file, the stem of several files, or a checkpoint, which is
//! made into an ONNX file first.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use prony_forge::export::ExportOptions;
use prony_model::ModelFile;
use prony_runtimes::home;
use prony_source::ending;
use prony_types::os_text::{path_from_text, to_text};
use prony_types::text::printable;
use prony_types::{ENGINE_ENDINGS, ModelInfo, ModelSource, ModelSpec, OriginSpec};
use prony_work::{Length, Watcher};

/// Endings that are tried behind a stem after those of engines: what needs least work before it runs comes first.
const ENDINGS: [&str; 2] = ["onnx", "pt"];

/// A model that was found and read.
#[derive(Debug)]
pub struct Opened {
    /// As a plan has it.
    pub spec: ModelSpec,
    /// What was read.
    pub file: ModelFile,
    /// What was chosen or decided, and should be known.
    pub notes: Vec<String>,
}

/// Where a model is that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Built in, or a file.
    pub source: ModelSource,
    /// Which of several files it is.
    pub note: Option<String>,
}

/// How a checkpoint is made into a graph where one is given.
#[derive(Clone)]
pub struct Opening<'a> {
    /// Where graphs are kept; `None` where there is no home.
    pub artifacts: Option<PathBuf>,
    /// Its shape and the like.
    pub export: ExportOptions,
    /// Told that a graph is being made.
    pub watcher: &'a dyn Watcher,
}

impl<'a> Opening<'a> {
    /// Kept in the home that a flag names, or the usual one; everything else as the checkpoint says.
    pub fn in_home(flag: Option<&Path>, watcher: &'a dyn Watcher) -> Opening<'a> {
        let artifacts = home::folder(flag).ok().map(|home| home::artifacts(&home::cache(&home)));
        Opening { artifacts, export: ExportOptions::default(), watcher }
    }
}

/// Finds a model by its name, which is text as [`prony_types::os_text`] has it: built in, or the file as it was typed, or the first that has this stem.
pub fn locate(name: &str) -> anyhow::Result<Located> {
    let path = &path_from_text(name);
    refuse_input(name, path)?;
    if path.exists() {
        return Ok(Located { source: ModelSource::File(path.to_owned()), note: None });
    }
    if let Some(kind) = name.strip_prefix("builtin-") {
        let unknown = |_| anyhow::anyhow!("there is no model `{name}`; built in are builtin-rgb and builtin-thermal");
        return Ok(Located { source: ModelSource::Builtin(kind.parse().map_err(unknown)?), note: None });
    }
    let endings = ENGINE_ENDINGS.iter().chain(&ENDINGS);
    let there: Vec<PathBuf> =
        endings.map(|ending| path_from_text(&format!("{name}.{ending}"))).filter(|path| path.is_file()).collect();
    // A name that nothing fits stays as it is: whoever opens it says what is wrong.
    let Some((first, others)) = there.split_first() else {
        return Ok(Located { source: ModelSource::File(path.to_owned()), note: None });
    };
    let shown = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = match others {
        [] => String::new(),
        others => format!("; beside it {}", others.iter().map(shown).collect::<Vec<_>>().join(", ")),
    };
    Ok(Located {
        source: ModelSource::File(first.clone()),
        note: Some(format!("{name}: taking {}{beside}", shown(first))),
    })
}

/// Something that a model is run on, given where the model belongs.
fn refuse_input(name: &str, path: &Path) -> anyhow::Result<()> {
    if ending::is_video_name(path) {
        let how = ending::how_to_extract_frames(path);
        bail!(
            "{name} is a video, not a model; to measure a model on it, {how}, then run `prony bench MODEL --source frames`"
        );
    }
    ensure!(
        !ending::is_image_name(path),
        "{name} is an image, not a model; `prony run MODEL --input {name}` runs a model on it"
    );
    Ok(())
}

/// Whether there is anything of this name; the error is the one that opening it would give.
pub fn exists(name: &str) -> anyhow::Result<()> {
    match locate(name)?.source {
        ModelSource::File(path) if !path.exists() || path.is_dir() => {
            let source = ModelSource::File(std::path::absolute(path)?);
            ModelFile::open(&source).map(drop).map_err(Into::into)
        }
        ModelSource::File(_) | ModelSource::Builtin(_) => Ok(()),
    }
}

/// Whether a file is a checkpoint, by its ending.
pub fn is_checkpoint(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["pt", "pth"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Reads a model by its name on the command line.
pub fn open(name: &str, how: &Opening<'_>) -> anyhow::Result<Opened> {
    let Located { source, note } = locate(name)?;
    let mut notes: Vec<String> = note.into_iter().collect();
    let source = match source {
        ModelSource::File(path) => ModelSource::File(std::path::absolute(path)?),
        builtin => builtin,
    };
    let called = match &source {
        ModelSource::Builtin(kind) => format!("builtin-{kind}"),
        ModelSource::File(path) => stem(path),
    };
    let checkpoint = match &source {
        ModelSource::File(path) if is_checkpoint(path) && path.is_file() => path,
        _ => {
            let file = ModelFile::open(&source)?;
            return Ok(Opened { spec: ModelSpec::new(called, source, file.sha256.clone()), file, notes });
        }
    };
    let artifacts = how.artifacts.as_deref().with_context(|| {
        format!("{name} must be made into an ONNX file first, and there is no home to keep it in; use --home or `prony export`")
    })?;
    let step = how.watcher.step("making an ONNX file of the checkpoint", Length::Unknown);
    let made = prony_forge::exported(checkpoint, &how.export, artifacts)?;
    drop(step);
    notes.extend(made.notes);
    let origin =
        OriginSpec { path: checkpoint.clone(), sha256: made.checkpoint_sha256, from_cache: made.artifact.from_cache };
    let source = ModelSource::File(made.artifact.path);
    let file = ModelFile::open(&source)?;
    let spec = ModelSpec { origin: Some(origin), ..ModelSpec::new(called, source, file.sha256.clone()) };
    Ok(Opened { spec, file, notes })
}

impl Opened {
    /// What a plan needs of it.
    pub fn parts(self) -> (ModelSpec, ModelInfo) {
        (self.spec, self.file.info)
    }
}

/// What a file is called in reports: one line of text, whatever bytes its name has.
pub fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "model".to_owned(), |stem| printable(&to_text(stem)).into_owned())
}

#[cfg(test)]
mod tests {
    use prony_types::SceneKind;

    use super::*;

    #[test]
    fn of_several_files_the_one_that_needs_least_work_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("yolo").display().to_string();
        for (ending, note) in [
            ("pt", "yolo: taking yolo.pt"),
            ("onnx", "yolo: taking yolo.onnx; beside it yolo.pt"),
            ("trt", "yolo: taking yolo.trt; beside it yolo.onnx, yolo.pt"),
            ("engine", "yolo: taking yolo.engine; beside it yolo.trt, yolo.onnx, yolo.pt"),
        ] {
            std::fs::write(format!("{name}.{ending}"), b"").unwrap();
            let Located { source, note: said } = locate(&name).unwrap();
            assert_eq!(source, ModelSource::File(format!("{name}.{ending}").into()));
            let folder = format!("{}/", dir.path().display());
            assert_eq!(said.unwrap().replace(&folder, ""), note);
        }
    }

    #[test]
    fn a_file_that_is_there_is_what_was_meant() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["yolo", "yolo.onnx"] {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let path = dir.path().join("yolo");
        let found = locate(&path.display().to_string()).unwrap();
        assert_eq!(found, Located { source: ModelSource::File(path), note: None });
    }

    #[test]
    fn built_in_models_have_names() {
        assert_eq!(locate("builtin-rgb").unwrap().source, ModelSource::Builtin(SceneKind::Rgb));
        let error = locate("builtin-x").unwrap_err().to_string();
        assert_eq!(error, "there is no model `builtin-x`; built in are builtin-rgb and builtin-thermal");
    }
}
