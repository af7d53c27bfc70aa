//! The sentences, word by word.

use super::*;
use crate::difference::tests::cell;

fn comparison(cell: &str, against: &str, ratio: f64, difference: Difference) -> Comparison {
    Comparison {
        cell: cell.into(),
        against: against.into(),
        ratio: Some(ratio),
        ci95: None,
        difference,
        reason: "batch 4 against 1".into(),
    }
}

fn only(cells: &[CellRecord], comparisons: &[Comparison]) -> Recommendation {
    let mut all = recommend(cells, comparisons);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn one_cell_says_what_to_install_to_compare() {
    let got = only(&[cell("m:rten:fp32", 6.4)], &[]);
    assert_eq!(got.cell.as_deref(), Some("m:rten:fp32"));
    assert_eq!(
        got.text,
        "Ship m on rten in fp32: 6.40 ms a frame (95 % interval 6.34 to 6.46), 156 frames a second; nothing else was \
         measured here: --backends all compares it with what is installed, and `prony runtime install onnxruntime` or \
         `openvino` brings more."
    );
}

#[test]
fn several_cells_say_how_much_faster() {
    let cells = [cell("a", 8.0), cell("b", 6.0)];
    let got = only(&cells, &[comparison("a", "b", 1.333, Difference::Slower)]);
    assert_eq!(got.cell.as_deref(), Some("b"));
    assert!(got.text.ends_with("; 1.33 times as fast as the next, a."), "{}", got.text);
    let got = only(&cells, &[comparison("a", "b", 1.01, Difference::Same)]);
    assert!(got.text.ends_with("; a is the same within the noise, so either will do."), "{}", got.text);
    let got = only(&cells, &[comparison("a", "b", 1.01, Difference::NotComparable)]);
    assert!(got.text.contains("cannot be compared (batch 4 against 1)"), "{}", got.text);
}

#[test]
fn a_faster_cell_that_is_not_valid_is_named_and_not_chosen() {
    let mut doubtful = cell("fast", 3.0);
    doubtful.verdict = Some(Verdict::Throttled);
    let got = only(&[doubtful, cell("good", 6.0)], &[]);
    assert_eq!(got.cell.as_deref(), Some("good"));
    assert!(got.text.ends_with("no other cell is valid; fast took less time but is throttled."), "{}", got.text);
}

#[test]
fn with_none_valid_the_best_comes_with_its_caveat() {
    let mut slow = cell("slow", 9.0);
    let mut fast = cell("fast", 3.0);
    for cell in [&mut slow, &mut fast] {
        cell.verdict = Some(Verdict::Unstable);
        cell.verdict_reasons = vec!["rounds differ by 14 %".into()];
    }
    let got = only(&[slow, fast], &[]);
    assert_eq!(got.cell.as_deref(), Some("fast"));
    assert!(got.text.contains("but it is unstable (rounds differ by 14 %)"), "{}", got.text);
}

#[test]
fn a_note_is_never_the_caveat() {
    let mut unstable = cell("u", 3.0);
    unstable.verdict = Some(Verdict::Unstable);
    unstable.verdict_reasons = vec!["note: warm-up was fixed".into(), "rounds differ by 14 %".into()];
    let got = only(std::slice::from_ref(&unstable), &[]);
    assert!(got.text.contains("unstable (rounds differ by 14 %);") && !got.text.contains("note"), "{}", got.text);
    unstable.verdict_reasons.pop();
    let got = only(&[unstable], &[]);
    assert!(got.text.contains("but it is unstable; measure again"), "{}", got.text);
}

#[test]
fn wrong_outputs_are_never_recommended() {
    let mut wrong = cell("w", 3.0);
    wrong.verdict = Some(Verdict::WrongOutput);
    let got = only(&[wrong], &[]);
    assert_eq!(got.cell, None);
    assert!(got.text.starts_with("Ship nothing yet of m"), "{}", got.text);
}

#[test]
fn a_model_that_never_ran_is_told_without_repeating_the_reason() {
    let mut failed = cell("f", 3.0);
    failed.status = CellStatus::Failed;
    failed.reason = Some("killed by SIGKILL.".into());
    failed.latency_ms.clear();
    let got = only(std::slice::from_ref(&failed), &[]);
    assert_eq!(got.cell, None);
    assert_eq!(got.text, "Nothing can be said about m: its one cell failed.");
    let mut skipped = failed.clone();
    skipped.status = CellStatus::Skipped;
    let got = only(std::slice::from_ref(&skipped), &[]);
    assert_eq!(got.text, "Nothing can be said about m: its one cell was skipped.");
    let got = only(&[failed.clone(), skipped, failed], &[]);
    assert_eq!(got.text, "Nothing can be said about m: none of its 3 cells completed.");
}

#[test]
fn two_files_that_cannot_be_read_are_two_models() {
    let unreadable = |name: &str| {
        let mut failed = cell(name, 3.0);
        (failed.model.sha256, failed.model.name) = (String::new(), name.into());
        failed.status = CellStatus::Failed;
        failed.latency_ms.clear();
        failed
    };
    let all = recommend(&[unreadable("a"), unreadable("b"), unreadable("a")], &[]);
    let texts: Vec<&str> = all.iter().map(|r| r.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "Nothing can be said about a: none of its 2 cells completed.",
            "Nothing can be said about b: its one cell failed."
        ]
    );
}

#[test]
fn one_file_under_two_names_is_recommended_under_each() {
    let mut copy = cell("copy", 5.0);
    copy.model.name = "copy".into();
    let all = recommend(&[cell("a", 6.0), copy], &[]);
    let pairs: Vec<_> = all.iter().map(|r| (r.model.as_str(), r.cell.as_deref())).collect();
    assert_eq!(pairs, [("m", Some("a")), ("copy", Some("copy"))]);
}

#[test]
fn models_get_one_each_and_are_never_mixed() {
    let mut other = cell("o", 1.0);
    (other.model.sha256, other.model.name) = ("2".into(), "other".into());
    let all = recommend(&[cell("a", 6.0), other, cell("b", 7.0)], &[]);
    let pairs: Vec<_> = all.iter().map(|r| (r.model.as_str(), r.cell.as_deref())).collect();
    assert_eq!(pairs, [("m", Some("a")), ("other", Some("o"))]);
}

#[test]
fn a_batch_is_told_as_one() {
    let mut batched = cell("b", 12.0);
    batched.batch = 4;
    assert!(only(&[batched], &[]).text.contains("12.0 ms a batch of 4"));
}

#[test]
fn a_cell_that_was_held_against_nothing_comes_after_one_that_agrees() {
    let mut fast = cell("fast", 3.0);
    fast.agreement = None;
    let got = only(&[fast.clone(), cell("good", 6.0)], &[]);
    assert_eq!(got.cell.as_deref(), Some("good"));
    let got = only(&[fast], &[]);
    assert!(got.text.ends_with("; its outputs were held against no reference."), "{}", got.text);
}
