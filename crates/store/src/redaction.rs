//! A record that may leave the house: without the names of host and user, and without paths.

use std::path::PathBuf;

use prony_types::{
    DataSource, ModelSource, ModelSpec, Plan, ProviderSpec, RewriteSpec, RunRecord, RuntimeSpec, SourceSpec,
};

use crate::secrets::{Secrets, bare, file_name, value_of};

/// Leaves out the host's and the user's name, and of every path all but the file name; sets `run.redacted`. No other fact
/// changes. `known` is what the machine knows beyond the record.
pub fn redact(record: &mut RunRecord, known: &Secrets) {
    let mut secrets = secrets_of(record);
    secrets.extend(known);
    record.environment.hostname = None;
    for word in &mut record.run.command {
        *word = bare_argument(word);
    }
    for path in paths(&mut record.plan) {
        *path = PathBuf::from(secrets.without_words(&bare(path).to_string_lossy()));
    }
    for cell in &mut record.cells {
        let artifact = cell.artifact.as_mut().and_then(|a| a.path.as_mut());
        for path in artifact.into_iter().chain(&mut cell.backend.library) {
            *path = secrets.without_words(&file_name(path));
        }
    }
    for runtime in &mut record.environment.runtimes {
        let paths = runtime.path.iter_mut().chain(&mut runtime.looked);
        paths.for_each(|path| *path = secrets.without_words(&file_name(path)));
    }
    for package in &mut record.environment.python {
        package.place = secrets.without_words(&file_name(&package.place));
    }
    for text in sentences(record) {
        *text = secrets.text(text);
    }
    record.run.redacted = true;
    // Whatever else holds a path: a field that nobody thought of must not give one away.
    let scrubbed = serde_json::to_value(&*record).and_then(|mut value| {
        secrets.json(&mut value);
        serde_json::from_value(value)
    });
    match scrubbed {
        Ok(scrubbed) => *record = scrubbed,
        Err(error) => {
            sentences(record)
                .into_iter()
                .for_each(|text| *text = format!("(left out: it cannot be redacted: {error})"));
        }
    }
}

/// Every path of a plan.
pub fn paths_of(plan: &Plan) -> Vec<PathBuf> {
    // A copy is taken apart instead of naming each field twice.
    paths(&mut plan.clone()).into_iter().map(|path| path.clone()).collect()
}

fn paths(plan: &mut Plan) -> Vec<&mut PathBuf> {
    let mut all: Vec<&mut PathBuf> = Vec::new();
    for cell in plan.cells.iter_mut().chain(&mut plan.standby) {
        all.extend(model_paths(&mut cell.model));
        all.extend(runtime_paths(&mut cell.runtime));
        all.extend(runtime_paths(&mut cell.builder));
        all.extend(provider_paths(&mut cell.provider));
        all.extend(cell.artifact.iter_mut().map(|artifact| &mut artifact.path));
        let of_engine = cell.engine.as_mut().and_then(|engine| engine.calibration.as_mut());
        let of_rewrite = cell.rewrite.as_mut().and_then(RewriteSpec::calibration_mut);
        all.extend(of_engine.into_iter().chain(of_rewrite).flat_map(|data| source_path(&mut data.source)));
    }
    all.extend(plan.reference.model.iter_mut().flat_map(model_paths));
    all.extend(runtime_paths(&mut plan.reference.runtime));
    all.extend(source_path(&mut plan.input.source));
    if let Some(spec) = &mut plan.evaluation {
        if let DataSource::Path(path) = &mut spec.data.source {
            all.push(path);
        }
        all.extend(spec.data.ids.iter_mut().chain(&mut spec.data.images));
    }
    all.extend(&mut plan.gates.baseline);
    all
}

fn runtime_paths(runtime: &mut Option<RuntimeSpec>) -> Vec<&mut PathBuf> {
    let Some(RuntimeSpec { library, search, companions, .. }) = runtime else { return Vec::new() };
    std::iter::once(library).chain(search).chain(companions.values_mut()).collect()
}

fn model_paths(model: &mut ModelSpec) -> Vec<&mut PathBuf> {
    let file = match &mut model.source {
        ModelSource::File(path) => Some(path),
        ModelSource::Builtin(_) => None,
    };
    file.into_iter().chain(model.origin.iter_mut().map(|origin| &mut origin.path)).collect()
}

fn source_path(source: &mut SourceSpec) -> Option<&mut PathBuf> {
    match source {
        SourceSpec::Dir(path) | SourceSpec::Tensor(path) => Some(path),
        SourceSpec::Scenes => None,
    }
}

fn provider_paths(provider: &mut ProviderSpec) -> Vec<&mut PathBuf> {
    let caches = provider.trt_engine_cache.iter_mut().chain(&mut provider.trt_timing_cache);
    caches.chain(&mut provider.trt_int8_table).chain(&mut provider.trt_plugins).collect()
}

/// What a record itself knows that must not be seen: every path that it holds as such, and the host.
fn secrets_of(record: &RunRecord) -> Secrets {
    let mut secrets = Secrets::default();
    record.environment.hostname.iter().for_each(|host| secrets.add_host(host));
    let mut all: Vec<String> = paths_of(&record.plan).iter().map(|path| path.to_string_lossy().into_owned()).collect();
    all.extend(record.run.command.iter().map(|word| value_of(word).1.to_owned()));
    all.extend(record.cells.iter().filter_map(|cell| cell.artifact.as_ref()?.path.clone()));
    all.extend(record.cells.iter().filter_map(|cell| cell.backend.library.clone()));
    all.extend(record.environment.runtimes.iter().flat_map(|it| it.path.iter().chain(&it.looked).cloned()));
    all.extend(record.environment.python.iter().map(|package| package.place.clone()));
    all.iter().filter(|path| path.contains('/')).for_each(|path| secrets.add_written(path));
    secrets
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

fn bare_argument(word: &str) -> String {
    let (flag, value) = value_of(word);
    // `--library onnxruntime=/opt/x.so` keeps the name.
    let parts = value.split('=').map(|part| if part.contains('/') { file_name(part) } else { part.to_owned() });
    format!("{flag}{}", parts.collect::<Vec<_>>().join("="))
}

#[cfg(test)]
#[path = "redaction_tests.rs"]
pub(crate) mod tests;
