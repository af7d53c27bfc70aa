//! The graph with what was decided: weights in the form that is wanted, and a cast wherever the two forms meet.
//!
//! Every tensor of floats has a home, the form in which it is given. The other form is made once, before the first node
//! that wants it, and straight from what a cast was given where a cast gives the tensor: two casts never follow each other.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use prony_model::onnx::{AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfo, dtype};
use prony_types::HalfSpec;

use super::choose::{Class, Why};
use super::facts::{Facts, attribute, called, inner_graphs};
use super::narrow::{narrow, narrowed, number};
use super::operators::stays_wide;
use super::report::{ConvertReport, KeptNode, TensorLosses};
use crate::error::ForgeError;

/// The width of a tensor's floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    Half,
    Full,
}

impl Form {
    fn other(self) -> Form {
        if self == Form::Half { Form::Full } else { Form::Half }
    }
}

/// Writes the graph anew.
pub(super) fn rewrite(
    facts: &Facts<'_>,
    classes: &[Class],
    spec: &HalfSpec,
) -> Result<(GraphProto, ConvertReport), ForgeError> {
    let mut rewriter = Rewriter {
        facts,
        classes,
        spec,
        taken: taken_names(facts.graph),
        forms: HashMap::new(),
        nodes: Vec::with_capacity(facts.graph.node.len() + 16),
        weights: Vec::with_capacity(facts.graph.initializer.len()),
        doubled: BTreeSet::new(),
        report: ConvertReport::of(spec),
    };
    rewriter.refuse_captured()?;
    rewriter.name_outputs();
    rewriter.write_weights()?;
    for at in 0..facts.graph.node.len() {
        rewriter.write_node(at)?;
    }
    Ok(rewriter.finish())
}

struct Rewriter<'a> {
    facts: &'a Facts<'a>,
    classes: &'a [Class],
    spec: &'a HalfSpec,
    /// Names that are in use.
    taken: HashSet<String>,
    /// What a tensor is called in a form, where that form is there.
    forms: HashMap<(String, Form), String>,
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
    /// Constants that are there in both forms.
    doubled: BTreeSet<String>,
    report: ConvertReport,
}

impl Rewriter<'_> {
    /// The form of what goes in and comes out.
    fn outside(&self) -> Form {
        if self.spec.keep_io { Form::Full } else { Form::Half }
    }

    /// The form that a node wants an input in; `None` where it does not matter.
    fn wanted(&self, at: usize, slot: usize) -> Option<Form> {
        match self.classes[at] {
            Class::Half if stays_wide(&self.facts.graph.node[at].op_type, slot) => Some(Form::Full),
            Class::Half => Some(Form::Half),
            Class::Full(_) => Some(Form::Full),
            Class::Aside | Class::Source => None,
        }
    }

    /// Whether all who take a tensor want it in 16 bits.
    fn only_half(&self, tensor: &str) -> bool {
        let takers = self.facts.takers(tensor).iter();
        let wants: Vec<Form> = takers.filter_map(|&(at, slot)| self.wanted(at, slot)).collect();
        !wants.is_empty() && wants.iter().all(|&want| want == Form::Half) && !self.facts.captured.contains(tensor)
    }

    /// The form in which a tensor is given.
    fn home(&self, tensor: &str) -> Form {
        let by_takers = || if self.only_half(tensor) { Form::Half } else { Form::Full };
        if self.facts.constants.contains_key(tensor) {
            return if self.facts.outputs.contains(tensor) { self.outside() } else { by_takers() };
        }
        let Some(&giver) = self.facts.giver.get(tensor) else { return self.outside() };
        match self.classes[giver] {
            Class::Half => Form::Half,
            Class::Source if self.fits(&self.facts.graph.node[giver]) => by_takers(),
            _ => Form::Full,
        }
    }

    /// Whether what a source fills a tensor with can be held in 16 bits.
    fn fits(&self, node: &NodeProto) -> bool {
        let value = attribute(node, "value").and_then(|value| value.t.as_ref()).and_then(TensorProto::to_f32s);
        narrow(&value.unwrap_or_default(), self.spec.precision).1.overflowed == 0
    }

    /// A graph within the graph means a tensor by its name, and takes it in fp32.
    fn refuse_captured(&self) -> Result<(), ForgeError> {
        let narrow = |name: &&&str| self.facts.is_float(name) && self.home(name) == Form::Half;
        match self.facts.captured.iter().find(narrow) {
            None => Ok(()),
            Some(name) => Err(ForgeError::Unsupported(format!(
                "a graph within the graph uses {name}, so it must stay in fp32; leave --keep-io at yes"
            ))),
        }
    }

    /// Outputs have their names from outside, whatever form they are computed in.
    fn name_outputs(&mut self) {
        for output in &self.facts.graph.output {
            let (name, home) = (output.name.as_str(), self.home(&output.name));
            if self.facts.is_float(name) && home != self.outside() && self.facts.giver.contains_key(name) {
                let inside = self.fresh(name, home);
                self.forms.insert((name.to_owned(), home), inside);
                self.forms.insert((name.to_owned(), home.other()), name.to_owned());
            }
        }
    }

    fn write_weights(&mut self) -> Result<(), ForgeError> {
        for tensor in &self.facts.graph.initializer {
            if tensor.data_type == dtype::FLOAT && self.home(&tensor.name) == Form::Half {
                let narrow = self.narrowed(&tensor.name)?;
                self.weights.push(narrow);
            } else {
                self.report.weights_kept += u64::from(tensor.data_type == dtype::FLOAT);
                self.weights.push(tensor.clone());
            }
        }
        Ok(())
    }

    fn write_node(&mut self, at: usize) -> Result<(), ForgeError> {
        let facts = self.facts;
        let mut node = facts.graph.node[at].clone();
        for (slot, name) in facts.floats_in(&facts.graph.node[at]) {
            let form = self.wanted(at, slot).unwrap_or_else(|| self.home(name));
            node.input[slot] = self.name_in(name, form)?;
        }
        self.count(at);
        let home = facts.floats_out(&facts.graph.node[at]).next().map(|name| self.home(name));
        if home == Some(Form::Half) {
            self.narrow_attributes(at, &mut node)?;
        }
        let given: Vec<String> = facts.floats_out(&facts.graph.node[at]).map(str::to_owned).collect();
        for name in &mut node.output {
            if let Some(inside) = home.and_then(|home| self.forms.get(&(name.clone(), home))) {
                name.clone_from(inside);
            }
        }
        self.nodes.push(node);
        // An output of another form than its home is given right here, for its name is known to the nodes behind.
        for name in given.iter().filter(|name| facts.outputs.contains(name.as_str())) {
            let home = self.home(name);
            if home != self.outside() {
                self.cast(name, home.other(), name);
            }
        }
        Ok(())
    }

    fn count(&mut self, at: usize) {
        let node = &self.facts.graph.node[at];
        match self.classes[at] {
            Class::Half => self.report.nodes_half += 1,
            Class::Full(why) => {
                let (node, op) = (called(node).to_owned(), node.op_type.clone());
                self.report.kept.push(KeptNode { node, op, why });
            }
            Class::Aside | Class::Source => {}
        }
    }

    /// What a source says about the floats that it gives.
    fn narrow_attributes(&mut self, at: usize, node: &mut NodeProto) -> Result<(), ForgeError> {
        let to = number(self.spec.precision);
        match (self.classes[at], node.op_type.as_str()) {
            (Class::Aside, "Constant") => {
                let value = self.narrowed(&self.facts.graph.node[at].output[0])?;
                node.attribute = vec![tensor_attribute("value", value)];
            }
            (Class::Source, "ConstantOfShape") => {
                let value = attribute(node, "value").and_then(|value| value.t.clone());
                let value = value.unwrap_or_else(|| TensorProto::floats("", &[1], &[0.0]));
                let elements = value.to_f32s().ok_or_else(|| unreadable(called(node)))?;
                let value = narrowed(&value, narrow(&elements, self.spec.precision).0, self.spec.precision);
                node.attribute = vec![tensor_attribute("value", value)];
            }
            (Class::Source, _) => {
                for attribute in node.attribute.iter_mut().filter(|attribute| attribute.name == "to") {
                    attribute.i = to.into();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What a tensor is called in a form; where that form is not there yet, it is made.
    fn name_in(&mut self, tensor: &str, form: Form) -> Result<String, ForgeError> {
        if let Some(name) = self.forms.get(&(tensor.to_owned(), form)) {
            return Ok(name.clone());
        }
        if self.home(tensor) == form {
            return Ok(tensor.to_owned());
        }
        let name = self.fresh(tensor, form);
        if let Some(constant) = self.facts.constants.get(tensor) {
            let made = if form == Form::Half { self.narrowed(tensor)? } else { constant.clone() };
            self.weights.push(TensorProto { name: name.clone(), ..made });
            self.doubled.insert(tensor.to_owned());
            self.forms.insert((tensor.to_owned(), form), name.clone());
            return Ok(name);
        }
        self.cast(tensor, form, &name);
        self.forms.insert((tensor.to_owned(), form), name.clone());
        Ok(name)
    }

    /// Gives a tensor in another form than its home.
    fn cast(&mut self, tensor: &str, form: Form, name: &str) {
        let giver = self.facts.giver.get(tensor).map(|&at| (self.classes[at], &self.facts.graph.node[at]));
        let from = match giver {
            // Straight from what the graph's own cast was given.
            Some((Class::Source, node)) if node.op_type == "Cast" => node.input[0].clone(),
            _ => {
                let home = self.forms.get(&(tensor.to_owned(), form.other()));
                home.cloned().unwrap_or_else(|| tensor.to_owned())
            }
        };
        let to = if form == Form::Half { number(self.spec.precision) } else { dtype::FLOAT };
        let node = NodeProto::new("Cast", &[&from], &[name], vec![AttributeProto::int("to", to.into())]);
        let called = self.unused(&format!("{name}_cast"));
        self.nodes.push(NodeProto { name: called, ..node });
        self.report.casts += 1;
    }

    /// A constant in 16 bits, and what was lost.
    fn narrowed(&mut self, name: &str) -> Result<TensorProto, ForgeError> {
        let tensor = &self.facts.constants[name];
        let elements = tensor.to_f32s().ok_or_else(|| unreadable(name))?;
        let (bytes, losses) = narrow(&elements, self.spec.precision);
        self.report.weights_half += 1;
        self.report.elements_half += elements.len() as u64;
        self.report.lost(TensorLosses {
            tensor: name.to_owned(),
            elements: elements.len() as u64,
            kept: false,
            losses,
        });
        Ok(narrowed(tensor, bytes, self.spec.precision))
    }

    fn fresh(&mut self, tensor: &str, form: Form) -> String {
        let suffix = if form == Form::Half { self.spec.precision.name() } else { "fp32" };
        self.unused(&format!("{tensor}_{suffix}"))
    }

    fn unused(&mut self, name: &str) -> String {
        let mut unused = name.to_owned();
        let mut nth = 1;
        while !self.taken.insert(unused.clone()) {
            nth += 1;
            unused = format!("{name}_{nth}");
        }
        unused
    }

    fn finish(mut self) -> (GraphProto, ConvertReport) {
        self.tell_overflow();
        self.report.weights_doubled = self.doubled.len() as u64;
        let graph = self.facts.graph;
        let typed = |values: &[ValueInfo]| values.iter().map(|value| self.typed(value)).collect::<Vec<_>>();
        // A weight that is there twice cannot be overridden from outside: one of the two would stay.
        let input: Vec<ValueInfo> =
            typed(&graph.input).into_iter().filter(|value| !self.doubled.contains(&value.name)).collect();
        let (output, value_info) = (typed(&graph.output), typed(&graph.value_info));
        let written =
            GraphProto { node: Vec::new(), initializer: Vec::new(), input, output, value_info, ..graph.clone() };
        (GraphProto { node: self.nodes, initializer: self.weights, ..written }, self.report)
    }

    /// A declared type as it is now.
    fn typed(&self, value: &ValueInfo) -> ValueInfo {
        let mut value = value.clone();
        let name = value.name.as_str();
        let renamed = self.forms.get(&(name.to_owned(), self.home(name))).is_some_and(|inside| inside != name);
        let form = if renamed { self.home(name).other() } else { self.home(name) };
        let tensor = value.ty.as_mut().and_then(|ty| ty.tensor.as_mut());
        if let Some(tensor) = tensor.filter(|tensor| tensor.elem_type == dtype::FLOAT && form == Form::Half) {
            tensor.elem_type = number(self.spec.precision);
        }
        value
    }

    /// Constants that could not be narrowed, once each.
    fn tell_overflow(&mut self) {
        let kept =
            self.facts.graph.node.iter().zip(self.classes).filter(|(_, class)| **class == Class::Full(Why::Overflow));
        let mut told = BTreeMap::new();
        for (node, _) in kept {
            for name in node.input.iter().filter_map(|name| self.facts.constants.get_key_value(name.as_str())) {
                let elements = name.1.to_f32s().unwrap_or_default();
                told.insert(*name.0, (elements.len() as u64, narrow(&elements, self.spec.precision).1));
            }
        }
        for (tensor, (elements, losses)) in told.into_iter().filter(|(_, (_, losses))| losses.overflowed > 0) {
            self.report.lost(TensorLosses { tensor: tensor.to_owned(), elements, kept: true, losses });
        }
    }
}

fn unreadable(name: &str) -> ForgeError {
    ForgeError::Model(format!("weight {name}: its elements are not as many as its shape says; export the model again"))
}

fn tensor_attribute(name: &str, value: TensorProto) -> AttributeProto {
    AttributeProto { name: name.to_owned(), t: Some(value), kind: 4, ..AttributeProto::default() }
}

/// Every name of the graph and of those within it.
fn taken_names(graph: &GraphProto) -> HashSet<String> {
    let mut taken: HashSet<String> = graph.initializer.iter().map(|tensor| tensor.name.clone()).collect();
    taken.extend(graph.input.iter().map(|input| input.name.clone()));
    for node in &graph.node {
        taken.extend(node.input.iter().chain(&node.output).chain([&node.name]).cloned());
        inner_graphs(node).for_each(|inner| taken.extend(taken_names(inner)));
    }
    taken
}
