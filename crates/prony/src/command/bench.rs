//! `prony bench`: options to plan, plan to run, run to table.

mod summary;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Mutex;

use anyhow::anyhow;
use prony_store::RunFolder;
use prony_types::os_text::to_text;
use prony_types::text::printable;
use prony_types::{ArtifactKind, ExitCode, RunRecord};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use self::summary::summary;
use crate::args::BenchArgs;
use crate::command::turn::wait_for_machine;
use crate::command::{tell_trusted, terminal_width, with_sign_of_life};
use crate::error::{CliError, OrCliError as _};
use crate::output::{Cells, Painted, View, print, print_painted};
use crate::version::VERSION;
use prony_plan::options::BenchOptions;
use prony_plan::{Inputs, Request, Resolved};
use prony_run::{
    Ending, Files, Redactor, Run, Site, Written, earlier_run, estimate_s, hash_binary_early, refuse_if_written, resume,
    start,
};
use prony_runtimes::home;
use prony_work::{Interrupt, short_time};

pub(crate) fn bench(args: &BenchArgs) -> Result<ExitCode, CliError> {
    let file = args.plan.as_deref().map(BenchOptions::read).transpose().usage()?.unwrap_or_default();
    let options = args.options.clone().or(file);
    if !args.dry_run {
        hash_binary_early();
    }
    // What is wrong whatever the machine has is said before there is anything to wait for.
    let asked = ask(args, &options).usage()?;
    // From here on a Ctrl-C is an orderly end. Libraries are opened below: not beside another run's timed cell.
    let interrupt = Interrupt::listen().failed()?;
    let mut lock = None;
    if asked.is_timed() && !args.dry_run {
        lock = wait_for_machine(&interrupt, args.wait)?;
        if lock.is_none() {
            return Ok(ExitCode::Interrupted);
        }
    }
    let site = look(&options).usage()?;
    let planned = match asked {
        Asked::Start(inputs) => start(*inputs, site),
        Asked::Resume(earlier) => resume(*earlier, &args.options, site),
    };
    let planned = planned.usage()?;
    let engines = planned.engines_to_build();
    let summary = summary(&planned.resolved.plan, &planned.to_run(), engines);
    if args.dry_run {
        return dry_run(&planned.resolved, &planned.kept(), &summary, args.print.json);
    }
    // Nothing else is timed in a run that only scores, but kernels are while an engine is built.
    if lock.is_none() && engines > 0 {
        lock = wait_for_machine(&interrupt, args.wait)?;
        if lock.is_none() {
            return Ok(ExitCode::Interrupted);
        }
    }
    let folder = planned.open_folder().usage()?;
    let redactor = planned.redactor(folder.path());
    let id = folder.id();
    let files = Files::new(folder, redactor.clone()).usage()?;
    start_log(files.run_log().usage()?, args.verbose, redactor);
    greet(&planned.resolved, &summary, files.path());
    let command = std::env::args_os().map(|word| to_text(&word)).collect();
    let setup = planned.set_up(id, command, VERSION, lock).failed()?;
    let cells = Cells::new(setup.plan.cells.iter().map(|cell| cell.id.as_str()));
    let run = Run::new(setup, files, interrupt, Box::new(cells)).usage()?;
    // An error means that nothing was measured.
    let Ending { record, files, nothing_ran } = run.execute().usage()?;
    if nothing_ran && args.resume.is_none() {
        files.discard().failed()?;
        let reason = record.cells.first().and_then(|cell| cell.reason.clone()).unwrap_or_default();
        return Err(CliError::Usage(anyhow!("{reason}")));
    }
    let Written { page, problem } = files.write_all(&record);
    let shown = show(&files.shown(&record), page.as_deref(), args);
    if let Some(error) = problem {
        // The measurement stands and was shown; what is on disk does not.
        return Err(CliError::Failed(error));
    }
    shown?;
    Ok(record.run.exit_code.unwrap_or(ExitCode::CellFailed))
}

/// What is to be run: something new, or the rest of an earlier run.
enum Asked {
    Start(Box<Inputs>),
    Resume(Box<(RunFolder, RunRecord)>),
}

impl Asked {
    fn is_timed(&self) -> bool {
        match self {
            Asked::Start(inputs) => inputs.is_timed(),
            Asked::Resume(earlier) => earlier.1.plan.timed,
        }
    }
}

/// Opens what was asked for.
fn ask(args: &BenchArgs, options: &BenchOptions) -> anyhow::Result<Asked> {
    if let Some(path) = &args.resume {
        let earlier = earlier_run(path)?;
        refuse_if_written(earlier.0.path())?;
        return Ok(Asked::Resume(Box::new(earlier)));
    }
    let cache = home::folder(options.home.as_deref()).ok().map(|home| home::cache(&home));
    let inputs = Request::new(options.clone())?.open(cache, &View)?;
    Ok(Asked::Start(Box::new(inputs)))
}

/// Looks at this machine, and says which libraries of others were trusted.
fn look(options: &BenchOptions) -> anyhow::Result<Site> {
    let runs = options.out.clone().unwrap_or_else(|| "runs".into());
    // A record is data: no library is opened because one names it.
    let libraries: Vec<_> = options.library.iter().map(|library| (library.name, library.path.clone())).collect();
    let look = || Site::look(&runs, options.home.as_deref(), &libraries);
    let site = with_sign_of_life("looking at this machine", look)?;
    tell_trusted(&site.found);
    Ok(site)
}

/// Everything goes to `run.log`; with `--verbose` it is said aloud too.
fn start_log(file: File, verbose: bool, redactor: Option<Redactor>) {
    let file = LogFile { file, redactor };
    // A log that cannot be written, on a full disk say, is no reason to die.
    let to_file = tracing_subscriber::fmt::layer().with_writer(Mutex::new(file)).log_internal_errors(false);
    let to_file = to_file.with_ansi(false).with_target(false);
    let aloud = tracing_subscriber::fmt::layer().with_writer(|| Painted(io::stderr())).log_internal_errors(false);
    let aloud = aloud.with_target(false).without_time();
    let level = if verbose { LevelFilter::DEBUG } else { LevelFilter::ERROR };
    tracing_subscriber::registry()
        .with(to_file.with_filter(LevelFilter::DEBUG))
        .with(aloud.with_ansi(io::stderr().is_terminal()).with_filter(level))
        .init();
    tracing::info!("prony {VERSION}");
}

/// `run.log`, without what must not be seen. The subscriber writes a line at a time.
struct LogFile {
    file: File,
    redactor: Option<Redactor>,
}

impl io::Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.redactor {
            Some(redactor) => self.file.write_all(redactor.text(&String::from_utf8_lossy(line)).as_bytes())?,
            None => self.file.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The first lines, before anything slow.
fn greet(resolved: &Resolved, summary: &str, folder: &Path) {
    note!("prony {VERSION}: {summary}, in {}", folder.display());
    resolved.plan.notes.iter().for_each(|note| note!("  {note}"));
}

/// The table on stdout and the page if there is one, or the record with `--json`.
fn show(record: &RunRecord, page: Option<&Path>, args: &BenchArgs) -> Result<(), CliError> {
    let text = if args.print.json {
        serde_json::to_string_pretty(record).failed()? + "\n"
    } else {
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let table = prony_report::terminal(record, terminal_width(), colour);
        let details = match args.verbose {
            true => prony_report::rooflines(record, terminal_width(), colour),
            false => String::new(),
        };
        let page = page.map(|page| printable(&format!("report: {}", page.display())).into_owned());
        let page = page.map(|page| format!("\n{page}\n")).unwrap_or_default();
        format!("{table}{details}{page}")
    };
    Ok(print_painted(&text)?)
}

/// What would run, and what would not and why.
fn planned_in_words(resolved: &Resolved, kept: &[&str], summary: &str) -> Result<String, std::fmt::Error> {
    let plan = &resolved.plan;
    let seconds = estimate_s(&plan.budget);
    let about = |seconds: Option<f64>| match seconds {
        Some(seconds) => format!("about {}", short_time(seconds)),
        None => "for as long as the samples take".to_owned(),
    };
    let mut out = String::new();
    writeln!(out, "would measure {summary}")?;
    for note in &plan.notes {
        writeln!(out, "note: {note}")?;
    }
    for cell in &plan.cells {
        match resolved.fates.get(&cell.id) {
            Some(fate) => writeln!(out, "{}  {}: {}", cell.id, fate.status.name(), fate.reason)?,
            None if kept.contains(&cell.id.as_str()) => writeln!(out, "{}  kept from the earlier run", cell.id)?,
            None => {
                let size = cell.imgsz.map(|[h, w]| format!("{h}x{w}")).unwrap_or_else(|| "as declared".into());
                let build = match cell.artifact_kind() {
                    Some(ArtifactKind::Engine) => ", after its engine is built or found",
                    Some(ArtifactKind::Graph) => ", after its graph is made or found",
                    None => "",
                };
                writeln!(out, "{}  would run: input {size}, batch {}, {}{build}", cell.id, cell.batch, about(seconds))?;
            }
        }
    }
    writeln!(out, "nothing was run")?;
    Ok(out)
}

fn dry_run(resolved: &Resolved, kept: &[&str], summary: &str, json: bool) -> Result<ExitCode, CliError> {
    let plan = &resolved.plan;
    let seconds = estimate_s(&plan.budget);
    if json {
        let cells: Vec<_> = plan
            .cells
            .iter()
            .map(|cell| {
                let fate = resolved.fates.get(&cell.id);
                let is_kept = kept.contains(&cell.id.as_str());
                serde_json::json!({
                    "id": cell.id,
                    "would": if is_kept { "keep" } else { fate.map_or("run", |fate| fate.status.name()) },
                    "reason": fate.map(|fate| &fate.reason),
                    "builds": fate.is_none() && !is_kept && cell.artifact_kind().is_some(),
                    "estimated_s": if fate.is_none() && !is_kept { seconds } else { None },
                })
            })
            .collect();
        let all = serde_json::json!({ "plan": plan, "summary": summary, "cells": cells, "notes": plan.notes });
        print(serde_json::to_string_pretty(&all).failed()? + "\n")?;
        return Ok(ExitCode::Ok);
    }
    print(planned_in_words(resolved, kept, summary).failed()?)?;
    Ok(ExitCode::Ok)
}
