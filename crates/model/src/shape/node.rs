//! A node with what is known of its inputs.

use std::collections::HashMap;

use super::content::Content;
use super::{Shape, Value};
use crate::onnx::{AttributeProto, NodeProto};

/// A node, as its rules look at it.
pub(super) struct Node<'a> {
    pub(super) proto: &'a NodeProto,
    pub(super) values: &'a HashMap<&'a str, Value>,
}

impl<'a> Node<'a> {
    pub(super) fn op(&self) -> &'a str {
        &self.proto.op_type
    }

    /// Whether its operator is ONNX's own.
    pub(super) fn is_standard(&self) -> bool {
        matches!(self.proto.domain.as_str(), "" | "ai.onnx")
    }

    /// Whether an input is given at all.
    pub(super) fn has(&self, at: usize) -> bool {
        self.proto.input.get(at).is_some_and(|name| !name.is_empty())
    }

    fn value(&self, at: usize) -> Option<&'a Value> {
        self.values.get(self.proto.input.get(at)?.as_str())
    }

    /// The shape of an input.
    pub(super) fn shape(&self, at: usize) -> Option<&'a Shape> {
        self.value(at).map(|value| &value.shape)
    }

    /// The elements of an input.
    pub(super) fn content(&self, at: usize) -> Option<&'a Content> {
        self.value(at)?.content.as_ref()
    }

    /// The elements of an input, where they are whole numbers.
    pub(super) fn ints_of(&self, at: usize) -> Option<&'a [i64]> {
        self.content(at)?.ints()
    }

    /// The one element of an input.
    pub(super) fn int_of(&self, at: usize) -> Option<i64> {
        match self.ints_of(at)? {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// Whether nothing it is fed depends on a frame. A node without inputs is a constant, unless it rolls dice; a graph
    /// within it may look at anything outside.
    pub(super) fn is_constant(&self) -> bool {
        let mut given = self.proto.input.iter().filter(|name| !name.is_empty());
        let constant = |name: &String| self.values.get(name.as_str()).is_some_and(|value| value.constant);
        let alone = self.proto.attribute.iter().all(|attribute| attribute.g.is_none() && attribute.graphs.is_empty());
        alone && !self.op().starts_with("Random") && given.all(constant)
    }

    fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.proto.attribute.iter().find(|attribute| attribute.name == name)
    }

    /// An attribute that is a whole number.
    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name).map(|attribute| attribute.i)
    }

    /// An attribute that is whole numbers.
    pub(super) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.attribute(name).map(|attribute| &attribute.ints[..])
    }

    /// An attribute that is floats.
    pub(super) fn floats(&self, name: &str) -> Option<&'a [f32]> {
        self.attribute(name).map(|attribute| &attribute.floats[..])
    }

    /// An attribute that is a word; empty where it is missing.
    pub(super) fn text(&self, name: &str) -> &'a str {
        self.attribute(name).and_then(|attribute| std::str::from_utf8(&attribute.s).ok()).unwrap_or_default()
    }

    /// The attribute itself, where its kind decides.
    pub(super) fn first_attribute(&self) -> Option<&'a AttributeProto> {
        self.proto.attribute.first()
    }

    /// Whole numbers that are an input since some operator set, and were an attribute before.
    pub(super) fn ints_at_or(&self, at: usize, name: &str) -> Axes<'a> {
        match (self.has(at), self.ints(name)) {
            (true, _) => self.ints_of(at).map_or(Axes::Unknown, Axes::Given),
            (false, Some(ints)) => Axes::Given(ints),
            (false, None) => Axes::Absent,
        }
    }
}

/// Whole numbers that may be left out, or be computed from a frame.
#[derive(Clone, Copy)]
pub(super) enum Axes<'a> {
    Absent,
    Given(&'a [i64]),
    Unknown,
}

/// An axis counted from either end, as an index.
pub(super) fn axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis.checked_add(rank)? } else { axis };
    (0..rank).contains(&axis).then(|| usize::try_from(axis).ok())?
}
