//! What a server says about a file before it sends it, as curl and wget print it, and what follows from that.

use super::part::Stamp;
use super::tool::Program;
use super::url::Url;

/// The last answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// `404 Not Found`.
    pub(super) words: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// Something that no honest server sends.
    strange: Option<&'static str>,
}

/// What a tool has printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) answer: Option<Answer>,
    /// Whether the headers have an end already; wget prints none.
    pub(super) whole: bool,
    /// The tool's own last words.
    pub(super) words: String,
}

/// What to do with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The file is coming, or the rest of it.
    File(Stamp),
    /// There is no rest: all of it is there.
    Complete,
    /// It is elsewhere.
    Moved(Url),
    /// What is there of it cannot be continued.
    Restart(&'static str),
    /// Another attempt may help.
    Retry(String),
    /// Nothing helps.
    Refused(String),
}

/// Reads what a tool has printed to stderr so far.
pub(super) fn heard(program: Program, text: &str) -> Heard {
    let mut heard = Heard::default();
    let mut inside = false;
    for line in text.lines() {
        // Wget indents what the server says by two blanks.
        let (said, own) = match program {
            Program::Curl => (Some(line), line.starts_with("curl: ")),
            Program::Wget => (line.strip_prefix("  "), !line.starts_with("  ")),
        };
        match said.filter(|_| !own) {
            Some(said) if said.starts_with("HTTP/") => {
                heard.answer = first_line(said);
                (inside, heard.whole) = (true, false);
            }
            Some(said) if inside && !said.trim().is_empty() => {
                heard.answer.iter_mut().for_each(|answer| answer.take(said));
            }
            Some(_) if inside => {
                // What goes before the answer proper, such as 100, has an end of its own.
                (inside, heard.whole) = (false, heard.answer.as_ref().is_some_and(|answer| answer.status >= 200));
            }
            Some(_) => {}
            None => {
                inside = false;
                let own = line.trim();
                if !own.is_empty() {
                    heard.words = clean(own);
                }
            }
        }
    }
    heard.answer = heard.answer.filter(|answer| answer.status >= 200);
    heard
}

/// `HTTP/1.1 404 Not Found`, `HTTP/2 200`.
fn first_line(line: &str) -> Option<Answer> {
    let words = line.split_once(' ')?.1.trim();
    let status = words.get(..3)?.parse().ok()?;
    Some(Answer { status, words: clean(words), headers: Vec::new(), strange: None })
}

/// A text of somebody else's on our terminal.
fn clean(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect()
}

impl Answer {
    fn take(&mut self, line: &str) {
        match line.split_once(':') {
            _ if line.starts_with([' ', '\t']) => self.strange = Some("a header that goes over two lines"),
            Some((name, value)) => self.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned())),
            None => self.strange = Some("a header without a name"),
        }
    }

    fn get(&self, name: &'static str) -> Option<&str> {
        self.all(name).next()
    }

    fn all(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The length of what follows.
    fn length(&self) -> Result<Option<u64>, String> {
        let mut lengths: Vec<&str> = self.all("content-length").flat_map(|all| all.split(',')).map(str::trim).collect();
        lengths.dedup();
        match lengths.as_slice() {
            [] => Ok(None),
            [length] if length.bytes().all(|b| b.is_ascii_digit()) => {
                length.parse().map(Some).map_err(|_| format!("the server says that it has {} bytes", clean(length)))
            }
            [length] => Err(format!("the server gives its length as `{}`", clean(length))),
            _ => Err("the server gives two lengths for it".to_owned()),
        }
    }

    /// That the bytes are those of the file, and that their end can be told.
    fn check(&self) -> Result<(), String> {
        if let Some(strange) = self.strange {
            return Err(format!("the server sends {strange}"));
        }
        if let Some(encoding) = self.all("content-encoding").find(|value| !value.eq_ignore_ascii_case("identity")) {
            return Err(format!("the server sends it encoded ({}), which was not asked for", clean(encoding)));
        }
        let encodings: Vec<&str> = self.all("transfer-encoding").collect();
        if let Some(encoding) = encodings.iter().find(|value| !value.eq_ignore_ascii_case("chunked")) {
            return Err(format!("the server sends it encoded ({}), which was not asked for", clean(encoding)));
        }
        if !encodings.is_empty() && self.get("content-length").is_some() {
            return Err("the server gives two lengths for it: chunks and Content-Length".to_owned());
        }
        Ok(())
    }

    /// `Content-Range: bytes 5-9/10`, or `bytes */10`: where it begins and ends, and how long the whole is.
    fn range(&self) -> Option<(Option<(u64, u64)>, u64)> {
        let (span, total) = self.get("content-range")?.strip_prefix("bytes ")?.split_once('/')?;
        let span =
            span.split_once('-').and_then(|(from, to)| Some((from.trim().parse().ok()?, to.trim().parse().ok()?)));
        Some((span, total.trim().parse().ok()?))
    }

    fn stamp(&self, asked: &Url, total: Option<u64>) -> Stamp {
        let text = |name| self.get(name).map(str::to_owned).filter(|text| !text.is_empty());
        Stamp::new(asked, text("etag"), text("last-modified"), total)
    }

    /// What to do. `asked` is the address that the user gave, `at` the one that answered, `before` what is there already,
    /// and how much of it.
    pub(super) fn judge(&self, asked: &Url, at: &Url, before: Option<(&Stamp, u64)>) -> Verdict {
        match self.decide(asked, at, before) {
            Ok(verdict) => verdict,
            Err(reason) => Verdict::Refused(reason),
        }
    }

    fn decide(&self, asked: &Url, at: &Url, before: Option<(&Stamp, u64)>) -> Result<Verdict, String> {
        match (self.status, before) {
            (301 | 302 | 303 | 307 | 308, _) => {
                let to = self.get("location").ok_or("the server redirects, and does not say where to")?;
                Ok(Verdict::Moved(at.join(to).map_err(|error| format!("the server redirects to {error:#}"))?))
            }
            (200, None) => {
                self.check()?;
                Ok(Verdict::File(self.stamp(asked, self.length()?)))
            }
            (200, Some(_)) => Ok(Verdict::Restart("has changed, or cannot be resumed")),
            (206, Some((older, have))) => {
                self.check()?;
                let Some((Some((from, to)), total)) = self.range() else {
                    return Err("the server sends a part of it and does not say which".to_owned());
                };
                let length = self.length()?;
                let stamp = self.stamp(asked, Some(total));
                if from != have || !older.is_continued_by(&stamp) {
                    return Ok(Verdict::Restart("has changed"));
                }
                if to.checked_add(1) != Some(total)
                    || length.is_some_and(|length| have.checked_add(length) != Some(total))
                {
                    return Err("the server sends another part of it than was asked for".to_owned());
                }
                Ok(Verdict::File(stamp))
            }
            (206, None) => Err("the server sends a part of it, and the whole was asked for".to_owned()),
            (416, Some((older, have))) => match self.range() {
                Some((_, total)) if total == have && older.is_continued_by(&self.stamp(asked, Some(total))) => {
                    Ok(Verdict::Complete)
                }
                _ => Ok(Verdict::Restart("has changed")),
            },
            (429 | 500..=599, _) => Ok(Verdict::Retry(format!("the server says {}", self.words))),
            _ => Err(format!("the server says {}", self.words)),
        }
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
