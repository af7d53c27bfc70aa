//! Blocks that part a picture's channels, work on some of them, and join them again.

use super::super::graph::Value;
use super::super::place::Place;
use super::super::walk::Walk;
use super::{Made, apply};

/// `C2f` and its kin: cv1(x) in two halves a and b, a chain from b on, cv2([a; b; m1(b); m2(m1(b)); ...]).
pub(super) fn chained<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let y = apply(walk, &place.child("cv1")?, x)?;
    let [a, b] = walk.graph.halves(&place.scope, &y)?;
    let half = walk.attributes().size(place, "c")?;
    if b.dims[1] != half {
        return Err(place.fault(format!("its half has {} channels, and it says {half}", b.dims[1])));
    }
    let mut links = vec![a, b];
    for member in place.child("m")?.members()? {
        let next = apply(walk, &member, &links[links.len() - 1])?;
        links.push(next);
    }
    let y = walk.graph.concat(&place.scope, &links.iter().collect::<Vec<_>>(), 1)?;
    apply(walk, &place.child("cv2")?, &y)
}

/// `C2`: cv1(x) in two halves a and b, cv2([m(a); b]).
pub(super) fn first_half<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let y = apply(walk, &place.child("cv1")?, x)?;
    let [a, b] = walk.graph.halves(&place.scope, &y)?;
    let a = apply(walk, &place.child("m")?, &a)?;
    let y = walk.graph.concat(&place.scope, &[&a, &b], 1)?;
    apply(walk, &place.child("cv2")?, &y)
}

/// `C3` and its kin: cv3([m(cv1(x)); cv2(x)]).
pub(super) fn parallel<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let a = apply(walk, &place.child("cv1")?, x)?;
    let a = apply(walk, &place.child("m")?, &a)?;
    let b = apply(walk, &place.child("cv2")?, x)?;
    let y = walk.graph.concat(&place.scope, &[&a, &b], 1)?;
    apply(walk, &place.child("cv3")?, &y)
}

/// `RepNCSPELAN4`, `ELAN1`: cv1(x) in two halves a and b, cv4([a; b; cv2(b); cv3(cv2(b))]).
pub(super) fn elan<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let y = apply(walk, &place.child("cv1")?, x)?;
    let [a, b] = walk.graph.halves(&place.scope, &y)?;
    let c = apply(walk, &place.child("cv2")?, &b)?;
    let d = apply(walk, &place.child("cv3")?, &c)?;
    let y = walk.graph.concat(&place.scope, &[&a, &b, &c, &d], 1)?;
    apply(walk, &place.child("cv4")?, &y)
}

/// `C2PSA`, `PSA`: cv1(x) in two halves, of which the second is attended to: by a row of blocks `m`, or by `attn` and
/// `ffn` here; cv2 of both.
pub(super) fn attended<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let y = apply(walk, &place.child("cv1")?, x)?;
    let [a, mut b] = walk.graph.halves(&place.scope, &y)?;
    if place.class() == "C2PSA" {
        b = apply(walk, &place.child("m")?, &b)?;
    } else {
        for part in ["attn", "ffn"] {
            let more = apply(walk, &place.child(part)?, &b)?;
            b = walk.graph.add(&place.scope, &b, &more)?;
        }
    }
    let y = walk.graph.concat(&place.scope, &[&a, &b], 1)?;
    apply(walk, &place.child("cv2")?, &y)
}

/// `A2C2f`: y0 = cv1(x), each next one by a module of its own, cv2 of all of them; x + gamma * that where there is a gamma.
pub(super) fn areas<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let mut links = vec![apply(walk, &place.child("cv1")?, x)?];
    for member in place.child("m")?.members()? {
        let next = apply(walk, &member, &links[links.len() - 1])?;
        links.push(next);
    }
    let y = walk.graph.concat(&place.scope, &links.iter().collect::<Vec<_>>(), 1)?;
    let y = apply(walk, &place.child("cv2")?, &y)?;
    if place.module.parameter("gamma").is_none() {
        return Ok(y);
    }
    let (_, gamma) = walk.parameter(place, "gamma")?;
    if gamma.len() != y.dims[1] {
        return Err(place.fault(format!("its gamma has {} channels, and its picture {}", gamma.len(), y.dims[1])));
    }
    let name = format!("{}.gamma", place.path);
    let gamma_value = Value { name, dims: vec![1, gamma.len(), 1, 1] };
    walk.graph.weight(&gamma_value.name, &gamma_value.dims, gamma.into_iter());
    let scaled = walk.graph.pair(&place.scope, "Mul", &gamma_value, &y)?;
    walk.graph.add(&place.scope, x, &scaled)
}
