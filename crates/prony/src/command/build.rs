//! `prony build`: engines from a model, each in a process of its own, and from the cache where they are there already.

mod outcome;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use prony_backend::affinity;
use prony_files::Kind;
use prony_types::{
    ArtifactSpec, BUILD_TIMEOUT_S, BackendName, ExitCode, FailureKind, HeadChoice, Job, ModelFormat, ModelInfo,
    ModelSource, ModelSpec, Precision, PrepareJob, RuntimeSpec, WORKER_PROTOCOL,
};

use self::outcome::{Outcome, Status, show};
use crate::args::BuildArgs;
use crate::command::turn::wait_for_machine;
use crate::command::{tell_trusted, with_sign_of_life};
use crate::error::{CliError, OrCliError as _};
use crate::output::{View, show_making};
use prony_plan::engine_options::decide_engine;
use prony_plan::named::{Opening, open};
use prony_plan::options::too_many_threads;
use prony_plan::{fits_batch, image_size};
use prony_run::system::{Places, PreparedSystem, state_folder};
use prony_run::{Made, Maker, NotMade};
use prony_runtimes::home;
use prony_runtimes::{choose, discover_for};
use prony_work::Interrupt;

pub(crate) fn build(args: &BuildArgs) -> Result<ExitCode, CliError> {
    let mut how = Opening::in_home(args.home.as_deref(), &View);
    how.export.imgsz = args.imgsz.map(|size| size.0);
    how.export.batch = args.batch;
    let opened = open(&args.model, &how).usage()?;
    opened.notes.iter().for_each(|note| note!("{note}"));
    let (spec, info) = opened.parts();
    let cpus = affinity::choose(args.threads).len() as u32;
    too_many_threads(args.threads, cpus).iter().for_each(|found| note!("{found}"));
    let precisions = precisions(&args.precision);
    let imgsz = check(args, &spec, &info, &precisions).usage()?;
    let mut engine = args.engine.clone();
    engine.find_images().usage()?.iter().for_each(|found| note!("{found}"));
    let home = home::folder(args.home.as_deref()).usage()?;
    let cache = home::artifacts(&home::cache(&home));
    let interrupt = Interrupt::listen().failed()?;
    let runtime = match runtime(args, &home).usage()? {
        Ok(runtime) => runtime,
        Err(missing) => {
            let without = |&precision| Outcome { precision, status: Status::Skipped(missing.clone()), copied_to: None };
            let outcomes: Vec<Outcome> = precisions.iter().map(without).collect();
            // Once, not once per precision.
            say!("error: {missing}");
            if args.print.json {
                show(&spec, &outcomes, true)?;
            }
            return Ok(outcome::code(&outcomes));
        }
    };
    // Kernels are timed while an engine is built: not beside a timed cell.
    let Some(_lock) = wait_for_machine(&interrupt, args.wait)? else {
        return Err(CliError::Interrupted(None));
    };
    fs::create_dir_all(&cache).with_context(|| cache.display().to_string()).usage()?;
    let prepared = args
        .prepare
        .then(|| PreparedSystem::begin(&state_folder()?, Places::here(), |problem| say!("{problem}")))
        .transpose()
        .usage()?;
    prepared.iter().flat_map(|prepared| &prepared.notes).for_each(|note| note!("{note}"));
    let scenes = matches!(spec.source, ModelSource::Builtin(_));
    let mut outcomes = Vec::new();
    for &precision in &precisions {
        if interrupt.asked() {
            break;
        }
        let mut wanted = engine.spec(precision, scenes).usage()?;
        let gpu_mem_limit_bytes = args.gpu_mem_limit.map(|size| size.0);
        let decided = decide_engine(&mut wanted, &info, gpu_mem_limit_bytes);
        let job = PrepareJob {
            protocol: WORKER_PROTOCOL,
            cell: format!("{}:{}:{precision}", spec.name, BackendName::Tensorrt),
            model: spec.clone(),
            engine: wanted,
            imgsz,
            batch: args.batch,
            runtime: runtime.clone(),
            plugins: args.engine.plugin.iter().map(std::path::absolute).collect::<Result<_, _>>().usage()?,
            device: args.device.0,
            gpu_mem_limit_bytes,
            threads: args.threads,
            cache: cache.clone(),
            rebuild: args.rebuild,
            timeout_s: args.engine.build_timeout_s().unwrap_or(BUILD_TIMEOUT_S),
            ring_fd: -1,
        };
        let maker = Maker { log: cache.join("build.log"), interrupt: &interrupt, show: &show_making() };
        let mut status = status(maker.make(&job.cell.clone(), Job::Prepare(job)));
        if let Status::Made { notes, .. } = &mut status {
            notes.splice(0..0, decided);
        }
        let mut outcome = Outcome { precision, status, copied_to: None };
        if let (Status::Made { artifact, .. }, Some(out)) = (&outcome.status, &args.out) {
            match copy(artifact, out, &spec.name, precision) {
                Ok(path) => outcome.copied_to = Some(path),
                Err(error) => outcome.status = Status::Failed(FailureKind::Internal, format!("{error:#}")),
            }
        }
        outcomes.push(outcome);
    }
    // Before the table: what was changed is back when the result is there.
    prepared.into_iter().flat_map(PreparedSystem::end).for_each(|problem| say!("{problem}"));
    show(&spec, &outcomes, args.print.json)?;
    if interrupt.asked() {
        return Err(CliError::interrupted("interrupted; the build under way was killed, the cache is whole"));
    }
    Ok(outcome::code(&outcomes))
}

fn status(made: Result<Made, NotMade>) -> Status {
    match made {
        Ok(Made { artifact, build_ms, rebuilt_because, notes }) => {
            Status::Made { artifact, build_ms, rebuilt_because, notes }
        }
        Err(NotMade::Failed(FailureKind::Unsupported, reason)) => Status::Skipped(reason),
        Err(NotMade::Failed(kind, reason)) => Status::Failed(kind, reason),
        Err(NotMade::Interrupted) => Status::Interrupted,
    }
}

/// Each once, in the order in which they were named.
fn precisions(named: &[Precision]) -> Vec<Precision> {
    let mut each = Vec::new();
    named.iter().for_each(|precision| {
        if !each.contains(precision) {
            each.push(*precision);
        }
    });
    each
}

/// What is wrong whatever the machine has; the size of the images that the model takes.
fn check(
    args: &BuildArgs,
    spec: &ModelSpec,
    info: &ModelInfo,
    precisions: &[Precision],
) -> anyhow::Result<Option<[u32; 2]>> {
    if info.format == ModelFormat::Engine {
        bail!("{} is an engine already; give the ONNX file that it was built from", args.model);
    }
    args.engine.check(precisions)?;
    prony_runtimes::policy::check_plugins(&args.engine.plugin)?;
    let of_model = |reason: String| anyhow::anyhow!("{}: {reason}", spec.name);
    let profiled = |input: &str| args.engine.profile.iter().any(|profile| profile.0.input == input);
    if let Some(input) = info.inputs.first()
        && !profiled(&input.name)
    {
        fits_batch(args.batch, info).map_err(of_model)?;
    }
    let asked = args.imgsz.map(|size| size.0);
    let imgsz = image_size(&asked, HeadChoice::None, info).map_err(of_model)?;
    ensure!(
        asked.is_none() || imgsz.is_some(),
        "{} takes {}, not an image, so --imgsz does not fit; use --profile",
        spec.name,
        info.inputs[0]
    );
    Ok(imgsz)
}

/// TensorRT, or the line that says what is missing.
fn runtime(args: &BuildArgs, home: &Path) -> anyhow::Result<Result<RuntimeSpec, String>> {
    let explicit: Vec<_> = args.library.iter().map(|library| (library.name, library.path.clone())).collect();
    let look = || discover_for(BackendName::Tensorrt, home, &explicit);
    let found = with_sign_of_life("looking for TensorRT", look)?;
    tell_trusted(&found);
    Ok(choose(&found, BackendName::Tensorrt).and_then(|spec| spec.ok_or_else(|| "no TensorRT here".to_owned())))
}

/// Puts an engine and its sidecar where the user wants them.
fn copy(artifact: &ArtifactSpec, out: &Path, model: &str, precision: Precision) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    let target = out.join(format!("{model}-{precision}.engine"));
    let beside = |path: &Path| path.with_added_extension("json");
    for (from, to) in [(artifact.path.clone(), target.clone()), (beside(&artifact.path), beside(&target))] {
        let bytes = prony_files::read(&from, Kind::Model).with_context(|| from.display().to_string())?;
        prony_store::write_atomic(&to, &bytes)?;
    }
    Ok(target)
}
