//! What was asked for with all of its files open: models and data, each read once and shared with whoever needs them later.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use prony_forge::export::ExportOptions;
use prony_runtimes::home;
use prony_source::dataset::{self, Dataset};
use prony_source::folder::{self, Loader};
use prony_types::{
    DataSource, DataSpec, EvaluationSpec, HeadChoice, InputSpec, ModelInfo, ModelSource, ModelSpec, Precision,
    ProviderSpec, RunRecord, SceneKind, SourceSpec,
};
use prony_work::Watcher;

use super::gates::read_baseline;
use super::matrix::{Expanded, Matrix, classifier_has_no_head, image_size};
use super::provider::provider;
use super::request::{Request, refuse_drop_of_one};
use super::selection::Selection;
use super::{NO_IMAGES, once_each};
use crate::images::meant;
use crate::models::OpenedModels;
use crate::named::{self, Opened, Opening};
use crate::options::BenchOptions;

/// A model as it was asked for, read or not.
pub(super) type NamedModel = (String, anyhow::Result<(ModelSpec, ModelInfo)>);

/// Everything that a plan needs but the machine. What is wrong on any machine was said when it was made.
pub struct Inputs {
    pub(super) request: Request,
    pub(super) cache: Option<PathBuf>,
    pub(super) input: InputSpec,
    pub(super) models: Vec<NamedModel>,
    pub(super) reference: Option<ModelSpec>,
    pub(super) baseline: Option<RunRecord>,
    /// Data on disk to score on.
    pub(super) data: Option<Arc<Dataset>>,
    /// Images of the user's own, on which int8 ranges may be found.
    pub(super) images: Option<PathBuf>,
    pub(super) provider: ProviderSpec,
    pub(super) opened: OpenedModels,
    pub(super) notes: Vec<String>,
}

impl Inputs {
    /// Opens what a request names. `known` is a model that is open already.
    pub fn open(
        request: Request,
        cache: Option<PathBuf>,
        watcher: &dyn Watcher,
        known: Option<&Opened>,
    ) -> anyhow::Result<Inputs> {
        let baseline = read_baseline(&request.gates)?;
        let (source, note) = source(&request.options)?;
        let mut notes: Vec<String> = note.into_iter().collect();
        let input = InputSpec { source, seed: request.seed, frames: request.frames };
        // A name that nothing has is a typo: nothing is measured before it is corrected.
        request.models.iter().try_for_each(|name| named::exists(name))?;
        let mut reader = Reader::new(&request, cache.as_deref(), watcher, known);
        let mut read = |name: &String| (name.clone(), reader.read(name, &mut notes));
        let models: Vec<NamedModel> = request.models.iter().map(&mut read).collect();
        let mut request = request;
        request.options.engine.check(request.precisions.all())?;
        prony_runtimes::policy::check_plugins(&request.options.engine.plugin)?;
        notes.extend(request.options.engine.find_images()?);
        // What is wrong with the data is said when the models are known to be in order.
        let data = request.evaluation.as_ref().map(|spec| open_data(&spec.data)).transpose();
        let opened_data = data.as_ref().ok().cloned().flatten().flatten();
        let images = match &input.source {
            SourceSpec::Dir(dir) => Some(dir.clone()),
            SourceSpec::Scenes | SourceSpec::Tensor(_) => {
                calibration_images(&request, opened_data.as_deref(), &mut notes)
            }
        };
        let provider = provider(&request.options)?;
        let mut inputs = Inputs {
            request,
            cache,
            input,
            models,
            reference: None,
            baseline,
            data: opened_data,
            images,
            provider,
            opened: OpenedModels::default(),
            notes,
        };
        inputs.refuse_what_runs_nowhere()?;
        let reference = inputs.request.options.reference.clone();
        let reference = reference.map(|name| reader.read(&name, &mut Vec::new())).transpose().context("--reference")?;
        inputs.reference = reference.map(|(spec, _)| spec);
        inputs.opened = reader.opened;
        data?;
        Ok(inputs)
    }

    /// Whether the run is timed, so that the machine must be its own.
    pub fn is_timed(&self) -> bool {
        !self.request.options.only_scored
    }

    /// Refuses what would not run on a machine that has everything.
    fn refuse_what_runs_nowhere(&self) -> anyhow::Result<()> {
        let selection = self.request.backends.anywhere();
        let batches = self.request.batches().to_vec();
        let expanded = self.matrix(&selection, self.provider.clone(), batches).expand(None);
        refuse_broken(&expanded)?;
        refuse_drop_of_one(&self.request.gates, &expanded.cells, &expanded.fates)
    }

    pub(super) fn matrix<'a>(
        &'a self,
        backends: &'a Selection,
        provider: ProviderSpec,
        batches: Vec<u32>,
    ) -> Matrix<'a> {
        let options = &self.request.options;
        Matrix {
            models: &self.models,
            backends,
            precisions: self.request.precisions.clone(),
            batches: once_each(batches),
            precisions_named: options.precision.is_some(),
            batches_named: options.batch.is_some(),
            imgsz: options.imgsz.map(|size| size.0),
            head: self.request.head,
            no_images: matches!(self.input.source, SourceSpec::Dir(_)).then_some(NO_IMAGES),
            device: options.device.map_or(0, |device| device.0),
            threads: self.request.threads,
            provider,
            cache: self.cache.as_deref(),
            engine: &options.engine,
            images: self.images.as_deref(),
        }
    }
}

/// A model that cannot be read is bad input when there is nothing else to measure.
pub(super) fn refuse_broken(expanded: &Expanded) -> anyhow::Result<()> {
    if let Some(first) = expanded.broken.first()
        && expanded.fates.len() == expanded.cells.len()
    {
        bail!("{first}");
    }
    Ok(())
}

/// Reads models, each file once.
struct Reader<'a> {
    how: Opening<'a>,
    sizes: Sizes,
    read: Vec<(ModelSpec, ModelInfo)>,
    opened: OpenedModels,
}

/// What decides the sizes of a model's cells.
struct Sizes {
    imgsz: Option<[u32; 2]>,
    head: HeadChoice,
    batches: Vec<u32>,
}

impl<'a> Reader<'a> {
    fn new(request: &Request, cache: Option<&Path>, watcher: &'a dyn Watcher, known: Option<&Opened>) -> Reader<'a> {
        let (imgsz, batches) = (request.options.imgsz.map(|size| size.0), request.batches());
        // A checkpoint becomes a graph of the shape that is asked for, with free axes where several are.
        let export = ExportOptions {
            imgsz,
            batch: batches.first().copied().unwrap_or(1),
            dynamic: batches.len() > 1,
            ..ExportOptions::default()
        };
        Reader {
            how: Opening { artifacts: cache.map(home::artifacts), export, watcher },
            sizes: Sizes { imgsz, head: request.head, batches: batches.to_vec() },
            read: known.map(|known| (known.spec.clone(), known.file.info.clone())).into_iter().collect(),
            opened: OpenedModels::default(),
        }
    }

    fn read(&mut self, name: &str, notes: &mut Vec<String>) -> anyhow::Result<(ModelSpec, ModelInfo)> {
        let source = match named::locate(name)?.source {
            ModelSource::File(path) => ModelSource::File(std::path::absolute(path)?),
            builtin => builtin,
        };
        let is_it = |(spec, _): &&(ModelSpec, ModelInfo)| match (&spec.origin, &source) {
            (Some(origin), ModelSource::File(path)) if origin.path == *path => true,
            _ => spec.source == source,
        };
        if let Some(known) = self.read.iter().find(is_it) {
            return Ok(known.clone());
        }
        let Opened { spec, file, notes: said } = named::open(name, &self.how)?;
        notes.extend(said);
        let Sizes { imgsz, head, batches } = &self.sizes;
        let size = image_size(imgsz, classifier_has_no_head(*head, &file.info), &file.info).unwrap_or_default();
        self.opened.add(&file, batches.iter().map(|&batch| (size, batch)));
        self.read.push((spec.clone(), file.info.clone()));
        Ok((spec, file.info))
    }
}

/// Where frames come from, and what to know about that; a folder is looked into now, so that an empty one is found before
/// anything runs.
fn source(options: &BenchOptions) -> anyhow::Result<(SourceSpec, Option<String>)> {
    if let Some(path) = &options.input {
        std::fs::metadata(path).with_context(|| format!("cannot read --input {}", path.display()))?;
        return Ok((SourceSpec::Tensor(std::path::absolute(path)?), None));
    }
    match options.source.as_deref().map(|named| meant("--source", named)).transpose()? {
        None => Ok((SourceSpec::Scenes, None)),
        Some((word, note)) if word.as_os_str() == "scenes" => Ok((SourceSpec::Scenes, note)),
        Some((dir, note)) => {
            let files = folder::images(&dir)?;
            let mut last = None;
            let readable = files.iter().any(|path| folder::load(path).map_err(|e| last = Some(e)).is_ok());
            if !readable && let Some(error) = last {
                bail!("none of the {} images in {} can be read; the last one: {error}", files.len(), dir.display());
            }
            Ok((SourceSpec::Dir(std::path::absolute(dir)?), note))
        }
    }
}

/// Opens data on disk, if anything of it can be scored; built-in scenes are drawn when they are needed.
pub fn open_data(spec: &DataSpec) -> anyhow::Result<Option<Arc<Dataset>>> {
    if spec.source == DataSource::Scenes {
        return Ok(None);
    }
    let data = dataset::open(spec, SceneKind::Rgb)?;
    let mut loader = Loader::default();
    let mut first = None;
    for index in 0..data.images.len() {
        match data.load(index, &mut loader) {
            Ok(_) => return Ok(Some(Arc::new(data))),
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    let reason = first.map(|error| error.to_string()).unwrap_or_else(|| "it has none".to_owned());
    bail!("{}: none of its {} images can be read: {reason}", data.name, data.images.len())
}

/// The folder of the images that cells are scored on, where int8 ranges have nothing else to be found on.
fn calibration_images(request: &Request, data: Option<&Dataset>, notes: &mut Vec<String>) -> Option<PathBuf> {
    if !request.precisions.all().contains(&Precision::Int8) || request.options.engine.calibration.is_some() {
        return None;
    }
    let EvaluationSpec { data: spec, .. } = request.evaluation.as_ref()?;
    match spec.source {
        // Not those that are scored: they have a seed of their own.
        DataSource::Scenes => return Some("scenes".into()),
        DataSource::Path(_) => {}
    }
    let folder = data?.images.iter().find_map(|image| match &image.origin {
        dataset::Origin::File(path) => Some(path.parent()?.to_owned()),
        dataset::Origin::Scene(_) => None,
    })?;
    let of = folder.display();
    notes.push(format!("int8 ranges are found on images of {of}, which are scored on too; --calib keeps them apart"));
    Some(folder)
}
