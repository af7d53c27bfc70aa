//! The built-in detectors are real detectors: through the embedded engine, our letterbox, decoding and NMS, on scenes
//! they were not trained on, they score what we say.
#![expect(clippy::unwrap_used, reason = "tests")]

use prony_backend::{SessionSpec, SlotInput, backend};
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

fn iou(d: &Detection, t: &GroundTruth) -> f64 {
    let width = f64::from(d.x2.min(t.x + t.w)) - f64::from(d.x1.max(t.x));
    let height = f64::from(d.y2.min(t.y + t.h)) - f64::from(d.y1.max(t.y));
    let inner = width.max(0.0) * height.max(0.0);
    inner / (f64::from(d.area()) + f64::from(t.w * t.h) - inner)
}

/// COCO's average precision of one class at one overlap: 101 recall points of the interpolated curve.
fn average_precision(scored: &Scored, class: u32, threshold: f64) -> Option<f64> {
    let truths: usize = scored.iter().map(|(_, truth)| truth.iter().filter(|t| t.class == class).count()).sum();
    let mut marks: Vec<(f32, bool)> = Vec::new();
    for (detections, truth) in scored {
        let mut taken = vec![false; truth.len()];
        for d in detections.iter().filter(|d| d.class == class) {
            let free = (0..truth.len()).filter(|&i| !taken[i] && truth[i].class == class);
            let best = free.max_by(|&a, &b| iou(d, &truth[a]).total_cmp(&iou(d, &truth[b])));
            let hit = best.filter(|&i| iou(d, &truth[i]) >= threshold);
            hit.into_iter().for_each(|i| taken[i] = true);
            marks.push((d.score, hit.is_some()));
        }
    }
    marks.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut hits = 0.0;
    let mut curve: Vec<(f64, f64)> = Vec::new();
    for (i, (_, hit)) in marks.iter().enumerate() {
        hits += f64::from(u8::from(*hit));
        curve.push((hits / truths as f64, hits / (i + 1) as f64));
    }
    for i in (1..curve.len()).rev() {
        curve[i - 1].1 = curve[i - 1].1.max(curve[i].1);
    }
    let at = |recall: f64| curve.iter().find(|(r, _)| *r >= recall).map_or(0.0, |(_, precision)| *precision);
    (truths > 0).then(|| (0..=100).map(|i| at(f64::from(i) / 100.0)).sum::<f64>() / 101.0)
}

fn mean_average_precision(scored: &Scored, classes: usize) -> f64 {
    let thresholds = (0..10).map(|i| 0.5 + 0.05 * f64::from(i));
    let all: Vec<f64> = thresholds
        .flat_map(|threshold| (0..classes as u32).filter_map(move |class| average_precision(scored, class, threshold)))
        .collect();
    assert_eq!(all.len(), classes * 10, "every class occurs in the held-out scenes");
    all.iter().sum::<f64>() / all.len() as f64
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
