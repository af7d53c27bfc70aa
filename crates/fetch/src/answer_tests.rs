use super::*;

fn url() -> Url {
    "http://h/x.zip".parse().unwrap()
}

fn answer(head: &str) -> Answer {
    heard(Program::Curl, &format!("{}\r\n\r\n", head.replace('\n', "\r\n"))).answer.unwrap()
}

fn judged(head: &str, before: Option<(&Stamp, u64)>) -> Verdict {
    answer(head).judge(&url(), &url(), before)
}

fn stamp(etag: Option<&str>, time: Option<&str>, total: Option<u64>) -> Stamp {
    Stamp::new(&url(), etag.map(str::to_owned), time.map(str::to_owned), total)
}

#[track_caller]
fn refused(head: &str, words: &str) {
    let verdict = judged(head, None);
    assert!(matches!(&verdict, Verdict::Refused(reason) if reason.contains(words)), "{head}: {verdict:?}");
}

#[test]
fn both_tools_are_read() {
    let curl = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\n\
                curl: (18) transfer closed\n";
    let wget = "  HTTP/1.1 100 Continue\n  HTTP/1.1 200 OK\n  ETag: \"1\"\n  Content-Length: 5\n\
                2026-11-16 10:27:45 URL:http://h [5/5] -> \"-\" [1]\n";
    let (a, b) = (heard(Program::Curl, curl), heard(Program::Wget, wget));
    assert_eq!(a.answer, b.answer);
    assert_eq!(
        a.answer.as_ref().unwrap().judge(&url(), &url(), None),
        Verdict::File(stamp(Some("\"1\""), None, Some(5)))
    );
    assert!(a.whole && !b.whole);
    assert_eq!(a.words, "curl: (18) transfer closed");
    assert_eq!(heard(Program::Curl, "HTTP/1.1 100 Continue\r\n\r\n"), Heard::default());
    assert_eq!(heard(Program::Wget, "wget: unable to resolve host\x1b[2J\n").words, "wget: unable to resolve host?[2J");
    assert!(!heard(Program::Curl, "HTTP/1.1 200 OK\r\nETag: ").whole);
}

#[test]
fn two_lengths_or_an_encoding_were_taken() {
    for lengths in ["Content-Length: 5\nContent-Length: 7", "Content-Length: 5, 7"] {
        refused(&format!("HTTP/1.1 200 OK\n{lengths}"), "two lengths");
    }
    refused("HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: chunked", "two lengths");
    for length in ["-5", "5x", "99999999999999999999999", "+5", "0x5"] {
        refused(&format!("HTTP/1.1 200 OK\nContent-Length: {length}"), length);
    }
    for encoding in ["Content-Encoding: gzip", "Content-Encoding: identity, br", "Transfer-Encoding: gzip, chunked"] {
        refused(&format!("HTTP/1.1 200 OK\nContent-Length: 5\n{encoding}"), "encoded");
    }
    refused("HTTP/1.1 200 OK\nContent-Encoding:\n gzip", "over two lines");
    let twice = judged("HTTP/2 200\nContent-Length: 5\nContent-Length: 5\nContent-Encoding: identity", None);
    assert_eq!(twice, Verdict::File(stamp(None, None, Some(5))));
}

#[test]
fn a_rest_was_joined_to_another_file() {
    let older = stamp(Some("\"1\""), None, Some(10));
    let part = |range: &str, more: &str| {
        let head = format!("HTTP/1.1 206 Partial Content\nContent-Range: bytes {range}\n{more}");
        judged(&head, Some((&older, 5)))
    };
    assert_eq!(part("5-9/10", "ETag: \"1\"\nContent-Length: 5"), Verdict::File(older.clone()));
    for (range, more) in [
        ("5-9/10", "ETag: \"2\""),
        ("5-9/10", ""),
        ("5-9/10", "ETag: W/\"1\""),
        ("4-9/10", "ETag: \"1\""),
        ("5-10/11", "ETag: \"1\""),
    ] {
        assert_eq!(part(range, more), Verdict::Restart("has changed"), "{range} {more}");
    }
    for (range, more) in
        [("5-8/10", "ETag: \"1\""), ("5-9/10", "ETag: \"1\"\nContent-Length: 4"), ("5-9/*", "ETag: \"1\"")]
    {
        assert!(matches!(part(range, more), Verdict::Refused(_)), "{range} {more}");
    }
    let by_time = stamp(None, Some("Mon"), Some(10));
    let timed = |time| {
        let head = format!("HTTP/1.1 206 Partial Content\nContent-Range: bytes 5-9/10\nLast-Modified: {time}");
        judged(&head, Some((&by_time, 5)))
    };
    assert_eq!(timed("Mon"), Verdict::File(by_time.clone()));
    assert_eq!(timed("Tue"), Verdict::Restart("has changed"));
    refused("HTTP/1.1 206 Partial Content\nContent-Range: bytes 0-4/10", "the whole was asked for");
    let end = |head| judged(head, Some((&older, 10)));
    assert_eq!(end("HTTP/1.1 416 No\nContent-Range: bytes */10\nETag: \"1\""), Verdict::Complete);
    assert_eq!(end("HTTP/1.1 416 No\nContent-Range: bytes */11\nETag: \"1\""), Verdict::Restart("has changed"));
}

#[test]
fn redirections_and_refusals_are_told_apart() {
    assert_eq!(judged("HTTP/1.1 302 Found\nLocation: /y", None), Verdict::Moved("http://h/y".parse().unwrap()));
    for to in ["file:///etc/passwd", "ftp://h/x", "gopher://h", "http://user:secret@h/x"] {
        let verdict = judged(&format!("HTTP/1.1 302 Found\nLocation: {to}"), None);
        assert!(matches!(&verdict, Verdict::Refused(reason) if !reason.contains("secret")), "{verdict:?}");
    }
    refused("HTTP/1.1 302 Found\nX: y", "does not say where");
    refused("HTTP/1.1 404 Not\x1b[31m Found", "404 Not?[31m Found");
    assert!(matches!(judged("HTTP/1.1 503 Busy", None), Verdict::Retry(_)));
}
