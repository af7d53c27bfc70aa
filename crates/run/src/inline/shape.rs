//! A shape on the command line: `images=1x3x640x640`.

use std::str::FromStr;

/// More elements than this are a mistake, not an input.
const MAX_ELEMENTS: usize = 1 << 31;

/// The shape that an input shall have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputShape {
    /// Its name.
    pub input: String,
    /// Lengths of its axes.
    pub axes: Vec<usize>,
}

impl FromStr for InputShape {
    type Err = String;

    fn from_str(text: &str) -> Result<InputShape, String> {
        let wrong = || format!("`{text}` is not a shape, like images=1x3x640x640");
        // Names of tensors may hold anything, so the last sign counts.
        let (input, axes) = text.rsplit_once('=').filter(|(input, _)| !input.is_empty()).ok_or_else(wrong)?;
        let axes: Vec<usize> =
            axes.split('x').map(|n| n.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        let elements = axes.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis));
        match elements {
            Some(0) => Err(format!("`{text}` has an empty axis")),
            Some(n) if n <= MAX_ELEMENTS => Ok(InputShape { input: input.to_owned(), axes }),
            _ => Err(format!("`{text}` has more than {MAX_ELEMENTS} elements")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_a_name_and_axes() {
        let shape = |text: &str| text.parse::<InputShape>();
        assert_eq!(shape("images=1x3x640x480"), Ok(InputShape { input: "images".into(), axes: vec![1, 3, 640, 480] }));
        assert_eq!(shape("a=b=7").unwrap().input, "a=b");
        for bad in ["", "1x3", "=1x3", "x=", "x=1xx2", "x=-1", "x=0x3", "x=99999999999x99999999999", "x=65536x65537"] {
            assert!(shape(bad).is_err(), "{bad}");
        }
    }
}
