//! Engines as people have them: with a header, without one, cut short, and something else altogether.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::{ModelFile, builtin, sha256_hex};

/// The beginning of a plan as TensorRT writes it, of a version, with something behind it.
fn plan(version: [u8; 4]) -> Vec<u8> {
    let mut bytes = [0x5a; 4096];
    bytes[..8].copy_from_slice(b"ftrt\0\0\0\0");
    bytes[16..24].copy_from_slice(&4096u64.to_le_bytes());
    bytes[24..28].copy_from_slice(&version);
    bytes.to_vec()
}

fn with_header(json: &str, plan: &[u8]) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap();
    [&length.to_le_bytes(), json.as_bytes(), plan].concat()
}

const HEADER: &str = r#"{"description": "Ultralytics YOLO11n model", "author": "Ultralytics", "date": "2026-11-15",
    "version": "8.3.0", "stride": 32, "task": "detect", "batch": 1, "imgsz": [384, 640],
    "names": {"0": "person", "1": "car"}, "args": {"half": true}}"#;

fn facts(bytes: Vec<u8>) -> Result<EngineFile, ModelError> {
    read("x.engine", &bytes.into())
}

fn refusal(bytes: Vec<u8>) -> String {
    facts(bytes).unwrap_err().to_string()
}

#[test]
fn a_bare_plan_says_who_built_it() {
    let engine = facts(plan([8, 6, 0, 12])).unwrap();
    assert_eq!((engine.header_bytes, engine.file_bytes), (0, 4096));
    assert_eq!(engine.plan.magic, *b"ftrt");
    assert_eq!(engine.plan.version.unwrap().to_string(), "8.6.0");
    assert_eq!(engine.identity().tensorrt, "8.6.0");
    assert_eq!(engine.metadata, Metadata::default());
    let newer = facts(plan([10, 16, 1, 11])).unwrap();
    assert_eq!(newer.plan.version, Some(PlanVersion([10, 16, 1, 11])));
}

#[test]
fn a_version_is_not_read_where_it_may_be_something_else() {
    for version in [[8, 5, 3, 1], [0, 0, 0, 0], [0x5a; 4], [7, 2, 0, 0], [255; 4], [10, 200, 0, 0]] {
        assert_eq!(facts(plan(version)).unwrap().plan.version, None, "{version:?}");
    }
    let mut other_layout = plan([10, 3, 0, 0]);
    other_layout[4] = 1;
    assert_eq!(facts(other_layout).unwrap().plan.version, None);
    let old = [b"ptrt", &plan([8, 6, 0, 0])[4..]].concat();
    assert_eq!(facts(old).unwrap().plan, PlanHeader { magic: *b"ptrt", version: None, bytes: None });
}

#[test]
fn an_exporter_s_header_is_read_and_the_plan_begins_behind_it() {
    let engine = facts(with_header(HEADER, &plan([10, 3, 0, 26]))).unwrap();
    assert_eq!(engine.header_bytes, 4 + HEADER.len());
    assert_eq!(engine.metadata.names, ["person", "car"]);
    assert_eq!(engine.metadata.imgsz, Some([384, 640]));
    assert_eq!((engine.metadata.stride, engine.metadata.task.as_deref()), (Some(32), Some("detect")));
    assert_eq!(engine.header["author"], "Ultralytics");
    assert_eq!(engine.plan.version.unwrap().to_string(), "10.3.0");
}

#[test]
fn gaps_in_class_names_are_not_guessed() {
    let engine = facts(with_header(r#"{"names": {"0": "a", "2": "c"}, "imgsz": 640}"#, &plan([8, 6, 1, 6]))).unwrap();
    assert!(engine.metadata.names.is_empty());
    assert_eq!(engine.metadata.imgsz, Some([640, 640]));
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(refusal(Vec::new()), "x.engine is not a whole TensorRT engine: the file is empty");
    let whole = with_header(HEADER, &plan([8, 6, 0, 0]));
    let cut = refusal(whole[..100].to_vec());
    let length = HEADER.len();
    assert_eq!(
        cut,
        format!("x.engine is not a whole TensorRT engine: its header should have {length} bytes, and only 96 follow")
    );
    let no_plan = refusal(whole[..4 + length].to_vec());
    assert!(no_plan.ends_with("nothing follows its header"), "{no_plan}");
    let short = refusal(whole[..4 + length + 20].to_vec());
    assert!(short.ends_with("its plan has 20 bytes"), "{short}");
    let json = refusal(with_header("{\"names\": ", &plan([8, 6, 0, 0])));
    assert!(json.ends_with("its header of 10 bytes is no JSON object"), "{json}");
    let other = refusal(with_header("{}", b"something else that is no plan at all"));
    assert!(other.ends_with("what follows its header is no plan"), "{other}");
}

#[test]
fn what_is_no_engine_is_called_what_it_is() {
    let text = refusal(b"hello, this is no engine".to_vec());
    assert_eq!(text, "x.engine is not a TensorRT engine: it is a text file");
    let zip = refusal(b"PK\x03\x04 and so on".to_vec());
    assert!(zip.contains("zip archive"), "{zip}");
    let onnx = refusal(builtin(prony_types::SceneKind::Rgb).to_vec());
    assert!(onnx.ends_with("it is an ONNX model; give it the extension .onnx"), "{onnx}");
    let bytes = refusal(vec![0xfe; 5000]);
    assert!(bytes.ends_with("it begins neither with a plan nor with a header"), "{bytes}");
}

fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

#[test]
fn an_engine_is_a_model_by_its_name_or_by_how_it_begins() {
    let bytes = with_header(HEADER, &plan([8, 6, 0, 0]));
    let (_dir, path) = file("yolo.engine", &bytes);
    let mut model = ModelFile::read(&path).unwrap();
    assert_eq!(model.info.format, ModelFormat::Engine);
    assert!(model.info.inputs.is_empty() && model.info.metadata.names.len() == 2);
    assert_eq!(model.sha256, sha256_hex(&bytes));
    assert_eq!(crate::sha256_file(&path).unwrap(), model.sha256);
    assert_eq!(model.bytes[model.engine.as_ref().unwrap().header_bytes..], plan([8, 6, 0, 0]));
    model.forget_bytes_on_disk();
    assert!(model.bytes.is_empty());
    let (_dir, path) = file("yolo.trt", &plan([8, 6, 0, 0]));
    assert_eq!(ModelFile::read(&path).unwrap().info.format, ModelFormat::Engine);
    let (_dir, path) = file("empty.plan", b"");
    assert!(ModelFile::read(&path).unwrap_err().to_string().ends_with("the file is empty"));
}

#[test]
fn a_sidecar_that_belongs_to_other_bytes_gives_the_cut_away() {
    let bytes = plan([8, 6, 0, 0]);
    let (_dir, path) = file("a.engine", &bytes);
    let json = serde_json::json!({
        "schema": "prony.engine/1", "engine_sha256": sha256_hex(&bytes), "tensorrt": "8.6.0",
        "gpu": { "name": "NVIDIA H200", "compute_capability": "9.0", "sm_count": 132 },
    });
    fs::write(path.with_extension("engine.json"), json.to_string()).unwrap();
    let identity = ModelFile::read(&path).unwrap().engine.unwrap().identity();
    assert_eq!((identity.gpu.as_str(), identity.sm_count), ("NVIDIA H200", 132));
    // As long as it says it is, but not what it was.
    fs::write(&path, [&bytes[..3000], &[0; 1096][..]].concat()).unwrap();
    let error = ModelFile::read(&path).unwrap_err().to_string();
    assert!(error.contains("cut short or replaced since it was built") && error.contains("a.engine.json"), "{error}");
    assert_eq!(error.lines().count(), 1);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = facts(bytes);
    }

    #[test]
    fn a_cut_anywhere_in_the_header_is_an_error(cut in 0usize..250) {
        let whole = with_header(HEADER, &plan([8, 6, 0, 0]));
        prop_assert!(facts(whole[..cut.min(4 + HEADER.len())].to_vec()).is_err());
    }
}

#[test]
fn a_plan_that_is_shorter_than_it_says_was_cut() {
    let mut whole = plan([8, 6, 0, 12]);
    let length = whole.len() as u64;
    assert_eq!(facts(whole.clone()).unwrap().plan.bytes, Some(length));
    whole.truncate(whole.len() - 1);
    let error = facts(whole).unwrap_err().to_string();
    assert!(error.ends_with(&format!("its plan should have {length} bytes, and has {}", length - 1)), "{error}");
}
