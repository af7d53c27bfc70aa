//! Values on their way into and out of a library: input buffers of every element type, and outputs widened to the few
//! types that the rest of Prony reads.

use std::ffi::c_void;

use half::{bf16, f16};
use prony_types::{DType, TensorData, TensorSpec};

use crate::SlotInput;

/// Values of one input, owned.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "a variant an element type")]
pub enum Buffer {
    F32(Vec<f32>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
    F64(Vec<f64>),
    I8(Vec<i8>),
    U8(Vec<u8>),
    I32(Vec<i32>),
    I64(Vec<i64>),
}

impl Buffer {
    /// Zeros for an input; `None` for a type that nobody can be fed with.
    pub(crate) fn zeroed(spec: &TensorSpec) -> Option<Buffer> {
        let n = spec.len();
        Some(match spec.dtype {
            DType::F32 => Buffer::F32(vec![0.0; n]),
            DType::F16 => Buffer::F16(vec![f16::ZERO; n]),
            DType::Bf16 => Buffer::Bf16(vec![bf16::ZERO; n]),
            DType::F64 => Buffer::F64(vec![0.0; n]),
            DType::I8 => Buffer::I8(vec![0; n]),
            DType::U8 | DType::Bool => Buffer::U8(vec![0; n]),
            DType::I32 => Buffer::I32(vec![0; n]),
            DType::I64 => Buffer::I64(vec![0; n]),
            DType::Other => return None,
        })
    }

    /// A copy of what an input holds.
    pub fn copy_of(input: &SlotInput<'_>) -> Buffer {
        match input {
            SlotInput::F32(data) => Buffer::F32(data.to_vec()),
            SlotInput::F16(data) => Buffer::F16(data.to_vec()),
            SlotInput::Bf16(data) => Buffer::Bf16(data.to_vec()),
            SlotInput::F64(data) => Buffer::F64(data.to_vec()),
            SlotInput::I8(data) => Buffer::I8(data.to_vec()),
            SlotInput::U8(data) => Buffer::U8(data.to_vec()),
            SlotInput::I32(data) => Buffer::I32(data.to_vec()),
            SlotInput::I64(data) => Buffer::I64(data.to_vec()),
        }
    }

    /// Fills an input of the same type and length; whether it was one.
    pub fn copy_to(&self, input: SlotInput<'_>) -> bool {
        if self.len() != input.len() {
            return false;
        }
        match (self, input) {
            (Buffer::F32(data), SlotInput::F32(input)) => input.copy_from_slice(data),
            (Buffer::F16(data), SlotInput::F16(input)) => input.copy_from_slice(data),
            (Buffer::Bf16(data), SlotInput::Bf16(input)) => input.copy_from_slice(data),
            (Buffer::F64(data), SlotInput::F64(input)) => input.copy_from_slice(data),
            (Buffer::I8(data), SlotInput::I8(input)) => input.copy_from_slice(data),
            (Buffer::U8(data), SlotInput::U8(input)) => input.copy_from_slice(data),
            (Buffer::I32(data), SlotInput::I32(input)) => input.copy_from_slice(data),
            (Buffer::I64(data), SlotInput::I64(input)) => input.copy_from_slice(data),
            _ => return false,
        }
        true
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Buffer::F32(data) => data.len(),
            Buffer::F16(data) => data.len(),
            Buffer::Bf16(data) => data.len(),
            Buffer::F64(data) => data.len(),
            Buffer::I8(data) => data.len(),
            Buffer::U8(data) => data.len(),
            Buffer::I32(data) => data.len(),
            Buffer::I64(data) => data.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn as_input(&mut self) -> SlotInput<'_> {
        match self {
            Buffer::F32(data) => SlotInput::F32(data),
            Buffer::F16(data) => SlotInput::F16(data),
            Buffer::Bf16(data) => SlotInput::Bf16(data),
            Buffer::F64(data) => SlotInput::F64(data),
            Buffer::I8(data) => SlotInput::I8(data),
            Buffer::U8(data) => SlotInput::U8(data),
            Buffer::I32(data) => SlotInput::I32(data),
            Buffer::I64(data) => SlotInput::I64(data),
        }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut c_void {
        match self {
            Buffer::F32(data) => data.as_mut_ptr().cast(),
            Buffer::F16(data) => data.as_mut_ptr().cast(),
            Buffer::Bf16(data) => data.as_mut_ptr().cast(),
            Buffer::F64(data) => data.as_mut_ptr().cast(),
            Buffer::I8(data) => data.as_mut_ptr().cast(),
            Buffer::U8(data) => data.as_mut_ptr().cast(),
            Buffer::I32(data) => data.as_mut_ptr().cast(),
            Buffer::I64(data) => data.as_mut_ptr().cast(),
        }
    }
}

/// Bytes of one element; `None` for types without a fixed size here.
pub(crate) const fn element_bytes(dtype: DType) -> Option<usize> {
    Some(match dtype {
        DType::F64 | DType::I64 => 8,
        DType::F32 | DType::I32 => 4,
        DType::F16 | DType::Bf16 => 2,
        DType::I8 | DType::U8 | DType::Bool => 1,
        DType::Other => return None,
    })
}

/// An output's elements as a library left them in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raw<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
    F64(&'a [f64]),
    I8(&'a [i8]),
    U8(&'a [u8]),
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl<'a> Raw<'a> {
    /// No elements, of that type.
    pub(crate) fn empty(dtype: DType) -> Option<Raw<'a>> {
        Some(match dtype {
            DType::F32 => Raw::F32(&[]),
            DType::F16 => Raw::F16(&[]),
            DType::Bf16 => Raw::Bf16(&[]),
            DType::F64 => Raw::F64(&[]),
            DType::I8 => Raw::I8(&[]),
            DType::U8 | DType::Bool => Raw::U8(&[]),
            DType::I32 => Raw::I32(&[]),
            DType::I64 => Raw::I64(&[]),
            DType::Other => return None,
        })
    }

    /// The elements where nothing must be widened.
    pub(crate) fn direct(self) -> Option<TensorData<'a>> {
        match self {
            Raw::F32(data) => Some(TensorData::F32(data)),
            Raw::I32(data) => Some(TensorData::I32(data)),
            Raw::I64(data) => Some(TensorData::I64(data)),
            _ => None,
        }
    }
}

/// Room for an output of a narrow type, widened; kept from call to call.
#[derive(Debug, Default)]
pub(crate) struct Widened {
    floats: Vec<f32>,
    integers: Vec<i32>,
    whole: bool,
}

impl Widened {
    /// Takes an output's elements, unless they can be read where they are.
    pub(crate) fn take(&mut self, raw: Raw<'_>) {
        self.floats.clear();
        self.integers.clear();
        self.whole = matches!(raw, Raw::I8(_) | Raw::U8(_));
        match raw {
            Raw::F32(_) | Raw::I32(_) | Raw::I64(_) => {}
            Raw::F16(data) => self.floats.extend(data.iter().map(|x| x.to_f32())),
            Raw::Bf16(data) => self.floats.extend(data.iter().map(|x| x.to_f32())),
            Raw::F64(data) => self.floats.extend(data.iter().map(|&x| x as f32)),
            Raw::I8(data) => self.integers.extend(data.iter().map(|&x| i32::from(x))),
            Raw::U8(data) => self.integers.extend(data.iter().map(|&x| i32::from(x))),
        }
    }

    /// What was taken.
    pub(crate) fn data(&self) -> TensorData<'_> {
        if self.whole { TensorData::I32(&self.integers) } else { TensorData::F32(&self.floats) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_types_are_widened_and_wide_ones_left_alone() {
        let mut widened = Widened::default();
        widened.take(Raw::F16(&[f16::from_f32(1.5), f16::from_f32(-2.0)]));
        assert_eq!(widened.data(), TensorData::F32(&[1.5, -2.0]));
        widened.take(Raw::U8(&[0, 1, 255]));
        assert_eq!(widened.data(), TensorData::I32(&[0, 1, 255]));
        widened.take(Raw::U8(&[]));
        assert_eq!(widened.data(), TensorData::I32(&[]), "no elements are still whole numbers");
        assert_eq!(Raw::empty(DType::I64).and_then(Raw::direct), Some(TensorData::I64(&[])));
        assert_eq!(Raw::I64(&[7]).direct(), Some(TensorData::I64(&[7])));
    }

    #[test]
    fn every_type_but_the_unknown_has_a_buffer() {
        let spec = |dtype| TensorSpec { name: "x".into(), dtype, shape: vec![2, 3] };
        for dtype in [DType::F32, DType::F16, DType::Bf16, DType::F64, DType::I8, DType::U8, DType::Bool, DType::I64] {
            let mut buffer = Buffer::zeroed(&spec(dtype)).unwrap();
            assert_eq!(buffer.as_input().len(), 6);
            let copy = Buffer::copy_of(&buffer.as_input());
            assert!(copy.copy_to(buffer.as_input()));
        }
        assert!(Buffer::zeroed(&spec(DType::Other)).is_none());
    }
}
