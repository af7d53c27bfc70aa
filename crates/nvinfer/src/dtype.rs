//! Data types, and the tensors of an engine or a network.

use crate::tables::{Value, data_type as value};

/// What the elements of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// 8-bit integers, quantised.
    I8,
    /// 32-bit integers.
    I32,
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned bytes.
    U8,
    /// 8-bit floats, E4M3.
    Fp8,
    /// bfloat16.
    Bf16,
    /// 64-bit integers.
    I64,
    /// 4-bit integers, two to a byte.
    I4,
    /// 4-bit floats, E2M1, two to a byte.
    Fp4,
    /// 8-bit exponents, as scales of blocks.
    E8m0,
    /// A type that came after this was written, by its number.
    Other(i32),
}

/// Every known type with its value.
static KNOWN: [(DataType, &Value); 12] = [
    (DataType::F32, &value::FLOAT),
    (DataType::F16, &value::HALF),
    (DataType::I8, &value::INT8),
    (DataType::I32, &value::INT32),
    (DataType::Bool, &value::BOOL),
    (DataType::U8, &value::UINT8),
    (DataType::Fp8, &value::FP8),
    (DataType::Bf16, &value::BF16),
    (DataType::I64, &value::INT64),
    (DataType::I4, &value::INT4),
    (DataType::Fp4, &value::FP4),
    (DataType::E8m0, &value::E8M0),
];

impl DataType {
    /// By TensorRT's number, which is the same in every major.
    pub(crate) fn from_number(number: i32) -> DataType {
        let known = KNOWN.iter().find(|(_, value)| value.is(number));
        known.map_or(DataType::Other(number), |(data_type, _)| *data_type)
    }

    /// Bits of an element; none for a type that is not known.
    pub fn bits(self) -> Option<u32> {
        Some(match self {
            DataType::I64 => 64,
            DataType::F32 | DataType::I32 => 32,
            DataType::F16 | DataType::Bf16 => 16,
            DataType::I8 | DataType::Bool | DataType::U8 | DataType::Fp8 | DataType::E8m0 => 8,
            DataType::I4 | DataType::Fp4 => 4,
            DataType::Other(_) => return None,
        })
    }
}

/// An input or an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoTensor {
    /// What it is called.
    pub name: String,
    /// What its elements are.
    pub dtype: DataType,
    /// Whether it goes in.
    pub is_input: bool,
    /// Its shape; -1 where that is free.
    pub dims: Vec<i64>,
    /// Whether its memory is the host's, as for tensors that are shapes themselves.
    pub on_host: bool,
    /// TensorRT's number for how it lies in memory; 0 is linear.
    pub format: i32,
    /// The dimension whose elements are packed together; -1 where none is.
    pub vectorised_dim: i32,
    /// Elements packed together; 1 or -1 where none are.
    pub components: i32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Version};

    #[test]
    fn numbers_and_types_belong_together() {
        let newest = Version::new(11, 0, 0);
        for (data_type, value) in KNOWN {
            assert_eq!(DataType::from_number(value.number(newest).unwrap()), data_type);
            assert!(data_type.bits().is_some());
        }
        assert_eq!(DataType::from_number(12), DataType::Other(12));
        assert_eq!(DataType::Other(12).bits(), None);
    }

    #[test]
    fn a_type_that_the_version_has_not_yet_is_refused_with_both_versions() {
        let error = value::FP4.number(Version::new(10, 3, 0)).unwrap_err().to_string();
        assert!(error.contains("DataType::kFP4") && error.contains("10.8.0") && error.contains("10.3.0"), "{error}");
        assert!(matches!(value::INT64.number(Version::new(8, 6, 1)), Err(Error::Unsupported { .. })));
    }
}
