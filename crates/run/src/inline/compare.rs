//! Two models, or two backends, on the same frames.

mod finding;
mod frames;
mod nodes;
mod side;

use std::path::Path;

use anyhow::ensure;
use prony_bench::agreement::Seen;
use prony_judge::agreement::worse_tensor;
use prony_judge::{Bounds, agreement};
use prony_types::{Agreement, HeadChoice, Precision, TensorAgreement};

pub use self::finding::{Finding, NO_BOXES, NodeFinding, NodesFinding, OutputFinding, SideRecord, Thresholds};
use self::frames::SharedFrames;
use self::side::Side;
pub use self::side::{Prepared, image_size_of};

/// What is compared, and on what.
pub struct Comparison<'a> {
    /// The two as they were named, the reference first.
    pub names: [&'a str; 2],
    /// A folder of images, or `scenes`; without one, what fits the models.
    pub source: Option<&'a Path>,
    /// Frames to run.
    pub frames: u32,
    /// Seed of built-in scenes and random tensors.
    pub seed: u64,
    /// Least signal-to-noise ratio in dB, instead of what the precision asks for.
    pub bound: Option<f64>,
    /// How outputs become boxes.
    pub head: HeadChoice,
}

/// Runs both on the same frames and says how near they are.
pub fn compare(spec: &Comparison<'_>, [of_a, of_b]: &[Prepared; 2]) -> anyhow::Result<Finding> {
    let [name_a, name_b] = spec.names;
    let mut a = Side::open(name_a, of_a)?;
    let mut b = Side::open(name_b, of_b)?;
    let (shapes_a, shapes_b) = (a.input_shapes(), b.input_shapes());
    ensure!(shapes_a == shapes_b, "{name_a} takes {shapes_a}, {name_b} takes {shapes_b}: no frame fits both");
    let frames = SharedFrames::new(spec, [&of_a.model, &of_b.model], a.inputs())?;
    let mut notes = frames.notes.clone();
    notes.extend([&a, &b].into_iter().flat_map(|side| side.warnings()));
    let precision = coarser(a.precision(), b.precision());
    let bounds = Bounds::of(precision);
    let thresholds = Thresholds {
        sqnr_db: spec.bound.unwrap_or(bounds.sqnr_db),
        cosine: spec.bound.is_none().then_some(bounds.cosine),
        matched_boxes: bounds.matched,
    };
    if frames.is_images() && spec.head != HeadChoice::None {
        for side in [&mut a, &mut b] {
            side.find_head(&frames, spec.head, &mut notes)?;
        }
    }
    let pairs = pairs(a.output_names(), b.output_names());
    let mut outputs: Vec<Option<TensorAgreement>> = vec![None; pairs.len()];
    let mut seen: Option<Seen> = None;
    for frame in 0..frames.len() {
        let (of_a, of_b) = (a.run(&frames, frame)?, b.run(&frames, frame)?);
        for (place, &(i, j)) in outputs.iter_mut().zip(&pairs) {
            let now = agreement::tensors(&of_a.values[i], &of_b.values[j]);
            *place = Some(place.map_or(now, |before| worse_tensor(before, now)));
        }
        if let (Some(of_a), Some(of_b)) = (&of_a.compared, &of_b.compared) {
            seen.get_or_insert_default().add(of_a, of_b, &[]);
        }
    }
    let whole = seen.map(|Seen { boxes, scores, rest, tally }| Agreement {
        reference: String::new(),
        boxes,
        scores,
        rest,
        matched_boxes: tally.share(),
        compared_boxes: Some(tally.boxes()),
        sensitivity: None,
    });
    let no_boxes = whole.as_ref().is_some_and(|whole| whole.matched_boxes.is_none());
    // Rows of final boxes are no pairs, so each was compared with its like, where there is any.
    let alike = whole.as_ref().is_some_and(|whole| whole.boxes.is_some() || whole.matched_boxes.is_some());
    let ordered = (a.has_final_boxes() || b.has_final_boxes()) && alike;
    let rows = pairs.iter().zip(outputs).filter_map(|(&(i, j), agreement)| {
        let agreement = agreement?;
        let agree = ordered || thresholds.hold(&agreement);
        Some(OutputFinding { a: a.output_names()[i].clone(), b: b.output_names()[j].clone(), agreement, agree })
    });
    let rows: Vec<OutputFinding> = rows.collect();
    if ordered {
        notes.push("final boxes come in the order of their scores, so they are compared with their like".to_owned());
    }
    if no_boxes {
        notes.push(finding::NO_BOXES.to_owned() + "; give --source a folder of images with objects");
    }
    let unmatched = unmatched(&a, &b, &pairs);
    let agree = rows.iter().all(|row| row.agree)
        && unmatched.is_empty()
        && whole.as_ref().is_none_or(|whole| thresholds.hold_boxes(whole));
    let nodes = nodes::look(&mut notes, [&a, &b], &frames, &thresholds)?;
    Ok(Finding {
        schema: finding::SCHEMA,
        a: a.record(),
        b: b.record(),
        input: frames.source.clone(),
        frames: frames.len(),
        precision,
        bounds: thresholds,
        outputs: rows,
        unmatched,
        heads: whole,
        nodes,
        notes,
        agree,
    })
}

/// The one whose rounding explains more.
fn coarser(a: Precision, b: Precision) -> Precision {
    if Bounds::of(a).sqnr_db <= Bounds::of(b).sqnr_db { a } else { b }
}

/// Outputs that belong together: by name, and what is left over by position.
fn pairs(a: &[String], b: &[String]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> =
        a.iter().enumerate().filter_map(|(i, name)| Some((i, b.iter().position(|other| other == name)?))).collect();
    let left_a = (0..a.len()).filter(|&i| !pairs.iter().any(|&(taken, _)| taken == i)).collect::<Vec<_>>();
    let left_b = (0..b.len()).filter(|&j| !pairs.iter().any(|&(_, taken)| taken == j)).collect::<Vec<_>>();
    pairs.extend(left_a.into_iter().zip(left_b));
    pairs.sort_unstable();
    pairs
}

fn unmatched(a: &Side<'_>, b: &Side<'_>, pairs: &[(usize, usize)]) -> Vec<String> {
    let left = |side: &Side<'_>, taken: &dyn Fn(&(usize, usize)) -> usize| {
        let names = side.output_names();
        let free = (0..names.len()).filter(|&i| !pairs.iter().any(|pair| taken(pair) == i));
        free.map(|i| format!("{} of {}", names[i], side.name)).collect::<Vec<_>>()
    };
    [left(a, &|pair| pair.0), left(b, &|pair| pair.1)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_pair_by_name_and_the_rest_by_place() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(pairs(&names(&["a", "b"]), &names(&["b", "a"])), [(0, 1), (1, 0)]);
        assert_eq!(pairs(&names(&["x", "b"]), &names(&["b", "y"])), [(0, 1), (1, 0)]);
        assert_eq!(pairs(&names(&["x"]), &names(&["y", "z"])), [(0, 0)]);
    }
}
