//! Arrays: the short text at their head says what they are, so its numbers and words are changed.

use crate::random::Random;

const WORDS: [&str; 16] = [
    "True",
    "False",
    "'<f4'",
    "'>f8'",
    "'|b1'",
    "'<i8'",
    "'|u1'",
    "'<f2'",
    "'|O'",
    "(",
    ")",
    "(1,)",
    "()",
    "-1",
    "{",
    "[('a', '<f4')]",
];

/// Changes a number or a word of the head; the rest stays.
pub(super) fn mutate(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = input.to_vec();
    let head = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len()).min(256);
    if head < 12 {
        return out;
    }
    let at = 10 + random.below(head - 10);
    match random.below(4) {
        // The version and the length of the head.
        0 => super::edge_at(&mut out[..12], 6 + random.below(4), random),
        1 => {
            let word = random.pick(&WORDS).map_or("", |word| word);
            out.splice(at..(at + word.len()).min(head), word.bytes());
        }
        _ => {
            let digits: Vec<usize> = (10..head).filter(|&at| input[at].is_ascii_digit()).collect();
            let at = random.pick(&digits).copied().unwrap_or(at);
            let end = (at..head).find(|&at| !input[at].is_ascii_digit()).unwrap_or(head);
            let number = random.edge().to_string();
            // As long as before where blanks can make up for it, so that the head still ends where it says.
            let longer = number.len().saturating_sub(end - at);
            out.splice(at..end, number.bytes());
            let blanks = out[..].windows(2).position(|pair| pair == b"  ");
            if let Some(blank) = blanks.filter(|blank| blank + longer < out.len()) {
                out.drain(blank..blank + longer);
            }
        }
    }
    out
}
