//! What the values of an output are, as the head says: a zeroed score tensor hides among boxes and masks, so each kind is
//! compared with its own.

use prony_backend::Session;
use prony_types::TensorData;
use prony_vision::Head;

/// Channels of four distances as distributions over 16 bins.
const DFL_CHANNELS: usize = 64;
/// Coordinates of a box.
const CORNERS: usize = 4;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A coordinate; any value of a model without a head.
    Boxes,
    /// How sure a box or a class is.
    Scores,
    /// A number of a class, or a count: nothing that could be a little off.
    Classes,
    /// A mask coefficient, a key point, a value of another output.
    Rest,
}

/// The kind of every element of an output, by its place.
pub fn parts_of(head: Option<&Head>, output: usize, shape: &[usize]) -> impl Fn(usize) -> Part + use<> {
    let columns = shape.last().copied().unwrap_or(1).max(1);
    let rows = if shape.len() >= 2 { shape[shape.len() - 2].max(1) } else { 1 };
    let here = |its: usize, by_rows: bool, boxes: usize, scores: usize, classes: usize| {
        (its == output).then_some((by_rows, boxes, boxes + scores, boxes + scores + classes))
    };
    let whole = |boxes: usize, scores: usize, classes: usize| here(output, false, boxes, scores, classes);
    let layout = match head {
        None | Some(Head::None) => whole(columns, 0, 0),
        Some(&Head::Dense { output, classes, transposed, .. }) => here(output, !transposed, CORNERS, classes, 0),
        Some(&Head::Dfl { output, classes, .. }) => here(output, true, DFL_CHANNELS, classes, 0),
        Some(&Head::Objectness { output, classes, .. }) => here(output, false, CORNERS, 1 + classes, 0),
        Some(&Head::RtDetr { output, classes, .. }) => here(output, false, CORNERS, classes, 0),
        Some(&Head::EndToEnd { output, .. }) => here(output, false, CORNERS, 1, 1),
        Some(&Head::EfficientNms { num_dets, boxes, scores, classes, .. }) => match output {
            its if its == boxes => whole(columns, 0, 0),
            its if its == scores => whole(0, columns, 0),
            its if its == classes || its == num_dets => whole(0, 0, columns),
            _ => None,
        },
    };
    move |i| {
        let Some((by_rows, boxes, scores, classes)) = layout else { return Part::Rest };
        match if by_rows { (i / columns) % rows } else { i % columns } {
            channel if channel < boxes => Part::Boxes,
            channel if channel < scores => Part::Scores,
            channel if channel < classes => Part::Classes,
            _ => Part::Rest,
        }
    }
}

/// Whether the model chooses its boxes itself and hands them out in the order of their scores.
pub fn is_final(head: Option<&Head>) -> bool {
    matches!(head, Some(Head::EndToEnd { .. } | Head::EfficientNms { .. }))
}

/// Values by what they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// Box coordinates; all values for a model without a head.
    pub boxes: Vec<f32>,
    /// Scores.
    pub scores: Vec<f32>,
    /// What is neither. Numbers of classes are not here: the boxes have them.
    pub rest: Vec<f32>,
}

impl Parts {
    /// One of `batch` items of every output in slot 0; all values for a batch of 1, and of outputs that are not a batch.
    pub fn of(session: &dyn Session, head: Option<&Head>, item: usize, batch: usize) -> Parts {
        let mut found = Parts::default();
        for index in 0..session.output_count() {
            let view = session.output(0, index);
            let part = parts_of(head, index, view.shape);
            let values = floats(view.data);
            let share = values.len() / batch.max(1);
            let whole = !values.len().is_multiple_of(batch.max(1));
            let range = if whole { 0..values.len() } else { item * share..(item + 1) * share };
            for i in range {
                match part(i) {
                    Part::Boxes => found.boxes.push(values[i]),
                    Part::Scores => found.scores.push(values[i]),
                    Part::Rest => found.rest.push(values[i]),
                    Part::Classes => {}
                }
            }
        }
        found
    }
}

/// The values of an output as floats.
pub fn floats(data: TensorData<'_>) -> Vec<f32> {
    match data {
        TensorData::F32(data) => data.to_vec(),
        TensorData::I32(data) => data.iter().map(|&x| x as f32).collect(),
        TensorData::I64(data) => data.iter().map(|&x| x as f32).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many elements of an output are of each kind: boxes, scores, classes, rest.
    fn count(head: Option<&Head>, output: usize, shape: &[usize]) -> [usize; 4] {
        let part = parts_of(head, output, shape);
        let mut counts = [0; 4];
        (0..shape.iter().product()).for_each(|i| counts[part(i) as usize] += 1);
        counts
    }

    #[test]
    fn mask_channels_are_not_taken_for_a_transposed_output() {
        // Four coordinates, 80 classes, 32 mask coefficients, and the prototypes beside them.
        let shape = [1, 116, 100];
        let head = Head::Dense { output: 0, shape, classes: 80, transposed: false };
        assert_eq!(count(Some(&head), 0, &shape), [400, 8000, 0, 3200]);
        assert_eq!(count(Some(&head), 1, &[1, 32, 4, 4]), [0, 0, 0, 512]);
        let part = parts_of(Some(&head), 0, &shape);
        assert_eq!(
            (part(399), part(400), part(8399), part(8400)),
            (Part::Boxes, Part::Scores, Part::Scores, Part::Rest)
        );
    }

    #[test]
    fn every_head_says_where_its_scores_are() {
        let turned = Head::Dense { output: 0, shape: [1, 50, 9], classes: 3, transposed: true };
        assert_eq!(count(Some(&turned), 0, &[1, 50, 9]), [200, 150, 0, 100]);
        let objectness = Head::Objectness { output: 0, shape: [1, 50, 8], classes: 3 };
        assert_eq!(count(Some(&objectness), 0, &[1, 50, 8]), [200, 200, 0, 0]);
        let dfl = Head::Dfl { output: 0, shape: [1, 67, 50], classes: 3 };
        assert_eq!(count(Some(&dfl), 0, &[1, 67, 50]), [3200, 150, 0, 0]);
        let queries = Head::RtDetr { output: 0, shape: [1, 50, 7], classes: 3 };
        assert_eq!(count(Some(&queries), 0, &[1, 50, 7]), [200, 150, 0, 0]);
        let last = Head::EndToEnd { output: 0, shape: [1, 50, 8] };
        assert_eq!(count(Some(&last), 0, &[1, 50, 8]), [200, 50, 50, 100]);
        let efficient = Head::EfficientNms { num_dets: 0, boxes: 1, scores: 2, classes: 3, capacity: 50 };
        assert_eq!(count(Some(&efficient), 0, &[1, 1]), [0, 0, 1, 0]);
        assert_eq!(count(Some(&efficient), 1, &[1, 50, 4]), [200, 0, 0, 0]);
        assert_eq!(count(Some(&efficient), 2, &[1, 50]), [0, 50, 0, 0]);
        assert_eq!(count(Some(&efficient), 3, &[1, 50]), [0, 0, 50, 0]);
        assert_eq!(count(None, 0, &[1, 1000]), [1000, 0, 0, 0]);
    }
}
