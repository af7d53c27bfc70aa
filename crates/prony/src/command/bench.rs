//! `prony bench`: options to plan, plan to run, run to table.

mod summary;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Mutex;

use anyhow::bail;
use prony_store::RunFolder;
use prony_types::os_text::to_text;
use prony_types::text::printable;
use prony_types::{CellStatus, ExitCode, Making, RunRecord};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use self::summary::summary;
use crate::args::BenchArgs;
use crate::command::turn::wait_for_machine;
use crate::command::{tell_trusted, terminal_width, with_sign_of_life};
use crate::output::{Cells, Painted, StdoutError, View, print, print_painted};
use crate::version::VERSION;
use prony_plan::options::BenchOptions;
use prony_plan::refuse_strange_baseline;
use prony_plan::{Machine, Resolved, resolve};
use prony_run::machine;
use prony_run::{
    Ending, Files, Redactor, Run, RunSetup, Written, check_data, earlier_run, engines_to_build, estimate_s,
    refuse_if_written, resumed, resumed_info, run_info, utc_stamp,
};
use prony_runtimes::home;
use prony_runtimes::{absent, choose};
use prony_work::{Interrupt, short_time};

pub(crate) fn bench(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let earlier = args.resume.as_deref().map(earlier_run).transpose()?;
    let file = args.plan.as_deref().map(BenchOptions::read).transpose()?.unwrap_or_default();
    let options = args.options.clone().or(file);
    let runs = options.out.clone().unwrap_or_else(|| "runs".into());
    // A record is data: no library is opened because one names it.
    let explicit: Vec<_> = options.library.iter().map(|library| (library.name, library.path.clone())).collect();
    let cache = home::folder(options.home.as_deref()).ok().map(|home| home::cache(&home));
    // What is wrong whatever the machine has is said before there is anything to wait for.
    match &earlier {
        Some((folder, _)) => refuse_if_written(folder.path())?,
        None => {
            let ideal = resolve(options.clone(), &Machine::ideal(cache.clone(), &View))?;
            ideal.plan.evaluation.map(|spec| check_data(&spec.data)).transpose()?;
        }
    }
    // From here on a Ctrl-C is an orderly end. Libraries are opened below: not beside another run's timed cell.
    let interrupt = Interrupt::listen()?;
    let timed = earlier.as_ref().map_or(!options.only_scored, |(_, record)| record.plan.timed);
    let mut lock = None;
    if timed && !args.dry_run {
        lock = wait_for_machine(&interrupt, args.wait)?;
        if lock.is_none() {
            return Ok(ExitCode::Interrupted);
        }
    }
    let look = || machine(&runs, options.home.as_deref(), &explicit);
    let (environment, found) = with_sign_of_life("looking at this machine", look)?;
    tell_trusted(&found);
    let reference_cache = cache.as_ref().map(|cache| cache.join("reference"));
    let own_home = options.home.clone();
    let artifact_cache = cache.as_deref().map(home::artifacts);
    let resolved = match &earlier {
        Some((_, record)) => resumed(record, &args.options, &environment, &found, cache.as_deref())?,
        None => {
            let here = Machine {
                runtime: &|backend| choose(&found, backend),
                absent: &|backend| absent(&found, backend),
                gpus: found.gpus.len() as u32,
                cpus: environment.cpu.usable,
                cache,
                // What a container leaves, where that is less than the machine has.
                mem_available_bytes: prony_probe::MemoryRoom::read(Path::new("/")).map(|room| room.available),
                watcher: &View,
            };
            resolve(options, &here)?
        }
    };
    let kept = earlier.iter().flat_map(|(_, record)| &record.cells);
    let kept: Vec<&str> =
        kept.filter(|cell| cell.status == CellStatus::Completed).map(|cell| cell.id.as_str()).collect();
    let baseline = resolved.plan.gates.baseline.as_deref().map(prony_store::read_record_at).transpose()?;
    baseline.iter().try_for_each(|run| refuse_strange_baseline(run, &resolved))?;
    let to_run = || {
        let left = |id: &str| !resolved.fates.contains_key(id) && !kept.contains(&id);
        resolved.plan.cells.iter().filter(move |cell| left(&cell.id))
    };
    let engines = engines_to_build(to_run(), artifact_cache.as_deref(), &found.gpus);
    let summary = summary(&resolved.plan, &to_run().collect::<Vec<_>>(), engines);
    if args.dry_run {
        return dry_run(&resolved, &kept, &summary, args.print.json);
    }
    // Nothing else is timed in a run that only scores, but kernels are while an engine is built.
    if lock.is_none() && engines > 0 {
        lock = wait_for_machine(&interrupt, args.wait)?;
        if lock.is_none() {
            return Ok(ExitCode::Interrupted);
        }
    }
    let folder = match &earlier {
        Some((folder, _)) => RunFolder::open(folder.path())?,
        None => RunFolder::create(&resolved.out, &resolved.plan.name, &utc_stamp())?,
    };
    let redactor =
        resolved.redact.then(|| Redactor::new(&resolved.plan, folder.path(), own_home.as_deref(), &environment));
    let id = folder.id();
    let files = Files::new(folder, redactor.clone())?;
    start_log(files.run_log()?, args.verbose, redactor);
    greet(&resolved, &summary, files.path());
    let info = match &earlier {
        Some((_, record)) => resumed_info(&record.run),
        None => run_info(id, std::env::args_os().map(|word| to_text(&word)).collect(), VERSION)?,
    };
    let begin = RunSetup {
        info,
        plan: resolved.plan,
        fates: resolved.fates,
        earlier: earlier.map(|(_, record)| record),
        environment,
        reference_cache,
        artifact_cache,
        baseline,
        lock,
    };
    let cells = Cells::new(begin.plan.cells.iter().map(|cell| cell.id.as_str()));
    let Ending { record, files, nothing_ran } = Run::new(begin, files, interrupt, Box::new(cells))?.execute()?;
    if nothing_ran && args.resume.is_none() {
        files.discard()?;
        let reason = record.cells.first().and_then(|cell| cell.reason.clone()).unwrap_or_default();
        bail!("{reason}");
    }
    let Written { page, problem } = files.write_all(&record);
    let shown = show(&files.shown(&record), page.as_deref(), args);
    if let Some(error) = problem {
        // The measurement stands and was shown; what is on disk does not.
        say!("error: {error:#}");
        shown?;
        return Ok(ExitCode::CellFailed);
    }
    shown?;
    Ok(record.run.exit_code.unwrap_or(ExitCode::CellFailed))
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
fn show(record: &RunRecord, page: Option<&Path>, args: &BenchArgs) -> Result<(), StdoutError> {
    let text = if args.print.json {
        serde_json::to_string_pretty(record).unwrap_or_default() + "\n"
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
    print_painted(&text)
}

fn dry_run(resolved: &Resolved, kept: &[&str], summary: &str, json: bool) -> anyhow::Result<ExitCode> {
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
                    "builds": fate.is_none() && !is_kept && cell.making().is_some(),
                    "estimated_s": if fate.is_none() && !is_kept { seconds } else { None },
                })
            })
            .collect();
        let all = serde_json::json!({ "plan": plan, "summary": summary, "cells": cells, "notes": plan.notes });
        print(serde_json::to_string_pretty(&all)? + "\n")?;
        return Ok(ExitCode::Ok);
    }
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
                let build = match cell.making() {
                    Some(Making::Engine) => ", after its engine is built or found",
                    Some(Making::Graph) => ", after its graph is made or found",
                    None => "",
                };
                writeln!(out, "{}  would run: input {size}, batch {}, {}{build}", cell.id, cell.batch, about(seconds))?;
            }
        }
    }
    writeln!(out, "nothing was run")?;
    print(out)?;
    Ok(ExitCode::Ok)
}
