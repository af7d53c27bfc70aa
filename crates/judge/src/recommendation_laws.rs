//! Laws of the recommendation, over generated records.

use prony_types::CellStatus;
use proptest::prelude::*;

use super::*;

const VERDICTS: [Verdict; 8] = [
    Verdict::Valid,
    Verdict::Unknown,
    Verdict::Undersampled,
    Verdict::Unstable,
    Verdict::Throttled,
    Verdict::OverBudget,
    Verdict::FellBack,
    Verdict::WrongOutput,
];

/// One cell as it may come out of a run: model, backend, milliseconds, verdict, mAP, gate, whether it was checked.
type Drawn = (u8, u8, f64, usize, Option<f64>, Option<bool>, bool);

fn drawn() -> impl Strategy<Value = Drawn> {
    // Valid cells and held gates are drawn more often, so that there is something to choose from.
    let verdict = prop_oneof![3 => Just(0usize), 2 => 1..5usize, 1 => 5..8usize];
    let gate = prop_oneof![4 => Just(Some(true)), 1 => Just(Some(false)), 1 => Just(None)];
    (0..3u8, 0..4u8, 2.0..20.0f64, verdict, prop::option::of(0.3..0.7f64), gate, prop::bool::weighted(0.8))
}

/// A record of these cells, gates and accuracy comparisons as a run makes them.
fn record_of(drawn: &[Drawn], allowed: Option<f64>) -> RunRecord {
    let mut cells: Vec<CellRecord> = Vec::new();
    let mut gates = Vec::new();
    for (index, &(model, backend, ms, verdict, map, gate_held, checked)) in drawn.iter().enumerate() {
        let id = format!("m{model}:b{backend}:{index}");
        let mut one = on(with(cell(&id, ms), Precision::Fp32, VERDICTS[verdict]), &format!("b{backend}"));
        (one.model.sha256, one.model.name) = (format!("{model}"), format!("m{model}"));
        if !checked {
            one.agreement = None;
        }
        if let Some(map) = map {
            one = scored(one, map);
        }
        gates.push(match gate_held {
            Some(held) => gate("p99_max_ms", &id, Some(ms), 10.0, held),
            None => gate("p99_max_ms", &id, None, 10.0, false),
        });
        cells.push(one);
    }
    let mut record = run("r", cells);
    record.gates = gates;
    record.plan.gates.map_drop_max = allowed;
    let map = |cell: &CellRecord| cell.accuracy.as_ref().and_then(|a| a.figures.map_50_95);
    for cell in &record.cells {
        let base = record.cells.iter().find(|base| same_model(base, cell) && map(base).is_some());
        if let (Some(base), Some(own)) = (base.filter(|base| base.id != cell.id), map(cell)) {
            let points = (map(base).unwrap_or(0.0) - own) * 100.0;
            record.accuracy_comparisons.push(loses(&cell.id, &base.id, points, 0.4));
        }
    }
    record
}

fn found<'a>(record: &'a RunRecord, id: &str) -> &'a CellRecord {
    record.cells.iter().find(|cell| cell.id == id).unwrap()
}

/// Whether anything that the record says stands against shipping a cell, written without the code under test.
fn fit(record: &RunRecord, cell: &CellRecord) -> bool {
    let right = !matches!(cell.verdict, Some(Verdict::WrongOutput | Verdict::OverBudget | Verdict::FellBack));
    let gates = record.gates.iter().filter(|gate| gate.cell == cell.id).all(|gate| gate.pass);
    let allowed = record.plan.gates.map_drop_max.unwrap_or(1.0);
    let loss = record.accuracy_comparisons.iter().find(|c| c.cell == cell.id).and_then(|c| c.delta);
    cell.status == CellStatus::Completed && right && gates && loss.is_none_or(|delta| -delta * 100.0 <= allowed)
}

proptest! {
    #[test]
    fn what_is_shipped_is_fit_and_never_the_slower_of_a_conclusive_pair(
        drawn in prop::collection::vec(drawn(), 1..9),
        allowed in prop::option::of(0.0..30.0f64),
    ) {
        let record = record_of(&drawn, allowed);
        let rounds = own_rounds(&record.cells);
        let advice = advise(&record, &rounds);
        for entry in advice.recommendation.iter().filter(|entry| entry.front.is_empty()) {
            let of_model: Vec<&CellRecord> = record.cells.iter().filter(|c| c.model.name == entry.model).collect();
            prop_assert_eq!(entry.text.starts_with("Ship nothing"), entry.cell.is_none(), "{}", entry.text);
            let Some(id) = &entry.cell else {
                prop_assert!(!of_model.iter().any(|c| fit(&record, c)), "nothing shipped of {}: {}", entry.model, entry.text);
                continue;
            };
            let best = found(&record, id);
            prop_assert_eq!(&best.model.name, &entry.model);
            prop_assert!(fit(&record, best), "{}", entry.text);
            let named = format!("Ship {} on {} in ", best.model.name, best.backend.name);
            prop_assert!(entry.text.starts_with(&named));
            prop_assert_eq!(entry.text.contains("is not firm, because"), best.verdict != Some(Verdict::Valid));
            // Its own table must not contradict it: no fit, checked cell is conclusively faster.
            for other in of_model.iter().filter(|c| c.id != *id && fit(&record, c)) {
                if best.agreement.is_some() && other.agreement.is_none() {
                    continue;
                }
                let compared = advice.comparisons.iter().find(|c| c.cell == other.id && c.against == *id);
                prop_assert!(compared.is_some(), "{} is not compared with {}", other.id, id);
                prop_assert_ne!(compared.unwrap().difference, Difference::Faster, "{} beats {}", other.id, id);
            }
        }
    }

    #[test]
    fn a_fast_cell_with_wrong_outputs_changes_no_choice(drawn in prop::collection::vec(drawn(), 1..7)) {
        let record = record_of(&drawn, None);
        let mut with_wrong = record.clone();
        let mut wrong = record.cells[0].clone();
        (wrong.id, wrong.verdict) = ("wrong".into(), Some(Verdict::WrongOutput));
        wrong.latency_ms.values_mut().for_each(|stats| stats.p50 = 0.1);
        with_wrong.cells.push(wrong);
        let chosen = |record: &RunRecord| -> Vec<Option<String>> {
            all(record).into_iter().filter(|r| r.front.is_empty()).map(|r| r.cell).collect()
        };
        prop_assert_eq!(chosen(&record), chosen(&with_wrong));
    }

    #[test]
    fn a_front_holds_what_nothing_dominates_and_all_of_it(drawn in prop::collection::vec(drawn(), 2..9)) {
        let record = record_of(&drawn, Some(100.0));
        let figures = |cell: &CellRecord| {
            Some((frame_ms(cell)?, cell.accuracy.as_ref()?.figures.map_50_95?))
        };
        let scored: Vec<(&CellRecord, (f64, f64))> = record
            .cells
            .iter()
            .filter(|cell| fit(&record, cell))
            .filter_map(|cell| Some((cell, figures(cell)?)))
            .collect();
        let models: std::collections::BTreeSet<&str> = scored.iter().map(|(cell, _)| cell.model.name.as_str()).collect();
        let entry = all(&record).into_iter().find(|entry| !entry.front.is_empty());
        prop_assert_eq!(entry.is_some(), models.len() > 1);
        let Some(entry) = entry else { return Ok(()) };
        for (cell, (ms, map)) in &scored {
            let dominated = scored.iter().any(|(_, (m, p))| m <= ms && p >= map && (m < ms || p > map));
            prop_assert_eq!(entry.front.contains(&cell.id), !dominated, "{}", cell.id);
        }
    }
}
