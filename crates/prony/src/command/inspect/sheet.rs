//! A graph for people: what it is made of, what it costs, what could run it; and every node of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use prony_model::NodeCost;
use prony_model::pt::plain;

use super::backends::Runners;
use super::graph::Graph;
use super::text::{Lines, size};

/// Operators that are listed by their share of the arithmetic.
const HEAVIEST: usize = 6;
/// Longest value of a fact that is written out.
const LONGEST: usize = 80;
/// Facts that have lines of their own.
const SHOWN: [&str; 5] = ["names", "stride", "task", "imgsz", "end2end"];

/// Widest name of a node in the table.
const NAME: usize = 44;

impl Graph {
    pub(super) fn origin(&self, lines: &mut Lines) {
        let anatomy = &self.anatomy;
        let producer =
            if anatomy.producer.is_empty() { String::new() } else { format!(", by {}", plain(&anatomy.producer)) };
        lines.add("format", format!("ONNX, IR version {}{producer}", anatomy.ir_version));
        let sets: Vec<String> =
            anatomy.opsets.iter().map(|(domain, version)| format!("{} {version}", plain(domain))).collect();
        lines.maybe("operator sets", (anatomy.opsets.len() > 1).then(|| sets.join(", ")));
    }

    pub(super) fn types(&self, lines: &mut Lines) {
        let list = |types: &BTreeMap<&str, u64>| {
            types.iter().map(|(name, n)| format!("{n} {name}")).collect::<Vec<_>>().join(", ")
        };
        lines.add("weights", list(&self.anatomy.weights));
        lines.add("results", list(&self.anatomy.activations));
        let external = self.anatomy.external;
        lines.maybe("elsewhere", (external > 0).then(|| format!("{external} weights are in other files")));
        lines.maybe(
            "free axes",
            (!self.anatomy.free_axes.is_empty()).then(|| plain(&self.anatomy.free_axes.join(", "))),
        );
    }

    pub(super) fn cost(&self, lines: &mut Lines) {
        let cost = &self.anatomy.cost;
        let size_of = self.sizes.imgsz.map(|[height, width]| format!("{height}x{width}, ")).unwrap_or_default();
        lines.add("at", format!("{size_of}batch {}", self.sizes.batch));
        for output in &self.anatomy.outputs {
            let shape = output.shape.as_ref().map_or_else(|| "of unknown shape".to_owned(), |shape| axes(shape, ","));
            lines.add("gives", format!("{} {}[{shape}]", plain(&output.name), output.dtype));
        }
        let least = if cost.unknown().next().is_some() { "at least " } else { "" };
        lines.add("FLOPs", format!("{least}{} (a multiply-add counts 2)", flops(cost.flops())));
        let moved = cost.layers.iter().map(|layer| layer.weight_bytes.saturating_add(layer.activation_bytes));
        let moved = size(moved.fold(0, u64::saturating_add));
        let bytes = size(cost.bytes());
        lines.add(
            "bytes",
            format!("{least}{bytes} read and written by the nodes; {moved} by convolutions and products alone"),
        );
        let unknown: Vec<&NodeCost> = cost.unknown().collect();
        if let [first, ..] = &unknown[..] {
            let (count, op) = (unknown.len(), plain(&first.op));
            lines.add("unknown", format!("the cost of {count} of {} nodes, {op} first", cost.nodes.len()));
        }
        let mut operators: Vec<_> = cost.by_operator().into_iter().filter(|(_, sum)| sum.flops > 0).collect();
        operators.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.flops));
        let share = |flops: u64| flops as f64 / cost.flops().max(1) as f64 * 100.0;
        let heaviest = operators.iter().take(HEAVIEST);
        let heaviest = heaviest.map(|(op, sum)| format!("{} {:.1} % in {}", plain(op), share(sum.flops), sum.nodes));
        lines.maybe("by operator", (!operators.is_empty()).then(|| heaviest.collect::<Vec<_>>().join(", ")));
        let coverage = cost.coverage();
        if coverage.nodes > 0 {
            let (nodes, of_nodes) = (coverage.nodes, coverage.of_nodes);
            let share = coverage.flops as f64 / coverage.of_flops.max(1) as f64 * 100.0;
            lines.add(
                "quantised",
                format!("{nodes} of {of_nodes} convolutions and products, {share:.1} % of their FLOPs"),
            );
        }
    }

    pub(super) fn facts(&self, lines: &mut Lines) {
        match &self.head {
            Ok(head) => lines.add("head", head),
            Err(reason) => lines.add("head", format!("none: {reason}")),
        }
        for (key, value) in self.anatomy.metadata.iter().filter(|(key, _)| !SHOWN.contains(&key.as_str())) {
            let value = plain(value);
            let cut: String = value.chars().take(LONGEST).collect();
            let more = if cut.len() < value.len() { "…" } else { "" };
            lines.add("metadata", format!("{}: {cut}{more}", plain(key)));
        }
    }

    /// The table of `--layers`.
    pub(super) fn layers(&self) -> String {
        let all = self.anatomy.cost.flops().max(1) as f64;
        let mut text = String::new();
        let mut row = |fields: [&str; 7]| {
            let [name, op, shape, flops, share, bytes, intensity] = fields;
            let line = format!("{name:<NAME$}  {op:<20} {shape:<18} {flops:>10} {share:>7} {bytes:>9} {intensity:>7}");
            let _ = writeln!(text, "{}", line.trim_end());
        };
        row(["node", "operator", "output", "MFLOPs", "share", "MB", "FLOP/B"]);
        for node in self.by_flops() {
            let unknown = || "?".to_owned();
            let ratio = node.flops.zip(node.bytes.filter(|&bytes| bytes > 0));
            row([
                &ending(&plain(&node.name), NAME),
                &plain(&node.op),
                &node.shape.as_ref().map_or_else(unknown, |shape| axes(shape, "x")),
                &node.flops.map_or_else(unknown, |flops| format!("{:.3}", flops as f64 / 1e6)),
                &node.flops.map_or_else(unknown, |flops| format!("{:.2} %", flops as f64 / all * 100.0)),
                &node.bytes.map_or_else(unknown, |bytes| format!("{:.3}", bytes as f64 / 1e6)),
                &ratio.map_or_else(String::new, |(flops, bytes)| format!("{:.1}", flops as f64 / bytes as f64)),
            ]);
        }
        text
    }
}

impl Runners {
    pub(super) fn lines(&self, lines: &mut Lines) {
        for runner in &self.runners {
            let verdict = match (&runner.ability, &runner.floor) {
                (Err(reason), _) => format!("no: {reason}"),
                (Ok(version), floor) => {
                    let version = version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
                    let floor = match floor {
                        Some(Ok(floor)) => format!("; {floor} at best"),
                        Some(Err(reason)) => format!("; nothing is predicted: {reason}"),
                        None => String::new(),
                    };
                    format!("yes{version}{floor}")
                }
            };
            lines.add(runner.name.name(), verdict);
        }
        self.peaks.iter().for_each(|peak| lines.add("peak", peak));
    }
}

fn axes(shape: &[u64], between: &str) -> String {
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

fn flops(flops: u64) -> String {
    match flops {
        1_000_000_000.. => format!("{:.2} G", flops as f64 / 1e9),
        1_000_000.. => format!("{:.2} M", flops as f64 / 1e6),
        _ => flops.to_string(),
    }
}

/// The end of a name that is too long: exporters write the path first.
fn ending(name: &str, room: usize) -> String {
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length + 1 - room).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(ending("/model.0/conv/Conv", 6), "…/Conv");
        assert_eq!(ending("Conv", 6), "Conv");
    }

    #[test]
    fn operations_have_a_unit() {
        assert_eq!(
            (flops(8_744_000_000), flops(1_500_000), flops(12)),
            ("8.74 G".into(), "1.50 M".into(), "12".into())
        );
    }
}
