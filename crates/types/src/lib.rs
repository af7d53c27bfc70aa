//! The contract between Prony's rooms.
//!
//! Everything that crosses a boundary (parent to worker, worker to parent, run to report) is a type of this crate.
//! It holds data and the few laws that belong to the data; it does no I/O and depends on serde alone.

mod accuracy;
mod across;
mod detection;
mod engine;
mod environment;
mod event;
mod fate;
mod gate;
mod image;
mod input;
mod job;
mod model;
mod needs;
pub mod os_text;
mod plan;
mod record;
mod resident;
mod rewrite;
mod roofline;
mod run_event;
mod runtime;
mod sample;
mod tensor;
pub mod text;
mod verdict;
mod vocabulary;

pub use accuracy::{
    AccuracyComparison, AccuracyDifference, AccuracyRecord, ChosenImages, ClassAccuracy, ClassMatch, CocoFigures,
    DataRecord, DataSource, DataSpec, EvaluateData, EvaluateOrder, EvaluatedData, EvaluationSpec, PrecisionRecall,
};
pub use across::{
    COMPARE_SCHEMA, FieldDifference, LatencyComparison, MemoryComparison, RowComparison, RowOutcome, RunComparison,
};
pub use detection::{Detection, GroundTruth};
pub use engine::{
    ArtifactSpec, BUILD_TIMEOUT_S, BuildProgress, CalibrationMethod, CalibrationSpec, DeviceUse, EngineIdentity,
    EngineRecord, EngineSpec, InspectJob, LayerShare, LayerTime, LayersRecord, PrepareJob, ProfileShape, TacticSources,
    Violation,
};
pub use environment::{Check, CpuRecord, Environment, GpuRecord, Outcome, PythonPackage, RuntimeRecord, RuntimeState};
pub use event::{EvaluationProblem, Event, EventKind, FailureKind, OutputCheck};
pub use fate::Fate;
pub use gate::{GateName, GateSpec};
pub use image::{Image, PixelFormat, Pixels};
pub use input::{InputSpec, PostSpec, SourceSpec};
pub use job::{Command, DiscoverJob, Fault, Job, MeasureJob, Phase, ReferenceJob, WORKER_PROTOCOL};
pub use model::{ENGINE_ENDINGS, ModelSource, ModelSpec, OriginSpec, is_engine_name};
pub use plan::{ArtifactKind, BudgetSpec, CellSpec, Plan, ReferenceSpec, SampleFloor, slug_of};
pub use record::{
    Affinity, Agreement, ArtifactRecord, BackendRecord, CellRecord, CellStatus, Comparison, ConsistencyCheck,
    Equivalent, ExitCode, Gate, Histogram, InputRecord, LatencyRecord, LoadCounters, LoadRecord, LoadSnapshot,
    MemoryRecord, MemorySafety, MethodRecord, ModelRecord, OutOfMemory, OutputsRecord, Phases, PlacementRecord,
    PrecisionRecord, ProviderRecord, ProviderShare, Recommendation, RunInfo, RunRecord, SCHEMA, SampleNote,
    Sensitivity, Sitting, StageStats, Stall, TempRange, TensorAgreement, ThreadLoad, Thumbnail, TimelinePoint,
    WaveRecord,
};
pub use resident::Resident;
pub use rewrite::{HalfSpec, QuantiseFor, QuantiseSpec, RewriteJob, RewriteSpec};
pub use roofline::{Bound, LayerCost, PeakOrigin, PeakRecord, RooflineRecord};
pub use run_event::{Doing, Happened, RunEvent, RunEventKind};
pub use runtime::{ArenaGrowth, ProviderSpec, RuntimeSpec};
pub use sample::{Sample, Stage, Telemetry};
pub use tensor::{
    DType, Dim, Metadata, ModelFormat, ModelInfo, ModelPart, TensorData, TensorInfo, TensorSpec, TensorView,
};
pub use verdict::{Difference, Verdict};
pub use vocabulary::{BackendName, HeadChoice, Precision, RuntimeName, SceneKind, UnknownName};
