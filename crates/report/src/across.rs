//! What `prony compare` prints: a row a cell, what was refused and why, and the limits.

use std::fmt::Write as _;

use prony_types::{AccuracyDifference, Difference, ExitCode, Gate, RowComparison, RowOutcome, RunComparison};

use crate::figure;
use crate::terminal::{NARROWEST, Paint, clean, columns, gates, pad, wrap};
use crate::tone::Tone;

const HEADS: [&str; 6] = ["cell", "baseline", "run", "difference", "memory", "mAP50-95"];

/// Two runs against each other, at most `width` columns wide but for the table, which is as wide as it is.
pub fn comparison(comparison: &RunComparison, width: usize, colour: bool) -> String {
    let (paint, width) = (Paint { colour }, width.max(NARROWEST));
    let mut out = format!("{} against {}\n\n", clean(&comparison.run), clean(&comparison.baseline));
    table(&mut out, comparison, paint);
    let mut said = String::new();
    let mut say = |word: &str, tone: Tone, text: &str| {
        for (i, line) in wrap(&format!("{word}: {text}"), width - 2, usize::MAX).iter().enumerate() {
            let painted = line.strip_prefix(word).filter(|_| i == 0);
            let _ = match painted {
                Some(rest) => writeln!(said, "{}{rest}", paint.tone(tone, word)),
                None => writeln!(said, "  {line}"),
            };
        }
    };
    for row in &comparison.rows {
        notes(row, &mut say);
    }
    let lists = [("only in the baseline", &comparison.only_in_baseline), ("only in the run", &comparison.only_in_run)];
    for (word, cells) in lists.into_iter().filter(|(_, cells)| !cells.is_empty()) {
        say(word, Tone::Neutral, &cells.join(", "));
    }
    comparison.notes.iter().for_each(|note| say("note", Tone::Care, note));
    if !said.is_empty() {
        let _ = write!(out, "\n{said}");
    }
    gates(&mut out, &comparison.gates, width, paint);
    let _ = writeln!(out, "\n{}", paint.strong(&last_line(comparison)));
    out
}

fn notes(row: &RowComparison, say: &mut impl FnMut(&str, Tone, &str)) {
    let told = |text: &str| format!("{}: {text}", row.cell);
    let tone = match row.outcome {
        RowOutcome::Compared => Tone::Neutral,
        RowOutcome::Forced | RowOutcome::NotMeasured => Tone::Care,
        RowOutcome::Refused => Tone::Bad,
    };
    if let Some(reason) = &row.reason {
        say(row.outcome.name(), tone, &told(reason));
    }
    let noted: Vec<String> = row.noted.iter().map(ToString::to_string).collect();
    if !noted.is_empty() {
        say("differs", Tone::Neutral, &told(&noted.join("; ")));
    }
}

fn table(out: &mut String, comparison: &RunComparison, paint: Paint) {
    let rows: Vec<[String; 6]> = comparison.rows.iter().map(fields).collect();
    let width = |i: usize| rows.iter().map(|row| columns(&row[i])).chain([columns(HEADS[i])]).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: [String; 6]| {
        let padded = row.into_iter().zip(widths).enumerate();
        let padded: Vec<String> = padded.map(|(i, (field, width))| pad(&field, width, i == 1 || i == 2)).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let _ = writeln!(out, "{}", paint.dim(&line(HEADS.map(str::to_owned))));
    for (row, fields) in comparison.rows.iter().zip(rows) {
        let tone = match (&row.outcome, row.latency.as_ref().map(|latency| latency.difference)) {
            (RowOutcome::Refused | RowOutcome::NotMeasured, _) => Some(Tone::Care),
            (_, Some(Difference::Slower)) => Some(Tone::Bad),
            (_, Some(Difference::Faster)) => Some(Tone::Good),
            (_, Some(Difference::Inconclusive)) => Some(Tone::Care),
            _ => None,
        };
        let text = line(fields);
        let _ = writeln!(out, "{}", tone.map_or_else(|| text.clone(), |tone| paint.tone(tone, &text)));
    }
}

fn fields(row: &RowComparison) -> [String; 6] {
    let absent = || figure::ABSENT.to_owned();
    let latency = row.latency.as_ref();
    let difference = latency.map_or_else(
        || row.outcome.name().to_owned(),
        |latency| {
            let interval = latency.ci95.map(|ci| format!(" ({})", figure::ratio_interval(ci))).unwrap_or_default();
            let forced = if row.outcome == RowOutcome::Forced { ", forced" } else { "" };
            format!("{} {}{interval}{forced}", latency.difference, figure::ratio(latency.ratio))
        },
    );
    let accuracy = row.accuracy.as_ref().map_or_else(absent, |accuracy| match (accuracy.difference, accuracy.delta) {
        (AccuracyDifference::NotComparable, None) | (_, None) => accuracy.difference.name().to_owned(),
        (word, Some(delta)) => format!("{word} {:+.2}", delta * 100.0),
    });
    [
        row.cell.clone(),
        figure::or_absent(latency.map(|latency| latency.baseline_ms), figure::ms),
        figure::or_absent(latency.map(|latency| latency.run_ms), figure::ms),
        difference,
        figure::or_absent(row.memory.as_ref().map(|memory| memory.growth), figure::times),
        accuracy,
    ]
    .map(|field| clean(&field))
}

fn last_line(comparison: &RunComparison) -> String {
    let cells = |of: fn(&Gate) -> bool| {
        let mut cells: Vec<&str> =
            comparison.gates.iter().filter(|gate| of(gate)).map(|gate| gate.cell.as_str()).collect();
        cells.dedup();
        cells.join(", ")
    };
    match comparison.exit_code {
        ExitCode::Gate => clean(&format!("regression in {}", cells(Gate::is_broken))),
        ExitCode::Inconclusive => {
            clean(&format!("inconclusive for {}: measure again", cells(|gate| gate.inconclusive)))
        }
        ExitCode::Usage if !comparison.rows.iter().any(|row| row.outcome == RowOutcome::Refused) => {
            clean(&format!("nothing could be compared: {}", reasons(comparison)))
        }
        ExitCode::Usage => "refused: rows are not comparable; --force compares them all the same".to_owned(),
        _ => "no regression".to_owned(),
    }
}

/// Why each row says nothing.
fn reasons(comparison: &RunComparison) -> String {
    let reason = |row: &RowComparison| {
        format!("{} {}", row.cell, row.reason.as_deref().unwrap_or("has no figure that both runs measured"))
    };
    comparison.rows.iter().map(reason).collect::<Vec<_>>().join("; ")
}
