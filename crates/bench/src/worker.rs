//! The life of a worker: take over the pipes, load, first frame, then whatever the parent commands.

use std::io;

use prony_backend::{BackendError, FaultySession, Session, SessionSpec, affinity, backend};
use prony_types::{
    Affinity, Command, DType, EventKind, FailureKind, HeadChoice, Job, MeasureJob, Metadata, Phase, TensorSpec,
    WORKER_PROTOCOL,
};
use prony_vision::{Decoder, Fit, Head, Preprocessor};

use crate::channel::Channel;
use crate::frames::{self, Feed};
use crate::measure::{Cell, Detector, MeasureError, Pipeline};
use crate::outputs::{self, Reference};
use crate::{RingWriter, now_ns};

/// Calls in flight while throughput is measured: one being prepared while another runs.
const THROUGHPUT_SLOTS: usize = 2;
/// A threshold above the default may rightly leave no box at all.
const EXPECT_BOXES_UP_TO: f32 = 0.25;

/// Why a worker ends before its time.
#[derive(Debug)]
struct Failure {
    kind: FailureKind,
    message: String,
}

impl Failure {
    fn new(kind: FailureKind, message: impl std::fmt::Display) -> Failure {
        Failure { kind, message: message.to_string() }
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Failure {
        Failure::new(error.kind(), error)
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Failure {
        match error {
            MeasureError::Backend(error) => error.into(),
            MeasureError::Head(error) => Failure::new(FailureKind::Head, error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::new(FailureKind::Internal, format!("the pipe to the parent broke: {error}"))
    }
}

/// Runs a worker to its end. Returns whether it did its work; what went wrong was told to the parent.
pub fn run_worker(version: &str, host_peak: fn() -> Option<u64>) -> io::Result<bool> {
    let parent = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    if rustix::process::getppid() != parent {
        // The parent died before the line above: nobody is there to work for.
        return Ok(false);
    }
    let mut channel = Channel::take_over()?;
    let job = channel.job()?;
    channel.emit(EventKind::Started { pid: std::process::id(), version: version.to_owned() })?;
    let outcome = match job {
        Job::Measure(job) => measure(&mut channel, &job, host_peak),
        Job::Discover(_) | Job::Reference(_) => Err(Failure::new(FailureKind::Internal, "not built yet")),
    };
    match outcome {
        Ok(()) => Ok(true),
        Err(failure) => {
            tracing::error!("{}", failure.message);
            channel.emit(EventKind::Failed { kind: failure.kind, message: failure.message })?;
            Ok(false)
        }
    }
}

fn measure(channel: &mut Channel, job: &MeasureJob, host_peak: fn() -> Option<u64>) -> Result<(), Failure> {
    if job.protocol != WORKER_PROTOCOL {
        let message = format!("parent speaks protocol {}, worker {WORKER_PROTOCOL}", job.protocol);
        return Err(Failure::new(FailureKind::Internal, message));
    }
    let ring = RingWriter::inherit(job.ring_fd).map_err(|e| Failure::new(FailureKind::Internal, e))?;
    let (mut cell, metadata) = load(channel, job, ring)?;
    cold_start(channel, job, &mut cell, &metadata)?;
    if let Pipeline::Detector(_) = cell.pipeline {
        let count = job.input.frames.max(1);
        let ring = &cell.ring;
        let feed = frames::images(&job.input, &job.cell.model.source, count, &|| ring.beat());
        cell.feed = feed.map_err(input_failure)?;
        // Boxes must be there where a model looks at its own scenes the way it was made to.
        cell.feed.home_scenes &= job.post.conf <= EXPECT_BOXES_UP_TO && job.cell.head == HeadChoice::Auto;
    }
    cell.replay(0)?;
    let reference = Reference::take(&mut cell)?;
    channel.emit(EventKind::Frames {
        count: cell.feed.len() as u32,
        size: cell.feed.size(),
        resident_bytes: cell.feed.bytes() as u64,
        source: cell.feed.source.clone(),
        sha256: cell.feed.sha256(),
        decode_ns: cell.feed.decode_ns.clone(),
        skipped: cell.feed.skipped.clone(),
    })?;
    while let Some(command) = channel.command()? {
        match command {
            Command::WarmUp => {
                let (samples, seconds, settled) = cell.warm_up(job.warmup_s)?;
                cell.look_at_outputs(0);
                channel.emit(EventKind::Steady { samples, seconds, settled })?;
            }
            Command::Round { round, seconds, max_samples } => {
                let (samples, seconds) = cell.round(round, seconds, max_samples)?;
                channel.emit(EventKind::RoundDone { round, samples, seconds })?;
            }
            Command::Throughput { seconds } => {
                let (frames, seconds) = cell.throughput(seconds)?;
                let in_flight = cell.session.slots() as u32;
                channel.emit(EventKind::Throughput { frames, seconds, in_flight })?;
            }
            Command::Finish { reference: _ } => {
                // Before the check, whose pictures are no part of the model's work.
                let host_peak_bytes = host_peak().unwrap_or(0);
                let checked = outputs::check(&mut cell, &reference, &metadata.names, &job.folder)?;
                channel.emit(checked)?;
                channel.emit(EventKind::Finished { host_peak_bytes })?;
                return Ok(());
            }
        }
    }
    Err(Failure::new(FailureKind::Internal, "the parent closed the pipe before the end"))
}

fn input_failure(message: String) -> Failure {
    Failure::new(FailureKind::Input, message)
}

/// Opens the model and makes a session, in the time that is reported as `load_ms`.
fn load(channel: &mut Channel, job: &MeasureJob, ring: RingWriter) -> Result<(Cell, Metadata), Failure> {
    let spec = &job.cell;
    let cpus = affinity::choose(spec.threads);
    let threads = spec.threads.unwrap_or(cpus.len() as u32);
    if let Err(reason) = affinity::pin(&cpus) {
        tracing::warn!("cannot pin to CPUs {cpus:?}: {reason}");
    }
    let mut model = prony_backend::open_model(&spec.model.source).map_err(|e| Failure::new(FailureKind::Model, e))?;
    if model.sha256 != spec.model.sha256 {
        let message = format!("{} changed on disk since the run was planned", spec.model.name);
        return Err(Failure::new(FailureKind::Model, message));
    }
    // A backend reads the file by itself; a second copy in memory would be counted as the model's.
    model.forget_bytes_on_disk();
    let begun = now_ns();
    let mut session = backend(spec.backend).open(&SessionSpec {
        precision: spec.precision,
        batch: spec.batch,
        imgsz: spec.imgsz,
        device: spec.device,
        threads,
        slots: THROUGHPUT_SLOTS,
        runtime: spec.runtime.clone(),
        provider: spec.provider.clone(),
        ..SessionSpec::new(&model)
    })?;
    let load_ms = (now_ns() - begun) as f64 / 1e6;
    if let Some(fault) = job.fault {
        session = Box::new(FaultySession::new(session, fault));
    }
    let mut record = session.record();
    record.affinity = Some(Affinity { cpus: affinity::allowed() });
    channel.emit(EventKind::Loaded {
        load_ms,
        backend: record,
        model: model.info.clone(),
        inputs: session.inputs().to_vec(),
        executed: session.executed(),
    })?;
    let (pipeline, feed) = pipeline(job, &*session)?;
    Ok((Cell::new(session, pipeline, feed, spec.batch as usize, ring), model.info.metadata))
}

fn pipeline(job: &MeasureJob, session: &dyn Session) -> Result<(Pipeline, Feed), Failure> {
    if job.cell.head == HeadChoice::None {
        let feed = frames::tensors(&job.input, session.inputs()).map_err(input_failure)?;
        return Ok((Pipeline::Plain, feed));
    }
    let [height, width] = image_input(session.inputs()).map_err(input_failure)?;
    let feed = frames::images(&job.input, &job.cell.model.source, 1, &|| {}).map_err(input_failure)?;
    let detector = Detector::new(width, height, session.slots(), job.cell.batch as usize);
    Ok((Pipeline::Detector(Box::new(detector)), feed))
}

/// Height and width of a detector's one input.
fn image_input(inputs: &[TensorSpec]) -> Result<[u32; 2], String> {
    if let [input] = inputs
        && matches!(input.dtype, DType::F32 | DType::F16)
        && let [_, 3, height, width] = input.shape[..]
    {
        return Ok([height as u32, width as u32]);
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
