//! Whole documents: of a run folder, a data set, a cache and an index of packages, by the writers that make them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use prony_forge::{EngineSidecar, GRAPH_SCHEMA, GraphMaking, GraphRecipe, GraphSidecar, Recipe};
use prony_model::ENGINE_SCHEMA;
use prony_source::coco::{ResultRow, ResultWriter};
use prony_source::synth;
use prony_store::{LineLog, SampleLog};
use prony_types::{
    CellStatus, Doing, EngineIdentity, EngineSpec, Event, EventKind, FailureKind, HalfSpec, Happened, Phase, Precision,
    RewriteSpec, RunEvent, RunEventKind, RunRecord, Sample, SceneKind,
};

use crate::{fixture, wheels};

/// Runs a writer in a folder of its own and takes what it wrote.
fn written(write: impl FnOnce(&Path) -> Option<Vec<Vec<u8>>>) -> Vec<Vec<u8>> {
    tempfile::tempdir().ok().and_then(|folder| write(folder.path())).unwrap_or_default()
}

pub(super) fn records() -> Vec<Vec<u8>> {
    let one = || fixture::record(vec![fixture::cell("yolo", Precision::Fp16, 4.0, 7)]);
    let mut records = vec![fixture::nothing_completed(), one(), fixture::hostile()];
    for record in &mut records {
        // Curves are many numbers of one kind; a few are as good.
        for cell in &mut record.cells {
            cell.timeline.truncate(4);
            cell.slug = prony_types::slug_of(&cell.id);
        }
    }
    records.iter().filter_map(|record| serde_json::to_vec(record).ok()).collect()
}

pub(super) fn events() -> Vec<Vec<u8>> {
    let kinds = [
        EventKind::Started { pid: 7, version: "0.1.0".into() },
        EventKind::Steady { samples: 30, seconds: 0.5, settled: true },
        EventKind::RoundDone { round: 1, samples: 80, seconds: 0.5, load: None },
        EventKind::Throughput { frames: 99, seconds: 0.5, in_flight: 2 },
        EventKind::Failed { kind: FailureKind::Model, message: "cannot load it".into(), device: None },
    ];
    let RunRecord { run, plan, environment, .. } =
        fixture::record(vec![fixture::cell("yolo", Precision::Fp16, 4.0, 7)]);
    let cell = plan.cells.first().map(|cell| cell.id.clone()).unwrap_or_default();
    let began = RunEventKind::Began {
        info: Box::new(run),
        plan: Box::new(plan),
        environment: Box::new(environment),
        fates: BTreeMap::new(),
        earlier: None,
        baseline: None,
    };
    let last = [
        RunEventKind::Doing { cell: cell.clone(), doing: Doing::Measuring },
        RunEventKind::Unreferenced { cell: cell.clone(), reason: "none".into() },
        RunEventKind::Closed { cell, status: CellStatus::Completed, reason: None, lost: 0 },
        RunEventKind::Ended {
            finished: "2026-11-15T04:12:00Z".into(),
            wall_s: 9.0,
            interrupted: false,
            accuracy_comparisons: Vec::new(),
        },
    ];
    let did = |t_ns, kind: &RunEventKind| Happened::Run(Box::new(RunEvent { t_ns, kind: kind.clone() }));
    let log = |count: usize| {
        written(|folder| {
            let path = folder.join("events.jsonl");
            let mut log = LineLog::open(&path).ok()?;
            log.append(&did(0, &began)).ok()?;
            for (t_ns, kind) in (1..).zip(kinds.iter().take(count)) {
                log.append(&Event { t_ns, cell: "yolo:rten:fp32".into(), slot: 0, kind: kind.clone() }).ok()?;
            }
            last.iter().take(count).try_for_each(|kind| log.append(&did(9, kind))).ok()?;
            Some(vec![fs::read(path).ok()?])
        })
    };
    [log(5), log(2)].concat()
}

pub(super) fn samples() -> Vec<Vec<u8>> {
    let phases = [Phase::Cold, Phase::Warmup, Phase::Steady, Phase::Throughput];
    let log = |cell: &str| {
        written(|folder| {
            let path = folder.join("samples.csv");
            let mut log = SampleLog::open(&path).ok()?;
            for (start_ns, phase) in (1..).zip(phases) {
                let parts_ns = [Some(11), None, Some(7), None, Some(2)];
                let sample = Sample { start_ns, phase, round: 1, frame: 3, detections: 2, parts_ns, total_ns: 20 };
                log.append(cell, 1, &sample).ok()?;
            }
            log.flush().ok()?;
            Some(vec![fs::read(path).ok()?])
        })
    };
    [log("yolo:rten:fp32"), log("a \"b\",\nc:rten:fp32"), log("=1+1:rten:fp32")].concat()
}

pub(super) fn plans() -> Vec<Vec<u8>> {
    let long = "models = ['yolo.onnx', \"builtin-rgb\", 'a\\xff.onnx']\nbackends = ['rten', 'ort-cpu']\nprecision = ['fp32', 'int8']\n\
                batch = [1, 4]\nduration = '2s'\nimgsz = '480x640'\nsource = 'photos' # a comment\nconf = 0.25\nlibrary = ['onnxruntime=/opt/x.so']\n\
                gpu-mem-limit = '4GB'\n\n[gates]\nmap_min = 0.5\np99_max_ms = 20\n\n[engine]\nworkspace = 1073741824\nopt-level = 3\n\
                profile = ['images=1x3x320x320:1x3x640x640:4x3x640x640']\n";
    let short = "models = [\"yolo.onnx\"]\ntier = 'quick'\nbatch = 4\nduration = 10\nstrict = true\n";
    [long, short].map(|plan| plan.as_bytes().to_vec()).to_vec()
}

/// `data.yaml` and the annotations of one made data set.
fn data(file: &str) -> Vec<u8> {
    let made = written(|folder| {
        synth::write(SceneKind::Thermal, 2, 7, folder, &|_| true).ok()?;
        Some(vec![fs::read(folder.join(file)).ok()?])
    });
    made.into_iter().next().unwrap_or_default()
}

pub(super) fn data_yamls() -> Vec<Vec<u8>> {
    let usual = "path: ../datasets/coco8 # root\ntrain: images/train\nval: [images/val, 'more: images']\nnc: 2\nnames:\n  0: person\n  1: \"traffic \
                 light\"\ndownload: |\n  from x import y\n  y()\n";
    let flow = "val: a\nnames: ['a', \"b\", c d]\nnc: 3\n";
    vec![data("data.yaml"), usual.into(), flow.into(), b"nc: 80\nval: images\n".to_vec()]
}

pub(super) fn cocos() -> Vec<Vec<u8>> {
    let results = written(|folder| {
        let path = folder.join("detections.json");
        let mut writer = ResultWriter::create(&path).ok()?;
        for image_id in 1..4 {
            let row = ResultRow { image_id, category_id: 1, bbox: [1.0, 2.5, 30.0, 40.0], score: 0.5 };
            writer.push(&row).ok()?;
        }
        writer.finish().ok()?;
        Some(vec![fs::read(path).ok()?])
    });
    [vec![data("annotations/instances.json")], results].concat()
}

pub(super) fn sidecars() -> Vec<Vec<u8>> {
    let engine = EngineSidecar {
        schema: ENGINE_SCHEMA.into(),
        prony: "0.1.0".into(),
        created: "2026-11-16T00:00:00Z".into(),
        model: "yolo".into(),
        onnx_bytes: 1000,
        recipe: Recipe {
            onnx_sha256: "ab".repeat(32),
            weights: BTreeMap::from([("w.bin".into(), "cd".repeat(32))]),
            engine: EngineSpec::new(Precision::Fp16),
            calibration_sha256: None,
            float_tail: Some(3),
            identity: EngineIdentity {
                tensorrt: "8.6.0".into(),
                gpu: "NVIDIA H200".into(),
                compute_capability: "9.0".into(),
                sm_count: 132,
                driver: "580.1".into(),
                cuda: "13.0".into(),
                version_compatible: false,
                hardware_compatible: false,
            },
            plugins: BTreeMap::new(),
            gpu_mem_limit_bytes: None,
        },
        engine_sha256: "ef".repeat(32),
        size_bytes: 99,
        build_s: 2.5,
        notes: vec!["a note".into()],
        host_peak_bytes: Some(1 << 30),
        host_available_low_bytes: None,
        device_peak_bytes: None,
    };
    let graph = GraphSidecar {
        schema: GRAPH_SCHEMA.into(),
        prony: "0.1.0".into(),
        created: "2026-11-16T00:00:00Z".into(),
        model: "yolo".into(),
        recipe: GraphRecipe {
            source_sha256: "ab".repeat(32),
            making: GraphMaking::Rewrite(RewriteSpec::Half(HalfSpec::new(Precision::Fp16))),
            imgsz: Some([640, 640]),
            calibration_sha256: None,
            ranges_by: None,
            revision: 1,
        },
        sha256: "ef".repeat(32),
        size_bytes: 99,
        made_s: 0.5,
        notes: Vec::new(),
        report: serde_json::json!({ "nodes": 3 }),
    };
    [serde_json::to_vec_pretty(&engine), serde_json::to_vec_pretty(&graph)].into_iter().flatten().collect()
}

pub(super) fn whole_wheels() -> Vec<Vec<u8>> {
    let wheel = |recipe: wheels::Recipe| written(|folder| Some(vec![fs::read(recipe.write(folder)).ok()?]));
    let ffmpeg = wheels::Recipe {
        package: "imageio-ffmpeg",
        files: vec![("imageio_ffmpeg/binaries/ffmpeg-linux-x86_64-v7.0.2".into(), wheels::noise(200))],
        ..wheels::Recipe::onnxruntime("0.6.0", 10)
    };
    [wheel(wheels::Recipe::onnxruntime("1.31.1", 500)), wheel(ffmpeg)].concat()
}
