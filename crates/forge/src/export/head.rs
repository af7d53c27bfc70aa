//! The head: boxes and scores at every place of every level, decoded into pixels; and for a head that was trained to give
//! each object once, the best of them.

mod anchor;
mod select;

use prony_model::onnx::AttributeProto;

use super::EndToEnd;
use super::block::{apply, dfl};
use super::graph::Value;
use super::guard;
use super::place::Place;
use super::walk::Walk;
use crate::ForgeError;
use anchor::Anchors;

/// Names of a head's branches: boxes and scores.
const MANY: [&str; 2] = ["cv2", "cv3"];
/// Those that give each object once.
const ONCE: [&str; 2] = ["one2one_cv2", "one2one_cv3"];

/// What the head made.
pub(super) struct Decoded {
    /// The model's output.
    pub(super) output: Value,
    /// Whether every object comes once, without a suppression afterwards.
    pub(super) end2end: bool,
    /// How many classes there are.
    pub(super) classes: usize,
}

/// Which branches are used, by what was asked for and by what is there.
fn branches(head: &Place<'_>, choice: EndToEnd) -> Result<bool, ForgeError> {
    let there = |names: [&str; 2]| names.iter().all(|name| head.maybe(name).is_some());
    match (choice, there(MANY), there(ONCE)) {
        (EndToEnd::Auto | EndToEnd::Yes, _, true) => Ok(true),
        (EndToEnd::Auto | EndToEnd::No, true, _) => Ok(false),
        (EndToEnd::Yes, _, false) => Err(head.fault(
            "it has no branches that give each object once (YOLOv10 and 26 have them); leave out --end2end yes",
        )),
        (EndToEnd::No, false, true) => Err(head.fault(
            "it has only the branches that give each object once: it was fused before it was saved; leave out --end2end no",
        )),
        (_, false, false) => Err(head.fault("it has no branches for boxes and scores")),
    }
}

/// The head over its pictures, one a level, those of the smallest stride first.
pub(super) fn decode<'a>(
    walk: &mut Walk<'a>,
    head: &Place<'a>,
    pictures: &[Value],
    choice: EndToEnd,
    image: &Value,
) -> Result<Decoded, ForgeError> {
    guard::known(walk.attributes(), head)?;
    let attributes = walk.attributes();
    let (classes, bins) = (attributes.size(head, "nc")?, attributes.size(head, "reg_max")?);
    if classes == 0 || bins == 0 || bins > 256 {
        return Err(head.fault(format!("it has {classes} classes and {bins} bins")));
    }
    let end2end = branches(head, choice)?;
    let (used, unused) = if end2end { (ONCE, MANY) } else { (MANY, ONCE) };
    unused.iter().filter_map(|name| head.maybe(name)).for_each(|branch| walk.ledger.leave(&branch));
    let boxes = levels(walk, head, used[0], pictures, bins * 4)?;
    let scores = levels(walk, head, used[1], pictures, classes)?;
    let anchors = anchor::find(walk, head, &boxes, image)?;
    let boxes = joined(walk, head, &boxes)?;
    let scores = joined(walk, head, &scores)?;
    let distances = distances(walk, head, &boxes, bins)?;
    let scores = walk.graph.each(&head.scope, "Sigmoid", &scores, vec![]);
    let boxes = placed(walk, head, &distances, &anchors, end2end)?;
    let output = match end2end {
        true => select::best(walk, head, &boxes, &scores)?,
        false => walk.graph.concat(&head.scope, &[&boxes, &scores], 1)?,
    };
    Ok(Decoded { output, end2end, classes })
}

/// What a branch gives at each level.
fn levels<'a>(
    walk: &mut Walk<'a>,
    head: &Place<'a>,
    name: &str,
    pictures: &[Value],
    channels: usize,
) -> Result<Vec<Value>, ForgeError> {
    let branch = head.child(name)?;
    guard::known(walk.attributes(), &branch)?;
    let members = branch.members()?;
    if members.len() != pictures.len() || members.is_empty() {
        return Err(branch.fault(format!("it has {} levels and is given {}", members.len(), pictures.len())));
    }
    let mut given = Vec::new();
    for (member, picture) in members.iter().zip(pictures) {
        let value = apply(walk, member, picture)?;
        if value.dims.get(1) != Some(&channels) {
            return Err(member.fault(format!("it gives {:?}, and {channels} channels were expected", value.dims)));
        }
        given.push(value);
    }
    Ok(given)
}

/// The places of all levels in one row.
fn joined(walk: &mut Walk<'_>, head: &Place<'_>, levels: &[Value]) -> Result<Value, ForgeError> {
    let mut rows = Vec::new();
    for level in levels {
        rows.push(walk.graph.reshape(&head.scope, level, &[0, level.dims[1] as i64, -1])?);
    }
    walk.graph.concat(&head.scope, &rows.iter().collect::<Vec<_>>(), 2)
}

/// Distances from a place to the four sides, in cells: the mean of a distribution, or the number itself where there are no
/// bins.
fn distances<'a>(walk: &mut Walk<'a>, head: &Place<'a>, boxes: &Value, bins: usize) -> Result<Value, ForgeError> {
    if bins == 1 {
        return Ok(boxes.clone());
    }
    let place = head.child("dfl")?;
    let means = dfl(walk, &place, bins)?;
    let graph = &mut walk.graph;
    let spread = graph.reshape(&place.scope, boxes, &[0, 4, bins as i64, -1])?;
    let spread = graph.transpose(&place.scope, &spread, &[0, 2, 1, 3])?;
    let soft = graph.each(&place.scope, "Softmax", &spread, vec![AttributeProto::int("axis", 1)]);
    let weight = format!("{}.conv.weight", place.path);
    let shape = [1, bins, 1, 1];
    graph.weight(&weight, &shape, means.into_iter());
    let window = super::graph::Window::square(1, 1, 0);
    let mean = graph.conv(&format!("{}/conv", place.scope), &soft, (&weight, shape), None, (&window, 1))?;
    graph.reshape(&place.scope, &mean, &[0, 4, -1])
}

/// Boxes in pixels: two corners, or centre and size for a head whose boxes are still to be suppressed.
fn placed(
    walk: &mut Walk<'_>,
    head: &Place<'_>,
    distances: &Value,
    anchors: &Anchors,
    corners: bool,
) -> Result<Value, ForgeError> {
    let (graph, scope) = (&mut walk.graph, &head.scope);
    let sides = graph.split(scope, distances, 1, &[2, 2])?;
    let first = graph.pair(scope, "Sub", &anchors.centres, &sides[0])?;
    let second = graph.pair(scope, "Add", &anchors.centres, &sides[1])?;
    let boxes = if corners {
        graph.concat(scope, &[&first, &second], 1)?
    } else {
        let two = graph.floats(scope, &[], &[2.0]);
        let sum = graph.add(scope, &first, &second)?;
        let centre = graph.pair(scope, "Div", &sum, &two)?;
        let size = graph.pair(scope, "Sub", &second, &first)?;
        graph.concat(scope, &[&centre, &size], 1)?
    };
    graph.pair(scope, "Mul", &boxes, &anchors.strides)
}
