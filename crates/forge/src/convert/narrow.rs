//! Floats in 16 bits, and what is lost on the way.

use half::{bf16, f16};
use prony_model::onnx::{TensorProto, dtype};
use prony_types::Precision;
use serde::Serialize;

/// What became of the elements of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Finite ones that would be infinite.
    pub overflowed: u64,
    /// Those that keep fewer bits than others, because they are so small.
    pub subnormal: u64,
    /// Those that are 0 and were not.
    pub zeroed: u64,
}

impl Losses {
    /// Whether there is nothing to tell.
    pub fn is_none(&self) -> bool {
        *self == Losses::default()
    }

    pub(super) fn add(&mut self, other: Losses) {
        self.overflowed += other.overflowed;
        self.subnormal += other.subnormal;
        self.zeroed += other.zeroed;
    }

    fn count(&mut self, from: f32, to: f32, smallest_normal: f32) {
        self.overflowed += u64::from(from.is_finite() && to.is_infinite());
        self.subnormal += u64::from(to != 0.0 && to.abs() < smallest_normal);
        self.zeroed += u64::from(from != 0.0 && to == 0.0);
    }
}

/// ONNX's number for a 16-bit float.
pub(super) fn number(precision: Precision) -> i32 {
    if precision == Precision::Bf16 { dtype::BFLOAT16 } else { dtype::FLOAT16 }
}

/// The elements rounded to the nearest, ties to even, as little-endian bytes.
pub(super) fn narrow(elements: &[f32], precision: Precision) -> (Vec<u8>, Losses) {
    let mut losses = Losses::default();
    let mut bytes = Vec::with_capacity(elements.len() * 2);
    for &from in elements {
        if precision == Precision::Bf16 {
            let to = bf16::from_f32(from);
            losses.count(from, to.to_f32(), bf16::MIN_POSITIVE.to_f32());
            bytes.extend(to.to_le_bytes());
        } else {
            let to = f16::from_f32(from);
            losses.count(from, to.to_f32(), f16::MIN_POSITIVE.to_f32());
            bytes.extend(to.to_le_bytes());
        }
    }
    (bytes, losses)
}

/// The same tensor in 16 bits.
pub(super) fn narrowed(tensor: &TensorProto, bytes: Vec<u8>, precision: Precision) -> TensorProto {
    TensorProto {
        data_type: number(precision),
        float_data: Vec::new(),
        raw_data: bytes.into(),
        dims: tensor.dims.clone(),
        name: tensor.name.clone(),
        doc_string: tensor.doc_string.clone(),
        metadata_props: tensor.metadata_props.clone(),
        ..TensorProto::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(elements: &[f32], precision: Precision) -> (Vec<f32>, Losses) {
        let (bytes, losses) = narrow(elements, precision);
        let tensor = TensorProto::floats("x", &[elements.len() as i64], elements);
        (narrowed(&tensor, bytes, precision).to_f32s().unwrap(), losses)
    }

    #[test]
    fn what_is_lost_in_fp16_is_counted() {
        let elements = [1.0, 65504.0, 65519.0, 65520.0, -1e6, 6e-5, -1e-7, 1e-8, 0.0, f32::INFINITY];
        let (found, losses) = back(&elements, Precision::Fp16);
        assert_eq!(found[..5], [1.0, 65504.0, 65504.0, f32::INFINITY, f32::NEG_INFINITY]);
        assert_eq!(losses, Losses { overflowed: 2, subnormal: 2, zeroed: 1 });
        assert_eq!(back(&[0.5, -3.0, 0.0], Precision::Fp16).1, Losses::default());
    }

    #[test]
    fn bf16_is_rounded_to_the_nearest_and_ties_to_even() {
        // 8 bits of mantissa: between 1 and 1 + 2^-7 the middle goes to 1, above 1 + 2^-7 it goes up.
        let ulp = 2.0_f32.powi(-7);
        let (found, losses) = back(&[1.0 + ulp / 2.0, 1.0 + ulp * 1.5, 1.0 + ulp * 0.51, 1e6], Precision::Bf16);
        assert_eq!(found, [1.0, 1.0 + ulp * 2.0, 1.0 + ulp, 999_424.0]);
        assert_eq!(losses, Losses::default());
        let (found, losses) = back(&[f32::MAX, 1e-40, 1e-44], Precision::Bf16);
        assert!(found[0].is_infinite());
        assert_eq!(losses, Losses { overflowed: 1, subnormal: 1, zeroed: 1 });
    }
}
