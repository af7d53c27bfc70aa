//! The modules, one routine for those that compute the same. What each one computes is written where it is done.

mod attention;
mod conv;
mod cross;
mod pool;
mod rep;

use super::graph::Value;
use super::guard;
use super::place::Place;
use super::walk::{Given, Walk};
use crate::ForgeError;

pub(super) use conv::dfl;

type Made = Result<Value, ForgeError>;

/// A layer of the model: one picture in, or several.
pub(super) fn layer<'a>(walk: &mut Walk<'a>, place: &Place<'a>, sources: &[Given]) -> Result<Given, ForgeError> {
    guard::known(walk.attributes(), place)?;
    match (place.class(), sources) {
        ("Concat", sources) => joined(walk, place, sources).map(Given::One),
        ("CBFuse", sources) => pool::fuse(walk, place, sources).map(Given::One),
        ("CBLinear", [Given::One(x)]) => conv::cut(walk, place, x).map(Given::Several),
        (_, [Given::One(x)]) => apply(walk, place, x).map(Given::One),
        _ => Err(place.fault("it is not given one picture")),
    }
}

/// A module with one picture in and one out.
pub(super) fn apply<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    guard::known(walk.attributes(), place)?;
    match place.class() {
        "Conv" | "DWConv" => conv::normed(walk, place, x),
        "Conv2d" => conv::bare(walk, place, x),
        "Identity" | "Silence" => Ok(x.clone()),
        "Sequential" => row(walk, place, x),
        "MaxPool2d" => pool::largest(walk, place, x),
        "Upsample" => pool::magnified(walk, place, x),
        "Bottleneck" | "RepBottleneck" => {
            let y = apply(walk, &place.child("cv1")?, x)?;
            let y = apply(walk, &place.child("cv2")?, &y)?;
            residual(walk, place, x, y)
        }
        "CIB" => {
            let y = apply(walk, &place.child("cv1")?, x)?;
            residual(walk, place, x, y)
        }
        "SCDown" => {
            let y = apply(walk, &place.child("cv1")?, x)?;
            apply(walk, &place.child("cv2")?, &y)
        }
        "C2f" | "C3k2" | "C2fCIB" => cross::chained(walk, place, x),
        "C2" => cross::first_half(walk, place, x),
        "C3" | "C3k" | "RepCSP" => cross::parallel(walk, place, x),
        "RepNCSPELAN4" | "ELAN1" => cross::elan(walk, place, x),
        "C2PSA" | "PSA" => cross::attended(walk, place, x),
        "A2C2f" => cross::areas(walk, place, x),
        "SPPF" => pool::pyramid(walk, place, x),
        "SPPELAN" => pool::pyramid_of_three(walk, place, x),
        "AConv" => pool::mean_then_conv(walk, place, x),
        "ADown" => pool::down(walk, place, x),
        "RepConv" => rep::conv(walk, place, x),
        "RepVGGDW" => rep::depthwise(walk, place, x),
        "Attention" => attention::attention(walk, place, x),
        "AAttn" => attention::by_area(walk, place, x),
        "PSABlock" => attention::block(walk, place, x),
        "ABlock" => attention::area_block(walk, place, x),
        _ => Err(guard::unknown(place)),
    }
}

/// Modules one after the other.
fn row<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    place.members()?.iter().try_fold(x.clone(), |x, member| apply(walk, member, &x))
}

/// What went in added to what came out, where the module says so.
fn residual<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value, y: Value) -> Made {
    match walk.attributes().truth(place, "add")? {
        true => walk.graph.add(&place.scope, x, &y),
        false => Ok(y),
    }
}

fn joined<'a>(walk: &mut Walk<'a>, place: &Place<'a>, sources: &[Given]) -> Made {
    let one = |source: &'_ Given| match source {
        Given::One(value) => Some(value.clone()),
        Given::Several(_) => None,
    };
    let parts: Option<Vec<Value>> = sources.iter().map(one).collect();
    let parts = parts.ok_or_else(|| place.fault("it is given what is no picture"))?;
    let axis = walk.attributes().size(place, "d")?;
    walk.graph.concat(&place.scope, &parts.iter().collect::<Vec<_>>(), axis)
}
