//! Limits that a run must keep to. A limit whose figure was not measured neither holds nor is broken: it is inconclusive, with
//! the reason.

use prony_types::{
    BackendName, CellRecord, CellStatus, Difference, Gate, GateName, GateSpec, LatencyComparison, Precision, RunRecord,
    Stage,
};

use crate::across::{latency, memory, same_cell};
use crate::comparable::{Row, differing, differing_in_score, in_words};
use crate::difference::{is_wrong, same_model};
use crate::stats::P99_NEEDS;

/// An earlier run that relative limits are held against.
#[derive(Clone, Copy, Debug)]
pub struct Baseline<'a> {
    /// The run.
    pub run: &'a RunRecord,
    /// Rows that are not comparable are held against it all the same.
    pub force: bool,
}

/// Why the only row of a model has no drop.
const ALONE: &str = "nothing to compare it with: give --baseline, or measure another precision or backend";

/// A figure that a limit is compared with.
struct Figure {
    value: f64,
    /// What it is relative to.
    against: Option<String>,
    /// Of a ratio of times: what its interval allows to say.
    ratio: Option<LatencyComparison>,
}

impl Figure {
    const fn new(value: f64, against: Option<String>) -> Figure {
        Figure { value, against, ratio: None }
    }
}

/// A figure, or why there is none.
type Measured = Result<Figure, String>;

/// A line for every limit and every cell that was to run. Skipped cells do not count, unless the baseline measured them.
pub fn gates(record: &RunRecord, spec: &GateSpec, baseline: Option<Baseline<'_>>) -> Vec<Gate> {
    let measured = |cell: &CellRecord| baseline.is_some_and(|baseline| had(baseline, cell));
    let held = |cell: &&CellRecord| cell.status != CellStatus::Skipped || measured(cell);
    let mut out = Vec::new();
    for (name, limit) in spec.limits() {
        for cell in record.cells.iter().filter(held) {
            if name == GateName::MapDropMax && baseline.is_none() && is_measure(record, cell) {
                continue;
            }
            let figure = completed(cell).and_then(|()| figure(name, Row { run: record, cell }, baseline));
            out.push(gate(name, cell, limit, figure));
        }
    }
    out
}

fn gate(name: GateName, cell: &CellRecord, limit: f64, figure: Measured) -> Gate {
    let mut gate = Gate {
        name: name.name().to_owned(),
        cell: cell.id.clone(),
        figure: None,
        limit,
        pass: false,
        inconclusive: false,
        against: None,
        reason: None,
    };
    match figure {
        Ok(Figure { value, against, ratio }) => {
            // A NaN holds nothing, and breaks nothing either.
            gate.pass = if name == GateName::MapMin { value >= limit } else { value <= limit };
            gate.inconclusive = value.is_nan();
            if let Some(ratio) = ratio {
                (gate.pass, gate.inconclusive) = of_ratio(&ratio, limit);
                gate.reason = gate.inconclusive.then_some(ratio.reason);
            }
            (gate.figure, gate.against) = (Some(value), against);
        }
        Err(reason) => {
            gate.inconclusive = true;
            gate.reason = Some(format!("not measured: {reason}"));
        }
    }
    gate
}

/// Whether a limit on a ratio of times holds, or cannot be decided: noise breaks no limit, and a run that did not hold
/// still passes only where its whole interval does.
fn of_ratio(ratio: &LatencyComparison, limit: f64) -> (bool, bool) {
    let conclusive = ratio.difference != Difference::Inconclusive;
    let [lo, hi] = ratio.ci95.unwrap_or([0.0, f64::INFINITY]);
    match () {
        () if hi <= limit || conclusive && ratio.ratio <= limit => (true, false),
        () if conclusive && lo > limit => (false, false),
        () => (false, true),
    }
}

fn figure(name: GateName, row: Row<'_>, baseline: Option<Baseline<'_>>) -> Measured {
    match name {
        GateName::MapMin => Ok(Figure::new(map(row.cell)?, None)),
        GateName::P99MaxMs => Ok(Figure::new(p99(row.cell)?, None)),
        GateName::MapDropMax => {
            let (before, against) = match baseline {
                Some(baseline) => (found(baseline, row)?, baseline.run.run.id.clone()),
                None => {
                    let fp32 = fp32_row(row)?;
                    if fp32.id == row.cell.id {
                        return Err(ALONE.to_owned());
                    }
                    (Row { run: row.run, cell: fp32 }, fp32.id.clone())
                }
            };
            let drop = (map(before.cell).map_err(|why| format!("{against}: {why}"))? - map(row.cell)?) * 100.0;
            let unlike = differing_in_score(before, row);
            if !(unlike.is_empty() || baseline.is_some_and(|baseline| baseline.force)) {
                return Err(format!("not scored like {against}: {}", in_words(&unlike)));
            }
            Ok(Figure::new(drop, Some(against)))
        }
        GateName::LatencyRatioMax => {
            let (before, against) = comparable(row, baseline)?;
            let latency = latency(before, row.cell).ok_or_else(|| "nothing was timed".to_owned())?;
            Ok(Figure { value: latency.ratio, against: Some(against), ratio: Some(latency) })
        }
        GateName::MemoryGrowthMax => {
            let (before, against) = comparable(row, baseline)?;
            Ok(Figure::new(memory(before, row.cell)?.growth, Some(against)))
        }
    }
}

fn completed(cell: &CellRecord) -> Result<(), String> {
    match (&cell.status, &cell.reason) {
        (CellStatus::Completed, _) => Ok(()),
        (status, Some(reason)) => Err(format!("{}: {reason}", status.name())),
        (status, None) => Err(status.name().to_owned()),
    }
}

fn map(cell: &CellRecord) -> Result<f64, String> {
    let Some(accuracy) = &cell.accuracy else {
        return Err(cell.accuracy_absent.clone().unwrap_or_else(|| "no data to score on; give --data".to_owned()));
    };
    accuracy.figures.map_50_95.ok_or_else(|| "the data has no objects to find".to_owned())
}

fn p99(cell: &CellRecord) -> Result<f64, String> {
    let total = cell.latency_ms.get(&Stage::Total).ok_or_else(|| "nothing was timed".to_owned())?;
    total.p99.ok_or_else(|| {
        // A tenth more, for pauses and slow frames.
        let seconds = (P99_NEEDS as f64 * total.mean / 1e3 * 1.1).ceil();
        format!("{} samples, p99 needs {P99_NEEDS}: use --samples {P99_NEEDS} or --duration {seconds}s", total.n)
    })
}

/// Whether the baseline completed this cell.
fn had(baseline: Baseline<'_>, cell: &CellRecord) -> bool {
    same_cell(baseline.run, cell).is_some_and(|before| before.status == CellStatus::Completed)
}

/// The row of the same cell in the baseline, where it completed.
fn found<'a>(baseline: Baseline<'a>, row: Row<'_>) -> Result<Row<'a>, String> {
    let id = &baseline.run.run.id;
    let cell = same_cell(baseline.run, row.cell).ok_or_else(|| format!("{id} has no cell {}", row.cell.id))?;
    completed(cell).map_err(|why| format!("in {id} it is {why}"))?;
    Ok(Row { run: baseline.run, cell })
}

/// The same, where nothing makes it another measurement.
fn comparable<'a>(row: Row<'_>, baseline: Option<Baseline<'a>>) -> Result<(&'a CellRecord, String), String> {
    let baseline = baseline.ok_or_else(|| "there is no baseline".to_owned())?;
    let before = found(baseline, row)?;
    let unlike = differing(before, row);
    if !(unlike.is_empty() || baseline.force) {
        return Err(format!("not comparable with {}: {}", baseline.run.run.id, in_words(&unlike)));
    }
    Ok((before.cell, baseline.run.run.id.clone()))
}

/// Whether others of this run are held against this row, which then has no drop of its own. A row that stands alone has
/// to be told of: a limit that nothing is held to would pass.
fn is_measure(record: &RunRecord, cell: &CellRecord) -> bool {
    let others = || record.cells.iter().filter(|other| other.id != cell.id && other.status != CellStatus::Skipped);
    let fp32 = fp32_row(Row { run: record, cell });
    fp32.is_ok_and(|fp32| fp32.id == cell.id) && others().any(|other| same_model(other, cell))
}

/// The model's row in fp32: on the reference's backend where that completed, else the first that did. Rows whose outputs
/// are wrong are no measure.
fn fp32_row<'a>(row: Row<'a>) -> Result<&'a CellRecord, String> {
    let cells = row.run.cells.iter().filter(|cell| {
        let completed = cell.status == CellStatus::Completed && !is_wrong(cell);
        same_model(cell, row.cell) && cell.precision.requested == Precision::Fp32 && completed
    });
    let cells: Vec<&CellRecord> = cells.collect();
    let reference: BackendName = row.run.plan.reference.backend;
    let own = cells.iter().find(|cell| cell.backend.name == reference.name());
    own.or(cells.first()).copied().ok_or_else(|| {
        format!(
            "no fp32 row of {} with right outputs to hold it against; measure one or give --baseline",
            row.cell.model.name
        )
    })
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
