//! The figures as a table.

use std::fmt::Write as _;

use prony_types::CocoFigures;

use super::Outcome;

/// In the order of [`CocoFigures::NAMES`].
const WORDS: [&str; CocoFigures::NAMES.len()] = [
    "mAP50-95",
    "mAP50",
    "mAP75",
    "mAP50-95, small objects",
    "mAP50-95, medium objects",
    "mAP50-95, large objects",
    "recall, 1 box an image",
    "recall, 10 boxes an image",
    "recall, 100 boxes an image",
    "recall, small objects",
    "recall, medium objects",
    "recall, large objects",
];

pub(super) fn table(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (i, (words, figure)) in WORDS.into_iter().zip(outcome.figures.stats()).enumerate() {
        let _ = write!(text, "{words:<28}{}", shown(figure));
        match outcome.ci95 {
            Some([lo, hi]) if i == 0 => {
                let _ = writeln!(text, "  [{lo:.4}, {hi:.4}]");
            }
            _ => text.push('\n'),
        }
    }
    if !outcome.classes.is_empty() {
        let names = outcome.classes.iter().map(|class| class.name.chars().count());
        let width = names.max().unwrap_or_default().max("class".len());
        let _ = writeln!(text, "\n{:<width$}  {:>8}  {:>8}  mAP50-95   mAP50", "class", "objects", "boxes");
        for class in &outcome.classes {
            let (name, objects, boxes) = (&class.name, class.objects, class.detections);
            let (mean, loose) = (shown(class.map_50_95), shown(class.map_50));
            let _ = writeln!(text, "{name:<width$}  {objects:>8}  {boxes:>8}    {mean}  {loose}");
        }
    }
    let Outcome { images, objects, detections, seconds, .. } = outcome;
    let _ = writeln!(text, "\n{images} images, {objects} objects, {detections} boxes; {seconds:.2} s");
    text
}

/// Not measured is a dash, never a 0.
fn shown(figure: Option<f64>) -> String {
    figure.map_or_else(|| "     -".to_owned(), |figure| format!("{figure:.4}"))
}
