//! The distribution of `total`, with its median, the median's interval and p95.

use prony_types::{Histogram, StageStats};

use super::axis::{self, Scale};
use super::svg::Svg;
use crate::figure;

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 236.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 38.0;

/// The drawing; `None` where there is nothing to draw.
pub(crate) fn histogram(histogram: &Histogram, total: &StageStats) -> Option<String> {
    let most = histogram.counts.iter().copied().max().filter(|&most| most > 0)?;
    let lo = histogram.lo_ms;
    let edge = |i: usize| lo + i as f64 * histogram.step_ms;
    let hi = edge(histogram.counts.len());
    if !(lo.is_finite() && hi.is_finite() && hi > lo) {
        return None;
    }
    let x = Scale::new([lo, hi], [LEFT, RIGHT]);
    let y = Scale::new([0.0, most as f64], [BOTTOM, TOP]);
    let mut svg = Svg::new(WIDTH, HEIGHT);

    let counts = y.ticks(4);
    for &tick in counts.iter().filter(|tick| tick.fract() == 0.0) {
        svg.line("grid", [LEFT, y.at(tick), RIGHT, y.at(tick)], "");
        svg.text("tick", [LEFT - 6.0, y.at(tick) + 4.0], "end", &axis::label(tick, &counts));
    }
    if let Some([from, to]) = total.ci95 {
        let (from_x, to_x) = (x.clamped(from), x.clamped(to));
        svg.rect("ci", [from_x, TOP, (to_x - from_x).max(1.5), BOTTOM - TOP], "");
    }
    let last = histogram.counts.len() - 1;
    for (i, &count) in histogram.counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
        let over = i == last && histogram.above > 0;
        let (left, right, top) = (x.at(edge(i)), x.at(edge(i + 1)), y.at(count as f64));
        let gap = if right - left > 4.0 { 1.0 } else { 0.0 };
        // A single sample among thousands is still there.
        let top = top.min(BOTTOM - 1.5);
        svg.rect(if over { "bar over" } else { "bar" }, [left, top, right - left - gap, BOTTOM - top], "");
    }
    svg.line("axis", [LEFT, BOTTOM, RIGHT, BOTTOM], "");
    let steps = x.ticks(8);
    for (i, &tick) in steps.iter().enumerate() {
        svg.line("axis", [x.at(tick), BOTTOM, x.at(tick), BOTTOM + 4.0], "");
        svg.text(every_other(i), [x.at(tick), BOTTOM + 17.0], "middle", &axis::label(tick, &steps));
    }
    svg.text("name", [RIGHT, HEIGHT - 5.0], "end", "total, ms");
    svg.text("name", [LEFT, HEIGHT - 5.0], "start", "samples by latency");

    mark(&mut svg, &x, "p50", total.p50, 13.0);
    if let Some(p95) = total.p95 {
        mark(&mut svg, &x, "p95", p95, 27.0);
    }
    for (i, &count) in histogram.counts.iter().enumerate() {
        let range = format!("{} – {} ms", figure::number(edge(i)), figure::number(edge(i + 1)));
        let samples = if count == 1 { "sample" } else { "samples" };
        let title = match histogram.above {
            above if i == last && above > 0 => {
                let max = figure::ms(total.max);
                format!(
                    "from {} up: {} {samples}, {above} of them beyond the axis, max {max}",
                    figure::ms(edge(i)),
                    count
                )
            }
            _ => format!("{range}: {} {samples}", figure::count(count)),
        };
        let (left, right) = (x.at(edge(i)), x.at(edge(i + 1)));
        svg.rect("hit", [left, TOP, right - left, BOTTOM - TOP], &title);
    }
    let p95 = total.p95.map_or_else(String::new, |p| format!(", p95 {}", figure::ms(p)));
    Some(svg.finish(&format!("Histogram of {} samples: median {}{p95}", figure::count(total.n), figure::ms(total.p50))))
}

/// Labels that a narrow screen can do without carry a class of their own.
pub(super) fn every_other(i: usize) -> &'static str {
    if i.is_multiple_of(2) { "tick" } else { "tick odd" }
}

fn mark(svg: &mut Svg, x: &Scale, name: &str, value: f64, label_y: f64) {
    let at = x.clamped(value);
    svg.line(&format!("mark {name}"), [at, label_y - 9.0, at, BOTTOM], "");
    let beyond = if value > x.hi() { " →" } else { "" };
    let text = format!("{name} {}{beyond}", figure::ms(value));
    // Beside the line, on whichever side has room.
    let (dx, anchor) = if at > (LEFT + RIGHT) * 0.7 { (-5.0, "end") } else { (5.0, "start") };
    svg.text(&format!("label {name}"), [at + dx, label_y], anchor, &text);
}
