//! Ready-made matrices, without the batches that no single cell of would fit into the machine's memory.

use prony_types::{BackendName, ModelInfo, ModelSpec, Precision};

use prony_judge::stats::P90_NEEDS;

use crate::options::Tier;

/// What a tier stands for where no flag says otherwise.
pub(super) struct Choice {
    pub(super) backends: Vec<BackendName>,
    pub(super) precisions: Vec<Precision>,
    pub(super) batches: Vec<u32>,
    pub(super) duration_s: Option<f64>,
    /// Samples that a cell gets in any case, however slow it is.
    pub(super) at_least: Option<u64>,
    pub(super) limit_s: Option<f64>,
}

impl Choice {
    pub(super) fn of(tier: Tier) -> Choice {
        use Precision::{Bf16, Fp16, Fp32, Int8, Tf32};
        let backends = BackendName::ALL.to_vec();
        let core = Choice {
            backends,
            precisions: vec![Fp32, Fp16, Int8],
            batches: vec![1],
            duration_s: None,
            at_least: None,
            limit_s: None,
        };
        match tier {
            // As many samples as a p90 needs, so that a slow model has more than its median.
            Tier::Quick => Choice { precisions: vec![Fp32], duration_s: Some(2.0), at_least: Some(P90_NEEDS), ..core },
            Tier::Core => core,
            Tier::Full => Choice {
                precisions: vec![Fp32, Tf32, Fp16, Bf16, Int8],
                batches: vec![1, 4, 8],
                limit_s: Some(60.0),
                ..core
            },
        }
    }
}

/// Host memory of a worker beside its model: the library, its threads, the frames.
const WORKER_BYTES: u64 = 200 << 20;
/// Weights in memory: as read, as packed, and while one becomes the other.
const WEIGHT_COPIES: u64 = 3;
/// Activations of a detector, in multiples of its input; a coarse figure, from models of this kind.
const ACTIVATIONS: u64 = 24;
/// A cell, and once more as much for the reference and the second session that its outputs are checked with.
const SESSIONS: u64 = 2;

/// Drops the largest batches until a cell fits into memory by itself; says what was dropped. Cells that do not fit together
/// are loaded one after the other.
pub(super) fn fitting(
    mut batches: Vec<u32>,
    models: &[&(ModelSpec, ModelInfo)],
    imgsz: Option<[u32; 2]>,
    available_bytes: Option<u64>,
) -> (Vec<u32>, Option<String>) {
    let Some(available) = available_bytes else { return (batches, None) };
    let need = |batch: u32| -> u64 {
        let of_model = |(_, info): &(ModelSpec, ModelInfo)| -> u64 {
            let [height, width] = imgsz.or(info.metadata.imgsz).unwrap_or([640, 640]);
            let input = u64::from(height) * u64::from(width) * 3 * 4;
            WORKER_BYTES + info.parameters * 4 * WEIGHT_COPIES + input * u64::from(batch) * ACTIVATIONS
        };
        SESSIONS * models.iter().map(|model| of_model(model)).max().unwrap_or(0)
    };
    let asked = batches.last().map_or(0, |&batch| need(batch));
    let mut dropped = Vec::new();
    while batches.len() > 1 && batches.last().is_some_and(|&batch| need(batch) > available) {
        dropped.extend(batches.pop());
    }
    let mib = |bytes: u64| bytes >> 20;
    let note = (!dropped.is_empty()).then(|| {
        let dropped: Vec<String> = dropped.iter().rev().map(ToString::to_string).collect();
        format!(
            "batches of {} left out: one cell would need about {} MiB, {} MiB are free; ask with --batch",
            dropped.join(" and "),
            mib(asked),
            mib(available)
        )
    });
    (batches, note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_types::SceneKind;

    #[test]
    fn a_small_machine_gets_smaller_batches_and_is_told() {
        let file = prony_model::ModelFile::builtin(SceneKind::Rgb).unwrap();
        let source = prony_types::ModelSource::Builtin(SceneKind::Rgb);
        let spec = ModelSpec::new("m", source, file.sha256.clone());
        let model = (spec, file.info);
        let fit = |available| fitting(vec![1, 4, 8], &[&model], None, available);
        assert_eq!(fit(Some(64 << 30)), (vec![1, 4, 8], None));
        assert_eq!(fit(None).0, [1, 4, 8]);
        assert_eq!(fit(Some(4 << 30)).0, [1, 4, 8], "cells are loaded in turn, so one of them must fit, not all");
        let (batches, note) = fit(Some(450 << 20));
        assert_eq!(batches, [1]);
        assert!(note.unwrap().starts_with("batches of 4 and 8 left out"));
    }
}
