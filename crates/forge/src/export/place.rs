//! A module and where it stands: its path among the weights (`model.22.cv2.0`), and its scope among the nodes
//! (`/model.22/cv2.0`). The two differ, because a row of modules that is called as one has a scope of its own.

use prony_model::pt::{Checkpoint, Id, Module, plain};

use super::graph::fault;
use crate::ForgeError;

/// A module with its place.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    /// The module.
    pub(super) module: &'a Module,
    /// Where its weights are.
    pub(super) path: String,
    /// Where its nodes are.
    pub(super) scope: String,
}

impl<'a> Place<'a> {
    /// Name of its class, without where that comes from: this differs between versions.
    pub(super) fn class(&self) -> &'a str {
        &self.module.class.name
    }

    /// What is wrong with it.
    pub(super) fn fault(&self, reason: impl std::fmt::Display) -> ForgeError {
        fault(&self.path, format!("({}) {reason}", plain(self.class())))
    }

    /// A child that is there, or `None`.
    pub(super) fn maybe(&self, name: &str) -> Option<Place<'a>> {
        let module = self.module.child(name)?;
        let label = self.scope.rsplit('/').next().unwrap_or_default();
        let scope = match self.class() {
            "ModuleList" => format!("{}.{name}", self.scope),
            "Sequential" => format!("{}/{label}.{name}", self.scope),
            _ => format!("{}/{name}", self.scope),
        };
        Some(Place { module, path: format!("{}.{name}", self.path), scope })
    }

    /// A child that must be there.
    pub(super) fn child(&self, name: &str) -> Result<Place<'a>, ForgeError> {
        self.maybe(name).ok_or_else(|| self.fault(format!("it has no `{name}`")))
    }

    /// The children of a row in their order.
    pub(super) fn members(&self) -> Result<Vec<Place<'a>>, ForgeError> {
        if !matches!(self.class(), "Sequential" | "ModuleList") {
            return Err(self.fault("a row of modules was expected here"));
        }
        let names = self.module.children.iter().map(|(name, _)| name.as_str());
        if !names.clone().enumerate().all(|(at, name)| name == at.to_string()) {
            return Err(self.fault("its modules are not numbered in order"));
        }
        names.map(|name| self.child(name)).collect()
    }
}

/// What plain attributes say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes<'a>(pub(super) &'a Checkpoint);

impl Attributes<'_> {
    fn must<T>(
        self,
        place: &Place<'_>,
        name: &str,
        what: &str,
        read: impl Fn(Id) -> Option<T>,
    ) -> Result<T, ForgeError> {
        let id = place.module.attribute(name).ok_or_else(|| place.fault(format!("it has no `{name}`")))?;
        read(id).ok_or_else(|| place.fault(format!("its `{name}` is no {what}")))
    }

    /// A whole number above or at zero.
    pub(super) fn size(self, place: &Place<'_>, name: &str) -> Result<usize, ForgeError> {
        self.must(place, name, "whole number", |id| usize::try_from(self.0.pickle.int(id)?).ok())
    }

    /// A number.
    pub(super) fn number(self, place: &Place<'_>, name: &str) -> Result<f64, ForgeError> {
        self.must(place, name, "number", |id| self.0.pickle.number(id).filter(|number| number.is_finite()))
    }

    /// A truth value.
    pub(super) fn truth(self, place: &Place<'_>, name: &str) -> Result<bool, ForgeError> {
        self.must(place, name, "truth value", |id| self.0.pickle.truth(id))
    }

    /// Whole numbers in a row.
    pub(super) fn sizes(self, place: &Place<'_>, name: &str) -> Result<Vec<usize>, ForgeError> {
        let size = |number: i64| usize::try_from(number).ok();
        self.must(place, name, "row of whole numbers", |id| {
            self.0.pickle.ints(id)?.into_iter().map(size).collect::<Option<_>>()
        })
    }

    /// Height and width: a pair, or one number for both.
    pub(super) fn pair(self, place: &Place<'_>, name: &str) -> Result<[usize; 2], ForgeError> {
        self.must(place, name, "pair of whole numbers", |id| {
            let size = |number: i64| usize::try_from(number).ok();
            match self.0.pickle.int(id) {
                Some(side) => Some([size(side)?; 2]),
                None => match self.0.pickle.ints(id)?[..] {
                    [height, width] => Some([size(height)?, size(width)?]),
                    _ => None,
                },
            }
        })
    }

    /// Whether an attribute is a certain text.
    pub(super) fn says(self, place: &Place<'_>, name: &str, text: &str) -> bool {
        place.module.attribute(name).and_then(|id| self.0.pickle.text(id)) == Some(text)
    }

    /// Whether an attribute is there and not `None`.
    pub(super) fn has(self, place: &Place<'_>, name: &str) -> bool {
        place.module.attribute(name).is_some_and(|id| !self.0.pickle.is_none(id))
    }
}
