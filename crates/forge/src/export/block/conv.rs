//! Convolutions, with the norm that follows folded in, and their activations.

use prony_model::pt::Class;

use super::super::fuse::{Kernel, Norm};
use super::super::graph::{Value, Window, float};
use super::super::guard;
use super::super::place::Place;
use super::super::walk::Walk;
use super::Made;
use crate::ForgeError;

/// A convolution as it is stored: its weights, window and groups.
pub(super) struct Stored {
    pub(super) kernel: Kernel,
    pub(super) window: Window,
    pub(super) groups: usize,
    biased: bool,
}

/// `conv`, `bn` and `act`: act(bn(conv(x))). A model that was fused before has no `bn`.
pub(super) fn normed<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let stored = folded(walk, place)?;
    let y = write(walk, &place.child("conv")?, &stored, x)?;
    activated(walk, &place.child("act")?, &y)
}

/// `Conv2d` alone.
pub(super) fn bare<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let stored = stored(walk, place)?;
    write(walk, place, &stored, x)
}

/// `CBLinear`: a convolution, cut into parts of `c2s` channels.
pub(super) fn cut<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Result<Vec<Value>, ForgeError> {
    let y = bare(walk, &place.child("conv")?, x)?;
    match &walk.attributes().sizes(place, "c2s")?[..] {
        [whole] if y.dims.get(1) == Some(whole) => Ok(vec![y]),
        sizes => walk.graph.split(&place.scope, &y, 1, sizes),
    }
}

/// The convolution that turns a distribution over distances into a distance. Its weights are 0, 1, 2 and so on; anything
/// else would be another arithmetic. Their number must be that of the head.
pub(in crate::export) fn dfl<'a>(walk: &mut Walk<'a>, place: &Place<'a>, bins: usize) -> Result<Vec<f32>, ForgeError> {
    guard::known(walk.attributes(), place)?;
    let conv = place.child("conv")?;
    let (tensor, weights) = walk.parameter(&conv, "weight")?;
    let expected: Vec<f32> = (0..bins).map(|bin| bin as f32).collect();
    if tensor.shape != [1, bins, 1, 1] || weights != expected {
        return Err(conv.fault(format!("its weights are not 0 to {}", bins.saturating_sub(1))));
    }
    Ok(weights)
}

/// `conv` with its norm, if it has one, in a module that holds both.
pub(super) fn folded<'a>(walk: &mut Walk<'a>, place: &Place<'a>) -> Result<Stored, ForgeError> {
    let mut stored = stored(walk, &place.child("conv")?)?;
    if let Some(bn) = place.maybe("bn") {
        let norm = norm(walk, &bn)?;
        let kernel = stored.kernel.normed(&norm);
        stored.kernel = kernel.ok_or_else(|| bn.fault("it is of another number of channels than its convolution"))?;
        stored.biased = true;
    }
    Ok(stored)
}

/// A batch norm's factors and terms.
pub(super) fn norm<'a>(walk: &mut Walk<'a>, place: &Place<'a>) -> Result<Norm, ForgeError> {
    guard::known(walk.attributes(), place)?;
    if place.class() != "BatchNorm2d" {
        return Err(guard::unknown(place));
    }
    let eps = walk.attributes().number(place, "eps")?;
    let (_, weight) = walk.parameter(place, "weight")?;
    let (_, bias) = walk.parameter(place, "bias")?;
    let (mean, variance) = (walk.buffer(place, "running_mean")?, walk.buffer(place, "running_var")?);
    Norm::new([&weight, &bias, &mean, &variance], eps)
        .ok_or_else(|| place.fault("its numbers of channels differ, or a variance is below zero"))
}

/// A `Conv2d` as it is.
pub(super) fn stored<'a>(walk: &mut Walk<'a>, place: &Place<'a>) -> Result<Stored, ForgeError> {
    guard::known(walk.attributes(), place)?;
    if place.class() != "Conv2d" {
        return Err(guard::unknown(place));
    }
    let attributes = walk.attributes();
    if !attributes.says(place, "padding_mode", "zeros") || attributes.truth(place, "transposed")? {
        return Err(place.fault("it is transposed or pads with something else than zeros"));
    }
    let [size, stride, padding, dilation] = ["kernel_size", "stride", "padding", "dilation"];
    let window = Window {
        size: attributes.pair(place, size)?,
        stride: attributes.pair(place, stride)?,
        padding: attributes.pair(place, padding)?,
        dilation: attributes.pair(place, dilation)?,
    };
    let groups = attributes.size(place, "groups")?;
    let channels = [attributes.size(place, "out_channels")?, attributes.size(place, "in_channels")?];
    let (tensor, weight) = walk.parameter(place, "weight")?;
    let shape: [usize; 4] =
        tensor.shape[..].try_into().map_err(|_| place.fault(format!("its weights have shape {:?}", tensor.shape)))?;
    if channels != [shape[0], shape[1].saturating_mul(groups)] {
        return Err(place.fault(format!("its weights have shape {shape:?}, and its channels are {channels:?}")));
    }
    let bias = match place.module.parameter("bias") {
        Some(_) => Some(walk.parameter(place, "bias")?.1),
        None => None,
    };
    if bias.as_ref().is_some_and(|bias| bias.len() != shape[0]) {
        return Err(place.fault("its bias is of another number of channels"));
    }
    let biased = bias.is_some();
    Ok(Stored { kernel: Kernel::new(shape, &weight, bias.as_deref()), window, groups, biased })
}

/// The node, with the weights named after the place.
pub(super) fn write<'a>(walk: &mut Walk<'a>, place: &Place<'a>, stored: &Stored, x: &Value) -> Made {
    let Stored { kernel, window, groups, biased } = stored;
    let [weight, bias] = ["weight", "bias"].map(|name| format!("{}.{name}", place.path));
    walk.graph.weight(&weight, &kernel.shape, kernel.weight.iter().map(|&number| number as f32));
    if *biased {
        walk.graph.weight(&bias, &[kernel.shape[0]], kernel.bias.iter().map(|&number| number as f32));
    }
    let bias = biased.then_some(bias.as_str());
    walk.graph.conv(&place.scope, x, (&weight, kernel.shape), bias, (window, *groups))
}

/// The activation that the file names.
pub(super) fn activated<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let Class { module, name } = &place.module.class;
    if !module.starts_with("torch.nn.") {
        return Err(guard::unknown(place));
    }
    match name.as_str() {
        "SiLU" => {
            let gate = walk.graph.each(&place.scope, "Sigmoid", x, vec![]);
            walk.graph.pair(&place.scope, "Mul", x, &gate)
        }
        "ReLU" => Ok(walk.graph.each(&place.scope, "Relu", x, vec![])),
        "LeakyReLU" => {
            let slope = walk.attributes().number(place, "negative_slope")?;
            Ok(walk.graph.each(&place.scope, "LeakyRelu", x, vec![float("alpha", slope as f32)]))
        }
        // The operator of that name came with operator set 14.
        "Hardswish" => {
            let gate =
                walk.graph.each(&place.scope, "HardSigmoid", x, vec![float("alpha", 1.0 / 6.0), float("beta", 0.5)]);
            walk.graph.pair(&place.scope, "Mul", x, &gate)
        }
        "Identity" => Ok(x.clone()),
        _ => Err(place.fault("this activation is not supported; SiLU, ReLU, LeakyReLU, Hardswish and none are")),
    }
}
