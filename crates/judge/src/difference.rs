//! One cell against another.
//!
//! Cells are measured in interleaved rounds, so round i of one stands beside round i of the other and whatever the
//! machine did at that time they share. The interval is therefore that of the paired logarithms of the rounds' medians,
//! and never narrower than what the samples within the rounds allow. Cells that were not loaded together have no round in
//! common: their interval comes from the scatter of each one's own rounds, as that of two runs does, and it is too narrow by
//! whatever the machine did between them; so they are told apart only where both held still. A difference is only called one when the whole
//! interval lies outside a region of practical equivalence: two processes of one binary differ by up to 2 % through
//! memory layout alone, so less than that says nothing about the engines. And two cells are only called the same when the
//! interval is narrow enough to leave no room for a difference that would matter: too little data is not sameness.

use prony_types::{BackendName, CellRecord, CellStatus, Comparison, Difference, Precision, Stage, Verdict};

use crate::stats::{CI_NEEDS, median_ns, summarize};
use crate::student::t975;
use crate::unpaired::{DOUBTFUL, doubts, welch};

/// Ratios from 1/1.02 to 1.02 are the same for all practical purposes.
pub const EQUIVALENCE: f64 = 1.02;

/// An interval that reaches beyond 1/1.25 or 1.25 and shows no difference is too wide to tell anything: a quarter more or
/// less time a frame decides which engine is shipped, and it could not be ruled out.
pub const TELLING: f64 = 1.25;

/// Rounds that both must have for a paired interval.
const PAIRED_ROUNDS: usize = 3;

/// What the samples of two cells say about each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// Ratio of the overall medians.
    pub ratio: f64,
    /// Its 95 % interval; absent where the samples are too few for one.
    pub ci95: Option<[f64; 2]>,
    /// Rounds that both have.
    pub common_rounds: usize,
    /// The word for it.
    pub difference: Difference,
}

/// `cell` over `against`; `None` when one of the two has no samples. Durations by round, in nanoseconds; rounds are paired
/// by index, an empty one is no pair.
///
/// `Same` is only said of an interval that lies within [`TELLING`], `Inconclusive` where the data cannot tell.
pub fn compare(cell: &[Vec<u64>], against: &[Vec<u64>]) -> Option<Contrast> {
    let (all_cell, all_against) = (cell.concat(), against.concat());
    let ratio = median(&all_cell)? / median(&all_against)?;
    let log_ratio = log_ratio(&all_cell, &all_against)?;
    let pairs: Vec<Pair> = cell.iter().zip(against).filter_map(|(c, a)| Pair::new(c, a)).collect();
    let (lo, hi, samples) = if pairs.len() >= PAIRED_ROUNDS {
        let (lo, hi) = paired(&pairs);
        (lo, hi, pairs.iter().fold([0, 0], |[c, a], p| [c + p.samples[0], a + p.samples[1]]))
    } else {
        let medians = log_half_width(&all_cell).hypot(log_half_width(&all_against));
        let half = medians.max(welch(&round_medians(cell), &round_medians(against)).unwrap_or(0.0));
        (log_ratio - half, log_ratio + half, [all_cell.len(), all_against.len()])
    };
    // The ratio that is printed lies in the interval that is printed.
    let (lo, hi) = (lo.min(log_ratio), hi.max(log_ratio));
    let shown = samples.iter().all(|&n| n >= CI_NEEDS);
    let difference = match word(shown.then_some([lo, hi])) {
        // What the machine did between the two is in no interval.
        Difference::Same if pairs.len() < PAIRED_ROUNDS && log_ratio.abs() > DOUBTFUL.ln() => Difference::Inconclusive,
        word => word,
    };
    let ci95 = shown.then(|| [lo.exp().min(ratio), hi.exp().max(ratio)]);
    Some(Contrast { ratio, ci95, common_rounds: pairs.len(), difference })
}

/// The word for an interval of log-ratios; without one there is nothing to tell.
pub(crate) fn word(interval: Option<[f64; 2]>) -> Difference {
    let (margin, widest) = (EQUIVALENCE.ln(), TELLING.ln());
    match interval {
        None => Difference::Inconclusive,
        Some([_, hi]) if hi < -margin => Difference::Faster,
        Some([lo, _]) if lo > margin => Difference::Slower,
        Some([lo, hi]) if lo < -widest || hi > widest => Difference::Inconclusive,
        Some(_) => Difference::Same,
    }
}

impl Contrast {
    /// What the word rests on.
    fn reason(&self) -> String {
        let Contrast { ratio, common_rounds, .. } = *self;
        let basis = if common_rounds >= PAIRED_ROUNDS {
            format!("over {common_rounds} paired rounds")
        } else {
            format!("not paired ({common_rounds} rounds in common, {PAIRED_ROUNDS} are needed)")
        };
        let Some([lo, hi]) = self.ci95 else { return format!("too few samples to tell, {basis}") };
        let figures = format!("{ratio:.3} times the median latency, 95 % CI {lo:.3} to {hi:.3} {basis}");
        match self.difference {
            Difference::Inconclusive | Difference::NotComparable => {
                format!("{figures}, which is too wide to tell; measure longer or on a quieter machine")
            }
            Difference::Same => format!("{figures}, which does not lie wholly beyond 2 %"),
            Difference::Faster | Difference::Slower => figures,
        }
    }
}

/// One round of both cells.
struct Pair {
    /// Logarithm of the ratio of the medians.
    log_ratio: f64,
    /// Its half width from the samples of this round alone.
    within: f64,
    /// How many samples each has in it.
    samples: [usize; 2],
}

impl Pair {
    fn new(cell: &[u64], against: &[u64]) -> Option<Pair> {
        Some(Pair {
            log_ratio: log_ratio(cell, against)?,
            within: log_half_width(cell).hypot(log_half_width(against)),
            samples: [cell.len(), against.len()],
        })
    }
}

/// Interval of the log-ratios' centre. With enough rounds it is that of their median, by ranks: a neighbour's burst in a
/// round or two of one cell then moves nothing. With few it is Student's, of the mean. The scatter between rounds already
/// holds the noise within them, but rounds can agree by chance; so it is never narrower than that noise.
fn paired(pairs: &[Pair]) -> (f64, f64) {
    let k = pairs.len();
    let mut ratios: Vec<f64> = pairs.iter().map(|p| p.log_ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let within = pairs.iter().map(|p| p.within.powi(2)).sum::<f64>().sqrt() / k as f64;
    let (lo, hi) = match rank_from_either_end(k) {
        Some(rank) => (ratios[rank], ratios[k - 1 - rank]),
        None => {
            let mean = ratios.iter().sum::<f64>() / k as f64;
            let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (k - 1) as f64;
            let half = t975(k - 1) * (variance / k as f64).sqrt();
            (mean - half, mean + half)
        }
    };
    let (centre, half) = ((lo + hi) / 2.0, (hi - lo) / 2.0);
    (centre - half.max(within), centre + half.max(within))
}

/// How many of the smallest and of the largest of `n` values lie outside a 95 % interval of their median; `None` where
/// not even one may. The count of values below the median is binomial with one half.
fn rank_from_either_end(n: usize) -> Option<usize> {
    let mut term = 0.5f64.powi(i32::try_from(n).ok()?);
    let mut tail = 0.0;
    let mut rank = 0;
    while tail + term <= 0.025 {
        tail += term;
        rank += 1;
        term *= (n + 1 - rank) as f64 / rank as f64;
    }
    (rank > 1).then(|| rank - 1)
}

/// A difference of logarithms and not the logarithm of a quotient: that of the cells swapped is its negative to the bit.
fn log_ratio(cell: &[u64], against: &[u64]) -> Option<f64> {
    Some(median(cell)?.ln() - median(against)?.ln())
}

/// Median in nanoseconds; a clock that read 0 counts as one nanosecond, because ratios need it.
fn median(samples: &[u64]) -> Option<f64> {
    median_ns(&mut samples.to_vec()).map(|m| m.max(1.0))
}

/// Median of every round that has samples.
fn round_medians(rounds: &[Vec<u64>]) -> Vec<f64> {
    rounds.iter().filter_map(|round| median(round)).collect()
}

/// Half the median's interval on the scale of logarithms; half the range where there are too few samples for one.
fn log_half_width(samples: &[u64]) -> f64 {
    let Some(stats) = summarize(samples) else { return 0.0 };
    let [lo, hi] = stats.ci95.unwrap_or([stats.min, stats.max]);
    (hi.max(1e-6) / lo.max(1e-6)).ln() / 2.0
}

/// Every completed cell in a narrow precision against its sister in fp32: the same model on the same backend. `rounds`
/// gives a cell's steady samples of `total` by round, see [`crate::by_round`].
pub fn narrowings(cells: &[CellRecord], rounds: &dyn Fn(&str) -> Vec<Vec<u64>>) -> Vec<Comparison> {
    let timed = |cell: &&CellRecord| cell.status == CellStatus::Completed && frame_ms(cell).is_some();
    let narrow = cells.iter().filter(timed).filter(|cell| is_narrow(cell.precision.requested));
    let pairs = narrow.filter_map(|cell| Some((cell, sister(cells, cell, Precision::Fp32).filter(timed)?)));
    pairs.map(|(cell, sister)| pair(cell, sister, rounds)).collect()
}

/// The completed cell of the same model, backend and batch in another precision.
pub(crate) fn sister<'a>(cells: &'a [CellRecord], of: &CellRecord, precision: Precision) -> Option<&'a CellRecord> {
    cells.iter().find(|cell| {
        cell.status == CellStatus::Completed
            && cell.precision.requested == precision
            && cell.model.sha256 == of.model.sha256
            && cell.backend.name == of.backend.name
            && cell.batch == of.batch
    })
}

fn is_narrow(precision: Precision) -> bool {
    matches!(precision, Precision::Fp16 | Precision::Bf16 | Precision::Int8 | Precision::Fp8 | Precision::Nvfp4)
}

/// Completed cells with figures, a list a model in the order of the plan, the fastest first. Cells with wrong outputs go
/// last: what is fast because it computes something else is no measure for the others. So do those that another tool
/// measured by a definition of its own.
pub(crate) fn models(cells: &[CellRecord]) -> Vec<Vec<&CellRecord>> {
    let mut models: Vec<Vec<&CellRecord>> = Vec::new();
    for cell in cells.iter().filter(|c| c.status == CellStatus::Completed && frame_ms(c).is_some()) {
        match models.iter_mut().find(|m| m[0].model.sha256 == cell.model.sha256) {
            Some(model) => model.push(cell),
            None => models.push(vec![cell]),
        }
    }
    for model in &mut models {
        let key = |c: &CellRecord| frame_ms(c).unwrap_or(f64::INFINITY);
        let last = |c: &CellRecord| (is_wrong(c), is_another_tools(c));
        model.sort_by(|a, b| last(a).cmp(&last(b)).then(key(a).total_cmp(&key(b))));
    }
    models
}

/// By hash and by name: files that cannot be read all have the same hash, which is none.
pub(crate) fn same_model(a: &CellRecord, b: &CellRecord) -> bool {
    (&a.model.sha256, &a.model.name) == (&b.model.sha256, &b.model.name)
}

/// Median time a frame.
pub(crate) fn frame_ms(cell: &CellRecord) -> Option<f64> {
    cell.latency_ms.get(&Stage::Total).map(|stats| stats.p50 / f64::from(cell.batch.max(1)))
}

/// Whether the figures are another tool's, who means something else by a total.
pub(crate) fn is_another_tools(cell: &CellRecord) -> bool {
    cell.backend.name == BackendName::Trtexec.name()
}

pub(crate) fn is_wrong(cell: &CellRecord) -> bool {
    cell.verdict == Some(Verdict::WrongOutput)
}

/// One cell against another of the same run.
pub(crate) fn pair(cell: &CellRecord, anchor: &CellRecord, rounds: &dyn Fn(&str) -> Vec<Vec<u64>>) -> Comparison {
    let mut comparison = Comparison {
        cell: cell.id.clone(),
        against: anchor.id.clone(),
        ratio: None,
        ci95: None,
        paired_rounds: None,
        difference: Difference::NotComparable,
        reason: String::new(),
    };
    let unlike = unlike(cell, anchor);
    if !unlike.is_empty() {
        comparison.reason = format!("not measured alike: {}", unlike.join("; "));
        return comparison;
    }
    let Some(contrast) = compare(&rounds(&cell.id), &rounds(&anchor.id)) else {
        comparison.reason = "the samples of one of the two are missing".into();
        return comparison;
    };
    comparison.difference = contrast.difference;
    comparison.reason = contrast.reason();
    comparison.paired_rounds = Some(u32::try_from(contrast.common_rounds).unwrap_or(u32::MAX));
    if contrast.common_rounds < PAIRED_ROUNDS {
        // Where one did not hold still, no interval says how far it is from another that ran at another time.
        let restless = doubts((&cell.id, cell), (&anchor.id, anchor));
        if let [first, ..] = &restless[..] {
            comparison.difference = Difference::Inconclusive;
            comparison.reason += &format!("; {first}");
        }
    }
    comparison.ratio = contrast.ci95.map(|_| contrast.ratio);
    comparison.ci95 = contrast.ci95;
    comparison
}

/// What was not the same for both, in words.
fn unlike(a: &CellRecord, b: &CellRecord) -> Vec<String> {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let mut out = Vec::new();
    if a.batch != b.batch {
        out.push(format!("batch {} against {}", a.batch, b.batch));
    } else if a.model.input != b.model.input {
        out.push(format!("input {} against {}", shown(&a.model.input), shown(&b.model.input)));
    }
    if a.model.head != b.model.head {
        out.push(format!("head {} against {}", shown(&a.model.head), shown(&b.model.head)));
    }
    let frames = |cell: &CellRecord| cell.input.as_ref().map(|i| i.sha256.clone());
    if frames(a) != frames(b) {
        out.push("other frames".into());
    }
    for cell in [a, b].into_iter().filter(|c| is_another_tools(c)) {
        out.push(format!("{} is timed by another definition", cell.id));
    }
    for cell in [a, b].into_iter().filter(|c| is_wrong(c)) {
        out.push(format!("outputs of {} are wrong", cell.id));
    }
    out
}

#[cfg(test)]
#[path = "unpaired_tests.rs"]
mod unpaired_tests;

#[cfg(test)]
#[path = "difference_tests.rs"]
pub(crate) mod tests;
