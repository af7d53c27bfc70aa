//! The accuracy of one model after the other on the same data: runs that are not timed, without a terminal, in a folder that
//! is thrown away.

use std::path::Path;

use anyhow::{Context as _, bail};
use prony_plan::Request;
use prony_plan::options::BenchOptions;
use prony_types::RunRecord;
use prony_work::{Interrupt, Silent};

use crate::files::Files;
use crate::runner::{Ending, Run};
use crate::setup::{Site, start};
use crate::sink::Nobody;

/// What every model is scored with.
pub struct Scorer<'a> {
    options: BenchOptions,
    site: Site,
    version: &'a str,
    interrupt: &'a Interrupt,
}

impl<'a> Scorer<'a> {
    /// Looks at the machine once. `options` say all but the model; runs are written below `out`.
    pub fn new(
        options: BenchOptions,
        out: &Path,
        version: &'a str,
        interrupt: &'a Interrupt,
    ) -> anyhow::Result<Scorer<'a>> {
        let explicit: Vec<_> = options.library.iter().map(|library| (library.name, library.path.clone())).collect();
        let site = Site::look(out, options.home.as_deref(), &explicit)?;
        let options = BenchOptions { out: Some(out.to_owned()), only_scored: true, ..options };
        Ok(Scorer { options, site, version, interrupt })
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
        let options = BenchOptions { models: vec![model.to_owned()], ..self.options.clone() };
        let inputs = Request::new(options)?.open(self.site.cache().map(Path::to_owned), &Silent)?;
        let planned = start(inputs, self.site.clone())?;
        let folder = planned.open_folder()?;
        let command = vec!["prony".to_owned(), "eval".to_owned(), model.to_owned()];
        let setup = planned.set_up(folder.id(), command, self.version, None)?;
        let files = Files::new(folder, None)?;
        let Ending { record, nothing_ran, .. } =
            Run::new(setup, files, self.interrupt.clone(), Box::new(Nobody))?.execute()?;
        if nothing_ran {
            bail!("{}", record.cells.first().and_then(|cell| cell.reason.clone()).unwrap_or_default());
        }
        Ok(record)
    }
}
