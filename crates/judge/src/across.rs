//! A run against an earlier one.
//!
//! Rounds of two runs did not stand beside each other, so nothing pairs them: the interval of the ratio comes from how much
//! the medians of the rounds scatter in each run (Welch's), and is never narrower than what the intervals of the two
//! medians allow. What the machine did for the whole of one run and not of the other is in no interval; the margin of 2 %
//! is all that covers it. All of it is in `report.json`, so a record without its samples can be compared.

use prony_types::{
    AccuracyComparison, AccuracyDifference, CellRecord, CellStatus, Difference, Gate, LatencyComparison,
    MemoryComparison, RowComparison, RowOutcome, RunRecord, Stage, StageStats,
};

use crate::comparable::{Row, differing, differing_in_score, in_words, noted};
use crate::difference::{EQUIVALENCE, TELLING, is_wrong, word};
use crate::unpaired::{DOUBTFUL, ROUNDS, doubts, welch};

/// How two runs are compared, for the reader.
pub const METHOD: &str = "ratio of the medians of total; its 95 % interval from the scatter of the rounds of each run \
    (Welch, unpaired: the runs were not interleaved), not narrower than the intervals of the two medians; `faster` and \
    `slower` only where the whole interval lies beyond 2 %; `inconclusive` where the interval reaches beyond 25 %, where a \
    ratio beyond 5 % cannot be told from chance, and where one of the runs is unstable or throttled";

/// Growth of peak memory from which it is a regression, where nobody gave a limit.
pub const MEMORY_GROWTH: f64 = 1.10;

/// Change of mAP, either way, from which two scores without an interval are not called the same.
pub const DOUBTFUL_CHANGE: f64 = 0.01;

/// Longer than this is no advice.
const LONGEST_ADVICE_S: f64 = 3_600.0;

/// Every cell that both runs have, in the order of `run`. Rows that are not comparable are refused, unless `force`.
/// `paired` gives the accuracy where the detections of both are at hand; otherwise the two intervals decide.
pub fn rows(
    baseline: &RunRecord,
    run: &RunRecord,
    force: bool,
    paired: &dyn Fn(&CellRecord, &CellRecord) -> Option<AccuracyComparison>,
) -> Vec<RowComparison> {
    let both = run.cells.iter().filter_map(|cell| Some((same_cell(baseline, cell)?, cell)));
    both.map(|(before, cell)| {
        let (before, now) = (Row { run: baseline, cell: before }, Row { run, cell });
        one_row(before, now, force, paired)
    })
    .collect()
}

/// The cell of the same id.
pub fn same_cell<'a>(run: &'a RunRecord, cell: &CellRecord) -> Option<&'a CellRecord> {
    run.cells.iter().find(|other| other.id == cell.id)
}

fn one_row(
    before: Row<'_>,
    now: Row<'_>,
    force: bool,
    paired: &dyn Fn(&CellRecord, &CellRecord) -> Option<AccuracyComparison>,
) -> RowComparison {
    let mut row = RowComparison {
        cell: now.cell.id.clone(),
        outcome: RowOutcome::Compared,
        reason: None,
        differing: Vec::new(),
        noted: Vec::new(),
        latency: None,
        memory: None,
        accuracy: None,
    };
    if let Some(reason) = not_measured(before.cell, "the baseline").or_else(|| not_measured(now.cell, "the run")) {
        (row.outcome, row.reason) = (RowOutcome::NotMeasured, Some(reason));
        return row;
    }
    row.differing = differing(before, now);
    row.noted = noted(before, now);
    if !row.differing.is_empty() {
        row.outcome = if force { RowOutcome::Forced } else { RowOutcome::Refused };
        row.reason = Some(format!("not comparable: {}", in_words(&row.differing)));
        if !force {
            return row;
        }
    }
    row.latency = latency(before.cell, now.cell);
    row.memory = most_grown(before.cell, now.cell);
    if let Err(why) = memory(before.cell, now.cell) {
        // Some of it may have been compared; what was not is told.
        row.reason = Some(row.reason.map_or(why.clone(), |reason| format!("{reason}; {why}")));
    }
    // Boxes that were kept by another rule are no pair, though they are of the same images.
    let alike = force || differing_in_score(before, now).is_empty();
    let by_image = if alike { paired(before.cell, now.cell) } else { None };
    row.accuracy = by_image.or_else(|| accuracy(before, now, force));
    row
}

/// Why a cell has no figures, where it has none.
fn not_measured(cell: &CellRecord, of: &str) -> Option<String> {
    if cell.status == CellStatus::Completed {
        return None;
    }
    let why = cell.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(format!("{} in {of}{why}", cell.status.name()))
}

/// The medians of `total`; `None` where one was not timed. The two swapped give the mirrored answer.
pub fn latency(before: &CellRecord, now: &CellRecord) -> Option<LatencyComparison> {
    let (a, b) = (before.latency_ms.get(&Stage::Total)?, now.latency_ms.get(&Stage::Total)?);
    let floor = |ms: f64| ms.max(1e-6);
    let ratio = floor(b.p50) / floor(a.p50);
    // A difference of logarithms: that of the runs swapped is its negative to the bit.
    let log = floor(b.p50).ln() - floor(a.p50).ln();
    let width = |[lo, hi]: [f64; 2]| (floor(hi) / floor(lo)).ln() / 2.0;
    let medians = a.ci95.zip(b.ci95).map(|(a, b)| width(a).hypot(width(b)));
    let rounds = welch(&before.round_p50_ms, &now.round_p50_ms);
    let half = medians.map(|medians| medians.max(rounds.unwrap_or(0.0)));
    let interval = half.map(|half| [log - half, log + half]);
    let ci95 = interval.map(|[lo, hi]| [lo.exp().min(ratio), hi.exp().max(ratio)]);
    let one_measurement = a == b && before.round_p50_ms == now.round_p50_ms;
    let doubts = if one_measurement { Vec::new() } else { doubts(("the baseline", before), ("the run", now)) };
    let difference = match word(interval) {
        _ if one_measurement => Difference::Same,
        _ if !doubts.is_empty() => Difference::Inconclusive,
        Difference::Same if log.abs() > DOUBTFUL.ln() => Difference::Inconclusive,
        word => word,
    };
    let inconclusive = difference == Difference::Inconclusive;
    let measure_s = inconclusive.then(|| enough_s(log.abs(), half, seconds(a).max(seconds(b))));
    let basis = match rounds {
        Some(_) => format!("from {} and {} rounds", before.round_p50_ms.len(), now.round_p50_ms.len()),
        None => format!("from the two medians alone, fewer than {ROUNDS} rounds each"),
    };
    let mut reason = match ci95 {
        None => format!("too few samples to tell, {basis}"),
        Some([lo, hi]) => format!("{ratio:.3} times the median latency, 95 % CI {lo:.3} to {hi:.3} {basis}"),
    };
    reason += match (difference, ci95.is_some() && doubts.is_empty()) {
        (Difference::Inconclusive, true) => ", which is too wide to tell",
        (Difference::Same, _) if one_measurement => "; both are one measurement",
        (Difference::Same, true) => ", which does not lie wholly beyond 2 %",
        _ => "",
    };
    doubts.iter().for_each(|doubt| reason += &format!("; {doubt}"));
    if let Some(seconds) = measure_s {
        reason += &format!("; {}", advice(seconds));
    }
    Some(LatencyComparison { baseline_ms: a.p50, run_ms: b.p50, ratio, ci95, difference, measure_s, reason })
}

/// Seconds of samples behind the figures.
fn seconds(total: &StageStats) -> f64 {
    total.n as f64 * total.mean / 1e3
}

/// Seconds after which the interval should be narrow enough, where its width falls with the root of the time. A machine
/// that did not hold still gets at least twice the time it had.
fn enough_s(log: f64, half: Option<f64>, measured_s: f64) -> f64 {
    let wanted = if log > DOUBTFUL.ln() { log - EQUIVALENCE.ln() } else { TELLING.ln() - log };
    let factor = half.map_or(2.0, |half| (half / wanted).powi(2));
    // In steps that a person would type.
    (measured_s * factor.max(2.0)).max(10.0).div_euclid(10.0) * 10.0 + 10.0
}

fn advice(seconds: f64) -> String {
    if seconds > LONGEST_ADVICE_S {
        return "at this scatter even an hour would not tell: quiet the machine first, see `prony doctor`".to_owned();
    }
    format!("measure both again with --duration {seconds:.0}")
}

/// Peak memory: of host and device the one that grew most. An error where one of the runs lacks what the other has.
pub fn memory(before: &CellRecord, now: &CellRecord) -> Result<MemoryComparison, String> {
    let lacking = peaks(before, now).into_iter().find_map(|(of, pair)| match pair {
        [Some(_), None] => Some(format!("peak memory of the {of} was measured in the baseline only")),
        [None, Some(_)] => Some(format!("peak memory of the {of} was measured in the run only")),
        _ => None,
    });
    match lacking {
        Some(why) => Err(why),
        None => most_grown(before, now).ok_or_else(|| "peak memory was not measured".to_owned()),
    }
}

/// The same, of what both have.
fn most_grown(before: &CellRecord, now: &CellRecord) -> Option<MemoryComparison> {
    let both = peaks(before, now).into_iter().filter_map(|(of, [baseline, run])| {
        let (baseline_mib, run_mib) = baseline.zip(run)?;
        Some(MemoryComparison { of: of.to_owned(), baseline_mib, run_mib, growth: run_mib / baseline_mib })
    });
    both.max_by(|a, b| a.growth.total_cmp(&b.growth))
}

/// Peaks in the baseline and in the run. A peak of 0 is none.
fn peaks(before: &CellRecord, now: &CellRecord) -> [(&'static str, [Option<f64>; 2]); 2] {
    let [a, b] = [before, now].map(|cell| &cell.memory);
    let pair = |a: Option<f64>, b: Option<f64>| [a, b].map(|mib| mib.filter(|&mib| mib > 0.0));
    [("host", pair(a.host_peak_mib, b.host_peak_mib)), ("device", pair(a.device_peak_mib, b.device_peak_mib))]
}

/// mAP50-95 from the two records; `None` where one has none. The same images drawn for both would give a narrower interval:
/// what is `same` here may not be so there, but not the other way round. Scores that were not made alike are not
/// comparable, unless `force`.
pub fn accuracy(before: Row<'_>, now: Row<'_>, force: bool) -> Option<AccuracyComparison> {
    let (a, b) = (before.cell.accuracy.as_ref()?, now.cell.accuracy.as_ref()?);
    let mut comparison = AccuracyComparison {
        cell: now.cell.id.clone(),
        against: before.run.run.id.clone(),
        delta: None,
        ci95: None,
        difference: AccuracyDifference::NotComparable,
        reason: String::new(),
    };
    let unlike = differing_in_score(before, now);
    if !(unlike.is_empty() || force) {
        comparison.reason = format!("not scored alike: {}", in_words(&unlike));
        return Some(comparison);
    }
    let (Some(map_a), Some(map_b)) = (a.figures.map_50_95, b.figures.map_50_95) else {
        comparison.reason = "one of the two has no mAP".to_owned();
        return Some(comparison);
    };
    let delta = map_b - map_a;
    comparison.delta = Some(delta);
    let Some(([lo_a, hi_a], [lo_b, hi_b])) = a.ci95.zip(b.ci95) else {
        comparison.reason = "one of the two has no interval, so the difference may be chance".to_owned();
        return Some(comparison);
    };
    // The end that lies towards the other decides on each side: intervals of mAP are not symmetric.
    let lo = delta - (map_b - lo_b).hypot(hi_a - map_a);
    let hi = delta + (hi_b - map_b).hypot(map_a - lo_a);
    comparison.ci95 = Some([lo, hi]);
    comparison.difference = match () {
        () if hi < 0.0 => AccuracyDifference::Worse,
        () if lo > 0.0 => AccuracyDifference::Better,
        () => AccuracyDifference::Same,
    };
    let points = [delta, lo, hi].map(|x| x * 100.0);
    comparison.reason = format!(
        "{:+.2} points of mAP50-95, 95 % interval {:+.2} to {:+.2} from the two intervals, not paired",
        points[0], points[1], points[2]
    );
    Some(comparison)
}

/// What is a regression where nobody gave limits: slower beyond noise, worse beyond chance, a tenth more memory, or no
/// figure where there was one.
pub fn regressions(rows: &[RowComparison], baseline: &RunRecord, run: &RunRecord) -> Vec<Gate> {
    let mut gates = Vec::new();
    for row in rows {
        let Some(now) = run.cells.iter().find(|cell| cell.id == row.cell) else { continue };
        let Some(before) = same_cell(baseline, now) else { continue };
        match row.outcome {
            RowOutcome::Refused => {}
            RowOutcome::NotMeasured => gates.extend(unmeasured(row, before, now)),
            RowOutcome::Compared | RowOutcome::Forced => {
                gates.extend(slower(row, before, now));
                gates.extend(worse(row, before, now));
                gates.extend(grown(row, before, now));
            }
        }
    }
    gates
}

/// A line for every row of the run whose outputs are wrong: whatever its figures are, they are of no use.
pub fn wrong_outputs(run: &RunRecord) -> Vec<Gate> {
    let wrong = run.cells.iter().filter(|cell| is_wrong(cell));
    wrong
        .map(|cell| {
            let why = cell.verdict_reasons.first().map(|reason| format!(": {reason}")).unwrap_or_default();
            line("outputs", &cell.id, None, 1.0, GateOutcome::Broken, format!("outputs are wrong{why}"))
        })
        .collect()
}

/// What became of a limit.
#[derive(Clone, Copy, PartialEq)]
enum GateOutcome {
    Pass,
    Broken,
    Inconclusive,
}

fn line(name: &str, cell: &str, figure: Option<f64>, limit: f64, outcome: GateOutcome, reason: String) -> Gate {
    Gate {
        name: name.to_owned(),
        cell: cell.to_owned(),
        figure,
        limit,
        pass: outcome == GateOutcome::Pass,
        inconclusive: outcome == GateOutcome::Inconclusive,
        against: None,
        reason: Some(reason),
    }
}

/// Whoever had no figures before has not lost any, but what was tried and failed is never passed over.
fn unmeasured(row: &RowComparison, before: &CellRecord, now: &CellRecord) -> Option<Gate> {
    let lost = match now.status {
        CellStatus::Completed => false,
        CellStatus::Skipped => before.status == CellStatus::Completed,
        CellStatus::Pending | CellStatus::Failed | CellStatus::Interrupted => true,
    };
    lost.then(|| line("measured", &row.cell, None, 1.0, GateOutcome::Broken, row.reason.clone().unwrap_or_default()))
}

fn slower(row: &RowComparison, before: &CellRecord, now: &CellRecord) -> Option<Gate> {
    let timed = |cell: &CellRecord| cell.latency_ms.contains_key(&Stage::Total);
    let Some(latency) = &row.latency else {
        let lost = timed(before) && !timed(now);
        return lost.then(|| {
            let reason = "timed in the baseline and not in the run".to_owned();
            line("slower", &row.cell, None, EQUIVALENCE, GateOutcome::Inconclusive, reason)
        });
    };
    let outcome = match latency.difference {
        Difference::Faster | Difference::Same => GateOutcome::Pass,
        Difference::Slower => GateOutcome::Broken,
        Difference::Inconclusive | Difference::NotComparable => GateOutcome::Inconclusive,
    };
    Some(line("slower", &row.cell, Some(latency.ratio), EQUIVALENCE, outcome, latency.reason.clone()))
}

fn worse(row: &RowComparison, before: &CellRecord, now: &CellRecord) -> Option<Gate> {
    let map = |cell: &CellRecord| cell.accuracy.as_ref().and_then(|accuracy| accuracy.figures.map_50_95);
    let Some(accuracy) = &row.accuracy else {
        let why = now.accuracy_absent.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let lost = before.accuracy.is_some() && now.accuracy.is_none();
        let reason = || format!("scored in the baseline and not in the run{why}");
        return lost.then(|| line("worse", &row.cell, None, 0.0, GateOutcome::Inconclusive, reason()));
    };
    let doubtful = accuracy.delta.is_some_and(|delta| delta.abs() > DOUBTFUL_CHANGE);
    let outcome = match (accuracy.difference, accuracy.delta) {
        (AccuracyDifference::Worse, _) => GateOutcome::Broken,
        (AccuracyDifference::NotComparable, Some(_)) if doubtful => GateOutcome::Inconclusive,
        // A score that was there and cannot be compared with the new one is not kept.
        (AccuracyDifference::NotComparable, None) if map(before).is_some() => GateOutcome::Inconclusive,
        _ => GateOutcome::Pass,
    };
    let points = accuracy.delta.map(|delta| delta * 100.0);
    let more = if doubtful && outcome == GateOutcome::Inconclusive { "; score more images" } else { "" };
    Some(line("worse", &row.cell, points, 0.0, outcome, format!("{}{more}", accuracy.reason)))
}

fn grown(row: &RowComparison, before: &CellRecord, now: &CellRecord) -> Vec<Gate> {
    let mut gates = Vec::new();
    if let Some(memory) = &row.memory {
        let reason = format!("{:.1} MiB of {} memory, {:.1} before", memory.run_mib, memory.of, memory.baseline_mib);
        let outcome = if memory.growth <= MEMORY_GROWTH { GateOutcome::Pass } else { GateOutcome::Broken };
        gates.push(line("memory", &row.cell, Some(memory.growth), MEMORY_GROWTH, outcome, reason));
    }
    for (of, pair) in peaks(before, now) {
        if let [Some(_), None] = pair {
            let reason = format!("peak memory of the {of} was measured in the baseline only");
            gates.push(line("memory", &row.cell, None, MEMORY_GROWTH, GateOutcome::Inconclusive, reason));
        }
    }
    gates
}

#[cfg(test)]
#[path = "across_tests.rs"]
pub(crate) mod tests;
