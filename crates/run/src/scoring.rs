//! The accuracy of one model after the other on the same data: runs that are not timed, without a terminal, in a folder that
//! is thrown away.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_plan::options::BenchOptions;
use prony_plan::{Machine, Resolved, resolve};
use prony_runtimes::{Found, absent, choose, home};
use prony_store::RunFolder;
use prony_types::{Environment, RunRecord};
use prony_work::{Interrupt, Silent};

use crate::{Ending, Files, Nobody, Run, RunSetup, check_data, machine, run_info, utc_stamp};

/// What every model is scored with.
pub struct Scorer<'a> {
    options: BenchOptions,
    /// Where runs are written.
    out: &'a Path,
    cache: Option<PathBuf>,
    environment: Environment,
    found: Found,
    version: &'a str,
    interrupt: &'a Interrupt,
}

impl<'a> Scorer<'a> {
    /// Looks at the machine once. `options` say all but the model; runs are written below `out`.
    pub fn new(
        options: BenchOptions,
        out: &'a Path,
        version: &'a str,
        interrupt: &'a Interrupt,
    ) -> anyhow::Result<Scorer<'a>> {
        let explicit: Vec<_> = options.library.iter().map(|library| (library.name, library.path.clone())).collect();
        let cache = home::folder(options.home.as_deref()).ok().map(|home| home::cache(&home));
        let (environment, found) = machine(out, options.home.as_deref(), &explicit)?;
        let options = BenchOptions { out: Some(out.to_owned()), only_scored: true, ..options };
        Ok(Scorer { options, out, cache, environment, found, version, interrupt })
    }

    /// mAP50-95 of a model; the error says why it could not be scored. A run that the user interrupted is such an error too.
    pub fn map(&self, model: &str) -> anyhow::Result<f64> {
        let record = self.run(model).with_context(|| model.to_owned())?;
        let cell = record.cells.first().with_context(|| format!("{model}: nothing was planned"))?;
        let reason = cell.reason.as_deref().unwrap_or("it has no accuracy");
        let accuracy = cell.accuracy.as_ref().with_context(|| format!("{model} could not be scored: {reason}"))?;
        accuracy.figures.map_50_95.with_context(|| format!("{model} could not be scored: the data have no objects"))
    }

    fn run(&self, model: &str) -> anyhow::Result<RunRecord> {
        let found = &self.found;
        let here = Machine {
            runtime: &|backend| choose(found, backend),
            absent: &|backend| absent(found, backend),
            gpus: found.gpus.len() as u32,
            cpus: self.environment.cpu.usable,
            cache: self.cache.clone(),
            mem_available_bytes: prony_probe::MemoryRoom::read(Path::new("/")).map(|room| room.available),
            watcher: &Silent,
        };
        let options = BenchOptions { models: vec![model.to_owned()], ..self.options.clone() };
        let Resolved { plan, fates, .. } = resolve(options, &here)?;
        plan.evaluation.as_ref().map(|spec| check_data(&spec.data)).transpose()?;
        let folder = RunFolder::create(self.out, &plan.name, &utc_stamp())?;
        let info = run_info(folder.id(), vec!["prony".to_owned(), "eval".to_owned(), model.to_owned()], self.version)?;
        let setup = RunSetup {
            info,
            plan,
            fates,
            earlier: None,
            environment: self.environment.clone(),
            reference_cache: self.cache.as_ref().map(|cache| cache.join("reference")),
            artifact_cache: self.cache.as_deref().map(home::artifacts),
            baseline: None,
            lock: None,
        };
        let files = Files::new(folder, None)?;
        let Ending { record, nothing_ran, .. } =
            Run::new(setup, files, self.interrupt.clone(), Box::new(Nobody))?.execute()?;
        if nothing_ran {
            bail!("{}", record.cells.first().and_then(|cell| cell.reason.clone()).unwrap_or_default());
        }
        Ok(record)
    }
}
