//! `prony run`: a model once, in this very process, for people who want to see what it does.

mod summary;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use indicatif::ProgressBar;
use prony_backend::{BackendError, Session, SessionSpec, affinity, backend, open_engine, precision_of};
use prony_bench::outputs_sha256;
use prony_bench::tensors::output_spec;
use prony_types::{BackendName, ExitCode, HeadChoice, ModelInfo, PostSpec, RuntimeName, TensorSpec};
use prony_vision::HeadError;

use self::summary::Summary;
use super::turn::wait_for_machine;
use crate::args::{OwnLibrary, RunArgs};
use crate::error::{CliError, OrCliError as _, OrUnwritten as _};
use crate::output::{View, bars, is_live, show_making};
use prony_plan::named::{Opening, open};
use prony_plan::options::too_many_threads;
use prony_plan::share;
use prony_run::inline::{
    Boxes, EngineShapes, Executor, InputSources, ModelInputs, OutputFiles, OutputSummary, backend_for, tell_loader,
};

/// Most boxes an image, as in `bench`.
const MAX_DET: u32 = 300;

pub(crate) fn run(args: &RunArgs, leave: fn()) -> Result<ExitCode, CliError> {
    let post = PostSpec {
        conf: share("--conf", args.conf.unwrap_or(0.25)).usage()?,
        iou: share("--iou", args.iou.unwrap_or(0.45)).usage()?,
        max_det: MAX_DET,
        multi_label: false,
    };
    let opened = open(&args.model, &Opening::in_home(args.home.as_deref(), &View)).usage()?;
    opened.notes.iter().for_each(|note| note!("{note}"));
    let model = &opened.file;
    let name = backend_for(&args.model, model, args.backend, BackendName::Rten).by_cause()?;
    let executor = Executor {
        device: args.device.0,
        home: args.home.as_deref(),
        libraries: libraries(args, name).usage()?,
        engine: &args.engine,
        force: args.force,
        watcher: &View,
        show: &show_making(),
        wait: &|interrupt| Ok(wait_for_machine(interrupt, args.wait)?),
        leave,
    };
    let runs_engine = name == BackendName::Tensorrt;
    executor.refuse_unread(runs_engine && model.engine.is_none(), runs_engine).usage()?;
    // What goes into an engine is known when it is loaded; what goes into a graph now, before anything slow.
    let planned = if model.engine.is_none() { Some(Planned::of(args, &model.info).usage()?) } else { None };
    let runtime = executor.runtime(name).by_cause()?;
    runtime.iter().try_for_each(|runtime| tell_loader(&runtime.search)).usage()?;
    let precision = args.precision.unwrap_or_else(|| precision_of(&model.info));
    let built = match &planned {
        Some(planned) if runs_engine => {
            let shapes = EngineShapes::of(&model.info, &planned.shapes, &args.engine.profile);
            let built = executor.engine_of(&opened, precision, shapes).by_cause()?;
            Some(built.ok_or(CliError::Interrupted(None))?)
        }
        _ => None,
    };
    let spec = SessionSpec {
        precision,
        device: args.device.0,
        threads: args.threads.unwrap_or_else(|| affinity::choose(None).len() as u32),
        runtime,
        provider: executor.provider().usage()?,
        artifact: built.as_ref().map(|built| built.file.clone()),
        ..SessionSpec::new(model)
    };
    let waiting = spinner(&format!("loading {} on {name}", args.model));
    let begun = Instant::now();
    let Ready { mut session, info, planned: Planned { sources, targets, .. } } = match planned {
        Some(planned) if !runs_engine => {
            let spec = SessionSpec { shapes: planned.shapes.clone(), ..spec };
            Ready { session: backend(name).open(&spec).by_cause()?, info: model.info.clone(), planned }
        }
        planned => ready_engine(args, spec, planned).by_cause()?,
    };
    let load_ms = millis(begun);
    bars::message(&waiting, "running");
    let mut inputs = sources.read(session.inputs()).usage()?;
    let mut call_ms = call(&mut *session, &mut inputs).by_cause()?;
    let outputs: Vec<TensorSpec> = (0..session.output_count()).map(|i| output_spec(&session.output(0, i))).collect();
    let cpus = affinity::choose(args.threads).len() as u32;
    let mut notes: Vec<String> = built.iter().flat_map(|built| built.notes.clone()).collect();
    notes.extend(inputs.notes.iter().cloned().chain(too_many_threads(args.threads, cpus)));
    notes.extend(session.record().warnings.iter().map(|warning| format!("{name} warned on loading: {warning}")));
    let mut boxes = None;
    if let Some(size) = inputs.image_size() {
        let wanted = targets.need_boxes() || args.head.is_some_and(|head| head != HeadChoice::Auto);
        match Boxes::new(args.head.unwrap_or(HeadChoice::Auto), &outputs, &info.metadata, size, &post) {
            Ok(None) if targets.need_boxes() => {
                return Err(anyhow!("a model without boxes has none to draw or to write")).usage();
            }
            Ok(None) => {}
            Ok(Some(mut found)) => {
                if inputs.refit(found.fit()) {
                    call_ms = call(&mut *session, &mut inputs).by_cause()?;
                }
                found.decode(&*session, &inputs).failed()?;
                boxes = Some(found);
            }
            // Without a wish for boxes the raw outputs are worth having.
            Err(error @ HeadError::NoFit { .. }) if !wanted => notes.push(format!("no boxes: {error}")),
            // It is the outputs' doing, and they were made.
            Err(error) => return Err(error).failed(),
        }
    }
    waiting.finish_and_clear();
    let written = targets.write(&*session, &inputs, boxes.as_ref(), &info.metadata.names).written()?;
    let summary = Summary {
        model: &args.model,
        sha256: &model.sha256,
        engine: built.as_ref().map(|built| &built.artifact),
        backend: session.record(),
        executed: session.executed(),
        load_ms,
        call_ms,
        inputs: inputs.summaries(session.inputs()),
        outputs: (0..session.output_count()).map(|i| OutputSummary::new(&session.output(0, i))).collect(),
        outputs_sha256: outputs_sha256(&*session),
        head: boxes.as_ref().map(|boxes| boxes.head()),
        detections: boxes.as_ref().map(|boxes| boxes.named(&info.metadata.names)),
        written,
        notes,
    };
    summary.print(args.print.json)?;
    if summary.complain() { Err(CliError::Gate) } else { Ok(ExitCode::Ok) }
}

/// Where inputs come from and outputs go, checked against what the model takes.
struct Planned {
    sources: InputSources,
    targets: OutputFiles,
    shapes: Vec<(String, Vec<usize>)>,
}

impl Planned {
    fn of(args: &RunArgs, info: &ModelInfo) -> anyhow::Result<Planned> {
        let sources = InputSources::find(&args.model, &args.input, &info.inputs)?;
        let targets = OutputFiles::find(&args.output, &info.outputs, sources.has_image())?;
        if !sources.has_image() {
            let given =
                [("--conf", args.conf.is_some()), ("--iou", args.iou.is_some()), ("--head", args.head.is_some())];
            if let Some((flag, _)) = given.into_iter().find(|&(_, given)| given) {
                bail!("{flag} is about boxes, which need an image as --input");
            }
        }
        let shapes = sources.shapes(&args.shape, info)?;
        Ok(Planned { sources, targets, shapes })
    }
}

/// A model that can be called.
struct Ready {
    session: Box<dyn Session>,
    /// What it says about itself, with the tensors that the session has.
    info: ModelInfo,
    planned: Planned,
}

/// Loads an engine, which decides the names and the order of tensors, and makes it ready in the shapes of what it is fed.
fn ready_engine(args: &RunArgs, spec: SessionSpec<'_>, of_graph: Option<Planned>) -> anyhow::Result<Ready> {
    let engine = open_engine(&spec)?;
    let mut info = spec.model.info.clone();
    (info.inputs, info.outputs) = (engine.inputs().to_vec(), engine.outputs().to_vec());
    info.metadata.imgsz = info.metadata.imgsz.or(engine.tuned_imgsz());
    let mut planned = Planned::of(args, &info)?;
    if let Some(of_graph) = of_graph {
        // The engine was built for these.
        planned.shapes = of_graph.shapes;
    }
    let session = engine.session(&SessionSpec { shapes: planned.shapes.clone(), ..spec })?;
    Ok(Ready { session, info, planned })
}

/// Fills the inputs and runs the model; milliseconds of the call itself.
fn call(session: &mut dyn Session, inputs: &mut ModelInputs) -> Result<f64, BackendError> {
    inputs.fill(session);
    let begun = Instant::now();
    session.run(0)?;
    Ok(millis(begun))
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// What the command line names as libraries: those of the backend itself need no name.
fn libraries(args: &RunArgs, name: BackendName) -> anyhow::Result<Vec<(RuntimeName, PathBuf)>> {
    let own = name.needs().map(|(own, _)| own);
    let library = |library: &OwnLibrary| match (library.name.or(own), own) {
        (Some(of), Some(_)) => Ok((of, library.path.clone())),
        _ => bail!("{name} is built in; --library is for the backends that open one"),
    };
    args.library.iter().map(library).collect()
}

/// A sign of life on a terminal, for models that take their time.
fn spinner(message: &str) -> ProgressBar {
    if !is_live() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bars::message(&bar, message);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
