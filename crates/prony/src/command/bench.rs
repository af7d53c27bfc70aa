//! `prony bench`: options to plan, plan to run, run to table.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context as _, bail, ensure};
use prony_store::RunFolder;
use prony_types::{CellStatus, ExitCode, RunRecord};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::BenchArgs;
use crate::command::terminal_width;
use crate::options::BenchOptions;
use crate::resolve::{Resolved, resolve};
use crate::run::{Beginning, Files, Interrupt, Loudness, Redactor, Run, estimate_s, run_info, short_time, utc_stamp};
use crate::version::VERSION;

pub(crate) fn bench(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let earlier = args.resume.as_deref().map(earlier_run).transpose()?;
    let resolved = match &earlier {
        Some((_, record)) => resumed(record, &args.options)?,
        None => {
            let file = args.plan.as_deref().map(BenchOptions::read).transpose()?.unwrap_or_default();
            resolve(args.options.clone().or(file))?
        }
    };
    if args.dry_run {
        return dry_run(&resolved, args.json);
    }
    let folder = match &earlier {
        Some((folder, _)) => RunFolder::open(folder.path())?,
        None => RunFolder::create(&resolved.out, &resolved.plan.name, &utc_stamp())?,
    };
    start_log(&folder.file("run.log"), args.verbose)?;
    let loudness = if args.quiet { Loudness::Quiet } else { Loudness::Normal };
    let kept = earlier.iter().flat_map(|(_, record)| &record.cells);
    let kept = kept.filter(|cell| cell.status == CellStatus::Completed).count();
    greet(&resolved, kept, folder.path(), loudness);
    let redactor = resolved.redact.then(|| Redactor::new(&resolved.plan, folder.path()));
    let info = match &earlier {
        Some((_, record)) => record.run.clone(),
        None => run_info(folder.id(), std::env::args().collect())?,
    };
    let files = Files::new(folder, redactor)?;
    let begin = Beginning {
        info,
        plan: resolved.plan,
        fates: resolved.fates,
        earlier: earlier.map(|(_, record)| record),
        loudness,
    };
    let (record, files) = Run::new(begin, files, interrupt)?.execute()?;
    let written = files.write_reports(&record);
    show(&files.shown(&record), files.path(), args)?;
    if let Err(error) = written {
        // The measurement stands; what is on disk does not.
        eprintln!("error: {error:#}");
        return Ok(ExitCode::CellFailed);
    }
    Ok(record.run.exit_code.unwrap_or(ExitCode::CellFailed))
}

/// Everything goes to `run.log`; with `--verbose` it is said aloud too.
fn start_log(path: &Path, verbose: bool) -> anyhow::Result<()> {
    let file = File::options().create(true).append(true).open(path).with_context(|| path.display().to_string())?;
    let to_file = tracing_subscriber::fmt::layer().with_writer(Mutex::new(file)).with_ansi(false).with_target(false);
    let aloud = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false).without_time();
    let level = if verbose { LevelFilter::DEBUG } else { LevelFilter::ERROR };
    tracing_subscriber::registry()
        .with(to_file.with_filter(LevelFilter::DEBUG))
        .with(aloud.with_ansi(io::stderr().is_terminal()).with_filter(level))
        .init();
    tracing::info!("prony {VERSION}");
    Ok(())
}

/// The first line, before anything slow.
fn greet(resolved: &Resolved, kept: usize, folder: &Path, loudness: Loudness) {
    if loudness == Loudness::Quiet {
        return;
    }
    let count = resolved.plan.cells.len();
    let cells = if count == 1 { "cell" } else { "cells" };
    let time = estimate_s(&resolved.plan.budget) * count.saturating_sub(resolved.fates.len() + kept) as f64;
    eprintln!("prony {VERSION}: {count} {cells}, about {}, in {}", short_time(time), folder.display());
}

/// The table on stdout, or the record with `--json`.
fn show(record: &RunRecord, folder: &Path, args: &BenchArgs) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, record)?;
        writeln!(out)?;
        return Ok(());
    }
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    write!(out, "{}", prony_report::terminal(record, terminal_width(), colour))?;
    writeln!(out, "\nreport: {}", folder.join("report.html").display())?;
    Ok(())
}

fn dry_run(resolved: &Resolved, json: bool) -> anyhow::Result<ExitCode> {
    let plan = &resolved.plan;
    let seconds = estimate_s(&plan.budget);
    let mut out = io::stdout().lock();
    if json {
        let cells: Vec<_> = plan
            .cells
            .iter()
            .map(|cell| {
                let fate = resolved.fates.get(&cell.id);
                serde_json::json!({
                    "id": cell.id,
                    "would": fate.map_or("run", |fate| fate.status.name()),
                    "reason": fate.map(|fate| &fate.reason),
                    "estimated_s": fate.is_none().then_some(seconds),
                })
            })
            .collect();
        serde_json::to_writer_pretty(&mut out, &serde_json::json!({ "plan": plan, "cells": cells }))?;
        writeln!(out)?;
        return Ok(ExitCode::Ok);
    }
    let mut total = 0.0;
    for cell in &plan.cells {
        match resolved.fates.get(&cell.id) {
            Some(fate) => writeln!(out, "{}  {}: {}", cell.id, fate.status.name(), fate.reason)?,
            None => {
                total += seconds;
                let size = cell.imgsz.map(|[h, w]| format!("{h}x{w}")).unwrap_or_else(|| "as declared".into());
                writeln!(
                    out,
                    "{}  would run: input {size}, batch {}, about {}",
                    cell.id,
                    cell.batch,
                    short_time(seconds)
                )?;
            }
        }
    }
    writeln!(out, "{} in all; nothing was run", short_time(total))?;
    Ok(ExitCode::Ok)
}

fn earlier_run(path: &Path) -> anyhow::Result<(RunFolder, RunRecord)> {
    let folder = RunFolder::open(path)?;
    let record = folder.read_record()?;
    Ok((folder, record))
}

/// The plan of an earlier run, if this is still the same binary on the same machine with the same models.
fn resumed(record: &RunRecord, options: &BenchOptions) -> anyhow::Result<Resolved> {
    let unchanged = BenchOptions::default();
    ensure!(
        format!("{options:?}") == format!("{unchanged:?}"),
        "--resume takes its options from the run; leave the others out"
    );
    ensure!(!record.run.redacted, "a redacted run cannot be resumed: the paths of its models are gone");
    let now = run_info(record.run.id.clone(), Vec::new())?;
    let refuse = |what: &str, then: &str, now: &str| -> anyhow::Result<()> {
        ensure!(then == now, "cannot resume {}: {what} changed from {then} to {now}", record.run.id);
        Ok(())
    };
    refuse("the binary", &record.run.binary_sha256, &now.binary_sha256)?;
    let here = prony_probe::environment();
    let describe = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    refuse("the processor", &describe(&record.environment.cpu.name), &describe(&here.cpu.name))?;
    refuse("the architecture", &record.environment.arch, &here.arch)?;
    refuse("the kernel", &describe(&record.environment.kernel), &describe(&here.kernel))?;
    let count = |n: u32| n.to_string();
    refuse("the number of CPUs", &count(record.environment.cpu.usable), &count(here.cpu.usable))?;
    for cell in record.plan.cells.iter().filter(|cell| !cell.model.sha256.is_empty()) {
        let file = prony_model::ModelFile::open(&cell.model.source)?;
        refuse(&format!("model {}", cell.model.name), &cell.model.sha256, &file.sha256)?;
    }
    let missing = record.cells.iter().any(|cell| cell.status != CellStatus::Completed);
    if !missing {
        bail!("nothing to resume: every cell of {} is completed", record.run.id);
    }
    let fates = std::collections::BTreeMap::new();
    Ok(Resolved { plan: record.plan.clone(), fates, out: ".".into(), redact: false })
}
