//! Rust sources as words and signs: enough to follow paths, and nothing of what comments, strings and tests say.

/// A word, a sign (`::` is one) or a string with its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// What is compiled outside tests.
pub(crate) fn tokens_of(text: &str) -> Vec<Token> {
    without_tests(&all_tokens(text))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn all_tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let (mut tokens, mut i, mut line) = (Vec::new(), 0, 1);
    while i < chars.len() {
        let start = i;
        let kept = match chars[i] {
            '/' if at(i + 1) == '/' => {
                i += chars[i..].iter().take_while(|&&c| c != '\n').count();
                false
            }
            '/' if at(i + 1) == '*' => {
                i = end_of_comment(&chars, i);
                false
            }
            '"' => {
                i = end_of_string(&chars, i);
                true
            }
            '\'' => {
                i = end_of_char(&chars, i);
                false
            }
            c if is_word(c) => {
                i += chars[i..].iter().take_while(|&&c| is_word(c)).count();
                let word: String = chars[start..i].iter().collect();
                let hashes = chars[i..].iter().take_while(|&&c| c == '#').count();
                match word.as_str() {
                    "r" | "br" | "cr" if at(i + hashes) == '"' => {
                        i = end_of_raw_string(&chars, i + hashes, hashes);
                        false
                    }
                    // A raw identifier is the identifier.
                    "r" if hashes == 1 && is_word(at(i + 1)) => {
                        i += 1;
                        false
                    }
                    "b" | "c" if matches!(at(i), '"' | '\'') => false,
                    _ => true,
                }
            }
            ':' if at(i + 1) == ':' => {
                i += 2;
                true
            }
            c => {
                i += 1;
                !c.is_whitespace()
            }
        };
        if kept {
            tokens.push(Token { text: chars[start..i].iter().collect(), line });
        }
        line += chars[start..i].iter().filter(|&&c| c == '\n').count();
    }
    tokens
}

/// Comments can be nested.
fn end_of_comment(chars: &[char], start: usize) -> usize {
    let (mut depth, mut i) = (0, start);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) if depth == 1 => return i + 2,
            ('*', Some('/')) => depth -= 1,
            _ => {
                i += 1;
                continue;
            }
        }
        i += 2;
    }
    i
}

fn end_of_string(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    chars.len().min(i + 1)
}

fn end_of_raw_string(chars: &[char], quote: usize, hashes: usize) -> usize {
    let ends =
        |i: usize| chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes;
    (quote + 1..chars.len()).find(|&i| ends(i)).map_or(chars.len(), |i| i + 1 + hashes)
}

/// The end of `'x'` or `'\n'`; of the quote alone where it begins a lifetime.
fn end_of_char(chars: &[char], start: usize) -> usize {
    match chars.get(start + 1) {
        Some('\\') => (start + 3..chars.len()).find(|&i| chars[i] == '\'').map_or(chars.len(), |i| i + 1),
        _ if chars.get(start + 2) == Some(&'\'') => start + 3,
        _ => start + 1,
    }
}

/// Whether the tokens go on with these.
pub(crate) fn follows(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len() && tokens.iter().zip(words).all(|(token, word)| token.text == *word)
}

/// The position after the bracket that closes the one at the start.
pub(crate) fn end_of_group(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 1 => return i + 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let rest = &tokens[i..];
        if follows(rest, &["#", "!", "[", "cfg", "(", "test", ")"]) {
            return Vec::new();
        }
        let is_test = follows(rest, &["#", "[", "cfg", "(", "test", ")"])
            || follows(rest, &["#", "[", "cfg", "(", "all", "(", "test"])
            || follows(rest, &["#", "[", "test", "]"]);
        if is_test {
            i = end_of_item(tokens, i);
        } else {
            kept.push(tokens[i].clone());
            i += 1;
        }
    }
    kept
}

/// The position after an item, a field or a statement with its attributes.
fn end_of_item(tokens: &[Token], start: usize) -> usize {
    let mut i = start;
    while follows(&tokens[i..], &["#", "["]) {
        i = end_of_group(tokens, i + 1);
    }
    let word = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    if word(i) == "pub" {
        i = if word(i + 1) == "(" { end_of_group(tokens, i + 1) } else { i + 1 };
    }
    let ends_with_brace = ["fn", "mod", "impl", "struct", "enum", "trait", "unsafe", "async", "extern", "macro_rules"];
    let ends_with_semicolon = ["use", "static", "type", "let"];
    let is_const_fn = word(i) == "const" && ["fn", "unsafe", "async", "extern"].contains(&word(i + 1));
    let by_brace = is_const_fn || ends_with_brace.contains(&word(i));
    let by_semicolon = !is_const_fn && (word(i) == "const" || ends_with_semicolon.contains(&word(i)));
    while i < tokens.len() {
        match word(i) {
            ";" => return i + 1,
            "," if !by_brace && !by_semicolon => return i + 1,
            "}" | ")" | "]" => return i,
            "{" if !by_semicolon => return end_of_group(tokens, i),
            "{" | "(" | "[" => i = end_of_group(tokens, i),
            _ => i += 1,
        }
    }
    i
}

#[test]
fn comments_strings_and_tests_are_left_out() {
    let texts = |code: &str| tokens_of(code).into_iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
    assert_eq!(texts("a /* b /* c */ d */ e // f\n/// [g](crate::g)\nh"), "a e h");
    assert_eq!(texts(r##"x(r#"a " b"#, b"c", 'd', '\'', '"', b'"', r#type)"##), r#"x ( , "c" , , , , , type )"#);
    assert_eq!(texts("fn f<'a>(x: &'a str) {}"), "fn f < a > ( x : & a str ) { }");
    assert_eq!(texts("#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\nmod a;"), "mod a ;");
    assert_eq!(texts("#[cfg(test)] pub(crate) use a::{b, c}; d"), "d");
    assert_eq!(texts("#[cfg(test)] const fn f<A, B>(a: [u8; 2]) { x; } d"), "d");
    assert_eq!(texts("#[cfg(test)] const A: B = B { c }; d"), "d");
    assert_eq!(texts("struct S { #[cfg(test)] pub a: B, c: D }"), "struct S { c : D }");
    assert_eq!(texts("#![cfg(test)] a"), "");
    assert_eq!(texts("#[cfg(not(test))] mod a;"), "# [ cfg ( not ( test ) ) ] mod a ;");
    assert_eq!(tokens_of("a\n\n\"x\ny\" b").last().map(|token| token.line), Some(4));
}
