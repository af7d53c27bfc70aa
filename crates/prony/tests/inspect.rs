//! What a file says about itself, by the real binary: with and without what could open it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use prony_model::onnx::{
    AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo, dimension,
};
use prony_model::sha256_hex;
use prost::Message as _;
use serde_json::Value;
use support::{Place, at_home, engine_plan, expect_code, prony, stderr, stdout};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Of TensorRT 8.6.0.
fn plan() -> Vec<u8> {
    engine_plan([8, 6, 0, 12])
}

const HEADER: &str = r#"{"author": "Ultralytics", "version": "8.3.0", "date": "2026-11-15", "stride": 32,
    "task": "detect", "batch": 1, "imgsz": [640, 640], "names": {"0": "person", "1": "car"}}"#;

fn with_header(json: &str) -> Vec<u8> {
    [&u32::try_from(json.len()).unwrap().to_le_bytes(), json.as_bytes(), &plan()].concat()
}

fn inspect(place: &Place, model: &Path, more: &[&str]) -> std::process::Output {
    let home = place.home(&[]).unwrap();
    at_home(prony().arg("inspect").arg(model).args(more), &home).output().unwrap()
}

fn json(place: &Place, model: &Path) -> Value {
    let output = inspect(place, model, &["--json"]);
    expect_code(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_graph_is_described() {
    let place = Place::new();
    let output = inspect(&place, Path::new("builtin-rgb"), &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    for fact in ["builtin-rgb: ONNX model", "built in, ", "precision     fp32", "image size    320x320", "Conv"] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
    let json = json(&place, Path::new("builtin-rgb"));
    assert_eq!((&json["format"], &json["precision"]), (&"onnx".into(), &"fp32".into()));
    assert_eq!(json["info"]["inputs"][0]["dims"][1], 3);
    assert_eq!(json["engine"], Value::Null);
}

/// A convolution of a free size, and what follows it.
fn graph_file(place: &Place, name: &str, more: Vec<NodeProto>) -> PathBuf {
    let mut node = vec![NodeProto::new("Conv", &["x", "w"], &["c"], vec![AttributeProto::ints("strides", &[2, 2])])];
    node.extend(more);
    let dims = ["n", "", "h", "w"].map(|name| Dimension {
        value: Some(match name {
            "" => dimension::Value::Fixed(3),
            name => dimension::Value::Named(name.into()),
        }),
        ..Dimension::default()
    });
    let mut input = ValueInfo::floats("x", &[]);
    let shape = input.ty.as_mut().unwrap().tensor.as_mut().unwrap().shape.as_mut().unwrap();
    shape.dim = dims.to_vec();
    let graph = GraphProto {
        output: vec![ValueInfo { name: node.last().unwrap().output[0].clone(), ..ValueInfo::default() }],
        node,
        initializer: vec![TensorProto::floats("w", &[8, 3, 2, 2], &[0.5; 96])],
        input: vec![input],
        ..GraphProto::default()
    };
    let path = place.path(name);
    fs::write(&path, ModelProto::new(graph, &[("author", "somebody"), ("notes", "\u{1b}[31mred")]).encode_to_vec())
        .unwrap();
    path
}

#[test]
fn a_graph_says_what_it_costs_and_what_could_run_it() {
    let place = Place::new();
    let json = json(&place, Path::new("builtin-rgb"));
    let graph = &json["graph"];
    assert_eq!(graph["at"]["imgsz"], serde_json::json!([320, 320]));
    assert_eq!(graph["outputs"][0]["shape"], serde_json::json!([1, 13, 2100]));
    assert_eq!(graph["head"], "dense [1,13,2100], 9 classes");
    assert_eq!((&graph["unknown_costs"], &graph["unknown_shapes"]), (&0.into(), &0.into()));
    assert_eq!(graph["free_axes"], serde_json::json!(["images[0] batch"]));
    let flops = graph["flops"].as_u64().unwrap();
    let conv = graph["by_operator"]["Conv"]["flops"].as_u64().unwrap();
    assert!(conv > flops * 9 / 10 && conv < flops, "{conv} of {flops}");
    assert_eq!(graph["layers"], Value::Null);
    let backends = json["backends"].as_array().unwrap();
    let rten = backends.iter().find(|backend| backend["backend"] == "rten").unwrap();
    assert_eq!(rten["runs"], true);
    // The machine may be in use by another test, and then nothing is measured on it.
    match rten["roofline"].is_null() {
        false => assert_eq!((&rten["roofline"]["flops"], &rten["roofline"]["device"]), (&flops.into(), &"cpu".into())),
        true => assert!(
            rten["roofline_absent"].as_str().unwrap().contains("the measuring lock of this machine is held"),
            "{rten}"
        ),
    }
    // Whatever is installed here: a backend runs it or says why not.
    assert_eq!(backends.len(), 8);
    for backend in backends {
        assert_eq!(backend["runs"] == true, backend["reason"].is_null(), "{backend}");
    }
}

#[test]
fn free_axes_take_the_size_that_is_asked_for() {
    let place = Place::new();
    let path = graph_file(&place, "free.onnx", vec![NodeProto::new("Relu", &["c"], &["y"], vec![])]);
    let more = ["--imgsz", "32x48", "--batch", "2", "--no-backends", "--layers", "--json"];
    let output = inspect(&place, &path, &more);
    expect_code(&output, 0);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["backends"], Value::Null);
    let graph = &json["graph"];
    assert_eq!(graph["outputs"][0]["shape"], serde_json::json!([2, 8, 16, 24]));
    let elements = 2 * 8 * 16 * 24;
    assert_eq!(graph["flops"], elements * 12 * 2 + elements);
    assert_eq!(graph["layers"][0]["op"], "Conv");
    assert_eq!(graph["layers"][1]["bytes"], 2 * 4 * elements);
    let text = stdout(&inspect(&place, &path, &["--imgsz", "32x48", "--no-backends", "--layers"]));
    for fact in ["free axes     x[0] n, x[2] h, x[3] w", "at            32x48, batch 1", "author: somebody", "MFLOPs"] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
    for (flags, reason) in [
        (["builtin-rgb", "--imgsz", "640"], "fixed at 320x320"),
        (["builtin-rgb", "--batch", "0"], "0 is not in 1..=1024"),
    ] {
        let output = at_home(prony().arg("inspect").args(flags), &place.home(&[]).unwrap()).output().unwrap();
        expect_code(&output, 2);
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

#[test]
fn what_is_not_known_of_a_graph_is_said() {
    let place = Place::new();
    let custom = NodeProto { domain: "mine".into(), ..NodeProto::new("Magic", &["c"], &["y"], vec![]) };
    let path = graph_file(&place, "custom.onnx", vec![custom]);
    let output = inspect(&place, &path, &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    for fact in
        ["y other[of unknown shape]", "at least ", "the cost of 1 of 2 nodes, Magic first", "head          none"]
    {
        assert!(text.contains(fact), "{fact}: {text}");
    }
}

#[test]
fn quantisers_are_counted() {
    let place = Place::new();
    let nodes = vec![
        NodeProto::new("QuantizeLinear", &["c", "s", "z"], &["q"], vec![]),
        NodeProto::new("DequantizeLinear", &["q", "s", "z"], &["d"], vec![]),
        NodeProto::new("DequantizeLinear", &["vq", "s", "z"], &["v"], vec![]),
        NodeProto::new("Conv", &["d", "v"], &["y"], vec![]),
    ];
    let path = graph_file(&place, "qdq.onnx", nodes);
    let mut model = ModelProto::decode(&fs::read(&path).unwrap()[..]).unwrap();
    let int8 = |name: &str, dims: &[i64], count: usize| TensorProto {
        data_type: 3,
        raw_data: vec![0; count].into(),
        ..TensorProto::floats(name, dims, &[])
    };
    model.graph.as_mut().unwrap().initializer.extend([
        TensorProto::floats("s", &[], &[0.5]),
        int8("z", &[], 1),
        int8("vq", &[4, 8, 1, 1], 32),
    ]);
    fs::write(&path, model.encode_to_vec()).unwrap();
    let json = json(&place, &path);
    let quantised = &json["graph"]["quantised"];
    assert_eq!((&quantised["nodes"], &quantised["of_nodes"]), (&1.into(), &2.into()));
    assert_eq!((&json["precision"], &json["graph"]["weight_types"]["i8"]), (&"int8".into(), &33.into()));
    let rten = json["backends"].as_array().unwrap().iter().find(|backend| backend["backend"] == "rten").unwrap();
    assert!(rten["roofline"].is_null() && rten["roofline_absent"].is_string(), "{rten}");
    let text = stdout(&inspect(&place, &path, &["--no-backends"]));
    assert!(text.contains("quantised     1 of 2 convolutions and products"), "{text}");
}

#[test]
fn flags_for_graphs_are_refused_with_an_engine() {
    let place = Place::new();
    let path = place.path("yolo.engine");
    fs::write(&path, plan()).unwrap();
    for flags in [&["--layers"][..], &["--imgsz", "640"], &["--batch", "2"], &["--no-backends"]] {
        let output = inspect(&place, &path, flags);
        expect_code(&output, 2);
        assert!(stderr(&output).contains(&format!("{} is for ONNX files", flags[0])), "{}", stderr(&output));
    }
}

/// A checkpoint's container around a pickle, with one storage of two floats.
fn checkpoint(pickle: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in [("data.pkl", pickle), ("version", b"3\n"), ("data/0", &[0; 8])] {
        zip.start_file(format!("best/{name}"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn a_checkpoint_is_described_with_the_reason_why_it_is_not_supported() {
    let place = Place::new();
    let path = place.path("weights.pt");
    let tensor = b"ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x02tQK\x00K\x02\x85K\x01\x85tR";
    fs::write(&path, checkpoint(&[b"\x80\x02}U\x06weight", tensor.as_slice(), b"s."].concat())).unwrap();
    let json = json(&place, &path);
    assert_eq!((&json["format"], &json["container"]["version"]), (&"pt".into(), &"3".into()));
    assert_eq!((&json["stored_elements"]["f32"], &json["tensors"]), (&2.into(), &1.into()));
    let reason = json["refusal"].as_str().unwrap();
    assert!(reason.starts_with("it is a state dict"), "{reason}");
    let output = inspect(&place, &path, &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    for fact in ["weights.pt: PyTorch checkpoint", "torch zip, version 3", "stored        2 f32", reason] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
    let output = inspect(&place, &path, &["--force"]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("--force is for engines"), "{}", stderr(&output));
}

#[test]
fn what_is_no_checkpoint_is_refused_and_what_is_hostile_is_not_run() {
    let place = Place::new();
    let proof = place.path("executed");
    let command = format!("touch {}", proof.display());
    let length = u32::try_from(command.len()).unwrap().to_le_bytes();
    let hostile = [b"\x80\x02cposix\nsystem\nX".as_slice(), &length, command.as_bytes(), b"\x85R."].concat();
    let whole = checkpoint(b"\x80\x02}.");
    let cases = [
        ("hostile.pt", checkpoint(&hostile), "it would call posix.system when it is loaded; nothing was executed here"),
        ("text.pt", b"this is text".to_vec(), "does not start as the zip file that torch.save writes"),
        ("cut.pt", whole[..whole.len() / 2].to_vec(), "it is cut short"),
        ("opcode.PTH", checkpoint(b"\x80\x02\xf0."), "opcode 0xf0 at byte 2"),
    ];
    for (name, bytes, reason) in cases {
        let path = place.path(name);
        fs::write(&path, bytes).unwrap();
        let output = inspect(&place, &path, &[]);
        expect_code(&output, 2);
        let text = stderr(&output);
        assert!(text.contains(reason) && text.lines().count() == 1, "{name}: {text}");
    }
    assert!(!proof.exists());
}

#[test]
fn an_engine_says_what_its_file_says_and_why_that_is_all() {
    let place = Place::new();
    let path = place.path("yolo.engine");
    fs::write(&path, with_header(HEADER)).unwrap();
    let json = json(&place, &path);
    assert_eq!(json["format"], "engine");
    assert_eq!(json["sha256"], sha256_hex(&with_header(HEADER)));
    assert_eq!(json["engine"]["header_bytes"], 4 + HEADER.len());
    assert_eq!(json["engine"]["plan"]["tensorrt"], "8.6.0");
    assert_eq!(json["info"]["metadata"]["names"][1], "car");
    // These bytes are no engine whatever is installed here, so TensorRT has nothing to tell in any case.
    let reason = json["not_opened"].as_str().unwrap();
    assert!(json["opened"].is_null() && reason.lines().count() == 1, "{reason}");
    let output = inspect(&place, &path, &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    for fact in
        ["yolo.engine: TensorRT engine", "by Ultralytics 8.3.0 on 2026-11-15", "built by TensorRT 8.6.0", reason]
    {
        assert!(text.contains(fact), "{fact}: {text}");
    }
}

#[test]
fn what_stands_beside_an_engine_is_shown_and_must_be_of_it() {
    let place = Place::new();
    let path = place.path("a.plan");
    fs::write(&path, plan()).unwrap();
    let sidecar = serde_json::json!({
        "schema": "prony.engine/1", "engine_sha256": sha256_hex(&plan()), "tensorrt": "8.6.0", "driver": "550.54",
        "gpu": { "name": "NVIDIA H200", "compute_capability": "9.0", "sm_count": 132 },
    });
    fs::write(place.path("a.plan.json"), sidecar.to_string()).unwrap();
    let json = json(&place, &path);
    assert_eq!(json["engine"]["identity"]["sm_count"], 132);
    let text = stdout(&inspect(&place, &path, &[]));
    assert!(
        text.contains("by TensorRT 8.6.0, on NVIDIA H200, compute capability 9.0, 132 SMs, driver 550.54"),
        "{text}"
    );
    // As long as it says it is, but not what it was.
    fs::write(&path, [&plan()[..2000], &[0; 2096][..]].concat()).unwrap();
    let output = inspect(&place, &path, &[]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("cut short or replaced since it was built"), "{}", stderr(&output));
}

#[test]
fn what_is_no_engine_gets_one_line_from_every_verb() {
    let place = Place::new();
    let whole = with_header(HEADER);
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty.engine", b"", "the file is empty"),
        ("cut.engine", &whole[..60], "its header should have"),
        ("headless.engine", &whole[..4 + HEADER.len()], "nothing follows its header"),
        ("text.engine", b"this is no engine", "it is a text file"),
        ("short.plan", &plan()[..20], "its plan has 20 bytes"),
    ];
    for (name, bytes, expected) in cases {
        let path = place.path(name);
        fs::write(&path, bytes).unwrap();
        for output in [
            inspect(&place, &path, &[]),
            place.bench(&[path.to_str().unwrap(), "--backends", "tensorrt"]).output().unwrap(),
        ] {
            expect_code(&output, 2);
            let text = stderr(&output);
            assert!(text.starts_with("error: ") && text.contains(expected), "{name}: {text}");
            assert_eq!(text.trim_end().lines().count(), 1, "{name}: {text}");
        }
    }
    assert!(!place.runs().exists());
}

#[test]
fn an_engine_on_a_backend_that_takes_none_is_refused_by_name() {
    let place = Place::new();
    let path = place.path("yolo.engine");
    fs::write(&path, with_header(HEADER)).unwrap();
    let output = place.bench(&[path.to_str().unwrap(), "--backends", "rten", "--dry-run"]).output().unwrap();
    expect_code(&output, 0);
    assert!(stdout(&output).contains("rten does not execute TensorRT engines"), "{}", stdout(&output));
    let words = ["run", path.to_str().unwrap(), "--backend", "rten", "--input", "x.npy"];
    let output = prony().args(words).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("is a TensorRT engine, which rten cannot run"), "{}", stderr(&output));
}

#[test]
fn flags_for_engines_are_refused_with_a_graph() {
    let place = Place::new();
    let output = inspect(&place, Path::new("builtin-rgb"), &["--force"]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("--force is for engines"), "{}", stderr(&output));
}
