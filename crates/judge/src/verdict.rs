//! Whether a measurement can be trusted, and why not.
//!
//! Every rule that fires adds a sentence; the gravest decides the word. A sentence whose own word is `valid` is
//! something to know and no objection: it starts with [`NOTE`] and stands last, whatever the verdict is.

use prony_types::{
    AccuracyRecord, Agreement, BudgetSpec, ClassMatch, ConsistencyCheck, InputRecord, LayersRecord, LoadRecord,
    MemoryRecord, OutputCheck, PlacementRecord, Precision, StageStats, Stall, Telemetry, Verdict,
};

use crate::agreement::{Bounds, epsilon};
use crate::engine::{not_in_precision, tells_nothing};
use crate::note::NOTE;
use crate::stats::{P90_NEEDS, relative_half_width};
use crate::stopping::TARGET_HALF_WIDTH;
use crate::suspects;
use crate::telemetry::{clock_change, throttle_events, watches_clocks};

/// A relative half width beyond this is too wide to call a measurement.
pub const WIDEST_HALF_WIDTH: f64 = 0.05;
/// A round whose median is off the middle round's by more than this factor is off.
pub const ROUND_SPREAD: f64 = 1.10;
/// Share of the rounds that may be off: a neighbour's burst in one round of many moves no median of all.
pub const ROUNDS_OFF: f64 = 0.10;
/// Largest change from the first to the last third of the rounds.
pub const ROUND_DRIFT: f64 = 0.05;
/// Samples a round must hold on average before its median says anything about the machine.
pub const ROUND_NEEDS: u64 = 5;
/// Distinct frames of a usual run; with fewer, caches and NMS see little variety.
pub const USUAL_FRAMES: u32 = 32;
/// Largest fall of the clock under load.
pub const CLOCK_FALL: f64 = 0.15;

/// Where more noise than this is allowed, a wrong output would pass.
const TELLS_NOTHING_DB: f64 = 10.0;

/// Said of a machine without sensors, as a note.
pub const NO_SENSOR: &str = "no frequency or temperature sensor can be read here, so throttling could not be ruled out";

/// All that is known about one completed cell.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Statistics of `total`, steady state.
    pub stats: Option<&'a StageStats>,
    /// What was asked for.
    pub budget: &'a BudgetSpec,
    /// Median of `total` by round.
    pub round_p50_ms: &'a [f64],
    /// Whether warm-up reached a steady state.
    pub settled: bool,
    /// Whether warm-up had a fixed length, so that nobody looked for a steady state.
    pub warmup_fixed: bool,
    /// Findings of the self-check.
    pub check: Option<OutputCheck>,
    /// Outputs against a reference.
    pub agreement: Option<&'a Agreement>,
    /// Why there is no agreement.
    pub agreement_absent: Option<&'a str>,
    /// The precision whose bounds the agreement must keep.
    pub precision: Precision,
    /// Where the nodes ran.
    pub placement: Option<&'a PlacementRecord>,
    /// Why that could not be counted.
    pub placement_problem: Option<&'a str>,
    /// What the layers of the engine compute in.
    pub layers: Option<&'a LayersRecord>,
    /// Why that could not be found out.
    pub layers_problem: Option<&'a str>,
    /// What the library warned of while it loaded the model.
    pub warnings: &'a [String],
    /// Memory against its limit.
    pub memory: Option<&'a MemoryRecord>,
    /// Readings while this cell was timed.
    pub telemetry: &'a [Telemetry],
    /// What other processes took while it was timed.
    pub load: Option<&'a LoadRecord>,
    /// Times in which it stood still.
    pub stalls: &'a [Stall],
    /// Samples that the ring had no room for.
    pub lost_samples: u64,
    /// Frames a call.
    pub batch: u32,
    /// What it was fed.
    pub input: Option<&'a InputRecord>,
    /// Whether it agrees with itself.
    pub consistency: &'a [ConsistencyCheck],
    /// How right it is.
    pub accuracy: Option<&'a AccuracyRecord>,
    /// Why there is no accuracy although data was given.
    pub accuracy_absent: Option<&'a str>,
    /// Whether it was timed, and not only scored.
    pub timed: bool,
}

/// The verdict and its reasons, gravest first; notes, which start with [`NOTE`], come last.
pub fn judge(evidence: &Evidence<'_>) -> (Verdict, Vec<String>) {
    let mut findings = Vec::new();
    outputs(evidence, &mut findings);
    consistency(evidence, &mut findings);
    accuracy(evidence, &mut findings);
    agreement(evidence, &mut findings);
    placement(evidence, &mut findings);
    layers(evidence, &mut findings);
    warnings(evidence.warnings, &mut findings);
    memory(evidence.memory, &mut findings);
    if evidence.timed {
        throttling(evidence.telemetry, &mut findings);
        findings.extend(crate::load::finding(evidence.load));
        findings.extend(crate::stall::findings(evidence.stalls));
        stability(evidence, &mut findings);
        sampling(evidence, &mut findings);
        gaps(evidence, &mut findings);
        variety(evidence.input, &mut findings);
    }
    // Stable, so within one word the order of the rules stays.
    findings.sort_by_key(|(verdict, _)| std::cmp::Reverse(*verdict));
    let verdict = findings.first().map_or(Verdict::Valid, |(verdict, _)| *verdict);
    let told = |(verdict, reason)| if verdict == Verdict::Valid { format!("{NOTE}{reason}") } else { reason };
    (verdict, findings.into_iter().map(told).collect())
}

type Findings = Vec<(Verdict, String)>;

fn outputs(evidence: &Evidence<'_>, findings: &mut Findings) {
    let mut wrong = |reason: String| findings.push((Verdict::WrongOutput, reason));
    if let Some(check) = evidence.check {
        if check.non_finite_calls > 0 {
            let (bad, all) = (check.non_finite_calls, check.checked_calls);
            wrong(format!("{bad} of {all} checked calls returned NaN or infinity"));
            // The reference may hold some too, and nothing can be held against that.
            return;
        }
        if !check.repeatable {
            wrong("the same frame gave another output after the measurement than before".into());
        }
        if check.detections_expected && check.detections == Some(0) {
            wrong("no box on any frame, although the scenes have objects that this model knows".into());
        }
        if !check.detections_expected && check.detections == Some(0) {
            let reason = "no box on any frame, so suppression was not exercised; give images it knows with --source";
            findings.push((Verdict::Valid, reason.into()));
        }
    }
}

fn finite(evidence: &Evidence<'_>) -> bool {
    evidence.check.is_none_or(|check| check.non_finite_calls == 0)
}

/// A cell that does not agree with itself agrees with nothing.
fn consistency(evidence: &Evidence<'_>, findings: &mut Findings) {
    // With a NaN nothing agrees, and that was said.
    for check in evidence.consistency.iter().filter(|_| finite(evidence)) {
        let ConsistencyCheck { name, holds, detail } = check;
        match holds {
            Some(true) => {}
            Some(false) => findings.push((Verdict::WrongOutput, format!("{name} gave another output: {detail}"))),
            None => findings.push((Verdict::Valid, format!("{name} could not be tried: {detail}"))),
        }
    }
}

fn accuracy(evidence: &Evidence<'_>, findings: &mut Findings) {
    if let Some(reason) = evidence.accuracy_absent {
        findings.push((Verdict::Unknown, format!("accuracy was asked for and could not be scored: {reason}")));
    }
    let Some(accuracy) = evidence.accuracy.filter(|_| finite(evidence)) else { return };
    if accuracy.detections == 0 && accuracy.data.objects > 0 {
        let images = counted(accuracy.images, "image");
        let reason = format!("no box on any of {images}, although the data has classes of this model");
        findings.push((Verdict::WrongOutput, reason));
    } else if suspects::is_zero(&accuracy.figures) {
        let objects = accuracy.data.class_match.as_ref().map_or(accuracy.data.objects, |classes| classes.objects);
        if objects >= suspects::OBJECTS {
            findings.push((Verdict::WrongOutput, suspects::reason(accuracy)));
        } else {
            let objects = counted(objects, "object");
            let reason =
                format!("mAP50-95 is 0.000, on {objects} of classes that the model knows: too few to judge it by");
            findings.push((Verdict::Unknown, reason));
        }
    }
    findings
        .extend(accuracy.data.class_match.as_ref().and_then(ClassMatch::caution).map(|text| (Verdict::Valid, text)));
}

fn agreement(evidence: &Evidence<'_>, findings: &mut Findings) {
    let finite = finite(evidence);
    let Some(agreement) = evidence.agreement.filter(|_| finite) else {
        if let Some(reason) = evidence.agreement_absent {
            findings.push((Verdict::Valid, format!("outputs were held against no reference: {reason}")));
        }
        return;
    };
    let bounds = Bounds::of(evidence.precision);
    let reference = &agreement.reference;
    // A precision without an epsilon is held to its own bounds alone.
    let rounding = agreement.sensitivity.as_ref().filter(|_| epsilon(evidence.precision).is_some());
    // Without a head the values have no meaning of their own, and all of them are held in `boxes`.
    let headless = agreement.scores.is_none() && agreement.matched_boxes.is_none();
    let first = if headless { "outputs" } else { "boxes" };
    let parts = [
        (first, agreement.boxes, rounding.and_then(|moved| moved.boxes)),
        ("scores", agreement.scores, rounding.and_then(|moved| moved.scores)),
        ("masks and key points", agreement.rest, rounding.and_then(|moved| moved.rest)),
    ];
    let (mut sensitive, mut allowed_db) = (Vec::new(), f64::INFINITY);
    for (what, tensor, moved) in parts {
        let Some(tensor) = tensor else { continue };
        let allowed = bounds.with_rounding(moved);
        let wider = moved.is_some() && allowed.sqnr_db < bounds.known_db;
        let why = if wider { ", which allows for the model's own rounding" } else { "" };
        // Written so that a NaN is below the bound too.
        if !matches!(tensor.cosine.partial_cmp(&allowed.cosine), Some(order) if order.is_ge()) {
            let (cosine, bound) = (tensor.cosine, (allowed.cosine * 1e4).round() / 1e4);
            let reason = format!("cosine of {what} is {cosine:.5} against {reference}, below {bound}{why}");
            findings.push((Verdict::WrongOutput, reason));
        } else if let Some(sqnr) = tensor.sqnr_db.filter(|&sqnr| sqnr < allowed.sqnr_db) {
            let bound = (allowed.sqnr_db * 10.0).round() / 10.0;
            let reason =
                format!("noise of {what} is only {sqnr:.1} dB below {reference}, {bound} dB is the least{why}");
            findings.push((Verdict::WrongOutput, reason));
        }
        if let Some(db) = moved.and_then(|moved| moved.sqnr_db).filter(|_| allowed.sqnr_db < bounds.sqnr_db) {
            sensitive.push((what, 100.0 * 10f64.powf(-db / 20.0)));
            allowed_db = allowed_db.min(allowed.sqnr_db);
        }
    }
    if !sensitive.is_empty() {
        findings.push((Verdict::Valid, is_sensitive(evidence.precision, &sensitive, allowed_db)));
    }
    if let Some(share) = agreement.matched_boxes.filter(|&share| share < bounds.matched) {
        let (percent, bound) = (share * 100.0, bounds.matched * 100.0);
        let reason = format!("only {percent:.1} % of the boxes match {reference}, {bound:.0} % is the least");
        findings.push((Verdict::WrongOutput, reason));
    }
    if let Some(unstable) = rounding.and_then(|moved| moved.unstable_boxes).filter(|&share| share > 0.0) {
        let (percent, precision) = (unstable * 100.0, evidence.precision);
        let reason = format!(
            "{percent:.1} % of the boxes move when the input is rounded to {precision}, so they say nothing for or against it"
        );
        findings.push((Verdict::Valid, reason));
    }
}

/// That rounding alone moves outputs so far that agreement can tell less: what, and by how many per cent.
fn is_sensitive(precision: Precision, moved: &[(&str, f64)], allowed_db: f64) -> String {
    let moved: Vec<String> = moved.iter().map(|(what, percent)| format!("{what} by {percent:.2} %")).collect();
    let moved = moved.join(" and ");
    let tells = if allowed_db < TELLS_NOTHING_DB {
        "agreement cannot tell a wrong output from rounding; score it with --data"
    } else {
        "more noise is allowed for it"
    };
    format!("this model is sensitive: an input rounded to {precision} alone moves {moved}, so {tells}")
}

fn placement(evidence: &Evidence<'_>, findings: &mut Findings) {
    if let Some(problem) = evidence.placement_problem {
        findings.push((Verdict::Unknown, format!("where the nodes ran could not be counted: {problem}")));
    }
    let Some(placement) = evidence.placement.filter(|placement| !placement.is_whole()) else { return };
    let elsewhere = placement.providers.iter().filter(|share| share.provider != placement.requested);
    let elsewhere: Vec<String> = elsewhere
        .map(|share| format!("{} on {} ({})", share.nodes, share.provider, share.operators.join(", ")))
        .collect();
    findings.push((Verdict::FellBack, format!("{placement}; {}", elsewhere.join(", "))));
}

fn layers(evidence: &Evidence<'_>, findings: &mut Findings) {
    if let Some(problem) = evidence.layers_problem {
        findings.push((Verdict::Unknown, format!("what the layers compute in could not be found out: {problem}")));
    }
    let proved = !matches!(evidence.precision, Precision::Native);
    if evidence.layers.is_some_and(tells_nothing) && proved {
        let reason = "the engine does not tell what its layers compute in (built without detailed profiling), so its \
                      precision is not proved";
        findings.push((Verdict::Unknown, reason.into()));
    }
    if let Some(reason) = evidence.layers.and_then(|layers| not_in_precision(evidence.precision, layers)) {
        findings.push((Verdict::FellBack, reason));
    }
}

/// Something to know beside the figures and no objection: a library warns of an engine that was built on another model of
/// GPU, which runs and may be slower than one that was built here.
fn warnings(warnings: &[String], findings: &mut Findings) {
    findings.extend(warnings.iter().map(|line| (Verdict::Valid, format!("the library warned on loading: {line}"))));
}

fn memory(memory: Option<&MemoryRecord>, findings: &mut Findings) {
    let violations = memory.map(|memory| memory.violations.as_slice()).unwrap_or_default();
    findings.extend(violations.iter().map(|violation| (Verdict::OverBudget, violation.clone())));
    let warning = memory.and_then(|memory| memory.warning.clone());
    findings.extend(warning.map(|warning| (Verdict::Valid, warning)));
}

fn throttling(readings: &[Telemetry], findings: &mut Findings) {
    let events = throttle_events(readings);
    if events > 0 {
        let events = counted(events, "thermal throttle event");
        findings.push((Verdict::Throttled, format!("{events} while it was timed")));
    }
    if let Some(change) = clock_change(readings) {
        let fall = 1.0 - change.to_mhz / change.from_mhz;
        if fall > CLOCK_FALL {
            let (whose, percent, from, to) = (change.whose, fall * 100.0, change.from_mhz, change.to_mhz);
            let reason = format!("{whose} fell by {percent:.0} % under load, from {from:.0} to {to:.0} MHz");
            findings.push((Verdict::Throttled, reason));
        }
    }
}

fn stability(evidence: &Evidence<'_>, findings: &mut Findings) {
    if evidence.warmup_fixed {
        if let Some(seconds) = evidence.budget.warmup_s {
            let reason = format!("warm-up was fixed at {seconds} s, so a steady state was not waited for");
            findings.push((Verdict::Valid, reason));
        }
    } else if !evidence.settled {
        findings.push((Verdict::Unstable, "warm-up ended without reaching a steady state".into()));
    }
    let rounds = evidence.round_p50_ms;
    // The median of a few frames is off by itself, whatever the machine does; how few they are, sampling says.
    let samples = evidence.stats.map_or(0, |stats| stats.n);
    if rounds.len() < 3 || samples < ROUND_NEEDS * rounds.len() as u64 {
        return;
    }
    let middle = middle_of(rounds);
    let off = rounds.iter().filter(|&&p| p > middle * ROUND_SPREAD || p * ROUND_SPREAD < middle).count();
    if off > 0 {
        let (lo, hi) = rounds.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), &p| (lo.min(p), hi.max(p)));
        let (n, are) = (rounds.len(), if off == 1 { "is" } else { "are" });
        let reason =
            format!("{off} of {n} rounds {are} off the others by more than 10 %: medians from {lo:.2} to {hi:.2} ms");
        let few = off as f64 <= n as f64 * ROUNDS_OFF;
        findings.push((if few { Verdict::Valid } else { Verdict::Unstable }, reason));
    }
    if let Some(drift) = drift(rounds).filter(|d| d.abs() > ROUND_DRIFT) {
        let (percent, way) = (drift.abs() * 100.0, if drift > 0.0 { "slower" } else { "faster" });
        let reason = format!("the cell became {percent:.0} % {way} from the first to the last third of its rounds");
        findings.push((Verdict::Unstable, reason));
    }
}

/// Relative change from the first to the last third of the rounds, where the middle lies between them.
fn drift(rounds: &[f64]) -> Option<f64> {
    let third = rounds.len() / 3;
    let first = middle_of(&rounds[..third]);
    let middle = middle_of(&rounds[third..rounds.len() - third]);
    let last = middle_of(&rounds[rounds.len() - third..]);
    let monotone = first <= middle && middle <= last || first >= middle && middle >= last;
    (monotone && first > 0.0).then(|| last / first - 1.0)
}

/// Median of a few figures.
fn middle_of(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

fn sampling(evidence: &Evidence<'_>, findings: &mut Findings) {
    let Some(stats) = evidence.stats else {
        findings.push((Verdict::Undersampled, "no sample was taken in the steady state".into()));
        return;
    };
    if stats.n < P90_NEEDS {
        let of_frames = if evidence.batch > 1 { format!(" of {} frames", evidence.batch) } else { String::new() };
        let (samples, are) = (counted(stats.n, "sample"), if stats.n == 1 { "is" } else { "are" });
        let reason = format!("{samples}{of_frames} {are} too few, {P90_NEEDS} are needed; measure longer");
        findings.push((Verdict::Undersampled, reason));
    }
    match relative_half_width(stats) {
        Some(width) if width > WIDEST_HALF_WIDTH => {
            let percent = width * 100.0;
            let reason = format!("the median is only known within {percent:.1} %, 5 % is the most; measure longer");
            findings.push((Verdict::Undersampled, reason));
        }
        Some(width) if width > TARGET_HALF_WIDTH => {
            let percent = width * 100.0;
            findings.push((Verdict::Valid, format!("the median is known within {percent:.1} %, wider than 1 %")));
        }
        Some(_) => {}
        None => findings.push((Verdict::Undersampled, "too few samples for an interval of the median".into())),
    }
}

fn gaps(evidence: &Evidence<'_>, findings: &mut Findings) {
    if evidence.lost_samples > 0 {
        let (lost, were) = (counted(evidence.lost_samples, "sample"), was(evidence.lost_samples));
        findings.push((Verdict::Unknown, format!("{lost} {were} lost because the ring was full")));
    }
    let mut failed: Vec<&str> = evidence.telemetry.iter().flat_map(|r| r.failed.iter().map(String::as_str)).collect();
    failed.sort_unstable();
    failed.dedup();
    if !failed.is_empty() {
        let names = failed.join(", ");
        findings.push((Verdict::Unknown, format!("sensors that exist could not be read: {names}")));
    }
    if evidence.check.is_none() {
        findings.push((Verdict::Unknown, "the outputs were not checked".into()));
    }
    if evidence.telemetry.is_empty() {
        let reason = "no sensor was read while it was timed, so throttling could not be ruled out";
        findings.push((Verdict::Valid, reason.into()));
    } else if !watches_clocks(evidence.telemetry) {
        findings.push((Verdict::Valid, NO_SENSOR.into()));
    }
}

fn variety(input: Option<&InputRecord>, findings: &mut Findings) {
    let Some(input) = input else { return };
    // Tensors are for models that are no detectors: no pictures, no NMS.
    let pictures = !["random", "tensors in"].iter().any(|start| input.source.starts_with(start));
    if pictures && input.frames < USUAL_FRAMES {
        let frames = counted(input.frames.into(), "distinct frame");
        let reason = format!("only {frames}, so caches and NMS saw little variety; {USUAL_FRAMES} are usual");
        findings.push((Verdict::Valid, reason));
    }
    let skipped = input.skipped.len() as u64;
    if skipped > 0 {
        let (files, were) = (counted(skipped, "file"), was(skipped));
        findings.push((Verdict::Valid, format!("{files} could not be used and {were} skipped")));
    }
}

fn counted(n: u64, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

fn was(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
