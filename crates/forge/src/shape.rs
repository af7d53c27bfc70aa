//! Shapes that an engine is built for: those that were asked for, held against the model, and for the rest batch and size.

use prony_types::{Dim, ProfileShape, TensorInfo, TensorSpec};

use crate::error::ForgeError;

/// One profile: every input that has free axes, none where all are fixed.
pub(crate) fn profile(
    inputs: &[TensorInfo],
    asked: &[ProfileShape],
    batch: u32,
    imgsz: Option<[u32; 2]>,
) -> Result<Vec<ProfileShape>, ForgeError> {
    if let Some(stranger) = asked.iter().find(|shape| !inputs.iter().any(|input| input.name == shape.input)) {
        let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        return Err(ForgeError::Model(format!(
            "the profile names an input `{}`; the model has {}",
            stranger.input,
            names.join(", ")
        )));
    }
    let free = |input: &&TensorInfo| input.dims.iter().any(|dim| matches!(dim, Dim::Named(_)));
    let shape = |input: &TensorInfo| match asked.iter().find(|shape| shape.input == input.name) {
        Some(shape) => check(input, shape).map(|()| shape.clone()),
        None => {
            let shape = decide(input, batch, imgsz)?;
            Ok(ProfileShape { input: input.name.clone(), min: shape.clone(), opt: shape.clone(), max: shape })
        }
    };
    inputs.iter().filter(free).map(shape).collect()
}

/// Every input at the shape that the engine is tuned for.
pub(crate) fn tuned(inputs: &[TensorInfo], profile: &[ProfileShape]) -> Vec<TensorSpec> {
    let fixed = |dim: &Dim| if let Dim::Fixed(n) = dim { *n as usize } else { 1 };
    let shape = |input: &TensorInfo| match profile.iter().find(|shape| shape.input == input.name) {
        Some(shape) => shape.opt.iter().map(|&n| n as usize).collect(),
        None => input.dims.iter().map(fixed).collect(),
    };
    let spec = |input: &TensorInfo| TensorSpec { name: input.name.clone(), dtype: input.dtype, shape: shape(input) };
    inputs.iter().map(spec).collect()
}

/// The first free axis is the batch, those of an image are its size.
fn decide(input: &TensorInfo, batch: u32, imgsz: Option<[u32; 2]>) -> Result<Vec<u64>, ForgeError> {
    let is_image = input.dims.len() == 4;
    let axis = |(axis, dim): (usize, &Dim)| match (dim, axis, imgsz) {
        (Dim::Fixed(n), ..) => Ok(*n),
        (_, 0, _) => Ok(u64::from(batch)),
        (_, 2 | 3, Some(size)) if is_image => Ok(u64::from(size[axis - 2])),
        (Dim::Named(name), ..) => Err(ForgeError::Model(format!(
            "input {input} has a free axis {axis} (`{name}`) without a size; give --profile {}=MIN:OPT:MAX{}",
            input.name,
            if is_image { " or --imgsz" } else { "" }
        ))),
    };
    input.dims.iter().enumerate().map(axis).collect()
}

fn check(input: &TensorInfo, shape: &ProfileShape) -> Result<(), ForgeError> {
    let refuse = |what: String| Err(ForgeError::Model(format!("the profile of input {input} {what}")));
    for (name, sizes) in [("min", &shape.min), ("opt", &shape.opt), ("max", &shape.max)] {
        if sizes.len() != input.dims.len() {
            return refuse(format!("has {} axes at {name}, not {}", sizes.len(), input.dims.len()));
        }
        for (axis, (dim, &size)) in input.dims.iter().zip(sizes).enumerate() {
            if let Dim::Fixed(n) = dim
                && *n != size
            {
                return refuse(format!("has {size} at axis {axis} of {name}, which is fixed at {n}"));
            }
        }
    }
    let sizes = shape.min.iter().zip(&shape.opt).zip(&shape.max);
    match sizes.enumerate().find(|(_, ((min, opt), max))| **min == 0 || min > opt || opt > max) {
        Some((axis, ((min, opt), max))) => {
            refuse(format!("does not grow from min over opt to max at axis {axis}: {min}, {opt}, {max}"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use prony_types::DType;

    use super::*;

    fn input(name: &str, dims: &[i64]) -> TensorInfo {
        let dim = |&n: &i64| if n < 0 { Dim::Named("n".into()) } else { Dim::Fixed(n as u64) };
        TensorInfo { name: name.into(), dtype: DType::F32, dims: dims.iter().map(dim).collect() }
    }

    fn asked(min: &[u64], opt: &[u64], max: &[u64]) -> ProfileShape {
        ProfileShape { input: "x".into(), min: min.into(), opt: opt.into(), max: max.into() }
    }

    #[test]
    fn fixed_shapes_need_no_profile() {
        let inputs = [input("x", &[1, 3, 320, 320])];
        assert_eq!(profile(&inputs, &[], 1, None).unwrap(), []);
        assert_eq!(tuned(&inputs, &[])[0].shape, [1, 3, 320, 320]);
    }

    #[test]
    fn free_axes_take_batch_and_size() {
        let inputs = [input("x", &[-1, 3, -1, -1])];
        let found = profile(&inputs, &[], 4, Some([320, 640])).unwrap();
        assert_eq!(found, [asked(&[4, 3, 320, 640], &[4, 3, 320, 640], &[4, 3, 320, 640])]);
        assert_eq!(tuned(&inputs, &found)[0].shape, [4, 3, 320, 640]);
        let error = profile(&[input("x", &[1, -1])], &[], 4, None).unwrap_err().to_string();
        assert!(error.contains("free axis 1 (`n`) without a size; give --profile x=MIN:OPT:MAX"), "{error}");
    }

    #[test]
    fn a_profile_is_held_against_the_model() {
        let inputs = [input("x", &[-1, 3])];
        let good = asked(&[1, 3], &[2, 3], &[8, 3]);
        assert_eq!(profile(&inputs, std::slice::from_ref(&good), 1, None).unwrap()[0], good);
        let refused = |shape: ProfileShape| profile(&inputs, &[shape], 1, None).unwrap_err().to_string();
        assert!(refused(asked(&[1], &[2, 3], &[8, 3])).ends_with("has 1 axes at min, not 2"));
        assert!(refused(asked(&[1, 3], &[2, 4], &[8, 3])).ends_with("has 4 at axis 1 of opt, which is fixed at 3"));
        assert!(refused(asked(&[4, 3], &[2, 3], &[8, 3])).ends_with("at axis 0: 4, 2, 8"));
        let stranger = ProfileShape { input: "y".into(), ..good };
        assert_eq!(refused(stranger), "the profile names an input `y`; the model has x");
    }
}
