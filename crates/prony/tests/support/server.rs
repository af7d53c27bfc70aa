//! A small HTTP server on loopback that does as it is told, also wrong.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a client asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Where `Range` begins.
    pub(crate) from: Option<usize>,
    pub(crate) if_range: Option<String>,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What to send back.
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    /// Stay silent afterwards, until the client goes, instead of closing.
    pub(crate) hold: bool,
}

/// An answer as it should be.
pub(crate) fn reply(status: &str, headers: &str, body: &[u8]) -> Reply {
    let mut bytes = format!("HTTP/1.1 {status}\r\n{headers}\r\n").into_bytes();
    bytes.extend(body);
    Reply { bytes, hold: false }
}

/// A server that ends with the test.
pub(crate) struct Server {
    port: u16,
    log: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// `answer` hears each request and how many came before it.
    pub(crate) fn start(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (answer, kept) = (Arc::new(answer), Arc::clone(&log));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, answer, log) = (stream.unwrap(), Arc::clone(&answer), Arc::clone(&kept));
                std::thread::spawn(move || serve(stream, &*answer, &log));
            }
        });
        Server { port, log }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Request, usize) -> Reply, log: &Mutex<Vec<Request>>) {
    let Some(request) = read(&stream) else { return };
    let before = {
        let mut log = log.lock().unwrap();
        log.push(request.clone());
        log.len() - 1
    };
    let Reply { bytes, hold } = answer(&request, before);
    // A client that has gone is the client's business.
    let _ = stream.write_all(&bytes);
    if hold {
        let _ = stream.read(&mut [0]);
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut request = Request { path, ..Request::default() };
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(": ") else { break };
        request.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        match name.to_ascii_lowercase().as_str() {
            "range" => request.from = value.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok(),
            "if-range" => request.if_range = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(request)
}

/// A server's usual behaviour: the whole file, or the rest of it when asked and still the same.
pub(crate) fn file(request: &Request, content: &[u8], etag: &str) -> Reply {
    let same = request.if_range.as_ref().is_none_or(|asked| asked == etag);
    match request.from.filter(|_| same) {
        Some(from) if from >= content.len() => reply(
            "416 Range Not Satisfiable",
            &format!("ETag: {etag}\r\nContent-Range: bytes */{}\r\n", content.len()),
            b"",
        ),
        Some(from) => {
            let (last, total) = (content.len() - 1, content.len());
            let headers = format!(
                "ETag: {etag}\r\nContent-Length: {}\r\nContent-Range: bytes {from}-{last}/{total}\r\n",
                total - from
            );
            reply("206 Partial Content", &headers, &content[from..])
        }
        None => reply("200 OK", &format!("ETag: {etag}\r\nContent-Length: {}\r\n", content.len()), content),
    }
}

/// An answer of which only `keep` bytes of the body arrive.
pub(crate) fn cut(mut whole: Reply, keep: usize) -> Reply {
    let head = whole.bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    whole.bytes.truncate(head + keep);
    whole
}
