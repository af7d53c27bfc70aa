//! `prony data fetch`: files from a server, one after the other.

use anyhow::bail;
use prony_types::ExitCode;

use crate::args::FetchArgs;
use crate::fetch::{Errand, Fetched, Url, fetch as fetch_one};
use crate::output::{StdoutError, print};
use crate::run::Interrupt;
use crate::runtime::{View, megabytes};

pub(super) fn fetch(args: &FetchArgs) -> anyhow::Result<ExitCode> {
    let urls: Vec<Url> = args.urls.iter().map(|url| url.parse()).collect::<anyhow::Result<_>>()?;
    for (flag, count) in [("--sha256", args.sha256.len()), ("--size", args.size.len())] {
        if count != 0 && count != urls.len() {
            bail!("{flag} is given {count} times for {} URLs; give one for each, in their order", urls.len());
        }
    }
    let mut names = Vec::new();
    for url in &urls {
        let name = url.file_name()?;
        if names.contains(&name) {
            bail!("{url}: a second file called {name}; fetch it into another folder");
        }
        names.push(name);
    }
    let interrupt = Interrupt::listen()?;
    let (mut failed, mut last) = (0, None);
    for (index, url) in urls.iter().enumerate() {
        let errand = Errand {
            url,
            folder: &args.out,
            sha256: args.sha256.get(index),
            size: args.size.get(index).copied(),
            view: View::new(args.quiet),
            interrupt: &interrupt,
        };
        match fetch_one(&errand) {
            Ok(Fetched::Stopped { part, bytes }) => {
                say!("interrupted; {} of {} are kept, the same command goes on", megabytes(bytes), part.display());
                return Ok(ExitCode::Interrupted);
            }
            Ok(done) => show(args.quiet, &done)?,
            // The others may still be had.
            Err(error) if urls.len() > 1 => {
                say!("error: {error:#}");
                failed += 1;
            }
            Err(error) => last = Some(error),
        }
    }
    match (last, failed) {
        (Some(error), _) => Err(error),
        (None, 0) => Ok(ExitCode::Ok),
        (None, failed) if failed == urls.len() => Ok(ExitCode::Usage),
        (None, _) => Ok(ExitCode::CellFailed),
    }
}

fn show(quiet: bool, done: &Fetched) -> Result<(), StdoutError> {
    match done {
        _ if quiet => Ok(()),
        Fetched::Whole { path, bytes, sha256 } => {
            print(format!("{}: {}, sha256 {sha256}\n", path.display(), megabytes(*bytes)))
        }
        Fetched::There { path } => print(format!("{}: was there already\n", path.display())),
        Fetched::Stopped { .. } => Ok(()),
    }
}
