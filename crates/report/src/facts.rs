//! Labelled facts, gathered once so that Markdown and HTML cannot say different things.

use prony_types::{
    CellRecord, CellSpec, Check, Environment, GpuRecord, LayerTime, LoadCounters, LoadRecord, MethodRecord, ModelPart,
    Outcome, OutputsRecord, Plan, PythonPackage, Resident, RunRecord, RuntimeRecord, RuntimeState, Sensitivity,
    SourceSpec, Stage, StageStats, Stall, TensorAgreement,
};

use crate::fact::{Fact, Group};
use crate::{accuracy, figure, row};

/// Collects facts; absent ones are left out.
#[derive(Default)]
struct List(Vec<Fact>);

impl List {
    fn add(&mut self, label: &'static str, value: impl Into<String>) {
        let value = value.into();
        if !value.trim().is_empty() {
            self.0.push(Fact { label, value });
        }
    }

    fn maybe(&mut self, label: &'static str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.add(label, value);
        }
    }

    fn group(self, title: &'static str) -> Option<Group> {
        (!self.0.is_empty()).then_some(Group { title, facts: self.0 })
    }
}

/// The run itself.
pub(crate) fn run(record: &RunRecord) -> Vec<Fact> {
    let run = &record.run;
    let mut list = List::default();
    list.add("run", &run.id);
    list.add("command", run.command.join(" "));
    list.add("version", &run.version);
    list.add("started", &run.started);
    let again: Vec<&str> = run.resumed.iter().map(|sitting| sitting.started.as_str()).collect();
    list.maybe("resumed", Some(again.join(", ")).filter(|text| !text.is_empty()));
    list.add("finished", run.finished.as_deref().unwrap_or("not yet"));
    list.maybe("wall time", run.wall_s.map(figure::seconds));
    list.add("exit code", run.exit_code.map_or_else(|| "none yet".to_owned(), |code| u8::from(code).to_string()));
    list.add("executable", &run.binary_sha256);
    list.add("schema", &record.schema);
    if run.redacted {
        list.add("redacted", "host name and paths were left out");
    }
    list.0
}

/// The machine.
pub(crate) fn environment(env: &Environment) -> Vec<Fact> {
    let mut list = List::default();
    list.maybe("host", env.hostname.as_deref());
    list.maybe("machine", env.machine.as_deref());
    list.maybe("processor", env.cpu.name.as_deref());
    let cores = env.cpu.cores.map_or_else(String::new, |n| format!(", {n} cores"));
    list.add("CPUs", format!("{} usable{cores}", env.cpu.usable));
    list.maybe("highest clock", env.cpu.max_khz.map(|khz| format!("{}\u{a0}GHz", figure::number(khz as f64 / 1e6))));
    list.maybe("governor", env.cpu.governor.as_deref());
    list.add("instruction sets", env.cpu.features.join(" "));
    list.add("architecture", &env.arch);
    list.maybe("system", env.os.as_deref());
    list.maybe("kernel", env.kernel.as_deref());
    list.maybe("virtualization", env.virtualization.as_deref());
    let memory = env.mem_total_bytes.map(|total| {
        let free = env.mem_available_bytes.map(|free| format!(", {} available at the start", figure::bytes(free)));
        format!("{}{}", figure::bytes(total), free.unwrap_or_default())
    });
    list.maybe("memory", memory);
    list.maybe(
        "swap",
        env.swap_total_bytes.map(|swap| if swap == 0 { "none".to_owned() } else { figure::bytes(swap) }),
    );
    list.maybe("free on disk", env.disk_free_bytes.map(figure::bytes));
    list.maybe("Jetson Linux", env.l4t.as_deref());
    list.maybe("JetPack", env.jetpack.as_deref());
    list.maybe("power mode", env.power_mode.as_deref());
    for gpu in &env.gpus {
        list.add("GPU", graphics(gpu));
    }
    list.maybe("GPU driver", env.driver.as_deref());
    env.peaks.iter().for_each(|peak| list.add("peak", peak.to_string()));
    for runtime in env.runtimes.iter().filter(|runtime| runtime.state != RuntimeState::Missing) {
        list.add(runtime.name.name(), installed(runtime));
    }
    let missing = env.runtimes.iter().filter(|runtime| runtime.state == RuntimeState::Missing);
    list.add("not found", missing.map(|runtime| runtime.name.name()).collect::<Vec<_>>().join(", "));
    let package = |package: &PythonPackage| format!("{} {}", package.name, package.version);
    list.add("Python packages", env.python.iter().map(package).collect::<Vec<_>>().join(", "));
    let objection = |check: &&Check| check.outcome != Outcome::Pass;
    let told = |check: &Check| format!("{} {}", check.outcome.name(), check.name);
    let objections: Vec<String> = env.preflight.iter().filter(objection).map(told).collect();
    let passed = env.preflight.len() - objections.len();
    if !env.preflight.is_empty() {
        let rest = if objections.is_empty() { String::new() } else { format!("; {}", objections.join(", ")) };
        list.add("preflight", format!("{passed} of {} checks passed{rest}", env.preflight.len()));
    }
    list.maybe("load at the start", env.load1.map(|load| format!("{load:.2}")));
    list.add("sensors", if env.sensors.is_empty() { "none answered".to_owned() } else { env.sensors.join(", ") });
    list.0
}

fn graphics(gpu: &GpuRecord) -> String {
    let mut text = gpu.name.clone();
    let mut also = |more: Option<String>| text.extend(more.map(|more| format!(", {more}")));
    also(gpu.compute.as_ref().map(|compute| format!("compute capability {compute}")));
    also(gpu.sms.map(|sms| format!("{sms} SMs")));
    also(gpu.mem_total_bytes.map(figure::bytes));
    also(gpu.integrated.filter(|&yes| yes).map(|_| "memory shared with the host".to_owned()));
    text
}

fn installed(runtime: &RuntimeRecord) -> String {
    let path = runtime.path.as_deref().map_or_else(String::new, |path| format!(" ({path})"));
    let trusted = runtime.trusted.as_ref();
    let trusted =
        trusted.map_or_else(String::new, |problem| format!("; opened because of --trust-library, although {problem}"));
    match (&runtime.version, &runtime.reason) {
        (_, Some(reason)) => format!("{}: {reason}{path}{trusted}", runtime.state.name()),
        (Some(version), None) => format!("{version}{path}{trusted}"),
        (None, None) => format!("{}{path}{trusted}", runtime.state.name()),
    }
}

/// How every row was measured.
pub(crate) fn method(method: &MethodRecord) -> Vec<Fact> {
    let mut list = List::default();
    list.add("clock", &method.clock);
    list.add("total", &method.total);
    list.add("warm-up", &method.warmup);
    list.add("stopping", &method.stopping);
    list.add("schedule", &method.schedule);
    list.add("intervals", &method.intervals);
    list.add("percentiles", &method.percentiles);
    list.add("comparison", &method.comparison);
    list.add("throughput", &method.throughput);
    list.maybe("between runs", method.between_runs.as_deref());
    list.0
}

/// What was asked.
pub(crate) fn plan(plan: &Plan) -> Vec<Fact> {
    let mut list = List::default();
    list.add("name", &plan.name);
    let source = match &plan.input.source {
        SourceSpec::Scenes => "built-in scenes".to_owned(),
        SourceSpec::Dir(path) => format!("images of {}", path.display()),
        SourceSpec::Tensor(path) => format!("tensor {}", path.display()),
    };
    list.add("input", format!("{source}, seed {}, at most {} frames", plan.input.seed, plan.input.frames));
    let post = &plan.post;
    list.add("detections", format!("conf {}, IoU {}, at most {} an image", post.conf, post.iou, post.max_det));
    list.maybe("scored on", plan.evaluation.as_ref().map(|spec| accuracy::asked(&spec.data)));
    let budget = &plan.budget;
    list.add("warm-up", budget.warmup_s.map_or_else(|| "until steady".to_owned(), asked));
    let duration = budget.duration_s.map_or_else(
        || format!("until the interval is narrow, at most {}", asked(budget.limit_s)),
        |s| format!("{}, no early stop", asked(s)),
    );
    list.add("duration", duration);
    list.maybe("samples", budget.samples.map(|n| format!("at most {}", figure::count(n))));
    list.maybe(
        "at least",
        budget
            .at_least
            .map(|floor| format!("{} samples, for at most {}", figure::count(floor.samples), asked(floor.limit_s))),
    );
    list.add("timeout", asked(budget.timeout_s));
    list.maybe("cells loaded at a time", (plan.resident != Resident::Auto).then(|| plan.resident.to_string()));
    let reference = &plan.reference;
    let whose = reference.model.as_ref().map_or_else(|| "each model itself".to_owned(), |model| model.name.clone());
    let version = reference.runtime.as_ref().map_or_else(String::new, |runtime| format!(" {}", runtime.version));
    list.add("outputs are held against", format!("{whose} on {}{version}", reference.backend));
    let limits: Vec<String> = plan.gates.limits().map(|(name, limit)| format!("{name} {limit}")).collect();
    list.maybe("gates", (!limits.is_empty()).then(|| limits.join(", ")));
    list.maybe("baseline", plan.gates.baseline.as_ref().map(|path| path.display().to_string()));
    list.add("strict", if plan.strict { "yes" } else { "no" });
    for note in &plan.notes {
        list.add("note", note);
    }
    list.0
}

/// Seconds as the user gave them, not as a measurement.
fn asked(seconds: f64) -> String {
    format!("{seconds}\u{a0}s")
}

/// Heads of the table of planned cells.
pub(crate) const PLANNED_HEADS: [&str; 7] = ["cell", "input, H×W", "head", "batch", "device", "threads", "asked for"];

/// The cells of the plan.
pub(crate) fn planned(plan: &Plan) -> Vec<[String; 7]> {
    let row = |spec: &CellSpec| {
        [
            spec.id.clone(),
            spec.imgsz.map_or_else(|| figure::ABSENT.to_owned(), |[h, w]| format!("{h}×{w}")),
            spec.head.name().to_owned(),
            spec.batch.to_string(),
            spec.device.to_string(),
            spec.threads.map_or_else(|| "backend's choice".to_owned(), |n| n.to_string()),
            if spec.named { "by name" } else { "by default" }.to_owned(),
        ]
    };
    plan.cells.iter().map(row).collect()
}

/// Memory over all cells.
pub(crate) fn memory_safety(record: &RunRecord) -> Vec<Fact> {
    let safety = &record.memory_safety;
    let mut list = List::default();
    let within = match safety.all_within_limit {
        Some(true) => "every cell stayed within its limit",
        Some(false) => "a limit was broken",
        None => "no limit was asked for",
    };
    list.add("limit", within);
    list.add("violations", safety.total_violations.to_string());
    for cell in record.cells.iter().filter(|cell| !cell.memory.violations.is_empty()) {
        list.add("violation", format!("{}: {}", cell.id, cell.memory.violations.join("; ")));
    }
    for (cell, warning) in record.cells.iter().filter_map(|cell| Some((cell, cell.memory.warning.as_ref()?))) {
        list.add("warning", format!("{}: {warning}", cell.id));
    }
    list.maybe("lowest available", safety.lowest_available_mib.map(figure::mib));
    if record.waves.len() > 1 {
        for (number, wave) in (1..).zip(&record.waves) {
            let reason = wave.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            list.add("loaded together", format!("wave {number}: {}{reason}", wave.cells.join(", ")));
        }
    }
    list.0
}

/// All of a cell but its stages, charts and reasons.
pub(crate) fn cell(record: &RunRecord, cell: &CellRecord) -> Vec<Group> {
    let measured = [phases(cell), throughput(cell), roofline(cell), engine(cell)];
    let right = [accuracy::group(cell), agreement(cell), accuracy::consistency(cell)];
    let rest = [model(record, cell), backend(cell), input(cell), memory(cell)];
    measured.into_iter().chain(rest).chain(right).flatten().collect()
}

/// What the device allows at best, and how near the cell came.
fn roofline(cell: &CellRecord) -> Option<Group> {
    let mut list = List::default();
    if let Some(floor) = &cell.roofline {
        list.add("roofline", floor.to_string());
        list.add("arithmetic", format!("{}\u{a0}GFLOP a call", figure::number(floor.flops as f64 / 1e9)));
        list.add("moved", format!("{} by convolutions and products", figure::bytes(floor.bytes)));
        list.maybe("intensity", floor.intensity().map(|ratio| format!("{} FLOP a byte", figure::number(ratio))));
        list.add("peak of", &floor.device);
    }
    list.maybe("no prediction", cell.roofline_absent.as_deref());
    list.group("Roofline")
}

/// The engine that was built, what its layers compute in, and what trtexec would say of it.
fn engine(cell: &CellRecord) -> Option<Group> {
    let mut list = List::default();
    list.maybe("build", cell.build_ms.map(|ms| figure::seconds(ms / 1e3)));
    if let Some(artifact) = &cell.artifact {
        list.maybe("rebuilt because", artifact.rebuilt_because.as_deref());
        list.add("notes", artifact.notes.join("; "));
    }
    if let Some(layers) = &cell.layers {
        list.add("layers", layers.to_string());
        let slow = |layer: &LayerTime| format!("{} ({}) {}", layer.name, layer.dtype, figure::ms(layer.ms));
        list.add("slowest layers", layers.slowest.iter().map(slow).collect::<Vec<_>>().join("; "));
    }
    for line in &cell.equivalents {
        let (latency, rate) = (figure::ms(line.latency_ms), figure::number(line.throughput_qps));
        list.add("in other words", format!("{}: {latency}, {rate} qps ({})", line.tool, line.definition));
    }
    list.group("Engine")
}

fn phases(cell: &CellRecord) -> Option<Group> {
    let mut list = List::default();
    list.maybe("load", cell.load_ms.map(figure::ms));
    list.maybe("cold (first frame)", cell.phases.cold_ms.map(figure::ms));
    list.maybe("first second", cell.phases.first_second_ms.map(figure::ms));
    list.maybe("steady", cell.phases.steady_ms.map(figure::ms));
    list.maybe("warm-up", cell.phases.warmup_s.map(figure::seconds));
    list.group("Phases")
}

fn throughput(cell: &CellRecord) -> Option<Group> {
    let mut list = List::default();
    list.maybe("throughput", cell.throughput_fps.map(figure::fps));
    list.maybe("in flight", cell.in_flight.map(|n| n.to_string()));
    list.maybe("detections a frame", cell.detections_per_frame.map(figure::number));
    let samples = &cell.samples;
    if samples.steady > 0 || samples.warmup > 0 {
        let lost = if samples.lost > 0 { format!(", {} lost", figure::count(samples.lost)) } else { String::new() };
        let text = format!("{} timed, {} warm-up{lost}", figure::count(samples.steady), figure::count(samples.warmup));
        list.add("samples", text);
    }
    list.maybe("taken by others", cell.load.as_ref().and_then(load));
    let stood_still = |stall: &Stall| format!("{} in round {}", figure::seconds(stall.seconds), stall.round);
    list.add("stood still", cell.stalls.iter().map(stood_still).collect::<Vec<_>>().join(", "));
    list.add(
        "median by round",
        cell.round_p50_ms.iter().map(|&p50| figure::number(p50)).collect::<Vec<_>>().join(", "),
    );
    if let Some(last) = list.0.last_mut().filter(|fact| fact.label == "median by round") {
        last.value.push_str("\u{a0}ms");
    }
    list.maybe(
        "temperature",
        cell.temp_c.map(|t| {
            format!(
                "{} (lowest {}, highest {})",
                figure::celsius(t.avg),
                figure::celsius(t.min),
                figure::celsius(t.max)
            )
        }),
    );
    list.group("Throughput and samples")
}

fn load(load: &LoadRecord) -> Option<String> {
    let share = figure::percent(load.others_share?);
    let LoadCounters { wall_s, cpu_s, run_queue_wait_s, involuntary_switches, steal_s, .. } = load.counters;
    let seconds = |what: &str, s: Option<f64>| s.map(|s| format!("{what} {}", figure::seconds(s)));
    let switches = involuntary_switches.map(|n| format!("{} involuntary switches", figure::count(n)));
    let waited = seconds("run-queue wait", run_queue_wait_s);
    let parts = [seconds("CPU time", cpu_s), waited, seconds("stolen", steal_s), switches].into_iter().flatten();
    let parts = parts.collect::<Vec<_>>().join(", ");
    Some(format!("{share} of the CPU time asked for ({parts} in {} of rounds)", figure::seconds(wall_s)))
}

fn model(record: &RunRecord, cell: &CellRecord) -> Option<Group> {
    let mut list = List::default();
    list.add("model", &cell.model.name);
    list.add("sha256", &cell.model.sha256);
    let files = cell.model.info.iter().flat_map(|info| &info.files);
    let file = |part: &ModelPart| format!("{} {}", part.sha256.as_deref().unwrap_or("unreadable"), part.file);
    let files: Vec<String> = files.map(file).collect();
    list.maybe("sha256 covers", (!files.is_empty()).then(|| files.join(", ")));
    list.maybe("task", cell.model.task.as_deref());
    list.maybe("input", cell.model.input.as_deref());
    list.add("input size", row::imgsz(record, cell));
    list.maybe("head", cell.model.head.as_deref());
    if let Some(info) = &cell.model.info {
        list.maybe("parameters", (info.parameters > 0).then(|| figure::count(info.parameters)));
        list.maybe("weights", info.weights.map(|w| w.to_string()));
        list.maybe("opset", info.opset.map(|n| n.to_string()));
        list.add("inputs", info.inputs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        list.add("outputs", info.outputs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        list.add("operators", info.operators.join(" "));
        list.maybe("stride", info.metadata.stride.map(|n| n.to_string()));
        list.maybe("end to end", info.metadata.end2end.map(|yes| if yes { "yes" } else { "no" }));
        list.add("classes", info.metadata.names.join(", "));
    }
    if let Some(artifact) = &cell.artifact {
        let cache = if artifact.from_cache { " (from the cache)" } else { "" };
        list.add("artifact", format!("{}{cache}", artifact.sha256));
        list.maybe("artifact file", artifact.path.as_deref());
    }
    list.group("Model")
}

fn backend(cell: &CellRecord) -> Option<Group> {
    let mut list = List::default();
    list.add(
        "backend",
        format!("{} {}", cell.backend.name, cell.backend.version.as_deref().unwrap_or_default()).trim(),
    );
    list.maybe("library", cell.backend.library.as_deref());
    if let Some(provider) = &cell.backend.provider {
        list.add("provider asked for", &provider.requested);
        list.maybe("provider that has the nodes", provider.actual.as_deref());
    }
    list.maybe("placement", cell.placement.as_ref().map(ToString::to_string));
    list.maybe("device", cell.backend.device.as_deref());
    list.maybe("threads", cell.backend.threads.map(|n| n.to_string()));
    let cpus = |cpus: &[u32]| cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    list.maybe("on CPUs", cell.backend.affinity.as_ref().map(|a| cpus(&a.cpus)));
    list.maybe("settings", Some(cell.backend.settings.join("; ")).filter(|text| !text.is_empty()));
    list.maybe("warnings", Some(cell.backend.warnings.join("; ")).filter(|text| !text.is_empty()));
    list.add("precision asked for", cell.precision.requested.name());
    list.maybe("precision executed", cell.precision.executed.as_deref());
    list.add("batch", cell.batch.to_string());
    list.add("attempt", cell.attempt.to_string());
    list.maybe("earlier attempt", cell.out_of_memory.as_ref().map(ToString::to_string));
    list.group("Backend")
}

fn input(cell: &CellRecord) -> Option<Group> {
    let input = cell.input.as_ref()?;
    let mut list = List::default();
    list.add("source", &input.source);
    list.add("frames", format!("{} distinct", input.frames));
    list.maybe("frame size", input.size.map(|[w, h]| format!("{w}×{h}\u{a0}px")));
    let mib = input.resident_bytes as f64 / f64::from(1 << 20);
    list.maybe("in memory", (input.resident_bytes > 0).then(|| format!("{}, part of the host peak", figure::mib(mib))));
    let decoded = |decode: &StageStats| format!("{} an image, {} images", figure::ms(decode.p50), decode.n);
    list.maybe("decoding, apart", input.decode_ms.as_ref().map(decoded));
    list.add("sha256", &input.sha256);
    let hashed = |outputs: &OutputsRecord| format!("{} (frame {})", outputs.sha256, outputs.frame);
    list.maybe("sha256 of the raw outputs", cell.outputs.as_ref().map(hashed));
    list.add("skipped files", input.skipped.join("; "));
    list.group("Input")
}

fn memory(cell: &CellRecord) -> Option<Group> {
    let memory = &cell.memory;
    let mut list = List::default();
    list.maybe("host peak", memory.host_peak_mib.map(figure::mib));
    list.maybe("device after warm-up", memory.device_peak_mib.map(figure::mib));
    list.maybe("of it through our allocator", memory.allocator_peak_mib.map(figure::mib));
    list.maybe("device, whole process", memory.process_mib.map(figure::mib));
    list.maybe("host peak of loading", memory.load_host_peak_mib.map(figure::mib));
    list.maybe("device once loaded", memory.load_device_mib.map(figure::mib));
    list.maybe("unified", memory.unified.map(|yes| if yes { "yes" } else { "no" }));
    let kind = memory.limit_type.as_deref().map_or_else(String::new, |kind| format!(" ({kind})"));
    list.maybe("limit", memory.limit_mib.map(|limit| format!("{}{kind}", figure::mib(limit))));
    list.maybe("within limit", memory.within_limit.map(|yes| if yes { "yes" } else { "no" }));
    list.add("violations", memory.violations.join("; "));
    list.maybe("warning", memory.warning.as_deref());
    list.group("Memory")
}

fn agreement(cell: &CellRecord) -> Option<Group> {
    let mut list = List::default();
    list.maybe("none, because", cell.agreement_absent.as_deref());
    let Some(agreement) = &cell.agreement else { return list.group("Agreement") };
    list.add("reference", &agreement.reference);
    // Without a head all values are held in `boxes`.
    let headless = agreement.scores.is_none() && agreement.matched_boxes.is_none();
    list.maybe(if headless { "outputs" } else { "boxes" }, agreement.boxes.as_ref().map(tensor));
    list.maybe("scores", agreement.scores.as_ref().map(tensor));
    list.maybe("masks, key points", agreement.rest.as_ref().map(tensor));
    let of = agreement.compared_boxes.map(|boxes| format!(" of {}", figure::count(boxes))).unwrap_or_default();
    list.maybe("matched boxes", agreement.matched_boxes.map(|share| figure::percent(share) + &of));
    list.maybe("moved by rounding alone", agreement.sensitivity.as_ref().map(|moved| sensitivity(moved, headless)));
    list.group("Agreement")
}

/// How far an input that is rounded carries the reference's own outputs.
fn sensitivity(moved: &Sensitivity, headless: bool) -> String {
    let noise = |what: &str, tensor: Option<TensorAgreement>| match tensor?.sqnr_db {
        None => Some(format!("{what} not at all")),
        Some(db) if db == -f64::MAX => Some(format!("{what} {}", figure::NOT_COMPARABLE)),
        Some(db) => Some(format!("{what} SQNR {}\u{a0}dB", figure::number(db))),
    };
    let first = if headless { "outputs" } else { "boxes" };
    let parts = [(first, moved.boxes), ("scores", moved.scores), ("masks, key points", moved.rest)];
    let mut words: Vec<String> = parts.into_iter().filter_map(|(what, tensor)| noise(what, tensor)).collect();
    words.extend(moved.unstable_boxes.map(|share| format!("{} of the boxes", figure::percent(share))));
    format!("{} (input values moved by {:.2e} of themselves)", words.join(", "), moved.epsilon)
}

fn tensor(t: &TensorAgreement) -> String {
    if t.max_abs == f64::MAX {
        return figure::NOT_COMPARABLE.to_owned();
    }
    let noise = match t.sqnr_db {
        None => "equal to the bit".to_owned(),
        // A reference of zeros: any noise is infinitely more.
        Some(db) if db == -f64::MAX => format!("SQNR {}", figure::NOT_COMPARABLE),
        Some(db) => format!("SQNR {}\u{a0}dB", figure::number(db)),
    };
    format!("{noise}, max abs {}, cosine {:.6}", figure::number(t.max_abs), t.cosine)
}

/// Heads of the stage table.
pub(crate) const STAGE_HEADS: [&str; 13] =
    ["stage", "n", "n eff", "mean", "sd", "min", "p50", "p90", "p95", "p99", "p99.9", "max", "ci95 of p50"];

/// The stage table, total last; figures in ms.
pub(crate) fn stages(cell: &CellRecord) -> Vec<[String; 13]> {
    let present = Stage::ALL.into_iter().filter_map(|stage| cell.latency_ms.get(&stage).map(|stats| (stage, stats)));
    present
        .map(|(stage, s)| {
            let maybe = |value: Option<f64>| figure::or_absent(value, figure::number);
            [
                stage.name().to_owned(),
                figure::count(s.n),
                format!("{:.0}", s.n_eff),
                figure::number(s.mean),
                figure::number(s.sd),
                figure::number(s.min),
                figure::number(s.p50),
                maybe(s.p90),
                maybe(s.p95),
                maybe(s.p99),
                maybe(s.p99_9),
                figure::number(s.max),
                s.ci95.map_or_else(|| figure::ABSENT.to_owned(), figure::interval),
            ]
        })
        .collect()
}
