//! `--resume`: the plan of an earlier run, where nothing that decides its figures has changed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use prony_store::RunFolder;
use prony_types::os_text::path_to_text;
use prony_types::{
    BackendName, CellRecord, CellSpec, CellStatus, Environment, Plan, RunRecord, RuntimeName, RuntimeRecord,
    RuntimeSpec, RuntimeState,
};

use crate::discover::Found;
use crate::options::BenchOptions;
use crate::resolve::{Fate, Resolved, fate_again};
use crate::run::{data_unchanged, run_info};

pub(super) fn earlier_run(path: &Path) -> anyhow::Result<(RunFolder, RunRecord)> {
    let folder = RunFolder::open(path)?;
    let record = folder.read_record()?;
    Ok((folder, record))
}

/// The plan of an earlier run, if this is still the same binary on the same machine with the same models.
pub(super) fn resumed(
    record: &RunRecord,
    options: &BenchOptions,
    here: &Environment,
    found: &Found,
) -> anyhow::Result<Resolved> {
    let unchanged = BenchOptions { home: options.home.clone(), ..BenchOptions::default() };
    ensure!(
        format!("{options:?}") == format!("{unchanged:?}"),
        "--resume takes its options from the run; leave the others but --home out"
    );
    ensure!(!record.run.redacted, "a redacted run cannot be resumed: the paths of its models are gone");
    let now = run_info(record.run.id.clone(), Vec::new())?;
    let refuse = |what: &str, then: &str, now: &str| -> anyhow::Result<()> {
        ensure!(then == now, "cannot resume {}: {what} changed from {then} to {now}", record.run.id);
        Ok(())
    };
    refuse("the binary", &record.run.binary_sha256, &now.binary_sha256)?;
    let describe = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    refuse("the processor", &describe(&record.environment.cpu.name), &describe(&here.cpu.name))?;
    refuse("the architecture", &record.environment.arch, &here.arch)?;
    refuse("the kernel", &describe(&record.environment.kernel), &describe(&here.kernel))?;
    let count = |n: u32| n.to_string();
    let gpus =
        |environment: &Environment| environment.gpus.iter().map(|gpu| gpu.name.as_str()).collect::<Vec<_>>().join(", ");
    refuse("the GPUs", &gpus(&record.environment), &gpus(here))?;
    for (what, then, now) in runtimes(record, found) {
        refuse(&what, &then, &now)?;
    }
    for (what, then, now) in plugins(&record.plan) {
        refuse(&what, &then, &now)?;
    }
    refuse("the GPU driver", &describe(&record.environment.driver), &describe(&here.driver))?;
    refuse("the number of CPUs", &count(record.environment.cpu.usable), &count(here.cpu.usable))?;
    for cell in record.plan.cells.iter().filter(|cell| !cell.model.sha256.is_empty()) {
        let file = prony_model::ModelFile::open(&cell.model.source)?;
        refuse(&format!("model {}", cell.model.name), &cell.model.sha256, &file.sha256)?;
    }
    data_unchanged(record)?;
    let again = |(spec, cell): (&CellSpec, &CellRecord)| Some((spec.id.clone(), fate_again(spec, cell)?));
    let unfinished = |(_, cell): &(&CellSpec, &CellRecord)| cell.status != CellStatus::Completed;
    let fates: BTreeMap<String, Fate> =
        record.plan.cells.iter().zip(&record.cells).filter(unfinished).filter_map(again).collect();
    let missing = record.cells.iter().any(|cell| cell.status != CellStatus::Completed);
    if !missing {
        bail!("nothing to resume: every cell of {} is completed", record.run.id);
    }
    Ok(Resolved { plan: record.plan.clone(), fates, out: ".".into(), redact: false })
}

/// Every library of a plan, by what it is: those that execute cells and the reference, those that build engines, and what
/// belongs to them.
pub(super) fn libraries(plan: &Plan) -> Vec<(RuntimeName, PathBuf)> {
    let mut all = BTreeSet::new();
    for (name, spec) in specs(plan) {
        all.insert((name, spec.library.clone()));
        all.extend(spec.companions.iter().map(|(name, path)| (*name, path.clone())));
    }
    all.into_iter().collect()
}

fn specs(plan: &Plan) -> impl Iterator<Item = (RuntimeName, &RuntimeSpec)> {
    let named = |backend: BackendName| prony_backend::needs(backend).map(|(name, _)| name);
    let of_cell = move |cell: &'_ CellSpec| named(cell.backend);
    let executing = plan.cells.iter().filter_map(move |cell| Some((of_cell(cell)?, cell.runtime.as_ref()?)));
    let building = plan.cells.iter().filter_map(|cell| Some((RuntimeName::Nvinfer, cell.builder.as_ref()?)));
    let reference = &plan.reference;
    let reference = reference.runtime.as_ref().and_then(move |spec| Some((named(reference.backend)?, spec)));
    executing.chain(building).chain(reference)
}

/// A field, what it was, and what it is.
type Then = (String, String, String);

/// Every library with its version then and now. A companion's version then is in the environment of the run.
fn runtimes(record: &RunRecord, found: &Found) -> Vec<Then> {
    let version = |copies: &[RuntimeRecord], path: &Path| {
        let path = path_to_text(path);
        let ready = |copy: &&RuntimeRecord| copy.state == RuntimeState::Ready && copy.path.as_ref() == Some(&path);
        let copy = copies.iter().find(ready);
        copy.map_or_else(|| "gone".to_owned(), |copy| copy.version.clone().unwrap_or_else(|| "unknown".to_owned()))
    };
    let mut all = BTreeSet::new();
    for (_, spec) in specs(&record.plan) {
        let now = version(&found.runtimes, &spec.library);
        all.insert((spec.library.display().to_string(), spec.version.clone(), now));
        for (name, path) in &spec.companions {
            let (then, now) = (version(&record.environment.runtimes, path), version(&found.runtimes, path));
            all.insert((format!("{name} {}", path.display()), then, now));
        }
    }
    all.into_iter().collect()
}

/// Every plugin with its hash then and now.
fn plugins(plan: &Plan) -> Vec<Then> {
    let given =
        plan.cells.iter().flat_map(|cell| cell.provider.trt_plugins.iter().zip(&cell.provider.trt_plugin_sha256));
    let all: BTreeSet<_> = given.collect();
    let now = |path: &Path| prony_model::sha256_file(path).unwrap_or_else(|_| "gone".to_owned());
    all.into_iter().map(|(path, then)| (format!("plugin {}", path.display()), then.clone(), now(path))).collect()
}
