//! A typeface of three by five dots, enough for class names and scores in a thumbnail.

/// Dots of a glyph.
pub(crate) const WIDTH: usize = 3;
/// Rows of a glyph.
pub(crate) const HEIGHT: usize = 5;

/// The rows of a glyph, top first, the left dot being the highest of three bits. Small letters look like large ones; what
/// has no glyph is a box.
pub(crate) fn rows(c: char) -> [u8; HEIGHT] {
    let glyph: u16 = match c.to_ascii_uppercase() {
        ' ' => 0o00000,
        '0' => 0o75557,
        '1' => 0o26227,
        '2' => 0o71747,
        '3' => 0o71317,
        '4' => 0o55711,
        '5' => 0o74717,
        '6' => 0o74757,
        '7' => 0o71122,
        '8' => 0o75757,
        '9' => 0o75717,
        'A' => 0o25755,
        'B' => 0o65656,
        'C' => 0o34443,
        'D' => 0o65556,
        'E' => 0o74647,
        'F' => 0o74644,
        'G' => 0o34553,
        'H' => 0o55755,
        'I' => 0o72227,
        'J' => 0o11152,
        'K' => 0o55655,
        'L' => 0o44447,
        'M' => 0o57755,
        'N' => 0o65555,
        'O' => 0o25552,
        'P' => 0o65644,
        'Q' => 0o25563,
        'R' => 0o65655,
        'S' => 0o34216,
        'T' => 0o72222,
        'U' => 0o55557,
        'V' => 0o55552,
        'W' => 0o55775,
        'X' => 0o55255,
        'Y' => 0o55222,
        'Z' => 0o71247,
        '.' => 0o00002,
        ',' => 0o00024,
        ':' => 0o02020,
        '-' => 0o00700,
        '_' => 0o00007,
        '+' => 0o02720,
        '/' => 0o11244,
        '%' => 0o51245,
        '#' => 0o57575,
        '(' => 0o12221,
        ')' => 0o42224,
        '\'' => 0o22000,
        '&' => 0o25257,
        _ => 0o77777,
    };
    std::array::from_fn(|row| (glyph >> (3 * (HEIGHT - 1 - row)) & 7) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_digits_are_all_different() {
        let known: Vec<char> = ('A'..='Z').chain('0'..='9').collect();
        for (i, &a) in known.iter().enumerate() {
            assert_eq!(rows(a), rows(a.to_ascii_lowercase()));
            for &b in &known[..i] {
                assert_ne!(rows(a), rows(b), "{a} looks like {b}");
            }
        }
        assert_eq!(rows('L'), [4, 4, 4, 4, 7]);
        assert_eq!(rows('é'), [7; 5]);
    }
}
