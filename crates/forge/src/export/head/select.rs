//! The best boxes of a head that gives each object once. First the places whose best class scores highest, then the
//! highest scores among all classes of these: so nothing larger than that many places is sorted twice.

use prony_model::onnx::{AttributeProto, dtype};

use super::super::graph::Value;
use super::super::place::Place;
use super::super::walk::Walk;
use crate::ForgeError;

/// Most boxes an image.
pub(in crate::export) const MOST: usize = 300;

/// `[batch, boxes, 6]`: two corners, score and class, the highest score first.
pub(super) fn best(walk: &mut Walk<'_>, head: &Place<'_>, boxes: &Value, scores: &Value) -> Result<Value, ForgeError> {
    let scope = head.scope.as_str();
    let [batch, classes, places] = scores.dims[..] else { return Err(head.fault("its scores are no table")) };
    let most = MOST.min(places);
    let boxes = walk.graph.transpose(scope, boxes, &[0, 2, 1])?;
    let scores = walk.graph.transpose(scope, scores, &[0, 2, 1])?;
    let highest = largest(walk, scope, &scores, &[batch, places]);
    let [_, at] = top(walk, scope, &highest, most)?;
    let rows = pick(walk, scope, &scores, &at, classes)?;
    let all = walk.graph.reshape(scope, &rows, &[0, -1])?;
    let [score, index] = top(walk, scope, &all, most)?;
    let graph = &mut walk.graph;
    let classes = Value { name: graph.int(scope, classes as i64), dims: vec![] };
    // Whole numbers: the quotient is rounded down, and what is left is the class. Older TensorRT has no remainder.
    let row = graph.pair(scope, "Div", &index, &classes)?;
    let whole = graph.pair(scope, "Mul", &row, &classes)?;
    let class = graph.pair(scope, "Sub", &index, &whole)?;
    let class = graph.each(scope, "Cast", &class, vec![AttributeProto::int("to", dtype::FLOAT.into())]);
    let axis = vec![AttributeProto::int("axis", 1)];
    let at = graph.one(scope, "GatherElements", &[&at.name, &row.name], axis, &[batch, most]);
    let boxes = pick(walk, scope, &boxes, &at, 4)?;
    let score = column(walk, scope, &score);
    let class = column(walk, scope, &class);
    walk.graph.concat(scope, &[&boxes, &score, &class], 2)
}

/// The largest along the last axis. Which axis became an input with operator set 18.
fn largest(walk: &mut Walk<'_>, scope: &str, x: &Value, dims: &[usize]) -> Value {
    let graph = &mut walk.graph;
    let flat = AttributeProto::int("keepdims", 0);
    if walk.opset < 18 {
        return graph.one(scope, "ReduceMax", &[&x.name], vec![AttributeProto::ints("axes", &[2]), flat], dims);
    }
    let axes = graph.ints(scope, &[2]);
    graph.one(scope, "ReduceMax", &[&x.name, &axes], vec![flat], dims)
}

/// The highest of each row, and where they are.
fn top(walk: &mut Walk<'_>, scope: &str, x: &Value, most: usize) -> Result<[Value; 2], ForgeError> {
    let count = walk.graph.ints(scope, &[most as i64]);
    let attributes = [("axis", 1), ("largest", 1), ("sorted", 1)].map(|(name, i)| AttributeProto::int(name, i));
    let dims = vec![x.dims[0], most];
    let made = walk.graph.node(scope, "TopK", &[&x.name, &count], attributes.to_vec(), vec![dims.clone(), dims]);
    made.try_into().map_err(|_| super::super::graph::fault(scope, "TopK has two outputs"))
}

/// Rows of a table of this width by their numbers.
fn pick(walk: &mut Walk<'_>, scope: &str, table: &Value, at: &Value, width: usize) -> Result<Value, ForgeError> {
    let column = column(walk, scope, at);
    let graph = &mut walk.graph;
    let dims = [at.dims[0], at.dims[1], width];
    let shape = graph.ints(scope, &[1, 1, width as i64]);
    let numbers = graph.one(scope, "Expand", &[&column.name, &shape], vec![], &dims);
    let axis = vec![AttributeProto::int("axis", 1)];
    Ok(graph.one(scope, "GatherElements", &[&table.name, &numbers.name], axis, &dims))
}

/// One more axis at the end.
fn column(walk: &mut Walk<'_>, scope: &str, x: &Value) -> Value {
    let axes = walk.graph.ints(scope, &[2]);
    walk.graph.one(scope, "Unsqueeze", &[&x.name, &axes], vec![], &[x.dims[0], x.dims[1], 1])
}
