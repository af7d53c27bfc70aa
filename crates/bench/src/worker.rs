//! The life of a worker: take over the pipes, load, first frame, then whatever the parent commands.

use std::io;
use std::path::Path;

use prony_backend::{FaultySession, ModelFile, Session, SessionSpec, affinity, backend};
use prony_forge::{ForgeError, Prepared};
use prony_runtimes::discovery::{self, Answer};
use prony_source::scenes::kind_for;
use prony_types::{
    Affinity, BackendName, BuildProgress, CellSpec, Command, ConsistencyCheck, DiscoverJob, EventKind, FailureKind,
    Fault, HeadChoice, InspectJob, Job, LoadCounters, LoadSnapshot, MeasureJob, Metadata, ModelSource, OutputsRecord,
    Phase, ReferenceJob, SceneKind, TensorSpec, WORKER_PROTOCOL,
};
use prony_vision::{Decoder, Fit, Head, Preprocessor};

use crate::channel::Channel;
use crate::consistency::{self, Witness};
use crate::evaluate::{Unscored, evaluate};
use crate::failure::Failure;
use crate::frames::{self, Feed};
use crate::measure::{Cell, Detector, Pipeline};
use crate::planned::{open_as_planned, takes_any_batch};
use crate::{RingWriter, now_ns, outputs, outputs_sha256, reference, tensors, trtexec};

/// Calls in flight while throughput is measured: one being prepared while another runs.
const THROUGHPUT_SLOTS: usize = 2;
/// A threshold above the default may rightly leave no box at all.
const EXPECT_BOXES_UP_TO: f32 = 0.25;

/// Runs a worker to its end. Returns whether it did its work; what went wrong was told to the parent.
pub fn run_worker(version: &str, host_peak: fn() -> Option<u64>, load: fn() -> LoadSnapshot) -> io::Result<bool> {
    prony_work::die_with_parent()?;
    let mut channel = Channel::take_over()?;
    let job = channel.job()?;
    channel.emit(EventKind::Started { pid: std::process::id(), version: version.to_owned() })?;
    let outcome = match job {
        Job::Measure(job) => measure(&mut channel, &job, host_peak, load),
        Job::Prepare(job) => {
            made(&mut channel, job.protocol, job.ring_fd, &|tell, beat| prony_forge::prepare(&job, tell, beat))
        }
        Job::Rewrite(job) => {
            made(&mut channel, job.protocol, job.ring_fd, &|tell, beat| prony_forge::rewrite(&job, tell, beat))
        }
        Job::Reference(job) => reference(&mut channel, job),
        Job::Inspect(job) => inspect(&mut channel, &job),
        Job::Discover(job) => discover(&mut channel, &job),
    };
    match outcome {
        Ok(()) => Ok(true),
        Err(failure) => {
            tracing::error!("{}", failure.message);
            let Failure { kind, message, device } = failure;
            channel.emit(EventKind::Failed { kind, message, device })?;
            Ok(false)
        }
    }
}

fn discover(channel: &mut Channel, job: &DiscoverJob) -> Result<(), Failure> {
    same_protocol(job.protocol)?;
    let answer = discovery::answer(job).map_err(|reason| Failure::new(FailureKind::Unsupported, reason))?;
    let Answer { version, provides, gpus } = answer;
    Ok(channel.emit(EventKind::Discovered { version, provides, gpus })?)
}

/// How an artifact is made: told how to tell of progress, and how to show a sign of life.
type MakeArtifact<'a> = dyn Fn(&mut dyn FnMut(BuildProgress), &dyn Fn()) -> Result<Prepared, ForgeError> + 'a;

/// Makes an artifact, or finds it in the cache. After a failure the builder may still be at work in its thread; the
/// process ends with the last event, and the builder with it.
fn made(channel: &mut Channel, protocol: u32, ring_fd: i32, make: &MakeArtifact<'_>) -> Result<(), Failure> {
    same_protocol(protocol)?;
    let ring = RingWriter::inherit(ring_fd).map_err(|e| Failure::new(FailureKind::Internal, e))?;
    let mut told = Ok(());
    let mut on_progress = |progress: BuildProgress| {
        if told.is_ok() {
            told = channel.emit(EventKind::Building(progress));
        }
    };
    let prepared = make(&mut on_progress, &|| ring.beat());
    told?;
    let Prepared { artifact, build_ms, rebuilt_because, notes } = prepared?;
    Ok(channel.emit(EventKind::Prepared { artifact, build_ms: Some(build_ms), rebuilt_because, notes })?)
}

/// Opens an engine and says what is in it.
fn inspect(channel: &mut Channel, job: &InspectJob) -> Result<(), Failure> {
    same_protocol(job.protocol)?;
    let mut model = open_as_planned(&job.model)?;
    model.forget_bytes_on_disk();
    let record = prony_backend::inspect_engine(&model, job)?;
    Ok(channel.emit(EventKind::Inspected(Box::new(record)))?)
}

fn same_protocol(protocol: u32) -> Result<(), Failure> {
    if protocol == WORKER_PROTOCOL {
        return Ok(());
    }
    let message = format!("parent speaks protocol {protocol}, worker {WORKER_PROTOCOL}");
    Err(Failure::new(FailureKind::Internal, message))
}

/// A cell with its first frame behind it, and what it was made from.
struct Loaded {
    cell: Cell,
    model: ModelFile,
    artifact: Option<ModelFile>,
    threads: u32,
    /// Of which kind built-in scenes are.
    scenes: SceneKind,
}

/// Loads, runs the first frame, and makes `count` frames resident.
fn prepare(
    channel: &mut Channel,
    job: &MeasureJob,
    model: ModelFile,
    host_peak: fn() -> Option<u64>,
    scenes: Option<SceneKind>,
    count: u32,
) -> Result<Loaded, Failure> {
    let ring = RingWriter::inherit(job.ring_fd).map_err(|e| Failure::new(FailureKind::Internal, e))?;
    let mut loaded = load(channel, job, model, host_peak, scenes, ring)?;
    let cell = &mut loaded.cell;
    cold_start(channel, job, cell, &loaded.model.info.metadata)?;
    if let Pipeline::Detector(_) = cell.pipeline {
        let ring = &cell.ring;
        let feed = frames::images(&job.input, loaded.scenes, count, &|| ring.beat());
        cell.feed = feed.map_err(input_failure)?;
        // Boxes must be there where a model looks at its own scenes the way it was made to.
        cell.feed.home_scenes &= matches!(job.cell.model.source, ModelSource::Builtin(_));
        cell.feed.home_scenes &= job.post.conf <= EXPECT_BOXES_UP_TO && job.cell.head == HeadChoice::Auto;
    }
    Ok(loaded)
}

/// Outputs that cells are held against, into their file.
fn reference(channel: &mut Channel, job: ReferenceJob) -> Result<(), Failure> {
    let ReferenceJob { protocol, mut cell, input, scenes, post, epsilon, file, ring_fd } = job;
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    // Not more than the cells have, so that all of them wrap around at the same frame.
    let count = reference::frames_for(cell.batch).min(input.frames.max(1));
    same_protocol(protocol)?;
    let model = open_as_planned(&cell.model)?;
    if cell.batch > 1 && cell.head != HeadChoice::None && takes_any_batch(&model) {
        cell.batch = 1;
    }
    let job = MeasureJob { protocol, cell, slot: 0, input, post, warmup_s: None, folder, ring_fd, fault: None };
    let mut loaded = prepare(channel, &job, model, || None, Some(scenes), count)?;
    let record = loaded.cell.session.record();
    let by = format!("{} on {} {}", loaded.cell.session.executed(), record.name, record.version.unwrap_or_default());
    let reference = reference::compute(&mut loaded.cell, by.trim_end().to_owned(), count as usize, epsilon)?;
    reference.write(&file).map_err(|e| Failure::new(FailureKind::Internal, e))?;
    channel.emit(EventKind::Referenced { by: reference.by, frames: reference.frames.len() as u32 })?;
    Ok(())
}

fn measure(
    channel: &mut Channel,
    job: &MeasureJob,
    host_peak: fn() -> Option<u64>,
    load: fn() -> LoadSnapshot,
) -> Result<(), Failure> {
    same_protocol(job.protocol)?;
    if job.cell.backend == BackendName::Trtexec {
        return trtexec::measure(channel, job);
    }
    let model = open_as_planned(&job.cell.model)?;
    let mut loaded = prepare(channel, job, model, host_peak, None, job.input.frames.max(1))?;
    let cell = &mut loaded.cell;
    cell.replay(0)?;
    let mut device = cell.session.device_use();
    let first = cell.all_taken()?;
    let outputs = OutputsRecord { frame: 0, sha256: outputs_sha256(&*cell.session) };
    channel.emit(EventKind::Hashed { outputs })?;
    channel.emit(EventKind::Frames {
        count: cell.feed.len() as u32,
        size: cell.feed.size(),
        resident_bytes: cell.feed.bytes() as u64,
        source: cell.feed.source.clone(),
        sha256: cell.feed.sha256(),
        decode_ns: cell.feed.decode_ns.clone(),
        skipped: cell.feed.skipped.clone(),
    })?;
    let mut host_peak_bytes = None;
    while let Some(command) = channel.command()? {
        match command {
            Command::WarmUp => {
                let (samples, seconds, settled) = cell.warm_up(job.warmup_s)?;
                cell.look_at_outputs(0);
                // Arenas only grow, and cells are warmed up one after the other: what is gone now is this cell's.
                device = cell.session.device_use().or(device);
                channel.emit(EventKind::Steady { samples, seconds, settled })?;
            }
            Command::Round { round, seconds, max_samples } => {
                // Around the uncounted frames too, so that nothing stands between those and the timed ones.
                let before = load();
                let (samples, seconds) = cell.round(round, seconds, max_samples)?;
                let load = counted(&before, &load(), job.fault);
                channel.emit(EventKind::RoundDone { round, samples, seconds, load: Some(load) })?;
            }
            Command::Throughput { seconds } => {
                let (frames, seconds) = cell.throughput(seconds)?;
                let in_flight = cell.session.slots() as u32;
                channel.emit(EventKind::Throughput { frames, seconds, in_flight })?;
            }
            Command::Evaluate(order) => {
                host_peak_bytes.get_or_insert_with(|| host_peak().unwrap_or(0));
                let metadata = &loaded.model.info.metadata;
                let mut tell = |done, total| channel.emit(EventKind::Evaluating { done, total });
                let outcome = evaluate(cell, &order, &job.cell.model.source, metadata, &mut tell);
                let (outcome, problem) = match outcome {
                    Ok(data) => (Some(Box::new(data)), None),
                    Err(Unscored::Absent(problem)) => (None, Some(problem)),
                    Err(Unscored::Interrupted) => (None, None),
                    Err(Unscored::Cell(error)) => return Err(error.into()),
                };
                channel.emit(EventKind::Evaluated { outcome, problem })?;
            }
            Command::Finish { reference } => {
                // Before the check and the evaluation, whose pictures are no part of the model's work.
                let host_peak_bytes = host_peak_bytes.unwrap_or_else(|| host_peak().unwrap_or(0));
                let names = &loaded.model.info.metadata.names;
                let (checked, sensitivity) = outputs::check(cell, &first, reference.as_deref(), names, &job.folder)?;
                channel.emit(checked)?;
                let (witness, mut checks) = consistency::within(cell, sensitivity)?;
                let (found, more) = placed(job, loaded, &witness);
                checks.extend(more);
                for found in found {
                    channel.emit(found)?;
                }
                channel.emit(EventKind::Consistent { checks })?;
                channel.emit(EventKind::Finished { host_peak_bytes, device })?;
                return Ok(());
            }
        }
    }
    Err(Failure::new(FailureKind::Internal, "the parent closed the pipe before the end"))
}

/// What else ran on the machine during a round, or what a test wants to have run.
fn counted(before: &LoadSnapshot, after: &LoadSnapshot, fault: Option<Fault>) -> LoadCounters {
    let counters = prony_judge::load::between(before, after);
    let Some(Fault::OthersTake(percent)) = fault else { return counters };
    let wall_s = counters.wall_s;
    let taken = Some(wall_s * f64::from(percent) / 100.0);
    LoadCounters {
        wall_s,
        cpus: 1,
        cpu_s: taken.map(|taken| wall_s - taken),
        run_queue_wait_s: taken,
        longest_wait_s: taken,
        involuntary_switches: Some(u64::from(percent)),
        busy_s: Some(wall_s),
        steal_s: Some(0.0),
    }
}

/// Where the nodes run, what layers compute in and whether a fresh session says the same, found in sessions of their own
/// after the timed one was given up.
fn placed(job: &MeasureJob, loaded: Loaded, witness: &Witness) -> (Vec<EventKind>, Vec<ConsistencyCheck>) {
    let Loaded { cell, model, artifact, threads, .. } = loaded;
    drop(cell);
    let mut fill = |session: &mut dyn Session| witness.fill(session);
    let scratch = Some(job.folder.clone());
    let spec = SessionSpec { slots: 1, scratch, ..session_spec(&job.cell, &model, artifact, threads) };
    let mut found = Vec::new();
    let proof = backend(job.cell.backend).proof(&spec, &mut fill);
    match proof.placement {
        Ok(None) => {}
        Ok(placement) => found.push(EventKind::Placed { placement, problem: None }),
        Err(error) => found.push(EventKind::Placed { placement: None, problem: Some(error.to_string()) }),
    }
    match proof.layers {
        Ok(None) => {}
        Ok(layers) => found.push(EventKind::Layers { layers, problem: None }),
        Err(error) => found.push(EventKind::Layers { layers: None, problem: Some(error.to_string()) }),
    }
    (found, consistency::across(witness, &spec, &job.cell, &model))
}

fn input_failure(message: String) -> Failure {
    Failure::new(FailureKind::Input, message)
}

fn session_spec<'a>(
    cell: &CellSpec,
    model: &'a ModelFile,
    artifact: Option<ModelFile>,
    threads: u32,
) -> SessionSpec<'a> {
    SessionSpec {
        precision: cell.precision,
        batch: cell.batch,
        imgsz: cell.imgsz,
        device: cell.device,
        threads,
        slots: THROUGHPUT_SLOTS,
        runtime: cell.runtime.clone(),
        provider: cell.provider.clone(),
        artifact,
        ..SessionSpec::new(model)
    }
}

/// Makes a session. Files are hashed before, and read again by the backend, from the same descriptor: `load_ms` is of the
/// session alone, with what it reads.
fn load(
    channel: &mut Channel,
    job: &MeasureJob,
    mut model: ModelFile,
    host_peak: fn() -> Option<u64>,
    scenes: Option<SceneKind>,
    ring: RingWriter,
) -> Result<Loaded, Failure> {
    let spec = &job.cell;
    let cpus = affinity::choose(spec.threads);
    let threads = spec.threads.unwrap_or(cpus.len() as u32);
    if let Err(reason) = affinity::pin(&cpus) {
        tracing::warn!("cannot pin to CPUs {cpus:?}: {reason}");
    }
    // A backend reads the file by itself; a second copy in memory would be counted as the model's.
    model.forget_bytes_on_disk();
    let open = |artifact| prony_backend::open_artifact(artifact, spec.backend);
    let mut artifact = spec.artifact.as_ref().map(open).transpose()?;
    let info = model.info.clone();
    // A rewritten graph takes the place of the file it was made of; an engine is run beside it.
    if let Some(graph) = artifact.take_if(|artifact| artifact.engine.is_none()) {
        model = graph;
    }
    let asked = session_spec(spec, &model, artifact.clone(), threads);
    let begun = now_ns();
    let mut session = backend(spec.backend).open(&asked)?;
    let load_ms = (now_ns() - begun) as f64 / 1e6;
    if let Some(fault) = job.fault {
        session = Box::new(FaultySession::new(session, fault));
    }
    let mut record = session.record();
    record.affinity = Some(Affinity { cpus: affinity::allowed() });
    channel.emit(EventKind::Loaded {
        load_ms,
        backend: record,
        model: Box::new(info),
        inputs: session.inputs().to_vec(),
        executed: session.executed(),
        host_peak_bytes: host_peak(),
        device: session.device_use(),
    })?;
    let scenes = scenes.unwrap_or_else(|| kind_for(&spec.model.source, &model.info.metadata.names));
    let (pipeline, feed) = pipeline(job, scenes, &*session)?;
    let cell = Cell::new(session, pipeline, feed, spec.batch as usize, ring);
    Ok(Loaded { cell, model, artifact, threads, scenes })
}

fn pipeline(job: &MeasureJob, scenes: SceneKind, session: &dyn Session) -> Result<(Pipeline, Feed), Failure> {
    if job.cell.head == HeadChoice::None {
        let feed = frames::tensors(&job.input, session.inputs()).map_err(input_failure)?;
        return Ok((Pipeline::Plain, feed));
    }
    let [height, width] = image_input(session.inputs()).map_err(input_failure)?;
    let feed = frames::images(&job.input, scenes, 1, &|| {}).map_err(input_failure)?;
    let detector = Detector::new(width, height, session.slots(), job.cell.batch as usize);
    Ok((Pipeline::Detector(Box::new(detector)), feed))
}

/// Height and width of a detector's one input.
fn image_input(inputs: &[TensorSpec]) -> Result<[u32; 2], String> {
    if let [input] = inputs
        && let Some(size) = tensors::image_size(input)
    {
        return Ok(size);
    }
    let shapes: Vec<String> = inputs.iter().map(ToString::to_string).collect();
    Err(format!(
        "the model does not take one image [N,3,H,W] but {}; use --head none to time it as it is",
        shapes.join(", ")
    ))
}

/// The very first frame; on the way, the head is chosen from the outputs as they really are.
fn cold_start(channel: &mut Channel, job: &MeasureJob, cell: &mut Cell, metadata: &Metadata) -> Result<(), Failure> {
    let mut sample = cell.frame(Phase::Cold, 0)?;
    let outputs = cell.output_specs();
    let mut head_text = "none".to_owned();
    let imgsz = image_input(cell.session.inputs()).ok();
    if let (Pipeline::Detector(detector), Some(imgsz)) = (&mut cell.pipeline, imgsz) {
        let head = Head::choose(job.cell.head, &outputs, metadata, Some(imgsz))
            .map_err(|e| Failure::new(FailureKind::Head, e))?;
        head_text = head.to_string();
        if head.fit() == Fit::Stretch {
            // Known only now; the cold frame went through a letterbox, whose arithmetic costs the same.
            let [height, width] = imgsz;
            detector.preprocessor = Preprocessor::with_fit(width, height, Fit::Stretch);
            head_text.push_str(", image stretched as it was trained");
        }
        detector.decoder = Some(Decoder::new(head, &job.post, imgsz));
        let decoding = now_ns();
        sample.detections = cell.decode(0)?;
        let postprocess = now_ns() - decoding;
        sample.parts_ns[4] = Some(postprocess);
        sample.total_ns += postprocess;
    }
    cell.ring.push(&sample);
    cell.look_at_outputs(0);
    channel.emit(EventKind::Cold { total_ms: sample.total_ns as f64 / 1e6, head: head_text, outputs })?;
    Ok(())
}
