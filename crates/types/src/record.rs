//! What was measured: the contract of `report.json`. Absent means not measured, never 0.

mod agreement;
mod load;
mod memory;
mod outputs;
mod waves;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AccuracyComparison, AccuracyRecord, CellSpec, Difference, Environment, LayersRecord, ModelInfo, Plan, Precision,
    RooflineRecord, Stage, Verdict,
};

pub use agreement::{Agreement, ConsistencyCheck, Sensitivity, TensorAgreement};
pub use load::{LoadCounters, LoadRecord, LoadSnapshot, Stall, ThreadLoad};
pub use memory::{MemoryRecord, MemorySafety};
pub use outputs::OutputsRecord;
pub use waves::{OutOfMemory, WaveRecord};

/// Version of the format of `report.json`. Readers refuse others.
pub const SCHEMA: &str = "prony.run/1";

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum ExitCode {
    /// Every requested cell completed and every gate held.
    Ok,
    /// A requested cell failed.
    CellFailed,
    /// Wrong usage or bad input; nothing ran.
    Usage,
    /// A gate, budget, regression, `wrong-output` or unpermitted `fell-back`.
    Gate,
    /// Inconclusive: nothing is known to be wrong, but something asked for could not be decided; measure again.
    Inconclusive,
    /// Interrupted; what was measured is kept.
    Interrupted,
}

impl From<ExitCode> for u8 {
    fn from(code: ExitCode) -> u8 {
        match code {
            ExitCode::Ok => 0,
            ExitCode::CellFailed => 1,
            ExitCode::Usage => 2,
            ExitCode::Gate => 3,
            ExitCode::Inconclusive => 4,
            ExitCode::Interrupted => 130,
        }
    }
}

impl TryFrom<u8> for ExitCode {
    type Error = String;

    fn try_from(n: u8) -> Result<ExitCode, String> {
        use ExitCode::{CellFailed, Gate, Inconclusive, Interrupted, Ok as Success, Usage};
        [Success, CellFailed, Usage, Gate, Inconclusive, Interrupted]
            .into_iter()
            .find(|&code| u8::from(code) == n)
            .ok_or_else(|| format!("{n} is not an exit code of prony"))
    }
}

/// A run: everything that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The run itself.
    pub run: RunInfo,
    /// The machine.
    pub environment: Environment,
    /// How it was measured.
    pub method: MethodRecord,
    /// What was asked.
    pub plan: Plan,
    /// What came out, in the order of the plan.
    pub cells: Vec<CellRecord>,
    /// Which cells were loaded together, in the order in which they were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<WaveRecord>,
    /// Cells of one model against the one that is recommended, or the fastest where none is.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// Cells in a narrow precision against the same model and backend in fp32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowings: Vec<Comparison>,
    /// mAP of the cells of one model against its reference row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accuracy_comparisons: Vec<AccuracyComparison>,
    /// Limits and whether they held.
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// Memory against its limit, over all cells.
    pub memory_safety: MemorySafety,
    /// What to ship: one entry per model, and one more where several models were scored on the same images.
    #[serde(default)]
    pub recommendation: Vec<Recommendation>,
}

/// Identity of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Name of the run folder.
    pub id: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// RFC 3339, UTC; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// Version and commit of Prony.
    pub version: String,
    /// Hash of the executable: a run is resumed by the same binary only.
    pub binary_sha256: String,
    /// Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<ExitCode>,
    /// CLOCK_MONOTONIC at `started`: places every `t_ns` on the wall clock.
    pub anchor_ns: u64,
    /// Later sittings of a resumed run, with clocks of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Sitting>,
    /// Seconds from start to finish, over all sittings of a resumed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Whether host name and paths were left out.
    #[serde(default)]
    pub redacted: bool,
}

/// When a run was taken up again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sitting {
    /// RFC 3339, UTC.
    pub started: String,
    /// CLOCK_MONOTONIC at `started`.
    pub anchor_ns: u64,
}

/// How every row was measured; one method for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodRecord {
    /// Clock of `total`.
    pub clock: String,
    /// What `total` spans.
    pub total: String,
    /// Warm-up rule.
    pub warmup: String,
    /// Stopping rule.
    pub stopping: String,
    /// Order of the cells.
    pub schedule: String,
    /// How intervals are made.
    pub intervals: String,
    /// Samples that each percentile needs.
    pub percentiles: String,
    /// How two cells are compared.
    pub comparison: String,
    /// How throughput is measured.
    pub throughput: String,
    /// How far runs of the same cell scatter, each in a process of its own: no interval of one run can say. Absent until
    /// there is a history of runs to tell it from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_runs: Option<String>,
}

/// Whether a cell ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellStatus {
    /// Not yet; only in the record of a run that is under way.
    Pending,
    /// Measured.
    Completed,
    /// Not run, see the reason.
    Skipped,
    /// Tried and failed, see the reason.
    Failed,
    /// Cut short by the user.
    Interrupted,
}

impl CellStatus {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CellStatus::Pending => "pending",
            CellStatus::Completed => "completed",
            CellStatus::Skipped => "skipped",
            CellStatus::Failed => "failed",
            CellStatus::Interrupted => "interrupted",
        }
    }
}

/// The row of a report: one cell, one artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// Id of the cell.
    pub id: String,
    /// Name of its folder under `cells/`.
    pub slug: String,
    /// The model.
    pub model: ModelRecord,
    /// What executed it.
    pub backend: BackendRecord,
    /// Arithmetic asked for and executed.
    pub precision: PrecisionRecord,
    /// What really ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRecord>,
    /// Frames a call.
    pub batch: u32,
    /// Whether it ran.
    pub status: CellStatus,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// How an earlier try of the same run ended for want of memory; this one had the machine to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<OutOfMemory>,
    /// Whether the figures can be trusted; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why, or what else to know.
    #[serde(default)]
    pub verdict_reasons: Vec<String>,
    /// Steady state, one in flight, by stage.
    #[serde(default)]
    pub latency_ms: LatencyRecord,
    /// Cold, first second, steady.
    #[serde(default)]
    pub phases: Phases,
    /// Frames a second of wall time, sessions kept busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_fps: Option<f64>,
    /// Calls in flight while throughput was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    /// Time to load the model and make the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_ms: Option<f64>,
    /// Memory of the worker.
    #[serde(default)]
    pub memory: MemoryRecord,
    /// Time it took to build the artifact, now or when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_ms: Option<f64>,
    /// Where the nodes of the graph ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementRecord>,
    /// What the layers of the engine compute in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<LayersRecord>,
    /// The time below which nothing can come on this device, and how near it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<RooflineRecord>,
    /// Why there is no such floor, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline_absent: Option<String>,
    /// What another tool would call these figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equivalents: Vec<Equivalent>,
    /// Outputs against a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// Why there is no agreement, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement_absent: Option<String>,
    /// Whether it gives the same for the same, needing no data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consistency: Vec<ConsistencyCheck>,
    /// How right it is, on data with ground truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<AccuracyRecord>,
    /// Why there is no accuracy although data was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_absent: Option<String>,
    /// What it was fed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputRecord>,
    /// Raw outputs of one call, as a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<OutputsRecord>,
    /// Boxes a frame, over the timed samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detections_per_frame: Option<f64>,
    /// Temperatures while it was timed, over all zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_c: Option<TempRange>,
    /// What other processes took while it was timed; absent where nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
    /// Times in which it stood still while it was timed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    /// Distribution of `total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// `total` over time.
    #[serde(default)]
    pub timeline: Vec<TimelinePoint>,
    /// Median of `total` by round, in the order of the rounds.
    #[serde(default)]
    pub round_p50_ms: Vec<f64>,
    /// What became of samples that are not in the statistics.
    #[serde(default)]
    pub samples: SampleNote,
    /// Pictures of detections.
    #[serde(default)]
    pub thumbnails: Vec<Thumbnail>,
}

impl CellRecord {
    /// A cell that has not begun.
    pub fn pending(spec: &CellSpec, attempt: u32) -> CellRecord {
        CellRecord {
            id: spec.id.clone(),
            slug: spec.slug(),
            model: ModelRecord {
                name: spec.model.name.clone(),
                sha256: spec.model.identity().to_owned(),
                task: None,
                input: None,
                head: None,
                info: None,
            },
            backend: BackendRecord {
                name: spec.backend.name().to_owned(),
                threads: spec.threads,
                ..BackendRecord::default()
            },
            precision: PrecisionRecord { requested: spec.precision, executed: None },
            artifact: None,
            batch: spec.batch,
            status: CellStatus::Pending,
            reason: None,
            attempt,
            out_of_memory: None,
            verdict: None,
            verdict_reasons: Vec::new(),
            latency_ms: LatencyRecord::default(),
            phases: Phases::default(),
            throughput_fps: None,
            in_flight: None,
            load_ms: None,
            memory: MemoryRecord::default(),
            build_ms: None,
            placement: None,
            layers: None,
            roofline: None,
            roofline_absent: None,
            equivalents: Vec::new(),
            agreement: None,
            agreement_absent: None,
            consistency: Vec::new(),
            accuracy: None,
            accuracy_absent: None,
            input: None,
            outputs: None,
            detections_per_frame: None,
            temp_c: None,
            load: None,
            stalls: Vec::new(),
            histogram: None,
            timeline: Vec::new(),
            round_p50_ms: Vec::new(),
            samples: SampleNote::default(),
            thumbnails: Vec::new(),
        }
    }
}

/// The model of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// What reports call it.
    pub name: String,
    /// Identity, in hex.
    pub sha256: String,
    /// `detect`, `classify`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Shape of the first input, e.g. `1x3x320x320`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The head that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The file as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<ModelInfo>,
}

/// What executed a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BackendRecord {
    /// Name of the backend.
    pub name: String,
    /// Version of the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// File of the library; absent for the embedded engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// The library's provider that was asked for, and the one that really has the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderRecord>,
    /// The device, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// CPU threads it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Where they may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// What else was chosen and matters, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// What the library warned of while it loaded the model, in its own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Who was asked to execute, and who does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderRecord {
    /// Asked for.
    pub requested: String,
    /// The provider that most nodes are with; absent until it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

/// Where the nodes of a graph ran, counted in a profiling pass outside the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacementRecord {
    /// The provider that was asked for.
    pub requested: String,
    /// Each provider that had nodes, most time first.
    pub providers: Vec<ProviderShare>,
}

/// One provider's part of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderShare {
    /// Name without its suffix: `CPU`, `CUDA`, `Tensorrt`, `OpenVINO`.
    pub provider: String,
    /// Its nodes.
    pub nodes: u32,
    /// Share of the time all nodes took, from 0 to 1.
    pub time: f64,
    /// Its operators, most frequent first; a few.
    pub operators: Vec<String>,
}

impl PlacementRecord {
    /// Nodes of the whole graph, as it was executed.
    pub fn nodes(&self) -> u32 {
        self.providers.iter().map(|share| share.nodes).sum()
    }

    /// The provider with the most nodes.
    pub fn main(&self) -> Option<&str> {
        self.providers.iter().max_by_key(|share| share.nodes).map(|share| share.provider.as_str())
    }

    /// Whether every node ran where it was asked to.
    pub fn is_whole(&self) -> bool {
        self.providers.iter().all(|share| share.provider == self.requested)
    }
}

impl std::fmt::Display for PlacementRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asked = self.providers.iter().find(|share| share.provider == self.requested);
        let (nodes, time) = asked.map_or((0, 0.0), |share| (share.nodes, share.time));
        write!(f, "{nodes} of {} nodes on {}, {:.0} % of the time", self.nodes(), self.requested, time * 100.0)
    }
}

/// CPUs that a worker's threads may run on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Affinity {
    /// Their numbers.
    pub cpus: Vec<u32>,
}

/// Arithmetic of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrecisionRecord {
    /// Asked for.
    pub requested: Precision,
    /// Proved by the session; absent when nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed: Option<String>,
}

/// What really ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArtifactRecord {
    /// Its hash.
    pub sha256: String,
    /// Its file; absent for built-in models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether it was made earlier.
    pub from_cache: bool,
    /// Why it was made anew although there was one like it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt_because: Option<String>,
    /// What else was decided in making it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The same measurement by another tool's definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equivalent {
    /// The tool and its versions, e.g. `trtexec 10.x`.
    pub tool: String,
    /// What it calls latency, in words.
    pub definition: String,
    /// Median.
    pub latency_ms: f64,
    /// Calls a second.
    pub throughput_qps: f64,
}

/// Statistics by stage; a stage that does not exist is absent.
pub type LatencyRecord = BTreeMap<Stage, StageStats>;

/// Statistics of one stage. Percentiles only where the samples support them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageStats {
    /// Samples.
    pub n: u64,
    /// Samples that would be independent.
    pub n_eff: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// Needs 64 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<f64>,
    /// Needs 130 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    /// Needs 662 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// Needs 6,636 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<f64>,
    /// Largest.
    pub max: f64,
    /// 95 % interval of the median within this run; absent with fewer than 6 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
}

/// Latency by how long the session has been alive, medians of `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// The very first frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_ms: Option<f64>,
    /// The first second after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_second_ms: Option<f64>,
    /// Steady state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_ms: Option<f64>,
    /// How long warm-up took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
}

/// What a cell was fed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputRecord {
    /// In words: `built-in rgb scenes, seed 7`, `random in [0,1], seed 7`.
    pub source: String,
    /// Distinct frames.
    pub frames: u32,
    /// Width and height of the first frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<[u32; 2]>,
    /// Hash of all frames.
    pub sha256: String,
    /// Memory they take; part of the worker's peak.
    #[serde(default)]
    pub resident_bytes: u64,
    /// Time to decode an image file, apart from everything else; absent where nothing is decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_ms: Option<StageStats>,
    /// Files that could not be used, each with its reason.
    #[serde(default)]
    pub skipped: Vec<String>,
}

/// Lowest, mean and highest temperature.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TempRange {
    /// Lowest.
    pub min: f64,
    /// Mean.
    pub avg: f64,
    /// Highest.
    pub max: f64,
}

/// Counts of `total` in equal steps. The last step also holds everything above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Lower edge of the first step.
    pub lo_ms: f64,
    /// Width of a step.
    pub step_ms: f64,
    /// Samples by step.
    pub counts: Vec<u64>,
    /// Samples above the last step's upper edge, counted in the last step too.
    pub above: u64,
}

/// `total` in one slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelinePoint {
    /// Middle of the slice, seconds since the cell's first timed sample.
    pub t_s: f64,
    /// Median.
    pub p50_ms: f64,
    /// Smallest.
    pub min_ms: f64,
    /// Largest.
    pub max_ms: f64,
    /// Round it belongs to.
    pub round: u32,
}

/// Samples beside those of the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleNote {
    /// Frames that do not count: the cold one, those of the warm-up, the first few of each round.
    pub warmup: u64,
    /// Timed frames, one in flight: those of the statistics.
    pub steady: u64,
    /// Samples that the ring had no room for.
    pub lost: u64,
}

/// A picture of detections, in the cell's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thumbnail {
    /// File name inside the cell's folder.
    pub file: String,
    /// The frame, in words.
    pub caption: String,
}

/// Two cells of one model against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Id of the cell.
    pub cell: String,
    /// Id of the cell it is held against.
    pub against: String,
    /// Median of `cell` over that of `against`; absent when not comparable or when there are too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Rounds in which both were timed, one right after the other; 0 where they were not loaded together, so that whatever the
    /// machine did in the meantime is in the difference. Absent when not comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_rounds: Option<u32>,
    /// The word for it.
    pub difference: Difference,
    /// What makes it so, in words.
    pub reason: String,
}

/// A limit and whether it held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Name of the gate.
    pub name: String,
    /// Id of the cell.
    pub cell: String,
    /// What was measured; absent when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// Whether it held.
    pub pass: bool,
    /// It neither held nor broke: the figure was not measured, or its interval cannot tell. Never together with `pass`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inconclusive: bool,
    /// The row that the figure is relative to, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Why there is no figure, or what to know about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Gate {
    /// Whether the limit is known to be exceeded.
    pub const fn is_broken(&self) -> bool {
        !self.pass && !self.inconclusive
    }
}

/// What to ship for one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// The model.
    pub model: String,
    /// Id of the cell, where there is one to recommend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Ids of the cells on the Pareto front of latency and mAP, fastest first: only in the entry that compares models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub front: Vec<String>,
    /// One sentence.
    pub text: String,
}
