//! ONNX files that are made from other files, once: checkpoints become graphs, graphs become 16-bit or quantised ones.

use std::path::Path;
use std::time::Instant;

use prony_backend::ModelFile;
use prony_model::pt::Checkpoint;
use prony_model::{sha256_file, sha256_hex};
use prony_source::scenes::kind_for;
use prony_types::{ArtifactSpec, BackendName, BuildProgress, RewriteJob, RewriteSpec};
use serde::Serialize;

use crate::cache::{Cache, Kept, now};
use crate::calibration::data_sha256;
use crate::convert::{ConvertReport, convert};
use crate::error::ForgeError;
use crate::export::{ExportOptions, export};
use crate::prepare::{Prepared, open_as_asked};
use crate::quantise::{QuantiseReport, Site, quantise};
use crate::sidecar::{GRAPH_SCHEMA, GraphMaking, GraphRecipe, GraphSidecar};

/// The state of the code that makes graphs. Raised whenever it makes another file from the same one.
const REVISION: u32 = 2;

/// What a graph is made of, and what is to be known of it.
struct Graph {
    bytes: Vec<u8>,
    notes: Vec<String>,
    report: serde_json::Value,
}

/// The ONNX file of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedFile {
    /// SHA-256 of the checkpoint.
    pub checkpoint_sha256: String,
    /// The file, and whether it was there already.
    pub artifact: ArtifactSpec,
    /// What was decided on the way and should be known.
    pub notes: Vec<String>,
}

/// Takes the ONNX file of a checkpoint from the cache, or makes it.
pub fn exported(checkpoint: &Path, options: &ExportOptions, cache: &Path) -> Result<ExportedFile, ForgeError> {
    let unreadable = |e| ForgeError::Model(format!("cannot read model {}: {e}", checkpoint.display()));
    let checkpoint_sha256 = sha256_file(checkpoint).map_err(unreadable)?;
    let recipe = GraphRecipe {
        source_sha256: checkpoint_sha256.clone(),
        making: GraphMaking::Export(
            serde_json::to_value(options).map_err(ForgeError::json("the options of an export"))?,
        ),
        imgsz: None,
        calibration_sha256: None,
        ranges_by: None,
        revision: REVISION,
    };
    let name = checkpoint.file_stem().unwrap_or_default().to_string_lossy();
    let kept = kept(&Cache::at(cache), &recipe, &name, false, &mut || {}, || {
        let opened = Checkpoint::open(checkpoint).map_err(|e| ForgeError::Model(e.to_string()))?;
        let exported = export(&opened, options)?;
        Ok(Graph { bytes: exported.bytes, notes: exported.notes, report: serde_json::Value::Null })
    })?;
    let Kept { path, sidecar, from_cache, .. } = kept;
    let artifact = ArtifactSpec { path, sha256: sidecar.sha256, from_cache };
    Ok(ExportedFile { checkpoint_sha256, artifact, notes: sidecar.notes })
}

/// Takes a rewritten graph from the cache, or makes it: the whole of a `Rewrite` worker's work. `beat` is called at least
/// a few times a second.
pub fn rewrite(
    job: &RewriteJob,
    on_progress: &mut dyn FnMut(BuildProgress),
    beat: &dyn Fn(),
) -> Result<Prepared, ForgeError> {
    let model = open_as_asked(&job.model)?;
    let kind = kind_for(&job.model.source, &model.info.metadata.names);
    let calibration = job.rewrite.calibration();
    let ranges_by = calibration.map(|_| match &job.runtime {
        Some(runtime) => format!("{} {}", BackendName::OrtCpu, runtime.version),
        None => BackendName::Rten.to_string(),
    });
    let recipe = GraphRecipe {
        source_sha256: model.sha256.clone(),
        making: GraphMaking::Rewrite(without_places(job.rewrite.clone())),
        imgsz: job.imgsz.filter(|_| calibration.is_some()),
        calibration_sha256: calibration.map(|data| data_sha256(data, kind)).transpose()?,
        ranges_by,
        revision: REVISION,
    };
    let cache = Cache::at(&job.cache);
    let mut waiting = || beat();
    let kept = kept(&cache, &recipe, &job.model.name, job.rebuild, &mut waiting, || {
        make(job, &model, &cache, on_progress, beat)
    })?;
    let Kept { path, sidecar, from_cache, rebuilt_because } = kept;
    Ok(Prepared {
        artifact: ArtifactSpec { path, sha256: sidecar.sha256, from_cache },
        build_ms: sidecar.made_s * 1e3,
        rebuilt_because,
        notes: sidecar.notes,
    })
}

fn make(
    job: &RewriteJob,
    model: &ModelFile,
    cache: &Cache,
    on_progress: &mut dyn FnMut(BuildProgress),
    beat: &dyn Fn(),
) -> Result<Graph, ForgeError> {
    match &job.rewrite {
        RewriteSpec::Half(spec) => {
            let made = convert(model, spec)?;
            let notes = half_notes(&made.report);
            Ok(Graph { bytes: made.bytes, notes, report: report(&made.report)? })
        }
        RewriteSpec::Int8(spec) => {
            let site =
                Site { cache: Some(cache.folder()), runtime: job.runtime.as_ref(), imgsz: job.imgsz, threads: None };
            let beat = || {
                beat();
                Ok(())
            };
            let made = quantise(model, &job.model.source, spec, &site, on_progress, &beat)?;
            let notes = quantise_notes(&made.report);
            Ok(Graph { bytes: made.bytes, notes, report: report(&made.report)? })
        }
    }
}

/// A report as it stands in a sidecar.
fn report(report: &impl Serialize) -> Result<serde_json::Value, ForgeError> {
    serde_json::to_value(report).map_err(ForgeError::json("a report"))
}

/// What of a conversion should be known.
fn half_notes(report: &ConvertReport) -> Vec<String> {
    let (half, kept) = (report.nodes_half, report.kept.len());
    let mut notes = vec![format!("{half} nodes in {}, {kept} kept in fp32", report.precision)];
    if report.losses.overflowed > 0 {
        let many = report.losses.overflowed;
        notes.push(format!("{many} weights are beyond the range of {}, their nodes stay in fp32", report.precision));
    }
    notes
}

/// What of a quantisation should be known.
fn quantise_notes(report: &QuantiseReport) -> Vec<String> {
    let (layers, all) = (report.layers.len(), report.layers.len() + report.float.len());
    let (method, frames) = (report.method, report.frames);
    let mut notes = vec![format!("{layers} of {all} layers in int8, ranges by {method} over {frames} frames")];
    if report.ranges_from_cache {
        notes.push("ranges reused from an earlier pass over the same calibration frames".to_owned());
    }
    notes.extend(report.warnings().iter().map(|warning| format!("warning: {warning}")));
    notes
}

/// Where calibration data lie is no part of what they are; their hash is.
fn without_places(mut rewrite: RewriteSpec) -> RewriteSpec {
    if let Some(calibration) = rewrite.calibration_mut() {
        calibration.source = prony_types::SourceSpec::Scenes;
        calibration.seed = 0;
    }
    rewrite
}

fn kept(
    cache: &Cache,
    recipe: &GraphRecipe,
    model: &str,
    remake: bool,
    waiting: &mut dyn FnMut(),
    make: impl FnOnce() -> Result<Graph, ForgeError>,
) -> Result<Kept<GraphSidecar>, ForgeError> {
    cache.keep(
        &recipe.key()?,
        remake,
        waiting,
        || Ok(None),
        || {
            let begun = Instant::now();
            let Graph { bytes, notes, report } = make()?;
            let sidecar = GraphSidecar {
                schema: GRAPH_SCHEMA.to_owned(),
                prony: env!("CARGO_PKG_VERSION").to_owned(),
                created: now(),
                model: model.to_owned(),
                recipe: recipe.clone(),
                sha256: sha256_hex(&bytes),
                size_bytes: bytes.len() as u64,
                made_s: begun.elapsed().as_secs_f64(),
                notes,
                report,
            };
            Ok((bytes, sidecar))
        },
    )
}
