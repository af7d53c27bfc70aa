//! The nodes of a profile that ONNX Runtime wrote. Times are the host's, in microseconds, as the profile has them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Deserialize;

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Arguments,
}

#[derive(Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    provider: String,
    #[serde(default)]
    op_name: String,
    #[serde(default)]
    node_index: String,
    /// For every input its type, with its shape.
    #[serde(default)]
    input_type_shape: Vec<BTreeMap<String, Vec<i64>>>,
}

/// A node that ran.
pub(super) struct Node {
    pub(super) op: String,
    /// Without the words that all providers share.
    pub(super) provider: String,
    /// Element types of its inputs.
    pub(super) types: Vec<String>,
    /// Over all calls but the first, which searches for algorithms; where there is only one, its time.
    pub(super) time: f64,
}

/// Every node once, whatever the number of calls.
pub(super) fn nodes(profile: &str) -> Result<Vec<Node>, String> {
    let events: Vec<Event> = serde_json::from_str(profile).map_err(|e| format!("the profile cannot be read: {e}"))?;
    let mut nodes: BTreeMap<String, (Node, Option<f64>)> = BTreeMap::new();
    for event in events.into_iter().filter(|event| event.cat == "Node" && !event.args.provider.is_empty()) {
        let Some(name) = event.name.strip_suffix("_kernel_time") else { continue };
        let Arguments { provider, op_name, node_index, input_type_shape } = event.args;
        match nodes.entry(format!("{node_index}\n{name}\n{op_name}")) {
            Entry::Vacant(place) => {
                let node = Node {
                    op: op_name,
                    provider: provider.trim_end_matches("ExecutionProvider").to_owned(),
                    types: input_type_shape.into_iter().flat_map(BTreeMap::into_keys).collect(),
                    time: event.dur,
                };
                place.insert((node, None));
            }
            Entry::Occupied(mut place) => *place.get_mut().1.get_or_insert(0.0) += event.dur,
        }
    }
    if nodes.is_empty() {
        return Err("the profile has no nodes".into());
    }
    Ok(nodes.into_values().map(|(node, later)| Node { time: later.unwrap_or(node.time), ..node }).collect())
}
