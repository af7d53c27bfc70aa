//! Readers of what a run folder, a data set, a plan or a wheel holds: files that may come from anybody.

use std::path::Path;

use prony_forge::{EngineSidecar, GraphSidecar};
use prony_plan::options::BenchOptions;
use prony_run::{Logs, RecordFold};
use prony_runtimes::{Package, Wheel};
use prony_source::coco::{read_instances, read_results};
use prony_source::dataset::class_names;
use prony_store::{Secrets, parse_samples, read_lines, read_record_at};
use prony_types::text::is_unprintable;
use prony_types::{Happened, Phase, RunRecord, Sample};

use super::case_file;
use crate::traces::Traces;

/// Columns of the terminal that a table is made for.
const WIDTH: usize = 80;

/// What every cell of a replayed run has.
const SAMPLE: Sample = Sample {
    start_ns: 1_000,
    phase: Phase::Steady,
    round: 1,
    frame: 0,
    detections: 3,
    parts_ns: [Some(10), None, Some(500), None, Some(20)],
    total_ns: 600,
};

/// The case as a file, for readers that take one.
fn as_file(input: &[u8], ending: &str) -> Option<std::path::PathBuf> {
    let path = case_file(ending)?;
    std::fs::write(&path, input).ok()?;
    Some(path)
}

/// `report.json`, and everything that is rendered from it.
pub(super) fn record(input: &[u8], traces: &mut Traces) {
    let Some(path) = as_file(input, "json") else { return };
    match read_record_at(&path) {
        Ok(record) => rendered(&record, traces),
        Err(error) => traces.at("record", without(&error.to_string(), &path)),
    }
}

fn rendered(record: &RunRecord, traces: &mut Traces) {
    traces.count("cells", record.cells.len());
    traces.count("planned", record.plan.cells.len());
    for cell in &record.cells {
        traces.at("cell", format!("{} {:?} {}", cell.status.name(), cell.verdict, cell.latency_ms.len()));
    }
    let terminal = prony_report::terminal(record, WIDTH, false);
    let markdown = prony_report::markdown(record);
    let table = prony_report::csv_of_all(record);
    let page = prony_report::html(record, &[]);
    assert!(page.is_ok(), "the page: {}", page.as_ref().err().map(ToString::to_string).unwrap_or_default());
    for (name, text) in
        [("terminal", &terminal), ("markdown", &markdown), ("csv", &table), ("html", &page.unwrap_or_default())]
    {
        traces.count(name, text.len() / 256);
        let hidden = text.chars().find(|&c| !matches!(c, '\n' | '\t') && is_unprintable(c));
        assert!(hidden.is_none(), "{name} has {hidden:?} in it");
    }
    let formula = |line: &str| line.starts_with(['=', '+', '-', '@']);
    assert!(!table.lines().any(formula), "a row of the table begins like a formula");
    // What is written again is read again, and is the same.
    let again = serde_json::to_vec(record).unwrap_or_default();
    assert!(serde_json::from_slice::<RunRecord>(&again).is_ok(), "what was written cannot be read");
    let mut redacted = record.clone();
    let mut secrets = Secrets::default();
    prony_store::paths_of(&record.plan).iter().for_each(|path| secrets.add_path(path));
    prony_store::redact(&mut redacted, &secrets);
}

/// `events.jsonl`, and the record that is made from it.
pub(super) fn events(input: &[u8], traces: &mut Traces) {
    let Some(path) = as_file(input, "jsonl") else { return };
    match read_lines::<Happened>(&path) {
        Ok(events) => {
            traces.count("events", events.len());
            for event in &events {
                match event {
                    Happened::Run(event) => traces.at_number("did", std::mem::discriminant(&event.kind)),
                    Happened::Worker(event) => traces.at_number("said", std::mem::discriminant(&event.kind)),
                }
            }
            replayed(&events, traces);
        }
        Err(error) => traces.at("events", without(&error.to_string(), &path)),
    }
}

fn replayed(events: &[Happened], traces: &mut Traces) {
    let Some((first, others)) = events.split_first() else { return };
    let Some(mut fold) = RecordFold::begun(first, Logs::empty(&std::env::temp_dir())) else { return };
    for cell in 0..fold.cells().len() {
        fold.take_samples(cell, &[SAMPLE; 3]);
    }
    others.iter().for_each(|event| fold.take(event));
    fold.refresh();
    rendered(fold.record(), traces);
}

/// `samples.csv`.
pub(super) fn samples(input: &[u8], traces: &mut Traces) {
    match parse_samples(input) {
        Ok(rows) => {
            traces.count("rows", rows.len());
            for row in &rows {
                traces.at_number("row", (row.sample.phase.name(), row.attempt.is_some(), row.cell.len().min(16)));
            }
        }
        Err((_, reason)) => traces.at("samples", reason),
    }
}

/// A plan file.
pub(super) fn plan(input: &[u8], traces: &mut Traces) {
    let Ok(text) = std::str::from_utf8(input) else { return traces.at("plan", "not text") };
    match BenchOptions::parse(text, Path::new("folder/prony.toml")) {
        Ok(options) => {
            traces.count("models", options.models.len());
            traces.at_number("options", std::mem::discriminant(&options.tier));
            let given =
                [options.batch.is_some(), options.duration.is_some(), options.imgsz.is_some(), options.conf.is_some()];
            traces.at_number("given", (given, options.gate.len(), options.library.len(), options.engine.given_flag()));
            // A flag beats the file.
            let merged = BenchOptions::default().or(options);
            traces.count("merged", merged.models.len());
        }
        Err(error) => traces.at("plan", beginning(&format!("{error:#}"))),
    }
}

/// `data.yaml`.
pub(super) fn data_yaml(input: &[u8], traces: &mut Traces) {
    let Ok(text) = std::str::from_utf8(input) else { return traces.at("yaml", "not text") };
    match class_names(text) {
        Ok(names) => {
            traces.at("yaml", "read");
            traces.at_number("how many", names.len().min(16));
            traces.count("names", names.len());
            names.iter().take(8).for_each(|name| traces.count("name", name.len()));
        }
        Err(error) => traces.at("yaml", beginning(&error.to_string())),
    }
}

/// `instances*.json` and result files of COCO.
pub(super) fn coco(input: &[u8], traces: &mut Traces) {
    let Some(path) = as_file(input, "json") else { return };
    match read_instances(&path) {
        Ok(found) => {
            traces.count("images", found.images.len());
            traces.count("annotations", found.annotations.len());
            traces.count("categories", found.categories.len());
            found.problems.first.iter().for_each(|problem| traces.at("problem", problem));
        }
        Err(error) => traces.at("instances", without(&error.to_string(), &path)),
    }
    match read_results(&path) {
        Ok(found) => {
            traces.at("results", "read");
            traces.at_number("how many rows", found.rows.len().min(16));
            traces.count("rows", found.rows.len());
            found.problems.first.iter().for_each(|problem| traces.at("row problem", problem));
        }
        Err(error) => traces.at("results", without(&error.to_string(), &path)),
    }
}

/// What stands beside engines and graphs, in the cache and out of it.
pub(super) fn sidecar(input: &[u8], traces: &mut Traces) {
    match serde_json::from_slice::<EngineSidecar>(input) {
        Ok(sidecar) => {
            traces.at_number("engine", (sidecar.recipe.key().map_or(0, |key| key.len()), sidecar.notes.len().min(4)));
        }
        Err(error) => traces.at("engine", beginning(&error.to_string())),
    }
    match serde_json::from_slice::<GraphSidecar>(input) {
        Ok(sidecar) => traces.at_number("graph", (sidecar.recipe.imgsz.is_some(), sidecar.notes.len().min(4))),
        Err(error) => traces.at("graph", beginning(&error.to_string())),
    }
    let Some(path) = as_file(input, "engine.json") else { return };
    match prony_model::EngineProvenance::beside(&path.with_extension("")) {
        Ok(found) => {
            traces.count("facts", found.as_ref().map_or(0, |sidecar| sidecar.facts.len()));
            traces.at_number("beside", found.map(|sidecar| sidecar.dla_core.is_some()));
        }
        Err(error) => traces.at("beside", without(&error.to_string(), &path)),
    }
}

/// A wheel, unpacked as an install does.
pub(super) fn wheel(input: &[u8], traces: &mut Traces) {
    let Some(path) = as_file(input, "whl") else { return };
    let mut wheel = match Wheel::open(&path) {
        Ok(wheel) => wheel,
        Err(error) => return traces.at("wheel", without(&format!("{error:#}"), &path)),
    };
    traces.count("tags", wheel.tags.len());
    let Some(folder) = path.parent().map(|folder| folder.join("unpacked")) else { return };
    for runtime in Package::ALL {
        let unpacked = wheel.unpack(runtime, &folder, &mut |_| Ok(()));
        match unpacked {
            Ok(files) => {
                traces.count(runtime.as_str(), files.len());
                for file in &files {
                    assert!(
                        folder.join(&file.path).is_file() && !file.path.contains(".."),
                        "{} is not inside",
                        file.path
                    );
                }
            }
            Err(error) => traces.at(runtime.as_str(), without(&format!("{error:#}"), &path)),
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
}

/// The first words of an error: further on it may quote the file.
fn beginning(error: &str) -> String {
    let words = error.split('`').next().unwrap_or_default().split_whitespace().take(8);
    words.filter(|word| word.chars().all(|c| c.is_ascii_alphabetic())).collect::<Vec<_>>().join(" ")
}

/// An error without the name of the case, which is the same every time and would hide the words behind it.
fn without(error: &str, path: &Path) -> String {
    error.replace(&path.display().to_string(), "file")
}
