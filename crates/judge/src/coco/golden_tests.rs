//! The figures against pycocotools' own (`tools/golden/coco_golden.py`), on sets that both sides make alike.

use serde::Deserialize;

use super::*;

/// See `CASES` of the script.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Parameters(
    pub(crate) u64,
    pub(crate) i64,
    pub(crate) Vec<i64>,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) i64,
    pub(crate) u64,
    pub(crate) u64,
);

#[derive(Deserialize)]
struct Case {
    name: String,
    parameters: Parameters,
    objects: usize,
    boxes: usize,
    check: f64,
    stats: [Option<f64>; 12],
    classes: Vec<[Option<f64>; 2]>,
    curve_75: Vec<f64>,
}

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 33) % n
    }

    fn pixels(&mut self, steps: u64, step: u64) -> f64 {
        (self.below(steps) * step) as f64 / 4.0
    }

    fn any(&mut self, classes: &[i64]) -> i64 {
        classes[self.below(classes.len() as u64) as usize]
    }
}

/// The set that `made` of the script makes.
pub(crate) fn made(parameters: &Parameters) -> (Truths, Vec<Scored>) {
    let Parameters(seed, images, classes, objects, copies, strays, side, crowds, levels, first, spread, step) =
        parameters;
    let mut random = Random(*seed);
    let used = &classes[..classes.len().saturating_sub(1).max(1)];
    let mut truths = Truths {
        images: (0..*images).map(|i| i * 7919 % 10007).collect(),
        classes: classes.iter().map(|&id| (id, format!("class {id}"))).collect(),
        objects: Vec::new(),
    };
    let mut boxes = Vec::new();
    for &image in &truths.images {
        for _ in 0..random.below(objects + 1) {
            let [x, y] = [random.pixels(*spread, *step), random.pixels(*spread, *step)];
            let [w, h] = [random.pixels(*side, *step), random.pixels(*side, *step)];
            let class = random.any(used);
            let crowd = random.below(100) < *crowds;
            let area = w * h * (50 + random.below(51)) as f64 / 100.0;
            let id = first + truths.objects.len() as i64;
            truths.objects.push(Truth { id, image, class, bbox: [x, y, w, h], area, crowd });
            for _ in 0..random.below(copies + 1) {
                let (mut bbox, mut of) = ([x, y, w, h], class);
                match random.below(5) {
                    1 => bbox[2] = w * (10 + random.below(11)) as f64 / 20.0,
                    2 => {
                        bbox[0] += (random.below(41) as f64 - 20.0) * w / 64.0;
                        bbox[1] += (random.below(41) as f64 - 20.0) * h / 64.0;
                    }
                    3 => of = random.any(classes),
                    4 => {
                        bbox[2] = w * (12 + random.below(9)) as f64 / 16.0;
                        bbox[3] = h * (12 + random.below(9)) as f64 / 16.0;
                    }
                    _ => {}
                }
                let score = random.below(*levels) as f64 / *levels as f64;
                boxes.push(Scored { image, class: of, bbox, score });
            }
        }
        for _ in 0..random.below(strays + 1) {
            let bbox = [*spread, *spread, *side, *side].map(|n| random.pixels(n, *step));
            let class = random.any(classes);
            boxes.push(Scored { image, class, bbox, score: random.below(*levels) as f64 / *levels as f64 });
        }
    }
    (truths, boxes)
}

fn same(ours: Option<f64>, theirs: Option<f64>) -> bool {
    match (ours, theirs) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-9,
        (a, b) => a == b,
    }
}

#[test]
fn the_twelve_figures_are_those_of_pycocotools() {
    let golden: Golden = serde_json::from_str(include_str!("../../tests/golden/coco.json")).unwrap();
    assert!(golden.cases.len() >= 16);
    for case in golden.cases {
        let name = &case.name;
        let (truths, boxes) = made(&case.parameters);
        assert_eq!((truths.objects.len(), boxes.len()), (case.objects, case.boxes), "{name}");
        let check = boxes.iter().map(|b| b.bbox.iter().sum::<f64>() * (1.0 + b.score)).sum::<f64>()
            + truths.objects.iter().map(|t| t.area).sum::<f64>();
        assert!((check - case.check).abs() <= 1e-9 * case.check, "{name}: the sets differ, {check}");

        let evaluation = Evaluation::new(&truths, &boxes);
        let ours = evaluation.figures().stats();
        for (i, (ours, theirs)) in ours.into_iter().zip(case.stats).enumerate() {
            assert!(same(ours, theirs), "{name}, {}: {ours:?} against {theirs:?}", CocoFigures::NAMES[i]);
        }
        let classes = evaluation.classes();
        assert_eq!(classes.len(), case.classes.len());
        for (ours, theirs) in classes.iter().zip(&case.classes) {
            assert!(same(ours.map_50_95, theirs[0]) && same(ours.map_50, theirs[1]), "{name}: {ours:?}, {theirs:?}");
        }
        let curves = evaluation.curves();
        let ours = curves.get(1).map(|curve| curve.precision.iter().step_by(10).copied().collect::<Vec<_>>());
        let ours = ours.unwrap_or_default();
        assert_eq!(ours.len(), case.curve_75.len(), "{name}");
        assert!(ours.iter().zip(&case.curve_75).all(|(a, b)| (a - b).abs() < 1e-9), "{name}: {ours:?}");
    }
}
