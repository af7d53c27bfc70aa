//! Which rule an operator follows.

use super::content::Content;
use super::node::Node;
use super::{Shape, arrange, einsum, pick, product, window};
use crate::onnx::TensorProto;

/// The shapes of a node's outputs, in order; fewer where it has none for the last. `None` for what is not known at all.
pub(super) fn outputs(node: &Node<'_>) -> Option<Vec<Option<Shape>>> {
    let op = node.op();
    match (node.is_standard(), op) {
        (true, "Split") => arrange::split(node),
        (true, "DynamicQuantizeLinear") => Some(vec![node.shape(0).cloned(), Some(vec![]), Some(vec![])]),
        // What they give beside the result is for training.
        (true, "LayerNormalization" | "BatchNormalization") => Some(vec![node.shape(0).cloned()]),
        (true, "MaxPool") => Some(vec![window::pool(node); 2]),
        (true, "TopK") => Some(vec![pick::top_k(node); 2]),
        (true, "Dropout") => Some(vec![node.shape(0).cloned(); 2]),
        (true, _) => Some(vec![standard(node, op)]),
        (false, _) if node.proto.domain == "com.microsoft" => Some(vec![microsoft(node, op)]),
        (false, _) => None,
    }
}

fn standard(node: &Node<'_>, op: &str) -> Option<Shape> {
    match op {
        "Conv" | "ConvInteger" => window::convolution(node, 1),
        "QLinearConv" => window::convolution(node, 3),
        "ConvTranspose" => window::transposed(node),
        "AveragePool" | "LpPool" => window::pool(node),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => window::global_pool(node),
        "MatMul" | "MatMulInteger" => product::matmul(node, 0, 1),
        "QLinearMatMul" => product::matmul(node, 0, 3),
        "Gemm" => product::gemm(node, 0, 1),
        "Einsum" => einsum::einsum(node),
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "And" | "Or" | "Xor" | "Equal" | "Less" | "LessOrEqual"
        | "Greater" | "GreaterOrEqual" | "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" => {
            product::stretched(node, 0..2)
        }
        "Max" | "Min" | "Sum" | "Mean" | "Where" => product::stretched(node, 0..node.proto.input.len()),
        "Reshape" => arrange::reshape(node),
        "Transpose" => arrange::transpose(node),
        "Flatten" => arrange::flatten(node),
        "Squeeze" => arrange::squeeze(node),
        "Unsqueeze" => arrange::unsqueeze(node),
        "Concat" => arrange::concat(node, 0..node.proto.input.len()),
        "Expand" => arrange::expand(node),
        "Tile" => arrange::tile(node),
        "Pad" => arrange::pad(node),
        "DepthToSpace" => arrange::blocks(node, true),
        "SpaceToDepth" => arrange::blocks(node, false),
        "Resize" | "Upsample" => arrange::resize(node),
        "Slice" => pick::slice(node),
        "Gather" => pick::gather(node),
        "GatherElements" => node.shape(1).cloned(),
        "GatherND" => pick::gather_nd(node),
        "ArgMax" | "ArgMin" => pick::place(node),
        "OneHot" => pick::one_hot(node),
        "GridSample" => match (&node.shape(0)?[..], &node.shape(1)?[..]) {
            ([batch, channels, ..], [_, spatial @ .., _]) => Some([&[*batch, *channels], spatial].concat()),
            _ => None,
        },
        "RoiAlign" => match (&node.shape(0)?[..], &node.shape(1)?[..]) {
            ([_, channels, ..], [regions, _]) => {
                let side = |name: &str| u64::try_from(node.int(name).unwrap_or(1)).ok();
                Some(vec![*regions, *channels, side("output_height")?, side("output_width")?])
            }
            _ => None,
        },
        "Constant" => made(node),
        "ConstantOfShape" => node.ints_of(0)?.iter().map(|&n| u64::try_from(n).ok()).collect(),
        "Shape" => Some(vec![node.shape(0).map(|shape| range(node, shape.len()).len() as u64)?]),
        "Size" => node.shape(0).map(|_| vec![]),
        "Range" => Content::range_length(node.content(0)?, node.content(1)?, node.content(2)?).map(|n| vec![n]),
        _ if op.starts_with("Reduce") => pick::reduce(node),
        _ if keeps_shape(op) => node.shape(0).cloned(),
        _ => None,
    }
}

/// Operators of ONNX Runtime's own that its quantiser and its optimiser write.
fn microsoft(node: &Node<'_>, op: &str) -> Option<Shape> {
    match op {
        "FusedConv" => window::convolution(node, 1),
        "FusedMatMul" if node.proto.attribute.iter().all(|a| !a.name.starts_with("trans") || a.i == 0) => {
            product::matmul(node, 0, 1)
        }
        "QGemm" => product::gemm(node, 0, 3),
        "QLinearAdd" | "QLinearMul" => product::stretched(node, [0, 3]),
        "QLinearConcat" => arrange::concat(node, (2..node.proto.input.len()).step_by(3)),
        "QLinearAveragePool" => window::pool(node),
        "QLinearGlobalAveragePool" => window::global_pool(node),
        "QuantizeLinear" | "DequantizeLinear" | "QLinearSigmoid" | "QLinearLeakyRelu" | "QLinearSoftmax" | "Gelu"
        | "FastGelu" | "QuickGelu" | "BiasGelu" => node.shape(0).cloned(),
        _ => None,
    }
}

/// Whether the output is shaped as the first input.
pub(crate) fn keeps_shape(op: &str) -> bool {
    matches!(
        op,
        "Abs"
            | "Acos"
            | "Asin"
            | "Atan"
            | "Bernoulli"
            | "BitwiseNot"
            | "Cast"
            | "CastLike"
            | "Ceil"
            | "Celu"
            | "Clip"
            | "Cos"
            | "Cosh"
            | "CumSum"
            | "DequantizeLinear"
            | "Elu"
            | "Erf"
            | "Exp"
            | "EyeLike"
            | "Floor"
            | "Gelu"
            | "GroupNormalization"
            | "HardSigmoid"
            | "HardSwish"
            | "Hardmax"
            | "Identity"
            | "InstanceNormalization"
            | "IsInf"
            | "IsNaN"
            | "LRN"
            | "LeakyRelu"
            | "Log"
            | "LogSoftmax"
            | "LpNormalization"
            | "MeanVarianceNormalization"
            | "Mish"
            | "Neg"
            | "Not"
            | "PRelu"
            | "QuantizeLinear"
            | "RMSNormalization"
            | "RandomNormalLike"
            | "RandomUniformLike"
            | "Reciprocal"
            | "Relu"
            | "Round"
            | "Scatter"
            | "ScatterElements"
            | "ScatterND"
            | "Selu"
            | "Shrink"
            | "Sigmoid"
            | "Sign"
            | "Sin"
            | "Sinh"
            | "Softmax"
            | "Softplus"
            | "Softsign"
            | "Sqrt"
            | "Swish"
            | "Tan"
            | "Tanh"
            | "ThresholdedRelu"
            | "Trilu"
    )
}

/// The axes that a node asks the shape of.
pub(super) fn range(node: &Node<'_>, rank: usize) -> std::ops::Range<usize> {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let bound = |name: &str, default: i64| {
        let n = node.int(name).unwrap_or(default);
        usize::try_from(if n < 0 { n.saturating_add(rank) } else { n }.clamp(0, rank)).unwrap_or(0)
    };
    let (start, end) = (bound("start", 0), bound("end", rank));
    start..end.max(start)
}

/// What a constant holds.
fn made(node: &Node<'_>) -> Option<Shape> {
    let value = node.first_attribute()?;
    let of = |tensor: &TensorProto| tensor.dims.iter().map(|&n| u64::try_from(n).ok()).collect();
    match value.name.as_str() {
        "value" => value.t.as_ref().and_then(of),
        "value_int" | "value_float" | "value_string" => Some(vec![]),
        "value_ints" => Some(vec![value.ints.len() as u64]),
        "value_floats" => Some(vec![value.floats.len() as u64]),
        _ => None,
    }
}
