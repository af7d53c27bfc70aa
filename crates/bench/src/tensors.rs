//! Tensors from and to numpy's files, and into the inputs of a session: what `bench --input` and `run` share.

mod convert;
mod file;
mod npy;

use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};
use prony_backend::SlotInput;
use prony_types::{DType, Image, TensorData, TensorSpec, TensorView};
use prony_vision::{Letterbox, Preprocessor};

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
    pub(crate) fn each_value(&self, mut f: impl FnMut(&[u8])) {
        each!(self, data => data.iter().for_each(|x| f(&x.to_le_bytes())));
    }

    /// Floats from 0 to 1 in the type of an input; `None` where it takes no floats.
    pub(crate) fn floats(dtype: DType, values: impl Iterator<Item = f32>) -> Option<Values> {
        Some(match dtype {
            DType::F32 => Values::F32(values.collect()),
            DType::F16 => Values::F16(values.map(f16::from_f32).collect()),
            DType::Bf16 => Values::Bf16(values.map(bf16::from_f32).collect()),
            DType::F64 => Values::F64(values.map(f64::from).collect()),
            _ => return None,
        })
    }

    /// Copies them into an input.
    ///
    /// # Panics
    /// When type or length are not the input's: they were read for another one.
    pub fn fill(&self, input: SlotInput<'_>) {
        match (input, self) {
            (SlotInput::F32(input), Values::F32(data)) => input.copy_from_slice(data),
            (SlotInput::F16(input), Values::F16(data)) => input.copy_from_slice(data),
            (SlotInput::Bf16(input), Values::Bf16(data)) => input.copy_from_slice(data),
            (SlotInput::F64(input), Values::F64(data)) => input.copy_from_slice(data),
            (SlotInput::I8(input), Values::I8(data)) => input.copy_from_slice(data),
            (SlotInput::U8(input), Values::U8(data)) => input.copy_from_slice(data),
            (SlotInput::I32(input), Values::I32(data)) => input.copy_from_slice(data),
            (SlotInput::I64(input), Values::I64(data)) => input.copy_from_slice(data),
            (input, _) => panic!("values of another type than the input's {} elements", input.len()),
        }
    }
}

/// Writes an image into item `item` of `batch` in an input. For 16-bit floats it goes through `scratch`, which grows
/// once; an input that takes no such floats is left alone, and the answer is `None`. `held` is what this answered for the
/// same item when it was last written, if nobody else has written there since ([`Preprocessor::run_over`]).
pub fn fill_image(
    preprocessor: &mut Preprocessor,
    image: &Image,
    input: SlotInput<'_>,
    [item, batch]: [usize; 2],
    held: Option<Letterbox>,
    scratch: &mut Vec<f32>,
) -> Option<Letterbox> {
    let share = input.len() / batch;
    let part = item * share..(item + 1) * share;
    match input {
        SlotInput::F32(input) => Some(preprocessor.run_over(image, &mut input[part], held)),
        SlotInput::F16(input) => {
            scratch.resize(share, 0.0);
            let letterbox = preprocessor.run(image, scratch);
            input[part].convert_from_f32_slice(scratch);
            Some(letterbox)
        }
        _ => None,
    }
}

/// Height and width of an input that takes images: floats of 32 or 16 bits, `[N,3,H,W]`.
pub fn image_size(input: &TensorSpec) -> Option<[u32; 2]> {
    match (input.dtype, &input.shape[..]) {
        (DType::F32 | DType::F16, &[_, 3, height, width]) => Some([height as u32, width as u32]),
        _ => None,
    }
}

/// An output as it really is.
pub fn output_spec(view: &TensorView<'_>) -> TensorSpec {
    let dtype = match view.data {
        TensorData::F32(_) => DType::F32,
        TensorData::I32(_) => DType::I32,
        TensorData::I64(_) => DType::I64,
    };
    TensorSpec { name: view.name.to_owned(), dtype, shape: view.shape.to_vec() }
}

/// As `f32[1,3,640,640]`.
pub fn describe(dtype: impl std::fmt::Display, shape: &[usize]) -> String {
    let axes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("{dtype}[{}]", axes.join(","))
}

#[cfg(test)]
mod tests {
    use prony_types::PixelFormat;

    use super::*;

    #[test]
    fn an_image_reaches_a_half_precision_input_rounded_and_nothing_else() {
        let pixels: Vec<u8> = (0..12u8).map(|i| i * 21).collect();
        let image = Image::from_u8(2, 2, PixelFormat::Rgb8, pixels).unwrap();
        let mut preprocessor = Preprocessor::new(2, 2);
        let mut single = vec![0.0f32; 24];
        let mut half = vec![f16::ZERO; 24];
        let mut scratch = Vec::new();
        let a = fill_image(&mut preprocessor, &image, SlotInput::F32(&mut single), [1, 2], None, &mut scratch);
        assert!(scratch.is_empty(), "fp32 needs no way round");
        let b = fill_image(&mut preprocessor, &image, SlotInput::F16(&mut half), [1, 2], None, &mut scratch);
        assert!(a.is_some() && a == b);
        assert!(single[..12].iter().all(|&x| x == 0.0) && single[12..].iter().any(|&x| x > 0.5));
        assert_eq!(half, single.iter().copied().map(f16::from_f32).collect::<Vec<_>>());
        assert_eq!(
            fill_image(&mut preprocessor, &image, SlotInput::I8(&mut [0; 12]), [0, 1], None, &mut scratch),
            None
        );
    }

    #[test]
    fn only_float_images_are_images() {
        let input = |dtype, shape: &[usize]| TensorSpec { name: "x".into(), dtype, shape: shape.into() };
        assert_eq!(image_size(&input(DType::F32, &[1, 3, 4, 8])), Some([4, 8]));
        assert_eq!(image_size(&input(DType::F16, &[2, 3, 4, 8])), Some([4, 8]));
        assert_eq!(image_size(&input(DType::U8, &[1, 3, 4, 8])), None);
        assert_eq!(image_size(&input(DType::F32, &[1, 4, 8, 3])), None);
    }
}
