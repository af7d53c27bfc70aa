//! The shape of every tensor of a graph at one input size. Small whole numbers are carried along, for graphs compute
//! shapes from shapes. What cannot be told is unknown: nothing is guessed, nothing is allocated by a size that a file
//! declares, and a graph that is nonsense gives fewer shapes and no more.

mod arrange;
mod content;
mod einsum;
mod node;
mod pick;
mod product;
mod rule;
mod window;

use std::collections::HashMap;

use prony_types::Dim;

pub(crate) use self::einsum::{letters as einsum_letters, sizes as einsum_sizes};
pub(crate) use self::rule::keeps_shape;

use self::content::Content;
use self::node::Node;
use crate::onnx::{GraphProto, TensorProto, ValueInfo, dimension};

/// Sizes of the axes of one tensor.
pub type Shape = Vec<u64>;

/// More axes than this no operator of the field has; a graph that piles them up is hostile.
const MOST_AXES: usize = 32;
/// Numbers that are carried along with all tensors together: graphs that compute shapes need a few thousand.
const MOST_NUMBERS: usize = 1 << 20;

/// Values for the axes that a file leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// For the first axis of an input.
    pub batch: u64,
    /// Height and width, for the last two axes of an input of four.
    pub imgsz: Option<[u64; 2]>,
}

impl Sizes {
    /// The shape of an input, where every open axis has a value.
    pub fn shape(&self, dims: &[Dim]) -> Option<Shape> {
        let axis = |(at, dim): (usize, &Dim)| match dim {
            Dim::Fixed(n) => Some(*n),
            Dim::Named(_) => match (at, dims.len(), self.imgsz) {
                (0, ..) => Some(self.batch),
                (2, 4, Some([height, _])) => Some(height),
                (3, 4, Some([_, width])) => Some(width),
                _ => None,
            },
        };
        dims.iter().enumerate().map(axis).collect()
    }
}

/// What is known of one tensor.
#[derive(Clone, Debug, Default)]
struct Value {
    shape: Shape,
    /// Its elements, where they are few and known.
    content: Option<Content>,
    /// Whether it is the same for every frame.
    constant: bool,
}

/// Shapes by the names of tensors.
#[derive(Clone, Debug, Default)]
pub struct Shapes<'a> {
    values: HashMap<&'a str, Value>,
    unknown: Vec<usize>,
    numbers: usize,
}

/// Infers the shapes of a graph, in one pass: nodes stand in topological order.
pub fn infer<'a>(graph: &'a GraphProto, sizes: &Sizes) -> Shapes<'a> {
    let mut shapes = Shapes::default();
    for input in &graph.input {
        if let Some(shape) = declared(input).and_then(|dims| sizes.shape(&dims)) {
            shapes.insert(&input.name, Value { shape, ..Value::default() });
        }
    }
    for weight in &graph.initializer {
        if let Some(value) = constant(weight) {
            shapes.insert(&weight.name, value);
        }
    }
    let declared: HashMap<&str, &ValueInfo> =
        graph.value_info.iter().chain(&graph.output).map(|value| (value.name.as_str(), value)).collect();
    for (index, node) in graph.node.iter().enumerate() {
        shapes.visit(index, node, &declared);
    }
    shapes
}

impl<'a> Shapes<'a> {
    /// The shape of a tensor.
    pub fn get(&self, tensor: &str) -> Option<&[u64]> {
        self.values.get(tensor).map(|value| &value.shape[..])
    }

    /// How many elements a tensor has; `None` where that is not known, or is no number.
    pub fn count(&self, tensor: &str) -> Option<u64> {
        count(self.get(tensor)?)
    }

    /// Whether a tensor is the same for every frame: a weight, or what follows from weights and shapes alone.
    pub fn is_constant(&self, tensor: &str) -> bool {
        self.values.get(tensor).is_some_and(|value| value.constant)
    }

    /// Nodes of which the shape of an output is not known, by index.
    pub fn unknown(&self) -> &[usize] {
        &self.unknown
    }

    fn insert(&mut self, name: &'a str, mut value: Value) {
        if name.is_empty() || value.shape.len() > MOST_AXES {
            return;
        }
        self.numbers += value.content.as_ref().map_or(0, Content::len);
        if self.numbers > MOST_NUMBERS {
            value.content = None;
        }
        self.values.insert(name, value);
    }

    fn visit(&mut self, index: usize, proto: &'a crate::onnx::NodeProto, declared: &HashMap<&str, &'a ValueInfo>) {
        let node = Node { proto, values: &self.values };
        let shapes = rule::outputs(&node).unwrap_or_default();
        let mut contents = content::outputs(&node, &shapes);
        let constant = node.is_constant();
        let mut complete = true;
        for (at, name) in proto.output.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let fixed = || declared.get(name.as_str()).and_then(|value| all_fixed(value));
            let shape = shapes.get(at).cloned().flatten().or_else(fixed);
            // More elements than there are numbers: nonsense, whatever the rule says.
            let Some(shape) = shape.filter(|shape| count(shape).is_some()) else {
                complete = false;
                continue;
            };
            let content = contents.get_mut(at).and_then(Option::take);
            let constant = constant || content.is_some();
            self.insert(name, Value { shape, content, constant });
        }
        if !complete {
            self.unknown.push(index);
        }
    }
}

/// The product of axes, unless it is beyond all numbers.
pub(crate) fn count(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1u64, |n, &axis| n.checked_mul(axis))
}

/// A weight, with its elements where they are few.
fn constant(tensor: &TensorProto) -> Option<Value> {
    let shape = tensor.dims.iter().map(|&axis| u64::try_from(axis).ok()).collect::<Option<Shape>>()?;
    Some(Value { shape, content: Content::of(tensor), constant: true })
}

/// The axes that a file declares for a value.
fn declared(value: &ValueInfo) -> Option<Vec<Dim>> {
    let shape = value.ty.as_ref()?.tensor.as_ref()?.shape.as_ref()?;
    let axis = |axis: &crate::onnx::Dimension| match &axis.value {
        Some(dimension::Value::Fixed(n)) => u64::try_from(*n).map_or(Dim::Named(String::new()), Dim::Fixed),
        Some(dimension::Value::Named(name)) => Dim::Named(name.clone()),
        None => Dim::Named(String::new()),
    };
    Some(shape.dim.iter().map(axis).collect())
}

/// A declared shape, where nothing in it is open.
fn all_fixed(value: &ValueInfo) -> Option<Shape> {
    let fixed = |dim: &Dim| match dim {
        Dim::Fixed(n) => Some(*n),
        Dim::Named(_) => None,
    };
    declared(value)?.iter().map(fixed).collect()
}

#[cfg(test)]
#[path = "shape/shape_tests.rs"]
mod tests;
