//! Tensors into the inputs of a session: what `bench --input` and `run` share.

use half::slice::HalfFloatSliceExt as _;
use prony_backend::SlotInput;
use prony_types::{DType, Image, TensorData, TensorSpec, TensorView};
use prony_vision::{Letterbox, Preprocessor};

pub use prony_source::arrays::{ArrayFile, ReadArray, TensorError, Values, describe, npy_bytes, npz_bytes};

/// Copies values into an input.
///
/// # Panics
/// When type or length are not the input's: they were read for another one.
pub fn fill(values: &Values, input: SlotInput<'_>) {
    match (input, values) {
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

/// Writes an image that is letterboxed already into item `item` of `batch`; an input that takes no floats of 32 or 16 bits
/// is left alone.
///
/// # Panics
/// When the plane is not of the input's size.
pub fn fill_plane(plane: &[f32], input: SlotInput<'_>, [item, batch]: [usize; 2]) {
    let share = input.len() / batch;
    let part = item * share..(item + 1) * share;
    match input {
        SlotInput::F32(input) => input[part].copy_from_slice(plane),
        SlotInput::F16(input) => input[part].convert_from_f32_slice(plane),
        _ => {}
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

#[cfg(test)]
mod tests {
    use half::f16;
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
