//! Attention: every place of a picture looks at every other, or at those of its own area.

use prony_model::onnx::AttributeProto;

use super::super::graph::Value;
use super::super::place::Place;
use super::super::walk::Walk;
use super::{Made, apply};
use crate::ForgeError;

/// `PSABlock`: x + attn(x), then that + ffn(that); without the sums where `add` says so.
pub(super) fn block<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let y = apply(walk, &place.child("attn")?, x)?;
    let y = super::residual(walk, place, x, y)?;
    let z = apply(walk, &place.child("ffn")?, &y)?;
    super::residual(walk, place, &y, z)
}

/// `ABlock`: the same with `mlp`, and always with the sums.
pub(super) fn area_block<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let y = apply(walk, &place.child("attn")?, x)?;
    let y = walk.graph.add(&place.scope, x, &y)?;
    let z = apply(walk, &place.child("mlp")?, &y)?;
    walk.graph.add(&place.scope, &y, &z)
}

/// `Attention`: proj(v * softmax(scale * q' k)' + pe(v)), heads side by side. Channels of a head are q, k, v.
pub(super) fn attention<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let attributes = walk.attributes();
    let [heads, key, head] = ["num_heads", "key_dim", "head_dim"].map(|name| attributes.size(place, name));
    let (heads, key, head) = (heads?, key?, head?);
    let scale = attributes.number(place, "scale")?;
    let expected = (key as f64).powf(-0.5);
    if (scale - expected).abs() > 1e-6 * expected {
        return Err(place.fault(format!("its scale is {scale}, and {expected} was expected")));
    }
    let qkv = apply(walk, &place.child("qkv")?, x)?;
    let each = key.checked_mul(2).and_then(|keys| keys.checked_add(head)).unwrap_or(usize::MAX);
    let qkv = walk.graph.reshape(&place.scope, &qkv, &[0, heads as i64, each as i64, -1])?;
    let parts = walk.graph.split(&place.scope, &qkv, 2, &[key, key, head])?;
    let looked = look(walk, place, &parts, scale)?;
    let channels = heads * head;
    let looked = picture(walk, place, &looked, channels, x)?;
    let values = picture(walk, place, &parts[2], channels, x)?;
    projected(walk, place, &looked, &values)
}

/// `AAttn`: the same with the places in `area` groups that follow one another, and heads whose q, k and v are equally wide.
pub(super) fn by_area<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let attributes = walk.attributes();
    let [area, heads, head] = ["area", "num_heads", "head_dim"].map(|name| attributes.size(place, name));
    let (area, heads, head) = (area?, heads?, head?);
    let places: usize = x.dims.iter().skip(2).product();
    if area == 0 || !places.is_multiple_of(area) {
        return Err(place.fault(format!("{places} places do not make {area} areas; another --imgsz does")));
    }
    let qkv = apply(walk, &place.child("qkv")?, x)?;
    // Areas get an axis of their own behind the channels, and from there go before the heads.
    let shape = [0, heads as i64, head.saturating_mul(3) as i64, area as i64, -1];
    let qkv = walk.graph.reshape(&place.scope, &qkv, &shape)?;
    let parts = walk.graph.split(&place.scope, &qkv, 2, &[head, head, head])?;
    let mut grouped = Vec::new();
    for part in &parts {
        grouped.push(walk.graph.transpose(&place.scope, part, &[0, 3, 1, 2, 4])?);
    }
    let looked = look(walk, place, &grouped, (head as f64).powf(-0.5))?;
    let looked = walk.graph.transpose(&place.scope, &looked, &[0, 2, 3, 1, 4])?;
    let channels = heads * head;
    let looked = picture(walk, place, &looked, channels, x)?;
    let values = picture(walk, place, &parts[2], channels, x)?;
    projected(walk, place, &looked, &values)
}

/// v * softmax(scale * q' k)' over the last two axes, which are channels and places.
fn look(walk: &mut Walk<'_>, place: &Place<'_>, parts: &[Value], scale: f64) -> Made {
    let [q, k, v] = parts else { return Err(place.fault("it has no three parts")) };
    let graph = &mut walk.graph;
    let mut flipped: Vec<usize> = (0..q.dims.len()).collect();
    let last = flipped.len() - 1;
    flipped.swap(last - 1, last);
    let scale = graph.floats(&place.scope, &[], &[scale as f32]);
    let q = graph.pair(&place.scope, "Mul", q, &scale)?;
    let q = graph.transpose(&place.scope, &q, &flipped)?;
    let weights = graph.matmul(&place.scope, &q, k)?;
    let weights = graph.each(&place.scope, "Softmax", &weights, vec![AttributeProto::int("axis", -1)]);
    let weights = graph.transpose(&place.scope, &weights, &flipped)?;
    graph.matmul(&place.scope, v, &weights)
}

/// Heads and places as the channels and the picture that they came from, of the size of `like`.
fn picture(walk: &mut Walk<'_>, place: &Place<'_>, y: &Value, channels: usize, like: &Value) -> Made {
    let Some([_, height, width]) = like.picture() else { return Err(place.fault("it is given no picture")) };
    let graph = &mut walk.graph;
    let shape = [0, channels as i64, height as i64, width as i64];
    if !walk.dynamic {
        return graph.reshape(&place.scope, y, &shape);
    }
    let dims = [like.dims[0], channels, height, width];
    if y.dims.iter().product::<usize>() != dims.iter().product::<usize>() {
        return Err(place.fault(format!("a shape of {:?} does not become {dims:?}", y.dims)));
    }
    let sides = sides(walk, place, like)?;
    let graph = &mut walk.graph;
    let front = graph.ints(&place.scope, &shape[..2]);
    let axis = vec![AttributeProto::int("axis", 0)];
    let shape = graph.one(&place.scope, "Concat", &[&front, &sides.name], axis, &[4]);
    Ok(graph.one(&place.scope, "Reshape", &[&y.name, &shape.name], vec![], &dims))
}

/// Height and width of a picture, when the graph runs.
fn sides(walk: &mut Walk<'_>, place: &Place<'_>, like: &Value) -> Result<Value, ForgeError> {
    let graph = &mut walk.graph;
    let shape = graph.one(&place.scope, "Shape", &[&like.name], vec![], &[4]);
    let [from, to, axis] = [2, 4, 0].map(|number| graph.ints(&place.scope, &[number]));
    Ok(graph.one(&place.scope, "Slice", &[&shape.name, &from, &to, &axis], vec![], &[2]))
}

fn projected<'a>(walk: &mut Walk<'a>, place: &Place<'a>, looked: &Value, values: &Value) -> Made {
    let position = apply(walk, &place.child("pe")?, values)?;
    let y = walk.graph.add(&place.scope, looked, &position)?;
    apply(walk, &place.child("proj")?, &y)
}
