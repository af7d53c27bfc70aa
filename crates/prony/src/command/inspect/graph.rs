//! What a graph is made of, wherever its ONNX comes from: shapes, cost, types, and the head that its outputs are.

use anyhow::ensure;
use prony_model::shape::Sizes;
use prony_model::{Anatomy, ModelFile, NodeCost, OutputShape};
use prony_types::{Dim, HeadChoice, ModelInfo, TensorSpec};
use prony_vision::Head;
use serde_json::{Map, Value, json};

use crate::args::InspectArgs;
use prony_plan::{fits_batch, image_size};

/// A graph at one input size.
pub(super) struct Graph {
    pub(super) anatomy: Anatomy,
    pub(super) sizes: Sizes,
    /// What its outputs are, or why no detector's head fits them.
    pub(super) head: Result<Head, String>,
}

impl Graph {
    /// Takes a model apart at the size that was asked for.
    pub(super) fn of(file: &ModelFile, args: &InspectArgs) -> anyhow::Result<Graph> {
        let sizes = sizes(&file.info, args)?;
        let anatomy = Anatomy::of(&file.bytes, &sizes).map_err(|reason| anyhow::anyhow!("{}: {reason}", args.model))?;
        let head = head(&file.info, &anatomy, &sizes);
        Ok(Graph { anatomy, sizes, head })
    }

    pub(super) fn json(&self, layers: bool) -> Value {
        let Anatomy { ir_version, producer, opsets, metadata, free_axes, weights, activations, .. } = &self.anatomy;
        let cost = &self.anatomy.cost;
        let coverage = cost.coverage();
        let operators = cost
            .by_operator()
            .into_iter()
            .map(|(op, sum)| (op.to_owned(), json!({ "nodes": sum.nodes, "flops": sum.flops, "bytes": sum.bytes })));
        let output =
            |output: &OutputShape| json!({ "name": output.name, "dtype": output.dtype, "shape": output.shape });
        json!({
            "ir_version": ir_version,
            "producer": producer,
            "opsets": opsets,
            "metadata": metadata,
            "free_axes": free_axes,
            "external_weights": self.anatomy.external,
            "at": { "batch": self.sizes.batch, "imgsz": self.sizes.imgsz },
            "outputs": self.anatomy.outputs.iter().map(output).collect::<Vec<_>>(),
            "weight_types": weights,
            "activation_types": activations,
            "nodes": cost.nodes.len(),
            "flops": cost.flops(),
            "bytes": cost.bytes(),
            "unknown_shapes": self.anatomy.unknown_shapes,
            "unknown_costs": cost.unknown().count(),
            "by_operator": operators.collect::<Map<_, _>>(),
            "quantised": {
                "nodes": coverage.nodes, "of_nodes": coverage.of_nodes,
                "flops": coverage.flops, "of_flops": coverage.of_flops,
            },
            "head": self.head.as_ref().ok().map(ToString::to_string),
            "no_head": self.head.as_ref().err(),
            "layers": layers.then(|| self.by_flops().map(node_json).collect::<Vec<_>>()),
        })
    }

    /// The nodes, the most arithmetic first; those of unknown cost before those of none.
    pub(super) fn by_flops(&self) -> impl Iterator<Item = &NodeCost> {
        let mut nodes: Vec<&NodeCost> = self.anatomy.cost.nodes.iter().collect();
        let key = |node: &&NodeCost| (node.flops.unwrap_or(1), node.bytes.unwrap_or(0));
        nodes.sort_by_key(|node| std::cmp::Reverse(key(node)));
        nodes.into_iter()
    }
}

fn node_json(node: &NodeCost) -> Value {
    json!({
        "name": node.name,
        "op": node.op,
        "shape": node.shape,
        "dtype": node.dtype,
        "flops": node.flops,
        "bytes": node.bytes,
        "weight_bytes": node.weight_bytes,
        "quantised": node.quantised,
    })
}

/// Values for the axes that the file leaves open; what is fixed and asked for otherwise is refused.
fn sizes(info: &ModelInfo, args: &InspectArgs) -> anyhow::Result<Sizes> {
    let refuse = |reason: String| anyhow::anyhow!("{}: {reason}", args.model);
    let fixed = info.inputs.first().and_then(|input| match input.dims.first() {
        Some(Dim::Fixed(n)) => Some(*n),
        _ => None,
    });
    if let Some(batch) = args.batch {
        fits_batch(batch, info).map_err(refuse)?;
    }
    let asked = args.imgsz.map(|size| size.0);
    let imgsz = image_size(&asked, HeadChoice::None, info).map_err(refuse)?;
    ensure!(asked.is_none() || imgsz.is_some(), "{} takes no images [N,C,H,W], so --imgsz does not fit", args.model);
    Ok(Sizes { batch: args.batch.map_or(fixed.unwrap_or(1), u64::from), imgsz: imgsz.map(|size| size.map(u64::from)) })
}

fn head(info: &ModelInfo, anatomy: &Anatomy, sizes: &Sizes) -> Result<Head, String> {
    if info.metadata.task.as_deref() == Some("classify") {
        return Err("a classifier".to_owned());
    }
    let spec = |output: &OutputShape| {
        let shape = output.shape.as_ref()?.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<_>>()?;
        Some(TensorSpec { name: output.name.clone(), dtype: output.dtype, shape })
    };
    let outputs: Option<Vec<TensorSpec>> = anatomy.outputs.iter().map(spec).collect();
    let outputs = outputs.ok_or_else(|| "the shapes of the outputs are not known".to_owned())?;
    let side = |n: u64| u32::try_from(n).ok();
    let imgsz = sizes.imgsz.and_then(|[height, width]| Some([side(height)?, side(width)?]));
    Head::choose(HeadChoice::Auto, &outputs, &info.metadata, imgsz)
        .map_err(|_| "the outputs are none of a detector that is known".to_owned())
}
