//! `prony quantize`: a graph with int8 quantisers, and what they cost.

mod gate;
mod text;

use anyhow::{Context as _, bail, ensure};
use prony_forge::ForgeError;
use prony_forge::quantise::{LayerLoss, Quantised, Site, quantise, sensitivity};
use prony_model::ModelFile;
use prony_source::ending::is_video_name;
use prony_types::{BackendName, CalibrationSpec, ExitCode, HeadChoice, ModelSource, QuantiseSpec, RuntimeSpec};

use self::gate::{Gate, Search};
use self::text::Outcome;
use super::target::Target;
use crate::args::QuantizeArgs;
use crate::error::{CliError, OrCliError as _};
use crate::output::{MakingProgress, View};
use prony_plan::engine_options::calibration_source;
use prony_plan::image_size;
use prony_plan::images::meant;
use prony_plan::named::{Located, Opening, locate, open};
use prony_run::Scorer;
use prony_run::inline::{found_runtime, tell_loader};
use prony_runtimes::home;
use prony_work::Interrupt;

pub(crate) fn quantize(args: &QuantizeArgs) -> Result<ExitCode, CliError> {
    let spec = spec(args).usage()?;
    let Located { source, note } = locate(&args.model).usage()?;
    note.iter().for_each(|note| note!("{note}"));
    let gate = Gate::asked(args, &source).usage()?;
    let mut how = Opening::in_home(args.home.as_deref(), &View);
    how.export.imgsz = args.imgsz.map(|size| size.0);
    let model = open(&args.model, &how).by_cause()?.file;
    let of_model = |reason: String| anyhow::anyhow!("{}: {reason}", args.model);
    let imgsz = image_size(&args.imgsz.map(|size| size.0), HeadChoice::None, &model.info).map_err(of_model).usage()?;
    let target = Target::find(args.output.as_deref(), &source, "-int8", args.force).usage()?;
    let runtime = runtime(args).by_cause()?;
    let folder = home::folder(args.home.as_deref()).ok().map(|home| home::artifacts(&home::cache(&home)));
    // A folder that cannot be made is one without a cache.
    let folder = folder.filter(|folder| std::fs::create_dir_all(folder).is_ok());
    let site = Site { cache: folder.as_deref(), runtime: runtime.as_ref(), imgsz, threads: args.threads };
    let interrupt = Interrupt::listen().failed()?;
    let work = Work {
        name: &args.model,
        model: &model,
        source: &source,
        site,
        interrupt,
        progress: MakingProgress::new(&args.model),
    };
    let losses = if args.sensitivity { Some(work.sensitivity(&spec).by_cause()?) } else { None };
    let search = match (&gate, &losses) {
        (Some(gate), Some(losses)) => Some(gate.search(&work, &spec, losses).by_cause()?),
        _ => None,
    };
    let (quantised, search) = match search {
        Some(Search { best, found }) => (best, Some(found)),
        None => (work.quantise(&spec).by_cause()?, None),
    };
    work.progress.clear();
    let held = search.as_ref().is_none_or(|found| found.held);
    if held {
        target.write(&quantised.bytes, &quantised.report)?;
    }
    let outcome = Outcome { model: &args.model, target: &target, quantised: &quantised, losses, gate: search };
    outcome.show(args.print.json)?;
    if held { Ok(ExitCode::Ok) } else { Err(CliError::Gate) }
}

/// A model, and all that is needed to quantise it.
struct Work<'a> {
    name: &'a str,
    model: &'a ModelFile,
    source: &'a ModelSource,
    site: Site<'a>,
    interrupt: Interrupt,
    progress: MakingProgress,
}

impl Work<'_> {
    fn quantise(&self, spec: &QuantiseSpec) -> anyhow::Result<Quantised> {
        let beat = || self.beat();
        let made =
            quantise(self.model, self.source, spec, &self.site, &mut |progress| self.progress.show(&progress), &beat);
        self.ensure_wanted()?;
        made.with_context(|| self.name.to_owned())
    }

    fn sensitivity(&self, spec: &QuantiseSpec) -> anyhow::Result<Vec<LayerLoss>> {
        let beat = || self.beat();
        let found = sensitivity(
            self.model,
            self.source,
            spec,
            &self.site,
            &mut |progress| self.progress.show(&progress),
            &beat,
        );
        self.ensure_wanted()?;
        found.with_context(|| self.name.to_owned())
    }

    /// mAP50-95 of a model.
    fn score(&self, scorer: &Scorer<'_>, model: &str) -> anyhow::Result<f64> {
        let map = scorer.map(model);
        self.ensure_wanted()?;
        map
    }

    /// Between two frames nothing is half done: what was asked for is only written at the very end, and at once.
    fn beat(&self) -> Result<(), ForgeError> {
        if self.interrupt.asked() { Err(ForgeError::Interrupted) } else { Ok(()) }
    }

    /// An error where the user has given up, whatever else was wrong.
    fn ensure_wanted(&self) -> Result<(), CliError> {
        match self.interrupt.asked() {
            true => Err(CliError::interrupted("interrupted; nothing was written")),
            false => Ok(()),
        }
    }
}

fn spec(args: &QuantizeArgs) -> anyhow::Result<QuantiseSpec> {
    let Some(calib) = &args.calib else {
        bail!("--calib is missing: ranges are found on real inputs; give scenes, a folder of images or an .npz");
    };
    let there = calib.as_os_str() == "scenes" || calib.exists() || is_video_name(calib);
    ensure!(there, "--calib {} is not there; give scenes, a folder of images or an .npz", calib.display());
    let (calib, note) = meant("--calib", calib)?;
    note.iter().for_each(|found| note!("{found}"));
    let source = calibration_source(&calib)?;
    let calibration = CalibrationSpec { method: args.method, source, frames: args.samples, seed: args.seed };
    let (per_channel, target) = (args.per_channel, args.target);
    Ok(QuantiseSpec { calibration, per_channel, exclude: args.exclude.clone(), target })
}

/// The library that runs the graph; `None` for the embedded engine.
fn runtime(args: &QuantizeArgs) -> anyhow::Result<Option<RuntimeSpec>> {
    match args.backend {
        BackendName::Rten => {
            ensure!(
                args.library.is_empty() || args.gate.is_some(),
                "--library is for --backend ort-cpu; rten is built in"
            );
            Ok(None)
        }
        BackendName::OrtCpu => {
            let explicit: Vec<_> = args.library.iter().map(|library| (library.name, library.path.clone())).collect();
            let runtime = found_runtime(args.backend, args.home.as_deref(), &explicit, &View)?;
            runtime.iter().try_for_each(|runtime| tell_loader(&runtime.search))?;
            Ok(runtime)
        }
        other => bail!("--backend {other} cannot show the tensors within a graph; use rten or ort-cpu"),
    }
}
