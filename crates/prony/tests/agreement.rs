//! Outputs against a reference, by the real command: every broken model is caught or shown not to matter, and none that is right
//! is called wrong.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use prony_model::onnx::dimension;
use prony_model::onnx::{AttributeProto, GraphProto, ModelProto, NodeProto, StringEntry, TensorProto, ValueInfo};
use prony_types::{CellRecord, CellStatus, SceneKind, Verdict};
use prost::Message as _;
use support::{Place, SHORT, cell, expect_code, write_model};

fn builtin() -> ModelProto {
    ModelProto::decode(prony_model::builtin(SceneKind::Rgb)).unwrap()
}

fn graph(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().unwrap()
}

/// The values of a weight or of a constant, changed in place.
fn change(model: &mut ModelProto, name: &str, how: impl FnOnce(&mut [f32], &[usize])) {
    let graph = graph(model);
    let weight = graph.initializer.iter_mut().find(|tensor| tensor.name == name);
    let constant = graph.node.iter_mut().filter(|node| node.output.first().is_some_and(|output| output == name));
    let constant = constant.flat_map(|node| &mut node.attribute).find_map(|attribute| attribute.t.as_mut());
    let tensor = weight.or(constant).unwrap_or_else(|| panic!("no {name}"));
    let mut values = tensor.to_f32s().unwrap();
    let dims: Vec<usize> = tensor.dims.iter().map(|&dim| dim as usize).collect();
    how(&mut values, &dims);
    *tensor = TensorProto::floats(&tensor.name, &tensor.dims, &values);
}

/// Other inputs for a node, which is found by its output.
fn rewire(model: &mut ModelProto, output: &str, inputs: &[&str]) {
    let node = graph(model).node.iter_mut().find(|node| node.output[0] == output).unwrap();
    node.input = inputs.iter().map(|&input| input.to_owned()).collect();
}

/// Swaps two classes of the score layer at a stride.
fn swap_classes(model: &mut ModelProto, stride: usize, one: usize, two: usize) {
    for part in ["weight", "bias"] {
        change(model, &format!("scores.{stride}.4.{part}"), |values, dims| {
            let each = values.len() / dims[0];
            (0..each).for_each(|i| values.swap(one * each + i, two * each + i));
        });
    }
}

fn zero_channel(model: &mut ModelProto, layer: &str, channel: usize) {
    for part in ["weight", "bias"] {
        change(model, &format!("{layer}.{part}"), |values, dims| {
            let each = values.len() / dims[0];
            values[channel * each..(channel + 1) * each].fill(0.0);
        });
    }
}

/// Names of the weights of all convolutions, in the order of the file.
fn weights() -> Vec<String> {
    let model = builtin();
    let tensors = model.graph.unwrap().initializer;
    tensors.into_iter().filter(|tensor| tensor.dims.len() == 4).map(|tensor| tensor.name).collect()
}

/// Twenty models that are nearly the built-in one, each with the mistake it was made with.
fn broken() -> Vec<(String, ModelProto)> {
    let mut all = Vec::new();
    let mut add = |name: String, how: &dyn Fn(&mut ModelProto)| {
        let mut model = builtin();
        how(&mut model);
        all.push((name, model));
    };
    let layers = weights();
    for part in [1, 3, 5] {
        let layer = &layers[layers.len() * part / 7];
        let scale = |values: &mut [f32], _: &[usize]| values.iter_mut().for_each(|x| *x *= 1.05);
        add(format!("weights-{part}"), &|model| change(model, layer, scale));
        let largest = |values: &mut [f32], _: &[usize]| {
            *values.iter_mut().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap() *= 1.05;
        };
        add(format!("weight-{part}"), &|model| change(model, layer, largest));
    }
    for (i, part) in [1, 2, 4, 6].into_iter().enumerate() {
        let layer = layers[layers.len() * part / 7].trim_end_matches(".weight").to_owned();
        add(format!("channel-{part}"), &|model| zero_channel(model, &layer, i));
    }
    add("classes-0-1".into(), &|model| (0..3).for_each(|stride| swap_classes(model, stride, 0, 1)));
    add("classes-3-7".into(), &|model| (0..3).for_each(|stride| swap_classes(model, stride, 3, 7)));
    add("classes-at-one-stride".into(), &|model| swap_classes(model, 1, 0, 1));
    add("corners".into(), &|model| rewire(model, "/Concat_6_output_0", &["/Sub_output_0", "/Add_output_0"]));
    for (name, by) in [("half-pixel-less", -0.5), ("half-pixel-more", 0.5)] {
        add(name.into(), &|model| {
            for anchors in ["/Constant_15_output_0", "/Constant_20_output_0"] {
                change(model, anchors, |values, _| values.iter_mut().for_each(|x| *x += by));
            }
        });
    }
    add("box-order".into(), &|model| {
        rewire(model, "/Concat_4_output_0", &["/Reshape_2_output_0", "/Reshape_1_output_0", "/Reshape_output_0"]);
    });
    add("score-order".into(), &|model| {
        rewire(model, "/Concat_5_output_0", &["/Reshape_5_output_0", "/Reshape_4_output_0", "/Reshape_3_output_0"]);
    });
    add("anchors-turned".into(), &|model| {
        for anchors in ["/Constant_15_output_0", "/Constant_20_output_0"] {
            change(model, anchors, |values, _| {
                let (x, y) = values.split_at_mut(values.len() / 2);
                x.swap_with_slice(y);
            });
        }
    });
    add("sigmoid-twice".into(), &|model| {
        let again = NodeProto::new("Sigmoid", &["/Sigmoid_output_0"], &["twice"], vec![]);
        let nodes = &mut graph(model).node;
        nodes.insert(nodes.len() - 1, again);
        rewire(model, "output0", &["/Mul_1_output_0", "twice"]);
    });
    all
}

fn map(cell: &CellRecord) -> f64 {
    cell.accuracy
        .as_ref()
        .unwrap_or_else(|| panic!("{}: {:?}", cell.id, cell.accuracy_absent))
        .figures
        .map_50_95
        .unwrap()
}

/// Each is called wrong, or is one of the harmless ones and loses no accuracy.
fn are_caught_or_shown_not_to_matter(models: &[(String, ModelProto)]) {
    let place = Place::new();
    let right = write_model(&place.path("right.onnx"), &builtin());
    let file = |name: &str| place.path(&format!("{name}.onnx")).to_str().unwrap().to_owned();
    let mut files = vec![right.clone()];
    files.extend(models.iter().map(|(name, model)| write_model(&place.path(&format!("{name}.onnx")), model)));
    let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
    let short = ["--samples", "2", "--warmup", "0", "--frames", "4"];
    args.extend(["--backends", "rten", "--reference", "builtin-rgb"]);
    args.extend(short);
    expect_code(&place.bench(&args).output().unwrap(), 3);
    let record = place.record();
    let of = |name: &str| cell(&record, &format!("{name}:rten:fp32"));
    assert_ne!(of("right").verdict, Some(Verdict::WrongOutput), "{:?}", of("right").verdict_reasons);
    let passed = models.iter().map(|(name, _)| of(name)).filter(|cell| cell.verdict != Some(Verdict::WrongOutput));
    let passed: Vec<&str> = passed.map(|cell| &*cell.model.name).collect();
    // A single weight by 5 %, or two classes where the frames show none of them large: nothing else may pass.
    let harmless = |name: &str| name.starts_with("weight-") || name == "classes-at-one-stride";
    assert!(passed.iter().all(|name| harmless(name)), "{passed:?}");
    assert!(record.cells.iter().all(|cell| cell.status == CellStatus::Completed), "{record:?}");

    let scored = Place::new();
    let mut files = vec![right];
    files.extend(passed.iter().map(|name| file(name)));
    let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
    args.extend(["--backends", "rten", "--data", "scenes", "--limit", "64"]);
    args.extend(short);
    scored.bench(&args).output().unwrap();
    let record = scored.record();
    let of = |name: &str| map(cell(&record, &format!("{name}:rten:fp32")));
    for name in passed {
        let lost = 100.0 * (of("right") - of(name));
        assert!(lost < 0.5, "{name} loses {lost:.2} points and nobody says so");
    }
}

#[test]
#[ignore = "long: .ci/long runs it"]
fn twenty_broken_models_are_caught_or_shown_not_to_matter() {
    let models = broken();
    assert_eq!(models.len(), 20);
    are_caught_or_shown_not_to_matter(&models);
}

/// One of each kind of mistake, and one that may pass.
#[test]
fn broken_models_are_caught_or_shown_not_to_matter() {
    let kinds = ["weights-3", "weight-3", "channel-4", "classes-3-7", "half-pixel-more", "sigmoid-twice"];
    let models: Vec<_> = broken().into_iter().filter(|(name, _)| kinds.contains(&&**name)).collect();
    assert_eq!(models.len(), kinds.len());
    are_caught_or_shown_not_to_matter(&models);
}

/// A batch in which every item gets what the first one would.
fn first_of_batch() -> ModelProto {
    let mut model = builtin();
    let graph = graph(&mut model);
    for node in &mut graph.node {
        node.input.iter_mut().filter(|input| *input == "images").for_each(|input| *input = "first".into());
    }
    let ints = |name: &str, value: i64| TensorProto::ints(name, &[value]);
    graph.initializer.extend([ints("zero", 0), ints("one", 1), TensorProto::floats("nothing", &[], &[0.0])]);
    let added = [
        NodeProto::new("Slice", &["images", "zero", "one", "zero"], &["of-first"], vec![]),
        NodeProto::new("Mul", &["images", "nothing"], &["of-none"], vec![]),
        NodeProto::new("Add", &["of-none", "of-first"], &["first"], vec![]),
    ];
    graph.node.splice(0..0, added);
    model
}

#[test]
fn a_batch_in_which_every_item_gets_the_first_ones_result_is_wrong_output() {
    let place = Place::new();
    let model = write_model(&place.path("first.onnx"), &first_of_batch());
    let args = [&[&*model, "--batch", "1,4", "--backends", "rten"], &SHORT[..]].concat();
    expect_code(&place.bench(&args).output().unwrap(), 3);
    let record = place.record();
    let alone = cell(&record, "first:rten:fp32@b1");
    assert_ne!(alone.verdict, Some(Verdict::WrongOutput), "{:?}", alone.verdict_reasons);
    let four = cell(&record, "first:rten:fp32@b4");
    assert_eq!(four.verdict, Some(Verdict::WrongOutput), "{:?}", four.agreement);
    let says = |words: &str| four.verdict_reasons.iter().any(|reason| reason.contains(words));
    assert!(says("each frame of a batch alone gave another output"), "{:?}", four.verdict_reasons);
    assert!(says("of boxes") && says("of the boxes match"), "{:?}", four.verdict_reasons);

    // The built-in one gives each its own.
    let place = Place::new();
    expect_code(&place.bench(&[&["builtin-rgb", "--batch", "4"], &SHORT[..]].concat()).output().unwrap(), 0);
    let record = place.record();
    let [four] = &record.cells[..] else { panic!("{:?}", record.cells) };
    assert!(four.consistency.iter().any(|check| check.name == "each frame of a batch alone"), "{:?}", four.consistency);
    assert_eq!(four.agreement.as_ref().unwrap().matched_boxes, Some(1.0));
}

/// The built-in detector as a segmentation export: 32 mask coefficients behind the scores, which are multiplied by `scores`.
fn segmenting(scores: f32) -> ModelProto {
    let mut model = builtin();
    let graph = graph(&mut model);
    graph.initializer.push(TensorProto::floats("by", &[], &[scores]));
    let last = graph.node.len() - 1;
    graph.node.insert(last, NodeProto::new("Mul", &["/Sigmoid_output_0", "by"], &["scores"], vec![]));
    let mut inputs = vec!["/Mul_1_output_0", "scores"];
    inputs.extend(["/Mul_1_output_0"; 8]);
    rewire(&mut model, "output0", &inputs);
    let tensor = model.graph.as_mut().unwrap().output[0].ty.as_mut().unwrap().tensor.as_mut().unwrap();
    tensor.shape.as_mut().unwrap().dim[1].value = Some(dimension::Value::Fixed(45));
    model.metadata_props.retain(|entry| entry.key != "task");
    model.metadata_props.push(StringEntry { key: "task".into(), value: "segment".into() });
    model
}

#[test]
fn zeroed_scores_do_not_hide_among_masks() {
    let place = Place::new();
    let right = write_model(&place.path("right.onnx"), &segmenting(1.0));
    let zeroed = write_model(&place.path("zeroed.onnx"), &segmenting(0.0));
    let args = [&[&*right, &zeroed, "--reference", &right, "--backends", "rten"], &SHORT[..]].concat();
    expect_code(&place.bench(&args).output().unwrap(), 3);
    let record = place.record();
    let right = cell(&record, "right:rten:fp32");
    assert_ne!(right.verdict, Some(Verdict::WrongOutput), "{:?}", right.verdict_reasons);
    assert!(right.agreement.as_ref().unwrap().rest.is_some(), "{:?}", right.agreement);
    let zeroed = cell(&record, "zeroed:rten:fp32");
    assert_eq!(zeroed.verdict, Some(Verdict::WrongOutput), "{:?}", zeroed.agreement);
    assert!(zeroed.verdict_reasons[0].starts_with("cosine of scores is 0.00000"), "{:?}", zeroed.verdict_reasons);
}

#[test]
fn all_of_no_boxes_is_not_called_a_match() {
    let place = Place::new();
    expect_code(&place.bench(&[&["builtin-rgb", "--conf", "0.999"], &SHORT[..]].concat()).output().unwrap(), 0);
    let record = place.record();
    let agreement = record.cells[0].agreement.as_ref().unwrap();
    assert_eq!((agreement.matched_boxes, agreement.compared_boxes), (None, Some(0)));
    assert!(agreement.boxes.is_some() && agreement.scores.is_some(), "the values are still compared");
}

/// Turns of a map that doubles every difference: 17 of them make of the last bit of a float what no bound for fp32 allows.
const TURNS: usize = 17;

/// A convolution, its sums made in one pass or in two, and a chaotic map behind it.
fn chaotic(in_two: bool, scale: f32) -> ModelProto {
    let weights: Vec<f32> = (0..4 * 3 * 3 * 3).map(|i| scale * ((i * 37 % 101) as f32 - 50.0) / 256.0).collect();
    let attributes =
        || vec![AttributeProto::ints("pads", &[1, 1, 1, 1]), AttributeProto::ints("kernel_shape", &[3, 3])];
    let conv = |weights: &str, output: &str| NodeProto::new("Conv", &["x", weights], &[output], attributes());
    let half = |keep: usize| -> Vec<f32> {
        weights.iter().enumerate().map(|(i, &w)| if i % 2 == keep { w } else { 0.0 }).collect()
    };
    let tensor = |name: &str, values: &[f32]| TensorProto::floats(name, &[4, 3, 3, 3], values);
    let scalar = |name: &str, value: f32| TensorProto::floats(name, &[], &[value]);
    let mut initializer = vec![scalar("one", 1.0), scalar("four", 4.0)];
    let mut node = if in_two {
        initializer.extend([tensor("even", &half(0)), tensor("odd", &half(1))]);
        vec![conv("even", "a"), conv("odd", "b"), NodeProto::new("Add", &["a", "b"], &["sum"], vec![])]
    } else {
        initializer.push(tensor("w", &weights));
        vec![conv("w", "sum")]
    };
    node.push(NodeProto::new("Sigmoid", &["sum"], &["v0"], vec![]));
    for turn in 0..TURNS {
        let [from, less, times, to] = ["v", "less", "times", "v"].map(|name| format!("{name}{turn}"));
        let to = if turn + 1 == TURNS { "y".to_owned() } else { format!("{}{}", &to[..1], turn + 1) };
        node.push(NodeProto::new("Sub", &["one", &from], &[&less], vec![]));
        node.push(NodeProto::new("Mul", &[&from, &less], &[&times], vec![]));
        node.push(NodeProto::new("Mul", &[&times, "four"], &[&to], vec![]));
    }
    let graph = GraphProto {
        node,
        name: "chaotic".into(),
        initializer,
        input: vec![ValueInfo::floats("x", &[1, 3, 32, 32])],
        output: vec![ValueInfo::floats("y", &[1, 4, 32, 32])],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[])
}

#[test]
fn a_chaotic_model_that_is_right_is_not_wrong_output_and_a_broken_one_is() {
    let place = Place::new();
    let file = |name: &str, model| write_model(&place.path(name), &model);
    let [one, two, broken] = [("one.onnx", false, 1.0), ("two.onnx", true, 1.0), ("broken.onnx", true, 1.05)]
        .map(|(name, in_two, scale)| file(name, chaotic(in_two, scale)));
    let args = [&[&*two, &broken, "--reference", &one, "--head", "none", "--backends", "rten"], &SHORT[..]].concat();
    expect_code(&place.bench(&args).output().unwrap(), 3);
    let record = place.record();
    let right = cell(&record, "two:rten:fp32");
    let agreement = right.agreement.as_ref().unwrap();
    let db = agreement.boxes.unwrap().sqnr_db.unwrap();
    assert!(db < 40.0, "{db} dB would pass without knowing the model");
    assert_ne!(right.verdict, Some(Verdict::WrongOutput), "{:?}", right.verdict_reasons);
    let says = |words: &str| right.verdict_reasons.iter().any(|reason| reason.contains(words));
    assert!(
        says("this model is sensitive: an input rounded to fp32 alone moves outputs"),
        "{:?}",
        right.verdict_reasons
    );
    let broken = cell(&record, "broken:rten:fp32");
    assert_eq!(broken.verdict, Some(Verdict::WrongOutput), "{:?}", broken.agreement);
}
