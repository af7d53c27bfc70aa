//! Which operators are computed in 16 bits, and which stay in fp32 whatever is asked.

use prony_types::Precision;

/// What an operator is to the conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Most of the work: always worth a cast around it.
    Heavy,
    /// Elementwise or moving: goes with its neighbours.
    Light,
    /// Sums, exponents, indices of the best, or not known: fp32.
    Stays,
}

/// An operator in 16 bits: its name, its role, and the first operator set that lets it have bf16. Every one of them has had
/// fp16 since it exists. What is not listed stays in fp32, so an operator of tomorrow is slow and not wrong.
const NARROW: [(&str, Role, i64); 49] = [
    ("Conv", Role::Heavy, 22),
    ("ConvTranspose", Role::Heavy, 22),
    ("Einsum", Role::Heavy, 28),
    ("Gemm", Role::Heavy, 13),
    ("MatMul", Role::Heavy, 13),
    ("Abs", Role::Light, 13),
    ("Add", Role::Light, 13),
    ("AveragePool", Role::Light, 22),
    ("BatchNormalization", Role::Light, 14),
    ("Clip", Role::Light, 13),
    ("Concat", Role::Light, 13),
    ("DepthToSpace", Role::Light, 13),
    ("Div", Role::Light, 13),
    ("Dropout", Role::Light, 22),
    ("Elu", Role::Light, 22),
    ("Erf", Role::Light, 13),
    ("Expand", Role::Light, 13),
    ("Flatten", Role::Light, 13),
    ("Gather", Role::Light, 13),
    ("GatherElements", Role::Light, 13),
    ("GatherND", Role::Light, 13),
    ("Gelu", Role::Light, 20),
    ("GlobalMaxPool", Role::Light, 22),
    ("HardSigmoid", Role::Light, 22),
    ("HardSwish", Role::Light, 22),
    ("Identity", Role::Light, 13),
    ("LeakyRelu", Role::Light, 16),
    ("Max", Role::Light, 13),
    ("MaxPool", Role::Light, 22),
    ("Min", Role::Light, 13),
    ("Mish", Role::Light, 22),
    ("Mul", Role::Light, 13),
    ("Neg", Role::Light, 13),
    ("PRelu", Role::Light, 16),
    ("Pad", Role::Light, 13),
    ("Relu", Role::Light, 13),
    ("Reshape", Role::Light, 13),
    ("Resize", Role::Light, 13),
    ("Selu", Role::Light, 22),
    ("Sigmoid", Role::Light, 13),
    ("Slice", Role::Light, 13),
    ("SpaceToDepth", Role::Light, 13),
    ("Split", Role::Light, 13),
    ("Squeeze", Role::Light, 13),
    ("Sub", Role::Light, 13),
    ("Tanh", Role::Light, 13),
    ("Transpose", Role::Light, 13),
    ("Unsqueeze", Role::Light, 13),
    ("Where", Role::Light, 16),
];

/// The newest operator set that a graph is raised to. Newer ones are left alone.
pub(super) const HIGHEST: i64 = 22;

/// What an operator of the standard set is.
pub(super) fn role(op: &str, precision: Precision) -> Role {
    let known = NARROW.iter().find(|(name, ..)| *name == op);
    let allowed = |since: i64| precision != Precision::Bf16 || since <= HIGHEST;
    known.filter(|(.., since)| allowed(*since)).map_or(Role::Stays, |(_, role, _)| *role)
}

/// The first operator set in which it may have bf16.
pub(super) fn bf16_since(op: &str) -> i64 {
    match op {
        "Cast" => 13,
        "ConstantOfShape" => 20,
        op => NARROW.iter().find(|(name, ..)| *name == op).map_or(1, |(.., since)| *since),
    }
}

/// Whether an input is fp32 although the node is not: a factor of a size must not be rounded, and its type says so.
pub(super) fn stays_wide(op: &str, slot: usize) -> bool {
    matches!(op, "Resize" | "Dropout") && slot > 0
}

/// Whether it takes floats of any width without being asked for one: only their shape matters, or they are cast anyway.
pub(super) fn takes_any(op: &str) -> bool {
    matches!(op, "Shape" | "Size" | "Cast")
}

/// Whether it sums exponents, so that what feeds it is best left as it is too.
pub(super) fn sums_exponents(op: &str) -> bool {
    matches!(op, "Softmax" | "LogSoftmax")
}
