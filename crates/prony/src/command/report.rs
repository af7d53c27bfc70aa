//! `prony report`: renders a run again from its record.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use clap::ValueEnum as _;
use prony_files::{Folder, Kind};
use prony_types::os_text::path_to_text;
use prony_types::{ExitCode, RunRecord};
use serde_json::json;

use crate::args::{ReportArgs, ReportFormat};
use crate::command::{terminal_width, with_sign_of_life};
use crate::error::{CliError, OrCliError as _, OrUnwritten as _};
use crate::output::{print, print_json, print_painted};
use prony_run::{Redactor, pictures};

/// Name of the record in a run folder.
const RECORD: &str = "report.json";
/// Name of a record that was replaced.
const KEPT: &str = "report.json.before";

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, CliError> {
    let folder =
        if args.run.is_file() { args.run.parent().unwrap_or(Path::new("")).to_owned() } else { args.run.clone() };
    let mut record = match args.replay {
        true => with_sign_of_life("replaying the run", || prony_run::replay(&folder)).usage()?,
        false => prony_store::read_record_at(&args.run).usage()?,
    };
    let opened = Folder::open(&folder).with_context(|| folder.display().to_string()).usage()?;
    if args.replay && args.format.is_none() && args.out.is_none() && !args.print.json {
        refuse_redacting(args, RECORD).usage()?;
        return put_back(&record, &folder, &opened);
    }
    if args.redact {
        Redactor::new(&record.plan, &folder, None, &record.environment).record(&mut record);
    }
    let usual = if args.print.json { ReportFormat::Json } else { ReportFormat::Text };
    let format = args.format.unwrap_or(usual);
    let on_stdout = match &args.out {
        Some(path) => path.as_os_str() == "-",
        None => matches!(format, ReportFormat::Text | ReportFormat::Json),
    };
    if on_stdout && args.print.json && format != ReportFormat::Json {
        let name = format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let both = anyhow!("--json prints JSON on stdout, where --format {name} would go too; name a file with --out");
        return Err(CliError::Usage(both));
    }
    let mut files = Vec::new();
    for (name, text) in render(&record, &opened, format, args.out.is_some()).failed()? {
        if on_stdout {
            match format {
                ReportFormat::Text => print_painted(&text)?,
                _ => print(text)?,
            }
            continue;
        }
        refuse_redacting(args, &name).usage()?;
        match &args.out {
            Some(path) => {
                prony_store::write_atomic(path, text.as_bytes()).written()?;
                files.push(path.clone());
            }
            // The run folder may come from anybody: a link there is replaced, not followed.
            None => {
                let path = folder.join(&name);
                let replaced = opened.replace(&name, text.as_bytes());
                replaced.with_context(|| format!("cannot write {}", path.display())).failed()?;
                files.push(path);
            }
        }
    }
    if args.print.json && !on_stdout {
        print_json(&json!({ "files": files.iter().map(|path| path_to_text(path)).collect::<Vec<_>>() }))?;
    } else if args.out.is_none() {
        files.iter().try_for_each(|path| print(format!("{}\n", path.display())))?;
    }
    Ok(ExitCode::Ok)
}

/// Without a file of its own, a text without names would take the place of what the run has.
fn refuse_redacting(args: &ReportArgs, name: &str) -> anyhow::Result<()> {
    ensure!(
        args.out.is_some() || !args.redact,
        "--redact would replace {name} of the run itself; say where to with --out"
    );
    Ok(())
}

/// Puts a record that was made anew into its run. One that says something else is kept beside it.
fn put_back(record: &RunRecord, folder: &Path, opened: &Folder) -> Result<ExitCode, CliError> {
    let path = folder.join(RECORD);
    if prony_store::read_record_at(folder).is_ok_and(|there| there == *record) {
        print(format!("{} is what the logs say\n", path.display()))?;
        return Ok(ExitCode::Ok);
    }
    let write = |name: &str, bytes: &[u8]| {
        opened.replace(name, bytes).with_context(|| format!("cannot write {}", folder.join(name).display())).failed()
    };
    let before = opened.exists(RECORD).then(|| opened.read(RECORD, Kind::Record)).transpose();
    let kept = match before.with_context(|| path.display().to_string()).usage()? {
        Some(bytes) => {
            write(KEPT, &bytes)?;
            format!("; what was there is in {KEPT}")
        }
        None => String::new(),
    };
    write(RECORD, (serde_json::to_string_pretty(record).failed()? + "\n").as_bytes())?;
    print(format!("{} is made anew{kept}\n", path.display()))?;
    Ok(ExitCode::Ok)
}

/// File name and content; several for one table a size.
fn render(
    record: &RunRecord,
    folder: &Folder,
    format: ReportFormat,
    one_file: bool,
) -> anyhow::Result<Vec<(String, String)>> {
    let one = |name: &str, text: String| vec![(name.to_owned(), text)];
    Ok(match format {
        ReportFormat::Html => one("report.html", prony_report::html(record, &pictures(folder, record))?),
        ReportFormat::Md => one("report.md", prony_report::markdown(record)),
        ReportFormat::Json => one("report.json", serde_json::to_string_pretty(record)? + "\n"),
        ReportFormat::Text => {
            let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            one("report.txt", prony_report::terminal(record, terminal_width(), colour))
        }
        // One file has all sizes: each row says its own.
        ReportFormat::Csv if one_file => one("latency_comparative.csv", prony_report::csv_of_all(record)),
        ReportFormat::Csv => {
            let table = |imgsz: &String| {
                let name = PathBuf::from(format!("latency_comparative_{imgsz}.csv"));
                (name.display().to_string(), prony_report::csv(record, imgsz))
            };
            prony_report::imgsz_groups(record).iter().map(table).collect()
        }
    })
}
