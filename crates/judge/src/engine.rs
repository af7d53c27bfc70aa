//! What the layers of an engine say about its precision, and what another tool would call its figures.

use prony_types::{CellRecord, CellStatus, Comparison, Difference, Equivalent, LayersRecord, Phase, Precision, Stage};

use crate::difference::sister;
use crate::series::{Series, each_of};
use crate::stats::{median_ns, ms};
use crate::verdict::NOTE;

/// Why an engine is not of the precision that was asked for; `None` where it is, or where layers cannot tell.
pub fn not_in_precision(precision: Precision, layers: &LayersRecord) -> Option<String> {
    let wanted = match precision {
        Precision::Fp16 | Precision::Bf16 | Precision::Int8 | Precision::Fp8 | Precision::Nvfp4 => precision.name(),
        Precision::Fp32 | Precision::Tf32 | Precision::Native => return None,
    };
    let known: u32 = layers.by_type.iter().filter(|share| share.dtype != "unknown").map(|share| share.layers).sum();
    let none = known > 0 && layers.of(wanted) == 0;
    none.then(|| format!("no layer computes in {wanted}: {layers}"))
}

/// Whether layers were counted and none of them tells what it computes in.
pub(crate) fn tells_nothing(layers: &LayersRecord) -> bool {
    layers.layers > 0 && layers.by_type.iter().all(|share| share.dtype == "unknown")
}

/// The same samples by trtexec's definitions. It keeps two calls in flight, so the samples are those of the throughput
/// phase; `calls_per_s` is their rate.
pub fn equivalents<S: Series + ?Sized>(samples: &S, calls_per_s: Option<f64>) -> Vec<Equivalent> {
    let Some(throughput_qps) = calls_per_s else { return Vec::new() };
    let sum = |stages: &[Stage]| -> Option<f64> {
        let mut durations = Some(Vec::new());
        each_of(samples, Phase::Throughput, |sample| {
            let together = stages.iter().map(|&stage| sample.stage_ns(stage)).sum::<Option<u64>>();
            match (&mut durations, together) {
                (Some(durations), Some(ns)) => durations.push(ns),
                (durations, _) => *durations = None,
            }
        });
        // Without a sample there is no median.
        median_ns(&mut durations?).map(ms)
    };
    let all = sum(&[Stage::H2d, Stage::Inference, Stage::D2h]);
    let compute = sum(&[Stage::Inference]);
    let line = |tool: &str, definition: &str, latency_ms: Option<f64>| {
        let (tool, definition) = (tool.to_owned(), definition.to_owned());
        latency_ms.map(|latency_ms| Equivalent { tool, definition, latency_ms, throughput_qps })
    };
    [
        line("trtexec 10.x", "H2D + GPU compute + D2H, two calls in flight", all),
        line("trtexec 11.x", "GPU compute alone, transfers left out, two calls in flight", compute),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Says of each int8 cell that it is slower than its sister in fp16, or in fp32, where it is. `narrowings` are those of
/// [`crate::narrowings`].
pub fn mark_slow_int8(cells: &mut [CellRecord], narrowings: &[Comparison]) {
    let mut reasons = Vec::new();
    for (index, int8) in cells.iter().enumerate() {
        if int8.precision.requested != Precision::Int8 || int8.status != CellStatus::Completed {
            continue;
        }
        let of_cell = |comparison: &&Comparison| comparison.cell == int8.id;
        let slower = |comparison: &&Comparison| comparison.difference == Difference::Slower;
        if let Some(Comparison { against, reason, .. }) = narrowings.iter().filter(of_cell).find(slower) {
            reasons.push((index, format!("{NOTE}{INT8_SLOWER}: {reason}, against {against}")));
        }
        if let Some(reason) = slower_than_fp16(int8, cells) {
            reasons.push((index, format!("{NOTE}{reason}")));
        }
    }
    for (index, reason) in reasons {
        // A cell that was kept from an earlier sitting has it already.
        if !cells[index].verdict_reasons.contains(&reason) {
            cells[index].verdict_reasons.push(reason);
        }
    }
}

/// How a reason starts that says of an int8 cell that it takes longer than fp32.
pub const INT8_SLOWER: &str = "int8-slower";

fn slower_than_fp16(int8: &CellRecord, cells: &[CellRecord]) -> Option<String> {
    let p50 = |cell: &CellRecord| cell.latency_ms.get(&Stage::Inference).map(|stats| stats.p50);
    let sister = sister(cells, int8, Precision::Fp16);
    let (slow, fast) = p50(int8).zip(sister.and_then(p50)).filter(|(slow, fast)| slow > fast)?;
    let percent = (slow / fast - 1.0) * 100.0;
    Some(format!("int8 is {percent:.0} % slower here than fp16 ({slow:.3} against {fast:.3} ms of inference)"))
}

#[cfg(test)]
mod tests {
    use prony_types::LayerShare;

    use prony_types::Sample;

    use super::*;
    use crate::difference::tests::cell;

    fn layers(shares: &[(&str, u32)]) -> LayersRecord {
        let share = |&(dtype, layers): &(&str, u32)| LayerShare { dtype: dtype.into(), layers, time: None };
        LayersRecord {
            layers: shares.iter().map(|(_, n)| n).sum(),
            by_type: shares.iter().map(share).collect(),
            reformats: 0,
            reformat_time: None,
            slowest: Vec::new(),
        }
    }

    #[test]
    fn an_int8_engine_without_int8_layers_is_told_from_one_with_some() {
        let quiet = not_in_precision(Precision::Int8, &layers(&[("fp32", 60), ("fp16", 4)])).unwrap();
        assert!(quiet.starts_with("no layer computes in int8: fp32 60 of 64 layers"), "{quiet}");
        assert_eq!(not_in_precision(Precision::Int8, &layers(&[("fp32", 60), ("int8", 4)])), None);
        assert_eq!(not_in_precision(Precision::Fp32, &layers(&[("fp32", 60)])), None);
        assert_eq!(not_in_precision(Precision::Fp16, &layers(&[("unknown", 60)])), None, "nothing is known");
    }

    #[test]
    fn trtexec_counts_copies_in_one_version_and_not_in_the_other() {
        let sample = |phase, n: u64| Sample {
            start_ns: 0,
            phase,
            round: 0,
            frame: 0,
            detections: 0,
            parts_ns: [None, Some(100 * n), Some(1_000 * n), Some(10 * n), None],
            total_ns: 5_000,
        };
        let samples = [sample(Phase::Steady, 9), sample(Phase::Throughput, 1), sample(Phase::Throughput, 1)];
        let [old, new] = &equivalents(&samples, Some(800.0))[..] else { panic!("two lines") };
        assert_eq!((old.latency_ms, new.latency_ms, new.throughput_qps), (0.001_11, 0.001, 800.0));
        assert!(equivalents(&samples[..1], Some(800.0)).is_empty());
        assert!(equivalents(&samples, None).is_empty());
    }

    #[test]
    fn int8_that_is_slower_than_fp16_is_told() {
        let of = |precision: Precision, p50: f64| {
            let mut cell = cell(precision.name(), p50);
            cell.precision.requested = precision;
            let total = cell.latency_ms[&Stage::Total];
            cell.latency_ms.insert(Stage::Inference, total);
            cell
        };
        let mut cells = [of(Precision::Fp16, 2.0), of(Precision::Int8, 2.5)];
        mark_slow_int8(&mut cells, &[]);
        assert_eq!(cells[0].verdict_reasons.len(), 0);
        assert_eq!(
            cells[1].verdict_reasons,
            ["note: int8 is 25 % slower here than fp16 (2.500 against 2.000 ms of inference)"]
        );
        let mut cells = [of(Precision::Fp16, 2.0), of(Precision::Int8, 1.5)];
        mark_slow_int8(&mut cells, &[]);
        assert!(cells[1].verdict_reasons.is_empty());
    }

    #[test]
    fn int8_that_is_slower_than_fp32_is_told_with_its_interval() {
        let of = |precision: Precision, p50: f64| {
            let mut cell = cell(precision.name(), p50);
            cell.precision.requested = precision;
            cell
        };
        let cells = [of(Precision::Fp32, 2.0), of(Precision::Int8, 2.4), of(Precision::Bf16, 1.0)];
        let rounds = |id: &str| {
            let level = cells.iter().find(|cell| cell.id == id).unwrap().latency_ms[&Stage::Total].p50;
            vec![vec![(level * 1e6) as u64; 200]; 5]
        };
        let found = crate::narrowings(&cells, &rounds);
        let words: Vec<_> = found.iter().map(|c| (c.cell.as_str(), c.against.as_str(), c.difference)).collect();
        assert_eq!(words, [("int8", "fp32", Difference::Slower), ("bf16", "fp32", Difference::Faster)]);
        let mut marked = cells.clone();
        mark_slow_int8(&mut marked, &found);
        let [reason] = &marked[1].verdict_reasons[..] else { panic!("{:?}", marked[1].verdict_reasons) };
        assert!(
            reason.starts_with("note: int8-slower: 1.200 times the median latency, 95 % CI 1.200 to 1.200"),
            "{reason}"
        );
        assert!(reason.ends_with(", against fp32"), "{reason}");
        assert!(marked[0].verdict_reasons.is_empty() && marked[2].verdict_reasons.is_empty());
    }
}
