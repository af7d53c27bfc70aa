//! Completions and manual pages, made from the same description of the command line that parses it.

use clap::CommandFactory as _;
use prony_types::ExitCode;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::output::print;

/// Prints shell completions.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "prony", &mut script);
    print(String::from_utf8(script)?)?;
    Ok(ExitCode::Ok)
}

/// Prints the manual page, or writes one for every command.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    match &args.out {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            clap_mangen::generate_to(Cli::command(), folder)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            print(String::from_utf8(page)?)?;
        }
    }
    Ok(ExitCode::Ok)
}
