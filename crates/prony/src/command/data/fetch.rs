//! `prony data fetch`: files from a server, one after the other.

use std::io;

use anyhow::bail;
use prony_types::ExitCode;
use prony_types::os_text::path_to_text;
use serde_json::{Value, json};

use crate::args::FetchArgs;
use crate::error::{CliError, OrCliError as _, is_wrong_place};
use crate::output::{View, print, print_json};
use crate::version::VERSION;
use prony_fetch::{Download, Fetched, Url, fetch as fetch_one};
use prony_work::Interrupt;
use prony_work::megabytes;

pub(super) fn fetch(args: &FetchArgs) -> Result<ExitCode, CliError> {
    let urls = checked(args).usage()?;
    let agent = format!("prony/{VERSION}");
    let interrupt = Interrupt::listen().failed()?;
    let (mut failed, mut last) = (0, None);
    let mut files = Vec::new();
    let finish = |files: &[Value]| match args.print.json {
        true => print_json(&json!({ "schema": "prony.fetch/1", "files": files })),
        false => Ok(()),
    };
    for (index, url) in urls.iter().enumerate() {
        let download = Download {
            url,
            folder: &args.out,
            sha256: args.sha256.get(index),
            size: args.size.get(index).copied(),
            watcher: &View,
            agent: &agent,
            interrupt: &interrupt,
        };
        let fetched = fetch_one(&download);
        files.push(as_json(url, &fetched));
        match fetched {
            Ok(Fetched::Stopped { part, bytes }) => {
                finish(&files)?;
                let (size, part) = (megabytes(bytes), part.display());
                return Err(CliError::interrupted(match bytes {
                    0 => "interrupted; nothing was kept".to_owned(),
                    _ => format!("interrupted; {size} of {part} are kept, the same command goes on"),
                }));
            }
            Ok(done) if !args.print.json => print(as_text(&done))?,
            Ok(_) => {}
            // The others may still be had.
            Err(error) if urls.len() > 1 => {
                say!("error: {error:#}");
                failed += 1;
            }
            Err(error) => last = Some(error),
        }
    }
    finish(&files)?;
    match (last, failed) {
        (Some(error), _) if is_disk_failure(&error) => Err(error).failed(),
        (Some(error), _) => Err(error).usage(),
        (None, 0) => Ok(ExitCode::Ok),
        (None, failed) if failed == urls.len() => Ok(ExitCode::Usage),
        (None, _) => Ok(ExitCode::CellFailed),
    }
}

/// The URLs, and as many hashes and sizes as there are of them.
fn checked(args: &FetchArgs) -> anyhow::Result<Vec<Url>> {
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
    Ok(urls)
}

/// Whether the disk failed, and not the server or the place that was named.
fn is_disk_failure(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|cause| !is_wrong_place(cause))
}

fn as_text(done: &Fetched) -> String {
    match done {
        Fetched::Whole { path, bytes, sha256 } => {
            format!("{}: {}, sha256 {sha256}\n", path.display(), megabytes(*bytes))
        }
        Fetched::There { path } => format!("{}: was there already\n", path.display()),
        Fetched::Stopped { .. } => String::new(),
    }
}

fn as_json(url: &Url, fetched: &anyhow::Result<Fetched>) -> Value {
    let mut file = match fetched {
        Ok(Fetched::Whole { path, bytes, sha256 }) => {
            json!({ "status": "fetched", "path": path_to_text(path), "bytes": bytes, "sha256": sha256 })
        }
        Ok(Fetched::There { path }) => json!({ "status": "there", "path": path_to_text(path) }),
        Ok(Fetched::Stopped { part, bytes }) => {
            json!({ "status": "interrupted", "part": path_to_text(part), "bytes": bytes })
        }
        Err(error) => json!({ "status": "failed", "reason": format!("{error:#}") }),
    };
    file["url"] = json!(url.to_string());
    file
}
