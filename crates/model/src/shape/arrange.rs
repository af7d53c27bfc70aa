//! Operators that arrange what is there anew: other axes, the same or repeated elements.

use super::node::{Axes, Node, axis};
use super::product::broadcast;
use super::{Shape, count};

/// The shape that is asked for, with 0 for an axis that stays and -1 for what is left.
pub(super) fn reshape(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    let Axes::Given(asked) = node.ints_at_or(1, "shape") else { return None };
    let keep_zero = node.int("allowzero") == Some(1);
    let mut left = None;
    let mut shape = Shape::new();
    for (at, &n) in asked.iter().enumerate() {
        shape.push(match n {
            0 if !keep_zero => *input.get(at)?,
            -1 if left.is_none() => {
                left = Some(at);
                1
            }
            n => u64::try_from(n).ok()?,
        });
    }
    let (have, rest) = (count(input)?, count(&shape)?);
    match left {
        Some(at) if rest > 0 && have % rest == 0 => shape[at] = have / rest,
        Some(_) => return None,
        None if have != rest => return None,
        None => {}
    }
    Some(shape)
}

pub(super) fn transpose(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    match node.ints("perm") {
        None => Some(input.iter().rev().copied().collect()),
        Some(order) if order.len() == input.len() => {
            order.iter().map(|&at| Some(input[axis(at, input.len())?])).collect()
        }
        Some(_) => None,
    }
}

pub(super) fn flatten(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    let at = node.int("axis").unwrap_or(1);
    let rank = i64::try_from(input.len()).ok()?;
    let at = usize::try_from(if at < 0 { at.checked_add(rank)? } else { at }).ok().filter(|&at| at <= input.len())?;
    Some(vec![count(&input[..at])?, count(&input[at..])?])
}

pub(super) fn squeeze(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    let gone: Vec<usize> = match node.ints_at_or(1, "axes") {
        Axes::Unknown => return None,
        Axes::Absent => (0..input.len()).filter(|&at| input[at] == 1).collect(),
        Axes::Given(axes) => axes.iter().map(|&at| axis(at, input.len())).collect::<Option<_>>()?,
    };
    if gone.iter().any(|&at| input[at] != 1) {
        return None;
    }
    Some(input.iter().enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, &n)| n).collect())
}

pub(super) fn unsqueeze(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    let Axes::Given(axes) = node.ints_at_or(1, "axes") else { return None };
    let rank = input.len() + axes.len();
    let new: Vec<usize> = axes.iter().map(|&at| axis(at, rank)).collect::<Option<_>>()?;
    let mut rest = input.iter();
    let shape = (0..rank).map(|at| if new.contains(&at) { Some(1) } else { rest.next().copied() });
    let shape = shape.collect::<Option<Shape>>()?;
    rest.next().is_none().then_some(shape)
}

/// Inputs from one on, one behind the other.
pub(super) fn concat(node: &Node<'_>, inputs: impl Iterator<Item = usize>) -> Option<Shape> {
    let mut whole: Option<Shape> = None;
    for at in inputs {
        let next = node.shape(at)?;
        let Some(shape) = &mut whole else {
            whole = Some(next.clone());
            continue;
        };
        let along = axis(node.int("axis").unwrap_or(1), shape.len())?;
        let others =
            |of: &[u64]| of.iter().enumerate().filter(|(at, _)| *at != along).map(|(_, &n)| n).collect::<Vec<_>>();
        if shape.len() != next.len() || others(shape) != others(next) {
            return None;
        }
        shape[along] = shape[along].checked_add(next[along])?;
    }
    whole
}

pub(super) fn split(node: &Node<'_>) -> Option<Vec<Option<Shape>>> {
    let input = node.shape(0)?;
    let along = axis(node.int("axis").unwrap_or(0), input.len())?;
    let parts = node.proto.output.len() as u64;
    let sizes: Vec<u64> = match node.ints_at_or(1, "split") {
        Axes::Unknown => return None,
        Axes::Given(sizes) => sizes.iter().map(|&n| u64::try_from(n).ok()).collect::<Option<_>>()?,
        Axes::Absent => {
            // The last part is smaller where the axis does not divide.
            let part = input[along].div_ceil(parts.max(1));
            (0..parts).map(|at| part.min(input[along].saturating_sub(part.saturating_mul(at)))).collect()
        }
    };
    if sizes.len() as u64 != parts || sizes.iter().try_fold(0u64, |sum, &n| sum.checked_add(n)) != Some(input[along]) {
        return None;
    }
    let part = |&size: &u64| {
        let mut shape = input.clone();
        shape[along] = size;
        Some(shape)
    };
    Some(sizes.iter().map(part).collect())
}

pub(super) fn expand(node: &Node<'_>) -> Option<Shape> {
    let asked = node.ints_of(1)?.iter().map(|&n| u64::try_from(n).ok()).collect::<Option<Shape>>()?;
    broadcast(node.shape(0)?, &asked)
}

pub(super) fn tile(node: &Node<'_>) -> Option<Shape> {
    let (input, times) = (node.shape(0)?, node.ints_of(1)?);
    if input.len() != times.len() {
        return None;
    }
    input.iter().zip(times).map(|(n, &times)| n.checked_mul(u64::try_from(times).ok()?)).collect()
}

pub(super) fn pad(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    let Axes::Given(pads) = node.ints_at_or(1, "pads") else { return None };
    let axes: Vec<usize> = match node.has(3) {
        true => node.ints_of(3)?.iter().map(|&at| axis(at, input.len())).collect::<Option<_>>()?,
        false => (0..input.len()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return None;
    }
    let mut shape = input.clone();
    for (at, &along) in axes.iter().enumerate() {
        let padded = i128::from(shape[along]) + i128::from(pads[at]) + i128::from(pads[at + axes.len()]);
        shape[along] = u64::try_from(padded).ok()?;
    }
    Some(shape)
}

/// Channels become pixels, or pixels channels.
pub(super) fn blocks(node: &Node<'_>, to_space: bool) -> Option<Shape> {
    let block = u64::try_from(node.int("blocksize")?).ok().filter(|&n| n > 0)?;
    let [batch, channels, height, width] = node.shape(0)?[..] else { return None };
    let area = block.checked_mul(block)?;
    match to_space {
        true => (channels % area == 0)
            .then(|| Some(vec![batch, channels / area, height.checked_mul(block)?, width.checked_mul(block)?]))?,
        false => (height % block == 0 && width % block == 0)
            .then(|| Some(vec![batch, channels.checked_mul(area)?, height / block, width / block]))?,
    }
}

/// Bigger or smaller, by sizes or by factors.
pub(super) fn resize(node: &Node<'_>) -> Option<Shape> {
    let input = node.shape(0)?;
    let axes: Vec<usize> = match node.ints("axes") {
        Some(axes) => axes.iter().map(|&at| axis(at, input.len())).collect::<Option<_>>()?,
        None => (0..input.len()).collect(),
    };
    let mut shape = input.clone();
    if node.has(3) {
        if !matches!(node.text("keep_aspect_ratio_policy"), "" | "stretch") {
            return None;
        }
        let sizes = node.ints_of(3).filter(|sizes| sizes.len() == axes.len())?;
        for (&at, &size) in axes.iter().zip(sizes) {
            shape[at] = u64::try_from(size).ok()?;
        }
        return Some(shape);
    }
    // Before operator set 11 the factors came second, and at first as an attribute.
    let attribute: Option<Vec<f64>> = node.floats("scales").map(|scales| scales.iter().map(|&x| x.into()).collect());
    let at = if node.proto.input.len() > 2 { 2 } else { 1 };
    let factors = match attribute {
        Some(factors) => factors,
        None => node.content(at)?.floats()?.to_vec(),
    };
    if factors.len() != axes.len() {
        return None;
    }
    for (&at, &factor) in axes.iter().zip(&factors) {
        // In 32 bits, as the operator computes it.
        let size = (shape[at] as f32 * factor as f32).floor();
        shape[at] = (size.is_finite() && (0.0..1e18).contains(&size)).then_some(size as u64)?;
    }
    Some(shape)
}
