//! Arithmetic of one node. A multiply-add counts 2, any other operation on an element 1, a function like `exp` too.

use super::Place;
use crate::shape::{einsum_letters, einsum_sizes, keeps_shape};

/// What an operator does with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Convolutions and products of matrices: where the time goes.
    Product,
    /// Anything else that computes.
    Arithmetic,
    /// Nothing but moving.
    Move,
    /// Nothing at all: another view of the same elements.
    View,
}

/// What is known of an operator; `None` for one that is not.
pub(super) fn kind(place: &Place<'_>) -> Option<Kind> {
    let (op, domain) = (place.node.op_type.as_str(), place.node.domain.as_str());
    if !matches!(domain, "" | "ai.onnx" | "com.microsoft") {
        return None;
    }
    Some(match op {
        "Conv" | "ConvInteger" | "QLinearConv" | "ConvTranspose" | "FusedConv" | "MatMul" | "MatMulInteger"
        | "QLinearMatMul" | "FusedMatMul" | "Gemm" | "QGemm" | "Einsum" => Kind::Product,
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Identity" | "Dropout" | "Shape" | "Size" | "Constant" => {
            Kind::View
        }
        "Transpose" | "Concat" | "QLinearConcat" | "Split" | "Slice" | "Gather" | "GatherElements" | "GatherND"
        | "Expand" | "Tile" | "Pad" | "DepthToSpace" | "SpaceToDepth" | "Cast" | "CastLike" | "Where" | "Scatter"
        | "ScatterElements" | "ScatterND" | "ConstantOfShape" | "Range" | "OneHot" | "Trilu" | "EyeLike" => Kind::Move,
        "Add"
        | "Sub"
        | "Mul"
        | "Div"
        | "Pow"
        | "Mod"
        | "And"
        | "Or"
        | "Xor"
        | "Equal"
        | "Less"
        | "LessOrEqual"
        | "Greater"
        | "GreaterOrEqual"
        | "BitShift"
        | "BitwiseAnd"
        | "BitwiseOr"
        | "BitwiseXor"
        | "Max"
        | "Min"
        | "Sum"
        | "Mean"
        | "MaxPool"
        | "AveragePool"
        | "LpPool"
        | "GlobalAveragePool"
        | "GlobalMaxPool"
        | "GlobalLpPool"
        | "ArgMax"
        | "ArgMin"
        | "TopK"
        | "LayerNormalization"
        | "BatchNormalization"
        | "DynamicQuantizeLinear"
        | "Resize"
        | "Upsample"
        | "GridSample"
        | "QLinearAdd"
        | "QLinearMul"
        | "QLinearAveragePool"
        | "QLinearGlobalAveragePool"
        | "QLinearSigmoid"
        | "QLinearLeakyRelu"
        | "QLinearSoftmax"
        | "FastGelu"
        | "QuickGelu"
        | "BiasGelu" => Kind::Arithmetic,
        _ if op.starts_with("Reduce") || keeps_shape(op) => Kind::Arithmetic,
        _ => return None,
    })
}

/// Operations of a node; `None` where its shapes are not known, or they are beyond all numbers.
pub(super) fn flops(place: &Place<'_>, kind: Kind) -> Option<u64> {
    let output = || place.output_count(0);
    let input = || place.input_count(0);
    let times = |n: u64, each: u64| n.checked_mul(each);
    let op = place.node.op_type.as_str();
    match kind {
        Kind::View | Kind::Move => return Some(0),
        Kind::Product => return product(place, op),
        Kind::Arithmetic => {}
    }
    match op {
        "MaxPool" | "AveragePool" | "LpPool" | "QLinearAveragePool" => {
            let kernel = place.ints("kernel_shape")?;
            let area = kernel.iter().try_fold(1u64, |n, &side| n.checked_mul(u64::try_from(side).ok()?))?;
            times(output()?, area)
        }
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" | "QLinearGlobalAveragePool" => input(),
        _ if op.starts_with("Reduce") => input(),
        "ArgMax" | "ArgMin" | "TopK" | "CumSum" => input(),
        // The largest, the difference to it, its power, the sum, the quotient.
        "Softmax" | "LogSoftmax" | "QLinearSoftmax" => times(input()?, 5),
        // The mean 1, the deviation 3, the quotient 2, scale and offset 2.
        "LayerNormalization" | "InstanceNormalization" | "GroupNormalization" => times(input()?, 8),
        "BatchNormalization" | "QuantizeLinear" | "DequantizeLinear" | "DynamicQuantizeLinear" => times(input()?, 2),
        "Resize" | "Upsample" => match place.text("mode") {
            "" | "nearest" => Some(0),
            "linear" => times(output()?, 8),
            "cubic" => times(output()?, 32),
            _ => None,
        },
        "GridSample" => times(output()?, 8),
        "Max" | "Min" | "Sum" | "Mean" => times(output()?, (place.node.input.len() as u64).saturating_sub(1)),
        _ => output(),
    }
}

fn product(place: &Place<'_>, op: &str) -> Option<u64> {
    let add_bias = |flops: u64, at: usize| match place.has(at) {
        true => flops.checked_add(place.output_count(0)?),
        false => Some(flops),
    };
    let area = |weights: usize| crate::shape::count(place.input(weights)?.get(1..)?);
    let each = |elements: u64, inner: u64| elements.checked_mul(inner)?.checked_mul(2);
    let inner = |at: usize| place.input(at)?.last().copied();
    match op {
        "Conv" | "FusedConv" => add_bias(each(place.output_count(0)?, area(1)?)?, 2),
        "ConvInteger" => each(place.output_count(0)?, area(1)?),
        "QLinearConv" => add_bias(each(place.output_count(0)?, area(3)?)?, 8),
        "ConvTranspose" => add_bias(each(place.input_count(0)?, area(1)?)?, 2),
        "MatMul" | "MatMulInteger" | "QLinearMatMul" | "FusedMatMul" => each(place.output_count(0)?, inner(0)?),
        "Gemm" | "QGemm" => {
            let turned = place.int("transA").is_some_and(|flag| flag != 0);
            let inner = if turned { *place.input(0)?.first()? } else { inner(0)? };
            let flops = each(place.output_count(0)?, inner)?;
            if op == "Gemm" { add_bias(flops, 2) } else { Some(flops) }
        }
        _ => {
            let (inputs, _) = einsum_letters(place.text("equation"))?;
            let sizes = einsum_sizes(&inputs, |at| place.input(at))?;
            let all = sizes.iter().try_fold(1u64, |n, (_, size)| n.checked_mul(*size))?;
            if inputs.len() > 1 { all.checked_mul(2) } else { Some(all) }
        }
    }
}
