//! HTTP/1.1 over a plain connection: one GET, one answer.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use super::headers::Headers;
use super::url::Url;
use crate::run::Interrupt;
use crate::version::VERSION;

const CONNECT: Duration = Duration::from_secs(15);
/// Longest silence of a server.
const SILENCE: Duration = Duration::from_secs(60);
/// How often a wait looks up whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(200);
/// Most bytes of status and headers.
const MAX_HEAD: u64 = 64 << 10;

/// The end of a file that is wanted.
pub(super) struct Rest<'a> {
    pub(super) from: u64,
    /// Only if the file is still this version; the whole otherwise.
    pub(super) condition: Option<&'a str>,
}

/// A server's answer, with the body still to come.
pub(super) struct Answer {
    pub(super) status: u16,
    /// `404 Not Found`.
    pub(super) words: String,
    pub(super) headers: Headers,
    pub(super) body: Body,
}

/// A connection that is read with patience, but not without end.
struct Wire {
    stream: TcpStream,
    interrupt: Interrupt,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        loop {
            match self.stream.read(buffer) {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                got => return got,
            }
            if self.interrupt.asked() {
                return Err(io::Error::other("asked to stop"));
            }
            if begun.elapsed() > SILENCE {
                let silence = format!("the server was silent for {} s", SILENCE.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, silence));
            }
        }
    }
}

/// Sends a request and reads the answer up to its body.
pub(super) fn get(url: &Url, rest: Option<&Rest<'_>>, interrupt: &Interrupt) -> io::Result<Answer> {
    let mut stream = connect(url)?;
    stream.set_read_timeout(Some(GLANCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: prony/{VERSION}\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n",
        url.target,
        url.authority()
    );
    if let Some(rest) = rest {
        request += &format!("Range: bytes={}-\r\n", rest.from);
        if let Some(condition) = rest.condition {
            request += &format!("If-Range: {condition}\r\n");
        }
    }
    stream.write_all((request + "\r\n").as_bytes())?;
    let mut wire = BufReader::with_capacity(256 << 10, Wire { stream, interrupt: interrupt.clone() });
    let head = head(&mut wire)?;
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let words =
        first.split_once(' ').filter(|(version, _)| version.starts_with("HTTP/1.")).map(|(_, words)| words.trim());
    let status = words.and_then(|words| words.get(..3)?.parse().ok());
    let (Some(words), Some(status)) = (words, status) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"));
    };
    let headers = Headers::parse(lines);
    let extent = if headers.is_chunked() {
        Extent::Chunk { left: 0, first: true }
    } else {
        headers.content_length().map_or(Extent::UntilClosed, Extent::Left)
    };
    Ok(Answer { status, words: words.to_owned(), headers, body: Body { wire, extent } })
}

fn connect(url: &Url) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Everything up to the empty line.
fn head(wire: &mut BufReader<Wire>) -> io::Result<String> {
    let mut head = Vec::new();
    loop {
        let before = head.len();
        let left = MAX_HEAD.saturating_sub(before as u64);
        wire.by_ref().take(left).read_until(b'\n', &mut head)?;
        if !head.ends_with(b"\n") {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer ends within its headers"));
        }
        if head[before..].trim_ascii().is_empty() && before > 0 {
            return Ok(String::from_utf8_lossy(&head).into_owned());
        }
    }
}

/// How far a body goes.
enum Extent {
    /// So many bytes.
    Left(u64),
    /// Pieces with their lengths.
    Chunk {
        left: u64,
        first: bool,
    },
    /// To the end of the connection, wherever that is.
    UntilClosed,
    Done,
}

/// The bytes of a file as they come. A connection that ends too early is an error.
pub(super) struct Body {
    wire: BufReader<Wire>,
    extent: Extent,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Extent::Chunk { left: 0, first } = self.extent {
            let length = self.chunk_length(first)?;
            self.extent = if length == 0 { Extent::Done } else { Extent::Chunk { left: length, first: false } };
        }
        let left = match self.extent {
            Extent::Left(0) | Extent::Done => return Ok(0),
            Extent::UntilClosed => return self.wire.read(buffer),
            Extent::Left(left) | Extent::Chunk { left, .. } => left,
        };
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let got = self.wire.read(&mut buffer[..most])?;
        if got == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was cut"));
        }
        if let Extent::Left(left) | Extent::Chunk { left, .. } = &mut self.extent {
            *left -= got as u64;
        }
        Ok(got)
    }
}

impl Body {
    fn chunk_length(&mut self, first: bool) -> io::Result<u64> {
        if !first {
            // The end of the line after the last piece.
            self.line()?;
        }
        let line = self.line()?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(digits, 16).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a piece has no length"))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.wire.by_ref().take(1 << 10).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was cut"));
        }
        Ok(String::from_utf8_lossy(&line).trim().to_owned())
    }
}
