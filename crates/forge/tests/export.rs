//! Checkpoints as ONNX, held against what PyTorch made of them (`tools/golden/export_golden.py`): the exported graph runs
//! on the embedded engine.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use prony_backend::{SessionSpec, SlotInput, backend};
use prony_forge::export::{Axis, EndToEnd, ExportOptions, Exported, OPSETS, export};
use prony_model::ModelFile;
use prony_model::onnx::ModelProto;
use prony_model::pt::{Checkpoint, Module, Tensor};
use prony_types::{BackendName, TensorData};
use prost::Message as _;

const SIDE: usize = 64;
const MODELS: [&str; 4] = ["classic", "rep", "ten", "attention"];
/// Those with branches that give each object once.
const ONCE: [&str; 2] = ["ten", "attention"];

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn checkpoint(name: &str) -> Checkpoint {
    Checkpoint::open(&golden(&format!("{name}.pt"))).unwrap()
}

fn options(end2end: EndToEnd) -> ExportOptions {
    ExportOptions { end2end, ..ExportOptions::default() }
}

fn exported(name: &str, options: &ExportOptions) -> Exported {
    export(&checkpoint(name), options).unwrap()
}

fn refused(checkpoint: &Checkpoint) -> String {
    export(checkpoint, &ExportOptions::default()).unwrap_err().to_string()
}

/// The picture that the script made, or one of another size by the same formula.
fn image(batch: usize, [height, width]: [usize; 2]) -> Vec<f32> {
    let count = batch * 3 * height * width;
    (0..count).map(|n| (n * 7919 % 1009) as f32 / 1009.0).collect()
}

/// Shape and numbers of the output.
fn run(made: &Exported, batch: usize, size: [usize; 2]) -> (Vec<usize>, Vec<f32>) {
    let model = ModelFile::from_bytes("exported", made.bytes.clone().into()).unwrap();
    let shapes = vec![("images".to_owned(), vec![batch, 3, size[0], size[1]])];
    let mut session = backend(BackendName::Rten).open(&SessionSpec { shapes, ..SessionSpec::new(&model) }).unwrap();
    match session.input(0, 0) {
        SlotInput::F32(input) => input.copy_from_slice(&image(batch, size)),
        other => panic!("{other:?}"),
    }
    session.run(0).unwrap();
    let output = session.output(0, 0);
    match output.data {
        TensorData::F32(numbers) => (output.shape.to_vec(), numbers.to_vec()),
        ref other => panic!("{other:?}"),
    }
}

/// Numbers of numpy's file: floats of 32 bits behind a short header.
fn expected(key: &str) -> Vec<f32> {
    let bytes = std::fs::read(golden(&format!("{key}.npy"))).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[header..].as_chunks().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// How far PyTorch's own float32 is from the truth: boxes and scores.
fn floor(key: &str) -> [f32; 2] {
    let text = std::fs::read_to_string(golden("golden.json")).unwrap();
    let floors: serde_json::Value = serde_json::from_str(&text).unwrap();
    ["boxes", "scores"].map(|what| floors[key][what].as_f64().unwrap() as f32)
}

/// The largest difference of the numbers that are, and are not, of boxes.
fn apart(a: &[f32], b: &[f32], is_box: impl Fn(usize) -> bool) -> [f32; 2] {
    assert_eq!(a.len(), b.len());
    let mut worst = [0f32; 2];
    for (at, (a, b)) in a.iter().zip(b).enumerate() {
        let worst = &mut worst[usize::from(!is_box(at))];
        *worst = worst.max((a - b).abs());
    }
    worst
}

#[track_caller]
fn within(key: &str, found: [f32; 2]) {
    // Sums are taken in another order: a few times the rounding of PyTorch's order, and never below that of one number.
    let floor = floor(key);
    let limits = [floor[0].max(8e-6) * 10.0, floor[1].max(6e-8) * 10.0];
    assert!(found[0] <= limits[0] && found[1] <= limits[1], "{key}: {found:?} beside {floor:?}");
}

#[test]
fn many_boxes_are_those_of_pytorch() {
    for name in MODELS {
        let made = exported(name, &options(EndToEnd::No));
        let (shape, output) = run(&made, 1, [SIDE; 2]);
        let (key, places) = (format!("{name}.many"), shape[2]);
        assert_eq!((shape, made.end2end), (vec![1, 7, places], false));
        within(&key, apart(&output, &expected(&key), |at| at / places < 4));
    }
}

#[test]
fn objects_that_come_once_are_those_of_pytorch() {
    for name in ONCE {
        let made = exported(name, &options(EndToEnd::Auto));
        let (shape, output) = run(&made, 1, [SIDE; 2]);
        assert_eq!((shape, made.end2end), (vec![1, 80, 6], true));
        let key = format!("{name}.once");
        let expected = expected(&key);
        let (found, expected) = (output.as_chunks::<6>().0, expected.as_chunks::<6>().0);
        assert!(found.windows(2).all(|pair| pair[0][4] >= pair[1][4]), "{name}: not sorted");
        // Where scores are all but equal either side may keep another row, or have them in another order.
        let lowest = expected[expected.len() - 1][4] + 1e-5;
        let rows: Vec<&[f32; 6]> = expected.iter().filter(|row| row[4] > lowest).collect();
        assert!(rows.len() > 60, "{name}: {}", rows.len());
        let mut worst = [0f32; 2];
        for row in rows {
            let gaps = found.iter().filter(|other| other[5] == row[5]).map(|other| apart(row, other, |at| at < 4));
            let nearest = gaps.min_by(|a, b| (a[0] / 64.0 + a[1]).total_cmp(&(b[0] / 64.0 + b[1]))).unwrap();
            worst = [worst[0].max(nearest[0]), worst[1].max(nearest[1])];
        }
        within(&key, worst);
    }
}

#[test]
fn a_dynamic_graph_gives_what_a_static_one_of_that_size_gives() {
    for name in MODELS {
        let dynamic = ExportOptions { dynamic: true, ..options(EndToEnd::Auto) };
        let moving = exported(name, &dynamic);
        assert_eq!(moving.input.1[0], Axis::Named("batch".into()));
        assert_eq!(moving.input.1[2..], ["height", "width"].map(|name| Axis::Named(name.into())));
        // At least as many places as at the size that it was made for.
        for size in [[64, 64], [96, 64], [64, 128]] {
            let imgsz = Some(size.map(|side| side as u32));
            let still = exported(name, &ExportOptions { imgsz, ..options(EndToEnd::Auto) });
            let ((shape, still), (other, moving)) = (run(&still, 1, size), run(&moving, 1, size));
            if !ONCE.contains(&name) {
                assert_eq!(shape, other);
                assert_eq!(still, moving, "{name} at {size:?}");
            } else {
                // More rows where there are more places, and the first ones are the same.
                assert_eq!(other, [1, 80, 6]);
                assert_eq!(still[..moving.len()], moving, "{name} at {size:?}");
            }
        }
    }
}

#[test]
fn every_image_of_a_batch_is_as_if_it_were_alone() {
    for (name, dynamic) in [("classic", false), ("attention", false), ("attention", true)] {
        let batched = ExportOptions { batch: 2, dynamic, ..options(EndToEnd::No) };
        let (shape, output) = run(&exported(name, &batched), 2, [SIDE; 2]);
        assert_eq!(shape[..2], [2, 7]);
        let (_, alone) = run(&exported(name, &options(EndToEnd::No)), 1, [SIDE; 2]);
        assert_eq!(output[..alone.len()], alone, "{name}");
        assert_ne!(output[alone.len()..], alone, "{name}: the second image is another one");
    }
}

#[test]
fn every_operator_set_says_the_same() {
    for name in ONCE {
        let with = |opset| exported(name, &ExportOptions { opset, ..options(EndToEnd::Auto) });
        let (_, usual) = run(&with(17), 1, [SIDE; 2]);
        for opset in OPSETS {
            let made = with(opset);
            let model = ModelProto::decode(made.bytes.as_slice()).unwrap();
            assert_eq!(model.opset_import[0].version, i64::from(opset));
            assert_eq!(run(&made, 1, [SIDE; 2]).1, usual, "{name} {opset}");
        }
    }
}

#[test]
fn names_and_facts_are_those_that_readers_of_ultralytics_expect() {
    let made = exported("ten", &options(EndToEnd::Auto));
    let proto = ModelProto::decode(made.bytes.as_slice()).unwrap();
    let graph = proto.graph.as_ref().unwrap();
    let nodes: Vec<&str> = graph.node.iter().map(|node| node.name.as_str()).collect();
    // A row that is called has a scope of its own, one that is gone through has none.
    for name in [
        "/model.0/conv/Conv",
        "/model.0/act/Mul",
        "/model.3/m.0/cv1/cv1.2/conv/Conv",
        "/model.5/ffn/ffn.0/conv/Conv",
        "/model.7/one2one_cv3.0/one2one_cv3.0.0/one2one_cv3.0.0.0/conv/Conv",
        "/model.7/dfl/conv/Conv",
    ] {
        assert!(nodes.contains(&name), "{name}: {nodes:?}");
    }
    let unique: std::collections::HashSet<&str> = nodes.iter().copied().collect();
    assert_eq!(unique.len(), nodes.len());
    let weights: Vec<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    assert!(weights.contains(&"model.3.m.0.cv1.2.conv.weight"), "{weights:?}");
    assert_eq!((graph.input[0].name.as_str(), graph.output[0].name.as_str()), ("images", "output0"));
    assert_eq!((proto.producer_name.as_str(), proto.ir_version), ("prony", 8));
    let info = ModelFile::from_bytes("exported", made.bytes.clone().into()).unwrap().info;
    assert_eq!(info.metadata.names, ["person", "driver's", "6\" nail"]);
    assert_eq!((info.metadata.imgsz, info.metadata.stride), (Some([64, 64]), Some(16)));
    assert_eq!((info.metadata.task.as_deref(), info.metadata.end2end), (Some("detect"), Some(true)));
    let fact = |key: &str| proto.metadata_props.iter().find(|fact| fact.key == key).map(|fact| fact.value.as_str());
    assert_eq!((fact("batch"), fact("channels"), fact("version")), (Some("1"), Some("3"), Some("8.4.190")));
}

#[test]
fn norms_are_folded_away() {
    for name in MODELS {
        let made = exported(name, &options(EndToEnd::Auto));
        let graph = ModelProto::decode(made.bytes.as_slice()).unwrap().graph.unwrap();
        assert!(graph.node.iter().all(|node| node.op_type != "BatchNormalization" && node.op_type != "Mod"));
        let depthwise = graph.node.iter().any(|node| node.name == "/model.3/m.0/cv1/cv1.2/conv1/conv/Conv");
        assert!(!depthwise, "{name}: a branch was left beside another");
    }
}

#[test]
fn sizes_that_do_not_fit_are_answered_with_one_that_does() {
    let ask = |imgsz| export(&checkpoint("classic"), &ExportOptions { imgsz: Some(imgsz), ..Default::default() });
    let error = ask([100, 64]).unwrap_err().to_string();
    assert!(error.contains("100x64") && error.contains("stride of 32") && error.contains("--imgsz 128x64"), "{error}");
    assert_eq!(ask([128, 96]).unwrap().imgsz, [128, 96]);
    let mut untold = checkpoint("classic");
    untold.imgsz = None;
    assert_eq!(export(&untold, &ExportOptions::default()).unwrap().imgsz, [640, 640]);
    for wrong in [ExportOptions { opset: 12, ..Default::default() }, ExportOptions { batch: 0, ..Default::default() }] {
        assert!(export(&checkpoint("classic"), &wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_head_that_is_not_there_is_said() {
    let error = export(&checkpoint("classic"), &options(EndToEnd::Yes)).unwrap_err().to_string();
    assert!(error.contains("no branches that give each object once"), "{error}");
    // As `fuse` leaves it.
    let mut fused = checkpoint("ten");
    change(&mut fused, &["model", "7"], |head| {
        head.children
            .iter_mut()
            .filter(|(name, _)| name == "cv2" || name == "cv3")
            .for_each(|(_, child)| *child = None);
    });
    let error = export(&fused, &options(EndToEnd::No)).unwrap_err().to_string();
    assert!(error.contains("only the branches that give each object once"), "{error}");
    assert!(export(&fused, &options(EndToEnd::Auto)).unwrap().end2end);
}

/// Changes a module of a checkpoint, found by its path.
fn change(checkpoint: &mut Checkpoint, path: &[&str], with: impl FnOnce(&mut Module)) {
    let mut module = checkpoint.model.as_mut().unwrap();
    for step in path {
        let (_, child) = module.children.iter_mut().find(|(name, _)| name == step).unwrap();
        module = child.as_mut().unwrap();
    }
    with(module);
}

type Change = fn(&mut Module);

/// A class that was changed and kept its name must not become a graph that is wrong.
#[test]
fn changed_classes_are_refused() {
    let cases: [(&[&str], Change, &str); 11] = [
        (&["model", "0"], |m| m.class.name = "GhostConv".into(), "GhostConv is not a module that can be exported"),
        (&["model", "0"], |m| m.class.module = "mine.conv".into(), "mine.conv.Conv is not a module"),
        (&["model", "2"], |m| m.children.push(("extra".into(), m.children[0].1.clone())), "it has a `extra`"),
        (&["model", "2"], |m| m.attributes.push(("alpha".into(), m.attributes[0].1)), "it has a `alpha`"),
        (&["model", "0"], |m| m.attributes.push(("forward".into(), m.attributes[0].1)), "it has a `forward`"),
        (&["model", "2"], |m| m.parameters.push(("scale".into(), some_tensor(m))), "`scale` was used 0 times"),
        (&["model", "2"], |m| m.attributes.retain(|(name, _)| name != "c"), "it has no `c`"),
        (&["model", "0"], |m| m.children.retain(|(name, _)| name != "act"), "it has no `act`"),
        (&["model", "0", "act"], |m| m.class.name = "Tanh".into(), "this activation is not supported"),
        (&["model", "2", "m"], |m| drop(m.children.pop()), "do not fit an input"),
        (&["model", "0", "bn"], |m| m.parameters.iter_mut().for_each(|(_, t)| halved(t)), "channels"),
    ];
    for (path, with, reason) in cases {
        let mut checkpoint = checkpoint("classic");
        change(&mut checkpoint, path, with);
        let error = refused(&checkpoint);
        assert!(error.contains(reason) && error.lines().count() == 1, "{reason}: {error}");
    }
}

fn some_tensor(module: &Module) -> Option<Tensor> {
    module.child("cv1")?.child("conv")?.parameter("weight").cloned()
}

fn halved(tensor: &mut Option<Tensor>) {
    tensor.iter_mut().flat_map(|tensor| &mut tensor.shape).for_each(|side| *side /= 2);
}

#[test]
fn layers_that_name_none_are_refused() {
    // The second layer takes what comes much later: `f` of the head is a list of layers before it.
    let mut checkpoint = checkpoint("classic");
    let mut later = None;
    change(&mut checkpoint, &["model", "12"], |head| later = head.attribute("f"));
    change(&mut checkpoint, &["model", "1"], |layer| {
        layer.attributes.iter_mut().filter(|(name, _)| name == "f").for_each(|(_, id)| *id = later.unwrap());
    });
    let error = refused(&checkpoint);
    assert!(error.contains("its `f` is [4, 11, 8]"), "{error}");
}

#[test]
fn weights_that_the_file_cannot_hold_are_refused_before_they_are_read() {
    let mut checkpoint = checkpoint("classic");
    change(&mut checkpoint, &["model", "2"], |block| {
        let weight = some_tensor(block);
        let many = (0..20_000).map(|n| (format!("w{n}"), weight.clone()));
        block.parameters.extend(many);
    });
    let error = refused(&checkpoint);
    assert!(error.contains("which a file of"), "{error}");
}

#[test]
fn what_is_no_detector_is_refused_by_name() {
    let mut checkpoint = checkpoint("classic");
    change(&mut checkpoint, &[], |model| model.class.name = "SegmentationModel".into());
    assert!(refused(&checkpoint).contains("it is a model for segmentation"));
}

#[test]
fn classes_without_names_get_some_and_it_is_said() {
    let mut checkpoint = checkpoint("classic");
    checkpoint.names.remove(&2);
    let made = export(&checkpoint, &ExportOptions::default()).unwrap();
    assert_eq!(made.names[&2], "class2");
    assert!(made.notes[0].contains("names 2 classes and its head has 3"), "{:?}", made.notes);
}
