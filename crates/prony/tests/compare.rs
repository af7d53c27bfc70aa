//! Limits that a run is held to, and `prony compare`.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use prony_types::{CellRecord, CellStatus, ExitCode, RowOutcome, RunComparison, RunRecord, Stage, Verdict};
use support::{Place, SHORT, expect_code, prony, stderr, stdout};

/// A real record of both built-in models whose figures are replaced by ones that no clock decides.
fn measured(place: &Place) -> RunRecord {
    expect_code(&place.bench(&[&SHORT[..], &["-q"]].concat()).output().unwrap(), 0);
    let mut record = place.record();
    for cell in &mut record.cells {
        slow_down(cell, 1.0);
        (cell.verdict, cell.memory.host_peak_mib) = (Some(Verdict::Valid), Some(100.0));
        // Nor what else the machine did meanwhile.
        (cell.verdict_reasons, cell.load, cell.stalls) = (Vec::new(), None, Vec::new());
    }
    record
}

/// A median of so many times 10 ms, with a narrow interval and calm rounds.
fn slow_down(cell: &mut CellRecord, times: f64) {
    let p50 = 10.0 * times;
    let total = cell.latency_ms.get_mut(&Stage::Total).unwrap();
    (total.p50, total.ci95) = (p50, Some([p50 * 0.995, p50 * 1.005]));
    cell.round_p50_ms = [0.99, 1.0, 1.01, 1.0, 0.995, 1.005].map(|x| x * p50).to_vec();
}

fn write(place: &Place, name: &str, record: &RunRecord) -> PathBuf {
    let path = place.path(name);
    fs::write(&path, serde_json::to_vec(record).unwrap()).unwrap();
    path
}

fn compared(place: &Place, a: &RunRecord, b: &RunRecord, args: &[&str]) -> Output {
    let (a, b) = (write(place, "a.json", a), write(place, "b.json", b));
    prony().arg("compare").arg(a).arg(b).args(args).output().unwrap()
}

#[test]
fn a_run_that_is_a_tenth_slower_in_one_cell_is_exit_3_and_names_it() {
    let place = Place::new();
    let a = measured(&place);
    let mut b = a.clone();
    let same = compared(&place, &a, &b, &[]);
    expect_code(&same, 0);
    assert!(stdout(&same).contains("no regression"), "{}", stdout(&same));

    slow_down(&mut b.cells[1], 1.1);
    let slower = compared(&place, &a, &b, &[]);
    expect_code(&slower, 3);
    let text = stdout(&slower);
    assert!(text.contains(&format!("\nregression in {}\n", b.cells[1].id)), "{text}");
    assert!(text.contains("fail  slower") && text.contains("slower 1.100×"), "{text}");

    // The same in JSON, and under a limit of one's own.
    let json = compared(&place, &a, &b, &["--json", "--gate", "latency_ratio_max=1.05"]);
    expect_code(&json, 3);
    let found: RunComparison = serde_json::from_slice(&json.stdout).unwrap();
    let failed: Vec<&str> = found.gates.iter().filter(|g| !g.pass).map(|g| g.cell.as_str()).collect();
    assert_eq!((failed, found.exit_code), (vec![b.cells[1].id.as_str()], ExitCode::Gate));
    expect_code(&compared(&place, &a, &b, &["--gate", "latency_ratio_max=1.2"]), 0);
    // The other way round it is an improvement.
    expect_code(&compared(&place, &b, &a, &[]), 0);

    // Memory by more than a tenth, and a cell that does not run any more.
    let mut b = a.clone();
    b.cells[0].memory.host_peak_mib = Some(120.0);
    (b.cells[1].status, b.cells[1].reason) = (CellStatus::Failed, Some("it broke".to_owned()));
    let output = compared(&place, &a, &b, &[]);
    expect_code(&output, 3);
    let text = stdout(&output);
    assert!(text.contains("fail  memory") && text.contains("failed in the run: it broke"), "{text}");

    // Another input is refused with the field, and forced it is marked.
    let mut b = a.clone();
    for cell in &mut b.cells {
        cell.model.input = Some("1x3x640x640".to_owned());
    }
    let refused = compared(&place, &a, &b, &[]);
    expect_code(&refused, 2);
    let text = stdout(&refused);
    assert!(text.contains("not comparable: input 1x3x640x640 against 1x3x320x320"), "{text}");
    let forced = compared(&place, &a, &b, &["--force", "--json"]);
    expect_code(&forced, 0);
    let found: RunComparison = serde_json::from_slice(&forced.stdout).unwrap();
    assert!(found.rows.iter().all(|row| row.outcome == RowOutcome::Forced && row.latency.is_some()));

    // Cells of only one of them are listed; none in common is nothing to compare.
    let mut b = a.clone();
    b.cells[1].id = "other:rten:fp32".to_owned();
    b.cells[1].slug = prony_types::slug_of(&b.cells[1].id);
    b.run.exit_code = None;
    let output = compared(&place, &a, &b, &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("only in the run: other:rten:fp32") && text.contains("still under way"), "{text}");
    b.cells.remove(0);
    let output = compared(&place, &a, &b, &[]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("no cell is in both"), "{}", stderr(&output));
}

#[test]
fn nothing_compared_and_a_figure_that_vanished_are_never_no_regression() {
    let place = Place::new();
    let mut a = measured(&place);
    a.cells.truncate(1);
    let id = a.cells[0].id.clone();
    let told = |a: &RunRecord, b: &RunRecord, args: &[&str], code: i32, words: &str| {
        let output = compared(&place, a, b, args);
        expect_code(&output, code);
        let text = stdout(&output);
        assert!(text.contains(words) && !text.contains("no regression"), "{words}: {text}");
        assert!(text.contains(&id), "{text}");
    };
    let changed = |change: &dyn Fn(&mut CellRecord)| {
        let mut b = a.clone();
        change(&mut b.cells[0]);
        b
    };
    let failed = changed(&|cell| (cell.status, cell.reason) = (CellStatus::Failed, Some("it broke".to_owned())));
    told(&failed, &a, &[], 2, "nothing could be compared");
    told(&failed, &a, &[], 2, "failed in the baseline: it broke");
    let skipped = changed(&|cell| (cell.status, cell.reason) = (CellStatus::Skipped, Some("no library".to_owned())));
    told(&a, &skipped, &[], 3, "skipped in the run: no library");
    told(&a, &skipped, &["--gate", "map_drop_max=0.1"], 4, "not measured: skipped: no library");
    told(&skipped, &skipped, &[], 2, "nothing could be compared");
    told(&a, &changed(&|cell| cell.latency_ms.clear()), &[], 4, "timed in the baseline and not in the run");
    told(&a, &changed(&|cell| cell.memory.host_peak_mib = None), &[], 4, "measured in the baseline only");

    // Outputs that became wrong, or stayed so, are one whatever the limits; a wrong baseline is no measure.
    let wrong = changed(&|cell| cell.verdict = Some(Verdict::WrongOutput));
    told(&a, &wrong, &[], 3, "outputs are wrong");
    told(&a, &wrong, &["--gate", "latency_ratio_max=9"], 3, "outputs are wrong");
    told(&wrong, &wrong, &[], 3, "outputs are wrong");
    told(&wrong, &a, &[], 2, "not comparable: outputs right against wrong");

    // A tenth slower under noise that hides it.
    let noisy = |times: f64| {
        changed(&|cell| {
            slow_down(cell, times);
            cell.round_p50_ms = [0.6, 1.0, 1.4, 1.0, 0.8, 1.2].map(|x| x * 10.0 * times).to_vec();
        })
    };
    told(&noisy(1.0), &noisy(1.1), &[], 4, "inconclusive for");
    expect_code(&compared(&place, &noisy(1.0), &noisy(1.0), &[]), 0);
}

#[test]
fn noise_was_a_regression_one_way_and_none_the_other_way() {
    let place = Place::new();
    let mut a = measured(&place);
    a.cells.truncate(1);
    let with = |times: f64, verdict: Verdict| {
        let mut record = a.clone();
        slow_down(&mut record.cells[0], times);
        record.cells[0].verdict = Some(verdict);
        record
    };
    let noisy = |times: f64| {
        let mut record = with(times, Verdict::Valid);
        record.cells[0].round_p50_ms = [0.5, 1.0, 1.6, 1.0, 0.7, 1.3].map(|x| x * 10.0 * times).to_vec();
        record
    };
    let both = |a: &RunRecord, b: &RunRecord, codes: [i32; 2], words: [&str; 2]| {
        for (output, (code, word)) in
            [compared(&place, a, b, &[]), compared(&place, b, a, &[])].iter().zip(codes.into_iter().zip(words))
        {
            expect_code(output, code);
            assert!(in_one_line(output).contains(word), "{word}: {}", stdout(output));
        }
    };
    let wide = "too wide to tell; measure both again with --duration";
    both(&noisy(1.0), &noisy(1.139), [4, 4], [wide, wide]);
    let (calm, shaky) = (with(1.0, Verdict::Valid), with(1.5, Verdict::Unstable));
    both(&calm, &shaky, [4, 4], ["the run is unstable; measure both", "the baseline is unstable; measure both"]);
    both(&calm, &with(1.1, Verdict::Valid), [3, 0], ["slower 1.100×", "faster 0.909×"]);
    both(&calm, &with(1.01, Verdict::Valid), [0, 0], ["same 1.010×", "same 0.990×"]);
}

/// What was printed, as if the lines were not broken.
fn in_one_line(output: &Output) -> String {
    stdout(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `prony eval` of a built-in model on a dozen scenes.
fn evaluated(args: &[&str]) -> Place {
    let place = Place::new();
    let model = ["builtin-rgb", "--backends", "rten", "--data", "scenes", "--limit", "12", "-q"];
    let output = prony().arg("eval").args(model).args(args).arg("--out").arg(place.runs()).output().unwrap();
    expect_code(&output, 0);
    place
}

#[test]
fn two_evaluations_are_compared_image_by_image_where_they_were_scored_alike() {
    let (first, second) = (evaluated(&[]), evaluated(&[]));
    let between = |a: &Place, b: &Place| prony().arg("compare").arg(a.run()).arg(b.run()).output().unwrap();
    let same = between(&first, &second);
    expect_code(&same, 0);
    let text = stdout(&same);
    assert!(text.contains("no regression") && text.contains("mAP50-95") && text.contains(": +0.0 ±"), "{text}");

    // The same images, and boxes that were kept by another rule: of the evaluation alone, and of the timed frames too.
    for (conf, code, words) in [
        ("0.25", 4, "not scored alike: post-processing of the evaluation conf 0.25"),
        ("0.3", 2, "not comparable: post-processing conf 0.3"),
    ] {
        let unlike = between(&first, &evaluated(&["--conf", conf]));
        expect_code(&unlike, code);
        assert!(in_one_line(&unlike).contains(words), "{}", stdout(&unlike));
    }

    // A score that fell without an interval, and one that is gone.
    let mut before = first.record();
    before.cells[0].accuracy.as_mut().unwrap().ci95 = None;
    let mut record = before.clone();
    let figures = &mut record.cells[0].accuracy.as_mut().unwrap().figures;
    figures.map_50_95 = figures.map_50_95.map(|map| map - 0.02);
    let output = compared(&first, &before, &record, &[]);
    expect_code(&output, 4);
    let text = in_one_line(&output);
    assert!(text.contains("inconclusive worse") && text.contains("no interval"), "{text}");
    (record.cells[0].accuracy, record.cells[0].accuracy_absent) = (None, Some("boxes are lost".to_owned()));
    let output = compared(&first, &first.record(), &record, &[]);
    expect_code(&output, 4);
    assert!(in_one_line(&output).contains("not in the run: boxes are lost"), "{}", stdout(&output));

    // Alone it has nothing to fall from, which is known before anything runs.
    let place = Place::new();
    let model = ["builtin-rgb", "--backends", "rten", "--data", "scenes", "--gate", "map_drop_max=0.1"];
    let output = prony().arg("eval").args(model).arg("--out").arg(place.runs()).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("would have only one row; give --baseline RUN"), "{}", stderr(&output));
    assert!(!place.runs().exists());
}

#[test]
fn what_is_no_run_cannot_be_compared() {
    let place = Place::new();
    fs::write(place.path("new.json"), r#"{"schema": "prony.run/9"}"#).unwrap();
    for (name, words) in [("new.json", "prony.run/9"), ("none", "none")] {
        let output = prony().arg("compare").arg(place.path(name)).arg(place.path(name)).output().unwrap();
        expect_code(&output, 2);
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    let output = prony().args(["compare", "a", "b", "--gate", "map=1"]).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("known: map_drop_max"), "{}", stderr(&output));
}

#[test]
fn gates_stand_in_every_report_and_decide_the_exit_code() {
    let place = Place::new();
    let scored = ["builtin-rgb", "-q", "--gate", "map_min=0.999", "--data", "scenes", "--limit", "12"];
    let output = place.bench(&[&scored, &SHORT[..]].concat()).output().unwrap();
    expect_code(&output, 3);
    let text = stdout(&output);
    assert!(text.contains("fail  map_min builtin-rgb:rten:fp32: 0."), "{text}");
    let record = place.record();
    assert_eq!(record.run.exit_code, Some(ExitCode::Gate));
    assert!(record.gates.len() == 1 && record.gates[0].is_broken(), "{:?}", record.gates);
    for file in ["report.md", "report.html"] {
        let text = fs::read_to_string(place.run().join(file)).unwrap();
        assert!(text.contains("map_min"), "{file}");
    }

    // Against that run: a plan file has the limits, a flag beats one of them.
    let baseline = place.run();
    let plan = place.path("prony.toml");
    let lines =
        format!("baseline = '{}'\n[gates]\nlatency_ratio_max = 1000\nmemory_growth_max = 0.001\n", baseline.display());
    fs::write(&plan, lines).unwrap();
    let second = Place::new();
    let own = ["builtin-rgb", "--backends", "rten", "-q", "--gate", "memory_growth_max=50"];
    let args = [&own[..], &["--plan", plan.to_str().unwrap()]].concat();
    let output = second.bench(&[&args[..], &SHORT[..]].concat()).output().unwrap();
    expect_code(&output, 0);
    let gates = second.record().gates;
    assert!(gates.len() == 2 && gates.iter().all(|gate| gate.pass && gate.figure.is_some()), "{gates:?}");
    assert_eq!(gates[0].against.as_deref(), Some(record.run.id.as_str()));
}

#[test]
fn a_gate_that_cannot_be_is_refused_before_anything_runs() {
    let place = Place::new();
    for (args, words) in [
        (vec!["--gate", "map_mim=1"], "unknown gate `map_mim`; known: map_drop_max"),
        (vec!["--gate", "map_min=x"], "`x` is not a number"),
        (vec!["--gate", "latency_ratio_max=1.1"], "--baseline RUN"),
        (vec!["--gate", "memory_growth_max=1.1"], "--baseline RUN"),
        (vec!["--gate", "latency_ratio_max=1.1", "--baseline", "/no/run"], "/no/run"),
        (vec!["--gate", "map_min=0.1", "--gate", "map_min=0.2"], "twice"),
        (vec!["--gate", "map_min=0.1"], "no data to measure it on; give --data"),
        (vec!["--gate", "map_drop_max=1"], "no data to measure it on; give --data"),
        (vec!["--gate", "p99_max_ms=20", "--samples", "100"], "got --samples 100; use --samples 662"),
    ] {
        let output = place.bench(&args).output().unwrap();
        expect_code(&output, 2);
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
    assert!(!place.runs().exists());
}
