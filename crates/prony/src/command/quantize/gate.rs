//! How many layers stay in float for a limit on accuracy to hold. The file that would be written is scored by
//! `prony eval` itself, in a process of its own.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use prony_forge::quantise::{LayerLoss, Quantised};
use prony_types::{BuildProgress, GateName, ModelSource, QuantiseSpec, RunRecord};
use serde::Serialize;

use super::Work;
use crate::args::QuantizeArgs;

/// A limit on accuracy, and what it is judged on.
pub(super) struct Gate<'a> {
    args: &'a QuantizeArgs,
    limit: f64,
    data: PathBuf,
}

/// How a search ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Found {
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
    pub(super) found: Found,
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
        let scratch = tempfile::tempdir().context("cannot make a folder for what is scored")?;
        let data = self.data(work.source, scratch.path())?;
        let whole = self.score(work, work.name, &data, scratch.path())?;
        let mut tries =
            Tries { gate: self, work, spec, losses, data: &data, scratch: scratch.path(), whole, seen: Vec::new() };
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
        let found = Found {
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
    fn data(&self, source: &ModelSource, scratch: &Path) -> anyhow::Result<PathBuf> {
        let ModelSource::Builtin(kind) = source else { return Ok(self.data.clone()) };
        if self.data.as_os_str() != "scenes" {
            return Ok(self.data.clone());
        }
        let folder = scratch.join("scenes");
        let count = self.args.limit.unwrap_or(500).to_string();
        let made = Command::new(std::env::current_exe()?)
            .args(["data", "synth", "--quiet", "--seed", "99", "--count", &count, "--kind", kind.name()])
            .arg(&folder)
            .stdout(Stdio::null())
            .status()?;
        ensure!(made.success(), "cannot write scenes to {}", folder.display());
        Ok(folder)
    }

    /// mAP50-95 of a model, by `prony eval`.
    fn score(&self, work: &Work<'_>, model: &str, data: &Path, scratch: &Path) -> anyhow::Result<f64> {
        work.end_if_asked();
        let mut eval = Command::new(std::env::current_exe()?);
        eval.args(["eval", model, "--json", "--quiet", "--precision", "native", "--data"]).arg(data);
        eval.args(["--backends", self.args.backend.name(), "--out"]).arg(scratch);
        let size = self.args.imgsz.map(|size| format!("{}x{}", size.0[0], size.0[1]));
        let options = [
            ("--home", self.args.home.as_ref().map(|home| home.display().to_string())),
            ("--limit", self.args.limit.map(|limit| limit.to_string())),
            ("--threads", self.args.threads.map(|threads| threads.to_string())),
            ("--imgsz", size),
        ];
        for (flag, value) in options {
            eval.args(value.iter().flat_map(|value| [flag, value]));
        }
        for library in &self.args.library {
            let mut library_word = OsString::from(format!("{}=", library.name));
            library_word.push(&library.path);
            eval.arg("--library").arg(library_word);
        }
        eval.args(prony_runtimes::policy::policy().flag());
        let output = eval.stderr(Stdio::piped()).output().context("cannot start `prony eval`")?;
        work.end_if_asked();
        let said = || String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        let record: RunRecord =
            serde_json::from_slice(&output.stdout).with_context(|| format!("{model}: {}", said()))?;
        let cell = record.cells.first().with_context(|| format!("{model}: {}", said()))?;
        let reason = cell.reason.clone().unwrap_or_else(said);
        let accuracy = cell.accuracy.as_ref().with_context(|| format!("{model} could not be scored: {reason}"))?;
        accuracy.figures.map_50_95.with_context(|| format!("{model} could not be scored: the data have no objects"))
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
    data: &'a Path,
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
        std::fs::write(&file, &quantised.bytes).with_context(|| file.display().to_string())?;
        let doing = format!("scoring with {kept} layers kept in float");
        self.work.progress.show(&BuildProgress { doing, done: None, eta_s: None });
        let map = self.gate.score(self.work, &file.display().to_string(), self.data, self.scratch)?;
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

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { map_drop_max, map_fp32, map_int8, kept_float, .. } = self;
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
