//! Operators that slide a window: convolutions and pools.

use prony_model::onnx::{AttributeProto, NodeProto};

use super::defaults::{Edit, Scope, ints};

/// Spatial axes that rten computes over.
const MOST_AXES: usize = 2;

/// A convolution's `kernel_shape` is that of its weight; its strides and dilations are 1 and its pads 0 where they are left out.
pub(super) fn convolution(node: &NodeProto, scope: &Scope<'_>) -> Result<Option<Edit>, String> {
    let weight = scope.shape(node.input.get(1));
    let weight_kernel = match weight {
        Some([_, _, kernel @ ..]) if !kernel.is_empty() => {
            let kernel: Result<Vec<i64>, _> = kernel.iter().map(|&size| i64::try_from(size)).collect();
            Some(kernel.map_err(|_| format!("its weight has the shape {weight:?}"))?)
        }
        Some(shape) => return Err(format!("its weight has the shape {shape:?}, which has no spatial axes")),
        None => None,
    };
    let declared = ints(node, "kernel_shape");
    if let (Some(declared), Some(found)) = (declared, &weight_kernel)
        && declared != found
    {
        return Err(format!("its kernel_shape is {declared:?}, and its weight has {found:?}"));
    }
    let kernel = declared.map(<[i64]>::to_vec).or(weight_kernel);
    let axes = kernel.as_ref().map(Vec::len).or_else(|| axes_of_lists(node)).or_else(|| {
        // The input has as many axes as the weight: batch, channels and space.
        scope.shape(node.input.first()).and_then(|input| input.len().checked_sub(2))
    });
    let weight = node.input.get(1).map_or("", String::as_str);
    let axes = axes.ok_or_else(|| {
        format!(
            "it has no kernel_shape, and the shape of its weight {weight} is not known; write kernel_shape into the \
             model, or use ort-cpu"
        )
    })?;
    check_axes(axes)?;
    check_padding(node, kernel.as_deref(), axes)?;
    let mut missing = Vec::new();
    if let (None, Some(kernel)) = (declared, &kernel) {
        missing.push(AttributeProto::ints("kernel_shape", kernel));
    }
    missing.extend(lists(node, axes, &[("strides", 1), ("dilations", 1)]));
    Ok((!missing.is_empty()).then_some(Edit::Set(missing)))
}

/// A pool's `kernel_shape` must be there; its strides are 1 and its pads 0 where they are left out.
pub(super) fn pool(node: &NodeProto) -> Result<Option<Edit>, String> {
    let kernel = ints(node, "kernel_shape").ok_or("it has no kernel_shape, which a pool must have")?;
    check_axes(kernel.len())?;
    check_padding(node, Some(kernel), kernel.len())?;
    let missing = lists(node, kernel.len(), &[("strides", 1)]);
    Ok((!missing.is_empty()).then_some(Edit::Set(missing)))
}

fn axes_of_lists(node: &NodeProto) -> Option<usize> {
    let length = |name| ints(node, name).map(<[i64]>::len);
    length("strides").or_else(|| length("dilations")).or_else(|| length("pads").map(|pads| pads / 2))
}

/// The lists that are left out, and the pads where nothing else decides them.
fn lists(node: &NodeProto, axes: usize, defaults: &[(&str, i64)]) -> Vec<AttributeProto> {
    let absent = |name: &str| ints(node, name).is_none();
    let lists = defaults.iter().filter(|(name, _)| absent(name));
    let mut missing: Vec<AttributeProto> =
        lists.map(|(name, value)| AttributeProto::ints(name, &vec![*value; axes])).collect();
    // rten has the default of pads where there is a kernel_shape, and takes an empty list at its word.
    let kernel_unknown = absent("kernel_shape");
    let empty = node.attribute.iter().any(|attribute| attribute.name == "pads" && attribute.ints.is_empty());
    if !auto_pad(node).starts_with("SAME") && absent("pads") && (kernel_unknown || empty) {
        missing.push(AttributeProto::ints("pads", &vec![0; 2 * axes]));
    }
    missing
}

fn auto_pad(node: &NodeProto) -> String {
    let attribute = node.attribute.iter().find(|attribute| attribute.name == "auto_pad");
    attribute.map(|attribute| String::from_utf8_lossy(&attribute.s).into_owned()).unwrap_or_default()
}

fn check_axes(axes: usize) -> Result<(), String> {
    match axes {
        1..=MOST_AXES => Ok(()),
        0 => Err("it has no spatial axes".to_owned()),
        more => Err(format!("it has {more} spatial axes, and rten computes over 1 or 2; use ort-cpu")),
    }
}

/// rten puts the odd one of an automatic padding at the end, `SAME_LOWER` wants it at the beginning.
fn check_padding(node: &NodeProto, kernel: Option<&[i64]>, axes: usize) -> Result<(), String> {
    if auto_pad(node) != "SAME_LOWER" {
        return Ok(());
    }
    let at = |name: &str, axis: usize| ints(node, name).and_then(|list| list.get(axis).copied()).unwrap_or(1);
    let is_even = |axis: usize| {
        let size = kernel.and_then(|kernel| kernel.get(axis));
        at("strides", axis) == 1
            && size.is_some_and(|size| size.saturating_sub(1).wrapping_mul(at("dilations", axis)) % 2 == 0)
    };
    match (0..axes).all(is_even) {
        true => Ok(()),
        false => Err("its auto_pad is SAME_LOWER, which rten computes as SAME_UPPER; use ort-cpu".to_owned()),
    }
}
