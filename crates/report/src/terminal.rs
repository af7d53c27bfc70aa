//! What `prony bench` prints at its end: the table, what is wrong with it, and the recommendation.

mod accuracy;
mod roofline;

use std::fmt::Write as _;

use prony_types::text::is_unprintable;
use prony_types::{CellRecord, CellStatus, Comparison, Gate, RunRecord, Verdict};

use crate::figure;
use crate::row::{self, Row};
use crate::tone::Tone;

pub use self::roofline::rooflines;

/// Narrower than this nothing can be laid out; lines then run over.
pub(crate) const NARROWEST: usize = 40;
/// A reason longer than this many lines is cut; the whole of it is in the reports.
const REASON_LINES: usize = 4;
/// Figures go before an id is cut below this.
const SHORTEST_ID: usize = 32;
const GAP: usize = 2;

/// The table of a run, then a line for every cell that did not complete or is not `valid`, one for every gate, then what to
/// ship.
///
/// Lines are at most `width` columns wide: the least important columns go first, then long names are cut in the
/// middle. ANSI colours only if `colour`; control characters in names and reasons never get through.
pub fn terminal(record: &RunRecord, width: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let width = width.max(NARROWEST);
    let mut out = String::new();
    if !record.cells.is_empty() {
        table(&mut out, record, width, paint);
        notes(&mut out, record, width, paint);
        waves(&mut out, record, width);
        accuracy::lines(&mut out, record, width, paint);
    }
    gates(&mut out, &record.gates, width, paint);
    trusted(&mut out, record, width);
    out.push('\n');
    if record.recommendation.is_empty() {
        let _ = writeln!(out, "No recommendation: {}.", row::unrecommended(record));
    }
    for recommendation in &record.recommendation {
        let mark = paint.strong("→");
        for (i, line) in wrap(&recommendation.text, width - 2, usize::MAX).iter().enumerate() {
            let lead = if i == 0 { mark.as_str() } else { " " };
            let _ = writeln!(out, "{lead} {}", paint.strong(line));
        }
    }
    out
}

/// Libraries that were opened although others own them or may write to them.
fn trusted(out: &mut String, record: &RunRecord, width: usize) {
    for runtime in &record.environment.runtimes {
        if let (Some(path), Some(problem)) = (&runtime.path, &runtime.trusted) {
            let text = clean(&format!("opened because of --trust-library: {path}, although {problem}"));
            wrap(&text, width, usize::MAX).iter().for_each(|line| {
                let _ = writeln!(out, "{line}");
            });
        }
    }
}

struct Column {
    head: &'static str,
    /// The least are dropped first; 0 stays.
    expendable: u8,
    right: bool,
    fields: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        self.fields.iter().map(|f| columns(f)).chain([columns(self.head)]).max().unwrap_or(0)
    }
}

fn table(out: &mut String, record: &RunRecord, width: usize, paint: Paint) {
    let rows: Vec<Row> = record.cells.iter().map(|cell| Row::new(record, cell)).collect();
    let column = |head, expendable, right, field: &dyn Fn(&Row) -> String| Column {
        head,
        expendable,
        right,
        fields: rows.iter().map(|row| clean(&field(row))).collect(),
    };
    let mut all = vec![
        Column {
            head: "cell",
            expendable: 0,
            right: false,
            fields: record.cells.iter().map(|c| clean(&c.id)).collect(),
        },
        column("p50", 0, true, &|r| r.p50.clone()),
        Column { head: "ci95", expendable: 4, right: true, fields: record.cells.iter().map(half_width).collect() },
        column("p95", 3, true, &|r| r.p95.clone()),
        column("p99", 6, true, &|r| r.p99.clone()),
        column("throughput", 2, true, &|r| r.throughput.clone()),
        column("difference", 5, false, &|r| r.difference.clone()),
        column(accuracy::HEAD, 1, true, &|r| r.map.clone()),
        column("memory", 7, true, &|r| r.memory.clone()),
        column("verdict", 0, false, &|r| r.word.to_owned()),
    ];
    accuracy::alone(&mut all, record);
    // A column without a single figure says nothing.
    all.retain(|c| c.expendable == 0 || c.fields.iter().any(|f| f != figure::ABSENT));
    let taken = |all: &[Column]| all.iter().map(Column::width).sum::<usize>() + GAP * (all.len() - 1);
    let id = all[0].width();
    let shortest_id = id.min(SHORTEST_ID);
    while taken(&all) - id + shortest_id > width {
        let Some(victim) = (0..all.len()).filter(|&i| all[i].expendable > 0).max_by_key(|&i| all[i].expendable) else {
            break;
        };
        all.remove(victim);
    }
    let id_room = (width + id).saturating_sub(taken(&all)).clamp(4, id);
    for field in &mut all[0].fields {
        *field = cut_middle(field, id_room);
    }

    let widths: Vec<usize> = all.iter().map(Column::width).collect();
    let heads: Vec<String> = all.iter().zip(&widths).map(|(c, &w)| pad(c.head, w, c.right)).collect();
    let _ = writeln!(out, "{}", paint.dim(heads.join("  ").trim_end()));
    for (i, row) in rows.iter().enumerate() {
        let fields = all.iter().zip(&widths).map(|(c, &w)| match c.head {
            "verdict" => paint.tone(row.tone, &c.fields[i]),
            "p50" | accuracy::HEAD => paint.strong(&pad(&c.fields[i], w, c.right)),
            _ => pad(&c.fields[i], w, c.right),
        });
        let _ = writeln!(out, "{}", fields.collect::<Vec<_>>().join("  ").trim_end());
    }
    if all.iter().any(|c| c.head == "ci95") {
        for line in wrap(row::WITHIN_THIS_RUN, width, REASON_LINES) {
            let _ = writeln!(out, "{}", paint.dim(&line));
        }
    }
    if all.iter().any(|c| c.head == "memory") && row::any_device_memory(record) {
        let _ = writeln!(out, "{}", paint.dim(&format!("memory: {}", row::HOST_AND_DEVICE)));
    }
}

/// A line a limit: whether it held, the figure and the limit.
pub(crate) fn gates(out: &mut String, gates: &[Gate], width: usize, paint: Paint) {
    if !gates.is_empty() {
        out.push('\n');
    }
    for gate in gates {
        let figure = figure::or_absent(gate.figure, figure::against_limit);
        let mut text = format!("{} {}: {figure}, limit {}", gate.name, gate.cell, figure::against_limit(gate.limit));
        let note = row::gate_note(gate);
        if !note.is_empty() {
            text += &format!("; {note}");
        }
        let (word, tone) = row::outcome(gate);
        let indent = columns(word);
        for (i, line) in wrap(&text, width - indent - 2, REASON_LINES).iter().enumerate() {
            let lead = if i == 0 { paint.tone(tone, word) } else { " ".repeat(indent) };
            let _ = writeln!(out, "{lead}  {line}");
        }
    }
}

/// Half of the median's interval, as a share of the median.
fn half_width(cell: &CellRecord) -> String {
    let share = row::total(cell).and_then(|t| t.ci95.map(|[lo, hi]| (hi - lo) / 2.0 / t.p50));
    figure::or_absent(share, |share| format!("±{}", figure::percent(share)))
}

fn notes(out: &mut String, record: &RunRecord, width: usize, paint: Paint) {
    let mut first = true;
    let mut note = |out: &mut String, word: &str, tone: Tone, reason: &str, id: &str| {
        if std::mem::take(&mut first) {
            out.push('\n');
        }
        let head = cut_middle(&clean(id), width / 2);
        let plain = format!("{head} {word}: {reason}").trim_end().to_owned();
        for (i, line) in wrap(&plain, width - 2, REASON_LINES).iter().enumerate() {
            // The first line holds id and word whole unless they fill it: only then is there something to paint.
            let painted = line.strip_prefix(&format!("{head} {word}:")).filter(|_| i == 0);
            let _ = match painted {
                Some(rest) => writeln!(out, "{head} {}{rest}", paint.tone(tone, &format!("{word}:"))),
                None => writeln!(out, "{}{line}", if i == 0 { "" } else { "  " }),
            };
        }
    };
    for cell in &record.cells {
        if cell.status != CellStatus::Completed {
            let silent = if cell.status == CellStatus::Pending { "not run yet" } else { "no reason was recorded" };
            let reason = cell.reason.as_deref().unwrap_or(silent);
            let tone = if cell.status == CellStatus::Failed { Tone::Bad } else { Tone::Care };
            note(out, cell.status.name(), tone, reason, &cell.id);
        }
        if let Some(verdict) = cell.verdict.filter(|&v| v != Verdict::Valid) {
            let tone = row::verdict_tone(verdict);
            match &cell.verdict_reasons[..] {
                [] => note(out, verdict.name(), tone, "no reason was recorded", &cell.id),
                [reason] => note(out, verdict.name(), tone, reason, &cell.id),
                reasons => {
                    note(out, verdict.name(), tone, "", &cell.id);
                    reasons.iter().for_each(|reason| bullet(out, reason, width));
                }
            }
        }
        if let Some(death) = &cell.out_of_memory {
            note(out, "measured again alone", Tone::Care, &format!("the first attempt was {death}"), &cell.id);
        }
        if let Some(narrow) = record.narrowings.iter().find(|c| c.cell == cell.id) {
            note(out, narrow.difference.name(), Tone::Neutral, &against_fp32(narrow), &cell.id);
        }
        if let Some(layers) = &cell.layers {
            note(out, "layers", Tone::Neutral, &layers.to_string(), &cell.id);
        }
        let same = cell.equivalents.iter().map(|line| format!("{} {}", line.tool, figure::ms(line.latency_ms)));
        let same = same.collect::<Vec<_>>().join(", ");
        if !same.is_empty() {
            note(out, "by trtexec's definition", Tone::Neutral, &clean(&same), &cell.id);
        }
    }
}

/// That not all cells were loaded together, where that is so.
fn waves(out: &mut String, record: &RunRecord, width: usize) {
    let Some(first) = record.waves.first().filter(|_| record.waves.len() > 1) else { return };
    let why = first.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let text = format!(
        "Cells were loaded in {} waves{why}: cells of different waves were not timed in the same rounds, so they are compared \
         unpaired.",
        record.waves.len()
    );
    out.push('\n');
    wrap(&text, width, REASON_LINES).iter().for_each(|line| {
        let _ = writeln!(out, "{line}");
    });
}

/// What a narrow precision gains, or why that cannot be told.
fn against_fp32(narrow: &Comparison) -> String {
    let against = clean(&narrow.against);
    match (narrow.ratio, narrow.ci95) {
        (Some(ratio), Some(ci95)) => {
            format!("{} the time of {against} (ci95 {})", figure::ratio(ratio), figure::ratio_interval(ci95))
        }
        _ => format!("against {against}: {}", clean(&narrow.reason)),
    }
}

/// One of several reasons under their cell.
fn bullet(out: &mut String, reason: &str, width: usize) {
    for (i, line) in wrap(reason, width.saturating_sub(4), REASON_LINES).iter().enumerate() {
        let _ = writeln!(out, "{}{line}", if i == 0 { "  - " } else { "    " });
    }
}

/// Colours, or none.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    pub(crate) colour: bool,
}

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Good => self.wrap("32", text),
            Tone::Care => self.wrap("33", text),
            Tone::Bad => self.wrap("31", text),
            Tone::Neutral => self.dim(text),
        }
    }
}

/// Text without anything that moves a cursor or breaks a line.
pub(crate) fn clean(raw: &str) -> String {
    let plain = raw.chars().map(|c| match c {
        '\u{a0}' | '\u{202f}' => ' ',
        c if c == '\n' || c == '\r' || c == '\t' => ' ',
        c if is_unprintable(c) => '\u{fffd}',
        c => c,
    });
    plain.collect()
}

/// Columns that text takes: wide East Asian characters and pictographs take two, combining marks none.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(c: char) -> usize {
    match c as u32 {
        0x300..=0x36f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
        0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

pub(crate) fn pad(text: &str, width: usize, right: bool) -> String {
    let fill = " ".repeat(width.saturating_sub(columns(text)));
    if right { format!("{fill}{text}") } else { format!("{text}{fill}") }
}

/// The start and the end of a name that is too long: both tell cells apart.
fn cut_middle(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let room = room.saturating_sub(1);
    let tail = take(text.chars().rev(), room * 2 / 3);
    let head = take(text.chars(), room - columns(&tail));
    format!("{head}…{}", tail.chars().rev().collect::<String>())
}

fn take(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|&c| {
            used += char_columns(c);
            used <= room
        })
        .collect()
}

/// Lines of at most `width` columns, broken at spaces where there are any; at most `lines` of them.
pub(crate) fn wrap(raw: &str, width: usize, lines: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    for word in clean(raw).split_whitespace() {
        let mut rest = word;
        while !rest.is_empty() {
            let line = out.last_mut().expect("there is always a line");
            let used = columns(line);
            let gap = usize::from(used > 0);
            if used + gap + columns(rest) <= width {
                line.extend([" "].iter().take(gap).copied());
                line.push_str(rest);
                break;
            }
            if used > 0 {
                out.push(String::new());
                continue;
            }
            // A word longer than a line is broken where the line ends.
            let head = take(rest.chars(), width);
            rest = &rest[head.len()..];
            line.push_str(&head);
            out.push(String::new());
        }
    }
    if out.len() > 1 && out.last().is_some_and(String::is_empty) {
        out.pop();
    }
    if out.len() > lines {
        out.truncate(lines);
        if let Some(last) = out.last_mut() {
            *last = format!("{}…", take(last.chars(), width - 1).trim_end());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(cut_middle("builtin-thermal:rten:fp32", 12), "buil…en:fp32");
        assert_eq!(cut_middle("short", 12), "short");
    }

    #[test]
    fn an_escape_sequence_in_a_name_does_not_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\nc"), "a\u{fffd}[31mb c");
    }

    #[test]
    fn long_words_break_and_long_text_is_cut() {
        assert_eq!(wrap("abcdefgh ij", 5, 9), ["abcde", "fgh", "ij"]);
        assert_eq!(wrap("aa bb cc dd", 5, 1), ["aa b…"]);
        assert_eq!(wrap("", 5, 9), [""]);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(columns("検出a"), 5);
    }
}
