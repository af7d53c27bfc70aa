//! The built-in scenes as a data set. Their truths are known before they are painted.

use std::path::Path;

use prony_types::{DataSpec, GroundTruth, SceneKind};
use rayon::prelude::*;

use super::assembly::{Assembly, Candidate};
use super::{Category, Dataset, LabeledBox, Origin, slice};
use crate::SourceError;
use crate::scenes::{class_names, scene_size, scene_truth};
use crate::synth::MAX_COUNT;

/// How many scenes are used when nobody says.
pub const DEFAULT_SCENES: u32 = 500;

/// A series that the built-in detectors were not trained on.
pub const HELD_OUT_SEED: u64 = 99;

/// The first scenes of a series, or those that a list names by their index.
pub(super) fn open(spec: &DataSpec, kind: SceneKind) -> Result<Dataset, SourceError> {
    let indices = indices(spec)?;
    let mut truths: Vec<Vec<LabeledBox>> =
        indices.par_iter().map(|&index| scene_truth(kind, spec.seed, index).iter().map(truth).collect()).collect();
    let categories = (1..).zip(class_names(kind)).map(|(id, name)| Category { id, name: (*name).to_owned() });
    let mut assembly = Assembly::new(categories.collect());
    for (&index, truths) in indices.iter().zip(&mut truths) {
        assembly.number(truths);
        let candidate = Candidate {
            id: i64::from(index),
            name: format!("{index:06}.png"),
            origin: Origin::Scene(index),
            size: Some(scene_size(kind)),
        };
        assembly.add(candidate, truths);
    }
    let name = format!("scenes: {kind}, {} images, seed {}", indices.len(), spec.seed);
    assembly.finish(name, Path::new("scenes"), Some((kind, spec.seed)))
}

fn indices(spec: &DataSpec) -> Result<Vec<u32>, SourceError> {
    let Some(file) = &spec.ids else {
        let count = spec.limit.unwrap_or(DEFAULT_SCENES);
        if count == 0 || count > MAX_COUNT {
            return Err(SourceError::Count { count, max: MAX_COUNT });
        }
        return Ok((0..count).collect());
    };
    let parse = |line: String| {
        let index = line.strip_suffix(".png").unwrap_or(&line).parse::<u32>().ok().filter(|index| *index < MAX_COUNT);
        index.ok_or_else(|| SourceError::data(file, format!("{line}: not the number of a scene")))
    };
    let mut indices: Vec<u32> = slice::lines(file)?.into_iter().map(parse).collect::<Result<_, _>>()?;
    indices.sort_unstable();
    indices.dedup();
    indices.truncate(spec.limit.map_or(usize::MAX, |limit| limit as usize));
    Ok(indices)
}

/// Without a number yet.
fn truth(object: &GroundTruth) -> LabeledBox {
    let GroundTruth { x, y, w, h, class, area, crowd } = *object;
    let [x, y, w, h, area] = [x, y, w, h, area].map(f64::from);
    LabeledBox { id: 0, category: class, x, y, w, h, area, crowd }
}
