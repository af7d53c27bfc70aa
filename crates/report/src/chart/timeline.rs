//! `total` over time. Rounds stand side by side; the pauses between them, in which other cells ran, are cut out.

use prony_types::TimelinePoint;

use super::axis::{self, Scale};
use super::svg::Svg;
use crate::figure;

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 236.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 38.0;
/// Room above the tops of nine slices in ten; what is higher still is cut and marked, so that one hiccup does not
/// press the rest flat.
const HEADROOM: f64 = 1.25;

/// The drawing; `None` where there is nothing to draw.
pub(crate) fn timeline(points: &[TimelinePoint]) -> Option<String> {
    let sound = |p: &&TimelinePoint| [p.t_s, p.p50_ms, p.min_ms, p.max_ms].iter().all(|v| v.is_finite());
    let points: Vec<TimelinePoint> = points.iter().filter(sound).copied().collect();
    let rounds: Vec<&[TimelinePoint]> = points.chunk_by(|a, b| a.round == b.round).collect();
    if rounds.is_empty() {
        return None;
    }
    let lo = points.iter().map(|p| p.min_ms).fold(f64::INFINITY, f64::min);
    let top_median = points.iter().map(|p| p.p50_ms).fold(0.0, f64::max);
    let highest = points.iter().map(|p| p.max_ms).fold(0.0, f64::max);
    let mut tops: Vec<f64> = points.iter().map(|p| p.max_ms).collect();
    tops.sort_by(f64::total_cmp);
    let usual = tops[(tops.len() - 1) * 9 / 10];
    let hi = highest.min(usual * HEADROOM).max(top_median);
    // A margin below and above, so that a quiet cell does not look like a wild one.
    let margin = ((hi - lo) * 0.08).max(top_median * 0.02);
    let y = Scale::new([(lo - margin).max(0.0), hi + margin], [BOTTOM, TOP]);
    let mut svg = Svg::new(WIDTH, HEIGHT);

    // Gaps never take more than a quarter of the room, however many rounds there are.
    let gap = (0.25 * (RIGHT - LEFT) / rounds.len() as f64).min(6.0);
    let room = RIGHT - LEFT - gap * (rounds.len() - 1) as f64;
    let slice = room / points.len() as f64;
    let mut left = LEFT;
    for round in &rounds {
        svg.rect("round", [left, TOP, slice * round.len() as f64, BOTTOM - TOP], "");
        left += slice * round.len() as f64 + gap;
    }
    let figures = y.ticks(5);
    for &tick in &figures {
        svg.line("grid", [LEFT, y.at(tick), RIGHT, y.at(tick)], "");
        svg.text("tick", [LEFT - 6.0, y.at(tick) + 4.0], "end", &axis::label(tick, &figures));
    }

    // Labels of many rounds would run into each other.
    let every = rounds.len().div_ceil(8);
    let mut left = LEFT;
    let mut hits = Vec::new();
    for (i, round) in rounds.iter().enumerate() {
        let width = slice * round.len() as f64;
        draw_round(&mut svg, &y, round, left, slice, &mut hits);
        if i % every == 0 {
            let name = if rounds.len() <= 4 { format!("round {}", round[0].round) } else { round[0].round.to_string() };
            svg.text("tick", [left + width / 2.0, TOP - 8.0], "middle", &name);
            svg.line("axis", [left, BOTTOM, left, BOTTOM + 4.0], "");
            let class = super::histogram::every_other(i / every);
            svg.text(class, [left, BOTTOM + 17.0], if i == 0 { "start" } else { "middle" }, &start(round));
        }
        left += width + gap;
    }
    svg.line("axis", [LEFT, BOTTOM, RIGHT, BOTTOM], "");
    if rounds.len() > 4 {
        svg.text("tick", [LEFT - 6.0, TOP - 8.0], "end", "round");
    }
    svg.text("name", [LEFT, HEIGHT - 5.0], "start", "total in ms: median, lowest to highest");
    svg.text("name", [RIGHT, HEIGHT - 5.0], "end", "start of round, s");
    for (area, title) in hits {
        svg.rect("hit", area, &title);
    }
    let label = format!("Latency over {} rounds, from {} to {}", rounds.len(), figure::ms(lo), figure::ms(highest));
    Some(svg.finish(&label))
}

type Hit = ([f64; 4], String);

fn draw_round(svg: &mut Svg, y: &Scale, round: &[TimelinePoint], left: f64, slice: f64, hits: &mut Vec<Hit>) {
    let middle = |i: usize| left + (i as f64 + 0.5) * slice;
    let right = left + slice * round.len() as f64;
    // The first and last slice reach to the round's borders; a round of one slice is a bar.
    let spans = |value: &dyn Fn(&TimelinePoint) -> f64| -> Vec<[f64; 2]> {
        let inner = round.iter().enumerate().map(|(i, p)| [middle(i), y.clamped(value(p))]);
        let first = round.first().map(|p| [left, y.clamped(value(p))]);
        let last = round.last().map(|p| [right, y.clamped(value(p))]);
        first.into_iter().chain(inner).chain(last).collect()
    };
    let mut band = spans(&|p| p.max_ms);
    band.extend(spans(&|p| p.min_ms).into_iter().rev());
    svg.path("band", &band, true, "");
    svg.path("median", &spans(&|p| p.p50_ms), false, "");
    for (i, p) in round.iter().enumerate() {
        let cut = p.max_ms > y.hi();
        if cut {
            let x = middle(i);
            svg.path("cut", &[[x - 4.0, TOP + 6.0], [x, TOP], [x + 4.0, TOP + 6.0]], true, "");
        }
        let title = format!(
            "round {}, {}: median {}, {} – {}{}",
            p.round,
            figure::seconds(p.t_s),
            figure::ms(p.p50_ms),
            figure::number(p.min_ms),
            figure::ms(p.max_ms),
            if cut { " (above the axis)" } else { "" }
        );
        hits.push(([left + i as f64 * slice, TOP, slice, BOTTOM - TOP], title));
    }
}

/// When a round began: half a slice before the middle of its first one.
fn start(round: &[TimelinePoint]) -> String {
    let half = if let [a, b, ..] = round { (b.t_s - a.t_s) / 2.0 } else { 0.0 };
    let t_s = round.first().map_or(0.0, |p| (p.t_s - half).max(0.0));
    if t_s < 100.0 { format!("{t_s:.1}") } else { format!("{t_s:.0}") }
}
