//! The places that boxes are measured from: the centre of every cell, and how many pixels a cell has.

use prony_model::onnx::{AttributeProto, dtype};

use super::super::graph::Value;
use super::super::place::Place;
use super::super::walk::Walk;
use crate::ForgeError;

/// Centres and strides of all places.
pub(super) struct Anchors {
    /// `[1, 2, places]`, in cells: x and y.
    pub(super) centres: Value,
    /// `[1, 1, places]`, pixels a cell has.
    pub(super) strides: Value,
}

/// Of every level; they are constants unless sizes are only known when the graph runs.
pub(super) fn find(
    walk: &mut Walk<'_>,
    head: &Place<'_>,
    levels: &[Value],
    image: &Value,
) -> Result<Anchors, ForgeError> {
    let strides = walk.checkpoint.strides.clone();
    if strides.len() != levels.len() {
        return Err(head.fault(format!("it has {} levels and {} strides", levels.len(), strides.len())));
    }
    for (level, stride) in levels.iter().zip(&strides) {
        let fits = |(cells, pixels): (usize, usize)| cells as f32 * stride == pixels as f32;
        let sides = [2, 3].map(|axis| (level.dims[axis], image.dims[axis]));
        if !sides.into_iter().all(fits) {
            return Err(
                head.fault(format!("a level of {:?} cells is said to have a stride of {stride}", &level.dims[2..]))
            );
        }
    }
    match walk.dynamic {
        true => computed(walk, head, levels, &strides),
        false => Ok(constant(walk, head, levels, &strides)),
    }
}

fn constant(walk: &mut Walk<'_>, head: &Place<'_>, levels: &[Value], strides: &[f32]) -> Anchors {
    let [mut xs, mut ys, mut pixels] = [const { Vec::new() }; 3];
    for (level, stride) in levels.iter().zip(strides) {
        for (y, x) in (0..level.dims[2]).flat_map(|y| (0..level.dims[3]).map(move |x| (y, x))) {
            xs.push(x as f32 + 0.5);
            ys.push(y as f32 + 0.5);
            pixels.push(*stride);
        }
    }
    let count = xs.len();
    xs.extend(ys);
    Anchors {
        centres: walk.graph.floats(&head.scope, &[1, 2, count], &xs),
        strides: walk.graph.floats(&head.scope, &[1, 1, count], &pixels),
    }
}

/// The same numbers from the sizes of the levels. Rows and columns are spread over the cells by adding zeros.
fn computed(walk: &mut Walk<'_>, head: &Place<'_>, levels: &[Value], strides: &[f32]) -> Result<Anchors, ForgeError> {
    let scope = head.scope.as_str();
    let zero = walk.graph.floats(scope, &[], &[0.0]);
    let (mut centres, mut pixels) = (Vec::new(), Vec::new());
    for (level, stride) in levels.iter().zip(strides) {
        let ys = middles(walk, scope, level, 2, [-1, 1])?;
        let xs = middles(walk, scope, level, 3, [1, -1])?;
        let graph = &mut walk.graph;
        let mut spread = |along: &Value, across: &Value| -> Result<Value, ForgeError> {
            let nothing = graph.pair(scope, "Mul", across, &zero)?;
            let grid = graph.pair(scope, "Add", along, &nothing)?;
            graph.reshape(scope, &grid, &[1, 1, -1])
        };
        let (x, y) = (spread(&xs, &ys)?, spread(&ys, &xs)?);
        centres.push(graph.concat(scope, &[&x, &y], 1)?);
        let nothing = graph.pair(scope, "Mul", &x, &zero)?;
        let stride = graph.floats(scope, &[], &[*stride]);
        pixels.push(graph.pair(scope, "Add", &nothing, &stride)?);
    }
    Ok(Anchors {
        centres: walk.graph.concat(scope, &centres.iter().collect::<Vec<_>>(), 2)?,
        strides: walk.graph.concat(scope, &pixels.iter().collect::<Vec<_>>(), 2)?,
    })
}

/// 0.5, 1.5 and so on for as many cells as a level has along an axis, in this shape.
fn middles(walk: &mut Walk<'_>, scope: &str, level: &Value, axis: usize, shape: [i64; 2]) -> Result<Value, ForgeError> {
    let graph = &mut walk.graph;
    let cells = level.dims[axis];
    let sizes = graph.one(scope, "Shape", &[&level.name], vec![], &[4]);
    let [which, from, step] = [axis as i64, 0, 1].map(|number| graph.int(scope, number));
    let count = graph.one(scope, "Gather", &[&sizes.name, &which], vec![AttributeProto::int("axis", 0)], &[]);
    let numbers = graph.one(scope, "Range", &[&from, &count.name, &step], vec![], &[cells]);
    let float = vec![AttributeProto::int("to", dtype::FLOAT.into())];
    let numbers = graph.each(scope, "Cast", &numbers, float);
    let half = graph.floats(scope, &[], &[0.5]);
    let middles = graph.pair(scope, "Add", &numbers, &half)?;
    graph.reshape(scope, &middles, &shape)
}
