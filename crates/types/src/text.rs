//! Text from outside on its way to people: no control character reaches a terminal, no formula a spreadsheet.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character moves the cursor, colours, erases or reorders what is around it instead of being seen: control
/// characters (C0, DEL, C1), bidirectional marks, and the separators that some programs take for the end of a line.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name or value on one line: what is unprintable is written as an escape, `\n` or `\u001b`.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_unprintable)
}

/// Text that has lines: newlines and tabs stay, everything else that is unprintable is written as an escape. The escapes are
/// those of JSON, so that a JSON document stays one and keeps its meaning.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !matches!(c, '\n' | '\t') && is_unprintable(c))
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !hidden(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
        }
    }
    Cow::Owned(out)
}

/// A text as one field of a CSV row, quoted as RFC 4180 has it. One that a spreadsheet would take for a formula gets an
/// apostrophe in front, which spreadsheets do not show. For texts only: a number such as `-1.5` stays a number.
pub fn csv_field(text: &str) -> Cow<'_, str> {
    let apostrophe = if is_formula(text.trim_start_matches('\'')) { "'" } else { "" };
    let quoted = text.contains(['"', ',', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ');
    match (quoted, apostrophe) {
        (true, _) => Cow::Owned(format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))),
        (false, "") => Cow::Borrowed(text),
        (false, _) => Cow::Owned(format!("{apostrophe}{text}")),
    }
}

/// The text of an unquoted field: without the apostrophe that [`csv_field`] put there.
pub fn csv_text(field: &str) -> &str {
    match field.strip_prefix('\'') {
        Some(text) if is_formula(text.trim_start_matches('\'')) => text,
        _ => field,
    }
}

fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_printable() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{7f}\r\u{8}\u{202e}txt\u{2066}\u{2028}b";
        let shown = printable_lines(hostile);
        assert_eq!(shown, "a\\u001b[2J\\u009b31m\\u007f\\r\\u0008\\u202etxt\\u2066\\u2028b");
        for plain in ["", "yolo v8, ±0.9 % → größer 日本 👍", "two\nlines\tand a tab"] {
            assert!(matches!(printable_lines(plain), Cow::Borrowed(_)), "{plain}");
        }
        assert_eq!(printable("a\nb\tc"), "a\\nb\\tc");
    }

    #[test]
    fn only_texts_that_begin_like_a_formula_are_defused() {
        for (text, field) in [
            ("=1+1", "'=1+1"),
            ("+cmd", "'+cmd"),
            ("-x", "'-x"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("=a,\"b\"", "\"'=a,\"\"b\"\"\""),
            ("a=b", "a=b"),
            ("'quoted'", "'quoted'"),
            ("'=x", "''=x"),
            (" =x", "\" =x\""),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(csv_field(text), field, "{text:?}");
            let inner =
                field.strip_prefix('"').and_then(|f| f.strip_suffix('"')).unwrap_or(field).replace("\"\"", "\"");
            assert_eq!(csv_text(&inner), text);
        }
    }
}
