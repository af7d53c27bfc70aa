//! Which nodes are computed in 16 bits, and why the others are not.

use std::collections::BTreeSet;

use prony_model::onnx::NodeProto;
use prony_types::HalfSpec;
use serde::Serialize;

use super::facts::{Facts, called, inner_graphs, is_standard};
use super::narrow::narrow;
use super::operators::{Role, role, stays_wide, sums_exponents, takes_any};
use crate::error::ForgeError;

/// Why a node stays in fp32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Its operator sums, takes exponents or looks for the best, or is not one that is known to hold 16-bit floats.
    Operator,
    /// It makes boxes and scores of what the network gives.
    Decoding,
    /// It was asked for by name or operator.
    Blocked,
    /// A constant of it would be infinite.
    Overflow,
    /// It feeds sums of exponents and nothing else.
    FeedsSoftmax,
    /// It stands between nodes that stay.
    Between,
    /// It has graphs within, or types that cannot be told.
    Opaque,
}

/// In what a node is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It has nothing to do with floats, or takes them as they come.
    Aside,
    /// It gives floats from something else, in whatever its takers want.
    Source,
    /// In 16 bits.
    Half,
    /// In fp32.
    Full(Why),
}

/// Decides on every node.
pub(super) fn choose(facts: &Facts<'_>, tail: &BTreeSet<String>, spec: &HalfSpec) -> Result<Vec<Class>, ForgeError> {
    let mut classes: Vec<Class> = facts.graph.node.iter().map(|node| first_look(facts, node, tail, spec)).collect();
    known_blocks(facts, spec)?;
    overflow(facts, spec, &mut classes);
    feeding(facts, &mut classes);
    between(facts, spec, &mut classes);
    joining(facts, &mut classes);
    Ok(classes)
}

fn first_look(facts: &Facts<'_>, node: &NodeProto, tail: &BTreeSet<String>, spec: &HalfSpec) -> Class {
    let floats = facts.floats_in(node).count() + facts.floats_out(node).count();
    let (op, inner) = (node.op_type.as_str(), inner_graphs(node).next().is_some());
    let untold = |name: &String| !name.is_empty() && facts.element(name).is_none();
    if floats == 0 && !inner {
        return Class::Aside;
    }
    let captured = || node.output.iter().any(|name| facts.captured.contains(name.as_str()) && facts.is_float(name));
    if inner || !is_standard(node) || node.input.iter().chain(&node.output).any(untold) {
        return Class::Full(Why::Opaque);
    }
    match op {
        "Constant" => return Class::Aside,
        "ConstantOfShape" => return if captured() { Class::Full(Why::Opaque) } else { Class::Source },
        "Cast" if facts.floats_out(node).next().is_some() && !captured() => return Class::Source,
        op if takes_any(op) => return Class::Aside,
        _ => {}
    }
    if captured() {
        return Class::Full(Why::Opaque);
    }
    if spec.block.iter().any(|block| *block == node.op_type || *block == called(node)) {
        return Class::Full(Why::Blocked);
    }
    if role(op, spec.precision) == Role::Stays {
        return Class::Full(Why::Operator);
    }
    if node.output.iter().any(|name| tail.contains(name)) && !is_last_layer(node, tail) {
        return Class::Full(Why::Decoding);
    }
    Class::Half
}

/// What the network ends with is a layer like the others; only what comes behind it decodes.
fn is_last_layer(node: &NodeProto, tail: &BTreeSet<String>) -> bool {
    let layer = matches!(node.op_type.as_str(), "Conv" | "ConvTranspose" | "Gemm" | "MatMul");
    layer && !node.input.iter().any(|name| tail.contains(name))
}

/// A name that means nothing is a mistake of whoever wrote it.
fn known_blocks(facts: &Facts<'_>, spec: &HalfSpec) -> Result<(), ForgeError> {
    let meant = |block: &&String| facts.graph.node.iter().any(|node| **block == node.op_type || *block == called(node));
    match spec.block.iter().find(|block| !meant(block)) {
        None => Ok(()),
        Some(block) => Err(ForgeError::Model(format!(
            "--block {block}: no node has that name or operator; `prony inspect --layers` lists them"
        ))),
    }
}

/// Nodes with a constant that 16 bits cannot hold stay.
fn overflow(facts: &Facts<'_>, spec: &HalfSpec, classes: &mut [Class]) {
    let mut too_large = BTreeSet::new();
    for (name, tensor) in &facts.constants {
        let elements = tensor.to_f32s().unwrap_or_default();
        if narrow(&elements, spec.precision).1.overflowed > 0 {
            too_large.insert(*name);
        }
    }
    for (node, class) in facts.graph.node.iter().zip(classes) {
        let meets = |(slot, name): (usize, &str)| too_large.contains(name) && !stays_wide(&node.op_type, slot);
        if *class == Class::Half && facts.floats_in(node).any(meets) {
            *class = Class::Full(Why::Overflow);
        }
    }
}

/// Light nodes all of whose takers stay, one of them a sum of exponents: the cast moves up to where the numbers come from.
fn feeding(facts: &Facts<'_>, classes: &mut [Class]) {
    for (at, node) in facts.graph.node.iter().enumerate().rev() {
        if classes[at] != Class::Half || !is_light(node) {
            continue;
        }
        let takers: Vec<usize> =
            facts.floats_out(node).flat_map(|name| facts.takers(name)).map(|&(taker, _)| taker).collect();
        let given_out = facts.floats_out(node).any(|name| facts.outputs.contains(name));
        let stays = |&taker: &usize| matches!(classes[taker], Class::Full(_));
        let sums = |&taker: &usize| {
            sums_exponents(&facts.graph.node[taker].op_type) || classes[taker] == Class::Full(Why::FeedsSoftmax)
        };
        if !given_out && takers.iter().all(stays) && takers.iter().any(sums) {
            classes[at] = Class::Full(Why::FeedsSoftmax);
        }
    }
}

/// Light nodes with none but nodes that stay around them would be cast to and back: found by striking out those that
/// touch a 16-bit node until none is left to strike.
fn between(facts: &Facts<'_>, spec: &HalfSpec, classes: &mut [Class]) {
    let nodes = &facts.graph.node;
    let mut maybe: Vec<bool> =
        nodes.iter().zip(&*classes).map(|(node, class)| *class == Class::Half && is_light(node)).collect();
    let stays = |maybe: &[bool], at: usize| maybe[at] || matches!(classes[at], Class::Full(_));
    loop {
        let fits = |at: usize, node: &NodeProto| {
            let mut moving = facts.floats_in(node).filter(|(_, name)| !facts.constants.contains_key(name)).peekable();
            moving.peek().is_some()
                && moving.all(|(_, name)| facts.giver.get(name).is_some_and(|&giver| stays(&maybe, giver)))
                && facts.floats_out(node).all(|name| {
                    let (takers, out) = (facts.takers(name), facts.outputs.contains(name));
                    (out || !takers.is_empty())
                        && (!out || spec.keep_io)
                        && takers.iter().all(|&(taker, _)| stays(&maybe, taker))
                })
                && maybe[at]
        };
        let next: Vec<bool> = nodes.iter().enumerate().map(|(at, node)| fits(at, node)).collect();
        if next == maybe {
            break;
        }
        maybe = next;
    }
    for (class, _) in classes.iter_mut().zip(maybe).filter(|(_, stays)| *stays) {
        *class = Class::Full(Why::Between);
    }
}

/// Light nodes that bring several tensors of nodes that stay together: one cast behind them instead of one before each.
fn joining(facts: &Facts<'_>, classes: &mut [Class]) {
    for (at, node) in facts.graph.node.iter().enumerate() {
        let moving = facts.floats_in(node).map(|(_, name)| name).filter(|name| !facts.constants.contains_key(name));
        let moving: BTreeSet<&str> = moving.collect();
        let stays = |name: &&str| facts.giver.get(name).is_some_and(|&giver| matches!(classes[giver], Class::Full(_)));
        let fewer = facts.floats_out(node).count() < moving.len();
        if classes[at] == Class::Half && is_light(node) && fewer && moving.iter().all(stays) {
            classes[at] = Class::Full(Why::Between);
        }
    }
}

fn is_light(node: &NodeProto) -> bool {
    // By fp16: what bf16 adds to the list of those that stay is no different for it.
    role(&node.op_type, prony_types::Precision::Fp16) == Role::Light
}
