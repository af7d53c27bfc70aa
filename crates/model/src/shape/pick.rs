//! Operators that pick some of the elements, or bring an axis down to one.

use super::Shape;
use super::node::{Axes, Node, axis};

/// One axis of a slice: where it begins, how it steps, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) axis: usize,
    pub(super) start: i64,
    pub(super) step: i64,
    pub(super) count: u64,
}

/// The axes that a slice cuts.
pub(super) fn cuts(node: &Node<'_>) -> Option<Vec<Cut>> {
    let input = node.shape(0)?;
    let given = |at: usize, name: &str| match node.ints_at_or(at, name) {
        Axes::Given(values) => Some(Some(values)),
        Axes::Absent => Some(None),
        Axes::Unknown => None,
    };
    let (starts, ends) = (given(1, "starts")??, given(2, "ends")??);
    let (axes, steps) = (given(3, "axes")?, given(4, "steps")?);
    let fits = |list: Option<&[i64]>| list.is_none_or(|list| list.len() == starts.len());
    if starts.len() != ends.len() || !fits(axes) || !fits(steps) {
        return None;
    }
    let cut = |at: usize| {
        let along = match axes {
            Some(axes) => axis(axes[at], input.len())?,
            None => (at < input.len()).then_some(at)?,
        };
        cut(along, input[along], starts[at], ends[at], steps.map_or(1, |steps| steps[at]))
    };
    (0..starts.len()).map(cut).collect()
}

fn cut(axis: usize, size: u64, start: i64, end: i64, step: i64) -> Option<Cut> {
    let size = i64::try_from(size).ok()?;
    let from_end = |n: i64| if n < 0 { n.saturating_add(size) } else { n };
    let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let start = from_end(start).clamp(if step > 0 { 0 } else { -1 }, if step > 0 { size } else { size - 1 });
    // Before the beginning, for a slice that runs backwards, is as far as it goes.
    let end = from_end(end).clamp(low, high);
    let span = if step > 0 { end - start } else { start - end };
    let count = match step {
        0 => return None,
        _ => u64::try_from(span.max(0)).ok()?.div_ceil(step.unsigned_abs()),
    };
    Some(Cut { axis, start, step, count })
}

pub(super) fn slice(node: &Node<'_>) -> Option<Shape> {
    let mut shape = node.shape(0)?.clone();
    for cut in cuts(node)? {
        shape[cut.axis] = cut.count;
    }
    Some(shape)
}

pub(super) fn gather(node: &Node<'_>) -> Option<Shape> {
    let (data, indices) = (node.shape(0)?, node.shape(1)?);
    let along = axis(node.int("axis").unwrap_or(0), data.len())?;
    Some([&data[..along], &indices[..], &data[along + 1..]].concat())
}

pub(super) fn gather_nd(node: &Node<'_>) -> Option<Shape> {
    let (data, indices) = (node.shape(0)?, node.shape(1)?);
    let batch = usize::try_from(node.int("batch_dims").unwrap_or(0)).ok()?;
    let (last, lead) = indices.split_last()?;
    let rest = data.get(batch.checked_add(usize::try_from(*last).ok()?)?..)?;
    Some([lead, rest].concat())
}

pub(super) fn top_k(node: &Node<'_>) -> Option<Shape> {
    let mut shape = node.shape(0)?.clone();
    let along = axis(node.int("axis").unwrap_or(-1), shape.len())?;
    let k = if node.has(1) { node.int_of(1)? } else { node.int("k")? };
    shape[along] = u64::try_from(k).ok().filter(|&k| k <= shape[along])?;
    Some(shape)
}

/// Axes brought down to 1, and left out where they are not kept.
fn without(shape: &[u64], axes: &[usize], keep: bool) -> Shape {
    let axis = |(at, &n): (usize, &u64)| match (axes.contains(&at), keep) {
        (false, _) => Some(n),
        (true, true) => Some(1),
        (true, false) => None,
    };
    shape.iter().enumerate().filter_map(axis).collect()
}

pub(super) fn reduce(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    let keep = node.int("keepdims").unwrap_or(1) != 0;
    let given = match node.ints_at_or(1, "axes") {
        Axes::Unknown => return None,
        Axes::Absent | Axes::Given([]) => None,
        Axes::Given(axes) => Some(axes),
    };
    let axes: Vec<usize> = match given {
        None if node.int("noop_with_empty_axes") == Some(1) => return Some(input.clone()),
        None => (0..input.len()).collect(),
        Some(axes) => axes.iter().map(|&at| axis(at, input.len())).collect::<Option<_>>()?,
    };
    Some(without(input, &axes, keep))
}

/// The place of the largest or smallest along an axis.
pub(super) fn place(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    let along = axis(node.int("axis").unwrap_or(0), input.len())?;
    Some(without(input, &[along], node.int("keepdims").unwrap_or(1) != 0))
}

pub(super) fn one_hot(node: &Node<'_>) -> Option<Shape> {
    let mut shape = node.shape(0)?.clone();
    let depth = u64::try_from(node.int_of(1)?).ok()?;
    let at = axis(node.int("axis").unwrap_or(-1), shape.len() + 1)?;
    shape.insert(at, depth);
    Some(shape)
}
