//! `prony report`: renders a run again from its record.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::ensure;
use prony_types::{ExitCode, RunRecord};

use crate::args::{ReportArgs, ReportFormat};
use crate::command::terminal_width;
use crate::output::print;
use crate::run::{Redactor, pictures};

pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let mut record = prony_store::read_record_at(&args.run)?;
    let folder =
        if args.run.is_dir() { args.run.clone() } else { args.run.parent().unwrap_or(Path::new("")).to_owned() };
    if args.redact {
        Redactor::new(&record.plan, &folder, None).record(&mut record);
    }
    for (name, bytes) in render(&record, &folder, args.format)? {
        let to_stdout = matches!(args.format, ReportFormat::Text | ReportFormat::Json);
        match &args.out {
            Some(path) if path.as_os_str() == "-" => print(&bytes)?,
            Some(path) => prony_store::write_atomic(path, &bytes)?,
            None if to_stdout => print(&bytes)?,
            None => {
                ensure!(!args.redact, "--redact would replace {name} of the run itself; say where to with --out");
                let path = folder.join(&name);
                prony_store::write_atomic(&path, &bytes)?;
                print(format!("{}\n", path.display()))?;
            }
        }
    }
    Ok(ExitCode::Ok)
}

/// File name and content; several for one table a size.
fn render(record: &RunRecord, folder: &Path, format: ReportFormat) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let one = |name: &str, text: String| vec![(name.to_owned(), text.into_bytes())];
    Ok(match format {
        ReportFormat::Html => one("report.html", prony_report::html(record, &pictures(folder, record))?),
        ReportFormat::Md => one("report.md", prony_report::markdown(record)),
        ReportFormat::Json => one("report.json", serde_json::to_string_pretty(record)? + "\n"),
        ReportFormat::Text => {
            let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            one("report.txt", prony_report::terminal(record, terminal_width(), colour))
        }
        ReportFormat::Csv => {
            let table = |imgsz: &String| {
                let name = PathBuf::from(format!("latency_comparative_{imgsz}.csv"));
                (name.display().to_string(), prony_report::csv(record, imgsz).into_bytes())
            };
            prony_report::imgsz_groups(record).iter().map(table).collect()
        }
    })
}
