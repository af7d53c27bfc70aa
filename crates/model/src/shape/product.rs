//! Operators on two tensors: products of matrices, and element by element.

use super::Shape;
use super::node::Node;

/// The shape that two tensors are stretched to, axes of 1 being stretched.
pub(super) fn broadcast(a: &[u64], b: &[u64]) -> Option<Shape> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let lead = long.len() - short.len();
    let axis = |(at, &n): (usize, &u64)| match at.checked_sub(lead).map(|at| short[at]) {
        None => Some(n),
        Some(m) if m == n || m == 1 => Some(n),
        Some(m) if n == 1 => Some(m),
        Some(_) => None,
    };
    long.iter().enumerate().map(axis).collect()
}

/// All inputs stretched to one shape.
pub(super) fn stretched(node: &Node<'_>, inputs: impl IntoIterator<Item = usize>) -> Option<Shape> {
    let mut inputs = inputs.into_iter();
    let first = node.shape(inputs.next()?)?.clone();
    inputs.try_fold(first, |shape, at| broadcast(&shape, node.shape(at)?))
}

/// The product of matrices, in numpy's way.
pub(super) fn matmul(node: &Node<'_>, a: usize, b: usize) -> Option<Shape> {
    let (a, b) = (node.shape(a)?, node.shape(b)?);
    let (vector_a, vector_b) = (a.len() == 1, b.len() == 1);
    let a = if vector_a { [&[1], &a[..]].concat() } else { a.clone() };
    let b = if vector_b { [&b[..], &[1]].concat() } else { b.clone() };
    let ([lead_a @ .., rows, inner], [lead_b @ .., inner_b, columns]) = (&a[..], &b[..]) else { return None };
    if inner != inner_b {
        return None;
    }
    let mut shape = broadcast(lead_a, lead_b)?;
    shape.extend((!vector_a).then_some(*rows));
    shape.extend((!vector_b).then_some(*columns));
    Some(shape)
}

/// The product of two matrices, each perhaps transposed.
pub(super) fn gemm(node: &Node<'_>, a: usize, b: usize) -> Option<Shape> {
    let turned = |name: &str| node.int(name).is_some_and(|flag| flag != 0);
    let ([a0, a1], [b0, b1]) = (&node.shape(a)?[..], &node.shape(b)?[..]) else { return None };
    let (rows, inner) = if turned("transA") { (a1, a0) } else { (a0, a1) };
    let (inner_b, columns) = if turned("transB") { (b1, b0) } else { (b0, b1) };
    (inner == inner_b).then(|| vec![*rows, *columns])
}
