//! Pooling, magnifying, and the blocks made of little else.

use super::super::graph::{Value, Window};
use super::super::place::Place;
use super::super::walk::{Given, Walk};
use super::{Made, apply};

/// `MaxPool2d`.
pub(super) fn largest<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let attributes = walk.attributes();
    let window = Window {
        size: attributes.pair(place, "kernel_size")?,
        stride: attributes.pair(place, "stride")?,
        padding: attributes.pair(place, "padding")?,
        dilation: attributes.pair(place, "dilation")?,
    };
    if window.dilation != [1; 2] || attributes.truth(place, "ceil_mode")? {
        return Err(place.fault("it is dilated or rounds up"));
    }
    walk.graph.pool(&place.scope, "MaxPool", x, &window)
}

/// `Upsample`: every pixel repeated.
pub(super) fn magnified<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let attributes = walk.attributes();
    let factor = attributes.number(place, "scale_factor")?;
    let whole = (1.0..=16.0).contains(&factor) && factor.fract() == 0.0;
    if !whole || !attributes.says(place, "mode", "nearest") || attributes.has(place, "size") {
        return Err(place.fault("it does not repeat pixels a whole number of times"));
    }
    walk.graph.magnify(&place.scope, x, [factor as usize; 2])
}

/// `SPPF`: cv2([y0; y1; ...]) with y0 = cv1(x) and each next one pooled from the one before; x added where it says so.
pub(super) fn pyramid<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let attributes = walk.attributes();
    // Before 8.4 there were always three, and nothing was added.
    let steps = if attributes.has(place, "n") { attributes.size(place, "n")? } else { 3 };
    let added = attributes.has(place, "add") && attributes.truth(place, "add")?;
    if steps > 16 {
        return Err(place.fault(format!("it pools {steps} times")));
    }
    let pool = place.child("m")?;
    let mut levels = vec![apply(walk, &place.child("cv1")?, x)?];
    for step in 0..steps {
        let next = apply(walk, &pool, &levels[step])?;
        levels.push(next);
    }
    let y = walk.graph.concat(&place.scope, &levels.iter().collect::<Vec<_>>(), 1)?;
    let y = apply(walk, &place.child("cv2")?, &y)?;
    if added { walk.graph.add(&place.scope, &y, x) } else { Ok(y) }
}

/// `SPPELAN`: the same with three pools of their own, cv2 to cv4, and cv5 at the end.
pub(super) fn pyramid_of_three<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let mut levels = vec![apply(walk, &place.child("cv1")?, x)?];
    for (step, pool) in ["cv2", "cv3", "cv4"].into_iter().enumerate() {
        let next = apply(walk, &place.child(pool)?, &levels[step])?;
        levels.push(next);
    }
    let y = walk.graph.concat(&place.scope, &levels.iter().collect::<Vec<_>>(), 1)?;
    apply(walk, &place.child("cv5")?, &y)
}

/// `AConv`: cv1 of the mean over 2x2.
pub(super) fn mean_then_conv<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let y = walk.graph.pool(&place.scope, "AveragePool", x, &Window::square(2, 1, 0))?;
    apply(walk, &place.child("cv1")?, &y)
}

/// `ADown`: the mean over 2x2, in two halves: [cv1(a); cv2(maxpool(b))].
pub(super) fn down<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let mean = walk.graph.pool(&place.scope, "AveragePool", x, &Window::square(2, 1, 0))?;
    let [a, b] = walk.graph.halves(&place.scope, &mean)?;
    let a = apply(walk, &place.child("cv1")?, &a)?;
    let b = walk.graph.pool(&place.scope, "MaxPool", &b, &Window::square(3, 2, 1))?;
    let b = apply(walk, &place.child("cv2")?, &b)?;
    walk.graph.concat(&place.scope, &[&a, &b], 1)
}

/// `CBFuse`: the last picture, and of each one before it the part `idx` names, magnified to the size of the last.
pub(super) fn fuse<'a>(walk: &mut Walk<'a>, place: &Place<'a>, sources: &[Given]) -> Made {
    let Some((Given::One(last), parts)) = sources.split_last() else {
        return Err(place.fault("the last that it is given is no picture"));
    };
    let which = walk.attributes().sizes(place, "idx")?;
    if which.len() != parts.len() {
        return Err(place.fault(format!("it has {} parts to choose from and chooses {}", parts.len(), which.len())));
    }
    let mut sum = last.clone();
    for (part, index) in parts.iter().zip(which) {
        let Given::Several(pictures) = part else { return Err(place.fault("what it chooses from is one picture")) };
        let picture = pictures.get(index).ok_or_else(|| place.fault(format!("there is no part {index}")))?;
        let times = match (picture.picture(), last.picture()) {
            (Some([_, h, w]), Some([_, height, width])) if height % h == 0 && width % w == 0 => [height / h, width / w],
            _ => return Err(place.fault(format!("{:?} is no part of {:?}", picture.dims, last.dims))),
        };
        let picture = match times {
            [1, 1] => picture.clone(),
            times => walk.graph.magnify(&place.scope, picture, times)?,
        };
        sum = walk.graph.add(&place.scope, &sum, &picture)?;
    }
    Ok(sum)
}
