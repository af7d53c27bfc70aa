//! `prony runtime`.

use std::io::{self, Write as _};
use std::time::Instant;

use prony_types::ExitCode;
use serde_json::json;

use crate::args::{RuntimeArgs, RuntimeInstallArgs, RuntimeListArgs, RuntimeNameArgs, RuntimeVerb};
use crate::run::Interrupt;
use crate::runtime::{self, Installed, Order, Outcome, RuntimeName, Shelf, State, Stopped, Turn, View};
use crate::runtime::{home, megabytes};

pub(crate) fn runtime(args: &RuntimeArgs) -> anyhow::Result<ExitCode> {
    let shelf = Shelf::new(&home::folder(args.home.as_deref())?);
    match &args.verb {
        RuntimeVerb::List(args) => list(&shelf, args),
        RuntimeVerb::Install(args) => install(&shelf, args),
        RuntimeVerb::Remove(args) => remove(&shelf, args),
        RuntimeVerb::Path(args) => path(&shelf, args),
    }
}

fn install(shelf: &Shelf, args: &RuntimeInstallArgs) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let interrupt = Interrupt::listen()?;
    let view = View::new(args.quiet);
    let order = Order { request: &args.runtime, from: args.from.as_deref(), view, interrupt: &interrupt };
    let (installed, how) = match runtime::install(shelf, &order) {
        Ok(Outcome::Already(installed)) => (installed, "is installed already and whole".to_owned()),
        Ok(Outcome::Installed(installed)) => {
            (installed, format!("installed in {:.1} s", begun.elapsed().as_secs_f64()))
        }
        Err(error) if error.is::<Stopped>() => {
            eprintln!("interrupted; nothing was installed");
            return Ok(ExitCode::Interrupted);
        }
        // A file that was named and is no good is bad input; pip, network and disk are failures.
        Err(error) if args.from.is_some() && !runtime::is_failure(&error) => return Err(error),
        Err(error) => return Ok(failed(&error)),
    };
    if !args.quiet {
        let size = megabytes(installed.bytes());
        println!("{} {} {how} ({size} in {})", installed.name, installed.version, installed.folder.display());
    }
    Ok(ExitCode::Ok)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::CellFailed
}

fn remove(shelf: &Shelf, args: &RuntimeNameArgs) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let view = View::new(false);
    let request = &args.runtime;
    if shelf.find(request).is_none() {
        eprintln!("error: {request} is not installed in {}; {}", shelf.folder.display(), what_is(shelf));
        return Ok(ExitCode::CellFailed);
    }
    let on_wait = || view.say("another prony is changing this folder; waiting for it to end");
    let turn = match Turn::wait(shelf, &interrupt, on_wait) {
        Ok(turn) => turn,
        Err(error) if error.is::<Stopped>() => return Ok(ExitCode::Interrupted),
        Err(error) => return Ok(failed(&error)),
    };
    let wanted = |found: &Installed| request.version.as_ref().is_none_or(|version| version.is_same(&found.version));
    for installed in shelf.versions(request.name).into_iter().filter(wanted) {
        if let Err(error) = turn.remove(&installed.folder) {
            return Ok(failed(&error));
        }
        println!("{} {} removed ({})", installed.name, installed.version, megabytes(installed.bytes()));
    }
    Ok(ExitCode::Ok)
}

fn path(shelf: &Shelf, args: &RuntimeNameArgs) -> anyhow::Result<ExitCode> {
    let request = &args.runtime;
    let Some(installed) = shelf.find(request) else {
        let folder = shelf.folder.display();
        eprintln!("error: {request} is not installed in {folder}; run `prony runtime install {request}`");
        return Ok(ExitCode::CellFailed);
    };
    match (installed.glance(), installed.main()) {
        (State::Whole, Some(main)) => writeln!(io::stdout(), "{}", main.display())?,
        (state, _) => {
            let what = if let State::Damaged(what) = state { what } else { "it has no main file".to_owned() };
            let (name, version) = (installed.name, &installed.version);
            eprintln!("error: {name} {version} is damaged: {what}; run `prony runtime install {name}@{version}`");
            return Ok(ExitCode::CellFailed);
        }
    }
    Ok(ExitCode::Ok)
}

/// What could be removed, in words.
fn what_is(shelf: &Shelf) -> String {
    let all = RuntimeName::ALL.into_iter().flat_map(|name| shelf.versions(name));
    let names: Vec<String> = all.map(|found| format!("{}@{}", found.name, found.version)).collect();
    if names.is_empty() { "no runtime is".to_owned() } else { format!("installed: {}", names.join(", ")) }
}

fn list(shelf: &Shelf, args: &RuntimeListArgs) -> anyhow::Result<ExitCode> {
    Turn::tidy(shelf);
    let found: Vec<(RuntimeName, Vec<Installed>)> =
        RuntimeName::ALL.into_iter().map(|name| (name, shelf.versions(name))).collect();
    let bytes = found.iter().flat_map(|(_, versions)| versions).map(Installed::bytes).sum();
    let bar = View::new(args.json).bar("checking".to_owned(), bytes);
    let examine = |installed: Installed| {
        let state = installed.examine();
        bar.inc(installed.bytes());
        (installed, state)
    };
    let examined: Vec<(RuntimeName, Vec<(Installed, State)>)> =
        found.into_iter().map(|(name, versions)| (name, versions.into_iter().map(examine).collect())).collect();
    bar.finish_and_clear();
    let text = if args.json { as_json(shelf, &examined)? } else { as_text(&examined) };
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::Ok)
}

fn as_json(shelf: &Shelf, examined: &[(RuntimeName, Vec<(Installed, State)>)]) -> anyhow::Result<String> {
    let version = |(installed, state): &(Installed, State)| {
        let problem = if let State::Damaged(what) = state { Some(what) } else { None };
        json!({
            "version": installed.version,
            "whole": problem.is_none(),
            "problem": problem,
            "bytes": installed.bytes(),
            "folder": installed.folder,
            "path": installed.main(),
        })
    };
    let runtime = |(name, versions): &(RuntimeName, Vec<(Installed, State)>)| {
        json!({
            "name": name.as_str(),
            "installed": versions.iter().map(version).collect::<Vec<_>>(),
            "install": format!("prony runtime install {name}"),
        })
    };
    let runtimes: Vec<serde_json::Value> = examined.iter().map(runtime).collect();
    let all = json!({ "schema": "prony.runtimes/1", "folder": shelf.folder, "runtimes": runtimes });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn as_text(examined: &[(RuntimeName, Vec<(Installed, State)>)]) -> String {
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
