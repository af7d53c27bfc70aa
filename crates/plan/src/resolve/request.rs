//! What was asked for, checked as far as nothing has to be opened for it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use prony_source::dataset::HELD_OUT_SEED;
use prony_types::{
    BackendName, BudgetSpec, CellSpec, DataSource, DataSpec, EvaluationSpec, Fate, GateName, GateSpec, HeadChoice,
    ModelSource, PostSpec, Precision, SceneKind,
};
use prony_work::Watcher;

use super::budget::budget;
use super::gates;
use super::inputs::Inputs;
use super::provider::{self, refuse_unread_flags};
use super::selection::{Asked, Precisions};
use super::tier::Choice;
use super::{NO_IMAGES, once_each, share, within};
use crate::images::is_tensors;
use crate::options::BenchOptions;

/// Distinct frames kept resident, so that caches and NMS see real variety.
const FRAMES: u32 = 32;

/// Options that make sense together, whatever the files hold and whatever the machine has.
pub struct Request {
    pub(super) options: BenchOptions,
    pub(super) post: PostSpec,
    pub(super) threads: Option<u32>,
    pub(super) tier: Option<Choice>,
    pub(super) gates: GateSpec,
    pub(super) budget: BudgetSpec,
    pub(super) backends: Asked,
    pub(super) precisions: Precisions,
    pub(super) name: String,
    pub(super) models: Vec<String>,
    pub(super) frames: u32,
    pub(super) seed: u64,
    pub(super) head: HeadChoice,
    pub(super) evaluation: Option<EvaluationSpec>,
}

impl Request {
    /// Checks options; what is wrong names the flag.
    pub fn new(options: BenchOptions) -> anyhow::Result<Request> {
        let post = PostSpec {
            conf: share("--conf", options.conf.unwrap_or(0.25))?,
            iou: share("--iou", options.iou.unwrap_or(0.45))?,
            max_det: within("--max-det", options.max_det.unwrap_or(300), 1, 100_000)?,
            multi_label: false,
        };
        refuse_contradictions(&options)?;
        let threads = options.threads.map(|n| within("--threads", n, 1, 1024)).transpose()?;
        let tier = options.tier.map(Choice::of);
        let gates = gates::spec(&options)?;
        let budget = budget(&options, tier.as_ref(), &gates)?;
        let backends = Asked::of(&options, tier.as_ref())?;
        refuse_unread_flags(&options, &readers(&options, &backends.possible(), backends.is_auto()), &[])?;
        provider::check(&options)?;
        let name = name(&options)?;
        let frames = within("--frames", options.frames.unwrap_or(FRAMES), 1, 100_000)?;
        let head = head(&options)?;
        let mut models = options.models.clone();
        if models.is_empty() {
            models = SceneKind::ALL.iter().map(|kind| format!("builtin-{kind}")).collect();
        }
        let precisions = match (&options.precision, &tier) {
            (Some(list), _) => Precisions::Same(once_each(list.clone())),
            (None, Some(tier)) => Precisions::Same(tier.precisions.clone()),
            (None, None) if backends.is_auto() => Precisions::AsShipped,
            (None, None) => Precisions::Same(vec![Precision::Fp32]),
        };
        ensure!(!precisions.all().is_empty(), "--precision is empty");
        if let Some(batches) = &options.batch {
            ensure!(!batches.is_empty(), "--batch is empty");
            batches.iter().try_for_each(|&batch| within("--batch", batch, 1, 1024).map(drop))?;
        }
        let evaluation = evaluation(&options)?;
        let seed = options.seed.unwrap_or(7);
        Ok(Request {
            options,
            post,
            threads,
            tier,
            gates,
            budget,
            backends,
            precisions,
            name,
            models,
            frames,
            seed,
            head,
            evaluation,
        })
    }

    /// Opens and reads everything that was named, each once. `cache` is where caches may be kept from run to run; `watcher` is
    /// told what takes its time.
    pub fn open(self, cache: Option<PathBuf>, watcher: &dyn Watcher) -> anyhow::Result<Inputs> {
        Inputs::open(self, cache, watcher, None)
    }

    /// Every batch that may come up: which of a tier's fit is known only on the machine.
    pub(super) fn batches(&self) -> &[u32] {
        let of_tier = || self.tier.as_ref().map(|tier| &tier.batches[..]);
        self.options.batch.as_deref().or_else(of_tier).unwrap_or(&[1])
    }
}

/// The backends that options may be about: an engine brings its own where none was named.
pub(super) fn readers(options: &BenchOptions, backends: &[BackendName], is_auto: bool) -> Vec<BackendName> {
    let is_engine = |name: &String| ModelSource::File(name.into()).is_engine();
    let own = (is_auto && options.models.iter().any(is_engine)).then_some(BackendName::Tensorrt);
    backends.iter().copied().chain(own).collect()
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

fn name(options: &BenchOptions) -> anyhow::Result<String> {
    let name = options.name.clone().unwrap_or_else(|| if options.only_scored { "eval" } else { "bench" }.to_owned());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    ensure!(
        !name.is_empty() && name.len() <= 64 && name.chars().all(plain) && !name.starts_with('.'),
        "--name `{name}` must be 1 to 64 letters, digits, `-`, `_` or `.`"
    );
    Ok(name)
}

fn head(options: &BenchOptions) -> anyhow::Result<HeadChoice> {
    if let Some(path) = &options.input {
        ensure!(is_tensors(path), "--input {} must end in .npy or .npz", path.display());
    }
    let tensors = options.input.is_some();
    let head = match options.head {
        None if tensors => HeadChoice::None,
        Some(head) if head != HeadChoice::None && tensors => {
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
        let images = options.source.as_ref().is_some_and(|source| source.as_os_str() != "scenes");
        ensure!(!images, "{NO_IMAGES}");
    }
    Ok(head)
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

/// A drop in accuracy needs another row of the same model to be a drop from: without a baseline, its fp32 row.
pub(super) fn refuse_drop_of_one(
    gates: &GateSpec,
    cells: &[CellSpec],
    fates: &BTreeMap<String, Fate>,
) -> anyhow::Result<()> {
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
