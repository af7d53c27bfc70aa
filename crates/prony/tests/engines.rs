//! Engines as models of `prony run`, `prony compare-outputs` and `prony bench`, with libraries that stand in for TensorRT and
//! the driver. The stand-in computes `out = 2 * in`, over and over where there is more out than in.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use prony_model::onnx::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo};
use prony_model::sha256_hex;
use prony_standin::Standin;
use serde_json::{Value, json};
use support::numpy::{floats, npy};
use support::{expect_code, has_tool, prony, stderr, stdout, write_model};
use tempfile::TempDir;

/// A TensorRT, a home, and models beside them.
struct Site {
    standin: Standin,
    dir: TempDir,
}

impl Site {
    fn new() -> Option<Site> {
        Site::with("10.3.0")
    }

    fn with(version: &str) -> Option<Site> {
        let site = Site { standin: Standin::new(version)?, dir: tempfile::tempdir().unwrap() };
        write_model(&site.path("twice.onnx"), &twice());
        write_model(&site.path("boxes.onnx"), &boxes());
        Some(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// `prony …` in this place, at its home and with its libraries.
    fn prony(&self, args: &[&str]) -> Command {
        let mut command = prony();
        command.current_dir(self.dir.path()).args(args).arg("--home").arg(self.path("home"));
        command.env("LD_LIBRARY_PATH", self.standin.folder());
        self.libraries().iter().for_each(|library| {
            command.args(["--library", library]);
        });
        command
    }

    fn libraries(&self) -> [String; 4] {
        [
            ("nvinfer", self.standin.library()),
            ("nvonnxparser", self.standin.parser()),
            ("nvinfer-plugin", self.standin.plugins()),
            ("cuda", self.standin.driver()),
        ]
        .map(|(name, path)| format!("{name}={}", path.display()))
    }

    fn output(&self, args: &[&str]) -> Output {
        self.prony(args).output().unwrap()
    }

    /// Builds `NAME.onnx` and puts `NAME.engine` beside it, without what says where it was built.
    fn engine(&self, name: &str) -> String {
        expect_code(&self.output(&["build", &format!("{name}.onnx"), "--out", "built", "--quiet"]), 0);
        let engine = format!("{name}.engine");
        fs::copy(self.path("built").join(format!("{name}-fp32.engine")), self.path(&engine)).unwrap();
        engine
    }

    /// The record of a bench, whatever its verdict.
    fn bench(&self, name: &str, args: &[&str]) -> Value {
        let own = ["--samples", "30", "--warmup", "0.05", "--frames", "8", "--quiet", "--out", "runs", "--name", name];
        let output = self.output(&[&["bench"], args, &own].concat());
        let of_name = |path: &PathBuf| path.to_string_lossy().ends_with(&format!("-{name}"));
        let found =
            fs::read_dir(self.path("runs")).ok().and_then(|runs| runs.map(|run| run.unwrap().path()).find(of_name));
        let run = found.unwrap_or_else(|| panic!("no run: {}", stderr(&output)));
        serde_json::from_str(&fs::read_to_string(run.join("report.json")).unwrap()).unwrap()
    }

    /// A folder with one image.
    fn photo(&self) -> &'static str {
        let args = ["data", "synth", "--count", "1", "--seed", "5", "--quiet", "photos"];
        expect_code(&prony().current_dir(self.dir.path()).args(args).output().unwrap(), 0);
        "photos/images/000000.png"
    }
}

/// `y = x + x`, which is what the stand-in computes.
fn twice() -> ModelProto {
    let graph = GraphProto {
        node: vec![NodeProto::new("Add", &["x", "x"], &["y"], vec![])],
        name: "twice".into(),
        initializer: vec![],
        input: vec![ValueInfo::floats("x", &[-1, 3])],
        output: vec![ValueInfo::floats("y", &[-1, 3])],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[])
}

/// The first values of an image twice, in the shape of a detector of two classes at 32x32.
fn boxes() -> ModelProto {
    let node = |op: &str, inputs: &[&str], output: &str| NodeProto::new(op, inputs, &[output], vec![]);
    let graph = GraphProto {
        node: vec![
            node("Reshape", &["images", "all"], "flat"),
            node("Slice", &["flat", "from", "to"], "part"),
            node("Reshape", &["part", "shape"], "once"),
            node("Add", &["once", "once"], "output0"),
        ],
        name: "boxes".into(),
        initializer: vec![
            TensorProto::ints("all", &[3 * 32 * 32]),
            TensorProto::ints("from", &[0]),
            TensorProto::ints("to", &[6 * 21]),
            TensorProto::ints("shape", &[1, 6, 21]),
        ],
        input: vec![ValueInfo::floats("images", &[1, 3, 32, 32])],
        output: vec![ValueInfo::floats("output0", &[1, 6, 21])],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[])
}

fn f32s(shape: &[usize], values: &[f32]) -> Vec<u8> {
    npy("<f4", shape, values, f32::to_le_bytes)
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}{}", stdout(output), stderr(output)))
}

/// Exit code 2 and one line that says these things.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    expect_code(output, 2);
    let text = stderr(output);
    assert!(text.lines().count() == 1 && words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn an_engine_was_no_model_for_run() {
    for version in ["8.4.3", "8.6.1", "10.3.0", "11.1.0"] {
        let Some(site) = Site::with(version) else { return };
        site.put("x.npy", &f32s(&[1, 3], &[1.5, -2.0, 0.25]));
        let engine = site.engine("twice");
        let output = site.output(&["run", &engine, "--input", "x.npy", "--output", "y.npy", "--json"]);
        expect_code(&output, 0);
        let file = fs::read(site.path("y.npy")).unwrap();
        assert_eq!(floats(&file), ("1, 3,".into(), vec![3.0, -4.0, 0.5]), "{version}");
        let summary = json_of(&output);
        assert_eq!(
            (&summary["backend"]["name"], &summary["backend"]["version"]),
            (&json!("tensorrt"), &json!(version))
        );
        assert_eq!(summary["outputs_sha256"], sha256_hex(&file[file.len() - 12..]));
        assert_eq!(summary["engine"], Value::Null, "it is the model itself");
        assert_eq!(site.standin.complaints(), [""; 0], "{version}");
    }
}

#[test]
fn an_onnx_file_had_no_way_to_tensorrt_in_run() {
    let Some(site) = Site::new() else { return };
    site.put("x.npy", &f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let run = |more: &[&str]| {
        let args = ["run", "twice.onnx", "--backend", "tensorrt", "--input", "x.npy", "-o", "y.npz", "--json"];
        let output = site.output(&[&args, more].concat());
        expect_code(&output, 0);
        json_of(&output)
    };
    let built = run(&["--opt-level", "0", "--tactic-sources", "none"]);
    assert_eq!(built["outputs"][0]["shape"], json!([2, 3]), "the free axis is the array's: {built}");
    assert_eq!((&built["outputs"][0]["max"], &built["engine"]["from_cache"]), (&json!(12.0), &json!(false)), "{built}");
    let found = run(&["--opt-level", "0", "--tactic-sources", "none"]);
    assert_eq!(found["engine"]["from_cache"], true, "{found}");
    assert_eq!(found["engine"]["sha256"], built["engine"]["sha256"]);
    let half = run(&["--precision", "fp16"]);
    assert_ne!(half["engine"]["sha256"], built["engine"]["sha256"]);
    assert!(half["executed"].as_str().unwrap().starts_with("fp16"), "{half}");
    // It is the engine that bench builds for the same shape.
    let bench = site.bench("same", &["boxes.onnx", "--backends", "tensorrt"]);
    let args = ["run", "boxes.onnx", "--backend", "tensorrt", "--input", site.photo(), "--json"];
    let engine = json_of(&site.output(&args))["engine"].clone();
    assert_eq!((&engine["from_cache"], &engine["sha256"]), (&json!(true), &bench["cells"][0]["artifact"]["sha256"]));
    assert_eq!(site.standin.complaints(), [""; 0]);
}

#[test]
fn what_is_fed_to_an_engine_is_checked_as_for_a_graph() {
    let Some(site) = Site::new() else { return };
    let engine = site.engine("boxes");
    let fed = |bytes: Vec<u8>, more: &[&str]| {
        site.put("x.npy", &bytes);
        site.output(&[&["run", &engine, "--input", "x.npy"], more].concat())
    };
    let zeros = |n: usize| vec![0.0; n];
    refused(
        &fed(f32s(&[1, 3, 32, 16], &zeros(1536)), &[]),
        &["array `images` is f32[1,3,32,16], the model takes f32[1,3,32,32]: axis 3 is 16 instead of 32"],
    );
    refused(&fed(f32s(&[3, 32, 32], &zeros(3072)), &[]), &["`images`", "3 axes instead of 4"]);
    let bytes = npy("|u1", &[1, 3, 32, 32], &[7u8; 3072], u8::to_le_bytes);
    refused(&fed(bytes, &[]), &["`images` is u8[1,3,32,32]", "astype('float32')"]);
    let good = || f32s(&[1, 3, 32, 32], &zeros(3072));
    refused(&fed(good(), &["--output", "z=y.npy"]), &["no output `z`; it has output0 f32[1,6,21]"]);
    refused(&fed(good(), &["--shape", "images=2x3x32x32"]), &["2 at axis 0; it is fixed at 1"]);
    refused(&site.output(&["run", &engine]), &["takes images f32[1,3,32,32]; give --input photo.jpg"]);
    let mut values = zeros(3072);
    values[5] = f32::NAN;
    let output = fed(f32s(&[1, 3, 32, 32], &values), &["--output", "y.npy"]);
    expect_code(&output, 3);
    assert!(stderr(&output).contains("output `output0` holds 1 NaN and 0 infinite values among 126"), "{output:?}");
    // Outside the range that it was built for.
    let free = site.engine("twice");
    site.put("x.npy", &f32s(&[4, 3], &zeros(12)));
    let words = ["4 at axis 0; profile 0 of the engine allows 1 to 1"];
    refused(&site.output(&["run", &free, "--input", "x.npy"]), &words);
}

#[test]
fn an_engine_on_a_backend_that_cannot_run_it_is_refused() {
    let Some(site) = Site::new() else { return };
    let engine = site.engine("boxes");
    for backend in ["rten", "ort-cpu", "ort-tensorrt", "openvino"] {
        let words = format!("boxes.engine is a TensorRT engine, which {backend} cannot run; use tensorrt");
        refused(&site.output(&["run", &engine, "--backend", backend, "--input", "x.npy"]), &[&words]);
        refused(&site.output(&["compare-outputs", "boxes.onnx", &engine, "--backend-b", backend]), &[&words]);
    }
    let input = ["--input", "x.npy"];
    for model in [engine.as_str(), "boxes.onnx"] {
        let args = [&["run", model, "--backend", "trtexec"], &input[..]].concat();
        refused(&site.output(&args), &["trtexec is a benchmark program that returns no outputs; use tensorrt"]);
    }
    let args = [&["run", &engine, "--opt-level", "0"], &input[..]].concat();
    refused(&site.output(&args), &["--opt-level is for building an engine, and nothing is built here"]);
    for flag in [&["--opt-level", "0"][..], &["--force"], &["--calibration", "scenes"]] {
        let args = [&["run", "boxes.onnx", "--input", "x.npy"], flag].concat();
        site.put("x.npy", &f32s(&[1, 3, 32, 32], &[0.0; 3072]));
        let mut command = prony();
        let output = command.current_dir(site.dir.path()).args(args).output().unwrap();
        refused(&output, &[flag[0], "is for tensorrt; choose that backend, or leave the flag out"]);
    }
    // As in bench, a precision that an engine cannot have is the backend's refusal.
    let output = site.output(&[&["run", &engine, "--precision", "fp16"], &input[..]].concat());
    expect_code(&output, 1);
    assert!(stderr(&output).contains("an engine keeps the precision that it was built in"), "{output:?}");
}

#[test]
fn an_engine_that_cannot_be_opened_here_says_why_and_force_tries_it() {
    let Some(site) = Site::new() else { return };
    let engine = site.engine("boxes");
    site.put("x.npy", &f32s(&[1, 3, 32, 32], &[0.5; 3072]));
    let run = |more: &[&str]| site.output(&[&["run", &engine, "--input", "x.npy"], more].concat());
    let whole = fs::read(site.path(&engine)).unwrap();
    site.put(&engine, &whole[..whole.len() / 2]);
    refused(&run(&[]), &["boxes.engine is not a whole TensorRT engine", "should have"]);
    site.put(&engine, &whole);
    let sidecar = site.path("built/boxes-fp32.engine.json");
    let mut facts: Value = serde_json::from_str(&fs::read_to_string(sidecar).unwrap()).unwrap();
    facts["gpu"] = json!("NVIDIA RTX 4090");
    facts["compute_capability"] = json!("8.9");
    site.put("boxes.engine.json", facts.to_string().as_bytes());
    refused(&run(&[]), &["NVIDIA RTX 4090", "--force"]);
    expect_code(&run(&["--force"]), 0);
    fs::remove_file(site.path("boxes.engine.json")).unwrap();
    site.standin.set("device", "Another GPU");
    refused(&run(&[]), &["generated on an incompatible device"]);
}

#[test]
fn run_and_bench_give_the_same_outputs_to_the_bit() {
    let Some(site) = Site::new() else { return };
    let photo = site.photo();
    let engine = site.engine("boxes");
    for (name, model, backend) in
        [("rten", "builtin-rgb", "rten"), ("graph", "boxes.onnx", "rten"), ("engine", engine.as_str(), "tensorrt")]
    {
        let record = site.bench(name, &[model, "--backends", backend, "--source", "photos", "--head", "dense"]);
        let cell = &record["cells"][0];
        assert_eq!(cell["status"], "completed", "{cell}");
        let args = ["run", model, "--input", photo, "--json"];
        let output = match backend {
            // It opens no library, so none may be named.
            "rten" => prony().current_dir(site.dir.path()).args(args).output().unwrap(),
            _ => site.output(&args),
        };
        expect_code(&output, 0);
        let hash = json_of(&output)["outputs_sha256"].clone();
        assert_eq!(cell["outputs"], json!({ "frame": 0, "sha256": hash }), "{name}");
    }
    // The hash is among the facts of the report too.
    let runs = fs::read_dir(site.path("runs")).unwrap().map(|run| run.unwrap().path());
    for run in runs {
        let text = fs::read_to_string(run.join("report.md")).unwrap();
        assert!(text.contains("sha256 of the raw outputs"), "{text}");
    }
}

#[test]
fn an_engine_was_no_side_of_a_comparison() {
    let Some(site) = Site::new() else { return };
    let engine = site.engine("boxes");
    let compare = |args: &[&str]| site.output(&[&["compare-outputs"], args, &["--head", "dense"]].concat());
    let same = |found: &Value| {
        assert_eq!((&found["agree"], &found["heads"]["matched_boxes"]), (&json!(true), &json!(1.0)), "{found}");
        for part in [&found["outputs"][0], &found["heads"]["boxes"], &found["heads"]["scores"]] {
            assert_eq!(
                (part["cosine"].as_f64().map(|x| (x * 1e9).round()), &part["max_abs"]),
                (Some(1e9), &json!(0.0))
            );
        }
        let notes = found["notes"].to_string();
        assert!(notes.contains("which has no ONNX nodes, so nodes were not compared"), "{notes}");
        assert!(found["nodes"].is_null(), "{found}");
    };
    for sides in [["boxes.onnx", engine.as_str()], [engine.as_str(), "boxes.onnx"]] {
        let output = compare(&[&sides[..], &["--json"]].concat());
        expect_code(&output, 0);
        let found = json_of(&output);
        same(&found);
        let backends = ["a", "b"].map(|side| found[side]["backend"]["name"].clone());
        let expected = if sides[0] == engine { ["tensorrt", "rten"] } else { ["rten", "tensorrt"] };
        assert_eq!(backends, expected.map(Value::from));
        assert_eq!(found["precision"], "fp32", "the layers say what they compute in");
    }
    // The same graph twice, once as an engine that is built for it, and two engines.
    let output = compare(&["boxes.onnx", "boxes.onnx", "--backend-b", "tensorrt", "--opt-level", "0", "--json"]);
    expect_code(&output, 0);
    let found = json_of(&output);
    same(&found);
    assert!(found["b"]["engine"]["sha256"].is_string() && found["a"]["engine"].is_null(), "{found}");
    let output = compare(&["boxes.onnx", "boxes.onnx", "--backend-b", "tensorrt", "--precision-b", "fp16", "--json"]);
    assert_eq!(json_of(&output)["precision"], "fp16", "{}", stderr(&output));
    expect_code(&compare(&[&engine, &engine]), 0);
    // One that is wrong: the stand-in doubles everything, and this model does not.
    let wrong =
        site.output(&["compare-outputs", "builtin-rgb", "builtin-rgb", "--backend-b", "tensorrt", "--frames", "1"]);
    expect_code(&wrong, 3);
    assert!(stdout(&wrong).contains("they do not agree"), "{}", stdout(&wrong));
    assert_eq!(site.standin.complaints(), [""; 0]);
}

#[test]
fn the_check_for_machines_with_a_gpu_finds_nothing_wrong_with_the_stand_in() {
    let Some(site) = Site::new().filter(|_| has_tool("python3")) else { return };
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/gpu_check_engines");
    let program = prony().get_program().to_owned();
    let mut check = Command::new("python3");
    check.arg(tool).arg(program).args(["out", "--model", "boxes.onnx", "--head", "dense"]);
    check.current_dir(site.dir.path()).env("PRONY_HOME", site.path("home"));
    check.env("LD_LIBRARY_PATH", site.standin.folder());
    let libraries = site.libraries();
    let output = check.args(libraries.iter().flat_map(|library| ["--library", library])).output().unwrap();
    let text = stdout(&output);
    assert!(text.ends_with("all checks hold\n") && text.matches("ok    ").count() > 25, "{text}{}", stderr(&output));
    expect_code(&output, 0);
}

/// An engine with a header in front, as Ultralytics writes it, of so many bytes.
fn with_header(engine: &Path, bytes: usize) -> Vec<u8> {
    let header = json!({ "description": "x".repeat(bytes), "task": "detect" }).to_string();
    let length = u32::try_from(header.len()).unwrap().to_le_bytes();
    [&length[..], header.as_bytes(), &fs::read(engine).unwrap()].concat()
}

#[test]
fn engines_of_the_user_s_own_were_loaded_last_whatever_their_size() {
    let Some(site) = Site::new() else { return };
    let engine = site.path(&site.engine("boxes"));
    site.put("small.engine", &with_header(&engine, 10));
    site.put("large.engine", &with_header(&engine, 50_000));
    let models = ["boxes.onnx", "small.engine", "large.engine"];
    let args = ["--backends", "tensorrt,rten", "--precision", "fp32,native", "--head", "dense"];
    site.bench("order", &[&models[..], &args].concat());
    let run = fs::read_dir(site.path("runs")).unwrap().next().unwrap().unwrap().path();
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let loaded: Vec<String> = events
        .filter(|event| event["event"] == "loaded")
        .map(|event| event["cell"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(loaded[0], "large:tensorrt:native", "{loaded:?}");
    let place = |id: &str| loaded.iter().position(|cell| cell == id).unwrap_or_else(|| panic!("{id}: {loaded:?}"));
    // A graph on the embedded engine takes no memory of the GPU: it comes after all engines.
    let last_engine = loaded.iter().rposition(|cell| cell.contains(":tensorrt:")).unwrap();
    assert!(place("boxes:rten:fp32") > last_engine, "{loaded:?}");
    let small = place("small:tensorrt:native");
    assert!(small < place("boxes:tensorrt:fp32"), "its header makes it larger than what was built: {loaded:?}");
}

const WARNING: &str = "Using an engine plan file across different models of devices is not recommended";

#[test]
fn the_warning_about_an_engine_of_another_device_reaches_the_reader() {
    let Some(site) = Site::new() else { return };
    let engine = site.engine("boxes");
    let quiet = site.bench("here", &[&engine, "--head", "dense"]);
    assert!(!quiet["cells"][0].to_string().contains("warned"), "{quiet}");
    site.standin.set("device", "Another GPU");
    site.standin.set("other-device", "warn");
    let cell = &site.bench("elsewhere", &[&engine, "--head", "dense"])["cells"][0];
    assert_eq!(cell["status"], "completed", "{cell}");
    assert!(cell["backend"]["warnings"][0].as_str().unwrap().starts_with(WARNING), "{cell}");
    let reasons = cell["verdict_reasons"].to_string();
    assert!(reasons.contains(&format!("note: the library warned on loading: {WARNING}")), "{reasons}");
    for run in fs::read_dir(site.path("runs")).unwrap().map(|run| run.unwrap().path()) {
        let told = fs::read_to_string(run.join("report.md")).unwrap().contains(WARNING);
        assert_eq!(told, run.to_string_lossy().ends_with("-elsewhere"), "{}", run.display());
    }
    site.put("x.npy", &f32s(&[1, 3, 32, 32], &[0.5; 3072]));
    let output = site.output(&["run", &engine, "--input", "x.npy"]);
    expect_code(&output, 0);
    assert!(stderr(&output).contains(&format!("note: tensorrt warned on loading: {WARNING}")), "{}", stderr(&output));
    let output = site.output(&["compare-outputs", "boxes.onnx", &engine, "--head", "dense"]);
    assert!(stderr(&output).contains(&format!("boxes.engine: tensorrt warned on loading: {WARNING}")), "{output:?}");
}
