//! The walk over the module tree: what every step needs, and the rows of layers themselves.

use prony_model::pt::{Checkpoint, Element, Tensor};

use super::block;
use super::graph::{Graph, Value};
use super::guard::Ledger;
use super::place::{Attributes, Place};
use crate::ForgeError;

/// What a layer gives: one picture, or several where it cuts its own up.
#[derive(Clone, Debug)]
pub(super) enum Given {
    /// One.
    One(Value),
    /// Several.
    Several(Vec<Value>),
}

/// A walk: the graph so far, and the weights that were used.
pub(super) struct Walk<'a> {
    /// The model.
    pub(super) checkpoint: &'a Checkpoint,
    /// What was written of it.
    pub(super) graph: Graph,
    /// Which weights were used.
    pub(super) ledger: Ledger,
    /// Whether sizes are only known when the graph runs.
    pub(super) dynamic: bool,
    /// Operator set.
    pub(super) opset: u32,
}

impl<'a> Walk<'a> {
    /// Plain attributes of modules.
    pub(super) fn attributes(&self) -> Attributes<'a> {
        Attributes(self.checkpoint)
    }

    /// Weights of a module by name; they count as used.
    pub(super) fn parameter(&mut self, place: &Place<'a>, name: &str) -> Result<(&'a Tensor, Vec<f32>), ForgeError> {
        match place.module.parameter(name) {
            Some(tensor) => Ok((tensor, self.elements(place, name, tensor)?)),
            None => Err(place.fault(format!("it has no `{name}`"))),
        }
    }

    /// Another tensor of a module, as the running mean.
    pub(super) fn buffer(&mut self, place: &Place<'a>, name: &str) -> Result<Vec<f32>, ForgeError> {
        match place.module.buffer(name) {
            Some(tensor) => self.elements(place, name, tensor),
            None => Err(place.fault(format!("it has no `{name}`"))),
        }
    }

    fn elements(&mut self, place: &Place<'a>, name: &str, tensor: &Tensor) -> Result<Vec<f32>, ForgeError> {
        if !matches!(tensor.element, Element::F64 | Element::F32 | Element::F16 | Element::Bf16) {
            return Err(place.fault(format!("its `{name}` is of {}, not of floats", tensor.element)));
        }
        self.ledger.used(&place.path, name);
        let numbers = tensor.to_f32(&self.checkpoint.archive).map_err(|error| place.fault(error))?;
        match numbers.iter().filter(|number| !number.is_finite()).count() {
            0 => Ok(numbers),
            count => Err(place.fault(format!("its `{name}` holds {count} numbers that are NaN or infinite"))),
        }
    }

    /// Every layer in turn, each with what the layers that it names gave. The last one is the head: it gets its pictures
    /// and gives none.
    pub(super) fn layers(&mut self, model: &Place<'a>, image: &Value) -> Result<(Place<'a>, Vec<Value>), ForgeError> {
        let mut given: Vec<Given> = Vec::new();
        let mut layers = model.members()?;
        // This row is gone through and not called, so it has no scope of its own.
        layers.iter_mut().for_each(|layer| layer.scope = format!("/{}", layer.path));
        let head = layers.pop().ok_or_else(|| model.fault("it has no layers"))?;
        for (at, layer) in layers.iter().enumerate() {
            let sources = self.sources(layer, at, &given, image)?;
            given.push(block::layer(self, layer, &sources)?);
        }
        let sources = self.sources(&head, layers.len(), &given, image)?;
        let pictures = sources.into_iter().map(|source| match source {
            Given::One(value) => Ok(value),
            Given::Several(_) => Err(head.fault("it is given what is no picture")),
        });
        let pictures = pictures.collect::<Result<_, _>>()?;
        Ok((head, pictures))
    }

    /// What a layer is given: `f` names the layers, from the start or backwards from here.
    fn sources(&self, layer: &Place<'a>, at: usize, given: &[Given], image: &Value) -> Result<Vec<Given>, ForgeError> {
        let pickle = &self.checkpoint.pickle;
        let from = layer.module.attribute("f").ok_or_else(|| layer.fault("it has no `f`"))?;
        let from = pickle.int(from).map(|from| vec![from]).or_else(|| pickle.ints(from));
        let from = from.ok_or_else(|| layer.fault("its `f` names no layers"))?;
        let find = |&from: &i64| {
            let index = if from < 0 { i64::try_from(at).ok()? + from } else { from };
            match index {
                -1 if at == 0 => Some(Given::One(image.clone())),
                index => given.get(usize::try_from(index).ok()?).cloned(),
            }
        };
        let sources: Option<Vec<Given>> = from.iter().map(find).collect();
        sources.filter(|sources| !sources.is_empty()).ok_or_else(|| layer.fault(format!("its `f` is {from:?}")))
    }
}
