//! What a conversion did, for people and for whoever reads JSON.

use std::collections::BTreeMap;

use prony_types::{HalfSpec, Precision};
use serde::Serialize;

use super::choose::Why;
use super::narrow::Losses;

/// What a conversion did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConvertReport {
    /// What the graph is in now.
    pub precision: Precision,
    /// Whether inputs and outputs stayed in fp32.
    pub keep_io: bool,
    /// Nodes that compute in 16 bits.
    pub nodes_half: u64,
    /// Nodes on floats that stay in fp32, and why.
    pub kept: Vec<KeptNode>,
    /// Casts that were put in.
    pub casts: u64,
    /// Constants that are in 16 bits.
    pub weights_half: u64,
    /// Their elements.
    pub elements_half: u64,
    /// Constants that are there in both forms.
    pub weights_doubled: u64,
    /// Weights that are in fp32, also those that are there in both forms.
    pub weights_kept: u64,
    /// What the constants lost, in sum.
    pub losses: Losses,
    /// What each lost, where it did.
    pub tensors: Vec<TensorLosses>,
    /// The operator set before and after, where it had to be raised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opset: Option<[i64; 2]>,
    /// Size of the model, weights beside it included.
    pub bytes_before: u64,
    /// Size of what was made.
    pub bytes_after: u64,
}

/// A node that stays in fp32.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptNode {
    /// Its name; that of what it gives where it has none.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// Why it stays.
    pub why: Why,
}

/// What a constant lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TensorLosses {
    /// Its name.
    pub tensor: String,
    /// Its elements.
    pub elements: u64,
    /// It stayed in fp32, because some of them would be infinite.
    pub kept: bool,
    /// What became of them, or would have.
    #[serde(flatten)]
    pub losses: Losses,
}

impl ConvertReport {
    pub(super) fn of(spec: &HalfSpec) -> ConvertReport {
        ConvertReport {
            precision: spec.precision,
            keep_io: spec.keep_io,
            nodes_half: 0,
            kept: Vec::new(),
            casts: 0,
            weights_half: 0,
            elements_half: 0,
            weights_doubled: 0,
            weights_kept: 0,
            losses: Losses::default(),
            tensors: Vec::new(),
            opset: None,
            bytes_before: 0,
            bytes_after: 0,
        }
    }

    pub(super) fn lost(&mut self, tensor: TensorLosses) {
        if !tensor.losses.is_none() {
            self.losses.add(tensor.losses);
            self.tensors.push(tensor);
        }
    }

    /// How many nodes stay for which reason.
    pub fn kept_by_reason(&self) -> BTreeMap<Why, usize> {
        let mut counts = BTreeMap::new();
        self.kept.iter().for_each(|node| *counts.entry(node.why).or_default() += 1);
        counts
    }
}
