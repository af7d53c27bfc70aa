//! Raising the operator set of a graph, where bf16 came to an operator later than the graph was written.
//!
//! What changed its meaning on the way is rewritten; what cannot be is refused by name.

use prony_model::onnx::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

use super::facts::{attribute, inner_graphs, is_standard};
use super::operators::HIGHEST;
use crate::error::ForgeError;

/// The oldest operator set that is raised: before it, axes and softmax were another matter.
const OLDEST: i64 = 13;
/// Container version that goes with [`HIGHEST`].
const CONTAINER: i64 = 10;

/// The version of the standard operators.
pub(super) fn version(model: &ModelProto) -> Option<i64> {
    let standard = model.opset_import.iter().find(|set| set.domain.is_empty() || set.domain == "ai.onnx");
    standard.map(|set| set.version)
}

/// Raises it to what is needed; the versions before and after where that changes something.
pub(super) fn raise(model: &mut ModelProto, needed: i64) -> Result<Option<[i64; 2]>, ForgeError> {
    let Some(from) = version(model).filter(|&from| from < needed) else { return Ok(None) };
    let to = needed.min(HIGHEST);
    let refused = |what: &str| {
        let text =
            format!("bf16 needs operator set {to}, the model has {from}, and {what}; export it with --opset {to}");
        Err(ForgeError::Unsupported(text))
    };
    if from < OLDEST {
        return refused("one so old is not raised");
    }
    let graph = model.graph.get_or_insert_default();
    if graph.node.iter().any(|node| inner_graphs(node).next().is_some()) {
        return refused("graphs within the graph are not raised");
    }
    let changed =
        |node: &&NodeProto| is_standard(node) && matches!(node.op_type.as_str(), "GroupNormalization" | "DFT");
    if let Some(node) = graph.node.iter().find(changed) {
        return refused(&format!("{} became another operator since", node.op_type));
    }
    let mut nodes = std::mem::take(&mut graph.node);
    for node in nodes.iter_mut().filter(|node| is_standard(node)) {
        rewrite(node, graph, from, to);
    }
    graph.node = nodes;
    for set in model.opset_import.iter_mut().filter(|set| set.domain.is_empty() || set.domain == "ai.onnx") {
        set.version = to;
    }
    model.ir_version = model.ir_version.max(CONTAINER);
    Ok(Some([from, to]))
}

fn rewrite(node: &mut NodeProto, graph: &mut GraphProto, from: i64, to: i64) {
    let crosses = |version: i64| from < version && version <= to;
    match node.op_type.as_str() {
        // Axes were an attribute; those of a sum of plain numbers have been an input since 13.
        op if op.starts_with("Reduce") && op != "ReduceSum" && crosses(18) => {
            if let Some(at) = node.attribute.iter().position(|attribute| attribute.name == "axes") {
                let axes = node.attribute.remove(at).ints;
                let name = format!("{}_axes", node.output[0]);
                graph.initializer.push(TensorProto::ints(&name, &axes));
                node.input.push(name);
            }
        }
        "Split" if crosses(18) && node.input.len() < 2 => {
            node.attribute.push(AttributeProto::int("num_outputs", node.output.len() as i64));
        }
        "RoiAlign" if crosses(16) && attribute(node, "coordinate_transformation_mode").is_none() => {
            node.attribute.push(text("coordinate_transformation_mode", "output_half_pixel"));
        }
        "GridSample" if crosses(20) => {
            for mode in node.attribute.iter_mut().filter(|attribute| attribute.name == "mode") {
                mode.s = match &mode.s[..] {
                    b"bilinear" => "linear".into(),
                    b"bicubic" => "cubic".into(),
                    _ => continue,
                };
            }
        }
        _ => {}
    }
}

fn text(name: &str, value: &'static str) -> AttributeProto {
    AttributeProto { name: name.to_owned(), s: value.into(), kind: 3, ..AttributeProto::default() }
}

#[cfg(test)]
mod tests {
    use prony_model::onnx::ValueInfo;

    use super::*;

    fn model(nodes: Vec<NodeProto>) -> ModelProto {
        let output = vec![ValueInfo::floats("y", &[1])];
        ModelProto::new(GraphProto { node: nodes, output, ..GraphProto::default() }, &[])
    }

    #[test]
    fn what_changed_its_form_is_rewritten() {
        let mut raised = model(vec![
            NodeProto::new("ReduceMean", &["x"], &["m"], vec![AttributeProto::ints("axes", &[1, 2])]),
            NodeProto::new("ReduceMax", &["m"], &["a"], vec![]),
            NodeProto::new("Split", &["a"], &["b", "c"], vec![]),
            NodeProto::new("GridSample", &["b", "c"], &["y"], vec![text("mode", "bilinear")]),
        ]);
        assert_eq!(raise(&mut raised, 22).unwrap(), Some([17, 22]));
        let graph = raised.graph.as_ref().unwrap();
        assert_eq!(graph.node[0].input, ["x", "m_axes"]);
        assert_eq!(graph.initializer[0].to_i64s(), Some(vec![1, 2]));
        assert!(graph.node[0].attribute.is_empty() && graph.node[1].input == ["m"]);
        assert_eq!(attribute(&graph.node[2], "num_outputs").unwrap().i, 2);
        assert_eq!(&graph.node[3].attribute[0].s[..], b"linear");
        assert_eq!((version(&raised), raised.ir_version), (Some(22), 10));
        // Nothing is raised that need not be.
        assert_eq!(raise(&mut raised, 13).unwrap(), None);
    }

    #[test]
    fn what_became_another_operator_is_refused() {
        let mut group = model(vec![NodeProto::new("GroupNormalization", &["x"], &["y"], vec![])]);
        let error = raise(&mut group, 22).unwrap_err().to_string();
        assert!(error.contains("GroupNormalization became another operator"), "{error}");
        let mut old = model(vec![]);
        old.opset_import[0].version = 11;
        assert!(raise(&mut old, 22).unwrap_err().to_string().contains("the model has 11"));
    }
}
