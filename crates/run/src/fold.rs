//! From what workers said and what the ring held to the record of a cell. Pure: the same events and samples give the
//! same record, whether they come from a live worker or from a file. Samples are looked at where they lie, never copied.

use prony_judge::{self as judge, Evidence, shape};
use prony_types::{
    ArtifactRecord, BackendName, BudgetSpec, CellRecord, CellSpec, CellStatus, DeviceUse, EventKind, FailureKind,
    InputRecord, LoadCounters, MemoryRecord, ModelInfo, ModelSource, OutOfMemory, OutputCheck, Phase, Phases,
    Precision, Sample, SampleNote, Stage, Telemetry, Verdict,
};

use crate::samples::Samples;

/// Share of a memory limit from which on it is said that little was left.
const NEARLY: f64 = 0.9;

/// A cell in the making.
#[derive(Debug)]
pub struct CellFold {
    /// What is known so far; figures are made when it is closed, and for every record that is published before.
    pub record: CellRecord,
    /// What it is.
    pub spec: CellSpec,
    samples: Samples,
    /// Readings while this cell was timed.
    telemetry: Vec<Telemetry>,
    check: Option<OutputCheck>,
    placement_problem: Option<String>,
    layers_problem: Option<String>,
    /// Whether it is timed, and not only scored.
    timed: bool,
    /// When the worker at hand began.
    begun_ns: u64,
    settled: bool,
    /// What else ran on the machine, round by round.
    loads: Vec<LoadCounters>,
    /// Samples that the ring had no room for.
    lost: u64,
}

impl CellFold {
    /// A cell that has not begun, with what the logs hold of this attempt.
    pub(crate) fn new(spec: &CellSpec, attempt: u32, timed: bool, logged: (Samples, Vec<Telemetry>)) -> CellFold {
        let (samples, telemetry) = logged;
        CellFold {
            record: CellRecord::pending(spec, attempt),
            spec: spec.clone(),
            samples,
            telemetry,
            check: None,
            placement_problem: None,
            layers_problem: None,
            timed,
            begun_ns: 0,
            settled: true,
            loads: Vec::new(),
            lost: 0,
        }
    }

    /// A cell that an earlier sitting completed.
    pub(crate) fn finished(spec: &CellSpec, record: CellRecord, timed: bool, samples: Samples) -> CellFold {
        let lost = record.samples.lost;
        CellFold { record, lost, ..CellFold::new(spec, 1, timed, (samples, Vec::new())) }
    }

    /// The next attempt at a cell that ran out of memory. What was made for it stays.
    pub(crate) fn again(&self, death: &OutOfMemory, logged: (Samples, Vec<Telemetry>)) -> CellFold {
        let mut fold = CellFold::new(&self.spec, self.record.attempt + 1, self.timed, logged);
        let earlier = &self.record;
        fold.record.artifact.clone_from(&earlier.artifact);
        fold.record.build_ms = earlier.build_ms;
        fold.record.roofline.clone_from(&earlier.roofline);
        fold.record.roofline_absent.clone_from(&earlier.roofline_absent);
        fold.record.out_of_memory = Some(death.clone());
        fold
    }

    /// The samples of this attempt.
    pub(crate) fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Gives the samples away.
    pub(crate) fn into_samples(self) -> Samples {
        self.samples
    }

    /// Adds samples that were measured after all others.
    pub(crate) fn take_samples(&mut self, fresh: &[Sample]) {
        self.samples.push(fresh);
    }

    /// Adds a reading of the time in which it was timed.
    pub(crate) fn take_reading(&mut self, reading: &Telemetry) {
        self.telemetry.push(reading.clone());
    }

    /// Takes note of what a worker said.
    pub(crate) fn apply(&mut self, t_ns: u64, event: &EventKind) {
        let (record, spec) = (&mut self.record, &self.spec);
        match event {
            EventKind::Started { .. } => self.begun_ns = t_ns,
            EventKind::Evaluating { .. }
            | EventKind::RoundDone { load: None, .. }
            | EventKind::Discovered { .. }
            | EventKind::Referenced { .. }
            | EventKind::Inspected(_)
            | EventKind::Building(_) => {}
            EventKind::RoundDone { load: Some(load), .. } => self.loads.push(*load),
            EventKind::Loaded { load_ms, backend, model, inputs, executed, host_peak_bytes, device } => {
                record.load_ms = Some(*load_ms);
                record.backend = backend.clone();
                record.precision.executed = Some(executed.clone());
                record.model.task = model.metadata.task.clone();
                record.model.info = Some(ModelInfo::clone(model));
                record.model.input = inputs
                    .first()
                    .map(|input| input.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"));
                record.artifact.get_or_insert_with(|| itself(spec));
                record.memory.load_host_peak_mib = host_peak_bytes.map(mib);
                record.memory.load_device_mib = device.as_ref().and_then(|device| device.taken_bytes).map(mib);
            }
            EventKind::Cold { total_ms, head, .. } => {
                record.phases.cold_ms = Some(*total_ms);
                record.model.head = Some(head.clone());
            }
            EventKind::Frames { count, size, resident_bytes, source, sha256, decode_ns, skipped } => {
                record.input = Some(InputRecord {
                    source: source.clone(),
                    frames: *count,
                    size: *size,
                    resident_bytes: *resident_bytes,
                    sha256: sha256.clone(),
                    decode_ms: judge::stats::summarize(decode_ns),
                    skipped: skipped.clone(),
                });
            }
            EventKind::Hashed { outputs } => record.outputs = Some(outputs.clone()),
            EventKind::Steady { seconds, settled, .. } => {
                record.phases.warmup_s = Some(*seconds);
                self.settled = *settled;
            }
            EventKind::Throughput { frames, seconds, in_flight } => {
                record.throughput_fps = (*seconds > 0.0).then(|| *frames as f64 / seconds);
                record.in_flight = Some(*in_flight);
            }
            EventKind::Checked { check, agreement, no_agreement, thumbnails } => {
                self.check = Some(*check);
                record.agreement.clone_from(agreement);
                if no_agreement.is_some() {
                    record.agreement_absent.clone_from(no_agreement);
                }
                record.thumbnails.clone_from(thumbnails);
            }
            EventKind::Evaluated { problem, .. } => {
                record.accuracy_absent = problem.as_ref().map(|problem| problem.message.clone());
            }
            EventKind::Consistent { checks } => record.consistency.clone_from(checks),
            EventKind::Placed { placement, problem } => {
                if let (Some(provider), Some(placement)) = (&mut record.backend.provider, placement) {
                    provider.actual = placement.main().map(str::to_owned);
                }
                record.placement.clone_from(placement);
                self.placement_problem.clone_from(problem);
            }
            EventKind::Layers { layers, problem } => {
                record.layers.clone_from(layers);
                self.layers_problem.clone_from(problem);
            }
            EventKind::Prepared { artifact, build_ms, rebuilt_because, notes } => {
                record.build_ms = *build_ms;
                record.artifact = Some(ArtifactRecord {
                    sha256: artifact.sha256.clone(),
                    path: Some(artifact.path.display().to_string()),
                    from_cache: artifact.from_cache,
                    rebuilt_because: rebuilt_because.clone(),
                    notes: notes.clone(),
                });
            }
            EventKind::Failed { kind, message, device } => {
                if let (FailureKind::Budget, Some(device)) = (kind, device) {
                    let limit = spec.provider.gpu_mem_limit_bytes;
                    record.memory = memory(0, Some(device), limit, &MemoryRecord::default(), self.begun_ns);
                    record.verdict = Some(Verdict::OverBudget);
                    record.verdict_reasons = vec![message.clone()];
                }
            }
            EventKind::Finished { host_peak_bytes, device } => {
                let limit = spec.provider.gpu_mem_limit_bytes.filter(|_| device.is_some());
                let at_load = std::mem::take(&mut record.memory);
                record.memory = memory(*host_peak_bytes, device.as_ref(), limit, &at_load, self.begun_ns);
            }
        }
    }

    /// `total` of the timed samples, by round.
    pub(crate) fn rounds(&self) -> Vec<Vec<u64>> {
        judge::by_round(&self.samples)
    }

    /// The record as far as it is: figures, but no verdict before the end.
    pub(crate) fn so_far(&self, budget: &BudgetSpec) -> CellRecord {
        let mut now = self.record.clone();
        now.samples = self.count();
        if now.status == CellStatus::Pending && now.samples.steady > 0 {
            self.compute(&mut now, budget);
            now.verdict = None;
            now.verdict_reasons = Vec::new();
        }
        now
    }

    /// Ends the cell. Figures are made only where they can be stood behind: not for a cell that failed.
    pub(crate) fn close(&mut self, status: CellStatus, reason: Option<String>, lost: u64, budget: &BudgetSpec) {
        self.lost = lost;
        let mut record = self.record.clone();
        record.status = status;
        record.reason = reason;
        record.samples = self.count();
        let measured = record.samples.steady > 0 || !self.timed && record.accuracy.is_some();
        if matches!(status, CellStatus::Completed | CellStatus::Interrupted) && measured {
            self.compute(&mut record, budget);
            record.samples = self.count();
        }
        self.record = record;
    }

    fn count(&self) -> SampleNote {
        let lost = self.lost + self.samples.unread();
        SampleNote { warmup: self.samples.warmup(), steady: self.samples.steady(), lost }
    }

    fn compute(&self, record: &mut CellRecord, budget: &BudgetSpec) {
        record.latency_ms = judge::latency(&self.samples);
        let inference = record.latency_ms.get(&Stage::Inference).map(|stats| stats.p50);
        record.roofline.iter_mut().for_each(|roofline| roofline.measured_ms = inference);
        let total = record.latency_ms.get(&Stage::Total).copied();
        let warmup_s = record.phases.warmup_s;
        record.phases = Phases { warmup_s, ..judge::phases(&self.samples, total.as_ref()) };
        record.histogram = shape::histogram(&judge::totals(&self.samples, Phase::Steady));
        record.timeline = shape::timeline(&self.samples);
        record.round_p50_ms = judge::round_p50_ms(&self.samples);
        // What trtexec would say is of interest beside TensorRT alone.
        if record.backend.name == BackendName::Tensorrt.name() {
            let calls_per_s = record.throughput_fps.map(|fps| fps / f64::from(record.batch));
            record.equivalents = judge::equivalents(&self.samples, calls_per_s);
        }
        let detector = record.model.head.as_deref().is_some_and(|head| head != "none");
        record.detections_per_frame = judge::detections_per_frame(&self.samples, record.batch).filter(|_| detector);
        record.temp_c = judge::temp_range(&self.telemetry);
        record.stalls = judge::stall::stalls(&self.samples);
        record.load = judge::load::record(&self.loads, judge::stall::stalled_s(&record.stalls), is_serial(record));
        if record.stalls.iter().any(|stall| stall.phase == Phase::Throughput) {
            record.throughput_fps = None;
        }
        let (verdict, reasons) = judge::judge(&Evidence {
            stats: total.as_ref(),
            budget,
            round_p50_ms: &record.round_p50_ms,
            settled: self.settled,
            warmup_fixed: budget.warmup_s.is_some(),
            check: self.check,
            agreement: record.agreement.as_ref(),
            agreement_absent: record.agreement_absent.as_deref(),
            precision: bounding_precision(record),
            placement: record.placement.as_ref(),
            placement_problem: self.placement_problem.as_deref(),
            layers: record.layers.as_ref(),
            layers_problem: self.layers_problem.as_deref(),
            warnings: &record.backend.warnings,
            memory: Some(&record.memory),
            telemetry: &self.telemetry,
            load: record.load.as_ref(),
            stalls: &record.stalls,
            lost_samples: self.lost + self.samples.unread(),
            batch: record.batch,
            input: record.input.as_ref(),
            consistency: &record.consistency,
            accuracy: record.accuracy.as_ref(),
            accuracy_absent: record.accuracy_absent.as_deref(),
            timed: self.timed,
        });
        record.verdict = Some(verdict);
        record.verdict_reasons = reasons;
    }
}

/// Whether one thread does all the work and never sleeps.
fn is_serial(record: &CellRecord) -> bool {
    let on_cpu = [BackendName::Rten, BackendName::OrtCpu].iter().any(|backend| record.backend.name == backend.name());
    on_cpu && record.backend.threads == Some(1)
}

/// What the outputs are bounded by: a file that brings its own precision was also the reference in it.
pub(crate) fn bounding_precision(record: &CellRecord) -> Precision {
    match (record.precision.requested, &record.model.info) {
        (Precision::Native, Some(info)) => prony_backend::precision_of(info),
        (requested, _) => requested,
    }
}

/// The model's own file, for backends that run it as it is.
fn itself(spec: &CellSpec) -> ArtifactRecord {
    ArtifactRecord {
        sha256: spec.model.sha256.clone(),
        path: match &spec.model.source {
            ModelSource::Builtin(_) => None,
            ModelSource::File(path) => Some(path.display().to_string()),
        },
        from_cache: false,
        rebuilt_because: None,
        notes: Vec::new(),
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Memory at the end, against its limit. Where our own allocator keeps the limit, its count is held against it; elsewhere
/// what went away on the device since the worker began.
fn memory(
    host_peak_bytes: u64,
    device: Option<&DeviceUse>,
    limit_bytes: Option<u64>,
    at_load: &MemoryRecord,
    begun_ns: u64,
) -> MemoryRecord {
    let taken = device.and_then(|device| device.taken_bytes);
    let allocator = device.and_then(|device| device.allocator_peak_bytes);
    let hard = device.is_some_and(|device| device.hard_limit);
    let counted = if hard { allocator } else { taken };
    let over = counted.zip(limit_bytes).filter(|(used, limit)| used > limit);
    let over = over.map(|(used, limit)| {
        format!("{:.0} MiB of GPU memory were taken, the limit is {:.0} MiB", mib(used), mib(limit))
    });
    let refused = device.iter().flat_map(|device| &device.violations).map(|violation| {
        let (asked, held) = (mib(violation.asked_bytes), mib(violation.held_bytes));
        let since = violation.t_ns.saturating_sub(begun_ns) as f64 / 1e9;
        format!("{asked:.1} MiB were asked for while {held:.1} MiB were held, {since:.1} s after the worker began")
    });
    let violations: Vec<String> = over.into_iter().chain(refused).collect();
    let nearly = counted.zip(limit_bytes).filter(|(used, limit)| *used as f64 > *limit as f64 * NEARLY);
    let warning = nearly.filter(|_| violations.is_empty()).map(|(used, limit)| {
        let (used, limit, share) = (mib(used), mib(limit), NEARLY * 100.0);
        format!("{used:.1} MiB of the GPU memory limit of {limit:.1} MiB were in use, more than {share:.0} %")
    });
    MemoryRecord {
        host_peak_mib: (host_peak_bytes > 0).then(|| mib(host_peak_bytes)),
        device_peak_mib: taken.map(mib),
        allocator_peak_mib: allocator.map(mib),
        process_mib: device.and_then(|device| device.process_bytes).map(mib),
        limit_mib: limit_bytes.map(mib),
        // A provider's arena keeps to it; contexts, kernels and workspaces are beyond its reach.
        limit_type: limit_bytes.map(|_| if hard { "hard" } else { "soft" }.to_owned()),
        within_limit: limit_bytes.map(|_| violations.is_empty()),
        violations,
        warning,
        unified: device.map(|device| device.unified).filter(|&unified| unified),
        ..at_load.clone()
    }
}
