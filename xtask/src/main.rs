//! Chores of the repository that cargo alone cannot do. `cargo xtask --help` lists them.
#![expect(clippy::disallowed_macros, reason = "a tool for developers, whose output nobody cuts short")]

mod args;
mod dist;
mod elf;
mod glibc;
mod gpu;
mod hardening;
mod target;
mod tools;

use std::process::ExitCode;

use crate::args::Chore;

fn main() -> ExitCode {
    let chore = match args::parse(std::env::args().skip(1)) {
        Ok(chore) => chore,
        Err(error) => {
            eprintln!("error: {error}; see `cargo xtask --help`");
            return ExitCode::from(2);
        }
    };
    let outcome = match chore {
        Chore::Help => {
            print!("{}", args::HELP);
            Ok(())
        }
        Chore::Dist(spec) => dist::run(&spec),
        Chore::Gpu(models) => gpu::run(&models),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
