//! What a worker is told: one [`Job`] when it starts, then [`Command`]s, each a line of JSON on its stdin.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{CellSpec, EvaluateOrder, InputSpec, InspectJob, PostSpec, PrepareJob, RewriteJob, RuntimeName, SceneKind};

/// Version of what passes between parent and worker. They are the same binary; this catches a stale one.
pub const WORKER_PROTOCOL: u32 = 7;

/// The first line on a worker's stdin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "kebab-case")]
pub enum Job {
    /// Open a library and say what it is.
    Discover(DiscoverJob),
    /// Build an engine, or find it in the cache.
    Prepare(PrepareJob),
    /// Rewrite a graph, or find it in the cache.
    Rewrite(RewriteJob),
    /// Open an engine and say what is in it.
    Inspect(InspectJob),
    /// Run a model in fp32 and keep its outputs.
    Reference(ReferenceJob),
    /// Load a cell and time it in rounds.
    Measure(MeasureJob),
}

/// A library to open, in a process that may crash of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiscoverJob {
    /// Must equal [`WORKER_PROTOCOL`].
    pub protocol: u32,
    /// What it should be.
    pub name: RuntimeName,
    /// Its file.
    #[serde(with = "crate::os_text::path")]
    pub path: PathBuf,
}

/// Outputs that cells are held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceJob {
    /// Must equal [`WORKER_PROTOCOL`].
    pub protocol: u32,
    /// Model, backend and shape of the reference.
    pub cell: CellSpec,
    /// What it is fed.
    pub input: InputSpec,
    /// Of which kind built-in scenes are: that which fits the cells.
    pub scenes: SceneKind,
    /// What becomes of its outputs.
    pub post: PostSpec,
    /// By how much of its value an input is moved to see how far rounding carries the outputs.
    pub epsilon: f64,
    /// Where the outputs go.
    #[serde(with = "crate::os_text::path")]
    pub file: PathBuf,
    /// Descriptor of the ring that shows signs of life, inherited from the parent.
    pub ring_fd: i32,
}

/// All a worker needs to measure one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureJob {
    /// Must equal [`WORKER_PROTOCOL`].
    pub protocol: u32,
    /// The cell.
    pub cell: CellSpec,
    /// Which of the streams this is; 0 when there is one.
    pub slot: u32,
    /// What it is fed.
    pub input: InputSpec,
    /// What becomes of its outputs.
    pub post: PostSpec,
    /// Seconds of warm-up asked for; `None` until steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// The cell's folder: thumbnails and detections go there.
    #[serde(with = "crate::os_text::path")]
    pub folder: PathBuf,
    /// Descriptor of the sample ring, inherited from the parent.
    pub ring_fd: i32,
    /// A fault to inject, in tests of faults that nothing real produces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// What a fault-injecting session does. Reachable through the environment of a test alone, never listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Outputs turn into NaN at the nth call.
    NanAt(u64),
    /// The call returns an error at the nth call.
    ErrorAt(u64),
    /// The process aborts at the nth call, as a crashing driver would.
    AbortAt(u64),
    /// The nth call never returns.
    HangAt(u64),
    /// Outputs change from call to call.
    Drift,
    /// A call takes longer every time.
    SlowDown,
    /// The nth call takes two seconds, as if the process had been stopped.
    StallAt(u64),
    /// The counters say that others took so many percent of the CPU time, whatever the machine does: 0 is a quiet one.
    OthersTake(u32),
    /// Something prints to stdout, as C++ libraries do.
    PrintToStdout,
}

/// A later line on a worker's stdin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// Warm up, then answer `Steady`.
    WarmUp,
    /// Time frames one at a time for so long (or so many), then answer `RoundDone`.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// Seconds.
        seconds: f64,
        /// At most this many samples.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_samples: Option<u64>,
    },
    /// Keep several in flight for so long, then answer `Throughput`.
    Throughput {
        /// Seconds.
        seconds: f64,
    },
    /// Run a data set through the session and write its boxes, then answer `Evaluated`.
    Evaluate(Box<EvaluateOrder>),
    /// Check outputs, draw thumbnails, count where nodes ran, answer `Finished`, exit 0.
    Finish {
        /// The reference's outputs, where there are some.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::os_text::option")]
        reference: Option<PathBuf>,
    },
}

/// What a sample was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The very first frame.
    Cold,
    /// Before the steady state.
    Warmup,
    /// Counts: one in flight.
    Steady,
    /// Several in flight; latency of these says little.
    Throughput,
}

impl Phase {
    /// The word used in `samples.csv`.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Cold => "cold",
            Phase::Warmup => "warmup",
            Phase::Steady => "steady",
            Phase::Throughput => "throughput",
        }
    }
}
