//! Node by node: where two models of the same graph begin to differ.

use prony_judge::agreement::{self, worse_tensor};
use prony_model::{Tap, common_taps};
use prony_types::{BackendName, TensorAgreement};

use super::finding::{NodeFinding, NodesFinding, Thresholds};
use super::frames::SharedFrames;
use super::side::Side;

/// Tensors that are looked at in one session: all of them at once would take the memory of them all.
const AT_ONCE: usize = 64;
/// Nodes that are told on either side of the first that diverges, or the noisiest where none does.
const AROUND: usize = 3;

/// Every tensor that both compute under the same name, in the order of the first model, up to where they diverge. `None`
/// where that cannot be looked at; a note says why.
pub(super) fn look(
    notes: &mut Vec<String>,
    sides: [&Side<'_>; 2],
    frames: &SharedFrames,
    thresholds: &Thresholds,
) -> anyhow::Result<Option<NodesFinding>> {
    let [a, b] = sides;
    if let Some(engine) = sides.into_iter().find(|side| side.is_engine()) {
        notes.push(format!("{} runs as an engine, which has no ONNX nodes, so nodes were not compared", engine.name));
        return Ok(None);
    }
    let able = |side: &Side<'_>| matches!(side.backend(), BackendName::Rten | BackendName::OrtCpu);
    if !(able(a) && able(b)) {
        notes.push("nodes are looked at on rten and ort-cpu only".to_owned());
        return Ok(None);
    }
    let taps = common_taps(a.model, b.model)?;
    if taps.is_empty() {
        notes.push("the two have no tensors of the same name, so nodes were not looked at".to_owned());
        return Ok(None);
    }
    let mut seen: Vec<NodeFinding> = Vec::new();
    for chunk in taps.chunks(AT_ONCE) {
        match chunk_of(chunk, sides, frames) {
            Ok(found) => seen.extend(chunk.iter().zip(found).map(|(tap, agreement)| {
                let Tap { node, op, tensor } = tap.clone();
                NodeFinding { node, op, tensor, agreement, diverges: !thresholds.holds_noise(&agreement) }
            })),
            // What keeps a library from showing a tensor is no fault of the models.
            Err(error) => {
                notes.push(format!("nodes were looked at only up to {} of {}: {error:#}", seen.len(), taps.len()));
                break;
            }
        }
        if seen.iter().any(|node| node.diverges) {
            break;
        }
    }
    let first = seen.iter().position(|node| node.diverges);
    let around = match first {
        Some(at) => seen[at.saturating_sub(AROUND)..seen.len().min(at + AROUND + 1)].to_vec(),
        None => {
            let mut noisiest = seen.clone();
            noisiest.sort_by(|x, y| noise(y).total_cmp(&noise(x)));
            noisiest.truncate(AROUND);
            noisiest
        }
    };
    Ok(Some(NodesFinding {
        common: taps.len(),
        looked_at: seen.len(),
        first: first.map(|at| seen[at].clone()),
        around,
    }))
}

/// Less is better; without any noise it is the least there is.
fn noise(node: &NodeFinding) -> f64 {
    node.agreement.sqnr_db.map_or(f64::NEG_INFINITY, |db| -db)
}

/// The worst over the frames of each tensor.
fn chunk_of(chunk: &[Tap], [a, b]: [&Side<'_>; 2], frames: &SharedFrames) -> anyhow::Result<Vec<TensorAgreement>> {
    let names: Vec<&str> = chunk.iter().map(|tap| tap.tensor.as_str()).collect();
    let (model_a, model_b) = (a.model.with_outputs(&names)?, b.model.with_outputs(&names)?);
    let (fit_a, fit_b) = (a.fit(), b.fit());
    let (mut a, mut b) = (a.tapped(&model_a)?, b.tapped(&model_b)?);
    let place = |side: &Side<'_>, name: &str| side.output_names().iter().position(|output| output == name);
    let mut worst: Vec<Option<TensorAgreement>> = vec![None; chunk.len()];
    for frame in 0..frames.len() {
        let (of_a, of_b) = (a.run_fitted(frames, frame, fit_a)?, b.run_fitted(frames, frame, fit_b)?);
        for (worst, name) in worst.iter_mut().zip(&names) {
            let (Some(i), Some(j)) = (place(&a, name), place(&b, name)) else { continue };
            let now = agreement::tensors(&of_a.values[i], &of_b.values[j]);
            *worst = Some(worst.map_or(now, |before| worse_tensor(before, now)));
        }
    }
    worst.into_iter().map(|found| found.ok_or_else(|| anyhow::anyhow!("a tensor did not come out"))).collect()
}
