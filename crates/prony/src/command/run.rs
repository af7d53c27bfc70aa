//! `prony run`: a model once, in this very process, for people who want to see what it does.

mod boxes;
mod feed;
mod output;
mod shape;
mod summary;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use indicatif::ProgressBar;
use prony_backend::{BackendError, Session, SessionSpec, affinity, backend, needs, precision_of};
use prony_bench::tensors::output_spec;
use prony_types::{BackendName, ExitCode, FailureKind, HeadChoice, PostSpec, RuntimeName, RuntimeSpec, TensorSpec};
use prony_vision::HeadError;

use self::boxes::Boxes;
use self::feed::{Feed, Sources};
use self::output::Targets;
pub(crate) use self::shape::Shape;
use self::summary::{OutputSummary, Summary};
use crate::args::RunArgs;
use crate::discover::{choose, discover_for};
use crate::model::{Opened, Opening, open};
use crate::options::too_many_threads;
use crate::output::is_live;
use crate::resolve::share;
use crate::run::loader_path;
use crate::runtime::home;

/// Most boxes an image, as in `bench`.
const MAX_DET: u32 = 300;

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    attempt(args).or_else(|error| {
        // What the user gave is wrong, or it is the backend's doing: two exit codes.
        let failed = match error.downcast_ref::<BackendError>() {
            Some(error) => !matches!(error.kind(), FailureKind::Input | FailureKind::Model),
            None => error.is::<HeadError>(),
        };
        if !failed {
            return Err(error);
        }
        say!("error: {error:#}");
        Ok(ExitCode::CellFailed)
    })
}

fn attempt(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let post = PostSpec {
        conf: share("--conf", args.conf.unwrap_or(0.25))?,
        iou: share("--iou", args.iou.unwrap_or(0.45))?,
        max_det: MAX_DET,
        multi_label: false,
    };
    let Opened { file: model, notes, .. } = open(&args.model, &Opening::in_home(args.home.as_deref()))?;
    notes.iter().for_each(|note| note!("{note}"));
    ensure!(
        model.engine.is_none(),
        "{} is an engine, which `prony run` does not take; use `prony bench` or `prony inspect`",
        args.model
    );
    let info = &model.info;
    let sources = Sources::find(&args.model, &args.input, &info.inputs)?;
    let targets = Targets::find(&args.output, &info.outputs, sources.has_image())?;
    if !sources.has_image() {
        let given = [("--conf", args.conf.is_some()), ("--iou", args.iou.is_some()), ("--head", args.head.is_some())];
        if let Some((flag, _)) = given.into_iter().find(|&(_, given)| given) {
            bail!("{flag} is about boxes, which need an image as --input");
        }
    }
    let spec = SessionSpec {
        precision: args.precision.unwrap_or_else(|| precision_of(info)),
        device: args.device.0,
        threads: args.threads.unwrap_or_else(|| affinity::choose(None).len() as u32),
        runtime: runtime_for(args)?,
        shapes: sources.shapes(&args.shape, info)?,
        ..SessionSpec::new(&model)
    };
    let waiting = spinner(format!("loading {} on {}", args.model, args.backend));
    let begun = Instant::now();
    let mut session = backend(args.backend).open(&spec)?;
    let load_ms = millis(begun);
    waiting.set_message("running");
    let mut feed = sources.read(session.inputs())?;
    let mut call_ms = call(&mut *session, &mut feed)?;
    let outputs: Vec<TensorSpec> = (0..session.output_count()).map(|i| output_spec(&session.output(0, i))).collect();
    let cpus = affinity::choose(args.threads).len() as u32;
    let mut notes: Vec<String> = feed.notes.iter().cloned().chain(too_many_threads(args.threads, cpus)).collect();
    let mut boxes = None;
    if let Some(size) = feed.image_size() {
        let wanted = targets.need_boxes() || args.head.is_some_and(|head| head != HeadChoice::Auto);
        match Boxes::new(args.head.unwrap_or(HeadChoice::Auto), &outputs, &info.metadata, size, &post) {
            Ok(None) => ensure!(!targets.need_boxes(), "a model without boxes has none to draw or to write"),
            Ok(Some(mut found)) => {
                if feed.refit(found.fit()) {
                    call_ms = call(&mut *session, &mut feed)?;
                }
                found.decode(&*session, &feed)?;
                boxes = Some(found);
            }
            // Without a wish for boxes the raw outputs are worth having.
            Err(error @ HeadError::NoFit { .. }) if !wanted => notes.push(format!("no boxes: {error}")),
            Err(error) => return Err(error.into()),
        }
    }
    waiting.finish_and_clear();
    let written = targets.write(&*session, &feed, boxes.as_ref(), &info.metadata.names)?;
    let summary = Summary {
        model: &args.model,
        sha256: &model.sha256,
        backend: session.record(),
        executed: session.executed(),
        load_ms,
        call_ms,
        inputs: feed.summaries(session.inputs()),
        outputs: (0..session.output_count()).map(|i| OutputSummary::new(&session.output(0, i))).collect(),
        head: boxes.as_ref().map(|boxes| boxes.head()),
        detections: boxes.as_ref().map(|boxes| boxes.named(&info.metadata.names)),
        written,
        notes,
    };
    summary.print(args.print.json)?;
    Ok(if summary.complain() { ExitCode::Gate } else { ExitCode::Ok })
}

/// Fills the inputs and runs the model; milliseconds of the call itself.
fn call(session: &mut dyn Session, feed: &mut Feed) -> Result<f64, BackendError> {
    feed.fill(session);
    let begun = Instant::now();
    session.run(0)?;
    Ok(millis(begun))
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// The library that a backend opens: the one that was named, or what is found here.
fn runtime_for(args: &RunArgs) -> anyhow::Result<Option<RuntimeSpec>> {
    let Some((name, _)) = needs(args.backend) else {
        ensure!(args.library.is_none(), "{} is built in; --library is for the backends that open one", args.backend);
        return Ok(None);
    };
    let explicit: Vec<_> = args.library.iter().map(|path| (name, path.clone())).collect();
    let runtime = found_runtime(args.backend, args.home.as_deref(), &explicit)?;
    if let Some(runtime) = &runtime {
        tell_loader(&runtime.search)?;
    }
    Ok(runtime)
}

/// What is found here for a backend, or among what was named.
pub(super) fn found_runtime(
    name: BackendName,
    home: Option<&Path>,
    explicit: &[(RuntimeName, PathBuf)],
) -> anyhow::Result<Option<RuntimeSpec>> {
    let home = home::folder(home).unwrap_or_default();
    let found = discover_for(name, &home, explicit)?;
    // A backend that was named and is not here has failed, as in `bench`; the reason begins with its name.
    let backend = name.name();
    let refused = |reason: String| {
        let what = reason.trim_start_matches(&format!("{backend}: ")).to_owned();
        BackendError::Unsupported { backend, what }
    };
    Ok(choose(&found, name).map_err(refused)?)
}

/// The loader reads its path when a process starts: where folders must be added to it, this one starts again.
pub(super) fn tell_loader(folders: &[PathBuf]) -> anyhow::Result<()> {
    const AGAIN: &str = "PRONY_STARTED_AGAIN";
    match loader_path(folders) {
        Some((name, path)) if std::env::var_os(AGAIN).is_none() => {
            let error = Command::new(std::env::current_exe()?)
                .args(std::env::args_os().skip(1))
                .env(name, path)
                .env(AGAIN, "1")
                .exec();
            Err(error).context("cannot start again with the libraries' folders in LD_LIBRARY_PATH")
        }
        _ => Ok(()),
    }
}

/// A sign of life on a terminal, for models that take their time.
fn spinner(message: String) -> ProgressBar {
    if !is_live() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
