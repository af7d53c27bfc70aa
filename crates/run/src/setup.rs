//! How a run begins: anew by [`start`], or where an earlier one ended by [`resume`]. Both end in the same [`RunSetup`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prony_plan::options::BenchOptions;
use prony_plan::{Inputs, Machine, OpenedModels, Resolved};
use prony_probe::MemoryRoom;
use prony_runtimes::{Found, absent, choose, home};
use prony_source::dataset::Dataset;
use prony_store::RunFolder;
use prony_types::{CellSpec, CellStatus, Environment, Fate, Plan, RunInfo, RunRecord, RuntimeName};

use crate::clock::utc_stamp;
use crate::identity::{resumed_info, run_info};
use crate::jobs::engines_to_build;
use crate::lock::MachineLock;
use crate::machine::machine;
use crate::redactor::Redactor;
use crate::resume::resumed;

/// Everything that is decided before the first worker starts.
pub struct RunSetup {
    /// Which run, when and by whom.
    pub info: RunInfo,
    /// What is to be measured.
    pub plan: Plan,
    /// Cells that will not run, by id.
    pub fates: BTreeMap<String, Fate>,
    /// Cells of an earlier sitting: those that are completed stay as they are.
    pub earlier: Option<RunRecord>,
    /// The machine, as it was found.
    pub environment: Environment,
    /// Where references are kept from run to run; `None` where there is no home.
    pub reference_cache: Option<PathBuf>,
    /// Where engines are; `None` where there is no home: then the run folder has them.
    pub artifact_cache: Option<PathBuf>,
    /// What relative limits are held against.
    pub baseline: Option<RunRecord>,
    /// Data on disk to score on.
    pub data: Option<Arc<Dataset>>,
    /// What was read of the models.
    pub models: OpenedModels,
    /// Held until the last cell has ended.
    pub lock: Option<MachineLock>,
}

/// The machine that a run is planned on, and what is kept there from run to run.
#[derive(Clone)]
pub struct Site {
    /// What it is.
    pub environment: Environment,
    /// Its libraries.
    pub found: Found,
    /// The home that was named; the usual one where none was.
    home: Option<PathBuf>,
    /// `None` where there is no home.
    cache: Option<PathBuf>,
}

impl Site {
    /// Looks at the machine. Libraries are opened for that.
    pub fn look(runs: &Path, home: Option<&Path>, libraries: &[(RuntimeName, PathBuf)]) -> anyhow::Result<Site> {
        let (environment, found) = machine(runs, home, libraries)?;
        let cache = home::folder(home).ok().map(|home| home::cache(&home));
        Ok(Site { environment, found, home: home.map(Path::to_owned), cache })
    }

    /// Where things are kept from run to run; `None` where there is no home.
    pub fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    fn artifacts(&self) -> Option<PathBuf> {
        self.cache.as_deref().map(home::artifacts)
    }
}

/// A run that is planned and has not begun: nothing of it is on disk.
pub struct PlannedRun {
    /// What is to be measured.
    pub resolved: Resolved,
    site: Site,
    earlier: Option<(RunFolder, RunRecord)>,
}

/// Plans a run on a machine.
pub fn start(inputs: Inputs, site: Site) -> anyhow::Result<PlannedRun> {
    let here = Machine {
        runtime: &|backend| choose(&site.found, backend),
        absent: &|backend| absent(&site.found, backend),
        gpus: site.found.gpus.len() as u32,
        cpus: site.environment.cpu.usable,
        // What a container leaves, where that is less than the machine has.
        mem_available_bytes: MemoryRoom::read(Path::new("/")).map(|room| room.available),
    };
    let resolved = inputs.plan(&here)?;
    Ok(PlannedRun { resolved, site, earlier: None })
}

/// Plans the rest of an earlier run, if nothing that decides its figures has changed meanwhile.
pub fn resume(
    (folder, record): (RunFolder, RunRecord),
    options: &BenchOptions,
    site: Site,
) -> anyhow::Result<PlannedRun> {
    let resolved = resumed(&record, options, &site.environment, &site.found, site.cache.as_deref())?;
    Ok(PlannedRun { resolved, site, earlier: Some((folder, record)) })
}

impl PlannedRun {
    /// Ids of the cells that an earlier sitting has measured.
    pub fn kept(&self) -> Vec<&str> {
        let cells = self.earlier.iter().flat_map(|(_, record)| &record.cells);
        cells.filter(|cell| cell.status == CellStatus::Completed).map(|cell| cell.id.as_str()).collect()
    }

    /// The cells that are going to run.
    pub fn to_run(&self) -> Vec<&CellSpec> {
        let (kept, fates) = (self.kept(), &self.resolved.fates);
        let left = |cell: &&CellSpec| !fates.contains_key(&cell.id) && !kept.contains(&cell.id.as_str());
        self.resolved.plan.cells.iter().filter(left).collect()
    }

    /// How many engines are not in the cache yet.
    pub fn engines_to_build(&self) -> usize {
        let info = |sha256: &str| self.resolved.models.info(sha256).map(|info| &**info);
        engines_to_build(self.to_run().into_iter(), &info, self.site.artifacts().as_deref(), &self.site.found.gpus)
    }

    /// Makes the run's folder, or opens that of the earlier sitting.
    pub fn open_folder(&self) -> anyhow::Result<RunFolder> {
        let Resolved { out, plan, .. } = &self.resolved;
        Ok(match &self.earlier {
            Some((folder, _)) => RunFolder::open(folder.path())?,
            None => RunFolder::create(out, &plan.name, &utc_stamp())?,
        })
    }

    /// What hides the user from what is written, where that was asked for.
    pub fn redactor(&self, folder: &Path) -> Option<Redactor> {
        let Resolved { plan, redact, .. } = &self.resolved;
        redact.then(|| Redactor::new(plan, folder, self.site.home.as_deref(), &self.site.environment))
    }

    /// What the run begins with. `command` is what was typed, `version` Prony's.
    pub fn set_up(
        self,
        id: String,
        command: Vec<String>,
        version: &str,
        lock: Option<MachineLock>,
    ) -> anyhow::Result<RunSetup> {
        let artifact_cache = self.site.artifacts();
        let PlannedRun { resolved, site, earlier } = self;
        let mut info = match &earlier {
            Some((_, record)) => resumed_info(&record.run),
            None => run_info(id, command, version)?,
        };
        let Resolved { plan, fates, baseline, data, models, redact, .. } = resolved;
        info.redacted |= redact;
        Ok(RunSetup {
            info,
            plan,
            fates,
            earlier: earlier.map(|(_, record)| record),
            environment: site.environment,
            reference_cache: site.cache.as_deref().map(home::references),
            artifact_cache,
            baseline,
            data,
            models,
            lock,
        })
    }
}
