//! A scanner over JSON that allocates nothing and steps over what nobody asked for.
//!
//! It reads what Python reads: JSON, and the names `NaN`, `Infinity` and `-Infinity` where a number may stand. Inside of a
//! value that is stepped over only strings and brackets are checked.

use std::borrow::Cow;

/// Where the text stops being JSON, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) reason: String,
}

type Scanned<T> = Result<T, Fault>;

/// Powers of ten that a double holds exactly.
const EXACT_TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Whole numbers up to here are exact as doubles.
const EXACT: u64 = 1 << 53;

#[derive(Clone)]
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Scanner<'a> {
        // A byte order mark is no part of the text.
        Scanner { bytes, at: if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 } }
    }

    pub(super) fn starting_at(bytes: &'a [u8], at: usize) -> Scanner<'a> {
        Scanner { bytes, at }
    }

    pub(super) fn fault<T>(&self, reason: impl Into<String>) -> Scanned<T> {
        Err(Fault { at: self.at, reason: reason.into() })
    }

    /// The next byte that is no white space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b) = self.bytes.get(self.at).copied() {
            if !matches!(b, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(b);
            }
            self.at += 1;
        }
        None
    }

    /// Takes this byte or says what is there instead.
    pub(super) fn expect(&mut self, wanted: u8, place: &str) -> Scanned<()> {
        match self.peek() {
            Some(b) if b == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(b) => {
                self.fault(format!("`{}` instead of `{}` {place}", char::from(b).escape_default(), char::from(wanted)))
            }
            None => self.fault(format!("the file ends where `{}` should stand {place}", char::from(wanted))),
        }
    }

    /// Nothing but white space is left.
    pub(super) fn end(&mut self) -> Scanned<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fault("something follows after the end"),
        }
    }

    /// Each element of an array; `each` takes exactly one value.
    pub(super) fn array(&mut self, mut each: impl FnMut(&mut Self) -> Scanned<()>) -> Scanned<()> {
        self.expect(b'[', "at the start of a list")?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            each(self)?;
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(());
            }
            self.expect(b',', "in a list")?;
        }
    }

    /// Each field of an object; `each` gets the name and takes exactly one value.
    pub(super) fn object(&mut self, mut each: impl FnMut(&mut Self, &[u8]) -> Scanned<()>) -> Scanned<()> {
        self.expect(b'{', "at the start of an object")?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let raw = self.raw_string("as the name of a field")?;
            if raw.contains(&b'\\') {
                let name = self.unescaped(raw)?;
                self.expect(b':', "after the name of a field")?;
                each(self, name.as_bytes())?;
            } else {
                self.expect(b':', "after the name of a field")?;
                each(self, raw)?;
            }
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(());
            }
            self.expect(b',', "in an object")?;
        }
    }

    /// What stands between the quotes, as it is written.
    fn raw_string(&mut self, place: &str) -> Scanned<&'a [u8]> {
        self.expect(b'"', place)?;
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(&self.bytes[start..self.at - 1]);
                }
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => {
                    self.at = start - 1;
                    return self.fault("a text without an end");
                }
            }
        }
    }

    fn unescaped(&self, raw: &'a [u8]) -> Scanned<Cow<'a, str>> {
        if !raw.contains(&b'\\') {
            return match str::from_utf8(raw) {
                Ok(text) => Ok(Cow::Borrowed(text)),
                Err(_) => self.fault("the text before this is not UTF-8"),
            };
        }
        let quoted = [b"\"", raw, b"\""].concat();
        match serde_json::from_slice::<String>(&quoted) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(_) => self.fault("the text before this has a broken escape"),
        }
    }

    /// A text; `None` where the value is something else, which is stepped over.
    pub(super) fn text(&mut self) -> Scanned<Option<String>> {
        if self.peek() != Some(b'"') {
            return self.skip().map(|()| None);
        }
        let raw = self.raw_string("as a text")?;
        self.unescaped(raw).map(|text| Some(text.into_owned()))
    }

    /// A number; `None` where the value is something else, which is stepped over.
    pub(super) fn number(&mut self) -> Scanned<Option<f64>> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => self.digits().map(|n| Some(n.value)),
            _ => self.skip().map(|()| None),
        }
    }

    /// A whole number; `None` where the value is something else, which is stepped over.
    pub(super) fn id(&mut self) -> Scanned<Option<i64>> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => {
                let number = self.digits()?;
                let whole = number.value.fract() == 0.0 && number.value.abs() < EXACT as f64;
                Ok(number.whole.or(whole.then_some(number.value as i64)))
            }
            _ => self.skip().map(|()| None),
        }
    }

    /// True, or a number that is not 0; everything else is false, as it is in Python.
    pub(super) fn truth(&mut self) -> Scanned<bool> {
        match self.peek() {
            Some(b't') => self.name("true").map(|()| true),
            _ => self.number().map(|n| n.is_some_and(|n| n != 0.0)),
        }
    }

    /// Four numbers; `None` where the value is something else, which is stepped over.
    pub(super) fn four(&mut self) -> Scanned<Option<[f64; 4]>> {
        if self.peek() != Some(b'[') {
            return self.skip().map(|()| None);
        }
        let mut values = [0.0; 4];
        let mut found = 0;
        let mut others = 0;
        self.array(|s| {
            match (s.number()?, values.get_mut(found)) {
                (Some(n), Some(place)) => {
                    *place = n;
                    found += 1;
                }
                _ => others += 1,
            }
            Ok(())
        })?;
        Ok((found == 4 && others == 0).then_some(values))
    }

    fn name(&mut self, name: &str) -> Scanned<()> {
        if self.bytes[self.at..].starts_with(name.as_bytes()) {
            self.at += name.len();
            return Ok(());
        }
        self.fault("no JSON value starts like this")
    }

    fn digits(&mut self) -> Scanned<Number> {
        let start = self.at;
        let negative = self.bytes.get(self.at) == Some(&b'-');
        self.at += usize::from(negative);
        let sign = if negative { -1.0 } else { 1.0 };
        match self.bytes.get(self.at) {
            Some(b'I') => return self.name("Infinity").map(|()| Number::inexact(sign * f64::INFINITY)),
            Some(b'N') if !negative => return self.name("NaN").map(|()| Number::inexact(f64::NAN)),
            _ => {}
        }
        let mut mantissa = 0u64;
        let whole = self.run_of_digits(&mut mantissa)?;
        if whole > 1 && self.bytes[self.at - whole] == b'0' {
            self.at -= whole;
            return self.fault("a number starts with 0");
        }
        let mut fraction = 0;
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            fraction = self.run_of_digits(&mut mantissa)?;
        }
        let exponent = matches!(self.bytes.get(self.at), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            self.run_of_digits(&mut 0)?;
        }
        // Below 20 digits the sum has not overflowed; two exact doubles divide to the nearest one, as a parser would.
        let short = whole + fraction < 20 && !exponent;
        if short && mantissa < EXACT && fraction < EXACT_TENS.len() {
            let value = sign * (mantissa as f64 / EXACT_TENS[fraction]);
            let whole = (fraction == 0).then_some(mantissa as i64 * if negative { -1 } else { 1 });
            return Ok(Number { value, whole });
        }
        let text = str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        match text.parse() {
            Ok(value) => Ok(Number { value, whole: text.parse().ok() }),
            Err(_) => self.fault("the number before this cannot be read"),
        }
    }

    /// How many digits there are, at least one; they go on with `mantissa`.
    fn run_of_digits(&mut self, mantissa: &mut u64) -> Scanned<usize> {
        let start = self.at;
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(self.at) {
            *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start { self.fault("a digit is missing here") } else { Ok(self.at - start) }
    }

    /// Steps over one value.
    pub(super) fn skip(&mut self) -> Scanned<()> {
        match self.peek() {
            Some(b'"') => self.raw_string("as a text").map(|_| ()),
            Some(b'{' | b'[') => self.skip_nested(),
            Some(b't') => self.name("true"),
            Some(b'f') => self.name("false"),
            Some(b'n') => self.name("null"),
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => self.digits().map(|_| ()),
            Some(_) => self.fault("no JSON value starts like this"),
            None => self.fault("the file ends where a value should stand"),
        }
    }

    /// Steps over a list or an object by its brackets: a bit a level says which kind is open.
    fn skip_nested(&mut self) -> Scanned<()> {
        let start = self.at;
        let (mut kinds, mut depth) = (0u128, 0u32);
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.raw_string("as a text")?;
                    continue;
                }
                Some(&b @ (b'{' | b'[')) if depth < u128::BITS => {
                    kinds = kinds << 1 | u128::from(b == b'{');
                    depth += 1;
                }
                Some(b'{' | b'[') => return self.fault("lists and objects are nested too deeply"),
                Some(&b @ (b'}' | b']')) => {
                    if (kinds & 1 == 1) != (b == b'}') {
                        return self.fault(format!("`{}` closes what another bracket opened", char::from(b)));
                    }
                    kinds >>= 1;
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Ok(());
                    }
                }
                Some(_) => {}
                None => {
                    self.at = start;
                    return self.fault("a list or an object without an end");
                }
            }
            self.at += 1;
        }
    }
}

struct Number {
    value: f64,
    /// Where it is written as a whole number that fits.
    whole: Option<i64>,
}

impl Number {
    fn inexact(value: f64) -> Number {
        Number { value, whole: None }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
