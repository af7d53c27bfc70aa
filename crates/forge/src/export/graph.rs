//! A graph in the making. Nodes and tensors are named as Ultralytics' exports name them: a node by the module it comes from
//! and its operator, its tensors after it. Every value carries its shape, so that what does not fit is seen here and not
//! by an engine.

mod op;

use std::collections::HashMap;

use prony_model::onnx::{AttributeProto, NodeProto, TensorProto, dtype};

use crate::ForgeError;

pub(super) use op::Window;

/// A tensor between nodes, with its shape at the size that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    /// Its name.
    pub(super) name: String,
    /// Its shape.
    pub(super) dims: Vec<usize>,
}

impl Value {
    /// Channels, height and width of a picture, or nothing where it is none.
    pub(super) fn picture(&self) -> Option<[usize; 3]> {
        match self.dims[..] {
            [_, channels, height, width] => Some([channels, height, width]),
            _ => None,
        }
    }
}

/// Nodes and weights so far.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// In the order in which they run.
    pub(super) nodes: Vec<NodeProto>,
    /// Weights and constants.
    pub(super) weights: Vec<TensorProto>,
    /// How many of an operator a module has.
    counts: HashMap<String, usize>,
}

/// What is wrong with a module.
pub(super) fn fault(at: &str, reason: impl std::fmt::Display) -> ForgeError {
    ForgeError::Model(format!("{}: {reason}", at.trim_start_matches('/')))
}

impl Graph {
    /// Adds a node with outputs of these shapes. `scope` is the module: `/model.0/conv`.
    pub(super) fn node(
        &mut self,
        scope: &str,
        op: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
        outputs: Vec<Vec<usize>>,
    ) -> Vec<Value> {
        let name = self.name(scope, op);
        let values: Vec<Value> = outputs
            .into_iter()
            .enumerate()
            .map(|(at, dims)| Value { name: format!("{name}_output_{at}"), dims })
            .collect();
        self.nodes.push(NodeProto {
            name,
            op_type: op.to_owned(),
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: values.iter().map(|value| value.name.clone()).collect(),
            attribute: attributes,
            ..NodeProto::default()
        });
        values
    }

    /// The same with one output.
    pub(super) fn one(
        &mut self,
        scope: &str,
        op: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
        dims: &[usize],
    ) -> Value {
        self.node(scope, op, inputs, attributes, vec![dims.to_vec()]).swap_remove(0)
    }

    /// A constant row of whole numbers; the name that it gets.
    pub(super) fn ints(&mut self, scope: &str, numbers: &[i64]) -> String {
        let name = self.name(scope, "Constant") + "_output_0";
        self.weights.push(TensorProto::ints(&name, numbers));
        name
    }

    /// A single whole number, without an axis.
    pub(super) fn int(&mut self, scope: &str, number: i64) -> String {
        let name = self.name(scope, "Constant") + "_output_0";
        self.weights.push(TensorProto { dims: Vec::new(), ..TensorProto::ints(&name, &[number]) });
        name
    }

    /// Constant floats.
    pub(super) fn floats(&mut self, scope: &str, dims: &[usize], numbers: &[f32]) -> Value {
        let name = self.name(scope, "Constant") + "_output_0";
        self.weight(&name, dims, numbers.iter().copied());
        Value { name, dims: dims.to_vec() }
    }

    /// Trained floats under a name of their own.
    pub(super) fn weight(&mut self, name: &str, dims: &[usize], numbers: impl ExactSizeIterator<Item = f32>) {
        let mut raw = Vec::with_capacity(numbers.len() * 4);
        numbers.for_each(|number| raw.extend_from_slice(&number.to_le_bytes()));
        self.weights.push(TensorProto {
            name: name.to_owned(),
            dims: dims.iter().map(|&dim| dim as i64).collect(),
            data_type: dtype::FLOAT,
            raw_data: raw.into(),
            ..TensorProto::default()
        });
    }

    /// A name that no other node has: the first of a module is bare, those after it are numbered.
    fn name(&mut self, scope: &str, op: &str) -> String {
        let name = format!("{scope}/{op}");
        let count = self.counts.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            count => format!("{name}_{}", count - 1),
        }
    }
}

/// A float among attributes.
pub(super) fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { name: name.into(), f, kind: 1, ..AttributeProto::default() }
}

/// A text among attributes.
pub(super) fn text(name: &str, s: &'static str) -> AttributeProto {
    AttributeProto { name: name.into(), s: s.as_bytes().into(), kind: 3, ..AttributeProto::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_within_their_module() {
        let mut graph = Graph::default();
        let x = Value { name: "x".into(), dims: vec![1, 2] };
        let names = ["/a", "/a", "/b"].map(|scope| graph.one(scope, "Relu", &[&x.name], vec![], &x.dims).name);
        assert_eq!(names, ["/a/Relu_output_0", "/a/Relu_1_output_0", "/b/Relu_output_0"]);
        assert_eq!(graph.nodes[1].name, "/a/Relu_1");
    }

    #[test]
    fn a_fault_names_the_module_as_people_do() {
        assert_eq!(fault("/model.0/conv", "odd").to_string(), "model.0/conv: odd");
    }
}
