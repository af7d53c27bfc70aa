//! `prony report`: renders a run again from its record.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::ValueEnum as _;
use prony_files::Folder;
use prony_types::os_text::path_to_text;
use prony_types::{ExitCode, RunRecord};
use serde_json::json;

use crate::args::{ReportArgs, ReportFormat};
use crate::command::terminal_width;
use crate::error::{OrCliError as _, OrUnwritten as _};
use crate::output::{print, print_json, print_painted};
use prony_run::{Redactor, pictures};

pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let mut record = prony_store::read_record_at(&args.run)?;
    let folder =
        if args.run.is_dir() { args.run.clone() } else { args.run.parent().unwrap_or(Path::new("")).to_owned() };
    let opened = Folder::open(&folder).with_context(|| folder.display().to_string())?;
    if args.redact {
        Redactor::new(&record.plan, &folder, None, &record.environment).record(&mut record);
    }
    let usual = if args.print.json { ReportFormat::Json } else { ReportFormat::Text };
    let format = args.format.unwrap_or(usual);
    let on_stdout = match &args.out {
        Some(path) => path.as_os_str() == "-",
        None => matches!(format, ReportFormat::Text | ReportFormat::Json),
    };
    ensure!(
        !on_stdout || !args.print.json || format == ReportFormat::Json,
        "--json prints JSON on stdout, where --format {} would go too; name a file with --out",
        format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    );
    let mut files = Vec::new();
    for (name, text) in render(&record, &opened, format, args.out.is_some())? {
        if on_stdout {
            match format {
                ReportFormat::Text => print_painted(&text)?,
                _ => print(text)?,
            }
            continue;
        }
        ensure!(
            args.out.is_some() || !args.redact,
            "--redact would replace {name} of the run itself; say where to with --out"
        );
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
