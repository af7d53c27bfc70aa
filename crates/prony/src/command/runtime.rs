//! `prony runtime`.

use std::time::Instant;

use anyhow::anyhow;
use prony_types::ExitCode;
use prony_types::os_text::path_to_text;
use serde_json::{Value, json};

use crate::args::{RuntimeArgs, RuntimeInstallArgs, RuntimeListArgs, RuntimeNameArgs, RuntimeVerb};
use crate::error::{CliError, OrCliError as _};
use crate::output::{View, print, print_json};
use prony_run::utc_now;
use prony_runtimes::home;
use prony_runtimes::{self as runtimes, Installed, Order, Outcome, Package, Shelf, ShelfTurn, State, Stopped};
use prony_work::Interrupt;
use prony_work::megabytes;
use prony_work::{Length, Watcher as _};

/// Version of the format of `--json`.
const SCHEMA: &str = "prony.runtimes/1";

pub(crate) fn runtime(args: &RuntimeArgs) -> Result<ExitCode, CliError> {
    let shelf = Shelf::new(&home::folder(args.home.as_deref()).usage()?);
    match &args.verb {
        RuntimeVerb::List(args) => list(&shelf, args),
        RuntimeVerb::Install(args) => install(&shelf, args),
        RuntimeVerb::Remove(args) => remove(&shelf, args),
        RuntimeVerb::Path(args) => path(&shelf, args),
    }
}

fn install(shelf: &Shelf, args: &RuntimeInstallArgs) -> Result<ExitCode, CliError> {
    let begun = Instant::now();
    let interrupt = Interrupt::listen().failed()?;
    let from = args.from.as_deref();
    let order = Order { request: &args.runtime, from, watcher: &View, interrupt: &interrupt, now: utc_now() };
    let (installed, already) = match runtimes::install(shelf, &order) {
        Ok(Outcome::Already(installed)) => (installed, true),
        Ok(Outcome::Installed(installed)) => (installed, false),
        Err(error) if error.is::<Stopped>() => {
            return Err(CliError::interrupted("interrupted; nothing was installed"));
        }
        // A file that was named and is no good is bad input; pip, network and disk are failures.
        Err(error) if args.from.is_some() && !runtimes::is_failure(&error) => return Err(error).usage(),
        Err(error) => return Err(error).failed(),
    };
    if args.print.json {
        print_json(&json!({ "schema": SCHEMA, "already_installed": already, "runtime": described(&installed) }))?;
        return Ok(ExitCode::Ok);
    }
    let how = match already {
        true => "is installed already and whole".to_owned(),
        false => format!("installed in {:.1} s", begun.elapsed().as_secs_f64()),
    };
    let Installed { name, version, folder, .. } = &installed;
    let size = megabytes(installed.bytes());
    print(format!("{name} {version} {how} ({size} in {})\n", folder.display()))?;
    Ok(ExitCode::Ok)
}

fn remove(shelf: &Shelf, args: &RuntimeNameArgs) -> Result<ExitCode, CliError> {
    let interrupt = Interrupt::listen().failed()?;
    let request = &args.runtime;
    if shelf.find(request).is_none() {
        return Err(anyhow!("{request} is not installed in {}; {}", shelf.folder.display(), what_is(shelf))).failed();
    }
    let on_wait = || View.say("another prony is changing this folder; waiting for it to end");
    let turn = match ShelfTurn::wait(shelf, &interrupt, on_wait) {
        Ok(turn) => turn,
        Err(error) if error.is::<Stopped>() => return Err(CliError::Interrupted(None)),
        Err(error) => return Err(error).failed(),
    };
    let wanted = |found: &Installed| request.version.as_ref().is_none_or(|version| version.is_same(&found.version));
    let mut removed = Vec::new();
    for installed in shelf.versions(request.name).into_iter().filter(wanted) {
        let about = described(&installed);
        turn.remove(&installed.folder).failed()?;
        removed.push(about);
        if !args.print.json {
            let (name, version, size) = (installed.name, &installed.version, megabytes(installed.bytes()));
            print(format!("{name} {version} removed ({size})\n"))?;
        }
    }
    if args.print.json {
        print_json(&json!({ "schema": SCHEMA, "removed": removed }))?;
    }
    Ok(ExitCode::Ok)
}

fn path(shelf: &Shelf, args: &RuntimeNameArgs) -> Result<ExitCode, CliError> {
    let request = &args.runtime;
    let Some(installed) = shelf.find(request) else {
        let folder = shelf.folder.display();
        return Err(anyhow!("{request} is not installed in {folder}; run `prony runtime install {request}`")).failed();
    };
    match (installed.glance(), installed.main()) {
        (State::Whole, Some(_)) if args.print.json => {
            print_json(&json!({ "schema": SCHEMA, "runtime": described(&installed) }))?;
        }
        (State::Whole, Some(main)) => print(format!("{}\n", main.display()))?,
        (state, _) => {
            let what = if let State::Damaged(what) = state { what } else { "it has no main file".to_owned() };
            let (name, version) = (installed.name, &installed.version);
            let fix = format!("run `prony runtime install {name}@{version}`");
            return Err(anyhow!("{name} {version} is damaged: {what}; {fix}")).failed();
        }
    }
    Ok(ExitCode::Ok)
}

/// What could be removed, in words.
fn what_is(shelf: &Shelf) -> String {
    let all = Package::ALL.into_iter().flat_map(|name| shelf.versions(name));
    let names: Vec<String> = all.map(|found| format!("{}@{}", found.name, found.version)).collect();
    if names.is_empty() { "no runtime is".to_owned() } else { format!("installed: {}", names.join(", ")) }
}

fn list(shelf: &Shelf, args: &RuntimeListArgs) -> Result<ExitCode, CliError> {
    ShelfTurn::tidy(shelf);
    let found: Vec<(Package, Vec<Installed>)> =
        Package::ALL.into_iter().map(|name| (name, shelf.versions(name))).collect();
    let bytes = found.iter().flat_map(|(_, versions)| versions).map(Installed::bytes).sum();
    let step = View.step("checking", Length::Bytes(Some(bytes)));
    let mut done = 0;
    let mut examine = |installed: Installed| {
        let state = installed.examine();
        done += installed.bytes();
        step.at(done);
        (installed, state)
    };
    let examined: Vec<(Package, Vec<(Installed, State)>)> =
        found.into_iter().map(|(name, versions)| (name, versions.into_iter().map(&mut examine).collect())).collect();
    drop(step);
    match args.print.json {
        true => print_json(&as_json(shelf, &examined))?,
        false => print(as_text(&examined))?,
    }
    Ok(ExitCode::Ok)
}

/// A version that is installed.
fn described(installed: &Installed) -> Value {
    json!({
        "name": installed.name.as_str(),
        "version": installed.version,
        "bytes": installed.bytes(),
        "folder": path_to_text(&installed.folder),
        "path": installed.main().as_deref().map(path_to_text),
    })
}

fn as_json(shelf: &Shelf, examined: &[(Package, Vec<(Installed, State)>)]) -> Value {
    let version = |(installed, state): &(Installed, State)| {
        let problem = if let State::Damaged(what) = state { Some(what) } else { None };
        json!({
            "version": installed.version,
            "whole": problem.is_none(),
            "problem": problem,
            "bytes": installed.bytes(),
            "folder": path_to_text(&installed.folder),
            "path": installed.main().as_deref().map(path_to_text),
        })
    };
    let runtime = |(name, versions): &(Package, Vec<(Installed, State)>)| {
        json!({
            "name": name.as_str(),
            "installed": versions.iter().map(version).collect::<Vec<_>>(),
            "install": format!("prony runtime install {name}"),
        })
    };
    let runtimes: Vec<Value> = examined.iter().map(runtime).collect();
    json!({ "schema": SCHEMA, "folder": path_to_text(&shelf.folder), "runtimes": runtimes })
}

fn as_text(examined: &[(Package, Vec<(Installed, State)>)]) -> String {
    let mut text = String::new();
    for (name, versions) in examined {
        if versions.is_empty() {
            text += &format!("{name:16} {:12} `prony runtime install {name}` gets it\n", "–");
        }
        for (installed, state) in versions {
            let version = &installed.version;
            let size = megabytes(installed.bytes());
            let path = installed.main().unwrap_or(installed.folder.clone());
            let state = match state {
                State::Whole => "whole".to_owned(),
                State::Damaged(what) => format!("damaged: {what}; `prony runtime install {name}@{version}` mends it"),
            };
            text += &format!("{name:16} {version:12} {size:>9}  {}  {state}\n", path.display());
        }
    }
    text
}
