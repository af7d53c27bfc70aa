//! The page: complete, self-contained, and deaf to what names try to say.

mod fixture;

use prony_report::{Picture, html};
use prony_types::{CellStatus, Histogram, Precision, RunRecord, Stage};

fn page(record: &RunRecord) -> String {
    html(record, &[]).expect("the page renders")
}

fn all() -> [RunRecord; 8] {
    [
        fixture::two_cells(),
        fixture::twelve_cells(),
        fixture::nothing_completed(),
        fixture::hostile(),
        fixture::record(vec![]),
        fixture::scored(),
        fixture::accuracy_alone(),
        fixture::hostile_scored(),
    ]
}

/// Names of the tags of a page in order, without the contents of style and script.
fn tags(page: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag is closed");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let name: String = tag.chars().take_while(|c| !c.is_whitespace()).collect();
        if name == "style" || name == "script" {
            let close = format!("</{name}>");
            rest = &rest[rest.find(&close).expect("style and script are closed")..];
        }
        out.push(if tag.ends_with('/') { format!("{}/", name.trim_end_matches('/')) } else { name });
    }
    out
}

#[test]
fn tags_are_balanced() {
    for record in &all() {
        let mut open: Vec<String> = Vec::new();
        for tag in tags(&page(record)) {
            let void = ["!doctype", "meta", "link", "img"].contains(&tag.as_str()) || tag.ends_with('/');
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
                None if void => {}
                None => open.push(tag),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn nothing_is_fetched() {
    for record in &all() {
        let page = page(record).to_lowercase();
        for bad in ["http://", "https://", "url(", "@import", "src=\"/", "<iframe", "<object"] {
            assert!(!page.contains(bad), "{bad}");
        }
        let sources = page.match_indices(" src=\"").map(|(i, m)| &page[i + m.len()..]);
        assert!(sources.into_iter().all(|s| s.starts_with("data:image/png;base64,")));
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn a_hostile_name_stays_text() {
    for record in [fixture::hostile(), fixture::hostile_scored()] {
        let page = page(&record);
        assert_eq!(tags(&page).iter().filter(|tag| *tag == "script").count(), 1, "only the page's own script");
        assert!(!page.contains("alert(1)</script>") && !page.contains("<img src=x") && !page.contains("<svg onload"));
        assert!(page.contains("&lt;script&gt;alert(1)"));
        assert!(page.contains("{{ 7*7 }}"), "a name is no template");
    }
}

#[test]
fn every_cell_has_its_section_and_reason() {
    for record in &all() {
        let page = page(record);
        assert_eq!(page.matches("<section class=\"cell\"").count(), record.cells.len());
        let escape = |raw: &str| {
            let raw =
                prony_types::text::printable_lines(raw).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            raw.replace('"', "&quot;").replace('\'', "&#x27;").replace('/', "&#x2f;")
        };
        let page = page.replace("<code>", "`").replace("</code>", "`").replace('/', "&#x2f;");
        for cell in &record.cells {
            assert!(page.contains(&escape(&cell.id)), "{}", cell.id);
            for reason in cell.reason.iter().chain(&cell.verdict_reasons) {
                assert!(page.contains(&escape(reason)), "{reason}");
            }
        }
    }
}

#[test]
fn an_interrupted_cell_has_no_badge_of_validity() {
    let mut record = fixture::two_cells();
    for cell in &mut record.cells {
        cell.status = CellStatus::Interrupted;
    }
    let page = page(&record);
    let badges = |word: &str| page.matches(&format!("</span>{word}</span>")).count();
    // Each in the table and in its section; the objection to the second only in the section.
    assert_eq!((badges("interrupted"), badges("valid"), badges("unstable")), (4, 0, 1));
    assert!(page.contains("p50 6.45\u{a0}ms"), "its figures stay");
}

#[test]
fn a_measured_cell_has_its_charts_and_others_have_none() {
    let charts = |record: &RunRecord| page(record).matches("<figure class=\"chart\">").count();
    assert_eq!(charts(&fixture::two_cells()), 6);
    assert_eq!(charts(&fixture::twelve_cells()), 24);
    assert_eq!(charts(&fixture::nothing_completed()), 0);
    let page = page(&fixture::two_cells());
    assert!(page.contains("p50 6.45\u{a0}ms") && page.contains("p95 6.62\u{a0}ms"), "marks of the histogram");
    assert!(page.contains("round 3, "), "rounds of the time line");
    assert!(page.contains("between stages: "), "the remainder of the waterfall");
    assert!(!page.contains(">h2d<"), "an absent stage is not drawn");
    assert!(page.contains("31.70\u{a0}ms (above the axis)"), "a slice that is cut says so");
}

#[test]
fn figures_that_cannot_be_drawn_do_no_harm() {
    let mut cell = fixture::cell("odd", Precision::Fp32, 6.0, 3);
    let bad = Histogram { lo_ms: f64::NAN, step_ms: 0.0, counts: vec![3, 4], above: 0 };
    cell.histogram = Some(bad);
    for point in &mut cell.timeline {
        point.max_ms = f64::INFINITY;
    }
    let page = page(&fixture::record(vec![cell.clone()]));
    assert_eq!(page.matches("<figure class=\"chart\">").count(), 1);
    assert!(!page.contains("NaN") && !page.contains("inf\""), "no such coordinate");

    // All samples in one step, one slice, and a total without parts.
    cell.histogram = Some(Histogram { lo_ms: 6.0, step_ms: 0.1, counts: vec![1440], above: 0 });
    cell.timeline = fixture::cell("odd", Precision::Fp32, 6.0, 3).timeline[..1].to_vec();
    cell.latency_ms.retain(|stage, _| *stage == Stage::Total);
    let page = self::page(&fixture::record(vec![cell]));
    assert_eq!(page.matches("<figure class=\"chart\">").count(), 2);
    assert!(!page.contains("NaN"));
}

#[test]
fn an_absent_figure_is_not_a_zero() {
    let mut record = fixture::two_cells();
    record.cells[0].throughput_fps = None;
    record.cells[0].latency_ms.get_mut(&Stage::Total).unwrap().p99 = None;
    let page = page(&record);
    assert!(page.contains("data-label=\"throughput\" class=\"num\">–</td>"));
    assert!(page.contains("data-label=\"p99\" class=\"num\">–</td>"));
}

#[test]
fn pictures_go_to_their_cell() {
    let record = fixture::two_cells();
    let picture = |cell: &str, caption: &str| Picture {
        cell: cell.into(),
        file: "frame-000.png".into(),
        caption: caption.into(),
        bytes: b"\x89PNG".to_vec(),
    };
    let pictures = [picture("builtin-thermal:rten:fp32", "warm <b>"), picture("nosuch", "lost")];
    let page = html(&record, &pictures).unwrap();
    assert_eq!(page.matches("<img ").count(), 1);
    assert!(page.contains("data:image/png;base64,iVBORw==\" alt=\"warm &lt;b&gt;\""));
    assert!(page.contains("1 of its pictures are in cells&#x2f;builtin-rgb_rten_fp32 only."));
    let thermal = page.find("id=\"cell-2\"").unwrap();
    assert!(page.find("<img ").unwrap() > thermal);
}

#[test]
fn headings_do_not_skip_a_level() {
    for record in &all() {
        let levels = tags(&page(record)).into_iter().filter_map(|tag| match tag.as_bytes() {
            [b'h', n @ b'1'..=b'6'] => Some(n - b'0'),
            _ => None,
        });
        let mut last = 0;
        for level in levels {
            assert!(level <= last + 1, "h{level} after h{last}");
            last = level;
        }
    }
}

#[test]
fn scores_have_their_section_their_curves_and_their_classes() {
    let page = page(&fixture::scored());
    assert_eq!(page.matches("<h2 id=\"accuracy\">").count(), 1);
    assert!(page.contains("class=\"num first\">0.912<small>0.905 – 0.921</small>"), "a figure with its interval");
    // A line a cell and overlap, one chart for the model; the cell without a score has none.
    assert_eq!(page.matches("<figure class=\"chart curves\">").count(), 1);
    assert_eq!(page.matches("<path class=\"curve ").count(), 8);
    assert_eq!(page.matches(" dashed\"").count(), 4);
    assert_eq!(page.matches("<li class=\"c").count(), 4, "the legend");
    assert!(page.contains("aria-label=\"Precision over recall: builtin-rgb:rten:fp32, IoU 0.75: precision "));
    assert!(page.contains("<th scope=\"row\">dog</th><td class=\"num\">0</td><td class=\"num\">–<small>2500 boxes"));
    assert!(page.contains("<b>features:rten:fp32</b>: the model has no head"), "why it was not scored");
    assert!(page.contains("</span>worse</span></td><td>builtin-rgb:rten:fp32</td><td class=\"num\">-0.80</td>"));
    assert!(page.contains("<li>and 7 more</li>"), "problems of the data are counted");
}

#[test]
fn a_check_that_does_not_hold_is_seen_without_unfolding() {
    let page = page(&fixture::scored());
    assert!(page.contains("Of 12 checks, 7 hold, 1 do not, 4 were not tried."));
    let section = &page[page.find("id=\"consistency\"").unwrap()..];
    let shown = &section[..section.find("<details>").unwrap()];
    assert!(shown.contains("does not hold") && shown.contains("up to 0.41"), "{shown}");
    assert!(!shown.contains("not tried</span>"), "{shown}");
    assert!(section.contains("the model has a fixed batch of 1"));
}

#[test]
fn scores_alone_make_no_empty_columns_and_no_claim_about_latency() {
    let page = page(&fixture::accuracy_alone());
    assert!(!page.contains(">p50 total</th>") && !page.contains(">0 to p95</th>"));
    assert!(page.contains("data-label=\"mAP50-95\" class=\"num\" data-value=\"0.912\">0.912<small>"));
    assert!(!page.contains("Steady state, one frame in flight"));
    assert!(page.contains("Nothing was timed, so there is nothing to recommend."));
}

#[test]
fn a_run_without_data_says_nothing_of_accuracy() {
    let page = page(&fixture::two_cells());
    assert!(!page.contains("id=\"accuracy\"") && !page.contains("id=\"consistency\"") && !page.contains("mAP50"));
}

#[test]
fn more_cells_than_colours_get_a_second_chart() {
    let cells = (0..9).map(|i| {
        let mut cell = fixture::cell("m", Precision::Fp32, 6.0, 3);
        cell.id = format!("m:rten:fp32-{i}");
        cell.accuracy = Some(fixture::accuracy(0.9));
        cell
    });
    let page = page(&fixture::record(cells.collect()));
    assert_eq!(page.matches("<figure class=\"chart curves\">").count(), 2);
    assert_eq!(page.matches("<path class=\"curve c1\"").count(), 2, "colours begin anew");
    assert!(page.contains("curve c8\"") && !page.contains("curve c9"));
}
