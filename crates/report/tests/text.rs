//! Markdown, CSV and the terminal, as a reader sees them.
#![expect(clippy::unwrap_used, reason = "tests")]

mod fixture;

use prony_report::{csv, html, imgsz_groups, markdown, rooflines, terminal};
use prony_types::{
    Bound, CellStatus, Comparison, Difference, PeakOrigin, PeakRecord, Precision, RooflineRecord, TensorAgreement,
};

#[test]
fn markdown_of_two_cells() {
    insta::assert_snapshot!(markdown(&fixture::two_cells()));
}

#[test]
fn markdown_of_twelve_cells() {
    insta::assert_snapshot!(markdown(&fixture::twelve_cells()));
}

#[test]
fn markdown_of_hostile_names() {
    insta::assert_snapshot!(markdown(&fixture::hostile()));
}

#[test]
fn every_table_row_of_markdown_has_the_cells_of_its_head() {
    let unscored = [fixture::two_cells(), fixture::twelve_cells(), fixture::nothing_completed(), fixture::hostile()];
    let scored = [fixture::scored(), fixture::accuracy_alone(), fixture::hostile_scored()];
    for record in unscored.into_iter().chain(scored) {
        let text = markdown(&record);
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut head = None;
        for line in text.lines() {
            if line.starts_with('|') {
                assert_eq!(*head.get_or_insert(cells(line)), cells(line), "{line}");
            } else {
                head = None;
            }
        }
        for cell in &record.cells {
            assert!(text.matches("\n### ").count() == record.cells.len(), "a section a cell, {}", cell.id);
        }
    }
}

#[test]
fn csv_of_twelve_cells() {
    insta::assert_snapshot!(csv(&fixture::twelve_cells(), "320"));
}

#[test]
fn csv_quotes_and_leaves_absent_figures_empty() {
    let text = csv(&fixture::hostile(), "320");
    assert!(text.contains("\"CPU \"\"fast\"\", 2 threads\",320,rten,fp32,"), "{text}");
    let text = csv(&fixture::nothing_completed(), "320");
    let row = text.lines().nth(1).unwrap();
    assert!(row.starts_with(",320,rten,fp32,,,,,,,,,failed,broken,,,,,1,,,,,,"), "{row}");
}

#[test]
fn an_interrupted_cell_is_never_called_valid_but_keeps_its_figures() {
    let mut record = fixture::two_cells();
    record.cells[0].status = CellStatus::Interrupted;
    let p50 = record.cells[0].latency_ms[&prony_types::Stage::Total].p50;
    let rows = csv(&record, "320");
    let row = rows.lines().nth(1).unwrap();
    assert!(row.contains(",interrupted,builtin-rgb,,,,,") && row.contains(&format!(",{p50:.4},")), "{row}");
    for text in [rows.clone(), markdown(&record), terminal(&record, 120, false)] {
        assert!(!text.contains("valid"), "{text}");
        assert!(text.contains("interrupted") && text.contains(&format!("{p50:.2}")), "{text}");
    }
    // An objection to what was measured is still told, beside the status.
    record.cells[1].status = CellStatus::Interrupted;
    assert!(csv(&record, "320").lines().nth(2).unwrap().contains(",interrupted,builtin-thermal,,,,,"));
    assert!(markdown(&record).contains("Status **interrupted**, verdict **unstable**."));
    let text = terminal(&record, 120, false);
    assert!(text.contains("builtin-thermal:rten:fp32 unstable: round medians"), "{text}");
}

#[test]
fn a_model_without_a_head_has_outputs_and_no_boxes() {
    let mut record = fixture::two_cells();
    for cell in &mut record.cells {
        let agreement = cell.agreement.as_mut().unwrap();
        (agreement.scores, agreement.matched_boxes) = (None, None);
    }
    let text = markdown(&record);
    assert!(text.contains("\n- outputs: equal to the bit") && !text.contains("\n- boxes: "), "{text}");
}

#[test]
fn tensors_that_cannot_be_compared_have_no_endless_digits() {
    let mut record = fixture::two_cells();
    let agreement = record.cells[0].agreement.as_mut().unwrap();
    agreement.boxes = Some(TensorAgreement { cosine: 0.0, max_abs: f64::MAX, sqnr_db: Some(-f64::MAX) });
    agreement.scores = Some(TensorAgreement { cosine: 0.0, max_abs: 0.5, sqnr_db: Some(-f64::MAX) });
    let text = markdown(&record);
    assert!(text.contains("\n- boxes: not comparable\n"), "{text}");
    assert!(text.contains("\n- scores: SQNR not comparable, max abs 0.500, cosine 0.000000\n"), "{text}");
}

#[test]
fn the_plan_wishes_for_frames_and_the_cell_says_how_many_there_were() {
    let mut record = fixture::two_cells();
    record.cells[0].input.as_mut().unwrap().frames = 1;
    let text = markdown(&record);
    assert!(text.contains(", at most 32 frames\n") && text.contains("\n- frames: 1 distinct\n"), "{text}");
}

#[test]
fn csv_has_its_columns_in_order() {
    let text = csv(&fixture::two_cells(), "320");
    let head = "device,imgsz,backend,precision,mean_ms,p50_ms,p95_ms,fps_mean,speedup,\
                temp_c_min,temp_c_avg,temp_c_max,verdict,model,\
                map_50_95,map_50,map_50_95_ci95_lo,map_50_95_ci95_hi,\
                batch,throughput_fps,p99_ms,host_peak_mib,device_after_warmup_mib,\
                precision_executed,cell,speedup_base,difference";
    assert_eq!(text.lines().next(), Some(head));
    assert_eq!(text.lines().count(), 3);
}

/// A column of the CSV, without its head.
fn column(text: &str, name: &str) -> Vec<String> {
    // From the end: only the first field has commas of its own.
    let index = text.lines().next().unwrap().rsplit(',').position(|head| head == name).unwrap();
    text.lines().skip(1).map(|line| line.rsplit(',').nth(index).unwrap().to_owned()).collect()
}

#[test]
fn csv_speedup_and_the_difference_in_the_table_have_one_base() {
    let cells = vec![
        fixture::cell("m", Precision::Fp32, 8.0, 7),
        fixture::cell("m", Precision::Int8, 4.0, 7),
        fixture::cell("m", Precision::Fp16, 5.0, 7),
        fixture::cell("alone", Precision::Fp32, 5.0, 7),
    ];
    let ids: Vec<String> = cells.iter().map(|cell| cell.id.clone()).collect();
    let mut record = fixture::record(cells);
    let against_int8 = |cell: usize, ratio, difference| Comparison {
        cell: ids[cell].clone(),
        against: ids[1].clone(),
        ratio,
        ci95: None,
        paired_rounds: None,
        difference,
        reason: String::new(),
    };
    record.comparisons =
        vec![against_int8(0, Some(2.0), Difference::Slower), against_int8(2, None, Difference::NotComparable)];
    let text = csv(&record, "320");
    assert_eq!(column(&text, "speedup"), ["0.500", "1.000", "", ""]);
    assert_eq!(column(&text, "speedup_base"), [ids[1].as_str(), &ids[1], "", ""]);
    assert_eq!(column(&text, "difference"), ["slower", "", "not-comparable", ""]);
    assert!(terminal(&record, 200, false).contains("slower 2.00×"));
}

#[test]
fn csv_tells_one_batch_from_another() {
    let [mut one, mut two] = [1, 2].map(|batch| {
        let mut cell = fixture::cell("m", Precision::Fp32, 8.0, 7);
        (cell.batch, cell.throughput_fps) = (batch, Some(100.0 * f64::from(batch)));
        cell
    });
    one.id = "m:rten:fp32-1".into();
    two.id = "m:rten:fp32-2".into();
    (two.memory.host_peak_mib, two.memory.device_peak_mib) = (Some(64.0), Some(412.25));
    two.precision.executed = Some("fp32 (3 of 3 layers)".into());
    let mut record = fixture::record(vec![one, two]);
    record.plan.cells.iter_mut().zip(["m:rten:fp32-1", "m:rten:fp32-2"]).for_each(|(spec, id)| spec.id = id.into());
    let text = csv(&record, "320");
    assert_eq!(column(&text, "batch"), ["1", "2"]);
    assert_eq!(column(&text, "throughput_fps"), ["100.00", "200.00"]);
    assert_eq!(column(&text, "device_after_warmup_mib")[1], "412.2");
    assert_eq!(column(&text, "host_peak_mib")[1], "64.0");
    assert_eq!(column(&text, "precision_executed")[1], "fp32 (3 of 3 layers)");
    assert_eq!(column(&text, "cell"), ["m:rten:fp32-1", "m:rten:fp32-2"]);
}

#[test]
fn device_memory_is_one_reading_and_never_called_a_peak() {
    let mut record = fixture::two_cells();
    record.cells[0].memory.device_peak_mib = Some(412.0);
    let page = html(&record, &[]).unwrap();
    for text in [terminal(&record, 200, false), markdown(&record), page.replace('\u{a0}', " ")] {
        assert!(text.contains("after warm-up") && !text.contains("device peak"), "{text}");
    }
    assert!(terminal(&record, 200, false).contains("memory: host peak + device after warm-up\n"));
    record.cells.iter_mut().for_each(|cell| cell.memory.device_peak_mib = None);
    assert!(!terminal(&record, 200, false).contains("after warm-up"), "there is none to be named");
}

#[test]
fn a_ratio_does_not_leave_its_interval_by_rounding() {
    let mut record = fixture::two_cells();
    let [cell, against] = [0, 1].map(|i| record.cells[i].id.clone());
    let (ratio, ci95) = (Some(0.7113), Some([0.7111, 0.766]));
    let comparison = Comparison {
        cell,
        against,
        ratio,
        ci95,
        paired_rounds: Some(12),
        difference: Difference::Faster,
        reason: String::new(),
    };
    record.narrowings = vec![comparison];
    let page = html(&record, &[]).unwrap();
    for text in [terminal(&record, 200, false), markdown(&record), page] {
        assert!(text.contains("0.711×") && text.contains("0.711 – 0.766"), "{text}");
        assert!(!text.contains("0.71×"), "{text}");
    }
}

#[test]
fn csv_rate_counts_the_frames_of_a_batch() {
    let mut cell = fixture::cell("m", Precision::Fp32, 8.0, 7);
    cell.batch = 4;
    let mean = cell.latency_ms[&prony_types::Stage::Total].mean;
    let text = csv(&fixture::record(vec![cell]), "320");
    assert!(text.contains(&format!(",{:.2},", 4000.0 / mean)), "{text}");
}

#[test]
fn input_sizes_are_grouped_in_order() {
    let mut record = fixture::two_cells();
    assert_eq!(imgsz_groups(&record), ["320"]);
    record.plan.cells[0].imgsz = Some([480, 640]);
    record.plan.cells[1].imgsz = None;
    assert_eq!(imgsz_groups(&record), ["480x640", "none"]);
    assert_eq!(csv(&record, "none").lines().count(), 2);
    assert!(csv(&record, "none").contains("builtin-thermal"));
    assert_eq!(csv(&record, "320").lines().count(), 1);
}

#[test]
fn terminal_of_two_cells() {
    insta::assert_snapshot!(terminal(&fixture::two_cells(), 80, false));
}

#[test]
fn terminal_of_twelve_cells() {
    insta::assert_snapshot!(terminal(&fixture::twelve_cells(), 120, false));
}

#[test]
fn terminal_in_colour() {
    let text = terminal(&fixture::two_cells(), 80, true);
    insta::assert_snapshot!(text.replace('\u{1b}', "␛"));
    let mut plain = text;
    for code in ["0", "1", "2", "31", "32", "33"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    let trimmed = |text: &str| text.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&plain), trimmed(&terminal(&fixture::two_cells(), 80, false)));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut long_names = fixture::twelve_cells();
    for (i, cell) in long_names.cells.iter_mut().enumerate() {
        cell.id = format!("{}-{i}:rten:fp32", "a-very-long-model-name".repeat(6));
    }
    let records =
        [fixture::two_cells(), fixture::twelve_cells(), fixture::nothing_completed(), fixture::hostile(), long_names];
    let scored = [fixture::scored(), fixture::accuracy_alone(), fixture::hostile_scored()];
    for record in records.iter().chain(&scored) {
        for width in [40, 60, 80, 100, 120, 200] {
            let text = terminal(record, width, false);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}

#[test]
fn the_terminal_tells_every_reason() {
    let text = terminal(&fixture::twelve_cells(), 100, false);
    for word in
        ["throttled:\n  - an example of throttled\n  - and a second", "failed: killed by SIGKILL", "skipped: rten"]
    {
        assert!(text.contains(word), "{word}\n{text}");
    }
    assert!(text.contains("pending: not run yet"), "{text}");
    assert!(terminal(&fixture::nothing_completed(), 80, false).contains("No recommendation"));
}

#[test]
fn a_run_without_cells_is_still_a_report() {
    let record = fixture::record(vec![]);
    assert!(markdown(&record).contains("None: no cell completed."));
    assert!(terminal(&record, 80, false).contains("No recommendation"));
    assert!(imgsz_groups(&record).is_empty());
}

#[test]
fn terminal_with_scores() {
    insta::assert_snapshot!(terminal(&fixture::scored(), 120, false));
}

#[test]
fn terminal_of_scores_alone() {
    insta::assert_snapshot!(terminal(&fixture::accuracy_alone(), 110, false));
}

#[test]
fn markdown_of_scores_alone() {
    insta::assert_snapshot!(markdown(&fixture::accuracy_alone()));
}

#[test]
fn a_score_stands_with_its_interval_and_its_absence_with_a_reason() {
    let mut record = fixture::scored();
    let text = terminal(&record, 160, false);
    assert!(text.contains("0.912 ±0.008"), "{text}");
    let headless = text.lines().find(|line| line.starts_with("features:rten:fp32")).unwrap();
    assert!(headless.contains("–") && !headless.contains("0.000"), "{headless}");
    assert!(text.contains("features:rten:fp32 not scored: the model has no head"), "{text}");
    // Too few images for an interval: the figure stands alone.
    for cell in &mut record.cells {
        cell.accuracy.iter_mut().for_each(|accuracy| accuracy.ci95 = None);
    }
    assert!(!terminal(&record, 160, false).contains("±0.0"), "no interval is no interval of zero");
    assert!(terminal(&record, 160, false).contains("0.912"));
}

#[test]
fn a_comparison_names_model_difference_and_word() {
    let text = terminal(&fixture::scored(), 120, false);
    let line = "\nbuiltin-rgb int8 - fp32: -0.8 ± 0.3 points of mAP50-95: worse\n";
    assert!(text.contains(line), "{text}");
    let text = markdown(&fixture::scored());
    let line =
        "- builtin-rgb:rten:int8 is **worse** against builtin-rgb:rten:fp32, ci95 -1.10 to -0.50 points: int8 - fp32";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("- builtin-rgb:rten:fp16 is **same** against"), "{text}");
}

#[test]
fn data_that_could_not_be_used_is_counted_and_named() {
    let text = terminal(&fixture::scored(), 120, false);
    assert_eq!(text.matches("scored on coco: instances_yard.json").count(), 1, "once for four cells\n{text}");
    assert!(text.contains("497 of 500 images, 11 problems:\n  - 000017.jpg: broken"), "{text}");
    assert!(text.contains("  - and 8 more\n"), "{text}");
    let text = markdown(&fixture::scored());
    assert!(text.contains("\n  - annotation 8812: a box of NaN\n  - and 7 more\n"), "{text}");
    assert!(text.contains("- boxes kept: conf 0.001, IoU 0.7, at most 300 an image, several classes a box"), "{text}");
}

#[test]
fn without_latency_there_are_no_columns_for_it() {
    let text = terminal(&fixture::accuracy_alone(), 120, false);
    let head = text.lines().next().unwrap();
    for gone in ["p50", "ci95", "p95", "throughput"] {
        assert!(!head.contains(gone), "{head}");
    }
    let heads = ["cell", "mAP50-95", "mAP50", "mAP75", "medium", "large", "images", "detections", "verdict"];
    assert_eq!(head.split_whitespace().collect::<Vec<_>>(), heads);
    assert!(text.contains("No recommendation: nothing was timed."), "{text}");
    let text = markdown(&fixture::accuracy_alone());
    assert!(text.contains("\n| model | backend | precision | mAP50-95 | memory | verdict |\n"), "{text}");
}

#[test]
fn what_does_not_agree_with_itself_is_told_once() {
    let mut record = fixture::scored();
    let line = "builtin-rgb:rten:fp8 not consistent: a fresh session: scores differ by up to 0.41";
    assert!(terminal(&record, 120, false).contains(line));
    assert!(!terminal(&record, 120, false).contains(" holds: "), "what holds is in the reports");
    let text = markdown(&record);
    assert!(text.contains("- does not hold: a fresh session: scores differ by up to 0.41\n"), "{text}");
    assert!(text.contains("- not tried: batch 1 against 4: the model has a fixed batch of 1\n"), "{text}");
    record.cells[3].verdict_reasons = vec!["a fresh session: scores differ by up to 0.41".into()];
    assert_eq!(terminal(&record, 120, false).matches("up to 0.41").count(), 1);
}

#[test]
fn markdown_holds_the_twelve_figures_the_classes_and_the_curves() {
    let text = markdown(&fixture::scored());
    let row = text.lines().find(|line| line.starts_with("| builtin-rgb:rten:fp32 | 0.912 | 0.905 – 0.921 |")).unwrap();
    assert_eq!(row.matches(" | ").count(), 15, "{row}");
    assert!(text.contains("\n| dog | 0 | 2500 | – | – |\n"), "a class without objects has no score");
    assert!(text.contains("\n| 0.75 | 1.000 | "), "{text}");
}

#[test]
fn csv_appends_scores_and_leaves_absent_ones_empty() {
    let text = csv(&fixture::scored(), "320");
    assert!(text.lines().nth(1).unwrap().contains(",valid,builtin-rgb,0.912000,0.966720,0.905000,0.921000,"), "{text}");
    assert!(text.lines().nth(5).unwrap().contains(",valid,features,,,,,"), "{text}");
}

#[test]
fn predicted_stands_beside_measured_wherever_a_cell_is_told() {
    let mut record = fixture::two_cells();
    record.environment.peaks = vec![PeakRecord {
        device: "cpu".into(),
        precision: Precision::Fp32,
        flops_per_s: 1.5e11,
        bytes_per_s: Some(2.5e10),
        cache_bytes: Some(2 << 20),
        threads: Some(4),
        origin: PeakOrigin::Measured,
        how: "NEON, 4 threads".into(),
    }];
    record.cells[0].roofline = Some(RooflineRecord {
        flops: 400_000_000,
        bytes: 20_000_000,
        predicted_ms: 2.1,
        bound: Bound::Compute,
        device: "cpu".into(),
        measured_ms: Some(5.9),
    });
    record.cells[1].roofline_absent = Some("the cost of 1 node is not known, Magic among them".into());
    let details = rooflines(&record, 200, false);
    let floor = "predicted 2.10 ms (compute), measured 5.90 ms: 36 % of the peak";
    for text in [&details, &markdown(&record), &html(&record, &[]).unwrap().replace("&#x2f;", "/")] {
        for fact in [floor, "the cost of 1 node is not known", "150 GFLOP/s, 25.0 GB/s, measured (NEON, 4 threads)"] {
            assert!(text.contains(fact), "{fact}: {text}");
        }
    }
    assert_eq!(details.lines().count(), 3, "{details}");
    assert_eq!(rooflines(&fixture::two_cells(), 80, false), "");
}
