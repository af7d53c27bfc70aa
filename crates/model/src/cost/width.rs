//! How wide elements are, and what they are called.

/// Bits of an element behind ONNX's number for its type; `None` for texts and what is not known.
pub(crate) fn bits(number: i32) -> Option<u64> {
    Some(match number {
        21..=23 => 4,
        2 | 3 | 9 | 17..=20 | 24 => 8,
        4 | 5 | 10 | 16 => 16,
        1 | 6 | 12 => 32,
        7 | 11 | 13 | 14 => 64,
        15 => 128,
        _ => return None,
    })
}

/// The name of a type.
pub(crate) fn name(number: i32) -> &'static str {
    match number {
        1 => "f32",
        2 => "u8",
        3 => "i8",
        4 => "u16",
        5 => "i16",
        6 => "i32",
        7 => "i64",
        8 => "text",
        9 => "bool",
        10 => "f16",
        11 => "f64",
        12 => "u32",
        13 => "u64",
        14 => "c64",
        15 => "c128",
        16 => "bf16",
        17 => "f8e4m3",
        18 => "f8e4m3fnuz",
        19 => "f8e5m2",
        20 => "f8e5m2fnuz",
        21 => "u4",
        22 => "i4",
        23 => "f4e2m1",
        24 => "f8e8m0",
        _ => "unknown",
    }
}

/// Bytes of so many elements.
pub(crate) fn bytes(elements: u64, number: i32) -> Option<u64> {
    elements.checked_mul(bits(number)?).map(|bits| bits.div_ceil(8))
}
