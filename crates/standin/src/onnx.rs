//! Models for the stand-in: as much of ONNX as it reads, written by hand.

/// A dimension: a number, or a name where it is free.
#[derive(Clone, Copy, Debug)]
pub enum Dim {
    /// Always this.
    Fixed(u64),
    /// Free; the same as every other of this name.
    Free(&'static str),
}

/// ONNX's number of a type of elements.
pub mod element {
    /// 32-bit floats.
    pub const F32: u64 = 1;
    /// 16-bit floats.
    pub const F16: u64 = 10;
    /// 64-bit whole numbers.
    pub const I64: u64 = 7;
}

/// A model of inputs, outputs and nodes; what the nodes do, nobody asks.
#[derive(Clone, Debug, Default)]
pub struct Model {
    graph: Vec<u8>,
}

impl Model {
    /// An empty one.
    pub fn new() -> Model {
        Model::default()
    }

    /// `images` (1 x 3 x 8 x 8) to `boxes` (1 x 6 x 4), both of 32-bit floats, through two nodes.
    pub fn detector() -> Model {
        Model::new()
            .node("/conv", "Conv", "")
            .node("/head", "Sigmoid", "")
            .input("images", element::F32, &[1, 3, 8, 8].map(Dim::Fixed))
            .output("boxes", element::F32, &[1, 6, 4].map(Dim::Fixed))
    }

    /// The same for any number of images at a time.
    pub fn batched() -> Model {
        use Dim::{Fixed, Free};
        Model::new()
            .node("/conv", "Conv", "")
            .node("/head", "Sigmoid", "")
            .input("images", element::F32, &[Free("batch"), Fixed(3), Fixed(8), Fixed(8)])
            .output("boxes", element::F32, &[Free("batch"), Fixed(6), Fixed(4)])
    }

    /// Adds a node. A domain that is not ONNX's own makes the parser refuse it.
    #[must_use]
    pub fn node(mut self, name: &str, operator: &str, domain: &str) -> Model {
        let mut node = Vec::new();
        bytes(&mut node, 3, name.as_bytes());
        bytes(&mut node, 4, operator.as_bytes());
        if !domain.is_empty() {
            bytes(&mut node, 7, domain.as_bytes());
        }
        bytes(&mut self.graph, 1, &node);
        self
    }

    /// Adds an input.
    #[must_use]
    pub fn input(mut self, name: &str, element: u64, dims: &[Dim]) -> Model {
        bytes(&mut self.graph, 11, &value(name, element, dims));
        self
    }

    /// Adds an output.
    #[must_use]
    pub fn output(mut self, name: &str, element: u64, dims: &[Dim]) -> Model {
        bytes(&mut self.graph, 12, &value(name, element, dims));
        self
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut model = Vec::new();
        number(&mut model, 1, 8);
        bytes(&mut model, 7, &self.graph);
        model
    }
}

fn value(name: &str, element: u64, dims: &[Dim]) -> Vec<u8> {
    let mut shape = Vec::new();
    for dim in dims {
        let mut one = Vec::new();
        match dim {
            Dim::Fixed(value) => number(&mut one, 1, *value),
            Dim::Free(name) => bytes(&mut one, 2, name.as_bytes()),
        }
        bytes(&mut shape, 1, &one);
    }
    let mut tensor = Vec::new();
    number(&mut tensor, 1, element);
    bytes(&mut tensor, 2, &shape);
    let mut kind = Vec::new();
    bytes(&mut kind, 1, &tensor);
    let mut out = Vec::new();
    bytes(&mut out, 1, name.as_bytes());
    bytes(&mut out, 2, &kind);
    out
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}
