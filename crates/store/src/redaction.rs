//! A record that may leave the house: without host name and without paths.

use std::path::{Path, PathBuf};

use prony_types::{DataSource, ModelSource, ModelSpec, ProviderSpec, RewriteSpec, RunRecord, RuntimeSpec, SourceSpec};

/// Leaves out the host name, and of every path all but the file name; sets `run.redacted`. No other fact changes.
pub fn redact(record: &mut RunRecord) {
    let mut known = known_paths(record);
    // A folder must not be cut out of the middle of a longer path that is known too.
    known.sort_by_key(|path| std::cmp::Reverse(path.len()));
    let host = record.environment.hostname.take();
    for word in &mut record.run.command {
        *word = bare_argument(word);
    }
    for cell in record.plan.cells.iter_mut().chain(&mut record.plan.standby) {
        bare_model(&mut cell.model);
        runtime_paths(&mut cell.runtime).into_iter().for_each(|path| *path = bare(path));
        runtime_paths(&mut cell.builder).into_iter().for_each(|path| *path = bare(path));
        provider_paths(&mut cell.provider).into_iter().for_each(|path| *path = bare(path));
        cell.artifact.iter_mut().for_each(|artifact| artifact.path = bare(&artifact.path));
        let calibrations = cell.engine.as_mut().and_then(|engine| engine.calibration.as_mut());
        let of_rewrite = cell.rewrite.as_mut().and_then(RewriteSpec::calibration_mut);
        calibrations.into_iter().chain(of_rewrite).for_each(|calibration| bare_source(&mut calibration.source));
    }
    let reference = &mut record.plan.reference;
    reference.model.iter_mut().for_each(bare_model);
    runtime_paths(&mut reference.runtime).into_iter().for_each(|path| *path = bare(path));
    bare_source(&mut record.plan.input.source);
    if let Some(spec) = &mut record.plan.evaluation {
        if let DataSource::Path(path) = &mut spec.data.source {
            *path = bare(path);
        }
        spec.data.ids.iter_mut().chain(&mut spec.data.images).for_each(|path| *path = bare(path));
    }
    record.plan.gates.baseline.iter_mut().for_each(|path| *path = bare(path));
    for cell in &mut record.cells {
        let artifact = cell.artifact.as_mut().and_then(|a| a.path.as_mut());
        for path in artifact.into_iter().chain(&mut cell.backend.library) {
            *path = file_name(path);
        }
    }
    for runtime in &mut record.environment.runtimes {
        let paths = runtime.path.iter_mut().chain(&mut runtime.looked);
        paths.for_each(|path| *path = file_name(path));
    }
    for package in &mut record.environment.python {
        package.place = file_name(&package.place);
    }
    for text in sentences(record) {
        for path in &known {
            *text = text.replace(path.as_str(), &file_name(path));
        }
        *text = without_absolute_paths(text);
        if let Some(host) = &host {
            *text = without_word(text, host);
        }
    }
    record.run.redacted = true;
}

fn runtime_paths(runtime: &mut Option<RuntimeSpec>) -> Vec<&mut PathBuf> {
    let Some(RuntimeSpec { library, search, companions, .. }) = runtime else { return Vec::new() };
    std::iter::once(library).chain(search).chain(companions.values_mut()).collect()
}

fn bare_model(model: &mut ModelSpec) {
    if let ModelSource::File(path) = &mut model.source {
        *path = bare(path);
    }
    model.origin.iter_mut().for_each(|origin| origin.path = bare(&origin.path));
}

fn bare_source(source: &mut SourceSpec) {
    match source {
        SourceSpec::Dir(path) | SourceSpec::Tensor(path) => *path = bare(path),
        SourceSpec::Scenes => {}
    }
}

fn provider_paths(provider: &mut ProviderSpec) -> Vec<&mut PathBuf> {
    let caches = provider.trt_engine_cache.iter_mut().chain(&mut provider.trt_timing_cache);
    caches.chain(&mut provider.trt_int8_table).chain(&mut provider.trt_plugins).collect()
}

/// Paths that the record holds as such. Inside sentences they may contain spaces, so they are looked for as a whole.
fn known_paths(record: &RunRecord) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let mut add = |path: &str| {
        if path.contains('/') {
            paths.push(path.trim_end_matches('/').to_owned());
        }
    };
    for cell in &record.plan.cells {
        if let ModelSource::File(path) = &cell.model.source {
            add(&path.to_string_lossy());
        }
        cell.model.origin.iter().for_each(|origin| add(&origin.path.to_string_lossy()));
    }
    if let SourceSpec::Dir(path) | SourceSpec::Tensor(path) = &record.plan.input.source {
        add(&path.to_string_lossy());
    }
    if let Some(spec) = &record.plan.evaluation {
        if let DataSource::Path(path) = &spec.data.source {
            add(&path.to_string_lossy());
        }
        spec.data.ids.iter().chain(&spec.data.images).for_each(|path| add(&path.to_string_lossy()));
    }
    record.plan.gates.baseline.iter().for_each(|path| add(&path.to_string_lossy()));
    record.cells.iter().filter_map(|c| c.artifact.as_ref()?.path.as_deref()).for_each(&mut add);
    record.run.command.iter().for_each(|word| add(value_of(word).1));
    record.cells.iter().filter_map(|c| c.backend.library.as_deref()).for_each(&mut add);
    record.environment.runtimes.iter().filter_map(|r| r.path.as_deref()).for_each(&mut add);
    record.environment.python.iter().for_each(|package| add(&package.place));
    paths.retain(|path| !path.is_empty());
    paths
}

/// Every free text of a record: the places where a path or the host's name can be in a sentence.
fn sentences(record: &mut RunRecord) -> Vec<&mut String> {
    let mut all: Vec<&mut String> = record.run.command.iter_mut().collect();
    all.extend(&mut record.plan.notes);
    all.extend(&mut record.environment.notes);
    all.extend(record.environment.preflight.iter_mut().map(|check| &mut check.finding));
    for runtime in &mut record.environment.runtimes {
        all.extend(&mut runtime.reason);
        all.extend(&mut runtime.trusted);
        all.extend(&mut runtime.remedy);
        all.extend(&mut runtime.provides);
    }
    all.extend(record.comparisons.iter_mut().map(|c| &mut c.reason));
    all.extend(record.accuracy_comparisons.iter_mut().map(|c| &mut c.reason));
    all.extend(record.gates.iter_mut().flat_map(|gate| gate.against.iter_mut().chain(&mut gate.reason)));
    all.extend(record.recommendation.iter_mut().map(|r| &mut r.text));
    for cell in &mut record.cells {
        all.extend(&mut cell.reason);
        all.extend(&mut cell.agreement_absent);
        all.extend(&mut cell.accuracy_absent);
        all.extend(cell.consistency.iter_mut().map(|check| &mut check.detail));
        if let Some(accuracy) = &mut cell.accuracy {
            all.push(&mut accuracy.data.name);
            all.push(&mut accuracy.data.classes);
            all.extend(&mut accuracy.data.problems);
        }
        all.extend(&mut cell.backend.settings);
        if let Some(artifact) = &mut cell.artifact {
            all.extend(&mut artifact.rebuilt_because);
            all.extend(&mut artifact.notes);
        }
        all.extend(&mut cell.verdict_reasons);
        all.extend(&mut cell.memory.violations);
        all.extend(&mut cell.memory.warning);
        all.extend(cell.thumbnails.iter_mut().map(|t| &mut t.caption));
        all.extend(cell.agreement.iter_mut().map(|a| &mut a.reference));
        if let Some(input) = &mut cell.input {
            all.push(&mut input.source);
            all.extend(&mut input.skipped);
        }
    }
    all
}

/// `--flag=value` apart; a plain word is all value.
fn value_of(word: &str) -> (&str, &str) {
    match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => (&word[..flag.len() + 1], value),
        _ => ("", word),
    }
}

fn bare_argument(word: &str) -> String {
    let (flag, value) = value_of(word);
    if value.contains('/') { format!("{flag}{}", file_name(value)) } else { word.to_owned() }
}

fn bare(path: &Path) -> PathBuf {
    PathBuf::from(file_name(&path.to_string_lossy()))
}

fn file_name(path: &str) -> String {
    path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(".").to_owned()
}

/// Cuts every absolute path in a sentence down to its file name. A path begins where a word does; `frames/s` is none.
fn without_absolute_paths(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || "\"'`()[]<>,;=".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let word_end = rest.find(ends).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_end);
        match word.find('/') {
            Some(at) if at == 0 || word[..at].ends_with([':', '~']) => {
                let trail = word.len() - word.trim_end_matches([':', '.']).len();
                let (path, trail) = word.split_at(word.len() - trail);
                let kept = path[..at].trim_end_matches('~');
                out.push_str(kept);
                // A `/` alone is a sign, not a place.
                out.push_str(&if path.len() > at + 1 { file_name(path) } else { path[at..].to_owned() });
                out.push_str(trail);
            }
            _ => out.push_str(word),
        }
        let Some(separator) = after.chars().next() else { return out };
        out.push(separator);
        rest = &after[separator.len_utf8()..];
    }
}

/// Replaces a name where it stands as a word of its own.
fn without_word(text: &str, name: &str) -> String {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in text.match_indices(name) {
        let end = at + name.len();
        let alone = !text[..at].ends_with(part_of_word) && !text[end..].starts_with(part_of_word);
        if alone && at >= done {
            out.push_str(&text[done..at]);
            out.push_str("(host)");
            done = end;
        }
    }
    out + &text[done..]
}

#[cfg(test)]
#[path = "redaction_tests.rs"]
pub(crate) mod tests;
