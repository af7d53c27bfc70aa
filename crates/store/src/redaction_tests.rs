//! A record full of secrets, and what is left of it.

use std::path::PathBuf;

use prony_types::{
    AccuracyComparison, AccuracyDifference, AccuracyRecord, Agreement, ArtifactRecord, ArtifactSpec, BackendName,
    BackendRecord, BudgetSpec, CalibrationMethod, CalibrationSpec, CellRecord, CellSpec, CellStatus, Check,
    CocoFigures, Comparison, CpuRecord, DataRecord, DataSpec, Difference, EngineSpec, Environment, EvaluationSpec,
    Gate, GateSpec, InputRecord, InputSpec, MemoryRecord, MemorySafety, MethodRecord, ModelSpec, Outcome, Plan,
    PostSpec, Precision, ProviderSpec, PythonPackage, Recommendation, ReferenceSpec, RunInfo, RuntimeName,
    RuntimeRecord, RuntimeSpec, RuntimeState, SCHEMA, Thumbnail, Verdict,
};

use super::*;

/// A record with a path or the host's name wherever one can be.
pub(crate) fn record() -> RunRecord {
    let model = PathBuf::from("/home/ann/my models/yolo.onnx");
    let model = ModelSpec::new("yolo", ModelSource::File(model), "ab");
    let spec = CellSpec {
        imgsz: Some([320, 320]),
        threads: Some(2),
        runtime: Some(RuntimeSpec {
            search: vec!["/home/ann/venv/nvidia/cu13/lib".into()],
            companions: [(RuntimeName::Nvonnxparser, "/home/ann/lib/libnvonnxparser.so.10".into())].into(),
            ..RuntimeSpec::new("/home/ann/.local/lib/libonnxruntime.so", "1.31.1")
        }),
        provider: ProviderSpec {
            trt_engine_cache: Some("/home/ann/engines".into()),
            trt_plugins: vec!["/home/ann/plugin.so".into()],
            ..ProviderSpec::default()
        },
        engine: Some(EngineSpec {
            calibration: Some(CalibrationSpec {
                method: CalibrationMethod::Entropy,
                source: SourceSpec::Dir("/data/ann's pics".into()),
                frames: 64,
                seed: 7,
            }),
            ..EngineSpec::new(Precision::Int8)
        }),
        artifact: Some(ArtifactSpec { path: "/home/ann/cache/x.engine".into(), sha256: "ab".into(), from_cache: true }),
        named: true,
        ..CellSpec::new(model, BackendName::Rten, Precision::Fp32)
    };
    let budget = BudgetSpec {
        warmup_s: None,
        duration_s: Some(8.0),
        samples: None,
        limit_s: 60.0,
        at_least: None,
        timeout_s: 60.0,
    };
    let word = String::from;
    RunRecord {
        schema: SCHEMA.into(),
        run: RunInfo {
            id: "20261115T041200Z-bench".into(),
            started: "2026-11-15T04:12:00Z".into(),
            finished: None,
            command: ["/opt/prony/bin/prony", "bench", "/home/ann/my models/yolo.onnx", "--out=/srv/runs", "out/x"]
                .map(word)
                .into(),
            version: "0.1.0".into(),
            binary_sha256: "cd".into(),
            exit_code: None,
            anchor_ns: 42,
            resumed: Vec::new(),
            wall_s: Some(12.3),
            redacted: false,
        },
        environment: Environment {
            hostname: Some("ann-box".into()),
            arch: "x86_64".into(),
            cpu: CpuRecord { usable: 2, features: vec!["avx2".into()], ..CpuRecord::default() },
            load1: Some(0.1),
            runtimes: vec![RuntimeRecord {
                name: RuntimeName::Onnxruntime,
                state: RuntimeState::Broken,
                path: Some("/home/ann/lib/libonnxruntime.so".into()),
                found_by: Some("loader".into()),
                version: None,
                provides: vec!["CPU".into()],
                reason: Some("/home/ann/lib/libonnxruntime.so is a text file".into()),
                trusted: Some("/home/ann/lib is writable by everyone (mode 777)".into()),
                looked: vec!["/home/ann/lib".into()],
                remedy: Some("remove /home/ann/lib/libonnxruntime.so".into()),
            }],
            python: vec![PythonPackage {
                name: "numpy".into(),
                version: "2.2.0".into(),
                place: "/home/ann/env/lib/python3.12/site-packages".into(),
            }],
            preflight: vec![Check {
                name: "load".into(),
                outcome: Outcome::Warn,
                finding: "ann-box is busy; see /var/log/syslog".into(),
                fix: Some("ps | head".into()),
            }],
            notes: vec!["ann-box is busy; see /var/log/syslog".into()],
            ..Environment::default()
        },
        method: MethodRecord {
            clock: "CLOCK_MONOTONIC".into(),
            total: "t".into(),
            warmup: "w".into(),
            stopping: "s".into(),
            schedule: "s".into(),
            intervals: "i".into(),
            percentiles: "p".into(),
            comparison: "c".into(),
            throughput: "frames/s".into(),
            between_runs: None,
        },
        plan: Plan {
            name: "bench".into(),
            cells: vec![spec.clone()],
            input: InputSpec { source: SourceSpec::Dir("/data/ann's pics/".into()), seed: 7, frames: 32 },
            post: PostSpec { conf: 0.25, iou: 0.45, max_det: 300, multi_label: false },
            budget,
            standby: Vec::new(),
            named_precisions: Vec::new(),
            reference: ReferenceSpec::default(),
            evaluation: Some(EvaluationSpec {
                data: DataSpec {
                    source: DataSource::Path("/srv/secret/instances.json".into()),
                    split: None,
                    limit: None,
                    seed: 7,
                    ids: Some("/srv/lists/ids.txt".into()),
                    images: Some("/srv/secret/images".into()),
                },
                post: PostSpec { conf: 0.001, iou: 0.7, max_det: 300, multi_label: true },
            }),
            timed: true,
            resident: prony_types::Resident::Auto,
            gates: GateSpec { baseline: Some("/srv/runs/before".into()), ..GateSpec::default() },
            strict: false,
            notes: Vec::new(),
        },
        cells: vec![cell(&spec)],
        narrowings: vec![],
        accuracy_comparisons: vec![AccuracyComparison {
            cell: "a".into(),
            against: "b".into(),
            delta: None,
            ci95: None,
            difference: AccuracyDifference::NotComparable,
            reason: "/srv/secret/detections.json is gone".into(),
        }],
        waves: vec![],
        comparisons: vec![Comparison {
            cell: "a".into(),
            against: "b".into(),
            ratio: None,
            paired_rounds: None,
            ci95: None,
            difference: Difference::NotComparable,
            reason: "see /tmp/why.txt.".into(),
        }],
        gates: vec![Gate {
            name: "map_min".into(),
            cell: "a".into(),
            figure: None,
            limit: 0.5,
            pass: false,
            inconclusive: true,
            against: None,
            reason: Some("not measured: cannot read /data/ann's pics/a b.jpg".into()),
        }],
        memory_safety: MemorySafety::default(),
        recommendation: vec![Recommendation {
            model: "yolo".into(),
            cell: None,
            front: Vec::new(),
            text: "No cell completed: /home/ann/my models/yolo.onnx is not a model.".into(),
        }],
    }
}

fn cell(spec: &CellSpec) -> CellRecord {
    CellRecord {
        backend: BackendRecord {
            name: "rten".into(),
            library: Some("/home/ann/.local/lib/libonnxruntime.so".into()),
            threads: Some(2),
            ..BackendRecord::default()
        },
        artifact: Some(ArtifactRecord {
            sha256: "ab".into(),
            path: Some("/home/ann/my models/yolo.onnx".into()),
            from_cache: false,
            rebuilt_because: Some("/home/ann/cache/x.engine was cut short".into()),
            notes: vec!["timing cache at /home/ann/cache/timing".into()],
        }),
        status: CellStatus::Failed,
        reason: Some("cannot load '/home/ann/my models/yolo.onnx': 3/4 of it is missing".into()),
        verdict: Some(Verdict::Unstable),
        verdict_reasons: vec!["log at file:/var/run/w.log on ann-box, not ann-box2".into()],
        throughput_fps: Some(171.25),
        memory: MemoryRecord { violations: vec!["/dev/shm/x".into()], ..MemoryRecord::default() },
        agreement: Some(Agreement {
            reference: "first call of ~/ref.bin".into(),
            boxes: None,
            scores: None,
            matched_boxes: None,
            ..Agreement::default()
        }),
        accuracy: Some(AccuracyRecord {
            figures: CocoFigures::default(),
            ci95: None,
            images: 1,
            detections: 1,
            data: DataRecord {
                name: "coco: /srv/secret/instances.json".into(),
                problems: vec!["/srv/secret/images/a b.jpg: is empty".into()],
                classes: "names of /srv/secret/names.txt".into(),
                ..DataRecord::default()
            },
            post: PostSpec { conf: 0.001, iou: 0.7, max_det: 300, multi_label: true },
            classes: Vec::new(),
            curves: Vec::new(),
            likely_causes: Vec::new(),
            seconds: 1.0,
        }),
        accuracy_absent: Some("/srv/secret/instances.json changed".into()),
        input: Some(InputRecord {
            source: "images of /data/ann's pics".into(),
            frames: 1,
            size: None,
            sha256: "ef".into(),
            resident_bytes: 29_491_200,
            decode_ms: None,
            skipped: vec!["/data/ann's pics/a b.jpg: broken".into()],
        }),
        round_p50_ms: vec![1.0],
        thumbnails: vec![Thumbnail { file: "0.png".into(), caption: "/data/ann's pics/c.jpg".into() }],
        ..CellRecord::pending(spec, 1)
    }
}

#[test]
fn neither_host_nor_absolute_path_is_left() {
    let mut redacted = record();
    redact(&mut redacted, &Secrets::default());
    let json = serde_json::to_string(&redacted).unwrap();
    for secret in ["/home", "my models", "/opt", "/srv", "/data", "/var", "/tmp", "/dev", "out/x", "~"] {
        assert!(!json.contains(secret), "{secret} in {json}");
    }
    assert_eq!(json.matches("ann-box").count(), 1, "only the other host's name may stay: {json}");
    assert!(redacted.run.redacted);
    assert_eq!(redacted.environment.hostname, None);
}

#[test]
fn sentences_stay_readable() {
    let mut redacted = record();
    redact(&mut redacted, &Secrets::default());
    assert_eq!(redacted.run.command, ["prony", "bench", "yolo.onnx", "--out=runs", "x"]);
    let cell = &redacted.cells[0];
    assert_eq!(cell.reason.as_deref(), Some("cannot load 'yolo.onnx': 3/4 of it is missing"));
    assert_eq!(cell.verdict_reasons, ["log at file:w.log on (host), not ann-box2"]);
    assert_eq!(cell.input.as_ref().unwrap().source, "images of (user)'s pics");
    assert_eq!(cell.input.as_ref().unwrap().skipped, ["a b.jpg: broken"]);
    assert_eq!(redacted.comparisons[0].reason, "see why.txt.");
    assert_eq!(redacted.environment.notes, ["(host) is busy; see syslog"]);
    assert_eq!(redacted.environment.preflight[0].finding, "(host) is busy; see syslog");
    assert_eq!(redacted.environment.python[0].place, "site-packages");
    let runtime = &redacted.environment.runtimes[0];
    assert_eq!((runtime.path.as_deref(), runtime.looked[0].as_str()), (Some("libonnxruntime.so"), "lib"));
    assert_eq!(runtime.reason.as_deref(), Some("libonnxruntime.so is a text file"));
    assert_eq!(runtime.remedy.as_deref(), Some("remove libonnxruntime.so"));
}

#[test]
fn no_other_fact_changes() {
    let before = record();
    let mut after = record();
    redact(&mut after, &Secrets::default());
    // Put back what may change; everything else must be as it was.
    after.run.command.clone_from(&before.run.command);
    after.run.redacted = false;
    after.environment.hostname.clone_from(&before.environment.hostname);
    after.environment.notes.clone_from(&before.environment.notes);
    after.environment.preflight[0].finding.clone_from(&before.environment.preflight[0].finding);
    after.environment.python[0].place.clone_from(&before.environment.python[0].place);
    let (old, new) = (&before.environment.runtimes[0], &mut after.environment.runtimes[0]);
    new.path.clone_from(&old.path);
    new.looked.clone_from(&old.looked);
    new.reason.clone_from(&old.reason);
    new.trusted.clone_from(&old.trusted);
    new.remedy.clone_from(&old.remedy);
    after.plan.cells[0].model.source = before.plan.cells[0].model.source.clone();
    after.plan.cells[0].runtime.clone_from(&before.plan.cells[0].runtime);
    after.plan.cells[0].provider.clone_from(&before.plan.cells[0].provider);
    after.plan.cells[0].engine.clone_from(&before.plan.cells[0].engine);
    after.plan.cells[0].artifact.clone_from(&before.plan.cells[0].artifact);
    after.plan.input.source = before.plan.input.source.clone();
    after.plan.evaluation.clone_from(&before.plan.evaluation);
    after.plan.gates.baseline.clone_from(&before.plan.gates.baseline);
    after.accuracy_comparisons[0].reason.clone_from(&before.accuracy_comparisons[0].reason);
    after.gates[0].reason.clone_from(&before.gates[0].reason);
    after.comparisons[0].reason.clone_from(&before.comparisons[0].reason);
    after.recommendation[0].text.clone_from(&before.recommendation[0].text);
    let (old, new) = (&before.cells[0], &mut after.cells[0]);
    new.artifact.clone_from(&old.artifact);
    new.backend.library.clone_from(&old.backend.library);
    new.reason.clone_from(&old.reason);
    new.verdict_reasons.clone_from(&old.verdict_reasons);
    new.memory.violations.clone_from(&old.memory.violations);
    new.agreement.clone_from(&old.agreement);
    new.input.clone_from(&old.input);
    new.accuracy_absent.clone_from(&old.accuracy_absent);
    let (of_old, of_new) = (old.accuracy.as_ref().unwrap(), new.accuracy.as_mut().unwrap());
    of_new.data.name.clone_from(&of_old.data.name);
    of_new.data.problems.clone_from(&of_old.data.problems);
    of_new.data.classes.clone_from(&of_old.data.classes);
    new.thumbnails.clone_from(&old.thumbnails);
    assert_eq!(after, before);
}

#[test]
fn redacting_twice_is_redacting_once() {
    let mut once = record();
    redact(&mut once, &Secrets::default());
    let mut twice = once.clone();
    redact(&mut twice, &Secrets::default());
    assert_eq!(once, twice);
}
