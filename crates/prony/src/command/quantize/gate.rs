//! How many layers stay in float for a limit on accuracy to hold. The file that would be written is scored as `prony eval`
//! scores it.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use prony_forge::quantise::{LayerLoss, Quantised};
use prony_plan::options::BenchOptions;
use prony_run::Scorer;
use prony_source::synth;
use prony_types::{BuildProgress, GateName, ModelSource, Precision, QuantiseSpec};
use serde::Serialize;

use super::Work;
use crate::args::QuantizeArgs;
use crate::error::OrCliError as _;
use crate::version::VERSION;

/// Scenes that a built-in model is scored on where nobody says how many.
const SCENES: u32 = 500;
/// Their seed: others than those that ranges are found on.
const SCENES_SEED: u64 = 99;

/// A limit on accuracy, and what it is judged on.
pub(super) struct Gate<'a> {
    args: &'a QuantizeArgs,
    limit: f64,
    data: PathBuf,
}

/// How a search ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SearchRecord {
    /// Points of mAP50-95 that may be lost.
    map_drop_max: f64,
    /// Whether that holds.
    pub(super) held: bool,
    /// Accuracy of the fp32 model.
    map_fp32: f64,
    /// Accuracy of the quantised one.
    map_int8: f64,
    /// Layers that stay in float for it.
    kept_float: Vec<String>,
    /// Every choice that was scored: how many layers in float, and the points that were lost.
    tried: Vec<(usize, f64)>,
}

/// The best choice of layers.
pub(super) struct Search {
    pub(super) best: Quantised,
    pub(super) found: SearchRecord,
}

impl<'a> Gate<'a> {
    /// The gate that was asked for.
    pub(super) fn asked(args: &'a QuantizeArgs, source: &ModelSource) -> anyhow::Result<Option<Gate<'a>>> {
        let Some(gate) = args.gate else { return Ok(None) };
        ensure!(gate.name == GateName::MapDropMax, "--gate {} does not fit here; use map_drop_max=POINTS", gate.name);
        let data = match (&args.data, source) {
            (Some(data), _) => data.clone(),
            // A file says nothing about what it was made for.
            (None, ModelSource::Builtin(_)) => "scenes".into(),
            (None, ModelSource::File(_)) => bail!("--gate needs --data with the truth: a data set, or scenes"),
        };
        ensure!(data.as_os_str() == "scenes" || data.exists(), "--data {} is not there", data.display());
        Ok(Some(Gate { args, limit: gate.limit, data }))
    }

    /// Keeps the dearest layers in float: none, one, two, four, … until the limit holds, and then as few as will do.
    pub(super) fn search(&self, work: &Work<'_>, spec: &QuantiseSpec, losses: &[LayerLoss]) -> anyhow::Result<Search> {
        let scratch = tempfile::tempdir().context("cannot make a folder for what is scored").failed()?;
        let data = self.data(work, scratch.path())?;
        let scorer = Scorer::new(self.options(data), scratch.path(), VERSION, &work.interrupt)?;
        let whole = work.score(&scorer, work.name)?;
        let mut tries =
            Tries { gate: self, work, spec, losses, scorer: &scorer, scratch: scratch.path(), whole, seen: Vec::new() };
        let mut best = tries.with(0)?;
        let (mut low, mut high) = (0, 1);
        // All but one: a graph without a layer in bytes is no answer.
        let most = losses.len().saturating_sub(1);
        while !tries.holds(&best) && high <= most {
            let next = tries.with(high)?;
            if tries.holds(&next) || next.map > best.map {
                best = next;
            }
            if tries.holds(&best) {
                break;
            }
            (low, high) = (high, if high == most { most + 1 } else { (high * 2).min(most) });
        }
        while tries.holds(&best) && best.kept > low + 1 {
            let middle = (low + best.kept) / 2;
            let next = tries.with(middle)?;
            if tries.holds(&next) { best = next } else { low = middle }
        }
        let found = SearchRecord {
            map_drop_max: self.limit,
            held: tries.holds(&best),
            map_fp32: whole,
            map_int8: best.map,
            kept_float: losses[..best.kept].iter().map(|loss| loss.name.clone()).collect(),
            tried: tries.seen.clone(),
        };
        Ok(Search { best: best.quantised, found })
    }

    /// What is scored on. A quantised file no longer says which scenes fit it, so those of heat are written out.
    fn data(&self, work: &Work<'_>, scratch: &Path) -> anyhow::Result<PathBuf> {
        let ModelSource::Builtin(kind) = work.source else { return Ok(self.data.clone()) };
        if self.data.as_os_str() != "scenes" {
            return Ok(self.data.clone());
        }
        let folder = scratch.join("scenes");
        let count = self.args.limit.unwrap_or(SCENES);
        let interrupt = &work.interrupt;
        let written = synth::write(*kind, count, SCENES_SEED, &folder, &|_| !interrupt.asked());
        work.ensure_wanted()?;
        written.with_context(|| format!("cannot write scenes to {}", folder.display())).failed()?;
        Ok(folder)
    }

    /// What every model is scored with.
    fn options(&self, data: PathBuf) -> BenchOptions {
        BenchOptions {
            backends: Some(vec![self.args.backend.to_string()]),
            precision: Some(vec![Precision::Native]),
            data: Some(data),
            home: self.args.home.clone(),
            limit: self.args.limit,
            threads: self.args.threads,
            imgsz: self.args.imgsz,
            library: self.args.library.clone(),
            ..BenchOptions::default()
        }
    }
}

/// A choice of layers that was scored.
struct Try {
    kept: usize,
    map: f64,
    quantised: Quantised,
}

/// The choices so far.
struct Tries<'a> {
    gate: &'a Gate<'a>,
    work: &'a Work<'a>,
    spec: &'a QuantiseSpec,
    losses: &'a [LayerLoss],
    scorer: &'a Scorer<'a>,
    scratch: &'a Path,
    whole: f64,
    seen: Vec<(usize, f64)>,
}

impl Tries<'_> {
    /// With so many of the dearest layers in float.
    fn with(&mut self, kept: usize) -> anyhow::Result<Try> {
        let float = self.losses[..kept].iter().map(|loss| loss.name.clone());
        let exclude = self.spec.exclude.iter().cloned().chain(float).collect();
        let quantised = self.work.quantise(&QuantiseSpec { exclude, ..self.spec.clone() })?;
        let file = self.scratch.join(format!("kept-{kept}.onnx"));
        std::fs::write(&file, &quantised.bytes).with_context(|| file.display().to_string()).failed()?;
        let doing = format!("scoring with {kept} layers kept in float");
        self.work.progress.show(&BuildProgress { doing, done: None, eta_s: None });
        let map = self.work.score(self.scorer, &file.display().to_string())?;
        self.seen.push((kept, self.drop(map)));
        Ok(Try { kept, map, quantised })
    }

    /// Points that were lost.
    fn drop(&self, map: f64) -> f64 {
        (self.whole - map) * 100.0
    }

    fn holds(&self, choice: &Try) -> bool {
        self.drop(choice.map) <= self.gate.limit
    }
}

impl fmt::Display for SearchRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SearchRecord { map_drop_max, map_fp32, map_int8, kept_float, .. } = self;
        let lost = (map_fp32 - map_int8) * 100.0;
        let verdict = if self.held { "holds" } else { "does not hold with any choice; the best" };
        write!(
            f,
            "map_drop_max={map_drop_max} {verdict}: mAP50-95 {map_fp32:.4} in fp32, {map_int8:.4} in int8 ({lost:.2} points) with {} more layers in float",
            kept_float.len()
        )?;
        kept_float.iter().try_for_each(|name| write!(f, "\n  kept in float: {name}"))
    }
}
