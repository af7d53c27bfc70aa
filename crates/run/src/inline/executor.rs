//! What executes a model: the backend, its library and, where the backend runs engines, the engine.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use prony_backend::{BackendError, open_artifact};
use prony_model::ModelFile;
use prony_types::{
    ArtifactSpec, BackendName, BuildProgress, CellStatus, Dim, FailureKind, HeadChoice, ModelInfo, ModelSource,
    Precision, ProfileShape, ProviderSpec, RuntimeName, RuntimeSpec,
};
use tempfile::TempDir;

use crate::{MachineLock, Maker, NotMade, engines_to_build, writable};
use prony_plan::engine_options::{EngineArgs, Profile};
use prony_plan::named::Opened;
use prony_plan::options::{BenchOptions, DeviceIndex, ImageSize};
use prony_plan::{Inputs, Machine, Request, Resolved};
use prony_runtimes::home;
use prony_runtimes::policy::{STARTED_AGAIN, check_plugins, search_paths};
use prony_runtimes::{Found, choose, discover_for};
use prony_work::{Interrupt, Watcher, start_again};

/// What was asked for, and who is told how far it is.
pub struct Executor<'a> {
    /// Which device, from 0.
    pub device: u32,
    /// Prony's own folder, where it was named.
    pub home: Option<&'a Path>,
    /// Libraries that were named.
    pub libraries: Vec<(RuntimeName, PathBuf)>,
    /// How an engine is built.
    pub engine: &'a EngineArgs,
    /// Whether an engine is tried that was built for something else.
    pub force: bool,
    /// Who is told what is good to know.
    pub watcher: &'a dyn Watcher,
    /// Shows how far what is made by a name is; without progress, that it is over.
    pub show: &'a dyn Fn(&str, Option<&BuildProgress>),
    /// Waits for the measuring lock of the machine; `None` where the user gave up.
    pub wait: &'a dyn Fn(&Interrupt) -> anyhow::Result<Option<MachineLock>>,
    /// Ends the process at a Ctrl-C once an engine was built: a library at work cannot be asked to stop.
    pub leave: fn(),
}

/// Shapes that an engine is built for.
#[derive(Default)]
pub struct EngineShapes {
    /// Height and width of an image.
    pub imgsz: Option<[u32; 2]>,
    /// Images per call.
    pub batch: Option<u32>,
    /// Inputs whose axes are open.
    pub profile: Vec<Profile>,
}

/// An engine that was built from a model, or found in the cache.
pub struct BuiltEngine {
    /// The engine, read.
    pub file: ModelFile,
    /// Its path and hash.
    pub artifact: ArtifactSpec,
    /// What to know about it.
    pub notes: Vec<String>,
    /// Where it is, if there is no cache to keep it in.
    _folder: Option<TempDir>,
}

/// The backend for a model, of which no file may be missing: the one that was named, or `otherwise`; an engine has only one.
pub fn backend_for(
    name: &str,
    model: &ModelFile,
    named: Option<BackendName>,
    otherwise: BackendName,
) -> anyhow::Result<BackendName> {
    model.ensure_whole()?;
    let is_engine = model.engine.is_some();
    match named {
        Some(BackendName::Trtexec) => {
            bail!("trtexec is a benchmark program that returns no outputs; use tensorrt, which runs the same engines")
        }
        Some(BackendName::Tensorrt) => Ok(BackendName::Tensorrt),
        Some(other) if is_engine => {
            bail!("{name} is a TensorRT engine, which {other} cannot run; use tensorrt, or give the ONNX file")
        }
        Some(other) => Ok(other),
        None if is_engine => Ok(BackendName::Tensorrt),
        None => Ok(otherwise),
    }
}

impl Executor<'_> {
    /// Refuses flags that nothing would read: `builds` where an engine is built, `engines` where one is run.
    pub fn refuse_unread(&self, builds: bool, engines: bool) -> anyhow::Result<()> {
        let only_plugins = EngineArgs { plugin: Vec::new(), ..self.engine.clone() };
        let flag = match (engines, builds) {
            (false, _) => self.engine.given_flag().or(self.force.then_some("--force")),
            (true, false) => only_plugins.given_flag(),
            (true, true) => None,
        };
        match flag {
            Some(flag) if engines => bail!("{flag} is for building an engine, and nothing is built here; leave it out"),
            Some(flag) => bail!("{flag} is for tensorrt; choose that backend, or leave the flag out"),
            None => Ok(()),
        }
    }

    /// Options for the backend's library.
    pub fn provider(&self) -> anyhow::Result<ProviderSpec> {
        Ok(ProviderSpec {
            trt_plugins: self.engine.plugin.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
            force_engine: self.force,
            ..ProviderSpec::default()
        })
    }

    /// The library that a backend opens; `None` for the embedded engine.
    pub fn runtime(&self, name: BackendName) -> anyhow::Result<Option<RuntimeSpec>> {
        check_plugins(&self.engine.plugin)?;
        match name.needs() {
            Some(_) => found_runtime(name, self.home, &self.libraries, self.watcher),
            None => Ok(None),
        }
    }

    fn found(&self, name: BackendName) -> anyhow::Result<Found> {
        discovered(name, self.home, &self.libraries, self.watcher)
    }

    /// Builds the engine of an ONNX model, or finds it in the cache, the way `bench` does: in a process of its own, and not
    /// beside a timed cell. `None` where the user gave up waiting.
    pub fn engine_of(
        &self,
        model: &Opened,
        precision: Precision,
        shapes: EngineShapes,
    ) -> anyhow::Result<Option<BuiltEngine>> {
        let cache = home::folder(self.home).ok().map(|home| home::cache(&home));
        let tensorrt = self.found(BackendName::Tensorrt)?;
        let runtime = |name: BackendName| match name {
            BackendName::Tensorrt => choose(&tensorrt, name),
            // int8 ranges may be found with ONNX Runtime.
            other => choose(&self.found(other).map_err(|error| format!("{error:#}"))?, other),
        };
        let here = Machine {
            runtime: &runtime,
            absent: &|_| String::new(),
            gpus: tensorrt.gpus.len() as u32,
            cpus: u32::MAX,
            mem_available_bytes: None,
        };
        let request = Request::new(self.options(model, precision, shapes))?;
        let Resolved { plan, fates, .. } =
            Inputs::open(request, cache.clone(), self.watcher, Some(model))?.plan(&here)?;
        let mut cell = plan.cells.into_iter().next().context("no engine was planned")?;
        if let Some(fate) = fates.get(&cell.id) {
            // Something that the command line can give is missing, or it cannot be done here.
            ensure!(fate.status != CellStatus::Skipped, "{}", fate.reason);
            return Err(impossible(BackendName::Tensorrt, &fate.reason).into());
        }
        // It may be the graph of a checkpoint, which has a name of its own.
        cell.model = model.spec.clone();
        plan.notes.iter().for_each(|note| self.watcher.say(note));
        let interrupt = Interrupt::listen()?;
        let cache = cache.as_deref().map(home::artifacts).filter(|cache| writable(cache).is_ok());
        let folder = if cache.is_none() { Some(tempfile::tempdir()?) } else { None };
        let place = cache.clone().or(folder.as_ref().map(|folder| folder.path().to_owned())).unwrap_or_default();
        let to_build =
            engines_to_build(std::iter::once(&cell), &|_| Some(&model.file.info), cache.as_deref(), &tensorrt.gpus);
        // Kernels are timed while an engine is built.
        let lock = if to_build > 0 { Some((self.wait)(&interrupt)?) } else { None };
        if matches!(lock, Some(None)) {
            return Ok(None);
        }
        let maker = Maker { log: place.join("build.log"), interrupt: &interrupt, show: self.show };
        let made = maker.make_for(&mut cell, &plan.reference, &place);
        drop(lock);
        let notes = match made {
            Ok(notes) => notes,
            Err(NotMade::Interrupted) => return Ok(None),
            Err(NotMade::Failed(FailureKind::Model | FailureKind::Input, reason)) => bail!("{reason}"),
            Err(NotMade::Failed(_, reason)) => return Err(impossible(BackendName::Tensorrt, &reason).into()),
        };
        interrupt.when_asked(self.leave);
        let artifact = cell.artifact.context("no engine was built")?;
        let file = open_artifact(&artifact, BackendName::Tensorrt)?;
        Ok(Some(BuiltEngine { file, artifact, notes, _folder: folder }))
    }

    /// What `bench` would be told for the one cell.
    fn options(&self, model: &Opened, precision: Precision, shapes: EngineShapes) -> BenchOptions {
        let mut engine = self.engine.clone();
        engine.profile.extend(shapes.profile);
        BenchOptions {
            models: vec![match &model.spec.source {
                ModelSource::File(path) => path.display().to_string(),
                ModelSource::Builtin(kind) => format!("builtin-{kind}"),
            }],
            backends: Some(vec![BackendName::Tensorrt.to_string()]),
            precision: Some(vec![precision]),
            batch: shapes.batch.map(|batch| vec![batch]),
            imgsz: shapes.imgsz.map(ImageSize),
            device: Some(DeviceIndex(self.device)),
            // What becomes of the outputs is no concern of an engine.
            head: Some(HeadChoice::None),
            force: self.force,
            engine,
            ..BenchOptions::default()
        }
    }
}

impl EngineShapes {
    /// Those of inputs whose shapes are all decided. What `asked` has a range for is left to it.
    pub fn of(info: &ModelInfo, shapes: &[(String, Vec<usize>)], asked: &[Profile]) -> EngineShapes {
        let first = shapes.first().map(|(_, shape)| shape.as_slice());
        let side = |size: usize| u32::try_from(size).ok();
        let (batch, imgsz) = match first {
            Some(&[batch, _, height, width]) => (side(batch), side(height).zip(side(width)).map(|(h, w)| [h, w])),
            _ => (None, None),
        };
        let free = info.inputs.iter().filter(|input| input.dims.iter().any(|dim| matches!(dim, Dim::Named(_))));
        let open = free.filter(|input| !asked.iter().any(|profile| profile.0.input == input.name));
        let profile = open.filter_map(|input| {
            let (_, shape) = shapes.iter().find(|(name, _)| *name == input.name)?;
            let shape: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
            let input = input.name.clone();
            Some(Profile(ProfileShape { input, min: shape.clone(), opt: shape.clone(), max: shape }))
        });
        EngineShapes { imgsz, batch, profile: profile.collect() }
    }
}

/// What there is for a backend.
fn discovered(
    name: BackendName,
    home: Option<&Path>,
    explicit: &[(RuntimeName, PathBuf)],
    watcher: &dyn Watcher,
) -> anyhow::Result<Found> {
    let found = discover_for(name, &home::folder(home).unwrap_or_default(), explicit)?;
    found.tell_trusted(watcher);
    Ok(found)
}

/// What is found here for a backend, or among what was named.
pub fn found_runtime(
    name: BackendName,
    home: Option<&Path>,
    explicit: &[(RuntimeName, PathBuf)],
    watcher: &dyn Watcher,
) -> anyhow::Result<Option<RuntimeSpec>> {
    let found = discovered(name, home, explicit, watcher)?;
    // A backend that was named and is not here has failed, as in `bench`.
    Ok(choose(&found, name).map_err(|reason| impossible(name, &reason))?)
}

/// A backend that cannot do it here; its name stands in front once.
fn impossible(name: BackendName, reason: &str) -> BackendError {
    let what = reason.trim_start_matches(&format!("{name}: ")).to_owned();
    BackendError::Unsupported { backend: name.name(), what }
}

/// The loader reads its path when a process starts: where it must look elsewhere than it does, this one starts again.
pub fn tell_loader(folders: &[PathBuf]) -> anyhow::Result<()> {
    let now = |name: &str| std::env::var_os(name).unwrap_or_default();
    let mut variables = search_paths(folders);
    if std::env::var_os(STARTED_AGAIN).is_some() || variables.iter().all(|(name, path)| now(name) == *path) {
        return Ok(());
    }
    variables.push((STARTED_AGAIN, "1".into()));
    Err(start_again(variables)).context("cannot start again with the libraries' folders in LD_LIBRARY_PATH")
}
