//! Small tensors with their elements: graphs compute shapes from shapes, and only whoever follows knows them.

use super::node::Node;
use super::{Shape, count, pick, rule};
use crate::onnx::{TensorProto, dtype};

/// Elements that a tensor may have to be followed.
const MOST: u64 = 64;

/// The elements of a small tensor. Truth values are 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

use Content::{Floats, Ints};

impl Content {
    /// Those of a constant, where they are few.
    pub(super) fn of(tensor: &TensorProto) -> Option<Content> {
        if tensor.count()? as u64 > MOST {
            return None;
        }
        match tensor.data_type {
            dtype::BOOL if !tensor.raw_data.is_empty() && Some(tensor.raw_data.len()) == tensor.count() => {
                Some(Ints(tensor.raw_data.iter().map(|&byte| i64::from(byte != 0)).collect()))
            }
            dtype::INT32 | dtype::INT64 => tensor.to_i64s().map(Ints),
            _ => tensor.to_f32s().map(|floats| Floats(floats.into_iter().map(f64::from).collect())),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Ints(elements) => elements.len(),
            Floats(elements) => elements.len(),
        }
    }

    pub(super) fn ints(&self) -> Option<&[i64]> {
        match self {
            Ints(elements) => Some(elements),
            Floats(_) => None,
        }
    }

    pub(super) fn floats(&self) -> Option<&[f64]> {
        match self {
            Ints(_) => None,
            Floats(elements) => Some(elements),
        }
    }

    /// Elements by their places.
    fn at(&self, places: impl Iterator<Item = usize>) -> Option<Content> {
        match self {
            Ints(elements) => places.map(|at| elements.get(at).copied()).collect::<Option<_>>().map(Ints),
            Floats(elements) => places.map(|at| elements.get(at).copied()).collect::<Option<_>>().map(Floats),
        }
    }

    /// How many elements a range has.
    pub(super) fn range_length(start: &Content, limit: &Content, delta: &Content) -> Option<u64> {
        match (start, limit, delta) {
            (Ints(start), Ints(limit), Ints(delta)) => {
                let ([start], [limit], [delta]) = (&start[..], &limit[..], &delta[..]) else { return None };
                let (span, delta) = (i128::from(*limit) - i128::from(*start), i128::from(*delta));
                let steps = match delta {
                    0 => return None,
                    1.. => (span + delta - 1).div_euclid(delta),
                    _ => (-span - delta - 1).div_euclid(-delta),
                };
                u64::try_from(steps.max(0)).ok()
            }
            (Floats(start), Floats(limit), Floats(delta)) => {
                let ([start], [limit], [delta]) = (&start[..], &limit[..], &delta[..]) else { return None };
                let steps = ((limit - start) / delta).ceil().max(0.0);
                (steps.is_finite() && steps < 1e15).then_some(steps as u64)
            }
            _ => None,
        }
    }
}

/// The elements of a node's outputs, where its rule is known and they are few.
pub(super) fn outputs(node: &Node<'_>, shapes: &[Option<Shape>]) -> Vec<Option<Content>> {
    let small = |shape: &Option<Shape>| shape.as_ref().and_then(|shape| count(shape)).is_some_and(|n| n <= MOST);
    if !node.is_standard() || shapes.is_empty() || !shapes.iter().all(small) {
        return Vec::new();
    }
    match (node.op(), shapes) {
        ("Split", _) => split(node, shapes),
        (op, [Some(shape)]) => {
            let content = first(node, op, shape);
            // A rule that gives another number of elements than the shape has was fed nonsense.
            vec![content.filter(|content| Some(content.len() as u64) == count(shape))]
        }
        _ => Vec::new(),
    }
}

fn first(node: &Node<'_>, op: &str, shape: &[u64]) -> Option<Content> {
    let input = || node.content(0).cloned();
    match op {
        "Constant" => constant(node),
        "ConstantOfShape" => filled(node, shape),
        "Shape" => {
            let of = node.shape(0)?;
            of[rule::range(node, of.len())].iter().map(|&n| i64::try_from(n).ok()).collect::<Option<_>>().map(Ints)
        }
        "Size" => i64::try_from(count(node.shape(0)?)?).ok().map(|n| Ints(vec![n])),
        "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => input(),
        "Transpose" if node.shape(0)?.len() < 2 => input(),
        "Expand" => stretch(&input()?, node.shape(0)?, shape),
        "Concat" if shape.len() == 1 => joined(node),
        "Slice" if shape.len() == 1 => {
            let [cut] = pick::cuts(node)?[..] else { return None };
            let place = |at: u64| usize::try_from(cut.start + at as i64 * cut.step).unwrap_or(usize::MAX);
            input()?.at((0..cut.count).map(place))
        }
        "Gather" if node.shape(0)?.len() == 1 => {
            let (data, places) = (input()?, node.ints_of(1)?);
            let length = data.len() as i64;
            let place =
                |&at: &i64| usize::try_from(if at < 0 { at.saturating_add(length) } else { at }).unwrap_or(usize::MAX);
            data.at(places.iter().map(place))
        }
        "Cast" => cast(input()?, node.int("to")?),
        "Range" => ranged(node, shape),
        "Where" => {
            let flags = stretch(node.content(0)?, node.shape(0)?, shape)?;
            let (yes, no) =
                (stretch(node.content(1)?, node.shape(1)?, shape)?, stretch(node.content(2)?, node.shape(2)?, shape)?);
            match (flags, yes, no) {
                (Ints(flags), Ints(yes), Ints(no)) => Some(Ints(choose(&flags, &yes, &no))),
                (Ints(flags), Floats(yes), Floats(no)) => Some(Floats(choose(&flags, &yes, &no))),
                _ => None,
            }
        }
        "ReduceProd" | "ReduceSum" | "ReduceMax" | "ReduceMin" if count(shape) == Some(1) => reduced(op, &input()?),
        "Neg" | "Abs" | "Floor" | "Ceil" | "Round" | "Sqrt" | "Not" => unary(op, input()?),
        _ => binary(node, op, shape),
    }
}

fn constant(node: &Node<'_>) -> Option<Content> {
    let value = node.first_attribute()?;
    match value.name.as_str() {
        "value" => Content::of(value.t.as_ref()?),
        "value_int" => Some(Ints(vec![value.i])),
        "value_ints" => Some(Ints(value.ints.clone())),
        "value_float" => Some(Floats(vec![value.f.into()])),
        "value_floats" => Some(Floats(value.floats.iter().map(|&x| x.into()).collect())),
        _ => None,
    }
}

fn filled(node: &Node<'_>, shape: &[u64]) -> Option<Content> {
    let one = match node.first_attribute() {
        None => Floats(vec![0.0]),
        Some(value) => Content::of(value.t.as_ref()?)?,
    };
    stretch(&one, &[1], shape)
}

/// A single element as often as the shape asks for it; anything else must fit as it is.
fn stretch(content: &Content, from: &[u64], to: &[u64]) -> Option<Content> {
    let length = usize::try_from(count(to)?).ok()?;
    match content.len() {
        1 => content.at(std::iter::repeat_n(0, length)),
        // One axis of ones in front of it changes nothing; a stretch in the middle is not followed.
        n if n == length && from.iter().filter(|&&n| n != 1).eq(to.iter().filter(|&&n| n != 1)) => {
            Some(content.clone())
        }
        _ => None,
    }
}

fn joined(node: &Node<'_>) -> Option<Content> {
    let parts: Vec<&Content> = (0..node.proto.input.len()).map(|at| node.content(at)).collect::<Option<_>>()?;
    let ints: Option<Vec<&[i64]>> = parts.iter().map(|part| part.ints()).collect();
    let floats = || parts.iter().map(|part| part.floats()).collect::<Option<Vec<&[f64]>>>();
    match ints {
        Some(ints) => Some(Ints(ints.concat())),
        None => floats().map(|floats| Floats(floats.concat())),
    }
}

fn split(node: &Node<'_>, shapes: &[Option<Shape>]) -> Vec<Option<Content>> {
    let Some(content) = node.content(0).filter(|_| node.shape(0).is_some_and(|shape| shape.len() == 1)) else {
        return Vec::new();
    };
    let mut from = 0;
    let part = |shape: &Option<Shape>| {
        let length = shape.as_ref().and_then(|shape| usize::try_from(count(shape)?).ok())?;
        let part = content.at(from..from + length);
        from += length;
        part
    };
    shapes.iter().map(part).collect()
}

fn cast(content: Content, to: i64) -> Option<Content> {
    let to = i32::try_from(to).ok()?;
    match (content, to) {
        (Ints(elements), dtype::BOOL) => Some(Ints(elements.into_iter().map(|n| i64::from(n != 0)).collect())),
        (content @ Ints(_), dtype::INT64 | dtype::INT32) => Some(content),
        (content @ Floats(_), dtype::FLOAT | dtype::DOUBLE) => Some(content),
        (Ints(elements), dtype::FLOAT | dtype::DOUBLE) => {
            Some(Floats(elements.into_iter().map(|n| n as f64).collect()))
        }
        (Floats(elements), dtype::INT64 | dtype::INT32) => Some(Ints(elements.into_iter().map(|x| x as i64).collect())),
        _ => None,
    }
}

fn ranged(node: &Node<'_>, shape: &[u64]) -> Option<Content> {
    let steps = 0..count(shape)?;
    match (node.content(0)?, node.content(2)?) {
        (Ints(start), Ints(delta)) => {
            let element = |at: u64| start.first()?.checked_add(delta.first()?.checked_mul(i64::try_from(at).ok()?)?);
            steps.map(element).collect::<Option<_>>().map(Ints)
        }
        (Floats(start), Floats(delta)) => {
            let element = |at: u64| Some(start.first()? + delta.first()? * at as f64);
            steps.map(element).collect::<Option<_>>().map(Floats)
        }
        _ => None,
    }
}

fn choose<T: Copy>(flags: &[i64], yes: &[T], no: &[T]) -> Vec<T> {
    flags.iter().zip(yes.iter().zip(no)).map(|(&flag, (&yes, &no))| if flag != 0 { yes } else { no }).collect()
}

fn reduced(op: &str, content: &Content) -> Option<Content> {
    let elements = content.ints()?.iter().copied();
    let mut elements = elements;
    let one = match op {
        "ReduceProd" => elements.try_fold(1i64, i64::checked_mul),
        "ReduceSum" => elements.try_fold(0i64, i64::checked_add),
        "ReduceMax" => elements.max(),
        _ => elements.min(),
    };
    one.map(|one| Ints(vec![one]))
}

fn unary(op: &str, content: Content) -> Option<Content> {
    match (op, content) {
        ("Neg", Ints(elements)) => elements.into_iter().map(i64::checked_neg).collect::<Option<_>>().map(Ints),
        ("Abs", Ints(elements)) => elements.into_iter().map(i64::checked_abs).collect::<Option<_>>().map(Ints),
        ("Not", Ints(elements)) => Some(Ints(elements.into_iter().map(|n| i64::from(n == 0)).collect())),
        (_, Ints(_)) => None,
        (op, Floats(elements)) => {
            let rule: fn(f64) -> f64 = match op {
                "Neg" => |x| -x,
                "Abs" => f64::abs,
                "Floor" => f64::floor,
                "Ceil" => f64::ceil,
                "Round" => f64::round_ties_even,
                "Sqrt" => f64::sqrt,
                _ => return None,
            };
            Some(Floats(elements.into_iter().map(rule).collect()))
        }
    }
}

fn binary(node: &Node<'_>, op: &str, shape: &[u64]) -> Option<Content> {
    let (a, b) = (node.content(0)?, node.content(1)?);
    let sides = (stretch(a, node.shape(0)?, shape)?, stretch(b, node.shape(1)?, shape)?);
    match sides {
        (Ints(a), Ints(b)) => {
            let rule: fn(i64, i64) -> Option<i64> = match op {
                "Add" => i64::checked_add,
                "Sub" => i64::checked_sub,
                "Mul" => i64::checked_mul,
                "Div" => i64::checked_div,
                // Of a negative divisor the sign differs from operator to operator.
                "Mod" => |a, b| (b > 0).then(|| a.rem_euclid(b)),
                "Min" => |a, b| Some(a.min(b)),
                "Max" => |a, b| Some(a.max(b)),
                "Equal" => |a, b| Some((a == b).into()),
                "Less" => |a, b| Some((a < b).into()),
                "Greater" => |a, b| Some((a > b).into()),
                "LessOrEqual" => |a, b| Some((a <= b).into()),
                "GreaterOrEqual" => |a, b| Some((a >= b).into()),
                "And" => |a, b| Some((a != 0 && b != 0).into()),
                "Or" => |a, b| Some((a != 0 || b != 0).into()),
                _ => return None,
            };
            a.into_iter().zip(b).map(|(a, b)| rule(a, b)).collect::<Option<_>>().map(Ints)
        }
        (Floats(a), Floats(b)) => {
            let rule: fn(f64, f64) -> f64 = match op {
                "Add" => |a, b| a + b,
                "Sub" => |a, b| a - b,
                "Mul" => |a, b| a * b,
                "Div" => |a, b| a / b,
                "Min" => f64::min,
                "Max" => f64::max,
                "Pow" => f64::powf,
                _ => return None,
            };
            Some(Floats(a.into_iter().zip(b).map(|(a, b)| rule(a, b)).collect()))
        }
        _ => None,
    }
}
