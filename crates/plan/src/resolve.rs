//! From options to a plan in which everything is decided, in three steps: a [`Request`] makes sense by itself, [`Inputs`] are
//! its files, each opened once, and [`Inputs::plan`] decides the rest on the machine that was found. What is wrong is said as
//! early as it can be known, before anything runs.

mod budget;
mod gates;
mod inputs;
mod matrix;
mod provider;
mod request;
mod selection;
mod tier;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use prony_backend::backend;
use prony_model::ModelFile;
use prony_source::dataset::Dataset;
use prony_types::{
    BackendName, CellRecord, CellSpec, CellStatus, Fate, ModelInfo, ModelSpec, Plan, ReferenceSpec, RunRecord,
    RuntimeName, RuntimeSpec,
};

use self::gates::refuse_strange_baseline;
use self::inputs::refuse_broken;
use self::matrix::Expanded;
use self::provider::{refuse_unread_flags, with_own_caches};
use self::request::{readers, refuse_drop_of_one};
use crate::models::OpenedModels;
use crate::options::too_many_threads;

pub use self::gates::read_baseline;
pub use self::inputs::{Inputs, open_data};
pub use self::matrix::{fits_batch, image_size};
pub use self::request::Request;
pub use self::selection::listed;

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
    /// Memory that is left.
    pub mem_available_bytes: Option<u64>,
}

/// A plan, what is already known about cells that will not run, and what was read for it.
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
    /// What relative limits are compared with.
    pub baseline: Option<RunRecord>,
    /// Data on disk to score on.
    pub data: Option<Arc<Dataset>>,
    /// What was read of the models.
    pub models: OpenedModels,
}

impl Resolved {
    /// Refuses a baseline that has none of the cells that would run.
    pub fn check_baseline(&self) -> anyhow::Result<()> {
        let (cells, fates) = (&self.plan.cells, &self.fates);
        self.baseline.iter().try_for_each(|run| refuse_strange_baseline(run, cells, fates))
    }
}

impl Inputs {
    /// Decides the rest, on a machine.
    pub fn plan(self, machine: &Machine<'_>) -> anyhow::Result<Resolved> {
        let Request { options, backends, tier, threads, gates, .. } = &self.request;
        let selection = backends.on(options, machine);
        let readers = readers(options, &selection.backends, selection.is_auto());
        refuse_unread_flags(options, &readers, &selection.absent)?;
        let provider = with_own_caches(self.provider.clone(), &readers, self.cache.as_deref());
        let (batches, fewer) = match (&options.batch, tier) {
            (None, Some(tier)) => {
                let read: Vec<&(ModelSpec, ModelInfo)> =
                    self.models.iter().filter_map(|(_, model)| model.as_ref().ok()).collect();
                let imgsz = options.imgsz.map(|size| size.0);
                tier::fitting(tier.batches.clone(), &read, imgsz, machine.mem_available_bytes)
            }
            _ => (self.request.batches().to_vec(), None),
        };
        let expanded = self.matrix(&selection, provider, batches).expand(Some(machine));
        refuse_broken(&expanded)?;
        let Expanded { cells, fates, standby, left_to_rten, .. } = expanded;
        refuse_drop_of_one(gates, &cells, &fates)?;
        let mut notes = self.notes;
        notes.extend(fewer);
        // Of engines there is only one library that runs them.
        if cells.iter().any(|cell| !cell.named || !cell.model.source.is_engine()) {
            notes.extend(selection.absence());
        }
        if !left_to_rten.is_empty() {
            let models = listed(&left_to_rten);
            notes.push(format!(
                "no other backend that is here can run {models}: measured on the embedded engine (rten)"
            ));
        }
        notes.extend(too_many_threads(*threads, machine.cpus));
        // Where someone pointed at a library, using another in its stead is told.
        let pointed = options.library.iter().any(|library| library.name == RuntimeName::Onnxruntime);
        if let (true, Err(reason)) = (pointed, (machine.runtime)(BackendName::OrtCpu)) {
            notes.push(format!("outputs are held against rten's, because {reason}"));
        }
        let Request { options, post, gates, budget, name, evaluation, .. } = self.request;
        let plan = Plan {
            name,
            cells,
            standby,
            input: self.input,
            post,
            budget,
            named_precisions: options.precision.iter().flatten().copied().collect(),
            reference: reference(self.reference, machine),
            evaluation,
            timed: !options.only_scored,
            resident: options.resident.unwrap_or_default(),
            gates,
            strict: options.strict,
            notes,
        };
        let resolved = Resolved {
            plan,
            fates,
            out: options.out.unwrap_or_else(|| "runs".into()),
            redact: options.redact,
            baseline: self.baseline,
            data: self.data,
            models: self.opened,
        };
        resolved.check_baseline()?;
        Ok(resolved)
    }
}

/// What outputs are held against: ONNX Runtime's CPU where it is there, else the embedded engine.
fn reference(model: Option<ModelSpec>, machine: &Machine<'_>) -> ReferenceSpec {
    match (machine.runtime)(BackendName::OrtCpu) {
        Ok(runtime) => ReferenceSpec { model, backend: BackendName::OrtCpu, runtime },
        Err(_) => ReferenceSpec { model, ..ReferenceSpec::default() },
    }
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

fn within<T: PartialOrd + Copy + std::fmt::Display>(flag: &str, value: T, low: T, high: T) -> anyhow::Result<T> {
    ensure!(low <= value && value <= high, "{flag} {value} must lie between {low} and {high}");
    Ok(value)
}

/// A value between 0 and 1.
pub fn share(flag: &str, value: f32) -> anyhow::Result<f32> {
    ensure!((0.0..=1.0).contains(&value), "{flag} {value} must lie between 0 and 1");
    Ok(value)
}

/// Why a cell of an earlier run cannot run now either, if so. `info` is what its model says about itself, which was read again
/// just before; `None` for one that could not be read then.
pub fn fate_again(spec: &CellSpec, earlier: &CellRecord, info: Option<&ModelInfo>) -> Option<Fate> {
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
            // What was to be made of it can be made now.
            _ if spec.rewrite.is_some() => return None,
            _ => backend(spec.backend).supports(spec.precision, info?, &spec.provider).err()?.to_string(),
        }
    };
    Some(Fate { status, reason })
}

#[cfg(test)]
#[path = "resolve/resolve_tests.rs"]
mod tests;
