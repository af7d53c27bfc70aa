//! Shapes as TensorRT passes them: 32-bit numbers in 8.x, 64-bit ones since.

use crate::pointer::Ptr;
use crate::{Error, Family};

/// Most dimensions that a shape can have.
pub(crate) const MOST: usize = 8;

/// `Dims` of 8.x.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dims32 {
    pub(crate) count: i32,
    pub(crate) d: [i32; MOST],
}

/// `Dims` of 10.x and 11.x.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dims64 {
    pub(crate) count: i32,
    pub(crate) d: [i64; MOST],
}

/// A shape in the form of one family.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dims {
    Narrow(Dims32),
    Wide(Dims64),
}

impl Dims {
    /// For a tensor in this family. What does not fit is refused here, with the tensor named.
    pub(crate) fn new(family: Family, tensor: &str, shape: &[i64]) -> Result<Dims, Error> {
        let refuse = |reason: String| Error::Text { what: format!("shape {shape:?} of tensor '{tensor}'"), reason };
        if shape.len() > MOST {
            return Err(refuse(format!("TensorRT takes at most {MOST} dimensions")));
        }
        let count = i32::try_from(shape.len()).unwrap_or(0);
        if family != Family::V8 {
            let mut d = [0; MOST];
            d[..shape.len()].copy_from_slice(shape);
            return Ok(Dims::Wide(Dims64 { count, d }));
        }
        let mut d = [0; MOST];
        for (to, from) in d.iter_mut().zip(shape) {
            *to = i32::try_from(*from).map_err(|_| refuse(format!("{from} is more than TensorRT 8 can take")))?;
        }
        Ok(Dims::Narrow(Dims32 { count, d }))
    }

    /// For methods that take it by reference.
    pub(crate) fn address(&self) -> Ptr {
        match self {
            Dims::Narrow(dims) => (&raw const *dims).cast_mut().cast(),
            Dims::Wide(dims) => (&raw const *dims).cast_mut().cast(),
        }
    }

    /// The numbers; none where TensorRT says that there is no such shape.
    pub(crate) fn shape(&self) -> Option<Vec<i64>> {
        let (count, wide) = match self {
            Dims::Narrow(dims) => (dims.count, dims.d.map(i64::from)),
            Dims::Wide(dims) => (dims.count, dims.d),
        };
        let count = usize::try_from(count).ok().filter(|&count| count <= MOST)?;
        Some(wide[..count].to_vec())
    }
}

impl From<Dims32> for Dims {
    fn from(dims: Dims32) -> Dims {
        Dims::Narrow(dims)
    }
}

impl From<Dims64> for Dims {
    fn from(dims: Dims64) -> Dims {
        Dims::Wide(dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_comes_back_in_every_family() {
        for family in [Family::V8, Family::V10, Family::V11] {
            for shape in [&[][..], &[1, 3, 640, -1], &[1, 2, 3, 4, 5, 6, 7, 8]] {
                assert_eq!(Dims::new(family, "images", shape).unwrap().shape().unwrap(), shape);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_tensors_name() {
        let error = Dims::new(Family::V10, "images", &[1; 9]).unwrap_err().to_string();
        assert!(error.contains("'images'") && error.contains("at most 8"), "{error}");
        let error = Dims::new(Family::V8, "images", &[1 << 31]).unwrap_err().to_string();
        assert!(error.contains("'images'") && error.contains("2147483648"), "{error}");
        assert_eq!(Dims::new(Family::V11, "images", &[1 << 31]).unwrap().shape().unwrap(), [1 << 31]);
    }

    #[test]
    fn a_count_that_makes_no_sense_is_no_shape() {
        for count in [-1, 9] {
            assert_eq!(Dims::from(Dims32 { count, d: [1; MOST] }).shape(), None);
            assert_eq!(Dims::from(Dims64 { count, d: [1; MOST] }).shape(), None);
        }
    }
}
