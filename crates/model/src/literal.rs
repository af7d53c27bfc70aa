//! Python literals, as exporters write them into metadata with `str()`: `{0: 'person', 1: "driver's"}`, `[640, 640]`.
//! Just enough of the language, read as data; lists and objects of JSON are literals too.

use std::str::CharIndices;

/// A value of a Python literal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Int(i64),
    Str(String),
    List(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
}

/// Reads one literal; `None` for anything that is not wholly understood.
pub(crate) fn parse(text: &str) -> Option<Literal> {
    let mut reader = Reader { rest: text.trim(), depth: 0 };
    let value = reader.value()?;
    reader.rest.trim().is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
    depth: u32,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Literal> {
        self.depth += 1;
        if self.depth > 8 {
            return None;
        }
        self.rest = self.rest.trim_start();
        let value = match self.rest.chars().next()? {
            '{' => self.dict(),
            '[' => self.list(']'),
            '(' => self.list(')'),
            '\'' | '"' => self.string().map(Literal::Str),
            _ => self.int(),
        };
        self.depth -= 1;
        value
    }

    fn eat(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn list(&mut self, close: char) -> Option<Literal> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(self.value()?);
            if !self.eat(',') {
                return self.eat(close).then_some(Literal::List(items));
            }
        }
        Some(Literal::List(items))
    }

    fn dict(&mut self) -> Option<Literal> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        while !self.eat('}') {
            let key = self.value()?;
            if !self.eat(':') {
                return None;
            }
            items.push((key, self.value()?));
            if !self.eat(',') {
                return self.eat('}').then_some(Literal::Dict(items));
            }
        }
        Some(Literal::Dict(items))
    }

    fn string(&mut self) -> Option<String> {
        let mut chars = self.rest.char_indices();
        let (_, quote) = chars.next()?;
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => text.push(escaped(&mut chars)?),
                c if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Some(text);
                }
                c => text.push(c),
            }
        }
        None
    }

    fn int(&mut self) -> Option<Literal> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().ok().map(Literal::Int)
    }
}

/// The character that an escape stands for, in Python or in JSON.
fn escaped(chars: &mut CharIndices<'_>) -> Option<char> {
    Some(match chars.next()?.1 {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        c @ ('\\' | '\'' | '"' | '/') => c,
        'x' => char::from_u32(number(chars, 2)?)?,
        'U' => char::from_u32(number(chars, 8)?)?,
        'u' => match number(chars, 4)? {
            // JSON writes what does not fit into 16 bits as two halves.
            high @ 0xd800..0xdc00 => {
                let low = (chars.next()?.1 == '\\' && chars.next()?.1 == 'u').then(|| number(chars, 4)).flatten()?;
                let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?
            }
            code => char::from_u32(code)?,
        },
        _ => return None,
    })
}

/// A number of so many hexadecimal digits.
fn number(chars: &mut CharIndices<'_>, digits: u32) -> Option<u32> {
    (0..digits).try_fold(0u32, |number, _| Some((number << 4) | chars.next()?.1.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_with_quotes_are_read() {
        let names = parse(r#"{0: 'person', 1: "driver's mate", 2: 'a\'b'}"#);
        let entry = |i, s: &str| (Literal::Int(i), Literal::Str(s.into()));
        assert_eq!(names, Some(Literal::Dict(vec![entry(0, "person"), entry(1, "driver's mate"), entry(2, "a'b")])));
    }

    #[test]
    fn what_is_not_understood_is_nothing() {
        for text in ["", "[640", "{0: }", "lambda: 1", "[1] 2", "{0 1}", "'open"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"[".repeat(10_000)), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,64}") {
            let _ = parse(&text);
        }

        #[test]
        fn lists_of_integers_come_back(items in prop::collection::vec(any::<i64>(), 0..8)) {
            let read = parse(&format!("{items:?}"));
            prop_assert_eq!(read, Some(Literal::List(items.into_iter().map(Literal::Int).collect())));
        }
    }
}
