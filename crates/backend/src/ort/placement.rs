//! Where the nodes of a graph ran, from a profile that ONNX Runtime wrote.

use std::collections::{BTreeMap, HashMap};

use prony_types::{PlacementRecord, ProviderShare};

use super::profile::{Node, nodes};

/// Operators named of each provider.
const FEW_OPERATORS: usize = 5;

#[derive(Default)]
struct Tally {
    nodes: u32,
    time: f64,
    operators: HashMap<String, u32>,
}

/// Counts the nodes of a profile by provider. Times are the host's, as the profile has them.
pub(super) fn count(profile: &str, requested: &str) -> Result<PlacementRecord, String> {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for Node { provider, op, time, .. } in nodes(profile)? {
        let tally = tallies.entry(provider).or_default();
        tally.nodes += 1;
        tally.time += time;
        *tally.operators.entry(op).or_default() += 1;
    }
    let all: f64 = tallies.values().map(|tally| tally.time).sum();
    let mut providers: Vec<ProviderShare> = tallies
        .into_iter()
        .map(|(provider, tally)| ProviderShare {
            provider,
            nodes: tally.nodes,
            time: if all > 0.0 { tally.time / all } else { 0.0 },
            operators: most_frequent(tally.operators),
        })
        .collect();
    providers.sort_by(|a, b| b.time.total_cmp(&a.time));
    Ok(PlacementRecord { requested: requested.to_owned(), providers })
}

fn most_frequent(operators: HashMap<String, u32>) -> Vec<String> {
    let mut counted: Vec<(String, u32)> = operators.into_iter().collect();
    counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counted.into_iter().take(FEW_OPERATORS).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, op: &str, provider: &str, dur: u32) -> String {
        format!(
            r#"{{"cat":"Node","pid":1,"tid":2,"dur":{dur},"ts":3,"ph":"X","name":"{name}_kernel_time","args":{{"op_name":"{op}","provider":"{provider}ExecutionProvider","node_index":"{name}"}}}}"#
        )
    }

    #[test]
    fn nodes_and_time_are_counted_by_provider() {
        let events = [
            r#"{"cat":"Session","pid":1,"tid":2,"dur":9,"ts":1,"ph":"X","name":"model_run","args":{}}"#.to_owned(),
            node("conv_1", "Conv", "CUDA", 6000),
            node("conv_1", "Conv", "CUDA", 100),
            node("conv_2", "Conv", "CUDA", 95),
            node("shape", "Shape", "CPU", 5),
        ];
        let placement = count(&format!("[{}]", events.join(",")), "CUDA").unwrap();
        assert_eq!(placement.to_string(), "2 of 3 nodes on CUDA, 98 % of the time");
        assert!(!placement.is_whole());
        assert_eq!(placement.providers[1].operators, ["Shape"]);
    }

    #[test]
    fn a_profile_without_nodes_proves_nothing() {
        assert!(count("[]", "CUDA").is_err());
        assert!(count("not json", "CUDA").is_err());
    }
}
