//! What the layers of a graph computed in, from a profile that ONNX Runtime wrote: a graph that asks for a precision is no
//! proof that a kernel was there for it. Where none is, casts are put around one in fp32.

use std::collections::BTreeMap;

use prony_types::{LayerShare, LayersRecord};

use super::profile::{Node, nodes};

/// Operators that do the work of a network, as they are called once they were fused and laid out.
const WORK: [&str; 6] = ["Conv", "MatMul", "Gemm", "Attention", "LSTM", "GRU"];
/// Operators that only bring a tensor to another type or layout.
const REFORMAT: [&str; 5] = ["Cast", "QuantizeLinear", "DequantizeLinear", "ReorderInput", "ReorderOutput"];

/// Counts the layers by what they compute in; `None` where there is none that does work.
pub(super) fn count(profile: &str) -> Result<Option<LayersRecord>, String> {
    let nodes = nodes(profile)?;
    let (work, others): (Vec<Node>, Vec<Node>) = nodes.into_iter().partition(|node| does_work(&node.op));
    if work.is_empty() {
        return Ok(None);
    }
    let time = |nodes: &[Node]| nodes.iter().map(|node| node.time).sum::<f64>();
    let all = time(&work) + time(&others);
    let share = |time: f64| (all > 0.0).then(|| time / all);
    let mut by_type: BTreeMap<&str, (u32, f64)> = BTreeMap::new();
    for node in &work {
        let entry = by_type.entry(computes_in(node)).or_default();
        entry.0 += 1;
        entry.1 += node.time;
    }
    let of_type =
        |(dtype, (layers, time)): (&str, (u32, f64))| LayerShare { dtype: dtype.to_owned(), layers, time: share(time) };
    let mut by_type: Vec<LayerShare> = by_type.into_iter().map(of_type).collect();
    by_type.sort_by(|a, b| b.time.partial_cmp(&a.time).unwrap_or(std::cmp::Ordering::Equal));
    let reformats: Vec<Node> = others.into_iter().filter(|node| REFORMAT.contains(&node.op.as_str())).collect();
    Ok(Some(LayersRecord {
        layers: work.len() as u32,
        by_type,
        reformats: reformats.len() as u32,
        reformat_time: share(time(&reformats)),
        slowest: Vec::new(),
    }))
}

fn does_work(op: &str) -> bool {
    WORK.iter().any(|work| op.contains(work))
}

/// By the type of what goes in first: weights may be stored in another one.
fn computes_in(node: &Node) -> &'static str {
    match node.types.first().map(String::as_str) {
        Some("float") => "fp32",
        Some("float16") => "fp16",
        Some("bfloat16") => "bf16",
        Some("int8" | "uint8") => "int8",
        Some("double") => "fp64",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, op: &str, types: &[&str], dur: u32) -> String {
        let types: Vec<String> = types.iter().map(|ty| format!(r#"{{"{ty}":[1,2]}}"#)).collect();
        format!(
            r#"{{"cat":"Node","dur":{dur},"name":"{name}_kernel_time","args":{{"op_name":"{op}","provider":"CPUExecutionProvider","node_index":"{name}","input_type_shape":[{}]}}}}"#,
            types.join(",")
        )
    }

    #[test]
    fn a_graph_in_fp16_that_runs_in_fp32_is_seen_through() {
        let events = [
            node("cast", "Cast", &["float16"], 10),
            node("conv", "FusedConv", &["float", "float"], 80),
            node("add", "Add", &["float16", "float16"], 10),
        ];
        let layers = count(&format!("[{}]", events.join(","))).unwrap().unwrap();
        assert_eq!(layers.to_string(), "fp32 1 of 1 layers (80 % of the time); 1 only reformat (10 % of the time)");
    }

    #[test]
    fn quantised_kernels_are_told_from_those_around_them() {
        let events = [
            node("a", "QLinearConv", &["uint8", "float", "uint8"], 30),
            node("b", "Conv", &["float", "float"], 60),
            node("q", "QuantizeLinear", &["float"], 10),
        ];
        let layers = count(&format!("[{}]", events.join(","))).unwrap().unwrap();
        assert_eq!((layers.of("int8"), layers.of("fp32"), layers.reformats), (1, 1, 1));
        assert_eq!(count(&format!("[{}]", node("r", "Relu", &["float"], 1))).unwrap(), None);
    }
}
