//! A model's modules as data: their classes, attributes, weights and children, in the order in which they were added.

use std::fmt;

use super::pickle::{Id, Pickle, Value};
use super::{Archive, PtError, Tensor, plain};

/// How deep modules may be nested. Those of detectors go to about ten.
const DEPTH: usize = 64;
/// Modules, attributes and weights that a model may have, all together. Modules that are referred to many times count
/// each time.
const BUDGET: usize = 400_000;
/// What every module has and what says nothing about it.
const PLUMBING: [&str; 5] =
    ["_parameters", "_buffers", "_modules", "_is_full_backward_hook", "_non_persistent_buffers_set"];

/// A class by its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// The module that it comes from. Where a class lives differs between versions.
    pub module: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&format!("{}.{}", self.module, self.name)))
    }
}

/// One module with everything below it. Names keep their order; `None` is stored for what a module could have but has not.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its class.
    pub class: Class,
    /// Plain attributes, by places in the pickle.
    pub attributes: Vec<(String, Id)>,
    /// Weights that were trained.
    pub parameters: Vec<(String, Option<Tensor>)>,
    /// Other tensors, such as running means.
    pub buffers: Vec<(String, Option<Tensor>)>,
    /// The modules in it.
    pub children: Vec<(String, Option<Module>)>,
}

fn named<'a, T>(list: &'a [(String, T)], name: &str) -> Option<&'a T> {
    list.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

impl Module {
    /// Whether a value is a module: an object with modules, weights or buffers in its state.
    pub fn is_module(pickle: &Pickle, id: Id) -> bool {
        let (Value::Object(made) | Value::Reduce(made)) = pickle.get(id) else { return false };
        made.state.is_some_and(|state| pickle.entry(state, "_modules").is_some())
    }

    /// Reads a module and everything below it.
    pub fn read(pickle: &Pickle, archive: &Archive, id: Id) -> Result<Module, PtError> {
        Reader { pickle, archive, left: BUDGET, path: Vec::new() }.module(id)
    }

    /// A plain attribute.
    pub fn attribute(&self, name: &str) -> Option<Id> {
        named(&self.attributes, name).copied()
    }

    /// A child that is there.
    pub fn child(&self, name: &str) -> Option<&Module> {
        named(&self.children, name)?.as_ref()
    }

    /// A weight that is there.
    pub fn parameter(&self, name: &str) -> Option<&Tensor> {
        named(&self.parameters, name)?.as_ref()
    }

    /// Another tensor that is there.
    pub fn buffer(&self, name: &str) -> Option<&Tensor> {
        named(&self.buffers, name)?.as_ref()
    }

    /// Shows every module once for each place where it is used, parents first.
    pub fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Module)) {
        see(self);
        for child in self.children.iter().filter_map(|(_, child)| child.as_ref()) {
            child.visit(see);
        }
    }
}

struct Reader<'a> {
    pickle: &'a Pickle,
    archive: &'a Archive,
    left: usize,
    path: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn spend(&mut self, names: usize) -> Result<(), PtError> {
        let left = self.left.checked_sub(1 + names / 32);
        self.left = left.ok_or_else(|| PtError::Content(format!("its model has more than {BUDGET} parts")))?;
        Ok(())
    }

    fn here(&self) -> String {
        plain(&self.path.join("."))
    }

    fn damaged(&self, reason: &str) -> PtError {
        PtError::Content(format!("its module {} is damaged: {reason}", self.here()))
    }

    fn module(&mut self, id: Id) -> Result<Module, PtError> {
        if self.path.len() > DEPTH {
            return Err(PtError::Content(format!("its modules are nested deeper than {DEPTH}")));
        }
        let (Value::Object(made) | Value::Reduce(made)) = self.pickle.get(id) else {
            return Err(self.damaged("it is no object"));
        };
        let (module, name) = self.pickle.global(made.callable).ok_or_else(|| self.damaged("it has no class"))?;
        self.spend(module.len() + name.len())?;
        let class = Class { module: module.to_owned(), name: name.to_owned() };
        let state = made.state.and_then(|state| self.pickle.entries(state));
        let state = state.ok_or_else(|| self.damaged("it has no attributes"))?;
        let mut read = Module { class, attributes: vec![], parameters: vec![], buffers: vec![], children: vec![] };
        for (key, value) in state {
            let Some(key) = self.pickle.text(*key) else { continue };
            match key {
                "_parameters" => read.parameters = self.tensors(*value)?,
                "_buffers" => read.buffers = self.tensors(*value)?,
                "_modules" => read.children = self.children(*value)?,
                _ if PLUMBING.contains(&key) || self.empty_hooks(key, *value) => {}
                _ => {
                    self.spend(key.len())?;
                    read.attributes.push((key.to_owned(), *value));
                }
            }
        }
        Ok(read)
    }

    fn empty_hooks(&self, key: &str, value: Id) -> bool {
        key.starts_with('_') && self.pickle.entries(value).is_some_and(<[_]>::is_empty)
    }

    fn named(&self, id: Id) -> Result<Vec<(&'a str, Id)>, PtError> {
        let entries = self.pickle.entries(id).ok_or_else(|| self.damaged("what it holds is no dict"))?;
        if entries.len() > self.left {
            return Err(PtError::Content(format!("its model has more than {BUDGET} parts")));
        }
        let name = |(key, value): &(Id, Id)| Some((self.pickle.text(*key)?, *value));
        let named: Option<Vec<_>> = entries.iter().map(name).collect();
        named.ok_or_else(|| self.damaged("what it holds has no names"))
    }

    fn tensors(&mut self, id: Id) -> Result<Vec<(String, Option<Tensor>)>, PtError> {
        let mut tensors = Vec::new();
        for (name, value) in self.named(id)? {
            // A tensor's description is a few times larger than an attribute's.
            self.spend(name.len() + 128)?;
            self.path.push(name);
            let tensor = match self.pickle.is_none(value) {
                true => None,
                false => Some(tensor(self.pickle, self.archive, value, &self.here())?),
            };
            self.path.pop();
            tensors.push((name.to_owned(), tensor));
        }
        Ok(tensors)
    }

    fn children(&mut self, id: Id) -> Result<Vec<(String, Option<Module>)>, PtError> {
        let mut children = Vec::new();
        for (name, value) in self.named(id)? {
            self.spend(name.len())?;
            self.path.push(name);
            let child = if self.pickle.is_none(value) { None } else { Some(self.module(value)?) };
            self.path.pop();
            children.push((name.to_owned(), child));
        }
        Ok(children)
    }
}

/// A value that must be a tensor.
pub(super) fn tensor(pickle: &Pickle, archive: &Archive, id: Id, name: &str) -> Result<Tensor, PtError> {
    let wrong = |reason| PtError::Tensor { name: plain(name), reason };
    match Tensor::read(pickle, archive, id).map_err(wrong)? {
        Some(tensor) => Ok(tensor),
        None => Err(wrong(match pickle.get(id) {
            Value::Reduce(made) => match pickle.global(made.callable) {
                Some((module, name)) => {
                    format!("it is built by {}, which is not supported", plain(&format!("{module}.{name}")))
                }
                None => "it is built in a way that is not known".to_owned(),
            },
            _ => "it is no tensor".to_owned(),
        })),
    }
}
