//! Completions and manual pages, made from the same description of the command line that parses it.

use clap::CommandFactory as _;
use prony_types::ExitCode;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::error::{CliError, OrCliError as _};
use crate::output::print;

/// Prints shell completions.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "prony", &mut script);
    print(String::from_utf8(script).failed()?)?;
    Ok(ExitCode::Ok)
}

/// Prints the manual page, or writes one for every command.
pub(crate) fn man(args: &ManArgs) -> Result<ExitCode, CliError> {
    match &args.out {
        Some(folder) => {
            std::fs::create_dir_all(folder).usage()?;
            clap_mangen::generate_to(Cli::command(), folder).failed()?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page).failed()?;
            print(String::from_utf8(page).failed()?)?;
        }
    }
    Ok(ExitCode::Ok)
}
