//! `prony cache`: the engines that were built and the graphs that were made, whether they are whole, and what may go.

use prony_forge::{Cache, Described, Entry, GraphMaking, Pruned, Rule};
use prony_types::os_text::path_to_text;
use prony_types::{ArtifactKind, ExitCode};
use serde_json::json;

use crate::args::{CacheArgs, CacheVerb, PruneArgs, PruneRule};
use crate::command::with_sign_of_life;
use crate::error::{CliError, OrCliError as _};
use crate::output::{print, print_json};
use prony_runtimes::home;
use prony_work::megabytes;

pub(crate) fn cache(args: &CacheArgs) -> Result<ExitCode, CliError> {
    let cache = Cache::at(home::artifacts(&home::cache(&home::folder(args.home.as_deref()).usage()?)));
    match &args.verb {
        CacheVerb::List(print) => list(&cache, print.json),
        CacheVerb::Prune(rule) => prune(&cache, rule),
        CacheVerb::Verify(print) => verify(&cache, print.json),
    }
}

fn list(cache: &Cache, json: bool) -> Result<ExitCode, CliError> {
    let entries = cache.list();
    if json {
        print_json(
            &json!({ "schema": "prony.cache/2", "folder": path_to_text(cache.folder()), "artifacts": entries }),
        )?;
        return Ok(ExitCode::Ok);
    }
    let mut text = String::new();
    for entry in &entries {
        text += &line(entry);
    }
    text += &format!("{}\n", summary(cache, &entries));
    print(text)?;
    Ok(ExitCode::Ok)
}

fn verify(cache: &Cache, json: bool) -> Result<ExitCode, CliError> {
    let entries = with_sign_of_life("hashing artifacts", || cache.verify(&mut |_| {}));
    let damaged = entries.iter().filter(|entry| entry.problem.is_some()).count();
    let code = if damaged == 0 { ExitCode::Ok } else { ExitCode::CellFailed };
    if json {
        print_json(
            &json!({ "schema": "prony.cache/2", "folder": path_to_text(cache.folder()), "artifacts": entries, "damaged": damaged }),
        )?;
        return Ok(code);
    }
    let mut text: String = entries.iter().map(line).collect();
    text += &match damaged {
        0 => format!("{}, all whole\n", summary(cache, &entries)),
        n => format!("{}, {n} damaged; they are rebuilt when they are asked for\n", summary(cache, &entries)),
    };
    print(text)?;
    Ok(code)
}

fn prune(cache: &Cache, args: &PruneArgs) -> Result<ExitCode, CliError> {
    let PruneRule { older_than, to, all } = &args.what;
    let rule = Rule { unused_for: older_than.map(|age| age.0), fit_bytes: to.map(|size| size.0), all: *all };
    let pruned = cache.prune(rule);
    if args.print.json {
        print_json(&json!({ "schema": "prony.cache/2", "folder": path_to_text(cache.folder()), "pruned": pruned }))?;
        return Ok(ExitCode::Ok);
    }
    let Pruned { removed, freed_bytes, in_use } = &pruned;
    let mut text: String = removed.iter().map(line).collect();
    text += &format!("{} removed, {} freed", counted(removed), megabytes(*freed_bytes));
    if !in_use.is_empty() {
        text += &format!("; {} in use and kept", in_use.len());
    }
    print(text + "\n")?;
    Ok(ExitCode::Ok)
}

fn summary(cache: &Cache, entries: &[Entry]) -> String {
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    format!("{}, {} in {}", counted(entries), megabytes(bytes), cache.folder().display())
}

/// How many of each kind.
fn counted(entries: &[Entry]) -> String {
    let count = |kind: ArtifactKind| {
        let many = entries.iter().filter(|entry| entry.kind == kind).count();
        (many > 0).then(|| format!("{many} {}{}", kind.name(), if many == 1 { "" } else { "s" }))
    };
    let counts: Vec<String> = ArtifactKind::ALL.into_iter().filter_map(count).collect();
    if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") }
}

fn line(entry: &Entry) -> String {
    let (key, size, unused) = (&entry.key[..entry.key.len().min(12)], megabytes(entry.bytes), age(entry.unused_s));
    let what = match &entry.sidecar {
        Some(Described::Engine(sidecar)) => {
            let place = &sidecar.recipe.identity;
            let (model, precision) = (&sidecar.model, sidecar.recipe.engine.precision);
            format!("{model:20} {precision:6} TensorRT {:8} {}", place.tensorrt, place.gpu)
        }
        Some(Described::Graph(sidecar)) => {
            let how = match &sidecar.recipe.making {
                GraphMaking::Export(_) => "ONNX of a checkpoint".to_owned(),
                GraphMaking::Rewrite(rewrite) => format!("{:6} ONNX", rewrite.precision()),
            };
            format!("{:20} {how}", sidecar.model)
        }
        None => "?".to_owned(),
    };
    let problem = entry.problem.as_ref().map(|problem| format!("  damaged: {problem}")).unwrap_or_default();
    format!("{key:12} {size:>9} {unused:>5}  {what}{problem}\n")
}

/// How long it was not used, in its largest unit.
fn age(seconds: u64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "m")];
    let unit = units.iter().find(|(unit, _)| seconds >= *unit);
    unit.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
}
