//! Prony: which model, backend and precision to ship on this device, with evidence.

#[macro_use]
mod output;

mod args;
mod command;
mod error;
mod version;

use std::process::ExitCode;

use clap::Parser as _;
use prony_run::system;
use prony_runtimes::policy;
use prony_work::{CHILD_VERB, WORKER_VERB};

use crate::args::{Cli, Verb};
use crate::error::{CliError, OrCliError as _};

fn main() -> ExitCode {
    // Children of this very binary; no verbs for people, so the command line does not know them.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == WORKER_VERB) {
        return finish(command::worker());
    }
    if std::env::args_os().nth(1).is_some_and(|verb| verb == CHILD_VERB) {
        return finish(Err(prony_work::run_child(std::env::args_os().skip(2))).usage());
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    output::set_quiet(cli.quiet);
    policy::set_policy(cli.verb.policy());
    mend_machine();
    let outcome = match cli.verb {
        Verb::Bench(args) => command::bench(&args),
        Verb::Eval(args) => command::eval(&args),
        Verb::Run(args) => command::run(&args, leave_interrupted),
        Verb::Inspect(args) => command::inspect(&args),
        Verb::Export(args) => command::export(&args),
        Verb::Convert(args) => command::convert(&args),
        Verb::Quantize(args) => command::quantize(&args),
        Verb::Build(args) => command::build(&args),
        Verb::Cache(args) => command::cache(&args),
        Verb::Data(args) => command::data(args),
        Verb::Compare(args) => command::compare(&args),
        Verb::CompareOutputs(args) => command::compare_outputs(&args, leave_interrupted),
        Verb::Report(args) => command::report(&args),
        Verb::Runtime(args) => command::runtime(&args),
        Verb::Doctor(args) => command::doctor(&args),
        Verb::Completions(args) => command::completions(&args),
        Verb::Man(args) => command::man(&args),
    };
    finish(outcome)
}

/// Ends the process where a Ctrl-C reaches work that cannot be asked to stop.
fn leave_interrupted() {
    // Not through destructors of libraries that are at work in another thread.
    std::process::exit(i32::from(u8::from(prony_types::ExitCode::Interrupted)));
}

/// Undoes what an earlier command that died had changed about the machine.
fn mend_machine() {
    for folder in system::state_folders() {
        let said = system::undo_leftovers(&folder, &system::Places::here());
        said.into_iter().flatten().for_each(|line| note!("{line}"));
    }
}

/// The only place that decides how the process ends: as the command says, or by the kind of its error.
fn finish(outcome: Result<prony_types::ExitCode, CliError>) -> ExitCode {
    let code = outcome.unwrap_or_else(|error| {
        error.report();
        error.code()
    });
    ExitCode::from(u8::from(code))
}

/// A wrong flag gets one line, like every other mistake; help and version are printed as asked.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let printed = error.print();
        if error.use_stderr() {
            return finish(Ok(prony_types::ExitCode::Usage));
        }
        return finish(output::printed(printed).map(|()| prony_types::ExitCode::Ok).map_err(CliError::from));
    }
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let first = lines.next().unwrap_or_default().to_owned();
    let noise = ["For more", "tip: to pass"];
    let more: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !noise.iter().any(|start| line.starts_with(start))).collect();
    say!("{}", [&[first.as_str()], &more[..]].concat().join("; "));
    finish(Ok(prony_types::ExitCode::Usage))
}
