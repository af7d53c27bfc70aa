//! `prony compare-outputs`: two models or two backends on the same frames, in this very process.

mod text;

use anyhow::{Context as _, anyhow};
use prony_backend::precision_of;
use prony_types::{BackendName, ExitCode};

use super::turn::wait_for_machine;
use super::with_sign_of_life;
use crate::args::CompareOutputsArgs;
use crate::error::{CliError, OrCliError as _};
use crate::output::{View, print, print_json, show_making};
use prony_plan::named::{Opened, Opening};
use prony_run::inline::compare::{Comparison, Prepared, compare, image_size_of};
use prony_run::inline::{EngineShapes, Executor, backend_for, tell_loader};

pub(crate) fn compare_outputs(args: &CompareOutputsArgs, leave: fn()) -> Result<ExitCode, CliError> {
    if !args.bound.is_none_or(f64::is_finite) {
        return Err(anyhow!("--bound must be a number of decibels")).usage();
    }
    let sides = prepared(args, leave).by_cause()?.ok_or(CliError::Interrupted(None))?;
    let comparison = Comparison {
        names: [&args.a, &args.b],
        source: args.source.as_deref(),
        frames: args.frames,
        seed: args.seed,
        bound: args.bound,
        head: args.head,
    };
    let finding = with_sign_of_life("running both models", || compare(&comparison, &sides)).by_cause()?;
    match args.print.json {
        true => print_json(&finding)?,
        false => {
            print(text::text(&finding))?;
            finding.notes.iter().for_each(|note| note!("note: {note}"));
        }
    }
    if finding.agree { Ok(ExitCode::Ok) } else { Err(CliError::Gate) }
}

/// Both sides with everything that their sessions are made from; `None` where the user gave up while an engine was built.
fn prepared(args: &CompareOutputsArgs, leave: fn()) -> anyhow::Result<Option<[Prepared; 2]>> {
    let (a, b) = (open(&args.a, args)?, open(&args.b, args)?);
    let otherwise = args.backend_a.unwrap_or(BackendName::Rten);
    let names = [
        backend_for(&args.a, &a.file, args.backend_a, BackendName::Rten)?,
        backend_for(&args.b, &b.file, args.backend_b, otherwise)?,
    ];
    let executor = Executor {
        device: 0,
        home: args.home.as_deref(),
        libraries: args.library.iter().map(|library| (library.name, library.path.clone())).collect(),
        engine: &args.engine,
        force: args.force,
        watcher: &View,
        show: &show_making(),
        wait: &|interrupt| Ok(wait_for_machine(interrupt, args.wait)?),
        leave,
    };
    let runs_engine = |name: BackendName| name == BackendName::Tensorrt;
    let builds = |(model, name): (&Opened, BackendName)| runs_engine(name) && model.file.engine.is_none();
    let any_built = [&a, &b].into_iter().zip(names).any(builds);
    executor.refuse_unread(any_built, names.into_iter().any(runs_engine))?;
    let runtimes = [executor.runtime(names[0])?, executor.runtime(names[1])?];
    // The loader is told of both at once, because that starts this process again.
    let folders: Vec<_> = runtimes.iter().flatten().flat_map(|runtime| runtime.search.clone()).collect();
    tell_loader(&folders)?;
    let mut sides = Vec::new();
    let asked = [args.precision_a, args.precision_b];
    let size = args.imgsz.map(|size| size.0);
    for ((((model, typed), name), runtime), asked) in
        [a, b].into_iter().zip([&args.a, &args.b]).zip(names).zip(runtimes).zip(asked)
    {
        let imgsz = image_size_of(typed, &model.file, size, args.head)?;
        let precision = asked.unwrap_or_else(|| precision_of(&model.file.info));
        let mut side =
            Prepared { backend: name, runtime, provider: executor.provider()?, imgsz, precision, built: None, model };
        if builds((&side.model, name)) {
            let shapes = EngineShapes { imgsz, ..EngineShapes::default() };
            let Some(built) = executor.engine_of(&side.model, precision, shapes)? else { return Ok(None) };
            built.notes.iter().for_each(|note| note!("{typed}: {note}"));
            side.built = Some(built);
        }
        sides.push(side);
    }
    let sides = <[Prepared; 2]>::try_from(sides).ok();
    sides.context("two sides are compared").map(Some)
}

fn open(name: &str, args: &CompareOutputsArgs) -> anyhow::Result<Opened> {
    let mut how = Opening::in_home(args.home.as_deref(), &View);
    how.export.imgsz = args.imgsz.map(|size| size.0);
    let opened = prony_plan::named::open(name, &how)?;
    opened.notes.iter().for_each(|note| note!("{note}"));
    Ok(opened)
}
