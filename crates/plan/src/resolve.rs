//! From options to a plan in which everything is decided. What is wrong is said here, before anything runs.

mod budget;
mod matrix;
mod provider;
mod selection;
mod tier;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use prony_backend::backend;
use prony_forge::export::ExportOptions;
use prony_model::ModelFile;
use prony_runtimes::home;
use prony_source::dataset::{self, HELD_OUT_SEED};
use prony_source::folder;
use prony_types::{
    BackendName, CellRecord, CellSpec, CellStatus, DataSource, DataSpec, EvaluationSpec, Fate, GateName, GateSpec,
    HeadChoice, InputSpec, ModelInfo, ModelSource, ModelSpec, Plan, PostSpec, Precision, ReferenceSpec, RuntimeName,
    RuntimeSpec, SceneKind, SourceSpec,
};
use prony_work::Watcher;

use self::budget::budget;
use self::matrix::{Expanded, Matrix};
pub use self::matrix::{fits_batch, image_size};
pub use self::selection::listed;
use self::selection::{Precisions, Selection};
use self::tier::Choice;
use crate::gates;
use crate::images::{is_tensors, meant};
use crate::named::{Opened, Opening};
use crate::options::{BenchOptions, too_many_threads};

/// Distinct frames kept resident, so that caches and NMS see real variety.
const FRAMES: u32 = 32;

const NO_IMAGES: &str =
    "a model that is not a detector takes no --source; give its tensors with --input x.npz, or nothing for random ones";

/// What of the machine decides a plan.
pub struct Machine<'a> {
    /// The library for a backend: none for the embedded engine, or one line why there is none.
    pub runtime: &'a dyn Fn(BackendName) -> Result<Option<RuntimeSpec>, String>,
    /// The same reason in a few words, for a list of all that is not here.
    pub absent: &'a dyn Fn(BackendName) -> String,
    /// How many GPUs there are.
    pub gpus: u32,
    /// CPUs that this process may use.
    pub cpus: u32,
    /// Where caches may be kept from run to run.
    pub cache: Option<PathBuf>,
    /// Memory that is left.
    pub mem_available_bytes: Option<u64>,
    /// Told what takes its time.
    pub watcher: &'a dyn Watcher,
}

impl<'a> Machine<'a> {
    /// A machine on which everything is there: what cannot be planned for it cannot be planned at all.
    pub fn ideal(cache: Option<PathBuf>, watcher: &'a dyn Watcher) -> Machine<'a> {
        Machine {
            runtime: &|_| Ok(None),
            absent: &|_| String::new(),
            gpus: u32::MAX,
            cpus: u32::MAX,
            cache,
            mem_available_bytes: None,
            watcher,
        }
    }
}

/// A plan, and what is already known about cells that will not run.
#[derive(Debug)]
pub struct Resolved {
    /// What is to be measured.
    pub plan: Plan,
    /// By cell id: why it is skipped or failed without being tried.
    pub fates: BTreeMap<String, Fate>,
    /// Where run folders go.
    pub out: PathBuf,
    /// Whether names and paths are left out.
    pub redact: bool,
}

/// Decides everything.
pub fn resolve(mut options: BenchOptions, machine: &Machine<'_>) -> anyhow::Result<Resolved> {
    let post = PostSpec {
        conf: share("--conf", options.conf.unwrap_or(0.25))?,
        iou: share("--iou", options.iou.unwrap_or(0.45))?,
        max_det: within("--max-det", options.max_det.unwrap_or(300), 1, 100_000)?,
        multi_label: false,
    };
    refuse_contradictions(&options)?;
    let threads = options.threads.map(|n| within("--threads", n, 1, 1024)).transpose()?;
    let choice = options.tier.map(Choice::of);
    let gates = gates::spec(&options)?;
    let budget = budget(&options, choice.as_ref(), &gates)?;
    let selection = Selection::new(&options, choice.as_ref(), machine)?;
    let readers = readers(&options, &selection);
    let provider = provider::provider(&options, &readers, &selection.absent, machine.cache.as_deref())?;
    let name = options.name.clone().unwrap_or_else(|| if options.only_scored { "eval" } else { "bench" }.to_owned());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    ensure!(
        !name.is_empty() && name.len() <= 64 && name.chars().all(plain) && !name.starts_with('.'),
        "--name `{name}` must be 1 to 64 letters, digits, `-`, `_` or `.`"
    );
    let (source, note) = source(&options)?;
    let mut notes: Vec<String> = note.into_iter().collect();
    let input = InputSpec {
        source,
        seed: options.seed.unwrap_or(7),
        frames: within("--frames", options.frames.unwrap_or(FRAMES), 1, 100_000)?,
    };
    let head = head(&options, &input)?;
    let mut names = options.models.clone();
    if names.is_empty() {
        names = SceneKind::ALL.iter().map(|kind| format!("builtin-{kind}")).collect();
    }
    let opening = opening(&options, choice.as_ref(), machine);
    // A name that nothing has is a typo: nothing is measured before it is corrected.
    names.iter().try_for_each(|name| crate::named::exists(name))?;
    let mut read = |name: &str| {
        let Opened { spec, file, notes: said } = crate::named::open(name, &opening)?;
        notes.extend(said);
        Ok((spec, file.info))
    };
    let models: Vec<_> = names.into_iter().map(|name| (name.clone(), read(&name))).collect();
    let precisions = match (&options.precision, &choice) {
        (Some(list), _) => Precisions::Same(once_each(list.clone())),
        (None, Some(choice)) => Precisions::Same(choice.precisions.clone()),
        (None, None) if selection.is_auto() => Precisions::AsShipped,
        (None, None) => Precisions::Same(vec![Precision::Fp32]),
    };
    ensure!(!precisions.all().is_empty(), "--precision is empty");
    options.engine.check(precisions.all())?;
    prony_runtimes::policy::check_plugins(&options.engine.plugin)?;
    notes.extend(options.engine.find_images()?);
    let imgsz = options.imgsz.map(|size| size.0);
    let (batches, note) = match (&options.batch, choice) {
        (Some(list), _) => (list.clone(), None),
        (None, Some(choice)) => {
            let read: Vec<&(ModelSpec, ModelInfo)> =
                models.iter().filter_map(|(_, model)| model.as_ref().ok()).collect();
            tier::fitting(choice.batches, &read, imgsz, machine.mem_available_bytes)
        }
        (None, None) => (vec![1], None),
    };
    ensure!(!batches.is_empty(), "--batch is empty");
    for &batch in &batches {
        within("--batch", batch, 1, 1024)?;
    }
    let evaluation = evaluation(&options)?;
    let images = match &input.source {
        SourceSpec::Dir(dir) => Some(dir.clone()),
        SourceSpec::Scenes | SourceSpec::Tensor(_) => {
            calibration_images(&options, precisions.all(), &evaluation, &mut notes)
        }
    };
    let matrix = Matrix {
        models: &models,
        backends: &selection,
        precisions,
        batches: once_each(batches),
        precisions_named: options.precision.is_some(),
        batches_named: options.batch.is_some(),
        imgsz,
        head,
        no_images: matches!(input.source, SourceSpec::Dir(_)).then_some(NO_IMAGES),
        device: options.device.map_or(0, |device| device.0),
        threads,
        provider,
        engine: &options.engine,
        images: images.as_deref(),
    };
    let named_precisions = options.precision.iter().flatten().copied().collect();
    let Expanded { cells, fates, standby, broken, left_to_rten } = matrix.expand(machine);
    // A model that cannot be read is bad input when there is nothing else to measure.
    if let Some(first) = broken.first()
        && fates.len() == cells.len()
    {
        bail!("{first}");
    }
    refuse_drop_of_one(&gates, &cells, &fates)?;
    let reference = reference(&options, &opening, machine)?;
    notes.extend(note);
    // Of engines there is only one library that runs them.
    if cells.iter().any(|cell| !cell.named || !cell.model.source.is_engine()) {
        notes.extend(selection.absence());
    }
    if !left_to_rten.is_empty() {
        let models = listed(&left_to_rten);
        notes.push(format!("no other backend that is here can run {models}: measured on the embedded engine (rten)"));
    }
    notes.extend(too_many_threads(threads, machine.cpus));
    // Where someone pointed at a library, using another in its stead is told.
    let pointed = options.library.iter().any(|library| library.name == RuntimeName::Onnxruntime);
    if let (true, Err(reason)) = (pointed, (machine.runtime)(BackendName::OrtCpu)) {
        notes.push(format!("outputs are held against rten's, because {reason}"));
    }
    let plan = Plan {
        name,
        cells,
        standby,
        input,
        post,
        budget,
        named_precisions,
        reference,
        evaluation,
        timed: !options.only_scored,
        resident: options.resident.unwrap_or_default(),
        gates,
        strict: options.strict,
        notes,
    };
    let out = options.out.unwrap_or_else(|| "runs".into());
    Ok(Resolved { plan, fates, out, redact: options.redact })
}

/// How a checkpoint among the models is made into a graph: of the shape that is asked for, with free axes where several are.
fn opening<'a>(options: &BenchOptions, tier: Option<&Choice>, machine: &Machine<'a>) -> Opening<'a> {
    let batches = options.batch.as_deref().or(tier.map(|tier| &tier.batches[..])).unwrap_or(&[1]);
    let export = ExportOptions {
        imgsz: options.imgsz.map(|size| size.0),
        batch: batches.first().copied().unwrap_or(1),
        dynamic: batches.len() > 1,
        ..ExportOptions::default()
    };
    Opening { artifacts: machine.cache.as_deref().map(home::artifacts), export, watcher: machine.watcher }
}

/// What cells are scored on. Thresholds are those of evaluations; `prony eval`, which has no timed part, takes its own.
fn evaluation(options: &BenchOptions) -> anyhow::Result<Option<EvaluationSpec>> {
    let Some(data) = &options.data else {
        ensure!(
            !options.only_scored,
            "nothing to score on: give --data with a COCO or Ultralytics data set, or `--data scenes`"
        );
        let chosen = [
            ("--limit", options.limit.is_some()),
            ("--split", options.split.is_some()),
            ("--ids", options.ids.is_some()),
            ("--images", options.images.is_some()),
        ];
        if let Some((flag, _)) = chosen.into_iter().find(|(_, given)| *given) {
            bail!("{flag} chooses among data to score on; give --data");
        }
        return Ok(None);
    };
    let scenes = data.as_os_str() == "scenes";
    let told = |value: Option<f32>| value.filter(|_| options.only_scored);
    let post = PostSpec {
        conf: share("--conf", told(options.conf).unwrap_or(0.001))?,
        iou: share("--iou", told(options.iou).unwrap_or(0.7))?,
        max_det: options.max_det.filter(|_| options.only_scored).unwrap_or(300),
        multi_label: true,
    };
    let limit = options.limit.map(|n| within("--limit", n, 1, u32::MAX)).transpose()?;
    ensure!(!scenes || options.split.is_none(), "--split is for data on disk, and built-in scenes have no parts");
    ensure!(
        !scenes || options.ids.is_none(),
        "--ids is for data on disk; built-in scenes are chosen by --limit and --seed"
    );
    ensure!(!scenes || options.images.is_none(), "--images is for data on disk");
    let data = DataSpec {
        source: if scenes { DataSource::Scenes } else { DataSource::Path(std::path::absolute(data)?) },
        split: options.split.clone(),
        limit,
        seed: options.seed.unwrap_or(if scenes { HELD_OUT_SEED } else { 7 }),
        ids: options.ids.clone().map(std::path::absolute).transpose()?,
        images: options.images.clone().map(std::path::absolute).transpose()?,
    };
    Ok(Some(EvaluationSpec { data, post }))
}

/// The folder of the images that cells are scored on, where int8 ranges have nothing else to be found on. What is wrong
/// with the data is said by whoever scores.
fn calibration_images(
    options: &BenchOptions,
    precisions: &[Precision],
    evaluation: &Option<EvaluationSpec>,
    notes: &mut Vec<String>,
) -> Option<PathBuf> {
    if !precisions.contains(&Precision::Int8) || options.engine.calibration.is_some() {
        return None;
    }
    let data = evaluation.as_ref().map(|spec| &spec.data)?;
    match data.source {
        // Not those that are scored: they have a seed of their own.
        DataSource::Scenes => return Some("scenes".into()),
        DataSource::Path(_) => {}
    }
    let opened = dataset::open(data, SceneKind::Rgb).ok()?;
    let folder = opened.images.iter().find_map(|image| match &image.origin {
        dataset::Origin::File(path) => Some(path.parent()?.to_owned()),
        dataset::Origin::Scene(_) => None,
    })?;
    let of = folder.display();
    notes.push(format!("int8 ranges are found on images of {of}, which are scored on too; --calib keeps them apart"));
    Some(folder)
}

/// The backends that options may be about: an engine brings its own where none was named.
fn readers(options: &BenchOptions, selection: &Selection) -> Vec<BackendName> {
    let is_engine = |name: &String| ModelSource::File(name.into()).is_engine();
    let own = (selection.is_auto() && options.models.iter().any(is_engine)).then_some(BackendName::Tensorrt);
    selection.backends.iter().copied().chain(own).collect()
}

/// A drop in accuracy needs another row of the same model to be a drop from: without a baseline, its fp32 row.
fn refuse_drop_of_one(gates: &GateSpec, cells: &[CellSpec], fates: &BTreeMap<String, Fate>) -> anyhow::Result<()> {
    if gates.map_drop_max.is_none() || gates.baseline.is_some() {
        return Ok(());
    }
    let runs = || cells.iter().filter(|cell| !fates.contains_key(&cell.id));
    for cell in runs() {
        let same = || runs().filter(|other| other.model == cell.model);
        ensure!(
            same().count() > 1 && same().any(|other| other.precision == Precision::Fp32),
            "--gate {} compares a model's rows with its fp32 row, and {} would have {}; give --baseline RUN, or add to \
             --precision or --backends",
            GateName::MapDropMax,
            cell.model.name,
            if same().count() > 1 { "none in fp32" } else { "only one row" }
        );
    }
    Ok(())
}

fn once_each<T: PartialEq>(list: Vec<T>) -> Vec<T> {
    let mut seen = Vec::with_capacity(list.len());
    for item in list {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// What a plan file may say although no command line could.
fn refuse_contradictions(options: &BenchOptions) -> anyhow::Result<()> {
    ensure!(
        options.gpu_mem_limit.is_none() || options.gpu_mem_limit_gb.is_none(),
        "gpu-mem-limit and gpu-mem-limit-gb are the same limit; give one of them"
    );
    ensure!(options.source.is_none() || options.input.is_none(), "give source or input, not both");
    for (index, library) in options.library.iter().enumerate() {
        let twice = options.library[..index].iter().any(|earlier| earlier.name == library.name);
        ensure!(!twice, "--library {} is given twice", library.name);
    }
    Ok(())
}

fn head(options: &BenchOptions, input: &InputSpec) -> anyhow::Result<HeadChoice> {
    let head = match options.head {
        None if matches!(input.source, SourceSpec::Tensor(_)) => HeadChoice::None,
        Some(head) if head != HeadChoice::None && matches!(input.source, SourceSpec::Tensor(_)) => {
            bail!("--input is for models that are not detectors; it does not go with --head {head}")
        }
        head => head.unwrap_or(HeadChoice::Auto),
    };
    if head == HeadChoice::None {
        let boxes = [
            ("--conf", options.conf.is_some()),
            ("--iou", options.iou.is_some()),
            ("--max-det", options.max_det.is_some()),
        ];
        if let Some((flag, _)) = boxes.into_iter().find(|&(_, given)| given) {
            bail!("{flag} is about boxes; it does not go with a model that has no head");
        }
        ensure!(!matches!(input.source, SourceSpec::Dir(_)), "{NO_IMAGES}");
    }
    Ok(head)
}

/// What outputs are held against: ONNX Runtime's CPU where it is there, else the embedded engine.
fn reference(options: &BenchOptions, opening: &Opening<'_>, machine: &Machine<'_>) -> anyhow::Result<ReferenceSpec> {
    let open = |name: &str| crate::named::open(name, opening).map(|opened| opened.spec);
    let model = options.reference.as_deref().map(open).transpose().context("--reference")?;
    Ok(match (machine.runtime)(BackendName::OrtCpu) {
        Ok(runtime) => ReferenceSpec { model, backend: BackendName::OrtCpu, runtime },
        Err(_) => ReferenceSpec { model, ..ReferenceSpec::default() },
    })
}

fn within<T: PartialOrd + Copy + std::fmt::Display>(flag: &str, value: T, low: T, high: T) -> anyhow::Result<T> {
    ensure!(low <= value && value <= high, "{flag} {value} must lie between {low} and {high}");
    Ok(value)
}

/// A value between 0 and 1.
pub fn share(flag: &str, value: f32) -> anyhow::Result<f32> {
    ensure!((0.0..=1.0).contains(&value), "{flag} {value} must lie between 0 and 1");
    Ok(value)
}

/// Where frames come from, and what to know about that; a folder is looked into now, so that an empty one is found before
/// anything runs.
fn source(options: &BenchOptions) -> anyhow::Result<(SourceSpec, Option<String>)> {
    if let Some(path) = &options.input {
        ensure!(is_tensors(path), "--input {} must end in .npy or .npz", path.display());
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

/// Why a cell of an earlier run cannot run now either, if so. A model that had a hash was read again just before.
pub fn fate_again(spec: &CellSpec, earlier: &CellRecord) -> Option<Fate> {
    let status = if earlier.status == CellStatus::Skipped { CellStatus::Skipped } else { CellStatus::Failed };
    let same = || earlier.reason.clone().unwrap_or_else(|| "it could not run when the run began".into());
    let reason = if spec.model.sha256.is_empty() {
        let unread = || "the model could not be read when the run began; start a new run".to_owned();
        ModelFile::open(&spec.model.source).map_or_else(|error| error.to_string(), |_| unread())
    } else if earlier.status == CellStatus::Skipped {
        same()
    } else {
        match (&spec.runtime, spec.backend.needs()) {
            (None, Some(_)) => same(),
            (Some(runtime), _) if !runtime.library.is_file() => {
                format!("{} is gone; start a new run", runtime.library.display())
            }
            _ => {
                let file = ModelFile::open(&spec.model.source).ok()?;
                if spec.rewrite.is_some() {
                    // What was to be made of it can be made now.
                    return None;
                }
                backend(spec.backend).supports(spec.precision, &file.info, &spec.provider).err()?.to_string()
            }
        }
    };
    Some(Fate { status, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{DeviceIndex, Seconds};

    fn nothing(name: BackendName) -> Result<Option<RuntimeSpec>, String> {
        if name == BackendName::Rten { Ok(None) } else { Err(format!("{name}: not here")) }
    }

    fn bare() -> Machine<'static> {
        Machine {
            runtime: &nothing,
            absent: &|_| "not here".to_owned(),
            gpus: 0,
            cpus: 2,
            cache: None,
            mem_available_bytes: None,
            watcher: &prony_work::Silent,
        }
    }

    fn full() -> Machine<'static> {
        Machine { runtime: &everything, gpus: 1, ..bare() }
    }

    fn everything(name: BackendName) -> Result<Option<RuntimeSpec>, String> {
        let library = RuntimeSpec::new("/lib/x.so", "1");
        Ok((name != BackendName::Rten).then_some(library))
    }

    fn resolve(options: BenchOptions) -> anyhow::Result<Resolved> {
        super::resolve(options, &bare())
    }

    fn options(models: &[&str]) -> BenchOptions {
        BenchOptions { models: models.iter().map(|&m| m.into()).collect(), ..BenchOptions::default() }
    }

    fn ids(resolved: &Resolved) -> Vec<&str> {
        resolved.plan.cells.iter().map(|cell| cell.id.as_str()).collect()
    }

    #[test]
    fn without_arguments_both_built_in_models_are_measured() {
        let resolved = resolve(options(&[])).unwrap();
        assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32", "builtin-thermal:rten:fp32"]);
        assert_eq!(resolved.plan.cells[0].imgsz, Some([320, 320]));
        assert!(resolved.fates.is_empty());
    }

    #[test]
    fn the_same_cell_twice_gets_a_number() {
        let resolved = resolve(options(&["builtin-rgb", "builtin-rgb"])).unwrap();
        assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32", "builtin-rgb:rten:fp32#2"]);
    }

    #[test]
    fn two_names_that_look_alike_do_not_share_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let model = |name: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, prony_model::builtin(SceneKind::Rgb)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let asked = BenchOptions { models: vec![model("a+b.onnx"), model("a_b.onnx")], ..BenchOptions::default() };
        let cells = resolve(asked).unwrap().plan.cells;
        assert_ne!(cells[0].slug(), cells[1].slug());
    }

    #[test]
    fn a_flag_that_would_be_ignored_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let scene = prony_source::scenes::scene(SceneKind::Rgb, 1, 0);
        std::fs::write(dir.path().join("a.png"), prony_source::png::encode_png(&scene.image).unwrap()).unwrap();
        let none = || BenchOptions { head: Some(HeadChoice::None), ..options(&["builtin-rgb"]) };
        let with_images = BenchOptions { source: Some(dir.path().to_owned()), ..none() };
        assert!(resolve(with_images).unwrap_err().to_string().contains("--source"));
        let with_conf = BenchOptions { conf: Some(0.5), ..none() };
        assert!(resolve(with_conf).unwrap_err().to_string().contains("--conf"));
    }

    #[test]
    fn a_precision_that_cannot_be_made_fails_that_cell_alone() {
        let asked =
            BenchOptions { precision: Some(vec![Precision::Fp32, Precision::Fp8]), ..options(&["builtin-rgb"]) };
        let resolved = resolve(asked).unwrap();
        assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32", "builtin-rgb:rten:fp8"]);
        assert_eq!(resolved.fates.len(), 1);
        assert_eq!(resolved.fates["builtin-rgb:rten:fp8"].status, CellStatus::Failed);
    }

    #[test]
    fn a_precision_that_the_file_does_not_bring_is_made() {
        let machine = full();
        let asked = |models: &[&str], precision| BenchOptions {
            backends: Some(["rten", "ort-cpu", "openvino", "tensorrt"].map(String::from).to_vec()),
            precision: Some(vec![precision]),
            ..options(models)
        };
        let rewrites = |resolved: &Resolved| -> Vec<bool> {
            resolved.plan.cells.iter().map(|cell| cell.rewrite.is_some()).collect()
        };
        let int8 = super::resolve(asked(&["builtin-rgb"], Precision::Int8), &machine).unwrap();
        assert_eq!(rewrites(&int8), [true, true, true, false], "TensorRT calibrates by itself");
        let calibration = int8.plan.cells[1].rewrite.as_ref().unwrap().calibration().unwrap();
        assert_eq!((&calibration.source, calibration.seed), (&SourceSpec::Scenes, 1007));
        let fp16 = super::resolve(asked(&["builtin-rgb"], Precision::Fp16), &machine).unwrap();
        assert_eq!(rewrites(&fp16), [false, true, false, false], "OpenVINO has it by a hint");
        assert!(fp16.fates["builtin-rgb:rten:fp16"].reason.starts_with("rten executes fp32 and int8 files"));
    }

    #[test]
    fn int8_without_data_is_skipped_and_says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.onnx");
        std::fs::write(&path, prony_model::builtin(SceneKind::Rgb)).unwrap();
        let asked = BenchOptions { precision: Some(vec![Precision::Int8]), ..options(&[path.to_str().unwrap()]) };
        let fate = resolve(asked.clone()).unwrap().fates["mine:rten:int8"].clone();
        assert_eq!(fate.status, CellStatus::Skipped);
        assert!(fate.reason.starts_with("rten: int8 needs ranges: give --calib"), "{}", fate.reason);
        let with_data = BenchOptions { data: Some("scenes".into()), ..asked.clone() };
        assert!(resolve(with_data).unwrap().fates.is_empty());
        let mut with_calib = asked;
        with_calib.engine.calibration = Some("scenes".into());
        assert!(resolve(with_calib).unwrap().fates.is_empty());
    }

    #[test]
    fn a_broken_model_beside_a_good_one_is_a_failed_cell() {
        let resolved = resolve(options(&["/etc/passwd", "builtin-rgb"])).unwrap();
        assert!(resolved.fates["passwd:rten:fp32"].reason.contains("not an ONNX model"));
        let error = resolve(options(&["/etc/passwd"])).unwrap_err();
        assert!(error.to_string().contains("not an ONNX model"), "{error}");
    }

    #[test]
    fn absurd_values_are_refused_by_name() {
        let refused = |options: BenchOptions, flag: &str| {
            let error = format!("{:#}", resolve(options).unwrap_err());
            assert!(error.contains(flag), "{error}");
        };
        refused(BenchOptions { conf: Some(1.5), ..options(&[]) }, "--conf");
        refused(BenchOptions { iou: Some(f32::NAN), ..options(&[]) }, "--iou");
        refused(BenchOptions { batch: Some(vec![0]), ..options(&[]) }, "--batch");
        refused(BenchOptions { threads: Some(0), ..options(&[]) }, "--threads");
        refused(BenchOptions { device: Some(DeviceIndex(1)), ..options(&[]) }, "--device 1 does not exist");
        refused(BenchOptions { samples: Some(0), ..options(&[]) }, "--samples");
        refused(BenchOptions { duration: Some(Seconds(0.0)), ..options(&[]) }, "--duration");
        refused(BenchOptions { name: Some("../up".into()), ..options(&[]) }, "--name");
        refused(BenchOptions { backends: Some(vec!["nosuch".into()]), ..options(&[]) }, "nosuch");
        refused(BenchOptions { source: Some("/nonexistent".into()), ..options(&[]) }, "/nonexistent");
    }

    #[test]
    fn a_size_that_does_not_fit_the_file_is_bad_input() {
        let asked = BenchOptions { imgsz: Some("640".parse().unwrap()), ..options(&["builtin-rgb"]) };
        let error = resolve(asked).unwrap_err().to_string();
        assert!(error.contains("fixed at 320x320") && error.contains("--imgsz 640"), "{error}");
    }

    #[test]
    fn what_came_from_all_is_skipped_and_what_was_named_has_failed() {
        let all = BenchOptions { backends: Some(vec!["all".into()]), ..options(&["builtin-rgb"]) };
        let resolved = resolve(all.clone()).unwrap();
        assert_eq!(resolved.plan.cells.len(), BackendName::ALL.len());
        assert!(resolved.fates.values().all(|fate| fate.status == CellStatus::Skipped));
        assert_eq!(resolved.fates["builtin-rgb:ort-cuda:fp32"].reason, "ort-cuda: not here");
        let named = BenchOptions { backends: Some(vec!["rten".into(), "ort-cuda".into()]), ..all };
        let resolved = resolve(named).unwrap();
        assert_eq!(resolved.fates["builtin-rgb:ort-cuda:fp32"].status, CellStatus::Failed);
    }

    #[test]
    fn a_named_precision_that_nothing_can_execute_has_failed_everywhere() {
        let asked = BenchOptions {
            backends: Some(vec!["all".into()]),
            precision: Some(vec![Precision::Fp32, Precision::Nvfp4]),
            ..options(&["builtin-rgb"])
        };
        let resolved = resolve(asked).unwrap();
        let status = |id: &str| resolved.fates[id].status;
        assert_eq!(status("builtin-rgb:rten:nvfp4"), CellStatus::Failed);
        assert_eq!(status("builtin-rgb:ort-cpu:fp32"), CellStatus::Skipped, "rten does fp32");
    }

    #[test]
    fn a_tier_expands_and_a_flag_beats_it() {
        let machine = Machine { mem_available_bytes: Some(64 << 30), ..full() };
        let quick = BenchOptions { tier: Some(crate::options::Tier::Quick), ..options(&["builtin-rgb"]) };
        let resolved = super::resolve(quick.clone(), &machine).unwrap();
        assert_eq!(resolved.plan.cells.len(), BackendName::ALL.len());
        assert_eq!(resolved.plan.budget.duration_s, Some(2.0));
        let longer = BenchOptions { duration: Some(Seconds(9.0)), precision: Some(vec![Precision::Native]), ..quick };
        let resolved = super::resolve(longer, &machine).unwrap();
        assert_eq!(resolved.plan.budget.duration_s, Some(9.0));
        assert!(resolved.plan.cells.iter().all(|cell| cell.precision == Precision::Native));
        assert_eq!(resolved.plan.reference.backend, BackendName::OrtCpu);
    }

    #[test]
    fn batches_are_in_the_id_where_there_are_several() {
        let asked = BenchOptions { batch: Some(vec![1, 4]), ..options(&["builtin-rgb"]) };
        let resolved = resolve(asked).unwrap();
        assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32@b1", "builtin-rgb:rten:fp32@b4"]);
        assert!(resolved.fates.is_empty(), "the built-in models take any batch");
    }
}
