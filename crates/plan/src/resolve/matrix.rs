//! The cells of a plan: models by backends by precisions by batches, and what is known already of those that cannot run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use prony_backend::{backend, precision_of};
use prony_model::sha256_hex;
use prony_types::os_text::path_from_text;
use prony_types::{
    BackendName, CellSpec, CellStatus, DType, Dim, Fate, HeadChoice, ModelFormat, ModelInfo, ModelSource, ModelSpec,
    Precision, ProviderSpec, RewriteSpec, RuntimeName, RuntimeSpec,
};

use super::Machine;
use super::provider::for_model;
use super::selection::{Precisions, Selection};
use crate::engine_options::{EngineArgs, decide_engine};
use crate::named::stem;

/// What a matrix is made of.
pub(super) struct Matrix<'a> {
    /// As they were asked for, read or not.
    pub(super) models: &'a [(String, anyhow::Result<(ModelSpec, ModelInfo)>)],
    pub(super) backends: &'a Selection,
    pub(super) precisions: Precisions,
    pub(super) batches: Vec<u32>,
    /// Whether precisions and batches were named, or came from a default or a tier.
    pub(super) precisions_named: bool,
    pub(super) batches_named: bool,
    pub(super) imgsz: Option<[u32; 2]>,
    pub(super) head: HeadChoice,
    /// Why a model without a head cannot take what is fed, if so.
    pub(super) no_images: Option<&'static str>,
    pub(super) device: u32,
    pub(super) threads: Option<u32>,
    pub(super) provider: ProviderSpec,
    /// Where caches may be kept from run to run.
    pub(super) cache: Option<&'a Path>,
    /// How engines are built.
    pub(super) engine: &'a EngineArgs,
    /// Images of the user's own, on which int8 ranges may be found.
    pub(super) images: Option<&'a Path>,
}

/// Why a cell cannot run, by whose choice it is that it should.
enum Problem {
    /// The model or what it is fed.
    Input(String),
    Batch(String),
    /// The backend has no such device.
    Device(String),
    Backend(String),
    Precision(String),
    /// Nothing to find int8 ranges on.
    Ranges(String),
}

/// Cells with their fates, and what is wrong with the input.
pub(super) struct Expanded {
    pub(super) cells: Vec<CellSpec>,
    pub(super) fates: BTreeMap<String, Fate>,
    /// Cells of the embedded engine, for models that nothing else turns out to be able to run.
    pub(super) standby: Vec<CellSpec>,
    pub(super) broken: Vec<String>,
    /// Models that the embedded engine measures because nothing else here can.
    pub(super) left_to_rten: Vec<String>,
}

/// A cell, and why it cannot run.
type Candidate = (CellSpec, Option<Problem>);

/// A machine, or `None` for what holds on any of them: libraries and GPUs are left out of account.
type Somewhere<'a> = Option<&'a Machine<'a>>;

/// The library for a backend.
fn runtime_of(machine: Somewhere<'_>, backend: BackendName) -> Result<Option<RuntimeSpec>, String> {
    machine.map_or(Ok(None), |machine| (machine.runtime)(backend))
}

impl Matrix<'_> {
    pub(super) fn expand(&self, machine: Somewhere<'_>) -> Expanded {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut standby: Vec<CellSpec> = Vec::new();
        let mut left_to_rten = Vec::new();
        for (name, model) in self.models {
            let of_model = self.of_model(machine, name, model);
            let nothing_runs = of_model.iter().all(|(_, problem)| problem.is_some());
            candidates.extend(of_model);
            let spare = self.standby(machine, model);
            if nothing_runs && !spare.is_empty() {
                left_to_rten.push(spare[0].model.name.clone());
                candidates.extend(spare.into_iter().map(|cell| (cell, None)));
            } else {
                standby.extend(spare);
            }
        }
        let (mut cells, problems): (Vec<CellSpec>, Vec<Option<Problem>>) = candidates.into_iter().unzip();
        let broken = cells.iter().zip(&problems).filter_map(|(cell, problem)| match problem {
            Some(Problem::Input(reason) | Problem::Batch(reason) | Problem::Device(reason)) => {
                Some(if cell.model.sha256.is_empty() {
                    reason.clone()
                } else {
                    format!("{}: {reason}", cell.model.name)
                })
            }
            _ => None,
        });
        let broken = broken.collect();
        let fates = self.fates(&mut cells, problems);
        let count = cells.len();
        cells.extend(standby);
        make_ids_unique(&mut cells);
        let standby = cells.split_off(count);
        let fates = cells.iter().zip(fates).filter_map(|(cell, fate)| Some((cell.id.clone(), fate?))).collect();
        Expanded { cells, fates, standby, broken, left_to_rten }
    }

    /// The cells of one model.
    fn of_model(
        &self,
        machine: Somewhere<'_>,
        name: &str,
        model: &anyhow::Result<(ModelSpec, ModelInfo)>,
    ) -> Vec<Candidate> {
        let info = model.as_ref().ok().map(|(_, info)| info);
        let is_engine = info.is_some_and(|info| info.format == ModelFormat::Engine);
        let auto = self.backends.is_auto();
        let backends: &[BackendName] = match &self.backends.backends[..] {
            // An engine is what it is, and one library runs it; only who says otherwise gets something else.
            _ if is_engine && auto => &[BackendName::Tensorrt],
            // That a file cannot be read needs to be said once.
            [first, ..] if info.is_none() && auto => std::slice::from_ref(first),
            all => all,
        };
        let mut candidates = Vec::new();
        for &backend in backends {
            let runtime = runtime_of(machine, backend);
            let precisions = match is_engine && !self.precisions_named {
                true => vec![Precision::Native],
                false => self.precisions.of(backend, info),
            };
            for precision in precisions {
                for &batch in &self.batches {
                    let (mut cell, problem) = match model {
                        Ok((spec, info)) => self.cell(machine, (spec, info), backend, &runtime, precision, batch),
                        Err(error) => self.unread(name, format!("{error:#}"), backend, precision, batch),
                    };
                    cell.named = is_engine && auto;
                    candidates.push((cell, problem));
                }
            }
        }
        candidates
    }

    /// What the embedded engine can run of a model that other backends were chosen for.
    fn standby(&self, machine: Somewhere<'_>, model: &anyhow::Result<(ModelSpec, ModelInfo)>) -> Vec<CellSpec> {
        let Ok((spec, info)) = model else { return Vec::new() };
        let chosen = self.backends.backends.contains(&BackendName::Rten);
        if !self.backends.is_auto() || chosen || info.format == ModelFormat::Engine {
            return Vec::new();
        }
        let (rten, mut able) = (BackendName::Rten, Vec::new());
        for precision in self.precisions.of(rten, Some(info)) {
            for &batch in &self.batches {
                if let (cell, None) = self.cell(machine, (spec, info), rten, &Ok(None), precision, batch) {
                    able.push(cell);
                }
            }
        }
        able
    }

    /// A model that could not be read still has its cells.
    fn unread(
        &self,
        name: &str,
        error: String,
        backend: BackendName,
        precision: Precision,
        batch: u32,
    ) -> (CellSpec, Option<Problem>) {
        let source = ModelSource::File(path_from_text(name));
        let model = ModelSpec::new(stem(&path_from_text(name)), source, "");
        let cell = CellSpec { head: self.head, batch, ..CellSpec::new(model, backend, precision) };
        (cell, Some(Problem::Input(error)))
    }

    fn cell(
        &self,
        machine: Somewhere<'_>,
        (model, info): (&ModelSpec, &ModelInfo),
        name: BackendName,
        runtime: &Result<Option<RuntimeSpec>, String>,
        precision: Precision,
        batch: u32,
    ) -> (CellSpec, Option<Problem>) {
        let head = classifier_has_no_head(self.head, info);
        let imgsz = image_size(&self.imgsz, head, info);
        let mut problem = match &imgsz {
            Err(reason) => Some(Problem::Input(reason.clone())),
            Ok(_) => self.problem(machine, info, head, name, runtime, precision, batch),
        };
        let mut cell = CellSpec {
            imgsz: imgsz.ok().flatten(),
            head,
            batch,
            device: self.device,
            threads: self.threads,
            runtime: runtime.as_ref().ok().cloned().flatten(),
            builder: builder(machine, name, info),
            provider: for_model(&self.provider, self.cache, &model.sha256),
            ..CellSpec::new(model.clone(), name, precision)
        };
        if let (None, Some(adapted)) = (&problem, self.adapted(&cell, info)) {
            match adapted {
                Ok(rewrite) => cell.rewrite = Some(rewrite),
                Err(reason) => problem = Some(reason),
            }
        }
        if problem.is_none() && info.format == ModelFormat::Onnx && name.runs_engines() {
            problem = self.plan_engine(machine, &mut cell, info).err();
        }
        (cell, problem)
    }

    /// How the graph is rewritten so that the backend executes it in a precision; `None` where it can as it is, or where
    /// rewriting changes nothing about that.
    fn adapted(&self, cell: &CellSpec, info: &ModelInfo) -> Option<Result<RewriteSpec, Problem>> {
        if !can_rewrite(cell.precision, info) || !needs_rewriting(cell, info, &self.provider) {
            return None;
        }
        let made = rewritten(cell.precision, info);
        if let Err(reason) = backend(cell.backend).supports(cell.precision, &made, &self.provider) {
            return Some(Err(Problem::Precision(reason.to_string())));
        }
        let builtin = matches!(cell.model.source, ModelSource::Builtin(_));
        let rewrite = match self.engine.rewrite(cell.precision, cell.backend, builtin, self.images) {
            Ok(rewrite) => rewrite,
            Err(error) => return Some(Err(Problem::Input(format!("{error:#}")))),
        };
        Some(rewrite.ok_or_else(|| Problem::Ranges(format!("{}: {NO_RANGES}", cell.backend))))
    }

    /// Plans the engine that is built from the model, and what builds it.
    fn plan_engine(&self, machine: Somewhere<'_>, cell: &mut CellSpec, info: &ModelInfo) -> Result<(), Problem> {
        let input = |error: anyhow::Error| Problem::Input(format!("{error:#}"));
        let builtin = matches!(cell.model.source, ModelSource::Builtin(_));
        let mut engine = self.engine.spec(cell.precision, builtin).map_err(input)?;
        if let (Precision::Int8, None, Some(images)) = (cell.precision, &engine.calibration, self.images) {
            let own = EngineArgs { calibration: Some(images.to_owned()), ..self.engine.clone() };
            engine.calibration = own.spec(cell.precision, builtin).map_err(input)?.calibration;
        }
        // A graph that quantises by itself needs no ranges.
        let quantises = precision_of(info) == Precision::Int8;
        decide_engine(&mut engine, info, self.provider.gpu_mem_limit_bytes);
        if cell.precision == Precision::Int8 && engine.calibration.is_none() && !quantises {
            return Err(Problem::Ranges(format!("{}: {NO_RANGES}", cell.backend)));
        }
        if cell.rewrite.is_some() {
            // The graph will bring them.
            engine.calibration = None;
        }
        cell.engine = Some(engine);
        if cell.backend == BackendName::Trtexec {
            cell.builder = runtime_of(machine, BackendName::Tensorrt).map_err(Problem::Backend)?;
        }
        match cell.builder.as_ref().or(cell.runtime.as_ref()) {
            Some(tensorrt) if !tensorrt.companions.contains_key(&RuntimeName::Nvonnxparser) => {
                let library = tensorrt.library.display();
                Err(Problem::Backend(format!(
                    "{}: no libnvonnxparser of the same version beside {library}, so no engine can be built from an ONNX \
                     file; install it, or give an engine",
                    cell.backend
                )))
            }
            _ => Ok(()),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all that decides whether one cell can run")]
    fn problem(
        &self,
        machine: Somewhere<'_>,
        info: &ModelInfo,
        head: HeadChoice,
        name: BackendName,
        runtime: &Result<Option<RuntimeSpec>, String>,
        precision: Precision,
        batch: u32,
    ) -> Option<Problem> {
        if let (HeadChoice::None, Some(reason)) = (head, self.no_images) {
            return Some(Problem::Input(reason.to_owned()));
        }
        if let Err(reason) = fits_batch(batch, info) {
            return Some(Problem::Batch(reason));
        }
        // What Prony can make the file into is looked at afterwards.
        let unfit = || match can_rewrite(precision, info) {
            true => None,
            false => {
                backend(name).supports(precision, info, &self.provider).err().map(|e| Problem::Precision(e.to_string()))
            }
        };
        // To install a library that cannot execute it would be in vain; a GPU that is not there comes before anything.
        if let (false, Some(problem)) = (name.on_gpu(), unfit()) {
            return Some(problem);
        }
        if let Err(reason) = runtime {
            return Some(Problem::Backend(reason.clone()));
        }
        // OpenVINO counts the devices of a kind by itself.
        let by_name = name == BackendName::Openvino && self.provider.openvino_device.is_some();
        if let Err(reason) = fits_device(machine, name, self.device)
            && !by_name
        {
            return Some(Problem::Device(reason));
        }
        unfit()
    }

    /// What was named and cannot run has failed; what came from `auto`, `all` or a tier is skipped. A precision that was named
    /// and that no backend can execute has failed too, wherever the backends came from.
    fn fates(&self, cells: &mut [CellSpec], problems: Vec<Option<Problem>>) -> Vec<Option<Fate>> {
        let runs: BTreeSet<(String, Precision)> = cells
            .iter()
            .zip(&problems)
            .filter(|(_, problem)| problem.is_none())
            .map(|(cell, _)| (cell.model.name.clone(), cell.precision))
            .collect();
        let mut fates = Vec::new();
        for (cell, problem) in cells.iter_mut().zip(problems) {
            let in_vain = self.precisions_named && !runs.contains(&(cell.model.name.clone(), cell.precision));
            cell.named |= self.backends.requires(cell.backend) || in_vain;
            let fate = problem.map(|problem| {
                let (reason, failed) = match problem {
                    Problem::Input(reason) => (reason, true),
                    Problem::Batch(reason) => (reason, self.batches_named),
                    Problem::Device(reason) | Problem::Backend(reason) | Problem::Precision(reason) => {
                        (reason, cell.named)
                    }
                    // Nothing is wrong with the machine or the model: something was not given.
                    Problem::Ranges(reason) => (reason, false),
                };
                cell.named |= failed;
                Fate { status: if failed { CellStatus::Failed } else { CellStatus::Skipped }, reason }
            });
            fates.push(fate);
        }
        fates
    }
}

/// trtexec is a program: TensorRT itself builds what it runs.
fn builder(machine: Somewhere<'_>, name: BackendName, info: &ModelInfo) -> Option<RuntimeSpec> {
    let tensorrt = || runtime_of(machine, BackendName::Tensorrt).ok().flatten();
    (name == BackendName::Trtexec && info.format == ModelFormat::Onnx).then(tensorrt).flatten()
}

const NO_RANGES: &str = "int8 needs ranges: give --calib with images or tensors like those it will see, --source with images, \
                         --data, or a graph with Q/DQ nodes";

/// Whether a file can be made into one of this precision.
fn can_rewrite(precision: Precision, info: &ModelInfo) -> bool {
    let narrow = matches!(precision, Precision::Fp16 | Precision::Bf16 | Precision::Int8);
    narrow && info.format == ModelFormat::Onnx && precision_of(info) == Precision::Fp32
}

/// Whether a backend executes the file in a precision only when the graph itself is in it.
fn needs_rewriting(cell: &CellSpec, info: &ModelInfo, provider: &ProviderSpec) -> bool {
    if cell.backend.runs_engines() {
        // From TensorRT 11 on there are no flags: the graph is what is built.
        let builder = cell.builder.as_ref().or(cell.runtime.as_ref());
        let major = builder.and_then(|runtime| runtime.version.split('.').next()?.parse::<u32>().ok());
        return major.is_some_and(|major| major >= 11);
    }
    backend(cell.backend).supports(cell.precision, info, provider).is_err()
}

/// What a file would say of itself in a precision.
fn rewritten(precision: Precision, info: &ModelInfo) -> ModelInfo {
    let mut made = info.clone();
    match precision {
        Precision::Fp16 => made.weights = Some(DType::F16),
        Precision::Bf16 => made.weights = Some(DType::Bf16),
        _ => made.quantised = Some(precision),
    }
    made
}

/// Whether the device is there at all.
fn fits_device(machine: Somewhere<'_>, name: BackendName, device: u32) -> Result<(), String> {
    let on_gpu = name.on_gpu();
    let devices = if on_gpu { machine.map_or(u32::MAX, |machine| machine.gpus) } else { 1 };
    if device < devices {
        return Ok(());
    }
    let plural = if devices == 1 { "device, number 0" } else { "devices, numbered from 0" };
    Err(format!("--device {device} does not exist: {name} has {devices} {plural}"))
}

/// Whether a model takes so many images at once.
pub fn fits_batch(batch: u32, info: &ModelInfo) -> Result<(), String> {
    // An engine's shapes are known when it is opened; what does not fit is found there.
    let Some(input) = info.inputs.first() else { return Ok(()) };
    match input.dims[..] {
        [Dim::Fixed(n), _, _, _] if n != u64::from(batch) => {
            Err(format!("its batch is fixed at {n}, so --batch {batch} does not fit; use --batch {n}"))
        }
        _ => Ok(()),
    }
}

/// A classifier that says so is timed as it is; anything else is looked at when its outputs are there.
pub(super) fn classifier_has_no_head(asked: HeadChoice, info: &ModelInfo) -> HeadChoice {
    let classifier = info.metadata.task.as_deref() == Some("classify");
    if asked == HeadChoice::Auto && classifier { HeadChoice::None } else { asked }
}

/// Height and width of a detector's input: asked for, fixed by the file, or what its exporter wrote; else 640.
pub fn image_size(asked: &Option<[u32; 2]>, head: HeadChoice, info: &ModelInfo) -> Result<Option<[u32; 2]>, String> {
    let Some(input) = info.inputs.first() else { return Ok(asked.or(info.metadata.imgsz)) };
    let dims = match &input.dims[..] {
        [_, _, height, width] => [height, width],
        _ if head == HeadChoice::None => return Ok(None),
        _ => {
            return Err(format!("takes {input}, not one image [N,3,H,W]; use --head none to time it as it is"));
        }
    };
    let fixed = dims.map(|dim| match dim {
        Dim::Fixed(n) => u32::try_from(*n).ok(),
        Dim::Named(_) => None,
    });
    let default = info.metadata.imgsz.unwrap_or([640, 640]);
    let mut size = [0; 2];
    for axis in 0..2 {
        size[axis] = match (asked.map(|size| size[axis]), fixed[axis]) {
            (Some(asked), Some(fixed)) if asked != fixed => {
                return Err(format!(
                    "its input is fixed at {}x{}, so --imgsz {asked} does not fit; leave it out or export the model anew",
                    dims[0], dims[1]
                ));
            }
            (_, Some(fixed)) => fixed,
            (Some(asked), None) => asked,
            (None, None) => default[axis],
        };
    }
    Ok(Some(size))
}

/// Cells that differ in their batch are told apart by it.
fn mark_batches(cells: &mut [CellSpec]) {
    let several = |cells: &[CellSpec], id: &str| {
        let batches: BTreeSet<u32> = cells.iter().filter(|cell| cell.id == id).map(|cell| cell.batch).collect();
        batches.len() > 1
    };
    let marked: Vec<bool> = cells.iter().map(|cell| several(cells, &cell.id)).collect();
    for (cell, _) in cells.iter_mut().zip(marked).filter(|(_, marked)| *marked) {
        cell.id = format!("{}@b{}", cell.id, cell.batch);
    }
}

/// Where two cells would share an id, a short hash of the spec tells them apart; where even that is the same, a number.
fn make_ids_unique(cells: &mut [CellSpec]) {
    mark_batches(cells);
    let counts = |cells: &[CellSpec]| {
        cells.iter().fold(BTreeMap::<String, u32>::new(), |mut counts, cell| {
            *counts.entry(cell.id.clone()).or_default() += 1;
            counts
        })
    };
    let specs_differ = |cells: &[CellSpec], id: &str| {
        let mut same = cells.iter().filter(|cell| cell.id == id);
        let first = same.next();
        same.any(|cell| Some(cell) != first)
    };
    for (id, _) in counts(cells).into_iter().filter(|&(_, n)| n > 1) {
        if specs_differ(cells, &id) {
            for cell in cells.iter_mut().filter(|cell| cell.id == id) {
                // Either way of writing it down tells cells apart.
                let spec = match serde_json::to_vec(cell) {
                    Ok(spec) => spec,
                    Err(_) => format!("{cell:?}").into_bytes(),
                };
                cell.id = format!("{id}@{}", &sha256_hex(&spec)[..6]);
            }
        }
    }
    for (id, _) in counts(cells).into_iter().filter(|&(_, n)| n > 1) {
        for (nth, cell) in cells.iter_mut().filter(|cell| cell.id == id).enumerate().skip(1) {
            cell.id = format!("{id}#{}", nth + 1);
        }
    }
    // Two ids may still share a folder: `a+b` and `a_b`.
    let mut slugs = BTreeSet::new();
    for cell in cells {
        if !slugs.insert(cell.slug()) {
            cell.id = format!("{}@{}", cell.id, &sha256_hex(cell.id.as_bytes())[..6]);
            slugs.insert(cell.slug());
        }
    }
}
