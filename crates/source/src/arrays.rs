//! Tensors from and to numpy's files: what a model that is not a detector is fed, and what comes out of it.

mod convert;
mod file;
mod npy;

use half::{bf16, f16};
use prony_types::DType;

pub use file::{ArrayFile, ReadArray, TensorError, npy_bytes, npz_bytes};

/// The values of one input, in the type that the session takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 16-bit floats.
    F16(Vec<f16>),
    /// bfloat16.
    Bf16(Vec<bf16>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// Signed bytes.
    I8(Vec<i8>),
    /// Unsigned bytes; truth values as 0 and 1.
    U8(Vec<u8>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers.
    I64(Vec<i64>),
}

/// The same expression for every type of values.
macro_rules! each {
    ($values:expr, $data:ident => $body:expr) => {
        match $values {
            Values::F32($data) => $body,
            Values::F16($data) => $body,
            Values::Bf16($data) => $body,
            Values::F64($data) => $body,
            Values::I8($data) => $body,
            Values::U8($data) => $body,
            Values::I32($data) => $body,
            Values::I64($data) => $body,
        }
    };
}

impl Values {
    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        each!(self, data => size_of_val(&data[..]))
    }

    /// Hands over the little-endian bytes of one value after the other.
    pub fn each_value(&self, mut f: impl FnMut(&[u8])) {
        each!(self, data => data.iter().for_each(|x| f(&x.to_le_bytes())));
    }

    /// Floats from 0 to 1 in the type of an input; `None` where it takes no floats.
    pub fn floats(dtype: DType, values: impl Iterator<Item = f32>) -> Option<Values> {
        Some(match dtype {
            DType::F32 => Values::F32(values.collect()),
            DType::F16 => Values::F16(values.map(f16::from_f32).collect()),
            DType::Bf16 => Values::Bf16(values.map(bf16::from_f32).collect()),
            DType::F64 => Values::F64(values.map(f64::from).collect()),
            _ => return None,
        })
    }
}

/// As `f32[1,3,640,640]`.
pub fn describe(dtype: impl std::fmt::Display, shape: &[usize]) -> String {
    let axes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("{dtype}[{}]", axes.join(","))
}
