//! As much of YAML as a `data.yaml` uses: maps and lists in block and flow style, quoted and plain words, comments, and
//! block text (which some files have for a script, and nobody here runs). Anything else is an error with its line.

use std::iter::Peekable;
use std::str::Chars;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Yaml {
    /// Nothing after the colon, `null` or `~`.
    Null,
    /// A word, a number or a sentence.
    Text(String),
    /// `- a` or `[a, b]`.
    List(Vec<Yaml>),
    /// `a: b` or `{a: b}`, in the order of the file.
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    /// A value of a map; `null` is none.
    pub(super) fn get(&self, key: &str) -> Option<&Yaml> {
        let Yaml::Map(pairs) = self else { return None };
        pairs.iter().find(|(name, value)| name == key && *value != Yaml::Null).map(|(_, value)| value)
    }

    /// The words of a plain value.
    pub(super) fn text(&self) -> Option<&str> {
        if let Yaml::Text(text) = self { Some(text) } else { None }
    }
}

type Parsed<T> = Result<T, String>;

/// The map that a file holds, or the line and what is wrong there.
pub(super) fn parse(text: &str) -> Parsed<Yaml> {
    let mut reader = Reader { lines: text.trim_start_matches('\u{feff}').lines().collect(), next: 0 };
    match reader.peek()? {
        None => Ok(Yaml::Map(Vec::new())),
        Some(line) => {
            let value = reader.block(line.indent)?;
            match reader.peek()? {
                None => Ok(value),
                Some(line) => Err(format!("line {}: is indented less than its neighbours", line.number)),
            }
        }
    }
}

/// A line with something on it.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    next: usize,
}

impl<'a> Reader<'a> {
    /// The next line that says something.
    fn peek(&mut self) -> Parsed<Option<Line<'a>>> {
        while let Some(whole) = self.lines.get(self.next) {
            let text = without_comment(whole).trim_end();
            let body = text.trim_start_matches(' ');
            if body.starts_with('\t') {
                return Err(format!("line {}: is indented by a tab; use spaces", self.next + 1));
            }
            if body.is_empty() || body == "---" {
                self.next += 1;
                continue;
            }
            return Ok(Some(Line { number: self.next + 1, indent: text.len() - body.len(), text: body }));
        }
        Ok(None)
    }

    /// The map or list whose lines are indented by `indent`.
    fn block(&mut self, indent: usize) -> Parsed<Yaml> {
        let first = self.peek()?;
        if first.is_some_and(|line| item(line.text).is_some()) { self.list(indent) } else { self.map(indent) }
    }

    fn list(&mut self, indent: usize) -> Parsed<Yaml> {
        let mut items = Vec::new();
        while let Some(line) = self.peek()?.filter(|line| line.indent == indent) {
            let Some(rest) = item(line.text) else { break };
            if !rest.starts_with(['[', '{', '"', '\'']) && key(rest).is_some() {
                return Err(format!("line {}: a list of maps is not read here", line.number));
            }
            items.push(self.value(line, rest)?);
        }
        Ok(Yaml::List(items))
    }

    fn map(&mut self, indent: usize) -> Parsed<Yaml> {
        let mut pairs: Vec<(String, Yaml)> = Vec::new();
        while let Some(line) = self.peek()?.filter(|line| line.indent >= indent) {
            if line.indent > indent {
                return Err(format!("line {}: is indented more than its neighbours", line.number));
            }
            let Some((name, rest)) = key(line.text) else {
                return Err(format!("line {}: `{}` is neither `key: value` nor `- item`", line.number, line.text));
            };
            if pairs.iter().any(|(known, _)| *known == name) {
                return Err(format!("line {}: {name} is there twice", line.number));
            }
            let value = self.value(line, rest)?;
            pairs.push((name, value));
        }
        Ok(Yaml::Map(pairs))
    }

    /// What stands after `key:` or `-` on a line, or below it.
    fn value(&mut self, line: Line<'a>, rest: &'a str) -> Parsed<Yaml> {
        self.next += 1;
        match rest.chars().next() {
            None => {
                let below = self.peek()?;
                // A list may stand as far left as the key it belongs to.
                let deeper = |next: &Line<'_>| {
                    next.indent > line.indent
                        || (next.indent == line.indent && item(next.text).is_some() && item(line.text).is_none())
                };
                below.filter(deeper).map_or(Ok(Yaml::Null), |next| self.block(next.indent))
            }
            Some('|' | '>') => Ok(Yaml::Text(self.block_text(line.indent))),
            Some('[' | '{') => self.flow(line, rest),
            Some(mark @ ('&' | '*' | '!' | '?' | '%' | '@' | '`')) => {
                Err(format!("line {}: `{mark}` starts something that is not read here; write it out", line.number))
            }
            Some(_) => scalar(rest).map_err(|why| format!("line {}: {why}", line.number)),
        }
    }

    /// The lines below that are indented more, as they are.
    fn block_text(&mut self, indent: usize) -> String {
        let first = self.next;
        while let Some(line) = self.lines.get(self.next) {
            let body = line.trim_start_matches(' ');
            if !body.trim().is_empty() && line.len() - body.len() <= indent {
                break;
            }
            self.next += 1;
        }
        self.lines[first..self.next].join("\n")
    }

    /// A value in brackets, which may go on over lines.
    fn flow(&mut self, line: Line<'a>, rest: &str) -> Parsed<Yaml> {
        let mut whole = rest.to_owned();
        while !closed(&whole) {
            let Some(more) = self.lines.get(self.next) else {
                return Err(format!("line {}: a bracket is not closed", line.number));
            };
            whole.push(' ');
            whole += without_comment(more).trim();
            self.next += 1;
        }
        let mut chars = whole.chars().peekable();
        let value = flow_value(&mut chars).map_err(|why| format!("line {}: {why}", line.number))?;
        match chars.find(|c| !c.is_whitespace()) {
            None => Ok(value),
            Some(c) => Err(format!("line {}: `{c}` after the closing bracket", line.number)),
        }
    }
}

/// What comes after the dash of a list's item.
fn item(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('-')?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim_start())
}

/// A key and what comes after its colon.
fn key(text: &str) -> Option<(String, &str)> {
    let end = if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let close = text[1..].find(quote)? + 2;
        text[close..].trim_start().starts_with(':').then(|| close + text[close..].find(':').unwrap_or(0))?
    } else {
        text.match_indices(':').map(|(at, _)| at).find(|at| matches!(text.as_bytes().get(at + 1), None | Some(b' ')))?
    };
    let name = text[..end].trim().trim_matches(['"', '\'']).to_owned();
    Some((name, text[end + 1..].trim()))
}

/// A line up to its comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            // Only where a value may begin: an apostrophe inside a word is one.
            None if matches!(c, '"' | '\'') && matches!(before, ' ' | '[' | '{' | ',' | ':') => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return &line[..at],
            None => {}
        }
        before = c;
    }
    line
}

/// Whether every bracket that opens also closes.
fn closed(text: &str) -> bool {
    let mut depth = 0;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) => quote = if c == open { None } else { quote },
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if matches!(c, '[' | '{') => depth += 1,
            None if matches!(c, ']' | '}') => depth -= 1,
            None => {}
        }
    }
    depth <= 0
}

fn flow_value(chars: &mut Peekable<Chars<'_>>) -> Parsed<Yaml> {
    skip_blanks(chars);
    match chars.peek() {
        Some('[') => {
            chars.next();
            flow_items(chars, ']', flow_value).map(Yaml::List)
        }
        Some('{') => {
            chars.next();
            let pair = |chars: &mut Peekable<Chars<'_>>| {
                let name = flow_word(chars, true)?;
                skip_blanks(chars);
                if chars.next_if_eq(&':').is_none() {
                    return Err(format!("`{name}` has no value"));
                }
                Ok((name, flow_value(chars)?))
            };
            flow_items(chars, '}', pair).map(Yaml::Map)
        }
        Some('"' | '\'') => flow_word(chars, false).map(Yaml::Text),
        _ => flow_word(chars, false).map(plain),
    }
}

/// What stands between brackets, with commas between.
fn flow_items<T>(
    chars: &mut Peekable<Chars<'_>>,
    close: char,
    mut one: impl FnMut(&mut Peekable<Chars<'_>>) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let mut items = Vec::new();
    loop {
        skip_blanks(chars);
        if chars.next_if_eq(&close).is_some() {
            return Ok(items);
        }
        items.push(one(chars)?);
        skip_blanks(chars);
        match chars.next() {
            Some(',') => {}
            Some(c) if c == close => return Ok(items),
            Some(c) => return Err(format!("`{c}` where `,` or `{close}` was expected")),
            None => return Err("a bracket is not closed".to_owned()),
        }
    }
}

/// A word in brackets: quoted, or up to the next sign. A key also ends at its colon.
fn flow_word(chars: &mut Peekable<Chars<'_>>, is_key: bool) -> Parsed<String> {
    skip_blanks(chars);
    if let Some(quote) = chars.next_if(|c| matches!(c, '"' | '\'')) {
        let mut word = String::new();
        for c in chars.by_ref() {
            if c == quote {
                return Ok(word);
            }
            word.push(c);
        }
        return Err("a quote is not closed".to_owned());
    }
    let mut word = String::new();
    while let Some(c) = chars.next_if(|c| !(matches!(c, ',' | ']' | '}' | '[' | '{') || is_key && *c == ':')) {
        word.push(c);
    }
    let word = word.trim();
    if word.is_empty() { Err("a value is missing".to_owned()) } else { Ok(word.to_owned()) }
}

fn skip_blanks(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| c.is_whitespace()).is_some() {}
}

/// A value that is alone on its line.
fn scalar(text: &str) -> Parsed<Yaml> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return Ok(plain(text.to_owned()));
    };
    match text[1..].strip_suffix(quote) {
        Some(_) if quote == '"' && text.contains('\\') => Err(format!("{text}: escapes are not read here")),
        // Two apostrophes are one.
        Some(inner) if quote == '\'' => Ok(Yaml::Text(inner.replace("''", "'"))),
        Some(inner) => Ok(Yaml::Text(inner.to_owned())),
        None => Err(format!("{text}: a quote is not closed")),
    }
}

fn plain(text: String) -> Yaml {
    if matches!(text.as_str(), "~" | "null" | "Null" | "NULL") { Yaml::Null } else { Yaml::Text(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Yaml {
        Yaml::Text(text.to_owned())
    }

    #[test]
    fn what_a_data_yaml_uses_is_read() {
        let file = "\u{feff}# Ultralytics\n---\npath: ../datasets/coco8 # root\ntrain: images/train\nval:\n- a b\n- 'images/#2'\n\
            test:\n\nnames:\n  0: person\n  1: \"traffic light\"\n  2: driver's seat # really\ndownload: |\n  import os\n\n  x: [1\nnc: 3\n";
        let yaml = parse(file).unwrap();
        assert_eq!(yaml.get("path"), Some(&text("../datasets/coco8")));
        assert_eq!(yaml.get("val"), Some(&Yaml::List(vec![text("a b"), text("images/#2")])));
        assert_eq!(yaml.get("test"), None);
        let names = [("0", "person"), ("1", "traffic light"), ("2", "driver's seat")];
        let names = names.map(|(id, name)| (id.to_owned(), text(name))).to_vec();
        assert_eq!(yaml.get("names"), Some(&Yaml::Map(names)));
        assert_eq!(yaml.get("nc"), Some(&text("3")));
    }

    #[test]
    fn brackets_may_go_on_over_lines() {
        let yaml = parse("names: ['a, b', c d,\n   \"e\", # last\n  ]\nmap: {0: x, 1: 'y: z'}\nnone: []\n").unwrap();
        assert_eq!(yaml.get("names"), Some(&Yaml::List(vec![text("a, b"), text("c d"), text("e")])));
        let map = vec![("0".to_owned(), text("x")), ("1".to_owned(), text("y: z"))];
        assert_eq!(yaml.get("map"), Some(&Yaml::Map(map)));
        assert_eq!(yaml.get("none"), Some(&Yaml::List(Vec::new())));
    }

    #[test]
    fn what_is_not_read_is_named_with_its_line() {
        let cases = [
            ("a: 1\nb: &x 2\n", "line 2: `&`"),
            ("a: 1\nb\n", "line 2: `b` is neither"),
            ("a: [1, 2\nb: 3\n", "line 1: a bracket is not closed"),
            ("a:\n\tb: 1\n", "line 2: is indented by a tab"),
            ("a: 1\n  b: 2\n", "line 2: is indented more"),
            ("  a: 1\nb: 2\n", "line 2: is indented less"),
            ("a: 1\na: 2\n", "line 2: a is there twice"),
            ("a: 'x\n", "line 1: 'x: a quote is not closed"),
            ("a:\n- b: 1\n", "line 2: a list of maps"),
            ("a: [b}]\n", "line 1: `}` where"),
            ("a: \"x\\ty\"\n", "escapes are not read"),
        ];
        for (file, expected) in cases {
            let error = parse(file).unwrap_err();
            assert!(error.contains(expected), "{file:?}: {error}");
        }
    }
}
