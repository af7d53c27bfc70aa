//! What a worker says: one [`Event`] a line on its event pipe. Samples do not travel here but through the ring.

use serde::{Deserialize, Serialize};

use crate::{
    Agreement, ArtifactSpec, BackendRecord, BuildProgress, ConsistencyCheck, DeviceUse, EngineRecord, EvaluatedData,
    GpuRecord, LayersRecord, LoadCounters, ModelInfo, OutputsRecord, PlacementRecord, TensorSpec, Thumbnail,
};

/// Something that happened in a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// Id of the cell.
    pub cell: String,
    /// Which stream of the worker.
    pub slot: u32,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of [`Event`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// The worker lives and has read its job.
    Started {
        /// Its process.
        pid: u32,
        /// Its version of Prony.
        version: String,
    },
    /// The session is there.
    Loaded {
        /// Time to load the model and make the session.
        load_ms: f64,
        /// What executes.
        backend: BackendRecord,
        /// The model as data.
        model: Box<ModelInfo>,
        /// Inputs of the session.
        inputs: Vec<TensorSpec>,
        /// Arithmetic that is really executed, proved by the session.
        executed: String,
        /// Highest resident memory of the process while it was loaded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_peak_bytes: Option<u64>,
        /// Device memory when it was loaded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<DeviceUse>,
    },
    /// The first frame went through.
    Cold {
        /// Its `total`.
        total_ms: f64,
        /// The head that was chosen for the outputs, in words.
        head: String,
        /// The outputs as they really are.
        outputs: Vec<TensorSpec>,
    },
    /// The frames are resident.
    Frames {
        /// How many distinct ones.
        count: u32,
        /// Width and height of the first.
        size: Option<[u32; 2]>,
        /// Memory they take in the worker.
        resident_bytes: u64,
        /// What they are, in words.
        source: String,
        /// Hash of all of them.
        sha256: String,
        /// How long each file took to decode; empty where nothing is decoded.
        #[serde(default)]
        decode_ns: Vec<u64>,
        /// Files that could not be used, each with its reason.
        skipped: Vec<String>,
    },
    /// The raw outputs of the first frame were hashed.
    Hashed {
        /// Which frame, and the hash.
        outputs: OutputsRecord,
    },
    /// Warm-up is over.
    Steady {
        /// Frames of the warm-up.
        samples: u64,
        /// How long it took.
        seconds: f64,
        /// Whether a steady state was reached (or warm-up had a fixed length).
        settled: bool,
    },
    /// A round is over; its samples are in the ring.
    RoundDone {
        /// Which.
        round: u32,
        /// Its samples.
        samples: u64,
        /// How long they took.
        seconds: f64,
        /// What else ran on the machine meanwhile; absent where the worker does not do the work itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        load: Option<LoadCounters>,
    },
    /// Several in flight, for a while.
    Throughput {
        /// Frames completed.
        frames: u64,
        /// Wall time.
        seconds: f64,
        /// Calls in flight.
        in_flight: u32,
    },
    /// How far an evaluation is.
    Evaluating {
        /// Images that went through.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// The boxes of a data set are in their file, or there are none.
    Evaluated {
        /// What became of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Box<EvaluatedData>>,
        /// Why there is nothing; neither of the two where it was interrupted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<EvaluationProblem>,
    },
    /// Whether the cell agrees with itself.
    Consistent {
        /// What was tried.
        checks: Vec<ConsistencyCheck>,
    },
    /// What the outputs look like.
    Checked {
        /// Findings of the self-check.
        check: OutputCheck,
        /// Against the reference, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agreement: Option<Agreement>,
        /// Why there is none although a reference was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        no_agreement: Option<String>,
        /// Pictures of detections.
        thumbnails: Vec<Thumbnail>,
    },
    /// Where the nodes of the graph ran, counted in a pass of its own.
    Placed {
        /// The count; absent where it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placement: Option<PlacementRecord>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// What the layers of the engine compute in, found in a pass of its own.
    Layers {
        /// The count; absent where it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        layers: Option<LayersRecord>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// An artifact is being made.
    Building(BuildProgress),
    /// The artifact is there.
    Prepared {
        /// Its file and hash.
        artifact: ArtifactSpec,
        /// How long it took to build, now or when it was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build_ms: Option<f64>,
        /// Why it was built although there was one like it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rebuilt_because: Option<String>,
        /// What else was decided and should be known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// An engine was opened and described.
    Inspected(Box<EngineRecord>),
    /// A library was opened and said what it is.
    Discovered {
        /// Its version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// What it brings: providers, devices.
        #[serde(default)]
        provides: Vec<String>,
        /// The GPUs it sees.
        #[serde(default)]
        gpus: Vec<GpuRecord>,
    },
    /// The reference's outputs are in their file.
    Referenced {
        /// What computed them, in words.
        by: String,
        /// Frames whose outputs were kept.
        frames: u32,
    },
    /// The last event of a worker that did its work.
    Finished {
        /// Highest resident memory of the process.
        host_peak_bytes: u64,
        /// Device memory that it had taken when it was warm.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<DeviceUse>,
    },
    /// The last event of a worker that could not.
    Failed {
        /// Whose fault.
        kind: FailureKind,
        /// The thing, the reason, the next step.
        message: String,
        /// Device memory as it was, where that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<DeviceUse>,
    },
}

/// Why a data set was not scored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationProblem {
    /// Whose fault.
    pub kind: FailureKind,
    /// The thing and the reason.
    pub message: String,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The model file cannot be read or is not one.
    Model,
    /// The input cannot be used.
    Input,
    /// The outputs fit no head.
    Head,
    /// The backend cannot do it here.
    Unsupported,
    /// It went beyond a limit that was asked for.
    Budget,
    /// The backend failed while running.
    Runtime,
    /// Prony's own.
    Internal,
}

/// Findings about outputs, needing no data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputCheck {
    /// Calls whose outputs held a NaN or an infinity.
    pub non_finite_calls: u64,
    /// Calls that were looked at.
    pub checked_calls: u64,
    /// Boxes over all resident frames; `None` where there is no head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detections: Option<u64>,
    /// Whether boxes must be there: a built-in model on its own scenes.
    pub detections_expected: bool,
    /// The same frame gave the same output before and after the measurement.
    pub repeatable: bool,
}
