//! Texts with lines: plans, tables, YAML. Lines are doubled, dropped, moved and indented, numbers and signs replaced.

use crate::random::Random;

/// What such formats are made of.
const SIGNS: [&str; 22] = [
    "\"", "'", ",", ":", "=", "[", "]", "{", "}", "\n", "\r\n", "  ", "- ", "#", "|", "\\", "\0", "\"\"\"", "[[",
    "&a *a", "\u{feff}", "\u{1b}",
];

/// Changes a line, a number or a sign.
pub(super) fn mutate(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = input.to_vec();
    match random.below(6) {
        0 | 1 => {
            let mut rows: Vec<&[u8]> = input.split(|&byte| byte == b'\n').collect();
            let (one, other) = (random.below(rows.len()), random.below(rows.len()));
            match random.below(3) {
                0 => drop(rows.remove(one)),
                1 => rows.insert(one, rows[other]),
                _ => rows.swap(one, other),
            }
            rows.join(&b'\n')
        }
        2 | 3 => {
            let digits: Vec<usize> = (0..out.len()).filter(|&at| out[at].is_ascii_digit()).collect();
            let Some(&at) = random.pick(&digits) else { return out };
            let end = (at..out.len()).find(|&at| !out[at].is_ascii_digit()).unwrap_or(out.len());
            let number = random.edge();
            let number = if random.once_in(3) { (number as i64).to_string() } else { number.to_string() };
            out.splice(at..end, number.bytes());
            out
        }
        4 => {
            let at = random.below(out.len() + 1);
            let sign = random.pick(&SIGNS).copied().unwrap_or_default();
            let times = if random.once_in(8) { random.length(2000) } else { 1 };
            out.splice(at..at, sign.repeat(times).into_bytes());
            out
        }
        _ => {
            let signs: Vec<usize> = (0..out.len()).filter(|&at| !out[at].is_ascii_alphanumeric()).collect();
            let Some(&at) = random.pick(&signs) else { return out };
            let sign = random.pick(&SIGNS).copied().unwrap_or_default();
            out.splice(at..=at, sign.bytes());
            out
        }
    }
}
