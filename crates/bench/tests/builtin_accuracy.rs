//! The built-in detectors are real detectors: through the embedded engine, our letterbox, decoding and NMS, on scenes
//! they were not trained on, they score what we say.
#![expect(clippy::disallowed_macros, reason = "tests")]
#![expect(clippy::unwrap_used, reason = "tests")]

use prony_backend::{SessionSpec, SlotInput, backend};
use prony_judge::coco::{self, Evaluation, Truth, Truths};
use prony_model::ModelFile;
use prony_source::scenes;
use prony_types::{BackendName, Detection, GroundTruth, HeadChoice, PostSpec, SceneKind, TensorSpec};
use prony_vision::{Decoder, Head, Preprocessor};

const SCENES: u32 = 300;
/// Training used other seeds.
const HELD_OUT: u64 = 99;
const FLOOR: f64 = 0.60;

type Scored = Vec<(Vec<Detection>, Vec<GroundTruth>)>;

fn detect(kind: SceneKind) -> (Scored, usize) {
    let model = ModelFile::builtin(kind).unwrap();
    let names = model.info.metadata.names.clone();
    assert_eq!(names, scenes::class_names(kind), "the model's classes are the scenes'");
    let spec = SessionSpec { threads: 2, ..SessionSpec::new(&model) };
    let mut session = backend(BackendName::Rten).open(&spec).unwrap();
    let mut preprocessor = Preprocessor::new(320, 320);
    let post = PostSpec { conf: 0.001, iou: 0.7, max_det: 300, multi_label: false };
    let mut decoder: Option<Decoder> = None;
    let mut all = Vec::new();
    for index in 0..SCENES {
        let scene = scenes::scene(kind, HELD_OUT, index);
        let SlotInput::F32(input) = session.input(0, 0) else { panic!("not a float input") };
        let letterbox = preprocessor.run(&scene.image, input);
        session.run(0).unwrap();
        let output = session.output(0, 0);
        let decoder = decoder.get_or_insert_with(|| {
            let spec =
                TensorSpec { name: output.name.into(), dtype: prony_types::DType::F32, shape: output.shape.to_vec() };
            let head = Head::choose(HeadChoice::Auto, &[spec], &model.info.metadata, Some([320, 320])).unwrap();
            Decoder::new(head, &post, [320, 320])
        });
        let mut boxes = Vec::new();
        decoder.decode(&[output], 0, &letterbox, &mut boxes).unwrap();
        boxes.truncate(100);
        all.push((boxes, scene.truth));
    }
    (all, names.len())
}

fn mean_average_precision(scored: &Scored, classes: usize) -> f64 {
    let numbers = || (0i64..).zip(scored);
    let objects = numbers().flat_map(|(image, (_, truth))| truth.iter().map(move |truth| (image, truth)));
    let truths = Truths {
        images: numbers().map(|(image, _)| image).collect(),
        classes: (0..classes as i64).map(|class| (class, class.to_string())).collect(),
        objects: (1i64..)
            .zip(objects)
            .map(|(id, (image, t))| Truth {
                id,
                image,
                class: i64::from(t.class),
                bbox: [t.x, t.y, t.w, t.h].map(f64::from),
                area: f64::from(t.area),
                crowd: t.crowd,
            })
            .collect(),
    };
    let found = numbers().flat_map(|(image, (boxes, _))| boxes.iter().map(move |d| (image, d)));
    let boxes: Vec<coco::Scored> = found
        .map(|(image, d)| coco::Scored {
            image,
            class: i64::from(d.class),
            bbox: [d.x1, d.y1, d.x2 - d.x1, d.y2 - d.y1].map(f64::from),
            score: f64::from(d.score),
        })
        .collect();
    let evaluation = Evaluation::new(&truths, &boxes);
    let all = evaluation.classes();
    assert!(all.iter().all(|class| class.map_50_95.is_some()), "every class occurs in the held-out scenes");
    assert_eq!(all.len(), classes);
    evaluation.figures().map_50_95.unwrap()
}

#[test]
fn both_reach_their_accuracy_on_held_out_scenes() {
    for &kind in SceneKind::ALL {
        let (scored, classes) = detect(kind);
        let map = mean_average_precision(&scored, classes);
        println!("builtin-{kind}: mAP50-95 {map:.3} on {SCENES} scenes");
        assert!(map >= FLOOR, "builtin-{kind}: mAP50-95 {map:.3}");
        // The measure itself can fail: boxes moved by a third of their width are worth little.
        let shifted: Scored = scored
            .iter()
            .map(|(boxes, truth)| {
                let moved = boxes.iter().map(|b| {
                    let by = (b.x2 - b.x1) / 3.0;
                    Detection { x1: b.x1 + by, x2: b.x2 + by, ..*b }
                });
                (moved.collect(), truth.clone())
            })
            .collect();
        assert!(mean_average_precision(&shifted, classes) < 0.2);
    }
}
