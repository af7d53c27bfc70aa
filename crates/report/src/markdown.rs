//! `report.md`: the facts of `report.json` for reading.

mod accuracy;

use std::fmt::Write as _;

use prony_types::text::printable_lines;
use prony_types::{CellRecord, RunRecord};

use crate::fact::Fact;
use crate::facts;
use crate::figure;
use crate::row::{self, Row};

/// The whole record as Markdown (GitHub's dialect).
pub fn markdown(record: &RunRecord) -> String {
    let mut out = String::new();
    heading(&mut out, 1, &format!("Prony: {}", text(&record.plan.name)));
    fact_list(&mut out, &facts::run(record));

    heading(&mut out, 2, "Recommendation");
    for recommendation in &record.recommendation {
        line(&mut out, &format!("- **{}**: {}", text(&recommendation.model), prose(&recommendation.text)));
    }
    if record.recommendation.is_empty() {
        line(&mut out, &format!("None: {}.", row::unrecommended(record)));
    }

    heading(&mut out, 2, "Comparison");
    comparison_table(&mut out, record);
    if row::differences(record).next().is_some() {
        out.push('\n');
    }
    for c in row::differences(record) {
        let ratio = c.ratio.map_or_else(String::new, |r| {
            let interval = c.ci95.map_or_else(String::new, |ci| format!(", ci95 {}", figure::ratio_interval(ci)));
            format!(" ({} the time{interval})", figure::ratio(r))
        });
        let sentence = format!("- {} is **{}**{ratio} against {}", text(&c.cell), c.difference, text(&c.against));
        line(&mut out, &format!("{sentence}: {}", prose(&c.reason)));
    }

    accuracy::section(&mut out, record);

    heading(&mut out, 2, "Cells");
    for cell in &record.cells {
        one_cell(&mut out, record, cell);
    }

    if !record.gates.is_empty() {
        heading(&mut out, 2, "Gates");
        line(&mut out, "| gate | cell | figure | limit | outcome | note |");
        line(&mut out, "|---|---|---:|---:|---|---|");
        for gate in &record.gates {
            let figure = figure::or_absent(gate.figure, figure::against_limit);
            let (name, cell, word) = (text(&gate.name), text(&gate.cell), row::outcome(gate).0);
            let (limit, why) = (figure::against_limit(gate.limit), prose(&row::gate_note(gate)));
            line(&mut out, &format!("| {name} | {cell} | {figure} | {limit} | {word} | {why} |"));
        }
    }

    heading(&mut out, 2, "Memory safety");
    fact_list(&mut out, &facts::memory_safety(record));
    heading(&mut out, 2, "Environment");
    fact_list(&mut out, &facts::environment(&record.environment));
    if !record.environment.notes.is_empty() {
        out.push('\n');
    }
    for note in &record.environment.notes {
        line(&mut out, &format!("> {}", prose(note)));
    }
    heading(&mut out, 2, "Method");
    for fact in facts::method(&record.method) {
        line(&mut out, &format!("- {}: {}", fact.label, prose(&fact.value)));
    }
    heading(&mut out, 2, "Plan");
    fact_list(&mut out, &facts::plan(&record.plan));
    if !record.plan.cells.is_empty() {
        line(&mut out, &format!("\n| {} |", facts::PLANNED_HEADS.join(" | ")));
        line(&mut out, &format!("|{}", "---|".repeat(facts::PLANNED_HEADS.len())));
    }
    for row in facts::planned(&record.plan) {
        line(&mut out, &format!("| {} |", row.map(|field| text(&field)).join(" | ")));
    }
    // Plain spaces, so that `grep '6.41 ms'` finds what it should.
    printable_lines(&out.replace(['\u{a0}', '\u{202f}'], " ")).into_owned()
}

/// Head, alignment, whether it is shown, and the field of a row.
type Column = (&'static str, &'static str, bool, fn(&Row) -> String);

fn comparison_table(out: &mut String, record: &RunRecord) {
    let rows: Vec<Row> = record.cells.iter().map(|cell| Row::new(record, cell)).collect();
    let (timed, scored) = (!crate::accuracy::alone(record), crate::accuracy::any(record));
    let columns: [Column; 12] = [
        ("model", "---", true, |row| text(&row.model)),
        ("backend", "---", true, |row| text(&row.backend)),
        ("precision", "---", true, |row| text(&row.precision)),
        ("p50 total", "---:", timed, |row| row.p50.clone()),
        ("ci95 within this run (ms)", "---:", timed, |row| row.ci95.clone()),
        ("p95", "---:", timed, |row| row.p95.clone()),
        ("p99", "---:", timed, |row| row.p99.clone()),
        ("throughput", "---:", timed, |row| row.throughput.clone()),
        ("difference", "---", timed, |row| row.difference.clone()),
        ("mAP50-95", "---:", scored, |row| row.map.clone()),
        ("memory", "---:", true, |row| row.memory.clone()),
        ("verdict", "---", true, |row| row.word.to_owned()),
    ];
    let shown: Vec<_> = columns.into_iter().filter(|column| column.2).collect();
    let both = row::any_device_memory(record);
    let head = |head: &str| match head {
        "memory" if both => format!("memory ({})", row::HOST_AND_DEVICE),
        head => head.to_owned(),
    };
    let heads: Vec<String> = shown.iter().map(|column| head(column.0)).collect();
    let rules: Vec<&str> = shown.iter().map(|column| column.1).collect();
    line(out, &format!("| {} |", heads.join(" | ")));
    line(out, &format!("|{}|", rules.join("|")));
    for row in &rows {
        let fields: Vec<String> = shown.iter().map(|column| column.3(row)).collect();
        line(out, &format!("| {} |", fields.join(" | ")));
    }
}

fn one_cell(out: &mut String, record: &RunRecord, cell: &CellRecord) {
    heading(out, 3, &text(&cell.id));
    line(
        out,
        &format!(
            "Status **{}**, verdict **{}**.",
            cell.status.name(),
            row::verdict(cell).map_or(figure::ABSENT, |v| v.name())
        ),
    );
    if let Some(reason) = &cell.reason {
        line(out, &format!("\nReason: {}", prose(reason)));
    }
    if !cell.verdict_reasons.is_empty() {
        line(out, "\nOf the verdict:\n");
    }
    for reason in &cell.verdict_reasons {
        line(out, &format!("- {}", prose(reason)));
    }
    let stages = facts::stages(cell);
    if !stages.is_empty() {
        line(out, "\nLatency in ms, steady state, one in flight:\n");
        line(out, &format!("| {} |", facts::STAGE_HEADS.join(" | ")));
        line(out, &format!("|---|{}", "---:|".repeat(facts::STAGE_HEADS.len() - 1)));
        for stage in &stages {
            line(out, &format!("| {} |", stage.join(" | ")));
        }
    }
    accuracy::of_cell(out, cell);
    for group in facts::cell(record, cell) {
        line(out, &format!("\n**{}**\n", group.title));
        fact_list(out, &group.facts);
    }
    if !cell.thumbnails.is_empty() {
        line(out, "\n**Thumbnails**\n");
    }
    for picture in &cell.thumbnails {
        let path = format!("cells/{}/{}", cell.slug, picture.file);
        line(out, &format!("- ![{}](<{}>)", text(&picture.caption), address(&path)));
    }
}

fn fact_list(out: &mut String, facts: &[Fact]) {
    for fact in facts {
        line(out, &format!("- {}: {}", fact.label, text(&fact.value)));
    }
}

fn heading(out: &mut String, level: usize, title: &str) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
    let _ = writeln!(out, "{} {title}\n", "#".repeat(level));
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// A name or value: nothing in it is markup.
fn text(raw: &str) -> String {
    let chars: Vec<char> = raw.chars().collect();
    let word = |i: Option<usize>| i.and_then(|i| chars.get(i)).is_some_and(|c| c.is_alphanumeric());
    let mut out = String::with_capacity(raw.len());
    for (i, &c) in chars.iter().enumerate() {
        match c {
            '|' | '`' | '\\' | '<' | '*' | '[' | ']' | '&' | '~' => out.extend(['\\', c]),
            // Inside a word an underscore is no markup, and `my\_model` reads badly.
            '_' if !(word(i.checked_sub(1)) && word(Some(i + 1))) => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A sentence of Prony's own, which may hold code in backticks but no table cells, tags or line breaks.
fn prose(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '|' | '<' | '[' | ']' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A path inside `<>` of a Markdown link.
fn address(raw: &str) -> String {
    raw.chars().filter(|c| !c.is_control()).fold(String::with_capacity(raw.len()), |mut out, c| {
        match c {
            '<' | '>' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_a_table_or_start_code() {
        assert_eq!(text("a|b`c`<i>\nx"), "a\\|b\\`c\\`\\<i> x");
        assert_eq!(text("my_model_v2 _x_"), "my_model_v2 \\_x\\_");
    }

    #[test]
    fn a_reason_keeps_its_code_but_no_cell_border() {
        assert_eq!(prose("run `a` | b\nc"), "run `a` \\| b c");
    }
}
