//! How right the cells are: columns of the table, and lines below it.

use std::fmt::Write as _;

use prony_types::{AccuracyRecord, CellRecord, ClassMatch, ConsistencyCheck, RunRecord};

use super::{Column, Paint, REASON_LINES, bullet, clean, cut_middle, wrap};
use crate::accuracy;
use crate::figure;
use crate::tone::Tone;

/// The column that stands beside latency.
pub(super) const HEAD: &str = accuracy::HEADS[0];
/// So many of a data set's problems are told; the others are in the reports.
const PROBLEMS: usize = 3;

/// A table without latency: no columns for it, and more of the score.
pub(super) fn alone(columns: &mut Vec<Column>, record: &RunRecord) {
    if !accuracy::alone(record) {
        return;
    }
    columns.retain(|column| column.head != "p50");
    let of = |field: &dyn Fn(&AccuracyRecord) -> String| -> Vec<String> {
        let field = |cell: &CellRecord| cell.accuracy.as_ref().map_or_else(|| figure::ABSENT.to_owned(), field);
        record.cells.iter().map(field).collect()
    };
    // As the twelve figures have them; sizes go before overlaps where there is little room.
    let figures = [(1, 2), (2, 3), (3, 6), (4, 6), (5, 6)].map(|(i, expendable)| Column {
        head: accuracy::HEADS[i],
        expendable,
        right: true,
        fields: of(&|accuracy| accuracy::figures(accuracy)[i].clone()),
    });
    let count = |head, expendable, count: &dyn Fn(&AccuracyRecord) -> u64| Column {
        head,
        expendable,
        right: true,
        fields: of(&|accuracy| clean(&figure::count(count(accuracy)))),
    };
    let counts =
        [count("images", 4, &|accuracy| accuracy.images), count("detections", 5, &|accuracy| accuracy.detections)];
    let at = columns.iter().position(|column| column.head == HEAD).map_or(columns.len(), |i| i + 1);
    columns.splice(at..at, figures.into_iter().chain(counts));
}

/// The data, the comparisons, what was not scored, and what did not agree with itself.
pub(super) fn lines(out: &mut String, record: &RunRecord, width: usize, paint: Paint) {
    let mut said = String::new();
    data(&mut said, record, width, paint);
    for comparison in &record.accuracy_comparisons {
        let sentence = accuracy::sentence(record, comparison);
        let word = comparison.difference.name();
        last_word(&mut said, &sentence, word, accuracy::tone(comparison.difference), width, paint);
    }
    for (cell, reason) in accuracy::absent(record) {
        let id = cut_middle(&clean(&cell.id), width / 2);
        first_words(&mut said, &format!("{id} not scored:"), Tone::Care, reason, width, paint);
    }
    for cell in &record.cells {
        // What the verdict said already is not said twice.
        let news = |check: &&ConsistencyCheck| {
            check.holds == Some(false) && !cell.verdict_reasons.iter().any(|reason| reason.contains(&check.detail))
        };
        for check in cell.consistency.iter().filter(news) {
            let id = cut_middle(&clean(&cell.id), width / 2);
            let text = format!("{}: {}", check.name, check.detail);
            first_words(&mut said, &format!("{id} not consistent:"), Tone::Bad, &text, width, paint);
        }
    }
    if !said.is_empty() {
        let _ = write!(out, "\n{said}");
    }
}

fn data(out: &mut String, record: &RunRecord, width: usize, paint: Paint) {
    let mut told: Vec<String> = Vec::new();
    for scored in accuracy::scored(record) {
        let data = scored.data;
        if let Some(caution) = data.class_match.as_ref().and_then(ClassMatch::caution) {
            let mut models: Vec<&str> = scored.cells.iter().map(|cell| cell.model.name.as_str()).collect();
            models.dedup();
            let text = format!("{}: {caution}", models.join(", "));
            first_words(out, "classes of", Tone::Care, &clean(&text), width, paint);
        }
        let count = match data.problem_count {
            0 => String::new(),
            1 => ", 1 problem:".to_owned(),
            n => format!(", {} problems:", figure::count(n)),
        };
        let text = format!("{}: {} images{count}", data.name, accuracy::images(data));
        // Classes may have become others for another model: the images are the same.
        if told.contains(&text) {
            continue;
        }
        first_words(out, "scored on", Tone::Neutral, &text, width, paint);
        accuracy::problems(data, PROBLEMS).iter().for_each(|problem| bullet(out, problem, width));
        told.push(text);
    }
}

/// A line whose first words are painted.
fn first_words(out: &mut String, words: &str, tone: Tone, text: &str, width: usize, paint: Paint) {
    for (i, line) in wrap(&format!("{words} {text}"), width - 2, REASON_LINES).iter().enumerate() {
        let _ = match line.strip_prefix(words).filter(|_| i == 0) {
            Some(rest) => writeln!(out, "{}{rest}", paint.tone(tone, words)),
            None => writeln!(out, "{}{line}", if i == 0 { "" } else { "  " }),
        };
    }
}

/// A line whose last word is painted. It stands even where the sentence before it is cut.
fn last_word(out: &mut String, sentence: &str, word: &str, tone: Tone, width: usize, paint: Paint) {
    let room = width - 4 - word.len();
    let lines = wrap(sentence, room, REASON_LINES);
    for (i, line) in lines.iter().enumerate() {
        let lead = if i == 0 { "" } else { "  " };
        let end = if i + 1 == lines.len() { format!(": {}", paint.tone(tone, word)) } else { String::new() };
        let _ = writeln!(out, "{lead}{line}{end}");
    }
}
