//! What a graph costs at one input size: arithmetic and bytes, node by node and in sum, and how much of it is quantised.
//!
//! A multiply-add counts 2 operations. Bytes of a node are those that it reads and writes at their types, its weights
//! among them. What follows from weights and shapes alone is computed once, when a model is loaded, and costs nothing here.

mod flops;
mod width;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use prony_types::LayerCost;

use self::flops::Kind;
use crate::onnx::{AttributeProto, Elements, GraphProto, NodeProto};
use crate::shape::{Shape, Shapes};

pub(crate) use self::width::name as type_name;

/// How far a quantiser is looked for behind nodes that only arrange anew.
const STEPS: usize = 8;

/// The cost of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCost {
    /// Its name; empty where it has none.
    pub name: String,
    /// The operator.
    pub op: String,
    /// Shape of its first output.
    pub shape: Option<Shape>,
    /// Element type of its first output.
    pub dtype: Option<&'static str>,
    /// Operations; `None` where they are not known.
    pub flops: Option<u64>,
    /// What it reads and writes, weights among it; `None` where that is not known.
    pub bytes: Option<u64>,
    /// Its weights alone.
    pub weight_bytes: u64,
    /// For convolutions and products of matrices: whether what goes in comes out of quantisers.
    pub quantised: Option<bool>,
}

/// What a kind of operator costs in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorCost {
    /// Nodes.
    pub nodes: u64,
    /// Operations, as far as they are known.
    pub flops: u64,
    /// Bytes, as far as they are known.
    pub bytes: u64,
}

/// How many of the convolutions and products of matrices are fed by quantisers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Those that are.
    pub nodes: u64,
    /// All of them.
    pub of_nodes: u64,
    /// Operations of those that are.
    pub flops: u64,
    /// Operations of all of them.
    pub of_flops: u64,
}

/// The cost of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Every node, in the order of the file.
    pub nodes: Vec<NodeCost>,
    /// What it costs at least, a layer a node; see [`LayerCost`].
    pub layers: Vec<LayerCost>,
}

impl Cost {
    /// The cost of a graph whose shapes are known, as far as they are.
    pub fn of(graph: &GraphProto, shapes: &Shapes<'_>) -> Cost {
        let elements = Elements::of(graph);
        let makers = graph.node.iter().flat_map(|node| node.output.iter().map(move |name| (name.as_str(), node)));
        let makers: HashMap<&str, &NodeProto> = makers.collect();
        let mut cost = Cost::default();
        for node in &graph.node {
            let (of_node, layer) = Place { node, shapes, elements: &elements, makers: &makers }.cost();
            cost.nodes.push(of_node);
            cost.layers.push(layer);
        }
        cost
    }

    /// Operations in sum, as far as they are known.
    pub fn flops(&self) -> u64 {
        self.nodes.iter().filter_map(|node| node.flops).fold(0, u64::saturating_add)
    }

    /// Bytes in sum, as far as they are known.
    pub fn bytes(&self) -> u64 {
        self.nodes.iter().filter_map(|node| node.bytes).fold(0, u64::saturating_add)
    }

    /// Nodes whose arithmetic or bytes are not known.
    pub fn unknown(&self) -> impl Iterator<Item = &NodeCost> {
        self.nodes.iter().filter(|node| node.flops.is_none() || node.bytes.is_none())
    }

    /// Sums by operator.
    pub fn by_operator(&self) -> BTreeMap<&str, OperatorCost> {
        let mut sums: BTreeMap<&str, OperatorCost> = BTreeMap::new();
        for node in &self.nodes {
            let sum = sums.entry(&node.op).or_default();
            sum.nodes += 1;
            sum.flops = sum.flops.saturating_add(node.flops.unwrap_or(0));
            sum.bytes = sum.bytes.saturating_add(node.bytes.unwrap_or(0));
        }
        sums
    }

    /// How much of the heavy arithmetic is quantised.
    pub fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for node in &self.nodes {
            let Some(quantised) = node.quantised else { continue };
            let flops = node.flops.unwrap_or(0);
            coverage.of_nodes += 1;
            coverage.of_flops = coverage.of_flops.saturating_add(flops);
            if quantised {
                coverage.nodes += 1;
                coverage.flops = coverage.flops.saturating_add(flops);
            }
        }
        coverage
    }
}

/// A node in its graph.
struct Place<'a> {
    node: &'a NodeProto,
    shapes: &'a Shapes<'a>,
    elements: &'a Elements,
    makers: &'a HashMap<&'a str, &'a NodeProto>,
}

impl<'a> Place<'a> {
    fn cost(&self) -> (NodeCost, LayerCost) {
        let kind = flops::kind(self);
        let output = self.node.output.first().map_or("", String::as_str);
        let quantised = (kind == Some(Kind::Product) && !self.is_constant()).then(|| self.is_quantised());
        let mut of_node = NodeCost {
            name: self.node.name.clone(),
            op: self.node.op_type.clone(),
            shape: self.shapes.get(output).map(<[u64]>::to_vec),
            dtype: self.elements.get(output).map(width::name),
            flops: Some(0),
            bytes: Some(0),
            weight_bytes: 0,
            quantised,
        };
        if self.is_constant() {
            return (of_node, LayerCost::default());
        }
        let Some(kind) = kind else {
            (of_node.flops, of_node.bytes) = (None, None);
            return (of_node, LayerCost::default());
        };
        of_node.flops = flops::flops(self, kind);
        let moved = self.moved(kind);
        of_node.bytes = moved.and_then(|(weights, activations)| weights.checked_add(activations));
        of_node.weight_bytes = moved.map_or(0, |(weights, _)| weights);
        let flops = of_node.flops.unwrap_or(0);
        // What works element by element can be done while the result of a product is at hand.
        let layer = match (kind, self.least_moved(quantised == Some(true))) {
            (Kind::Product, Some((weight_bytes, activation_bytes))) => {
                LayerCost { flops, weight_bytes, activation_bytes }
            }
            _ => LayerCost { flops, ..LayerCost::default() },
        };
        (of_node, layer)
    }

    fn is_constant(&self) -> bool {
        let mut outputs = self.node.output.iter().filter(|name| !name.is_empty());
        outputs.all(|name| self.shapes.is_constant(name))
    }

    /// The distinct tensors that it is fed.
    fn inputs(&self) -> BTreeSet<&'a str> {
        self.node.input.iter().map(String::as_str).filter(|name| !name.is_empty()).collect()
    }

    fn size(&self, tensor: &str) -> Option<u64> {
        width::bytes(self.shapes.count(tensor)?, self.elements.get(tensor)?)
    }

    fn written(&self) -> Option<u64> {
        let outputs = self.node.output.iter().filter(|name| !name.is_empty());
        outputs.map(|name| self.size(name)).try_fold(0u64, |sum, size| sum.checked_add(size?))
    }

    /// Bytes of weights, and of all else that it reads and writes.
    fn moved(&self, kind: Kind) -> Option<(u64, u64)> {
        if kind == Kind::View {
            return Some((0, 0));
        }
        let written = self.written()?;
        // Only what is picked is read.
        if matches!(self.node.op_type.as_str(), "Gather" | "GatherElements" | "GatherND" | "Slice" | "Split") {
            return Some((0, written.checked_mul(2)?));
        }
        let mut sums = (0u64, written);
        for tensor in self.inputs() {
            let size = self.size(tensor)?;
            match self.shapes.is_constant(tensor) {
                true => sums.0 = sums.0.checked_add(size)?,
                false => sums.1 = sums.1.checked_add(size)?,
            }
        }
        Some(sums)
    }

    /// The same for a backend that keeps what is quantised as it is stored.
    fn least_moved(&self, quantised: bool) -> Option<(u64, u64)> {
        let written = match quantised {
            // Quantised again before it is written.
            true => self.node.output.first().and_then(|name| self.shapes.count(name))?,
            false => self.written()?,
        };
        let mut sums = (0u64, written);
        for tensor in self.inputs() {
            let stored = self.dequantiser(tensor).and_then(|node| node.input.first()).map_or(tensor, String::as_str);
            let size = self.size(stored)?;
            match self.shapes.is_constant(tensor) {
                true => sums.0 = sums.0.checked_add(size)?,
                false => sums.1 = sums.1.checked_add(size)?,
            }
        }
        Some(sums)
    }

    /// The node that a tensor comes dequantised from, perhaps behind some that only arrange it anew.
    fn dequantiser(&self, tensor: &'a str) -> Option<&'a NodeProto> {
        let mut tensor = tensor;
        for _ in 0..STEPS {
            let maker = *self.makers.get(tensor)?;
            match maker.op_type.as_str() {
                "DequantizeLinear" | "TRT_FP8DequantizeLinear" => return Some(maker),
                "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Flatten" | "Identity" => {
                    tensor = maker.input.first()?;
                }
                _ => return None,
            }
        }
        None
    }

    /// Whether both factors of a product come out of quantisers, or the operator works on bytes.
    fn is_quantised(&self) -> bool {
        let op = self.node.op_type.as_str();
        let both = || {
            let factors = self.node.input.iter().take(2);
            factors.clone().count() == 2 && factors.into_iter().all(|name| self.dequantiser(name).is_some())
        };
        matches!(op, "QLinearConv" | "QLinearMatMul" | "ConvInteger" | "MatMulInteger" | "QGemm") || both()
    }

    fn has(&self, at: usize) -> bool {
        self.node.input.get(at).is_some_and(|name| !name.is_empty())
    }

    fn input(&self, at: usize) -> Option<&'a [u64]> {
        self.shapes.get(self.node.input.get(at)?)
    }

    fn input_count(&self, at: usize) -> Option<u64> {
        crate::shape::count(self.input(at)?)
    }

    fn output_count(&self, at: usize) -> Option<u64> {
        self.shapes.count(self.node.output.get(at)?)
    }

    fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.node.attribute.iter().find(|attribute| attribute.name == name)
    }

    fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name).map(|attribute| attribute.i)
    }

    fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.attribute(name).map(|attribute| &attribute.ints[..])
    }

    fn text(&self, name: &str) -> &'a str {
        self.attribute(name).and_then(|attribute| std::str::from_utf8(&attribute.s).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "cost/cost_tests.rs"]
mod tests;
