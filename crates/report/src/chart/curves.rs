//! Precision over recall: a line a cell at an overlap of 0.50, dashed at 0.75.

use super::axis::{self, Scale};
use super::svg::Svg;
use crate::accuracy;

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = HEIGHT - 38.0;

/// So many lines can be told apart by colour; the page's style has as many.
pub(crate) const COLOURS: usize = 8;

/// One cell's curves.
pub(crate) struct Curves<'a> {
    pub(crate) name: &'a str,
    /// At an overlap of 0.50.
    pub(crate) loose: Option<&'a [f64]>,
    /// At 0.75.
    pub(crate) strict: Option<&'a [f64]>,
}

/// A curve that can be drawn.
struct Line<'a> {
    colour: usize,
    dashed: bool,
    precision: &'a [f64],
    told: String,
}

/// The drawing, at most [`COLOURS`] cells of it; `None` where there is nothing to draw.
pub(crate) fn curves(cells: &[Curves<'_>]) -> Option<String> {
    let lines = lines(cells);
    if lines.is_empty() {
        return None;
    }
    let x = Scale::new([0.0, 1.0], [LEFT, RIGHT]);
    let y = Scale::new([0.0, 1.0], [BOTTOM, TOP]);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    axes(&mut svg, &x, &y);
    for line in &lines {
        let class = format!("curve c{}{}", line.colour, if line.dashed { " dashed" } else { "" });
        svg.path(&class, &points(line.precision, &x, &y), false, "");
    }
    // Wider and unseen, so that a pointer finds a line.
    for line in &lines {
        svg.path("hit-line", &points(line.precision, &x, &y), false, &line.told);
    }
    let words: Vec<&str> = lines.iter().map(|line| line.told.as_str()).collect();
    Some(svg.finish(&format!("Precision over recall: {}", words.join("; "))))
}

fn lines<'a>(cells: &[Curves<'a>]) -> Vec<Line<'a>> {
    let mut out = Vec::new();
    for (i, cell) in cells.iter().take(COLOURS).enumerate() {
        // Dashes come first, so that the whole line lies on top where both run together.
        for (dashed, iou, precision) in [(true, "0.75", cell.strict), (false, "0.50", cell.loose)] {
            let sound = |precision: &&[f64]| precision.len() > 1 && precision.iter().all(|p| p.is_finite());
            if let Some(precision) = precision.filter(sound) {
                out.push(Line { colour: i + 1, dashed, precision, told: told(cell.name, iou, precision) });
            }
        }
    }
    out
}

fn points(precision: &[f64], x: &Scale, y: &Scale) -> Vec<[f64; 2]> {
    let last = (precision.len() - 1) as f64;
    precision.iter().enumerate().map(|(i, &p)| [x.at(i as f64 / last), y.clamped(p)]).collect()
}

/// Three places of a curve, for a reader who does not see it.
fn told(name: &str, iou: &str, precision: &[f64]) -> String {
    let at = |share: f64| accuracy::score(precision[((precision.len() - 1) as f64 * share).round() as usize]);
    format!("{name}, IoU {iou}: precision {} at recall 0.5, {} at 0.7, {} at 0.9", at(0.5), at(0.7), at(0.9))
}

fn axes(svg: &mut Svg, x: &Scale, y: &Scale) {
    let ticks = y.ticks(5);
    for (i, &tick) in ticks.iter().enumerate() {
        svg.line("grid", [LEFT, y.at(tick), RIGHT, y.at(tick)], "");
        svg.text("tick", [LEFT - 6.0, y.at(tick) + 4.0], "end", &axis::label(tick, &ticks));
        svg.line("axis", [x.at(tick), BOTTOM, x.at(tick), BOTTOM + 4.0], "");
        let anchor = if i + 1 == ticks.len() { "end" } else { "middle" };
        svg.text("tick", [x.at(tick), BOTTOM + 17.0], anchor, &axis::label(tick, &ticks));
    }
    svg.line("axis", [LEFT, BOTTOM, RIGHT, BOTTOM], "");
    svg.text("name", [LEFT, HEIGHT - 5.0], "start", "precision, mean over classes");
    svg.text("name", [RIGHT, HEIGHT - 5.0], "end", "recall");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_an_overlap_and_none_for_what_is_not_a_number() {
        let (falling, broken) = ([1.0, 0.5, 0.0], [1.0, f64::NAN, 0.0]);
        let cell = |strict| Curves { name: "a<b", loose: Some(&falling), strict };
        let svg = curves(&[cell(Some(&falling)), cell(Some(&broken)), cell(None)]).unwrap();
        assert_eq!(svg.matches("class=\"curve ").count(), 4);
        assert_eq!(svg.matches("dashed").count(), 1);
        assert!(svg.contains("c3\"") && !svg.contains("NaN") && !svg.contains("a<b"));
        assert!(svg.contains("a&lt;b, IoU 0.50: precision 0.500 at recall 0.5, 0.500 at 0.7, 0.000 at 0.9"), "{svg}");
    }

    #[test]
    fn nothing_to_draw_is_no_drawing() {
        assert!(curves(&[]).is_none());
        assert!(curves(&[Curves { name: "a", loose: Some(&[1.0]), strict: None }]).is_none());
    }
}
