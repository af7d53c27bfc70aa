//! `prony run`: tensors and images in, tensors, boxes and pictures out.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use prony_model::onnx::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo, dtype};
use prony_source::folder;
use prony_types::Image;
use serde_json::Value;
use support::numpy::{floats, header, npy, npz, parse, read_npz};
use support::{Place, expect_code, prony, stderr, stdout, write_model};

impl Place {
    /// `prony run MODEL …` in this place.
    fn once(&self, model: &str, args: &[&str]) -> Output {
        prony().current_dir(self.dir.path()).arg("run").arg(model).args(args).output().unwrap()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// A model of one node, beside the files.
    fn node(&self, op: &str, inputs: &[(&str, &[i64])], output: &[i64]) -> &'static str {
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        let graph = GraphProto {
            node: vec![NodeProto::new(op, &names, &["y"], vec![])],
            name: op.into(),
            initializer: vec![],
            input: inputs.iter().map(|(name, dims)| ValueInfo::floats(name, dims)).collect(),
            output: vec![ValueInfo::floats("y", output)],
            ..GraphProto::default()
        };
        write_model(&self.path("m.onnx"), &ModelProto::new(graph, &[]));
        "m.onnx"
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }
}

fn f32s(shape: &[usize], values: &[f32]) -> Vec<u8> {
    npy("<f4", shape, values, f32::to_le_bytes)
}

/// Exit code 2 and one line that says these things.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    expect_code(output, 2);
    let text = stderr(output);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

/// A built-in scene as a PNG file.
fn scene(place: &Place) -> Image {
    let mut synth = prony();
    synth.args(["data", "synth", "--count", "1", "--seed", "5", "--quiet"]).arg(place.path("scenes"));
    expect_code(&synth.output().unwrap(), 0);
    folder::load(&place.path("scenes/images/000000.png")).unwrap()
}

#[test]
fn a_detector_on_an_image_gives_boxes_a_picture_and_tensors() {
    let place = Place::new();
    let image = scene(&place);
    let files = ["a.jpg", "a.png", "a.json", "y.npy", "y.npz"];
    let outputs = files.iter().flat_map(|file| ["--output", file]);
    let args: Vec<&str> = ["--input", "scenes/images/000000.png", "--json"].into_iter().chain(outputs).collect();
    let output = place.once("builtin-rgb", &args);
    expect_code(&output, 0);

    let found: Value = serde_json::from_slice(&place.bytes("a.json")).unwrap();
    let boxes = found["detections"].as_array().unwrap();
    assert!(!boxes.is_empty());
    let (width, height) = (f64::from(image.width()), f64::from(image.height()));
    for found in boxes {
        let [left, top, right, bottom] = [0, 1, 2, 3].map(|i| found["xyxy"][i].as_f64().unwrap());
        assert!(0.0 <= left && left < right && right <= width, "{found}");
        assert!(0.0 <= top && top < bottom && bottom <= height, "{found}");
        assert!((0.25..=1.0).contains(&found["score"].as_f64().unwrap()) && found["name"].is_string(), "{found}");
    }

    let size = |image: &Image| (image.width(), image.height());
    let jpg = folder::load(&place.path("a.jpg")).unwrap();
    assert_eq!(size(&jpg), size(&image));
    let drawn = folder::load(&place.path("a.png")).unwrap();
    assert_eq!(size(&drawn), size(&image));
    let (before, after) = (image.as_u8().unwrap(), drawn.as_u8().unwrap());
    let changed = before.iter().zip(after).filter(|(a, b)| a != b).count();
    assert!(changed > 0 && changed < before.len() / 2, "{changed} of {} samples", before.len());
    let far = before.iter().zip(jpg.as_u8().unwrap()).filter(|(a, b)| a.abs_diff(**b) > 100).count();
    assert!(far > 0, "a box is no artefact of compression");

    let (shape, values) = floats(&place.bytes("y.npy"));
    // Four coordinates and the classes; one anchor a cell at strides 8, 16 and 32 of 320x320.
    let classes = prony_source::scenes::class_names(prony_types::SceneKind::Rgb).len();
    let anchors = 40 * 40 + 20 * 20 + 10 * 10;
    assert_eq!(shape, format!("1, {}, {anchors},", 4 + classes));
    assert_eq!(values.len(), (4 + classes) * anchors);
    assert_eq!(read_npz(&place.path("y.npz"))[0].1, place.bytes("y.npy"));

    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["detections"], found["detections"]);
    assert_eq!(summary["outputs"][0]["nan"], 0);
    assert_eq!(summary["written"].as_array().unwrap().len(), files.len());
    assert!(summary["call_ms"].as_f64().unwrap() > 0.0);
    let max = values.iter().copied().fold(f32::MIN, f32::max);
    assert_eq!(summary["outputs"][0]["max"].as_f64().unwrap(), f64::from(max));
}

#[test]
fn without_an_output_the_tables_are_printed() {
    let place = Place::new();
    scene(&place);
    let output = place.once("builtin-rgb", &["--input", "scenes/images/000000.png"]);
    expect_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("finite") && text.contains("score"), "{text}");
    // Nothing is that sure, and then there is no box to print.
    let output = place.once("builtin-rgb", &["--input", "scenes/images/000000.png", "--conf", "1"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("0 boxes") && !stdout(&output).contains("score"), "{}", stdout(&output));
}

#[test]
fn values_pass_an_identity_unharmed() {
    let place = Place::new();
    let model = place.node("Identity", &[("x", &[2, 3])], &[2, 3]);
    let values = [0.5, -1.0, 3.25, 1e-30, f32::MAX, -0.0];
    place.put("x.npy", &f32s(&[2, 3], &values));
    place.put("y.npy", b"an older file");
    expect_code(&place.once(model, &["--input", "x.npy", "--output", "y.npy"]), 0);
    let (shape, back) = floats(&place.bytes("y.npy"));
    assert_eq!(shape, "2, 3,");
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&back), bits(&values));
    let left: Vec<_> = fs::read_dir(place.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "nothing else is left behind: {left:?}");
}

#[test]
fn foreign_orders_and_half_floats_are_read_right() {
    let place = Place::new();
    let model = place.node("Identity", &[("x", &[2, 3])], &[2, 3]);
    let expected = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let mut fortran = header("<f4", true, &[2, 3]);
    [0.0f32, 3.0, 1.0, 4.0, 2.0, 5.0].iter().for_each(|x| fortran.extend(x.to_le_bytes()));
    let big = npy(">f4", &[2, 3], &expected, f32::to_be_bytes);
    let half = [0u16, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500];
    let half = npy("<f2", &[2, 3], &half, u16::to_le_bytes);
    let double = npy("<f8", &[2, 3], &expected.map(f64::from), f64::to_le_bytes);
    for (name, bytes) in [("fortran", fortran), ("big", big), ("half", half), ("double", double)] {
        place.put("x.npy", &bytes);
        let output = place.once(model, &["--input", "x.npy", "--output", "y.npy"]);
        expect_code(&output, 0);
        assert_eq!(floats(&place.bytes("y.npy")).1, expected, "{name}");
        assert_eq!(stderr(&output).contains("rounded from f64 to f32"), name == "double", "{}", stderr(&output));
    }
}

#[test]
fn a_mismatch_names_the_dimension_or_the_type() {
    let place = Place::new();
    let model = place.node("Identity", &[("images", &[1, 3, 4, 4])], &[1, 3, 4, 4]);
    place.put("x.npy", &f32s(&[1, 3, 4, 2], &[0.0; 24]));
    refused(
        &place.once(model, &["--input", "x.npy"]),
        &["array `images` is f32[1,3,4,2], the model takes f32[1,3,4,4]: axis 3 is 2 instead of 4"],
    );
    place.put("x.npy", &f32s(&[3, 4, 4], &[0.0; 48]));
    refused(&place.once(model, &["--input", "x.npy"]), &["`images`", "3 axes instead of 4"]);
    place.put("x.npy", &npy("|u1", &[1, 3, 4, 4], &[7u8; 48], u8::to_le_bytes));
    refused(&place.once(model, &["--input", "x.npy"]), &["`images` is u8[1,3,4,4]", "astype('float32')"]);
    place.put("x.npy", &npy("|S4", &[1, 3, 4, 4], &[7u32; 48], u32::to_le_bytes));
    refused(&place.once(model, &["--input", "x.npy"]), &["x.npy", "`|S4`"]);
}

#[test]
fn whole_numbers_are_fed_where_they_fit() {
    let place = Place::new();
    place.node("Identity", &[("ids", &[3])], &[3]);
    let mut model: ModelProto = prost::Message::decode(&place.bytes("m.onnx")[..]).unwrap();
    let graph = model.graph.as_mut().unwrap();
    for value in graph.input.iter_mut().chain(&mut graph.output) {
        value.ty.as_mut().unwrap().tensor.as_mut().unwrap().elem_type = dtype::INT64;
    }
    let model = write_model(&place.path("ids.onnx"), &model);
    for file in [
        npy("<i8", &[3], &[1i64, -2, 300], i64::to_le_bytes),
        npy("<i2", &[3], &[1i16, -2, 300], i16::to_le_bytes),
        npy(">i4", &[3], &[1i32, -2, 300], i32::to_be_bytes),
    ] {
        place.put("x.npy", &file);
        expect_code(&place.once(&model, &["--input", "x.npy", "--output", "y.npy"]), 0);
        let bytes = place.bytes("y.npy");
        let (descr, shape, values) = parse(&bytes);
        assert_eq!((descr.as_str(), shape.as_str()), ("<i4", "3,"), "rten computes in 32 bits");
        assert_eq!(values, [1i32, -2, 300].map(i32::to_le_bytes).concat());
    }
    place.put("x.npy", &npy("<i8", &[3], &[1i64, 1 << 40, 3], i64::to_le_bytes));
    refused(&place.once(&model, &["--input", "x.npy"]), &["`ids`", "1099511627776 does not fit"]);
    place.put("x.npy", &f32s(&[3], &[1.0, 2.0, 3.0]));
    refused(&place.once(&model, &["--input", "x.npy"]), &["`ids` is f32[3]", "floats"]);
}

#[test]
fn several_inputs_come_from_an_archive_or_by_name() {
    let place = Place::new();
    let model = place.node("Sub", &[("a", &[1, 2]), ("b", &[1, 2])], &[1, 2]);
    let (a, b) = (f32s(&[1, 2], &[10.0, 20.0]), f32s(&[1, 2], &[1.0, 2.0]));
    place.put("ab.npz", &npz(&[("b", b.clone()), ("a", a.clone()), ("c", a.clone())]));
    place.put("a.npy", &a);
    place.put("b.npy", &b);
    let output = place.once(model, &["--input", "ab.npz", "--output", "y.npz"]);
    expect_code(&output, 0);
    assert!(stderr(&output).contains("array `c` is no input"), "{}", stderr(&output));
    let arrays = read_npz(&place.path("y.npz"));
    assert_eq!((arrays.len(), arrays[0].0.as_str()), (1, "y"));
    assert_eq!(floats(&arrays[0].1), ("1, 2,".into(), vec![9.0, 18.0]));
    expect_code(&place.once(model, &["--input", "b=b.npy", "--input", "a=a.npy", "--output", "y=y.npy"]), 0);
    assert_eq!(floats(&place.bytes("y.npy")).1, [9.0, 18.0]);

    place.put("a.npz", &npz(&[("a", a)]));
    refused(&place.once(model, &["--input", "a.npz"]), &["no array `b`; it has a"]);
    refused(&place.once(model, &["--input", "a=a.npy"]), &["nothing feeds input b f32[1,2]"]);
    refused(&place.once(model, &["--input", "a.npy"]), &["say which input", "a f32[1,2], b f32[1,2]"]);
    refused(&place.once(model, &["--input", "c=a.npy"]), &["no input `c`; it has a f32[1,2], b f32[1,2]"]);
    refused(&place.once(model, &["--input", "ab.npz", "--input", "a=a.npy"]), &["`a` is fed twice"]);
}

#[test]
fn free_axes_take_the_array_s_shape_or_the_one_that_is_asked_for() {
    let place = Place::new();
    let model = place.node("Identity", &[("x", &[-1, 2])], &[-1, 2]);
    place.put("x.npy", &f32s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    for args in
        [&["--input", "x.npy", "--output", "y.npy"][..], &["--input", "x.npy", "--shape", "x=3x2", "-o", "y.npy"]]
    {
        expect_code(&place.once(model, args), 0);
        assert_eq!(floats(&place.bytes("y.npy")).0, "3, 2,");
        fs::remove_file(place.path("y.npy")).unwrap();
    }
    let shaped = |shape: &str| place.once(model, &["--input", "x.npy", "--shape", shape]);
    refused(&shaped("x=4x2"), &["is f32[3,2], the model takes f32[4,2]: axis 0 is 3 instead of 4"]);
    refused(&shaped("x=3x5"), &["5 at axis 1; it is fixed at 2"]);
    refused(&shaped("z=3x2"), &["no input `z`; it has x f32[batch,2]"]);
    refused(&shaped("x=3y2"), &["not a shape"]);
    refused(&shaped("x=99999999999x99999999999"), &["elements"]);
}

#[test]
fn a_free_image_size_is_asked_for() {
    let place = Place::new();
    let model = place.node("Identity", &[("images", &[-1, 3, -1, -1])], &[-1, 3, -1, -1]);
    scene(&place);
    let photo = "scenes/images/000000.png";
    refused(&place.once(model, &["--input", photo]), &["leaves its size open", "--shape images=1x3x640x640"]);
    // No detector, so there are no boxes; the tensors are there all the same.
    let output = place.once(model, &["--input", photo, "--shape", "images=2x3x64x32", "--output", "y.npy"]);
    expect_code(&output, 0);
    assert!(stderr(&output).contains("no boxes") && stderr(&output).contains("all 2 items"), "{}", stderr(&output));
    let (shape, values) = floats(&place.bytes("y.npy"));
    assert_eq!(shape, "2, 3, 64, 32,");
    assert_eq!(values[..3 * 64 * 32], values[3 * 64 * 32..]);
    assert!(values.iter().all(|x| (0.0..=1.0).contains(x)) && values.iter().any(|&x| x != values[0]));
    // Where boxes are asked for, their absence is a failure.
    let output = place.once(model, &["--input", photo, "--shape", "images=1x3x64x64", "--output", "y.jpg"]);
    expect_code(&output, 1);
    assert!(stderr(&output).contains("--head") && !place.path("y.jpg").exists(), "{}", stderr(&output));
}

#[test]
fn a_broken_file_is_named_and_nothing_is_allocated_on_its_word() {
    let place = Place::new();
    let model = place.node("Identity", &[("x", &[-1])], &[-1]);
    let whole = f32s(&[100], &[1.0; 100]);
    place.put("x.npy", &whole[..whole.len() - 1]);
    refused(&place.once(model, &["--input", "x.npy"]), &["x.npy", "f32[100]", "cut short"]);
    place.put("x.npy", &whole[..20]);
    refused(&place.once(model, &["--input", "x.npy"]), &["x.npy", "header"]);
    place.put("x.npy", b"no array at all");
    refused(&place.once(model, &["--input", "x.npy"]), &["no .npy file"]);
    place.put("x.npz", b"no archive at all");
    refused(&place.once(model, &["--input", "x.npz"]), &["no .npz file"]);
    refused(&place.once(model, &["--input", "missing.npy"]), &["missing.npy", "cannot read it"]);
    refused(&place.once(model, &["--input", "x.txt"]), &["x.txt", ".npy"]);

    // 4 GB in a file of 1 KB, with less memory than that to be had.
    let mut liar = header("<f4", false, &[1 << 30]);
    liar.resize(1024, 0);
    place.put("liar.npy", &liar);
    place.put("liar.npz", &npz(&[("x", liar)]));
    for file in ["liar.npy", "liar.npz"] {
        let mut limited = Command::new("sh");
        limited.current_dir(place.dir.path()).args(["-c", "ulimit -v 3000000; exec \"$0\" \"$@\""]);
        limited.arg(prony().get_program()).args(["run", model, "--input", file]);
        refused(&limited.output().unwrap(), &[file, "f32[1073741824]", "4294967296 bytes", "cut short"]);
    }
}

#[test]
fn without_an_input_the_inputs_are_shown() {
    let place = Place::new();
    refused(&place.once("builtin-rgb", &[]), &["images f32[batch,3,320,320]", "--input photo.jpg", "images=x.npy"]);
    let model = place.node("Sub", &[("a", &[1, 2]), ("b", &[-1, 2])], &[1, 2]);
    refused(&place.once(model, &[]), &["a f32[1,2], b f32[batch,2]", "--input a=x.npy --input b=x.npy", "x.npz"]);
}

#[test]
fn what_is_not_a_number_is_said_by_name_and_still_written() {
    let place = Place::new();
    let model = place.node("Sqrt", &[("x", &[3])], &[3]);
    place.put("x.npy", &f32s(&[3], &[4.0, -1.0, f32::INFINITY]));
    let output = place.once(model, &["--input", "x.npy", "--output", "y.npy", "--json"]);
    expect_code(&output, 3);
    assert!(stderr(&output).contains("output `y` holds 1 NaN and 1 infinite values among 3"), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outputs"][0]["nan"], 1);
    assert_eq!((summary["outputs"][0]["min"].as_f64(), summary["outputs"][0]["max"].as_f64()), (Some(2.0), Some(2.0)));
    assert!(floats(&place.bytes("y.npy")).1[1].is_nan());
}

#[test]
fn a_call_that_fails_is_exit_1() {
    let place = Place::new();
    let graph = GraphProto {
        node: vec![NodeProto::new("Reshape", &["x", "shape"], &["y"], vec![])],
        name: "reshape".into(),
        initializer: vec![TensorProto::ints("shape", &[2, 2])],
        input: vec![ValueInfo::floats("x", &[-1])],
        output: vec![ValueInfo::floats("y", &[2, 2])],
        ..GraphProto::default()
    };
    let model = write_model(&place.path("r.onnx"), &ModelProto::new(graph, &[]));
    place.put("x.npy", &f32s(&[4], &[1.0; 4]));
    expect_code(&place.once(&model, &["--input", "x.npy"]), 0);
    place.put("x.npy", &f32s(&[3], &[1.0; 3]));
    let output = place.once(&model, &["--input", "x.npy", "--output", "y.npy"]);
    expect_code(&output, 1);
    assert!(stderr(&output).contains("rten: inference failed"), "{}", stderr(&output));
    assert!(!place.path("y.npy").exists());
}

#[test]
fn wrong_usage_is_exit_2_before_anything_runs() {
    let place = Place::new();
    let model = place.node("Identity", &[("x", &[2])], &[2]);
    place.put("x.npy", &f32s(&[2], &[1.0, 2.0]));
    let with = |args: &[&str]| place.once(model, &[&["--input", "x.npy"], args].concat());
    refused(&with(&["--backend", "nosuch"]), &["nosuch", "rten", "ort-cpu", "openvino"]);
    refused(&with(&["--library", "x.npy"]), &["--library", "rten"]);
    refused(&with(&["--output", "no/such/y.npy"]), &["there is no folder no/such"]);
    refused(&with(&["--output", "y.txt"]), &["y.txt", ".npz"]);
    refused(&with(&["--output", "z=y.npy"]), &["no output `z`; it has y f32[2]"]);
    refused(&with(&["--output", "y.jpg"]), &["boxes need an image"]);
    refused(&with(&["--output", "y.npy", "--output", "y.npy"]), &["the same file twice"]);
    refused(&with(&["--conf", "0.5"]), &["--conf"]);
    refused(&with(&["--threads", "0"]), &["--threads"]);
    refused(&place.once("builtin-nosuch", &["--input", "x.npy"]), &["builtin-rgb"]);
    refused(&place.once("x.npy", &["--input", "x.npy"]), &["not an ONNX model"]);
    assert!(!place.path("y.npy").exists());
}

#[test]
fn a_backend_that_is_not_here_is_a_failure_that_says_how_to_get_it() {
    let place = Place::new();
    let model = place.node("Identity", &[("x", &[2])], &[2]);
    place.put("x.npy", &f32s(&[2], &[1.0, 2.0]));
    let mut without = prony();
    without.env_clear().env("PRONY_HOME", place.path("empty")).current_dir(place.dir.path());
    without.args(["run", model, "--input", "x.npy", "--backend", "ort-cpu"]);
    let output = without.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("ort-cpu: no ONNX Runtime here; run `prony runtime install onnxruntime`"), "{text}");
}
