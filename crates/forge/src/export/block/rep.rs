//! Convolutions that were trained as several side by side, and are one when they run.

use super::super::fuse::Kernel;
use super::super::graph::{Value, Window};
use super::super::place::Place;
use super::super::walk::Walk;
use super::conv::{self, Stored};
use super::{Made, apply};
use crate::ForgeError;

/// `RepConv`: act(conv1(x) + conv2(x) + bn(x)), the last where there is one. A fused one has `conv` instead.
pub(super) fn conv<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let act = place.child("act")?;
    let y = match place.maybe("conv") {
        Some(fused) => apply(walk, &fused, x)?,
        None => {
            let mut first = branch(walk, &place.child("conv1")?)?;
            let second = branch(walk, &place.child("conv2")?)?;
            beside(place, &mut first, &second)?;
            if let Some(bn) = place.maybe("bn") {
                let norm = conv::norm(walk, &bn)?;
                let kernel = Kernel::identity(&norm, first.kernel.shape[1]);
                let kernel = kernel.and_then(|identity| first.kernel.beside(&identity));
                first.kernel = kernel.ok_or_else(|| bn.fault("it does not fit the convolutions beside it"))?;
            }
            written(walk, place, &first, x)?
        }
    };
    conv::activated(walk, &act, &y)
}

/// `RepVGGDW`: act(conv(x) + conv1(x)), of 7x7 and 3x3. A fused one has a bare convolution alone.
pub(super) fn depthwise<'a>(walk: &mut Walk<'a>, place: &Place<'a>, x: &Value) -> Made {
    let act = place.child("act")?;
    let conv = place.child("conv")?;
    let y = match place.maybe("conv1") {
        None => apply(walk, &conv, x)?,
        Some(narrow) => {
            let mut wide = branch(walk, &conv)?;
            let narrow = branch(walk, &narrow)?;
            beside(place, &mut wide, &narrow)?;
            written(walk, place, &wide, x)?
        }
    };
    conv::activated(walk, &act, &y)
}

/// One side: a convolution with its norm, and no activation of its own.
fn branch<'a>(walk: &mut Walk<'a>, place: &Place<'a>) -> Result<Stored, ForgeError> {
    super::guard::known(walk.attributes(), place)?;
    let act = place.child("act")?;
    if act.class() != "Identity" {
        return Err(act.fault("a branch of several has an activation of its own"));
    }
    conv::folded(walk, place)
}

/// Adds a branch to a wider one. Their windows must meet at the same pixels.
fn beside(place: &Place<'_>, wide: &mut Stored, narrow: &Stored) -> Result<(), ForgeError> {
    let centred = |window: &Window| [0, 1].map(|axis| window.size[axis].checked_sub(2 * window.padding[axis]));
    let alike = wide.window.stride == narrow.window.stride
        && centred(&wide.window) == centred(&narrow.window)
        && [wide.window.dilation, narrow.window.dilation] == [[1; 2]; 2]
        && wide.groups == narrow.groups;
    let kernel =
        alike.then(|| std::mem::replace(&mut wide.kernel, Kernel { shape: [0; 4], weight: vec![], bias: vec![] }));
    let kernel = kernel.and_then(|kernel| kernel.beside(&narrow.kernel));
    wide.kernel = kernel.ok_or_else(|| place.fault("its branches do not fit each other"))?;
    Ok(())
}

/// The one convolution, under the name that it gets where Ultralytics fuses it.
fn written<'a>(walk: &mut Walk<'a>, place: &Place<'a>, stored: &Stored, x: &Value) -> Made {
    let named =
        Place { module: place.module, path: format!("{}.conv", place.path), scope: format!("{}/conv", place.scope) };
    conv::write(walk, &named, stored, x)
}
