//! As much of a URL as a download needs.

use std::fmt;
use std::str::FromStr;

use anyhow::bail;

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// `http://host:port/path?query`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub(super) scheme: Scheme,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// Path and query, from the slash on.
    pub(super) target: String,
}

impl FromStr for Url {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Url> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            _ => bail!("{}: not a URL that can be fetched; it must begin with http:// or https://", shown(text)),
        };
        if text.bytes().any(|b| b <= b' ' || b == 0x7F) {
            bail!("{}: a URL has no blanks; write them as %20", shown(text));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            bail!("{}://…: names and passwords in a URL are not sent", scheme.name());
        }
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = match port.filter(|port| !port.is_empty()).map(str::parse) {
            None => scheme.port(),
            Some(Ok(port)) => port,
            Some(Err(_)) => bail!("{}: its port is not a number", shown(text)),
        };
        if host.is_empty() {
            bail!("{}: names no host", shown(text));
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Url { scheme, host: host.to_owned(), port, target: format!("{slash}{target}") })
    }
}

/// As it is shown: without the query, which may hold a key.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.address()))
    }
}

/// A text that should be a URL, without what may be a secret and without control characters.
fn shown(text: &str) -> String {
    let text: String = text.chars().take(500).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    let (path, query) = match text.split_once('?') {
        Some((path, _)) => (path, "?…"),
        None => (text.as_str(), ""),
    };
    let (scheme, rest) = path.split_once("://").map_or(("", path), |(scheme, rest)| (scheme, rest));
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rsplit_once('@').map_or(rest[..end].to_owned(), |(_, host)| format!("…@{host}"));
    let colon = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{colon}{host}{}{query}", &rest[end..])
}

impl Url {
    /// The whole of it, for whoever fetches it.
    pub(super) fn address(&self) -> String {
        format!("{}://{}{}", self.scheme.name(), self.authority(), self.target)
    }

    /// Host and, where it is not the usual one, port.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Where a redirection leads.
    pub(super) fn join(&self, location: &str) -> anyhow::Result<Url> {
        if location.contains("://") {
            return location.parse();
        }
        if let Some(rest) = location.strip_prefix("//") {
            return format!("{}://{rest}", self.scheme.name()).parse();
        }
        let path = self.target.split('?').next().unwrap_or_default();
        let target = match location.chars().next() {
            Some('/') => location.to_owned(),
            Some('?') => format!("{path}{location}"),
            _ => format!("{}/{location}", path.rsplit_once('/').map_or("", |(folder, _)| folder)),
        };
        format!("{}://{}{target}", self.scheme.name(), self.authority()).parse()
    }

    /// What the file is to be called: the last part of the path.
    pub fn file_name(&self) -> anyhow::Result<String> {
        let path = self.target.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        let name = String::from_utf8(decoded(last)).unwrap_or_default();
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) || name.contains(char::is_control) {
            bail!("{self}: its path does not end in the name of a file");
        }
        Ok(name)
    }
}

/// `%20` as a blank.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| (*byte as char).to_digit(16)).map(|digit| digit as u8);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(high * 16 + low);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn parts_are_found() {
        let whole = url("HTTP://host:8080/a/b%20c.zip?x=1#top");
        assert_eq!((whole.host.as_str(), whole.port, whole.target.as_str()), ("host", 8080, "/a/b%20c.zip?x=1"));
        assert_eq!(whole.file_name().unwrap(), "b c.zip");
        assert_eq!(whole.address(), "http://host:8080/a/b%20c.zip?x=1");
        assert_eq!(url("https://host?x").address(), "https://host/?x");
        let six = url("http://[::1]:81/x");
        assert_eq!((six.host.as_str(), six.port, six.authority().as_str()), ("::1", 81, "[::1]:81"));
        for bad in [
            "ftp://x/y",
            "file:///etc/passwd",
            "scp://x/y",
            "/etc/passwd",
            "http:///x",
            "http://h:x/",
            "http://u:p@h/x",
            "http://h/a b",
            "http://h/\r\nX: y",
        ] {
            assert!(bad.parse::<Url>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_folder() {
        for bad in [
            "http://h/",
            "http://h/a/..",
            "http://h/..%2Fx",
            "http://h/%2e%2e",
            "http://h/a%00b",
            "http://h/.x",
            "http://h/%0a",
        ] {
            assert!(url(bad).file_name().is_err(), "{bad}");
        }
    }

    #[test]
    fn secrets_in_a_url_were_printed() {
        assert_eq!(url("https://h/x.zip?sig=secret").to_string(), "https://h/x.zip?…");
        for bad in [
            "ftp://me:secret@h/x",
            "http://me:secret@h:x/y",
            "http://me:secret@h/x y",
            "http://h/x y?key=secret",
            "file://me:secret@h/etc/passwd",
            "http://me:secret@h/x",
        ] {
            let error = bad.parse::<Url>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!("x\u{1b}[2J".parse::<Url>().unwrap_err().to_string().starts_with("x\u{FFFD}[2J: "));
    }

    #[test]
    fn redirections_lead_somewhere() {
        let from = url("http://h:81/a/b.zip?x=1");
        let cases = [
            ("https://other/c", "https://other/c"),
            ("//other/c", "http://other/c"),
            ("/c?y", "http://h:81/c?y"),
            ("c.zip", "http://h:81/a/c.zip"),
            ("?z=2", "http://h:81/a/b.zip?z=2"),
        ];
        for (location, expected) in cases {
            assert_eq!(from.join(location).unwrap().address(), expected);
        }
    }
}
