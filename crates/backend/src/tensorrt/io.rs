//! What goes into an engine and comes out: types, layouts, and shapes within the ranges that it was built for. Pure.

use prony_nvinfer::{DataType, IoTensor};
use prony_types::{DType, Dim, TensorInfo, TensorSpec};

use super::unsupported;
use crate::BackendError;
use crate::session::{decide_shape, given_shape};

/// The shapes of an input that a profile allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: Vec<i64>,
    pub(super) opt: Vec<i64>,
    pub(super) max: Vec<i64>,
}

/// What the caller wants of free axes. What nobody wants is as the engine was tuned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    pub(super) batch: Option<u32>,
    pub(super) imgsz: Option<[u32; 2]>,
    pub(super) shapes: &'a [(String, Vec<usize>)],
}

/// TensorRT's names of layouts, by number. <https://docs.nvidia.com/deeplearning/tensorrt> calls them `TensorFormat`.
const FORMATS: [&str; 13] = [
    "LINEAR",
    "CHW2",
    "HWC8",
    "CHW4",
    "CHW16",
    "CHW32",
    "DHWC8",
    "CDHW32",
    "HWC",
    "DLA_LINEAR",
    "DLA_HWC4",
    "HWC16",
    "DHWC",
];

/// Our word for an element type; `None` where there is none.
fn dtype(of: DataType) -> Option<DType> {
    Some(match of {
        DataType::F32 => DType::F32,
        DataType::F16 => DType::F16,
        DataType::Bf16 => DType::Bf16,
        DataType::I8 => DType::I8,
        DataType::U8 => DType::U8,
        DataType::I32 => DType::I32,
        DataType::I64 => DType::I64,
        DataType::Bool => DType::Bool,
        _ => return None,
    })
}

/// A tensor as every model declares it; an axis that is chosen by the caller has no size.
pub(super) fn info(tensor: &IoTensor) -> TensorInfo {
    let dim = |&size: &i64| u64::try_from(size).map_or(Dim::Named(String::new()), Dim::Fixed);
    TensorInfo {
        name: tensor.name.clone(),
        dtype: dtype(tensor.dtype).unwrap_or(DType::Other),
        dims: tensor.dims.iter().map(dim).collect(),
    }
}

/// Refuses a tensor that cannot be fed or read as it lies.
pub(super) fn check(tensor: &IoTensor) -> Result<(), BackendError> {
    let what = if tensor.is_input { "input" } else { "output" };
    let refuse = |why: String| Err(unsupported(format!("{what} `{}` {why}", tensor.name)));
    if dtype(tensor.dtype).is_none() {
        return refuse(format!("is {:?}, which cannot be fed or read; build the engine with fp32 IO", tensor.dtype));
    }
    if tensor.format != 0 || tensor.components > 1 {
        let name = usize::try_from(tensor.format).ok().and_then(|number| FORMATS.get(number));
        let name = name.map_or_else(|| format!("format {}", tensor.format), |name| (*name).to_owned());
        return refuse(format!(
            "lies in memory as {name} (vectorised axis {}, {} elements together); build the engine with linear IO \
             (trtexec: --inputIOFormats=fp32:chw)",
            tensor.vectorised_dim, tensor.components
        ));
    }
    if tensor.on_host {
        return refuse("is a shape, read from the host's memory; build the engine from a graph without such IO".into());
    }
    Ok(())
}

/// The profile to use, and every input's shape in it: the first one that allows what is wanted.
pub(super) fn decide(
    inputs: &[IoTensor],
    profiles: &[Vec<Option<Range>>],
    wish: &Wish<'_>,
) -> Result<(usize, Vec<TensorSpec>), BackendError> {
    let mut refusal = None;
    for (number, ranges) in profiles.iter().enumerate() {
        let shapes = inputs.iter().zip(ranges).map(|(input, range)| shape(input, range.as_ref(), wish, number));
        match shapes.collect::<Result<Vec<_>, _>>() {
            Ok(shapes) => return Ok((number, shapes)),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Err(refusal.unwrap_or_else(|| unsupported("the engine has no profile".into())))
}

fn shape(input: &IoTensor, range: Option<&Range>, wish: &Wish<'_>, profile: usize) -> Result<TensorSpec, BackendError> {
    let declared = info(input);
    let spec = match wish.shapes.iter().find(|(name, _)| *name == input.name) {
        Some((_, shape)) => given_shape(&declared, shape)?,
        None => {
            let tuned = tuned(&declared, range, wish);
            let first = tuned.dims.first();
            let batch = wish.batch.or(match first {
                Some(Dim::Fixed(n)) => u32::try_from(*n).ok(),
                _ => None,
            });
            decide_shape(&tuned, batch.unwrap_or(1), wish.imgsz)?
        }
    };
    match range {
        Some(range) => within(&declared, spec, range, profile),
        None => Ok(spec),
    }
}

/// The declared shape, with the tuned size on every free axis that nobody wants otherwise.
fn tuned(declared: &TensorInfo, range: Option<&Range>, wish: &Wish<'_>) -> TensorInfo {
    let wanted = |axis: usize| match axis {
        0 => wish.batch.is_some(),
        2 | 3 => declared.dims.len() == 4 && wish.imgsz.is_some(),
        _ => false,
    };
    let dims = declared.dims.iter().enumerate().map(|(axis, dim)| match (dim, range) {
        (Dim::Named(_), Some(range)) if !wanted(axis) => {
            range.opt.get(axis).and_then(|&size| u64::try_from(size).ok()).map_or(dim.clone(), Dim::Fixed)
        }
        _ => dim.clone(),
    });
    TensorInfo { dims: dims.collect(), ..declared.clone() }
}

/// Holds a shape against a profile.
fn within(declared: &TensorInfo, spec: TensorSpec, range: &Range, profile: usize) -> Result<TensorSpec, BackendError> {
    for (axis, ((&size, &min), &max)) in spec.shape.iter().zip(&range.min).zip(&range.max).enumerate() {
        if !i64::try_from(size).is_ok_and(|size| (min..=max).contains(&size)) {
            return Err(BackendError::Shape {
                tensor: declared.clone(),
                what: format!("{size} at axis {axis}; profile {profile} of the engine allows {min} to {max}"),
            });
        }
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(dims: &[i64]) -> IoTensor {
        IoTensor {
            name: "images".into(),
            dtype: DataType::F32,
            is_input: true,
            dims: dims.to_vec(),
            on_host: false,
            format: 0,
            vectorised_dim: -1,
            components: -1,
        }
    }

    fn range(sizes: [[i64; 2]; 3]) -> Option<Range> {
        let [min, opt, max] = sizes.map(|[batch, size]| vec![batch, 3, size, size]);
        Some(Range { min, opt, max })
    }

    fn wish(batch: u32, imgsz: Option<u32>) -> Wish<'static> {
        Wish { batch: Some(batch), imgsz: imgsz.map(|size| [size, size]), shapes: &[] }
    }

    const FREE: [i64; 4] = [-1, 3, -1, -1];

    #[test]
    fn free_axes_are_as_wished_or_as_tuned() {
        let profiles = [vec![range([[1, 320], [2, 640], [8, 1280]])]];
        let decided = |wish: Wish<'_>| decide(&[image(&FREE)], &profiles, &wish).unwrap().1[0].shape.clone();
        assert_eq!(decided(wish(4, Some(320))), [4, 3, 320, 320]);
        assert_eq!(decided(wish(1, None)), [1, 3, 640, 640]);
        assert_eq!(decided(Wish { batch: None, ..wish(1, None) }), [2, 3, 640, 640]);
        let shapes = [("images".to_owned(), vec![3, 3, 512, 640])];
        assert_eq!(decided(Wish { shapes: &shapes, ..wish(1, None) }), [3, 3, 512, 640]);
    }

    #[test]
    fn a_size_outside_the_profile_is_named_with_tensor_axis_and_range() {
        let profiles = [vec![range([[1, 320], [1, 320], [4, 640]])]];
        let refusal = |wish| decide(&[image(&FREE)], &profiles, &wish).unwrap_err().to_string();
        assert_eq!(
            refusal(wish(1, Some(1280))),
            "input images f32[?,3,?,?] does not take 1280 at axis 2; profile 0 of the engine allows 320 to 640"
        );
        assert!(refusal(wish(5, Some(320))).contains("5 at axis 0; profile 0 of the engine allows 1 to 4"));
    }

    #[test]
    fn a_fixed_size_is_not_overruled() {
        let error = decide(&[image(&[1, 3, 320, 320])], &[vec![None]], &wish(1, Some(640))).unwrap_err().to_string();
        assert!(
            error.contains("images f32[1,3,320,320] does not take size 640 at axis 2; it is fixed at 320"),
            "{error}"
        );
        let shapes = [("images".to_owned(), vec![1, 3, 320])];
        let wish = Wish { shapes: &shapes, ..wish(1, None) };
        let error = decide(&[image(&[1, 3, 320, 320])], &[vec![None]], &wish).unwrap_err().to_string();
        assert!(error.contains("3 axes instead of 4"), "{error}");
    }

    #[test]
    fn the_first_profile_that_fits_is_used() {
        let profiles = [vec![range([[1, 320]; 3])], vec![range([[1, 640]; 3])]];
        let (number, shapes) = decide(&[image(&FREE)], &profiles, &wish(1, Some(640))).unwrap();
        assert_eq!((number, &shapes[0].shape[..]), (1, &[1, 3, 640, 640][..]));
        let error = decide(&[image(&FREE)], &profiles, &wish(1, Some(512))).unwrap_err().to_string();
        assert!(error.contains("profile 0 of the engine allows 320 to 320"), "{error}");
    }

    #[test]
    fn what_cannot_be_fed_is_refused_by_name() {
        let refusal = |tensor: IoTensor| check(&tensor).unwrap_err().to_string();
        assert!(check(&image(&FREE)).is_ok());
        let packed = IoTensor { format: 3, vectorised_dim: 1, components: 4, dtype: DataType::I8, ..image(&FREE) };
        let text = refusal(packed);
        assert!(text.contains("input `images` lies in memory as CHW4 (vectorised axis 1, 4 elements"), "{text}");
        let unknown = IoTensor { format: 77, ..image(&FREE) };
        assert!(refusal(unknown).contains("format 77"));
        let eight = IoTensor { dtype: DataType::Fp8, is_input: false, ..image(&FREE) };
        assert!(refusal(eight).contains("output `images` is Fp8"));
        assert!(refusal(IoTensor { on_host: true, ..image(&[4]) }).contains("is a shape"));
    }
}
