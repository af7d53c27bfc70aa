//! Bytes of an array become the values of an input: as they are, or where nothing is lost, or rounded and said so.

use half::{bf16, f16};
use prony_types::DType;

use super::Values;
use super::npy::{Element, Header};

/// Values of an input of this type, and what had to be done to them.
pub(crate) fn convert(header: &Header, mut bytes: Vec<u8>, to: DType) -> Result<(Values, Option<String>), String> {
    if header.big_endian {
        bytes.chunks_exact_mut(header.element.bytes()).for_each(<[u8]>::reverse);
    }
    if header.fortran {
        bytes = in_c_order(&bytes, header);
    }
    let (from, bytes) = (header.element, &bytes[..]);
    let values = match to {
        DType::F32 => Values::F32(floats(from, bytes, |x| x, f16::to_f32, |x| x as f32)?),
        DType::F64 => Values::F64(floats(from, bytes, f64::from, f16::to_f64, |x| x)?),
        DType::F16 => Values::F16(floats(from, bytes, f16::from_f32, |x| x, f16::from_f64)?),
        // numpy has no bf16: its bits travel as uint16.
        DType::Bf16 if from == Element::U16 => {
            Values::Bf16(read(bytes, |two| bf16::from_bits(u16::from_le_bytes(two))))
        }
        DType::Bf16 => {
            Values::Bf16(floats(from, bytes, bf16::from_f32, |x| bf16::from_f32(x.to_f32()), bf16::from_f64)?)
        }
        DType::I8 => Values::I8(integers(from, bytes)?),
        DType::U8 => Values::U8(integers(from, bytes)?),
        DType::I32 => Values::I32(integers(from, bytes)?),
        DType::I64 => Values::I64(integers(from, bytes)?),
        DType::Bool => Values::U8(truths(from, bytes)?),
        DType::Other => return Err("no array can be fed to an input of that type".into()),
    };
    let rounded = from.is_float() && from.bytes() > width(to) || from == Element::F16 && to == DType::Bf16;
    Ok((values, rounded.then(|| format!("rounded from {} to {to}", from.name()))))
}

fn width(dtype: DType) -> usize {
    match dtype {
        DType::F16 | DType::Bf16 => 2,
        DType::F32 => 4,
        _ => 8,
    }
}

fn read<const N: usize, T>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| from(chunk)).collect()
}

/// Floats of any width as floats of another; a number that became infinite is an error.
fn floats<T: Copy + Into<f64>>(
    from: Element,
    bytes: &[u8],
    of_f32: impl Fn(f32) -> T,
    of_f16: impl Fn(f16) -> T,
    of_f64: impl Fn(f64) -> T,
) -> Result<Vec<T>, String> {
    let kept = |x: f64, rounded: T| match rounded.into().is_infinite() && x.is_finite() {
        true => Err(format!("the value {x} is too large for that type")),
        false => Ok(rounded),
    };
    match from {
        Element::F16 => read(bytes, f16::from_le_bytes).into_iter().map(|x| kept(x.to_f64(), of_f16(x))).collect(),
        Element::F32 => read(bytes, f32::from_le_bytes).into_iter().map(|x| kept(x.into(), of_f32(x))).collect(),
        Element::F64 => read(bytes, f64::from_le_bytes).into_iter().map(|x| kept(x, of_f64(x))).collect(),
        // The usual mistake is an image of bytes that nobody divided by 255.
        _ => Err("these are whole numbers; scale them and save them with x.astype('float32')".into()),
    }
}

/// Whole numbers of any width as those of another, where every one of them fits.
fn integers<T>(from: Element, bytes: &[u8]) -> Result<Vec<T>, String>
where
    T: TryFrom<i8>
        + TryFrom<i16>
        + TryFrom<i32>
        + TryFrom<i64>
        + TryFrom<u8>
        + TryFrom<u16>
        + TryFrom<u32>
        + TryFrom<u64>,
{
    match from {
        Element::I8 => fitting(bytes, i8::from_le_bytes),
        Element::I16 => fitting(bytes, i16::from_le_bytes),
        Element::I32 => fitting(bytes, i32::from_le_bytes),
        Element::I64 => fitting(bytes, i64::from_le_bytes),
        Element::U8 | Element::Bool => fitting(bytes, u8::from_le_bytes),
        Element::U16 => fitting(bytes, u16::from_le_bytes),
        Element::U32 => fitting(bytes, u32::from_le_bytes),
        Element::U64 => fitting(bytes, u64::from_le_bytes),
        Element::F16 | Element::F32 | Element::F64 => {
            Err("these are floats; save them with x.astype('int64') if whole numbers are meant".into())
        }
    }
}

fn fitting<const N: usize, S, T>(bytes: &[u8], from: fn([u8; N]) -> S) -> Result<Vec<T>, String>
where
    S: Copy + std::fmt::Display,
    T: TryFrom<S>,
{
    let fit = |&chunk: &[u8; N]| {
        let value = from(chunk);
        T::try_from(value).map_err(|_| format!("the value {value} does not fit that type"))
    };
    bytes.as_chunks::<N>().0.iter().map(fit).collect()
}

fn truths(from: Element, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let values: Vec<u8> = integers(from, bytes)?;
    match values.iter().find(|&&x| x > 1) {
        Some(x) => Err(format!("the value {x} is neither false (0) nor true (1)")),
        None => Ok(values),
    }
}

/// The same array with its last axis running fastest.
fn in_c_order(bytes: &[u8], header: &Header) -> Vec<u8> {
    let (shape, size) = (&header.shape[..], header.element.bytes());
    let mut ordered = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    for _ in 0..bytes.len() / size {
        // In Fortran's order an axis steps over everything before it.
        let (offset, _) =
            index.iter().zip(shape).fold((0, 1), |(offset, stride), (&i, &n)| (offset + i * stride, stride * n));
        ordered.extend_from_slice(&bytes[offset * size..][..size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(element: Element, shape: &[usize]) -> Header {
        Header { element, big_endian: false, fortran: false, shape: shape.into(), begin: 0 }
    }

    fn of_f32(values: &[f32], to: DType) -> Result<(Values, Option<String>), String> {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        convert(&header(Element::F32, &[values.len()]), bytes, to)
    }

    fn of_i64(values: &[i64], to: DType) -> Result<(Values, Option<String>), String> {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        convert(&header(Element::I64, &[values.len()]), bytes, to)
    }

    #[test]
    fn wider_floats_take_narrow_ones_and_narrow_ones_say_that_they_round() {
        let half = [0.5f32, -2.0, 1.0 / 3.0].map(f16::from_f32);
        let bytes: Vec<u8> = half.iter().flat_map(|x| x.to_le_bytes()).collect();
        let (values, note) = convert(&header(Element::F16, &[3]), bytes, DType::F32).unwrap();
        assert_eq!((values, note), (Values::F32(half.map(f16::to_f32).to_vec()), None));
        let (values, note) = of_f32(&[0.5, 1.0 / 3.0], DType::F16).unwrap();
        assert_eq!(values, Values::F16([0.5, 1.0 / 3.0].map(f16::from_f32).to_vec()));
        assert_eq!(note.unwrap(), "rounded from f32 to f16");
        assert!(of_f32(&[7e4], DType::F16).unwrap_err().contains("70000 is too large"));
        let (values, _) = of_f32(&[f32::INFINITY, f32::NAN], DType::F16).unwrap();
        let Values::F16(values) = values else { panic!("not f16") };
        assert!(values[0].is_infinite() && values[1].is_nan(), "what was not finite before stays so");
    }

    #[test]
    fn bf16_comes_as_bits_or_is_rounded() {
        let bits = [bf16::from_f32(1.5), bf16::from_f32(-3.0)];
        let bytes: Vec<u8> = bits.iter().flat_map(|x| x.to_bits().to_le_bytes()).collect();
        let (values, note) = convert(&header(Element::U16, &[2]), bytes, DType::Bf16).unwrap();
        assert_eq!((values, note), (Values::Bf16(bits.to_vec()), None));
        let (values, note) = of_f32(&[1.5, 1.001], DType::Bf16).unwrap();
        assert_eq!(values, Values::Bf16([1.5, 1.001].map(bf16::from_f32).to_vec()));
        assert!(note.unwrap().contains("to bf16"));
    }

    #[test]
    fn whole_numbers_are_narrowed_only_where_they_fit() {
        assert_eq!(of_i64(&[1, -7], DType::I32).unwrap().0, Values::I32(vec![1, -7]));
        assert_eq!(of_i64(&[255], DType::U8).unwrap().0, Values::U8(vec![255]));
        assert!(of_i64(&[1 << 31], DType::I32).unwrap_err().contains("2147483648 does not fit"));
        assert!(of_i64(&[-1], DType::U8).is_err());
        assert!(of_i64(&[2], DType::Bool).unwrap_err().contains("neither false"));
        assert_eq!(of_i64(&[0, 1], DType::Bool).unwrap().0, Values::U8(vec![0, 1]));
    }

    #[test]
    fn floats_are_no_whole_numbers_and_the_other_way_round() {
        assert!(of_f32(&[1.0], DType::I64).unwrap_err().contains("floats"));
        assert!(of_i64(&[1], DType::F32).unwrap_err().contains("float32"));
    }

    #[test]
    fn foreign_orders_are_read_right() {
        let big = Header { big_endian: true, ..header(Element::I32, &[2]) };
        let bytes = [1i32, -2].iter().flat_map(|x| x.to_be_bytes()).collect();
        assert_eq!(convert(&big, bytes, DType::I32).unwrap().0, Values::I32(vec![1, -2]));
        // [[0,1,2],[3,4,5]] column by column.
        let columns = Header { fortran: true, ..header(Element::I8, &[2, 3]) };
        let values = convert(&columns, vec![0, 3, 1, 4, 2, 5], DType::I8).unwrap().0;
        assert_eq!(values, Values::I8(vec![0, 1, 2, 3, 4, 5]));
        let cube = Header { fortran: true, ..header(Element::U8, &[2, 2, 2]) };
        let values = convert(&cube, vec![0, 4, 2, 6, 1, 5, 3, 7], DType::U8).unwrap().0;
        assert_eq!(values, Values::U8((0..8).collect()));
    }
}
