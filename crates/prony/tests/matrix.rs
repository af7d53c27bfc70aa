//! The matrix of backends and precisions on real runtimes, each held against the reference.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use prony_model::onnx::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo};
use prony_types::{Agreement, CellRecord, CellStatus, Precision, RunRecord, SceneKind, Verdict};
use prost::Message as _;
use support::numpy::{floats, npy};
use support::{Place, SHORT, at_home, cell, expect_code, has_gpu, prony, stderr, write_model};

const RUNTIMES: [&str; 2] = ["onnxruntime", "openvino"];
/// What is executed here once these are installed.
const HERE: [&str; 3] = ["rten", "ort-cpu", "openvino"];

fn short(place: &Place, home: &Path, args: &[&str]) -> Output {
    at_home(&mut place.bench(&[args, &SHORT].concat()), home).output().unwrap()
}

#[track_caller]
fn agreement(cell: &CellRecord) -> &Agreement {
    assert_eq!(cell.status, CellStatus::Completed, "{}: {:?}", cell.id, cell.reason);
    assert_ne!(cell.verdict, Some(Verdict::WrongOutput), "{}: {:?}", cell.id, cell.verdict_reasons);
    cell.agreement.as_ref().unwrap_or_else(|| panic!("{}: {:?}", cell.id, cell.agreement_absent))
}

/// The bar for fp32: what two correct libraries differ by, and no more.
#[track_caller]
fn agrees(cell: &CellRecord) {
    let agreement = agreement(cell);
    let tensors: Vec<_> = [agreement.boxes, agreement.scores].into_iter().flatten().collect();
    assert!(!tensors.is_empty(), "{}: nothing was compared", cell.id);
    for tensor in tensors {
        assert!(tensor.cosine > 0.9999 && tensor.sqnr_db.is_none_or(|db| db > 60.0), "{}: {tensor:?}", cell.id);
    }
}

/// A cell that did not run has its reason in one line, and no figures.
#[track_caller]
fn reason(cell: &CellRecord, status: CellStatus) -> &str {
    assert_eq!(cell.status, status, "{}: {:?}", cell.id, cell.reason);
    assert!(cell.latency_ms.is_empty() && cell.verdict.is_none() && cell.throughput_fps.is_none(), "{cell:?}");
    let reason = cell.reason.as_deref().unwrap();
    assert!(!reason.is_empty() && reason.lines().count() == 1, "{}: {reason:?}", cell.id);
    reason
}

#[test]
fn every_runtime_agrees_with_the_reference_on_both_built_in_models() {
    let place = Place::new();
    let Some(home) = place.home(&RUNTIMES) else { return };
    expect_code(&short(&place, &home, &["--backends", "all"]), 0);
    let record = place.record();
    for model in ["builtin-rgb", "builtin-thermal"] {
        let of = |backend: &str| cell(&record, &format!("{model}:{backend}:fp32"));
        for cell in HERE.map(of) {
            agrees(cell);
            let agreement = agreement(cell);
            assert!(agreement.boxes.is_some() && agreement.scores.is_some(), "{agreement:?}");
            assert_eq!(agreement.matched_boxes, Some(1.0), "{}", cell.id);
            assert!(agreement.reference.contains("ort-cpu"), "{agreement:?}");
            assert!(cell.detections_per_frame.unwrap() > 0.5, "boxes were there to be matched");
        }
        let ort = of("ort-cpu");
        let provider = ort.backend.provider.as_ref().unwrap();
        assert_eq!((provider.requested.as_str(), provider.actual.as_deref()), ("CPU", Some("CPU")));
        let placement = ort.placement.as_ref().unwrap();
        assert!(placement.is_whole() && placement.nodes() > 0, "{placement:?}");
        for backend in ["ort-cuda", "ort-tensorrt"].iter().filter(|_| !has_gpu()) {
            let reason = reason(of(backend), CellStatus::Skipped);
            assert!(reason.starts_with(&format!("{backend}: no NVIDIA GPU")), "{reason}");
        }
    }
    the_table_has_a_row_a_cell(&place, &record);
}

fn the_table_has_a_row_a_cell(place: &Place, record: &RunRecord) {
    let table = fs::read_to_string(place.run().join("latency_comparative_320.csv")).unwrap();
    let mut lines = table.lines();
    assert_eq!(
        lines.next().unwrap(),
        "device,imgsz,backend,precision,mean_ms,p50_ms,p95_ms,fps_mean,speedup,temp_c_min,temp_c_avg,temp_c_max,\
         verdict,model,map_50_95,map_50,map_50_95_ci95_lo,map_50_95_ci95_hi,batch,throughput_fps,p99_ms,host_peak_mib,\
         device_after_warmup_mib,precision_executed,cell,speedup_base,difference"
    );
    let rows: Vec<&str> = lines.collect();
    assert_eq!(rows.len(), record.cells.len());
    for (row, cell) in rows.iter().zip(&record.cells) {
        let fields: Vec<&str> = row.rsplitn(27, ',').collect();
        // From the end, for a device's name may have commas in it.
        let [_, base, id, .., size] = fields[..fields.len() - 1] else { panic!("{row}") };
        let [_, _, _, _, model, verdict, .., mean, precision, backend, _] = fields[9..fields.len() - 1] else {
            panic!("{row}")
        };
        assert!(id == cell.id && (base.is_empty() || record.cells.iter().any(|cell| cell.id == base)), "{row}");
        assert_eq!((model, backend, precision, size), (&*cell.model.name, &*cell.backend.name, "fp32", "320"));
        let (word, measured) = match cell.verdict {
            Some(verdict) => (verdict.name(), true),
            None => (cell.status.name(), false),
        };
        assert_eq!((verdict, mean.is_empty()), (word, !measured), "{row}");
    }
}

/// The built-in colour detector with its largest weight set to zero.
fn without_its_largest_weight(place: &Place) -> String {
    let mut model = ModelProto::decode(prony_model::builtin(SceneKind::Rgb)).unwrap();
    let weights = &mut model.graph.as_mut().unwrap().initializer;
    let largest = weights.iter_mut().max_by_key(|tensor| tensor.raw_data.len()).unwrap();
    assert!(largest.raw_data.iter().any(|&byte| byte != 0), "{}", largest.name);
    largest.raw_data = vec![0; largest.raw_data.len()].into();
    write_model(&place.path("zeroed.onnx"), &model)
}

#[test]
fn a_model_that_is_not_its_reference_is_wrong_output_and_exit_3() {
    for zeroed_is_reference in [true, false] {
        let place = Place::new();
        let Some(home) = place.home(&RUNTIMES[..1]) else { return };
        let zeroed = without_its_largest_weight(&place);
        let (model, reference) =
            if zeroed_is_reference { ("builtin-rgb", &*zeroed) } else { (&*zeroed, "builtin-rgb") };
        expect_code(&short(&place, &home, &[model, "--reference", reference, "--backends", "rten,ort-cpu"]), 3);
        let record = place.record();
        assert_eq!(record.cells.len(), 2);
        for cell in &record.cells {
            assert_eq!(cell.verdict, Some(Verdict::WrongOutput), "{}: {:?}", cell.id, cell.agreement);
        }
        assert_eq!(record.recommendation[0].cell, None, "{:?}", record.recommendation);
    }
}

#[test]
fn a_precision_that_no_file_brings_is_made_where_it_can_be() {
    let place = Place::new();
    let Some(home) = place.home(&RUNTIMES) else { return };
    let args = ["builtin-rgb", "--backends", "all", "--precision", "fp32,int8,fp8", "--calibration-frames", "16"];
    expect_code(&short(&place, &home, &args), 1);
    let record = place.record();
    for backend in HERE {
        let of = |precision: &str| cell(&record, &format!("builtin-rgb:{backend}:{precision}"));
        agrees(of("fp32"));
        let int8 = of("int8");
        assert_eq!(int8.status, CellStatus::Completed, "{:?}", int8.reason);
        let boxes = int8.agreement.as_ref().unwrap();
        assert!(boxes.matched_boxes.unwrap() > 0.6, "{}: {boxes:?}", int8.id);
        assert_ne!(int8.artifact.as_ref().unwrap().sha256, int8.model.sha256);
        assert!(record.narrowings.iter().any(|narrow| narrow.cell == int8.id), "{}", int8.id);
    }
    // Nobody makes these, and they were named.
    let fp8 = record.cells.iter().filter(|cell| cell.precision.requested == Precision::Fp8);
    assert!(fp8.clone().count() > HERE.len() && fp8.clone().all(|cell| cell.status == CellStatus::Failed));
    let of_rten = cell(&record, "builtin-rgb:rten:fp8");
    assert!(reason(of_rten, CellStatus::Failed).contains("rten has no fp8 arithmetic"), "{of_rten:?}");
}

#[test]
fn the_quick_tier_is_every_backend_in_fp32_and_skips_what_is_not_here() {
    let place = Place::new();
    let Some(home) = place.home(&RUNTIMES) else { return };
    expect_code(&short(&place, &home, &["builtin-rgb", "--tier", "quick"]), 0);
    let record = place.record();
    assert_eq!(record.cells.len(), prony_types::BackendName::ALL.len());
    for cell in &record.cells {
        assert_eq!((cell.precision.requested, cell.batch), (Precision::Fp32, 1), "{}", cell.id);
        if HERE.contains(&&*cell.backend.name) {
            agrees(cell);
        } else if !has_gpu() {
            reason(cell, CellStatus::Skipped);
        }
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let place = Place::new();
    let cases: [(&[&str], &[&str]); 3] = [
        (&["--tier", "huge"], &["huge", "quick", "core", "full"]),
        (
            &["--backends", "rten,ort-gpu"],
            &["ort-gpu", "rten", "ort-cpu", "ort-cuda", "ort-tensorrt", "ort-openvino", "openvino"],
        ),
        (&["--precision", "fp32,fp12"], &["fp12", "fp32", "fp16", "bf16", "int8", "native"]),
    ];
    for (args, words) in cases {
        let output = place.bench(args).output().unwrap();
        refused(&output, words);
    }
    assert!(!place.runs().exists());
}

/// Exit code 2 and one line with these words.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    expect_code(output, 2);
    let text = stderr(output);
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
}

#[test]
fn a_flag_for_a_gpu_is_refused_without_a_gpu_backend() {
    let place = Place::new();
    for flag in [&["--allow-fallback"][..], &["--gpu-mem-limit", "1GB"]] {
        let output = place.bench(&[&["--backends", "rten"], flag].concat()).output().unwrap();
        refused(&output, &[flag[0], "ort-cuda", "ort-tensorrt"]);
    }
    assert!(!place.runs().exists());
}

#[test]
fn a_free_batch_axis_is_swept_and_every_batch_agrees() {
    let place = Place::new();
    let Some(home) = place.home(&RUNTIMES) else { return };
    // Weights of both signs and no symmetry, so that a transposed or shifted item would show.
    let weights: Vec<f32> = (0..4 * 3 * 3 * 3).map(|i| ((i * 37 % 101) as f32 - 50.0) / 64.0).collect();
    // ONNX infers the kernel's shape from the weights where it is left out; rten wants it said.
    let attributes = vec![AttributeProto::ints("pads", &[1, 1, 1, 1]), AttributeProto::ints("kernel_shape", &[3, 3])];
    let graph = GraphProto {
        node: vec![NodeProto::new("Conv", &["x", "w"], &["y"], attributes)],
        name: "conv".into(),
        initializer: vec![TensorProto::floats("w", &[4, 3, 3, 3], &weights)],
        input: vec![ValueInfo::floats("x", &[-1, 3, 32, 32])],
        output: vec![ValueInfo::floats("y", &[-1, 4, 32, 32])],
        ..GraphProto::default()
    };
    let model = write_model(&place.path("conv.onnx"), &ModelProto::new(graph, &[]));
    let args = [&*model, "--head", "none", "--batch", "1,4", "--backends", "rten,ort-cpu,openvino"];
    expect_code(&short(&place, &home, &args), 0);
    let record = place.record();
    assert_eq!(record.cells.len(), 6);
    for backend in HERE {
        for batch in [1, 4] {
            let cell = cell(&record, &format!("conv:{backend}:fp32@b{batch}"));
            agrees(cell);
            assert_eq!(cell.batch, batch);
            assert_eq!(cell.model.input, Some(format!("{batch}x3x32x32")));
        }
    }
}

/// ONNX's number for 16-bit floats.
const FLOAT16: i32 = 10;

/// `y = x * w` in 16-bit floats; w is 2, -0.5, 1, 0.25.
fn half_model(place: &Place) -> String {
    let raw: Vec<u8> = [0x4000u16, 0xb800, 0x3c00, 0x3400].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let weight = TensorProto {
        name: "w".into(),
        dims: vec![4],
        data_type: FLOAT16,
        raw_data: raw.into(),
        ..TensorProto::default()
    };
    let half = |name: &str| {
        let mut value = ValueInfo::floats(name, &[1, 4]);
        value.ty.as_mut().unwrap().tensor.as_mut().unwrap().elem_type = FLOAT16;
        value
    };
    let graph = GraphProto {
        node: vec![NodeProto::new("Mul", &["x", "w"], &["y"], vec![])],
        name: "half".into(),
        initializer: vec![weight],
        input: vec![half("x")],
        output: vec![half("y")],
        ..GraphProto::default()
    };
    write_model(&place.path("half.onnx"), &ModelProto::new(graph, &[]))
}

#[test]
fn a_half_precision_file_is_measured_as_what_it_is() {
    let place = Place::new();
    let Some(home) = place.home(&RUNTIMES) else { return };
    let model = half_model(&place);
    let args = [&*model, "--head", "none", "--precision", "fp16", "--backends", "ort-cpu,openvino"];
    let output = short(&place, &home, &args);
    let record = place.record();
    let ort = cell(&record, "half:ort-cpu:fp16");
    agrees(ort);
    assert_eq!(ort.precision.executed.as_deref(), Some("fp16"));
    let openvino = cell(&record, "half:openvino:fp16");
    if openvino.status == CellStatus::Completed {
        agrees(openvino);
        expect_code(&output, 0);
    } else {
        // A processor without 16-bit floats is not measured in fp32 under the name of fp16.
        let reason = reason(openvino, CellStatus::Failed);
        assert!(reason.contains("this device executes f32"), "{reason}");
        expect_code(&output, 1);
    }
}

#[test]
fn half_precision_values_go_in_and_come_out_right() {
    let place = Place::new();
    let Some(home) = place.home(&RUNTIMES[..1]) else { return };
    let model = half_model(&place);
    // 1.5, -3, the largest half (65504), the smallest (2^-24).
    let values = [0x3e00u16, 0xc200, 0x7bff, 0x0001];
    fs::write(place.path("x.npy"), npy("<f2", &[1, 4], &values, u16::to_le_bytes)).unwrap();
    let mut command = prony();
    command.current_dir(place.dir.path()).args(["run", &model, "--backend", "ort-cpu"]);
    command.args(["--input", "x.npy", "--output", "y.npy"]);
    expect_code(&at_home(&mut command, &home).output().unwrap(), 0);
    let (shape, values) = floats(&fs::read(place.path("y.npy")).unwrap());
    assert_eq!(shape, "1, 4,");
    // A quarter of the smallest is nothing any more: the arithmetic was 16 bits wide.
    assert_eq!(values, [3.0, 1.5, 65504.0, 0.0]);
}

#[test]
fn a_reference_damaged_on_disk_is_computed_again() {
    let home_of = Place::new();
    let Some(home) = home_of.home(&RUNTIMES[..1]) else { return };
    let measure = || {
        let place = Place::new();
        expect_code(&short(&place, &home, &["builtin-thermal", "--backends", "rten"]), 0);
        let record = place.record();
        agrees(&record.cells[0]);
        record.cells[0].agreement.clone()
    };
    let first = measure();
    let files = fs::read_dir(home.join("cache/reference")).unwrap().map(|e| e.unwrap().path());
    // Beside each reference stands what it is of.
    let files: Vec<_> = files.filter(|path| path.extension().is_none_or(|ending| ending != "json")).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let whole = fs::read(file).unwrap();
    let score = whole.windows(8).position(|bytes| bytes == b"\"score\":").unwrap() + 8;
    for (name, at, flip) in [("a value", whole.len() - 2, 0x40), ("a detection", score + 2, 0x01)] {
        let mut damaged = whole.clone();
        damaged[at] ^= flip;
        fs::write(file, &damaged).unwrap();
        assert_eq!(measure(), first, "{name}");
        assert_ne!(fs::read(file).unwrap(), damaged, "{name}: the damaged file is still there");
    }
}
