//! From what workers said and what the ring held to the record of a cell. Pure: the same events and samples give the
//! same record, whether they come from a live worker or from a file.

use prony_judge::{self as judge, Evidence, shape};
use prony_store::LoggedSample;
use prony_types::{
    ArtifactRecord, BackendName, BudgetSpec, CellRecord, CellSpec, CellStatus, DeviceUse, EvaluatedData, EventKind,
    FailureKind, InputRecord, LoadCounters, MemoryRecord, ModelInfo, ModelSource, OutputCheck, Phase, Phases,
    Precision, Sample, SampleNote, Stage, Telemetry, Verdict,
};

/// Share of a memory limit from which on it is said that little was left.
const NEARLY: f64 = 0.9;

/// A cell in the making.
#[derive(Clone, Debug)]
pub(crate) struct CellFold {
    pub record: CellRecord,
    pub samples: Vec<Sample>,
    /// Readings while this cell was timed.
    pub telemetry: Vec<Telemetry>,
    check: Option<OutputCheck>,
    placement_problem: Option<String>,
    layers_problem: Option<String>,
    /// What it said of a data set; scored by whoever has the truth.
    pub evaluated: Option<EvaluatedData>,
    /// Whether it is timed, and not only scored.
    pub timed: bool,
    /// When the worker at hand began.
    pub begun_ns: u64,
    settled: bool,
    /// What else ran on the machine, round by round.
    loads: Vec<LoadCounters>,
    pub lost: u64,
}

impl CellFold {
    /// A cell that has not begun.
    pub(crate) fn new(spec: &CellSpec, attempt: u32) -> CellFold {
        CellFold {
            record: CellRecord::pending(spec, attempt),
            samples: Vec::new(),
            telemetry: Vec::new(),
            check: None,
            placement_problem: None,
            layers_problem: None,
            evaluated: None,
            timed: true,
            begun_ns: 0,
            settled: true,
            loads: Vec::new(),
            lost: 0,
        }
    }

    /// A cell that an earlier sitting completed, with the samples of all its attempts: those of the last one count.
    pub(crate) fn finished(record: CellRecord, mut rows: Vec<LoggedSample>) -> CellFold {
        if rows.iter().all(|row| row.attempt.is_none()) {
            let last_attempt = rows.iter().rposition(|row| row.sample.phase == Phase::Cold).unwrap_or(0);
            rows.drain(..last_attempt);
        } else {
            rows.retain(|row| row.attempt == Some(record.attempt));
        }
        let samples = rows.into_iter().map(|row| row.sample).collect();
        CellFold {
            record,
            samples,
            telemetry: Vec::new(),
            check: None,
            placement_problem: None,
            layers_problem: None,
            evaluated: None,
            timed: true,
            begun_ns: 0,
            settled: true,
            loads: Vec::new(),
            lost: 0,
        }
    }

    /// Takes note of what a worker said.
    pub(crate) fn apply(&mut self, spec: &CellSpec, event: &EventKind) {
        let record = &mut self.record;
        match event {
            EventKind::Started { .. }
            | EventKind::Evaluating { .. }
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
            EventKind::Evaluated { outcome, problem } => {
                self.evaluated = outcome.as_deref().cloned();
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
        let mut now = self.clone();
        now.count();
        if now.record.status == CellStatus::Pending && now.record.samples.steady > 0 {
            now.compute(budget);
            now.record.verdict = None;
            now.record.verdict_reasons = Vec::new();
        }
        now.record
    }

    /// Ends the cell. Figures are made only where they can be stood behind: not for a cell that failed.
    pub(crate) fn close(&mut self, status: CellStatus, reason: Option<String>, budget: &BudgetSpec) {
        self.record.status = status;
        self.record.reason = reason;
        self.count();
        let measured = self.record.samples.steady > 0 || !self.timed && self.record.accuracy.is_some();
        if matches!(status, CellStatus::Completed | CellStatus::Interrupted) && measured {
            self.compute(budget);
        }
    }

    fn count(&mut self) {
        let count = |wanted: &[Phase]| self.samples.iter().filter(|s| wanted.contains(&s.phase)).count() as u64;
        self.record.samples = SampleNote {
            warmup: count(&[Phase::Cold, Phase::Warmup]),
            steady: count(&[Phase::Steady]),
            lost: self.lost,
        };
    }

    fn compute(&mut self, budget: &BudgetSpec) {
        let steady: Vec<Sample> = self.samples.iter().filter(|s| s.phase == Phase::Steady).copied().collect();
        let totals: Vec<u64> = steady.iter().map(|s| s.total_ns).collect();
        let record = &mut self.record;
        record.latency_ms = judge::latency(&self.samples);
        let inference = record.latency_ms.get(&Stage::Inference).map(|stats| stats.p50);
        record.roofline.iter_mut().for_each(|roofline| roofline.measured_ms = inference);
        let total = record.latency_ms.get(&Stage::Total).copied();
        let warmup_s = record.phases.warmup_s;
        record.phases = Phases { warmup_s, ..judge::phases(&self.samples, total.as_ref()) };
        record.histogram = shape::histogram(&totals);
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
            lost_samples: self.lost,
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
