//! The operators, each with the shape that it gives. A shape that does not fit is an error that names the module.

use prony_model::onnx::AttributeProto;

use super::{Graph, Value, fault, text};
use crate::ForgeError;

type Made = Result<Value, ForgeError>;

fn signed(numbers: &[usize]) -> Vec<i64> {
    numbers.iter().map(|&number| number as i64).collect()
}

/// How a window slides over a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::export) struct Window {
    /// Height and width.
    pub(in crate::export) size: [usize; 2],
    /// From one place to the next.
    pub(in crate::export) stride: [usize; 2],
    /// Beyond the edge, on either side.
    pub(in crate::export) padding: [usize; 2],
    /// From one cell of the window to the next.
    pub(in crate::export) dilation: [usize; 2],
}

impl Window {
    /// A square one.
    pub(in crate::export) fn square(size: usize, stride: usize, padding: usize) -> Window {
        Window { size: [size; 2], stride: [stride; 2], padding: [padding; 2], dilation: [1; 2] }
    }

    /// Places along an axis; `None` where the window does not fit.
    fn places(&self, axis: usize, side: usize) -> Option<usize> {
        let reach = self.dilation[axis].checked_mul(self.size[axis].checked_sub(1)?)?.checked_add(1)?;
        let padded = self.padding[axis].checked_mul(2)?.checked_add(side)?;
        let free = padded.checked_sub(reach)?;
        Some(free.checked_div(self.stride[axis])? + 1)
    }

    fn attributes(&self) -> Vec<AttributeProto> {
        let [top, left] = self.padding;
        vec![
            AttributeProto::ints("kernel_shape", &signed(&self.size)),
            AttributeProto::ints("pads", &signed(&[top, left, top, left])),
            AttributeProto::ints("strides", &signed(&self.stride)),
        ]
    }

    fn over(&self, scope: &str, x: &Value) -> Result<[usize; 2], ForgeError> {
        let sides = x.picture().and_then(|[_, height, width]| Some([self.places(0, height)?, self.places(1, width)?]));
        sides.ok_or_else(|| fault(scope, format!("its window {:?} does not fit on {:?}", self.size, x.dims)))
    }
}

impl Graph {
    /// A convolution by weights that are in the graph: their name and shape, the bias' name, groups.
    pub(in crate::export) fn conv(
        &mut self,
        scope: &str,
        x: &Value,
        (weight, shape): (&str, [usize; 4]),
        bias: Option<&str>,
        (window, groups): (&Window, usize),
    ) -> Made {
        let [out, inner, kh, kw] = shape;
        let channels = x.picture().map(|[channels, ..]| channels);
        if channels != inner.checked_mul(groups) || groups == 0 || out % groups != 0 || [kh, kw] != window.size {
            return Err(fault(
                scope,
                format!("weights of shape {shape:?} in {groups} groups do not fit an input of shape {:?}", x.dims),
            ));
        }
        let [height, width] = window.over(scope, x)?;
        let mut attributes = vec![
            AttributeProto::ints("dilations", &signed(&window.dilation)),
            AttributeProto::int("group", groups as i64),
        ];
        attributes.extend(window.attributes());
        let inputs: Vec<&str> = [x.name.as_str(), weight].into_iter().chain(bias).collect();
        let dims = [x.dims[0], out, height, width];
        Ok(self.one(scope, "Conv", &inputs, attributes, &dims))
    }

    /// The largest, or the mean, of each window.
    pub(in crate::export) fn pool(&mut self, scope: &str, op: &'static str, x: &Value, window: &Window) -> Made {
        let [height, width] = window.over(scope, x)?;
        let dims = [x.dims[0], x.dims[1], height, width];
        Ok(self.one(scope, op, &[&x.name], window.attributes(), &dims))
    }

    /// An operator that changes numbers and no shape.
    pub(in crate::export) fn each(
        &mut self,
        scope: &str,
        op: &str,
        x: &Value,
        attributes: Vec<AttributeProto>,
    ) -> Value {
        self.one(scope, op, &[&x.name], attributes, &x.dims)
    }

    /// Two values, number by number; axes of length one are repeated.
    pub(in crate::export) fn pair(&mut self, scope: &str, op: &str, a: &Value, b: &Value) -> Made {
        let fits = |(a, b): (&usize, &usize)| match (*a, *b) {
            (a, b) if a == b || b == 1 => Some(a),
            (1, b) => Some(b),
            _ => None,
        };
        let rank = a.dims.len().max(b.dims.len());
        let padded = |dims: &[usize]| [vec![1; rank - dims.len()], dims.to_vec()].concat();
        let dims: Option<Vec<usize>> = padded(&a.dims).iter().zip(&padded(&b.dims)).map(fits).collect();
        let dims =
            dims.ok_or_else(|| fault(scope, format!("{op} of shapes {:?} and {:?}, which differ", a.dims, b.dims)))?;
        Ok(self.one(scope, op, &[&a.name, &b.name], vec![], &dims))
    }

    /// A sum of equals: nothing is repeated.
    pub(in crate::export) fn add(&mut self, scope: &str, a: &Value, b: &Value) -> Made {
        if a.dims != b.dims {
            return Err(fault(scope, format!("it adds {:?} to {:?}", b.dims, a.dims)));
        }
        self.pair(scope, "Add", a, b)
    }

    /// One behind the other along an axis.
    pub(in crate::export) fn concat(&mut self, scope: &str, parts: &[&Value], axis: usize) -> Made {
        let Some(first) = parts.first() else { return Err(fault(scope, "it joins nothing")) };
        let others = |value: &Value| {
            let mut dims = value.dims.clone();
            if let Some(dim) = dims.get_mut(axis) {
                *dim = 0;
            }
            dims
        };
        if let Some(odd) = parts.iter().find(|part| others(part) != others(first) || axis >= part.dims.len()) {
            return Err(fault(scope, format!("it joins {:?} and {:?}, which differ", first.dims, odd.dims)));
        }
        let mut dims = first.dims.clone();
        dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        Ok(self.one(scope, "Concat", &names, vec![AttributeProto::int("axis", axis as i64)], &dims))
    }

    /// Parts of these sizes along an axis. The sizes are an input: so it is in every operator set from 13 on.
    pub(in crate::export) fn split(
        &mut self,
        scope: &str,
        x: &Value,
        axis: usize,
        sizes: &[usize],
    ) -> Result<Vec<Value>, ForgeError> {
        let whole: usize = sizes.iter().sum();
        if x.dims.get(axis) != Some(&whole) || sizes.contains(&0) {
            return Err(fault(scope, format!("it splits {:?} into parts of {sizes:?}", x.dims)));
        }
        let part = |&size: &usize| {
            let mut dims = x.dims.clone();
            dims[axis] = size;
            dims
        };
        let outputs = sizes.iter().map(part).collect();
        let sizes = self.ints(scope, &signed(sizes));
        Ok(self.node(scope, "Split", &[&x.name, &sizes], vec![AttributeProto::int("axis", axis as i64)], outputs))
    }

    /// Two halves of the channels.
    pub(in crate::export) fn halves(&mut self, scope: &str, x: &Value) -> Result<[Value; 2], ForgeError> {
        let half = x.dims.get(1).map_or(0, |channels| channels / 2);
        let halves: Result<[Value; 2], _> = self.split(scope, x, 1, &[half, half])?.try_into();
        halves.map_err(|_| fault(scope, "it has no two halves"))
    }

    /// Another shape: 0 keeps an axis, -1 takes what is left.
    pub(in crate::export) fn reshape(&mut self, scope: &str, x: &Value, shape: &[i64]) -> Made {
        let dims = reshaped(&x.dims, shape)
            .ok_or_else(|| fault(scope, format!("a shape of {:?} does not become {shape:?}", x.dims)))?;
        let shape = self.ints(scope, shape);
        Ok(self.one(scope, "Reshape", &[&x.name, &shape], vec![], &dims))
    }

    /// Axes in another order.
    pub(in crate::export) fn transpose(&mut self, scope: &str, x: &Value, order: &[usize]) -> Made {
        let dims: Option<Vec<usize>> = order.iter().map(|&axis| x.dims.get(axis).copied()).collect();
        let dims = dims.ok_or_else(|| fault(scope, format!("{:?} has no axes {order:?}", x.dims)))?;
        Ok(self.one(scope, "Transpose", &[&x.name], vec![AttributeProto::ints("perm", &signed(order))], &dims))
    }

    /// Matrix products over the last two axes; the axes before must agree.
    pub(in crate::export) fn matmul(&mut self, scope: &str, a: &Value, b: &Value) -> Made {
        let ([batch_a @ .., rows, inner], [batch_b @ .., inner_b, columns]) = (&a.dims[..], &b.dims[..]) else {
            return Err(fault(scope, "a product of what are no matrices"));
        };
        if batch_a != batch_b || inner != inner_b {
            return Err(fault(scope, format!("a product of {:?} and {:?}, which do not fit", a.dims, b.dims)));
        }
        let dims = [batch_a, &[*rows, *columns]].concat();
        Ok(self.one(scope, "MatMul", &[&a.name, &b.name], vec![], &dims))
    }

    /// A picture magnified a whole number of times, every pixel repeated.
    pub(in crate::export) fn magnify(&mut self, scope: &str, x: &Value, by: [usize; 2]) -> Made {
        let Some([channels, height, width]) = x.picture() else {
            return Err(fault(scope, format!("{:?} is no picture", x.dims)));
        };
        let scales = self.floats(scope, &[4], &[1.0, 1.0, by[0] as f32, by[1] as f32]);
        let attributes = vec![
            text("coordinate_transformation_mode", "asymmetric"),
            text("mode", "nearest"),
            text("nearest_mode", "floor"),
        ];
        let dims = [x.dims[0], channels, height * by[0], width * by[1]];
        Ok(self.one(scope, "Resize", &[&x.name, "", &scales.name], attributes, &dims))
    }
}

/// The shape that comes out, as ONNX says it.
fn reshaped(from: &[usize], shape: &[i64]) -> Option<Vec<usize>> {
    let whole: usize = from.iter().product();
    let known = |(at, dim): (usize, &i64)| match *dim {
        -1 => Some(1),
        0 => from.get(at).copied(),
        dim => usize::try_from(dim).ok(),
    };
    let mut dims: Vec<usize> = shape.iter().enumerate().map(known).collect::<Option<_>>()?;
    let rest = whole.checked_div(dims.iter().product())?;
    if let Some(free) = shape.iter().position(|dim| *dim == -1) {
        dims[free] = rest;
    }
    (dims.iter().product::<usize>() == whole).then_some(dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(dims: &[usize]) -> Value {
        Value { name: "x".into(), dims: dims.to_vec() }
    }

    #[test]
    fn shapes_become_others_or_none() {
        assert_eq!(reshaped(&[2, 6, 4], &[0, 3, -1]), Some(vec![2, 3, 8]));
        assert_eq!(reshaped(&[2, 6, 4], &[48]), Some(vec![48]));
        assert_eq!(reshaped(&[2, 6, 4], &[0, 5, -1]), None);
        assert_eq!(reshaped(&[2, 6, 4], &[0, 0, 0, 0]), None);
        assert_eq!(reshaped(&[2, 6, 4], &[0, 0, 5]), None);
    }

    #[test]
    fn windows_that_do_not_fit_are_refused() {
        let mut graph = Graph::default();
        let x = picture(&[1, 4, 6, 6]);
        assert_eq!(graph.pool("/p", "MaxPool", &x, &Window::square(3, 2, 1)).unwrap().dims, [1, 4, 3, 3]);
        assert_eq!(graph.pool("/p", "MaxPool", &x, &Window::square(5, 1, 2)).unwrap().dims, [1, 4, 6, 6]);
        for window in [Window::square(7, 1, 0), Window::square(3, 0, 1), Window::square(0, 1, 0)] {
            assert!(graph.pool("/p", "MaxPool", &x, &window).is_err(), "{window:?}");
        }
        let huge = Window { padding: [usize::MAX; 2], ..Window::square(3, 1, 0) };
        assert!(graph.pool("/p", "MaxPool", &x, &huge).is_err());
    }

    #[test]
    fn channels_must_fit() {
        let mut graph = Graph::default();
        let (x, window) = (picture(&[1, 4, 6, 6]), Window::square(3, 2, 1));
        let made = graph.conv("/c", &x, ("w", [8, 4, 3, 3]), None, (&window, 1)).unwrap();
        assert_eq!(made.dims, [1, 8, 3, 3]);
        for (shape, groups) in [([8, 3, 3, 3], 1), ([8, 4, 3, 3], 2), ([8, 4, 1, 1], 1), ([7, 2, 3, 3], 2)] {
            assert!(graph.conv("/c", &x, ("w", shape), None, (&window, groups)).is_err(), "{shape:?} {groups}");
        }
        assert!(graph.add("/a", &x, &picture(&[1, 4, 6, 1])).is_err());
        assert!(graph.concat("/a", &[&x, &picture(&[1, 4, 5, 6])], 1).is_err());
        assert_eq!(graph.concat("/a", &[&x, &picture(&[1, 2, 6, 6])], 1).unwrap().dims, [1, 6, 6, 6]);
        assert!(graph.halves("/a", &picture(&[1, 5, 6, 6])).is_err());
        assert!(graph.matmul("/m", &picture(&[2, 3, 4]), &picture(&[3, 4, 5])).is_err());
    }
}
