//! `--resume`: the plan of an earlier run, where nothing that decides its figures has changed meanwhile.

mod code;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{bail, ensure};
use prony_store::RunFolder;
use prony_types::{CellRecord, CellSpec, CellStatus, Environment, ModelSpec, RunRecord};

use self::code::Then;
use crate::accuracy::unchanged_data;
use crate::identity::run_info;
use prony_plan::options::BenchOptions;
use prony_plan::{OpenedModels, Resolved, fate_again, read_baseline};
use prony_runtimes::Found;
use prony_types::Fate;

/// A run folder, and the record in it.
pub fn earlier_run(path: &Path) -> anyhow::Result<(RunFolder, RunRecord)> {
    let folder = RunFolder::open(path)?;
    let record = folder.read_record()?;
    Ok((folder, record))
}

/// The plan of an earlier run, if this is still the same binary on the same machine with the same models.
pub(crate) fn resumed(
    record: &RunRecord,
    options: &BenchOptions,
    here: &Environment,
    found: &Found,
    cache: Option<&Path>,
) -> anyhow::Result<Resolved> {
    refuse_other_options(options)?;
    ensure!(!record.run.redacted, "a redacted run cannot be resumed: the paths of its models are gone");
    let now = run_info(record.run.id.clone(), Vec::new(), &record.run.version)?;
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
    let cannot = |reason: anyhow::Error| anyhow::anyhow!("cannot resume {}: {reason:#}", record.run.id);
    let libraries = code::runtimes(&record.plan, &record.environment.runtimes, found).map_err(cannot)?;
    for Then { what, then, now } in libraries {
        refuse(&what, &then, &now)?;
    }
    code::named_again(&record.plan, options, cache).map_err(cannot)?;
    for Then { what, then, now } in code::plugins(&record.plan) {
        refuse(&what, &then, &now)?;
    }
    // The record may be somebody else's, and so may be the files that it names.
    prony_runtimes::policy::check_plugins(record.plan.cells.iter().flat_map(|cell| &cell.provider.trt_plugins))?;
    refuse("the GPU driver", &describe(&record.environment.driver), &describe(&here.driver))?;
    refuse("the number of CPUs", &count(record.environment.cpu.usable), &count(here.cpu.usable))?;
    let mut models = OpenedModels::default();
    let mut read: Vec<&ModelSpec> = Vec::new();
    for CellSpec { model, .. } in record.plan.cells.iter().filter(|cell| !cell.model.sha256.is_empty()) {
        if read.contains(&model) {
            continue;
        }
        read.push(model);
        code::refuse_foreign_engine(&model.source).map_err(cannot)?;
        let file = prony_model::ModelFile::open(&model.source)?;
        refuse(&format!("model {}", model.name), &model.sha256, &file.sha256)?;
        let of_model =
            record.plan.cells.iter().chain(&record.plan.standby).filter(|cell| cell.model.source == model.source);
        models.add(&file, of_model.map(|cell| (cell.imgsz, cell.batch)));
    }
    let data = unchanged_data(record)?;
    let again = |(spec, cell): (&CellSpec, &CellRecord)| {
        let info = models.info(&spec.model.sha256).map(|info| &**info);
        Some((spec.id.clone(), fate_again(spec, cell, info)?))
    };
    let unfinished = |(_, cell): &(&CellSpec, &CellRecord)| cell.status != CellStatus::Completed;
    let fates: BTreeMap<String, Fate> =
        record.plan.cells.iter().zip(&record.cells).filter(unfinished).filter_map(again).collect();
    let missing = record.cells.iter().any(|cell| cell.status != CellStatus::Completed);
    if !missing {
        bail!("nothing to resume: every cell of {} is completed", record.run.id);
    }
    let mut plan = record.plan.clone();
    // What a cell runs is made or found again; a record has no say in it.
    plan.cells.iter_mut().chain(&mut plan.standby).for_each(|cell| cell.artifact = None);
    let baseline = read_baseline(&plan.gates)?;
    let resolved = Resolved { plan, fates, out: ".".into(), redact: false, baseline, data, models };
    resolved.check_baseline()?;
    Ok(resolved)
}

/// Options come from the run. What names code is never taken from a record and must be given again.
fn refuse_other_options(options: &BenchOptions) -> anyhow::Result<()> {
    let mut unchanged = BenchOptions {
        home: options.home.clone(),
        library: options.library.clone(),
        trt_engine_cache: options.trt_engine_cache.clone(),
        trt_timing_cache: options.trt_timing_cache.clone(),
        ..BenchOptions::default()
    };
    unchanged.engine.plugin.clone_from(&options.engine.plugin);
    ensure!(
        format!("{options:?}") == format!("{unchanged:?}"),
        "--resume takes its options from the run; leave out all but --home, --library, --plugin, --trt-engine-cache and \
         --trt-timing-cache"
    );
    Ok(())
}
