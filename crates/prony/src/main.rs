//! Prony: which model, backend and precision to ship on this device, with evidence.

mod args;
mod command;
mod options;
mod resolve;
mod run;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Verb};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.verb {
        Verb::Bench(args) => command::bench(args),
        Verb::Data(args) => command::data(args),
        Verb::Report(args) => command::report(&args),
        Verb::Completions(args) => command::completions(&args),
        Verb::Man(args) => command::man(&args),
        Verb::Worker => command::worker(),
    };
    let code = outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        prony_types::ExitCode::Usage
    });
    ExitCode::from(u8::from(code))
}
