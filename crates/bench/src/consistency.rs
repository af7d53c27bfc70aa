//! Whether a cell agrees with itself, which needs no data: the same frame twice, in every row of a batch, in a session made
//! anew and in a batch of another size.

use prony_backend::{Buffer, ModelFile, Session, SessionSpec, backend};
use prony_judge::agreement::{self, Bounds};
use prony_types::{BackendName, CellSpec, ConsistencyCheck, Precision, Sensitivity};
use prony_vision::Head;

use crate::measure::{Cell, MeasureError};
use crate::outputs::head_of;
use crate::parts::{Parts, is_final};
use crate::planned::takes_any_batch;

/// The name of each check.
const TWICE: &str = "the same frame twice";
const ALONE: &str = "each frame of a batch alone";
const FRESH: &str = "a fresh session";
const SIZES: &str = "batches of 1 and more";

/// What a session said of the first frame, and all that is needed to ask another one.
pub(crate) struct Witness {
    head: Option<Head>,
    inputs: Vec<Buffer>,
    /// By item of the batch.
    items: Vec<Parts>,
    /// Values are the same when they lie as near as the order of sums explains.
    least: Least,
}

/// The lowest cosine of boxes, scores and the rest: that of two libraries in fp32, or what several times the model's own
/// rounding leaves.
#[derive(Clone, Copy, Debug)]
struct Least([f64; 3]);

impl Least {
    fn of(sensitivity: Option<Sensitivity>) -> Least {
        let moved = sensitivity.map_or([None; 3], |moved| [moved.boxes, moved.scores, moved.rest]);
        Least(moved.map(|moved| Bounds::of(Precision::Fp32).with_rounding(moved).cosine))
    }
}

impl Witness {
    /// Runs the first frame once more.
    pub(crate) fn of(cell: &mut Cell, sensitivity: Option<Sensitivity>) -> Result<Witness, MeasureError> {
        cell.replay(0)?;
        let head = head_of(cell).cloned();
        let count = cell.session.inputs().len();
        let inputs = (0..count).map(|index| Buffer::copy_of(&cell.session.input(0, index))).collect();
        let items = items(&*cell.session, head.as_ref(), cell.batch);
        Ok(Witness { head, inputs, items, least: Least::of(sensitivity) })
    }

    fn compared(&self, name: &str, before: &[Parts], after: &[Parts]) -> ConsistencyCheck {
        compared(name, self.head.as_ref(), self.least, before, after)
    }

    /// Puts its input into a session of the same shape.
    pub(crate) fn fill(&self, session: &mut dyn Session) {
        for (index, values) in self.inputs.iter().enumerate() {
            values.copy_to(session.input(0, index));
        }
    }
}

/// What can be asked of the session that was timed.
pub(crate) fn within(
    cell: &mut Cell,
    sensitivity: Option<Sensitivity>,
) -> Result<(Witness, Vec<ConsistencyCheck>), MeasureError> {
    let witness = Witness::of(cell, sensitivity)?;
    cell.run_filled()?;
    let again = items(&*cell.session, witness.head.as_ref(), cell.batch);
    let mut checks = vec![witness.compared(TWICE, &witness.items, &again)];
    if cell.batch > 1 && witness.head.is_some() {
        let mut alone = Vec::with_capacity(cell.batch);
        for frame in 0..cell.batch {
            cell.replay_alone(frame)?;
            // Any item would do, and each is asked for once.
            alone.push(Parts::of(&*cell.session, witness.head.as_ref(), cell.batch - 1 - frame, cell.batch));
        }
        checks.push(witness.compared(ALONE, &witness.items, &alone));
    }
    Ok((witness, checks))
}

/// What needs sessions of their own; the timed one is gone by now. `spec` is the timed one's.
pub(crate) fn across(
    witness: &Witness,
    spec: &SessionSpec<'_>,
    cell: &CellSpec,
    model: &ModelFile,
) -> Vec<ConsistencyCheck> {
    if cell.backend == BackendName::OrtTensorrt {
        let detail = "a session of ort-tensorrt takes minutes to make".to_owned();
        return vec![ConsistencyCheck { name: FRESH.into(), holds: None, detail }];
    }
    let mut checks = vec![in_session(FRESH, witness, spec, cell, cell.batch)];
    // An engine has the shapes that it was built for.
    if takes_any_batch(model) && spec.artifact.is_none() && witness.head.is_some() {
        let other = if cell.batch == 1 { 2 } else { 1 };
        checks.push(in_session(SIZES, witness, spec, cell, other));
    }
    checks
}

fn in_session(name: &str, witness: &Witness, spec: &SessionSpec<'_>, cell: &CellSpec, batch: u32) -> ConsistencyCheck {
    let asked = || -> Result<Vec<Parts>, String> {
        let spec = SessionSpec { batch, ..spec.clone() };
        let mut session = backend(cell.backend).open(&spec).map_err(|e| e.to_string())?;
        let from = cell.batch as usize;
        if batch == cell.batch {
            witness.fill(&mut *session);
        } else {
            for (index, values) in witness.inputs.iter().enumerate() {
                let whole = first_item(values, from, batch as usize).ok_or("its input holds no images")?;
                whole.copy_to(session.input(0, index));
            }
        }
        session.run(0).map_err(|e| e.to_string())?;
        Ok(items(&*session, witness.head.as_ref(), batch as usize))
    };
    match asked() {
        Ok(found) if batch == cell.batch => witness.compared(name, &witness.items, &found),
        Ok(found) => {
            let first = vec![witness.items[0].clone(); found.len()];
            let check = witness.compared(name, &first, &found);
            ConsistencyCheck { detail: format!("{} against {batch}: {}", cell.batch, check.detail), ..check }
        }
        Err(reason) => ConsistencyCheck { name: name.into(), holds: None, detail: reason },
    }
}

/// The first of `from` images, `to` times.
fn first_item(values: &Buffer, from: usize, to: usize) -> Option<Buffer> {
    match values {
        Buffer::F32(data) => Some(Buffer::F32(data[..data.len() / from].repeat(to))),
        Buffer::F16(data) => Some(Buffer::F16(data[..data.len() / from].repeat(to))),
        _ => None,
    }
}

/// Values of every item of a batch.
fn items(session: &dyn Session, head: Option<&Head>, batch: usize) -> Vec<Parts> {
    (0..batch).map(|item| Parts::of(session, head, item, batch)).collect()
}

/// The check in words; the item that is furthest off decides.
fn compared(
    name: &str,
    head: Option<&Head>,
    Least(least): Least,
    before: &[Parts],
    after: &[Parts],
) -> ConsistencyCheck {
    // Final boxes come in the order of their scores: two that nearly tie may trade places.
    let sorted = |values: &[f32]| {
        let mut values = values.to_vec();
        if is_final(head) {
            values.sort_by(f32::total_cmp);
        }
        values
    };
    let (mut cosine, mut max_abs, mut holds) = (1.0f64, 0.0f64, before.len() == after.len());
    for (a, b) in before.iter().zip(after) {
        let parts = [(&a.boxes, &b.boxes), (&a.scores, &b.scores), (&a.rest, &b.rest)];
        for ((a, b), least) in parts.into_iter().zip(least) {
            let tensor = agreement::tensors(&sorted(a), &sorted(b));
            holds &= tensor.cosine > least;
            cosine = cosine.min(tensor.cosine);
            max_abs = max_abs.max(tensor.max_abs);
        }
    }
    let detail = match max_abs {
        0.0 => "equal to the bit".to_owned(),
        agreement::WORST => "not of one shape, or not finite".to_owned(),
        _ => format!("cosine {cosine:.6}, at most {max_abs:.2e} apart"),
    };
    ConsistencyCheck { name: name.into(), holds: Some(holds && max_abs != agreement::WORST), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(boxes: &[f32], scores: &[f32]) -> Parts {
        Parts { boxes: boxes.to_vec(), scores: scores.to_vec(), rest: Vec::new() }
    }

    fn compared(head: Option<&Head>, before: &[Parts], after: &[Parts]) -> ConsistencyCheck {
        super::compared(TWICE, head, Least::of(None), before, after)
    }

    #[test]
    fn scores_that_went_missing_are_seen_beside_large_boxes() {
        let whole = [outputs(&[300.0, 200.0], &[0.5, 0.25])];
        let check = compared(None, &whole, &whole);
        assert_eq!((check.holds, check.detail.as_str()), (Some(true), "equal to the bit"));
        let check = compared(None, &whole, &[outputs(&[300.0, 200.0], &[0.0, 0.0])]);
        assert_eq!(check.holds, Some(false), "{check:?}");
        let check = compared(None, &whole, &[outputs(&[300.0, 200.0], &[0.5, f32::NAN])]);
        assert_eq!((check.holds, check.detail.as_str()), (Some(false), "not of one shape, or not finite"));
        assert_eq!(compared(None, &whole, &[]).holds, Some(false), "an item is missing");
    }

    #[test]
    fn final_boxes_may_trade_places() {
        let head = Head::EndToEnd { output: 0, shape: [1, 2, 6] };
        let (one, two) = ([outputs(&[1.0, 9.0], &[0.5, 0.4])], [outputs(&[9.0, 1.0], &[0.4, 0.5])]);
        assert_eq!(compared(Some(&head), &one, &two).holds, Some(true));
        assert_eq!(compared(None, &one, &two).holds, Some(false));
    }
}
