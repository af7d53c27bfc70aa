//! A cell that TensorRT's own benchmark measures. Its figures are its own: other frames, no pre- or post-processing, and a
//! latency that means what that version means by it. So its row says whose it is, and nothing is compared with it.

mod output;
mod program;
mod times;

use prony_backend::{mismatch, open_artifact};
use prony_runtimes::discovery;
use prony_types::{
    BackendRecord, CellSpec, Command, DType, DiscoverJob, EngineIdentity, EvaluationProblem, EventKind, FailureKind,
    MeasureJob, ModelInfo, Phase, RuntimeName, Sample, TensorSpec, WORKER_PROTOCOL,
};

use self::program::{Asked, EngineArgument, Program, Ran, Watch};
use self::times::Query;
use crate::RingWriter;
use crate::channel::Channel;
use crate::failure::Failure;
use crate::planned::open_as_planned;
use prony_work::mortal;

/// Warm-up before each round: a new process begins with cold clocks. trtexec's own choice.
const ROUND_WARM_UP_MS: u32 = 200;
/// The cell's warm-up where nobody gave a length: it cannot look for a steady state.
const WARM_UP_S: f64 = 1.0;
/// Queries in flight: the next is enqueued before the last has ended.
const IN_FLIGHT: u32 = 2;

impl Watch for RingWriter {
    fn alive(&self) {
        self.beat();
    }

    fn stop(&self) -> bool {
        self.asked_to_stop()
    }
}

/// A cell with its first query behind it.
struct Cell {
    program: Program,
    ring: RingWriter,
    batch: u32,
    peak_bytes: u64,
    /// Time a query took last, for a round that is limited in both ways.
    last_ms: f64,
}

/// Does what the parent commands, with a run of the program for each.
pub(crate) fn measure(channel: &mut Channel, job: &MeasureJob) -> Result<(), Failure> {
    let ring = RingWriter::inherit(job.ring_fd).map_err(|e| Failure::new(FailureKind::Internal, e))?;
    let mut cell = load(channel, job, ring)?;
    channel.emit(EventKind::Frames {
        count: 1,
        size: None,
        resident_bytes: 0,
        source: "random values of trtexec's own".to_owned(),
        sha256: "trtexec".to_owned(),
        decode_ns: Vec::new(),
        skipped: Vec::new(),
    })?;
    while let Some(command) = channel.command()? {
        let answer = match command {
            Command::WarmUp => cell.warm_up(job.warmup_s)?,
            Command::Round { round, seconds, max_samples } => cell.round(round, seconds, max_samples)?,
            Command::Throughput { seconds } => cell.throughput(seconds)?,
            Command::Evaluate(_) => {
                let message = "trtexec does not hand its outputs out".to_owned();
                let problem = EvaluationProblem { kind: FailureKind::Unsupported, message };
                EventKind::Evaluated { outcome: None, problem: Some(problem) }
            }
            Command::Finish { .. } => {
                // No word on outputs: it does not hand them out, and the verdict says that they were not checked.
                return Ok(channel.emit(EventKind::Finished { host_peak_bytes: cell.peak_bytes, device: None })?);
            }
        };
        channel.emit(answer)?;
    }
    Err(Failure::new(FailureKind::Internal, "the parent closed the pipe before the end"))
}

fn runtime(reason: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Runtime, reason)
}

/// Finds the program and the engine, and has it run a query: then its inputs are known and that it works.
fn load(channel: &mut Channel, job: &MeasureJob, ring: RingWriter) -> Result<Cell, Failure> {
    let spec = &job.cell;
    let mut model = open_as_planned(&spec.model)?;
    model.forget_bytes_on_disk();
    let unsupported = |reason: &str| Failure::new(FailureKind::Unsupported, reason);
    let found = spec.runtime.as_ref().ok_or_else(|| unsupported("trtexec: no program was found"))?;
    let artifact = spec.artifact.as_ref().map(|artifact| open_artifact(artifact, spec.backend)).transpose()?;
    let file = artifact.as_ref().unwrap_or(&model);
    let (Some(built), Some(path)) = (&file.engine, &file.path) else {
        return Err(unsupported("trtexec: there is no engine for it to time"));
    };
    let wrong = |reason: String| Failure::new(FailureKind::Model, reason);
    let engine = EngineArgument::new(path, &job.folder).map_err(wrong)?;
    let mut program = Program::find(&found.library, mortal, engine, &job.folder, &ring).map_err(runtime)?;
    let here = here(&program, spec.device);
    if let Some(difference) = mismatch(&built.identity(), &here).filter(|_| !spec.provider.force_engine) {
        return Err(wrong(format!("trtexec: {difference}")));
    }
    program.device = spec.device;
    program.dla_core = built.sidecar.as_ref().and_then(|sidecar| sidecar.dla_core);
    program.plugins.clone_from(&spec.provider.trt_plugins);
    program.shapes = profile_shapes(spec);
    let first = Asked { warm_up_ms: 0, seconds: 0.0, queries: Some(1) };
    let stopped = || runtime("stopped while loading");
    let mut ran = program.run(first, &ring).map_err(runtime)?.ok_or_else(stopped)?;
    if let (None, Some(shapes)) = (&program.shapes, other_shapes(spec, &ran.printed.inputs)) {
        // An engine whose shapes are fixed refuses them, and that refusal is the reason.
        program.shapes = Some(shapes);
        ran = program.run(first, &ring).map_err(runtime)?.ok_or_else(stopped)?;
    }
    let mut cell = Cell { program, ring, batch: spec.batch, peak_bytes: 0, last_ms: 0.0 };
    channel.emit(EventKind::Loaded {
        load_ms: ran.printed.load_ms.unwrap_or(ran.wall_ms),
        backend: record(&cell.program, spec, ran.printed.load_ms.is_some()),
        model: Box::new(model.info.clone()),
        inputs: inputs(&ran.printed.inputs, &model.info),
        executed: format!("{} as built", spec.precision),
        host_peak_bytes: Some(ran.peak_bytes).filter(|&bytes| bytes > 0),
        device: None,
    })?;
    cell.take(&ran, Phase::Cold, 0, Some(1));
    channel.emit(EventKind::Cold {
        total_ms: ran.queries[0].latency_ms,
        head: "none".to_owned(),
        outputs: Vec::new(),
    })?;
    Ok(cell)
}

/// Where the engine is run: trtexec's TensorRT, and the GPU as far as the driver tells of it. No context is made for that,
/// which would take memory beside the program's own.
fn here(program: &Program, device: u32) -> EngineIdentity {
    let job = DiscoverJob { protocol: WORKER_PROTOCOL, name: RuntimeName::Cuda, path: "libcuda.so.1".into() };
    let gpus = discovery::answer(&job).map(|answer| answer.gpus).unwrap_or_default();
    let gpu = usize::try_from(device).ok().and_then(|device| gpus.into_iter().nth(device));
    let mut here = EngineIdentity { tensorrt: program.version.to_string(), ..EngineIdentity::default() };
    if let Some(gpu) = gpu {
        here.compute_capability = gpu.compute.unwrap_or_default();
        here.sm_count = gpu.sms.unwrap_or_default();
        here.gpu = gpu.name;
    }
    here
}

/// Shapes of an engine that was built for several: those that the cell asks for.
fn profile_shapes(spec: &CellSpec) -> Option<String> {
    let profile = spec.engine.as_ref().map(|engine| &engine.profile).filter(|profile| !profile.is_empty())?;
    let of = |shape: &[u64]| shape.iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect::<Vec<_>>();
    Some(written(profile.iter().map(|input| (input.input.as_str(), asked(spec, of(&input.opt))))))
}

/// Shapes to ask for where the engine came up with others than the cell wants.
fn other_shapes(spec: &CellSpec, inputs: &[(String, Vec<usize>)]) -> Option<String> {
    let wanted: Vec<(&str, Vec<usize>)> =
        inputs.iter().map(|(name, shape)| (name.as_str(), asked(spec, shape.clone()))).collect();
    let same = wanted.iter().zip(inputs).all(|((_, wanted), (_, shape))| wanted == shape);
    (!same).then(|| written(wanted.into_iter()))
}

/// An image of the cell's batch and size; anything else stays as it is.
fn asked(spec: &CellSpec, mut shape: Vec<usize>) -> Vec<usize> {
    if let [batch, _, height, width] = &mut shape[..] {
        *batch = spec.batch as usize;
        if let Some([rows, columns]) = spec.imgsz {
            (*height, *width) = (rows as usize, columns as usize);
        }
    }
    shape
}

fn written<'a>(shapes: impl Iterator<Item = (&'a str, Vec<usize>)>) -> String {
    let axes = |shape: Vec<usize>| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    shapes.map(|(name, shape)| format!("{name}:{}", axes(shape))).collect::<Vec<_>>().join(",")
}

/// Inputs as it printed them; of what type they are, only the model's own file may tell.
fn inputs(printed: &[(String, Vec<usize>)], info: &ModelInfo) -> Vec<TensorSpec> {
    let dtype =
        |name: &str| info.inputs.iter().find(|input| input.name == name).map_or(DType::Other, |input| input.dtype);
    printed
        .iter()
        .map(|(name, shape)| TensorSpec { name: name.clone(), dtype: dtype(name), shape: shape.clone() })
        .collect()
}

fn record(program: &Program, spec: &CellSpec, told_load: bool) -> BackendRecord {
    let transfers = if program.generation.has_transfers() { "included" } else { "not included" };
    let load = if told_load { "its own word for deserialising" } else { "of the whole first run" };
    BackendRecord {
        name: spec.backend.name().to_owned(),
        version: Some(program.version.to_string()),
        library: spec.runtime.as_ref().map(|found| found.library.display().to_string()),
        device: Some(format!("GPU {}", spec.device)),
        settings: vec![
            format!("total is trtexec's latency: {}", program.generation.definition()),
            format!("transfers: {transfers}"),
            format!("a process and a warm-up of {ROUND_WARM_UP_MS} ms for each round, {IN_FLIGHT} queries in flight"),
            format!("load time is {load}"),
        ],
        ..BackendRecord::default()
    }
}

impl Cell {
    fn run(&mut self, asked: Asked) -> Result<Option<Ran>, Failure> {
        self.program.run(asked, &self.ring).map_err(runtime)
    }

    /// Puts the times of a run into the ring; how many, and the seconds from the first start to the last end.
    fn take(&mut self, ran: &Ran, phase: Phase, round: u32, most: Option<u64>) -> (u64, f64) {
        let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let queries = &ran.queries[..ran.queries.len().min(most)];
        let last_ms = ran.queries.iter().map(|query| query.end_ms).fold(0.0, f64::max);
        // Its clock is its own; its last query ended when it ended, or shortly before.
        let at = |ms: f64| ran.ended_ns.saturating_sub(((last_ms - ms) * 1e6) as u64);
        let transfers = self.program.generation.has_transfers();
        for query in queries {
            self.ring.push(&sample(query, at(query.start_ms), phase, round, transfers));
        }
        self.peak_bytes = self.peak_bytes.max(ran.peak_bytes);
        let first = queries.first().map_or(0.0, |query| query.start_ms);
        let last = queries.iter().map(|query| query.end_ms).fold(first, f64::max);
        self.last_ms = (last - first) / queries.len().max(1) as f64;
        (queries.len() as u64, (last - first) / 1e3)
    }

    fn warm_up(&mut self, seconds: Option<f64>) -> Result<EventKind, Failure> {
        let asked = Asked { warm_up_ms: 0, seconds: seconds.unwrap_or(WARM_UP_S), queries: None };
        let Some(ran) = self.run(asked)? else {
            return Ok(EventKind::Steady { samples: 0, seconds: 0.0, settled: false });
        };
        let (samples, seconds) = self.take(&ran, Phase::Warmup, 0, None);
        // It runs for a fixed time; nobody looks whether it has settled.
        Ok(EventKind::Steady { samples, seconds, settled: true })
    }

    fn round(&mut self, round: u32, seconds: f64, max_samples: Option<u64>) -> Result<EventKind, Failure> {
        // Whichever comes first, as far as that can be told beforehand.
        let queries = max_samples.filter(|&most| most as f64 * self.last_ms / 1e3 <= seconds);
        let Some(ran) = self.run(Asked { warm_up_ms: ROUND_WARM_UP_MS, seconds, queries })? else {
            return Ok(EventKind::RoundDone { round, samples: 0, seconds: 0.0, load: None });
        };
        let (samples, seconds) = self.take(&ran, Phase::Steady, round, max_samples);
        // The work is done by another process, mostly on the GPU.
        Ok(EventKind::RoundDone { round, samples, seconds, load: None })
    }

    fn throughput(&mut self, seconds: f64) -> Result<EventKind, Failure> {
        let none = EventKind::Throughput { frames: 0, seconds: 0.0, in_flight: IN_FLIGHT };
        let Some(ran) = self.run(Asked { warm_up_ms: ROUND_WARM_UP_MS, seconds, queries: None })? else {
            return Ok(none);
        };
        let (queries, seconds) = self.take(&ran, Phase::Throughput, 0, None);
        // Its own figure where it says one: queries over its own wall time.
        let seconds = ran.printed.throughput_qps.filter(|&qps| qps > 0.0).map_or(seconds, |qps| queries as f64 / qps);
        Ok(EventKind::Throughput { frames: queries * u64::from(self.batch), seconds, in_flight: IN_FLIGHT })
    }
}

/// A query as a sample: its parts where they exist, and its latency as the whole.
fn sample(query: &Query, start_ns: u64, phase: Phase, round: u32, transfers: bool) -> Sample {
    let ns = |ms: f64| (ms * 1e6).round() as u64;
    let part = |ms: f64| Some(ns(ms)).filter(|_| transfers);
    Sample {
        start_ns,
        phase,
        round,
        frame: 0,
        detections: 0,
        parts_ns: [None, part(query.h2d_ms), Some(ns(query.compute_ms)), part(query.d2h_ms), None],
        total_ns: ns(query.latency_ms),
    }
}

#[cfg(test)]
mod tests {
    use prony_types::{BackendName, EngineSpec, ModelSource, ModelSpec, Precision, ProfileShape, SceneKind};

    use super::*;

    fn spec(batch: u32, imgsz: Option<[u32; 2]>) -> CellSpec {
        let source = ModelSource::Builtin(SceneKind::Rgb);
        let model = ModelSpec::new("m", source, "");
        CellSpec { batch, imgsz, ..CellSpec::new(model, BackendName::Trtexec, Precision::Fp16) }
    }

    #[test]
    fn shapes_are_asked_for_where_the_engine_has_others() {
        let images = |shape: &[usize]| [("images".to_owned(), shape.to_vec())];
        assert_eq!(other_shapes(&spec(1, None), &images(&[1, 3, 640, 640])), None);
        assert_eq!(other_shapes(&spec(1, Some([640, 640])), &images(&[1, 3, 640, 640])), None);
        let asked = other_shapes(&spec(4, Some([320, 640])), &images(&[1, 3, 640, 640]));
        assert_eq!(asked.as_deref(), Some("images:4x3x320x640"));
        assert_eq!(other_shapes(&spec(4, None), &images(&[1, 128])), None);
        let mut built = spec(2, None);
        let shape = |n| vec![n, 3, 320, 320];
        let profile = ProfileShape { input: "x".into(), min: shape(1), opt: shape(1), max: shape(8) };
        built.engine = Some(EngineSpec { profile: vec![profile], ..EngineSpec::new(Precision::Fp16) });
        assert_eq!(profile_shapes(&built).as_deref(), Some("x:2x3x320x320"));
    }

    #[test]
    fn transfers_that_do_not_exist_are_absent_and_not_0() {
        let query = Query { start_ms: 1.0, end_ms: 3.0, h2d_ms: 0.0, compute_ms: 1.5, d2h_ms: 0.0, latency_ms: 1.5 };
        let without = sample(&query, 7, Phase::Steady, 2, false);
        assert_eq!(without.parts_ns, [None, None, Some(1_500_000), None, None]);
        assert_eq!((without.total_ns, without.round), (1_500_000, 2));
        let with = sample(&Query { h2d_ms: 0.25, ..query }, 7, Phase::Steady, 2, true);
        assert_eq!(with.parts_ns[1], Some(250_000));
    }
}
