//! What a server says about a file before it sends it.

use super::part::Stamp;

/// The lines between status and body.
#[derive(Clone, Debug, Default)]
pub(super) struct Headers(Vec<(String, String)>);

impl Headers {
    /// From lines such as `ETag: "x"`; others are passed over.
    pub(super) fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> Headers {
        let pair = |line: &'a str| {
            line.split_once(':').map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        };
        Headers(lines.filter_map(pair).collect())
    }

    /// A value; names in lower case.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn content_length(&self) -> Option<u64> {
        self.get("content-length")?.parse().ok()
    }

    /// `Content-Range: bytes 5-9/10`, or `bytes */10`: where it begins, and how long the whole is.
    pub(super) fn content_range(&self) -> (Option<u64>, Option<u64>) {
        let Some(range) = self.get("content-range").and_then(|value| value.strip_prefix("bytes ")) else {
            return (None, None);
        };
        let (span, total) = range.split_once('/').unwrap_or((range, ""));
        let begin = span.split_once('-').and_then(|(begin, _)| begin.trim().parse().ok());
        (begin, total.trim().parse().ok())
    }

    pub(super) fn is_chunked(&self) -> bool {
        self.get("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"))
    }

    /// Which version of the file this is. `total` is the length of the whole.
    pub(super) fn stamp(&self, url: &str, total: Option<u64>) -> Stamp {
        let text = |name| self.get(name).map(str::to_owned);
        Stamp { url: url.to_owned(), etag: text("etag"), last_modified: text("last-modified"), total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lengths_are_read() {
        let headers = Headers::parse("CONTENT-LENGTH:  5\r\nContent-Range: bytes 5-9/10\r\nnonsense\r\n".lines());
        assert_eq!((headers.content_length(), headers.content_range()), (Some(5), (Some(5), Some(10))));
        let unmet = Headers::parse("Content-Range: bytes */10".lines());
        assert_eq!(unmet.content_range(), (None, Some(10)));
        let unknown = Headers::parse("content-range: bytes 5-9/*\ntransfer-encoding: Chunked".lines());
        assert_eq!((unknown.content_range(), unknown.is_chunked()), ((Some(5), None), true));
    }
}
