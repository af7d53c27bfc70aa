//! A machine that does something else while a cell is timed, by counters that say so: no test depends on what this machine
//! does meanwhile.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;

use prony_types::{CellRecord, ExitCode, Phase, RunRecord, Stage, Verdict};
use support::{Place, QUICK, expect_code, prony, stdout};

const THERMAL: &str = "builtin-thermal:rten:fp32";

/// A run of one cell with a fault, its record and what was printed.
fn with_fault(place: &Place, fault: &str, args: &[&str]) -> (CellRecord, String) {
    let injection = format!(r#"{{"cell": "{THERMAL}", "fault": {fault}}}"#);
    let args = [&["builtin-thermal"], args].concat();
    let output = place.bench(&args).env("PRONY_TEST_FAULT", injection).output().unwrap();
    expect_code(&output, 0);
    (place.record().cells[0].clone(), stdout(&output))
}

/// A machine that gets hot meanwhile has a graver word for it.
fn is_disturbed(cell: &CellRecord) -> bool {
    matches!(cell.verdict, Some(Verdict::Unstable | Verdict::Throttled))
}

/// The field of the one row of the CSV.
fn csv(place: &Place, column: &str) -> String {
    let text = fs::read_to_string(place.run().join("latency_comparative_320.csv")).unwrap();
    let [head, row] = &text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    let at = head.split(',').position(|name| name == column).unwrap();
    // A device's name may hold a comma; what is looked for comes after it.
    row.rsplit(',').nth(head.split(',').count() - 1 - at).unwrap().to_owned()
}

#[test]
fn a_busy_machine_is_not_valid() {
    let place = Place::new();
    let (cell, printed) = with_fault(&place, r#"{"others-take": 49}"#, &QUICK);
    assert!(is_disturbed(&cell), "{:?}", cell.verdict_reasons);
    let said = "others took 49 % of the CPU time this cell asked for (run-queue wait";
    assert!(cell.verdict_reasons.iter().any(|reason| reason.starts_with(said)), "{:?}", cell.verdict_reasons);
    assert!(cell.load.unwrap().others_share.is_some_and(|share| (share - 0.49).abs() < 0.001), "{:?}", cell.load);
    let record = place.record();
    assert!(!record.recommendation[0].text.starts_with("Ship"), "{}", record.recommendation[0].text);
    assert!(printed.contains("others took 49 %") && !printed.contains("→ Ship"), "{printed}");
}

#[test]
fn a_quiet_machine_has_no_such_reason() {
    let place = Place::new();
    let (cell, _) = with_fault(&place, r#"{"others-take": 0}"#, &QUICK);
    assert!(!cell.verdict_reasons.iter().any(|reason| reason.contains("others took")), "{:?}", cell.verdict_reasons);
    assert_eq!(cell.load.unwrap().others_share, Some(0.0));
    assert!(!csv(&place, "fps_mean").is_empty());
}

#[test]
fn a_busy_machine_was_called_a_regression() {
    let (quiet, busy) = (Place::new(), Place::new());
    with_fault(&quiet, r#"{"others-take": 0}"#, &QUICK);
    with_fault(&busy, r#"{"others-take": 49}"#, &QUICK);
    let write = |place: &Place, record: &RunRecord| {
        fs::write(place.run().join("report.json"), serde_json::to_vec(record).unwrap()).unwrap();
    };
    let mut record = quiet.record();
    (record.cells[0].verdict, record.cells[0].verdict_reasons) = (Some(Verdict::Valid), Vec::new());
    write(&quiet, &record);
    // As the loaded machine really has it: twice as slow, and as steady as the quiet one.
    let slow = busy.record().cells[0].clone();
    let said = slow.verdict_reasons.into_iter().filter(|reason| reason.starts_with("others took")).collect();
    let cell = &mut record.cells[0];
    (cell.verdict, cell.verdict_reasons, cell.load) = (Some(Verdict::Unstable), said, slow.load);
    for stats in cell.latency_ms.values_mut() {
        (stats.p50, stats.ci95) = (stats.p50 * 2.0, stats.ci95.map(|ci| ci.map(|ms| ms * 2.0)));
    }
    cell.round_p50_ms.iter_mut().for_each(|ms| *ms *= 2.0);
    write(&busy, &record);
    let output = prony().arg("compare").arg(quiet.run()).arg(busy.run()).output().unwrap();
    expect_code(&output, i32::from(u8::from(ExitCode::Inconclusive)));
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("the run is unstable: others took 49 %"), "{said}");
}

#[test]
fn a_stall_within_a_round_is_named_and_no_rate_is_made_of_it() {
    // Without a warm-up calls are the same ones every time. A few before each round are not counted: if the first is one of
    // these, the second is not.
    let stalled = [150, 153].map(|call| {
        let place = Place::new();
        let fault = format!(r#"{{"stall-at": {call}}}"#);
        let (cell, _) = with_fault(&place, &fault, &["--samples", "200", "--warmup", "0", "--frames", "8"]);
        (place, cell)
    });
    let (place, cell) = stalled.into_iter().find(|(_, cell)| !cell.stalls.is_empty()).unwrap();
    let stall = &cell.stalls[0];
    assert!(stall.phase == Phase::Steady && stall.seconds >= 2.0, "{stall:?}");
    assert!(is_disturbed(&cell), "{:?}", cell.verdict_reasons);
    let said = format!("round {} stood still for ", stall.round);
    assert!(cell.verdict_reasons.iter().any(|reason| reason.starts_with(&said)), "{:?}", cell.verdict_reasons);
    let total = cell.latency_ms[&Stage::Total];
    assert!(total.n == 200 && total.max >= 2_000.0, "no sample is left out: {total:?}");
    assert_eq!(csv(&place, "fps_mean"), "");
    assert_ne!(csv(&place, "verdict"), "valid");
}

#[test]
fn the_counters_of_this_machine_are_in_the_record() {
    let place = Place::new();
    expect_code(&place.bench(&[&["builtin-thermal"], &QUICK[..]].concat()).output().unwrap(), 0);
    let load = place.record().cells[0].load.unwrap();
    assert!(load.counters.wall_s > 0.4 && load.counters.cpus > 0, "{load:?}");
    assert!(load.counters.cpu_s.unwrap() > 0.0, "{load:?}");
    if Path::new("/proc/self/schedstat").exists() {
        assert!(load.others_share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{load:?}");
    }
}

#[test]
fn an_interval_is_said_to_be_of_this_run_alone() {
    let place = Place::new();
    let (_, printed) =
        with_fault(&place, r#"{"others-take": 0}"#, &["--samples", "80", "--warmup", "0.1", "--frames", "8"]);
    assert!(printed.contains("within this run"), "{printed}");
    let record = place.record();
    assert!(record.method.intervals.contains("within this run"), "{}", record.method.intervals);
    assert_eq!(record.method.between_runs, None, "one run cannot say");
    for file in ["report.md", "report.html"] {
        let text = fs::read_to_string(place.run().join(file)).unwrap();
        assert!(text.contains("ci95") && text.contains("within this run"), "{file}");
    }
}
