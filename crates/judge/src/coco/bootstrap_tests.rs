use super::*;
use crate::coco::golden::{Parameters, made};
use crate::coco::{Scored, Truths};

fn set(seed: u64, images: i64) -> (Truths, Vec<Scored>) {
    made(&Parameters(seed, images, vec![1, 2, 3, 4], 6, 3, 6, 700, 8, 50, 1, 2000, 1))
}

/// The set in which each image is there as often as its weight says.
fn drawn(truths: &Truths, boxes: &[Scored], weights: &[u8]) -> (Truths, Vec<Scored>) {
    let mut ids = truths.images.clone();
    ids.sort_unstable();
    let mut many = Truths { classes: truths.classes.clone(), ..Truths::default() };
    let mut found = Vec::new();
    for (&id, &weight) in ids.iter().zip(weights) {
        for copy in 0..i64::from(weight) {
            // Copies lie beside each other, as the order of equal scores wants it.
            let image = id * 1000 + copy;
            many.images.push(image);
            for t in truths.objects.iter().filter(|t| t.image == id) {
                many.objects.push(crate::coco::Truth { image, id: many.objects.len() as i64 + 1, ..*t });
            }
            found.extend(boxes.iter().filter(|b| b.image == id).map(|b| Scored { image, ..*b }));
        }
    }
    (many, found)
}

#[test]
fn a_walk_with_weights_is_the_evaluation_of_the_drawn_set() {
    let (truths, boxes) = set(21, 30);
    // Equal scores are the one thing that weights cannot order as copies would be.
    let boxes: Vec<Scored> =
        boxes.iter().enumerate().map(|(i, b)| Scored { score: b.score + i as f64 * 1e-6, ..*b }).collect();
    let evaluation = Evaluation::new(&truths, &boxes);
    let mut weights = Vec::new();
    for nth in 0..20 {
        draw(30, 5, nth, &mut weights);
        assert_eq!(weights.iter().map(|&w| u32::from(w)).sum::<u32>(), 30);
        let (many, found) = drawn(&truths, &boxes, &weights);
        let whole = Evaluation::new(&many, &found).figures().map_50_95.unwrap();
        let walked = evaluation.replicate(&weights, &mut Default::default()).unwrap();
        assert!((whole - walked).abs() < 1e-9, "draw {nth}: {walked} instead of {whole}");
    }
    let once = evaluation.replicate(&[1; 30], &mut Default::default()).unwrap();
    assert!((once - evaluation.figures().map_50_95.unwrap()).abs() < 1e-12);
}

#[test]
fn the_interval_holds_the_figure_and_depends_on_the_seed_alone() {
    let (truths, boxes) = set(22, 60);
    let evaluation = Evaluation::new(&truths, &boxes);
    let [lo, hi] = evaluation.interval(1).unwrap();
    let figure = evaluation.figures().map_50_95.unwrap();
    assert!(lo < figure && figure < hi && hi - lo < 0.3, "{lo} {figure} {hi}");
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(alone.install(|| evaluation.interval(1)), Some([lo, hi]));
    assert_ne!(evaluation.interval(2), Some([lo, hi]));
}

#[test]
fn percentiles_stand_around_the_figure_whatever_the_bias_of_the_draws() {
    let values: Vec<f64> = (0..=1000).map(|i| f64::from((i * 10) % 1001) / 1000.0).collect();
    let [lo, hi] = percentiles(values, 0.3).unwrap();
    assert!((lo - (0.3 - 0.475)).abs() < 1e-9 && (hi - (0.3 + 0.475)).abs() < 1e-9, "{lo} {hi}");
    assert_eq!(percentiles(Vec::new(), 0.3), None);
}

#[test]
fn more_images_make_it_narrower() {
    let width = |images| {
        let (truths, boxes) = set(23, images);
        let [lo, hi] = Evaluation::new(&truths, &boxes).interval(1).unwrap();
        hi - lo
    };
    let (few, many) = (width(25), width(400));
    assert!(many < few / 2.0, "{few}, {many}");
}

#[test]
fn few_images_have_no_interval() {
    let (truths, boxes) = set(24, INTERVAL_NEEDS as i64 - 1);
    let evaluation = Evaluation::new(&truths, &boxes);
    assert!(evaluation.figures().map_50_95.is_some());
    assert_eq!(evaluation.interval(1), None);
    assert_eq!(evaluation.paired(&evaluation, 1), Some(Paired { delta: 0.0, ci95: None }));
}

#[test]
fn a_pair_shares_its_draws() {
    let (truths, boxes) = set(25, 80);
    let evaluation = Evaluation::new(&truths, &boxes);
    let itself = evaluation.paired(&evaluation, 1).unwrap();
    assert_eq!(itself, Paired { delta: 0.0, ci95: Some([0.0, 0.0]) });
    // Shifted a little: the difference is far surer than either figure.
    let shifted: Vec<Scored> = boxes
        .iter()
        .map(|b| Scored { bbox: [b.bbox[0] + 0.02 * b.bbox[2], b.bbox[1], b.bbox[2], b.bbox[3]], ..*b })
        .collect();
    let worse = Evaluation::new(&truths, &shifted);
    let paired = worse.paired(&evaluation, 1).unwrap();
    let ([lo, hi], [a, b]) = (paired.ci95.unwrap(), evaluation.interval(1).unwrap());
    assert!(hi < 0.0 && lo <= paired.delta && paired.delta <= hi, "{paired:?}");
    assert!(hi - lo < (b - a) / 2.0, "{paired:?} against {:?}", [a, b]);
    let (others, _) = set(25, 79);
    assert_eq!(Evaluation::new(&others, &boxes).paired(&evaluation, 1), None, "other images");
}

#[test]
fn draws_are_even() {
    let mut sums = vec![0u32; 50];
    let mut weights = Vec::new();
    let mut twice = 0;
    for nth in 0..2000 {
        draw(50, 9, nth, &mut weights);
        sums.iter_mut().zip(&weights).for_each(|(sum, &w)| *sum += u32::from(w));
        twice += weights.iter().filter(|&&w| w == 2).count();
    }
    // 2000 expected each with a deviation of 45; 18.6 % of weights are 2.
    assert!(sums.iter().all(|sum| (1750..2250).contains(sum)), "{sums:?}");
    assert!((17_500..19_500).contains(&twice), "{twice}");
}
