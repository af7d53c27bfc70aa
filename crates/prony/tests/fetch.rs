//! `prony data fetch` against a server on loopback that behaves, and that does not; by curl and by wget, each alone.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/server.rs"]
mod server;
mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use server::{Reply, Request, Server, cut, file, reply};
use sha2::{Digest as _, Sha256};
use support::{Place, expect_code, fifo, has_tool, is_alive, prony, signal, stderr, stdout, until};

/// Bytes that do not repeat, from `seed` on.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(byte).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A place where there is one of the two tools, and no proxy.
struct Site {
    tool: &'static str,
    place: Place,
}

/// One for each tool that is installed.
fn sites() -> Vec<Site> {
    let installed = ["curl", "wget"].into_iter().filter(|tool| has_tool(tool));
    installed.map(Site::new).collect()
}

fn real(tool: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|path| path.is_file()).unwrap()
}

impl Site {
    fn new(tool: &'static str) -> Site {
        let place = Place::new();
        fs::create_dir(place.path("bin")).unwrap();
        symlink(real(tool), place.path("bin").join(tool)).unwrap();
        Site { tool, place }
    }

    /// The same, but what should go to https goes to http: the loopback server has no certificate.
    fn insecure(self) -> Site {
        let script = self.place.path("bin").join(self.tool);
        fs::remove_file(&script).unwrap();
        let tool = real(self.tool);
        let text =
            format!("#!/bin/bash\nset -- \"${{@/#https:/http:}}\"\nexec {} \"${{@/#=https/=http}}\"\n", tool.display());
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn out(&self) -> PathBuf {
        self.place.path("out")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = prony();
        command.args(["data", "fetch", "--out"]).arg(self.out()).args(words).env("PATH", self.place.path("bin"));
        for proxy in ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY", "no_proxy", "NO_PROXY"] {
            command.env_remove(proxy);
        }
        command
    }

    fn fetch(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.out().join(name)).unwrap()
    }

    /// Refused with exit code 2 and one of these texts, and nothing left behind.
    #[track_caller]
    fn refused(&self, words: &[&str], texts: &[&str]) {
        let output = self.fetch(words);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(texts.iter().any(|text| said.contains(text)), "{}: {said}", self.tool);
        assert!(names(&self.out()).is_empty(), "{}: {:?}", self.tool, names(&self.out()));
    }

    /// A fetch of `/x.bin` with Ctrl-C as soon as `keep` bytes are there.
    #[track_caller]
    fn interrupted(&self, server: &Server, keep: u64) -> Output {
        let mut command = self.command(&[&server.url("/x.bin")]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let part = self.out().join("x.bin.part");
        until("the first half", || fs::metadata(&part).ok().filter(|meta| meta.len() == keep));
        interrupt(child)
    }
}

/// Asks it to stop: it and its tool end at once.
#[track_caller]
fn interrupt(child: Child) -> Output {
    let pid = child.id();
    let tool: u32 = until("the tool", || {
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?.split_whitespace().next()?.parse().ok()
    });
    let begun = Instant::now();
    signal(pid, Signal::INT);
    let output = child.wait_with_output().unwrap();
    expect_code(&output, 130);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(!is_alive(tool), "the tool was left behind");
    output
}

#[test]
fn a_file_is_fetched_checked_and_not_fetched_again() {
    for site in sites() {
        let body = content(1, 300_000);
        let (hash, size) = (sha256(&body), body.len().to_string());
        let served = body.clone();
        let server = Server::start(move |request, _| file(request, &served, "\"1\""));
        let url = server.url("/sets/val%20one.zip?token=1");
        let output = site.fetch(&[&url, "--sha256", &hash.to_uppercase(), "--size", &size]);
        expect_code(&output, 0);
        assert_eq!(site.read("val one.zip"), body);
        assert_eq!(names(&site.out()), ["val one.zip"]);
        assert!(stdout(&output).contains(&format!("0.3 MB, sha256 {hash}")), "{}", stdout(&output));
        let request = &server.requests()[0];
        assert_eq!(request.header("accept-encoding"), Some("identity"), "{}", site.tool);
        assert!(request.header("user-agent").unwrap().starts_with("prony/"), "{}", site.tool);

        let again = site.fetch(&[&url, "--sha256", &hash]);
        expect_code(&again, 0);
        assert!(stdout(&again).contains("was there already"), "{}", stdout(&again));
        assert_eq!(server.requests().len(), 1, "the second time needed no server");

        let other = site.fetch(&[&url, "--sha256", &sha256(b"other")]);
        expect_code(&other, 2);
        assert!(stderr(&other).contains("move it away"), "{}", stderr(&other));
        assert_eq!(site.read("val one.zip"), body, "left alone");
    }
}

#[test]
fn a_cut_connection_is_resumed_where_it_broke() {
    for site in sites() {
        let body = content(2, 200_000);
        let served = body.clone();
        let server = Server::start(move |request, before| match before {
            0 => cut(file(request, &served, "\"1\""), 50_000),
            1 => cut(file(request, &served, "\"1\""), 70_000),
            _ => file(request, &served, "\"1\""),
        });
        expect_code(&site.fetch(&[&server.url("/x.bin"), "--sha256", &sha256(&body)]), 0);
        assert_eq!(site.read("x.bin"), body);
        let requests = server.requests();
        assert_eq!(requests.iter().map(|r| r.from).collect::<Vec<_>>(), [None, Some(50_000), Some(120_000)]);
        assert_eq!(requests[1].if_range.as_deref(), Some("\"1\""), "{}", site.tool);
        assert_eq!(names(&site.out()), ["x.bin"]);
    }
}

#[test]
fn a_rest_was_joined_without_a_version() {
    // Whoever says no version, or only a weak one, is asked for the whole every time.
    for site in sites() {
        for version in ["", "ETag: W/\"1\"\r\n"] {
            let body = content(3, 90_000);
            let served = body.clone();
            let server = Server::start(move |_, before| {
                let whole = reply("200 OK", &format!("{version}Content-Length: {}\r\n", served.len()), &served);
                if before < 2 { cut(whole, 40_000) } else { whole }
            });
            expect_code(&site.fetch(&[&server.url("/x.bin")]), 0);
            assert_eq!(site.read("x.bin"), body);
            assert!(server.requests().iter().all(|request| request.from.is_none()), "{}", site.tool);
            fs::remove_file(site.out().join("x.bin")).unwrap();
        }
        // A date is a version too.
        let body = content(3, 90_000);
        let (served, time) = (body.clone(), "Mon, 16 Nov 2026 10:00:00 GMT");
        let server = Server::start(move |request, before| {
            let dated = |reply: Reply| {
                let text = format!("\r\nLast-Modified: {time}\r\n");
                let at = reply.bytes.windows(2).position(|two| two == b"\r\n").unwrap();
                let bytes = [&reply.bytes[..at], text.as_bytes(), &reply.bytes[at + 2..]].concat();
                Reply { bytes, ..reply }
            };
            let request = Request { if_range: None, ..request.clone() };
            let whole = dated(file(&request, &served, "W/\"1\""));
            if before == 0 { cut(whole, 40_000) } else { whole }
        });
        expect_code(&site.fetch(&[&server.url("/x.bin")]), 0);
        assert_eq!(site.read("x.bin"), body);
        assert_eq!(server.requests()[1].if_range.as_deref(), Some(time), "{}", site.tool);
    }
}

#[test]
fn a_connection_that_always_breaks_ends_in_an_error_and_the_part_is_kept() {
    for site in sites() {
        let body = content(4, 90_000);
        let server = Server::start(move |request, _| {
            let whole = file(request, &body, "\"1\"");
            // The same third every time, and no more.
            if request.from.is_some() { cut(whole, 0) } else { cut(whole, 30_000) }
        });
        let output = site.fetch(&[&server.url("/x.bin")]);
        expect_code(&output, 2);
        assert!(stderr(&output).contains("the same command goes on"), "{}", stderr(&output));
        assert_eq!(names(&site.out()), ["x.bin.part", "x.bin.part.json"]);
        assert_eq!(site.read("x.bin.part").len(), 30_000);
    }
}

#[test]
fn ctrl_c_keeps_the_part_and_the_same_command_goes_on() {
    for site in sites() {
        let body = content(5, 120_000);
        let served = body.clone();
        let server = Server::start(move |request, before| match before {
            0 => Reply { hold: true, ..cut(file(request, &served, "\"1\""), 60_000) },
            _ => file(request, &served, "\"1\""),
        });
        let output = site.interrupted(&server, 60_000);
        assert!(stderr(&output).contains("the same command goes on"), "{}", stderr(&output));
        assert_eq!(site.read("x.bin.part").len(), 60_000);
        expect_code(&site.fetch(&[&server.url("/x.bin"), "--sha256", &sha256(&body)]), 0);
        assert_eq!(server.requests()[1].from, Some(60_000));
    }
}

#[test]
fn an_interrupt_was_not_heard() {
    let hold = |bytes: &[u8]| Reply { bytes: bytes.to_vec(), hold: true };
    for site in sites() {
        let server = Server::start(move |request, _| match request.path.as_str() {
            "/silent" => hold(b""),
            "/half-a-header" => hold(b"HTTP/1.1 200 OK\r\nContent-Le"),
            "/no-body" => hold(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
            _ => hold(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"),
        });
        for path in ["/silent", "/half-a-header", "/no-body", "/no-version"] {
            let before = server.requests().len();
            let mut command = site.command(&[&server.url(path)]);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            until("a request", || (server.requests().len() > before).then_some(()));
            let output = interrupt(child);
            assert!(stderr(&output).contains("nothing was kept"), "{path}: {}", stderr(&output));
            assert!(names(&site.out()).is_empty(), "{} {path}: {:?}", site.tool, names(&site.out()));
        }
    }
}

#[test]
fn a_file_that_changed_in_between_is_fetched_from_the_beginning() {
    let old = content(6, 120_000);
    // One server heeds If-Range; the others go on with the new file as if it were the old one.
    for site in sites() {
        for (how, etag, length) in [
            ("honest", "\"new\"", 120_000),
            ("honest", "\"new\"", 150_000),
            ("honest", "\"new\"", 40_000),
            ("spliced", "\"new\"", 120_000),
            ("spliced", "\"new\"", 150_000),
            ("weak", "W/\"old\"", 120_000),
        ] {
            let new = content(7, length);
            let (old, served) = (old.clone(), new.clone());
            let server = Server::start(move |request, before| match before {
                0 => Reply { hold: true, ..cut(file(request, &old, "\"old\""), 60_000) },
                _ if how == "honest" => file(request, &served, etag),
                _ => file(&Request { if_range: None, ..request.clone() }, &served, etag),
            });
            site.interrupted(&server, 60_000);
            let output = site.fetch(&[&server.url("/x.bin")]);
            expect_code(&output, 0);
            assert!(site.read("x.bin") == new, "{} {how} {length}", site.tool);
            assert!(stderr(&output).contains("from the beginning"), "{}", stderr(&output));
            fs::remove_file(site.out().join("x.bin")).unwrap();
        }
    }
}

#[test]
fn a_part_that_is_whole_already_is_only_checked() {
    for site in sites() {
        let body = content(8, 50_000);
        let served = body.clone();
        let server = Server::start(move |request, before| match before {
            // Everything arrives, but the connection stays open and the length is not said.
            0 => Reply { hold: true, ..reply("200 OK", "ETag: \"1\"\r\n", &served) },
            _ => file(request, &served, "\"1\""),
        });
        site.interrupted(&server, 50_000);
        expect_code(&site.fetch(&[&server.url("/x.bin"), "--sha256", &sha256(&body)]), 0);
        assert_eq!(server.requests()[1].from, Some(50_000));
        assert_eq!(names(&site.out()), ["x.bin"]);
    }
}

fn chunked(body: &[u8], piece: usize) -> Vec<u8> {
    let mut pieces = Vec::new();
    for piece in body.chunks(piece) {
        pieces.extend(format!("{:x};name=\"x\"\r\n", piece.len()).bytes());
        pieces.extend(piece);
        pieces.extend(b"\r\n");
    }
    pieces.extend(b"0\r\n\r\n");
    pieces
}

#[test]
fn chunks_and_redirections_are_followed() {
    for site in sites() {
        let body = content(9, 10_000);
        let served = body.clone();
        let server = Server::start(move |request, _| match request.path.as_str() {
            "/start/x.bin" => reply("302 Found", "Location: ../moved?to=1\r\nContent-Length: 6\r\n", b"<html>"),
            "/moved?to=1" | "/start/../moved?to=1" => {
                reply("301 Moved Permanently", "location: /pieces\r\nContent-Length: 6\r\n", b"<html>")
            }
            "/pieces" => reply("200 OK", "Transfer-Encoding: chunked\r\n", &chunked(&served, 999)),
            _ => reply("302 Found", "Location: /round\r\nContent-Length: 0\r\n", b""),
        });
        expect_code(&site.fetch(&[&server.url("/start/x.bin"), "--size", "10000"]), 0);
        assert_eq!(site.read("x.bin"), body, "{}", site.tool);
        let output = site.fetch(&[&server.url("/round")]);
        expect_code(&output, 2);
        assert!(stderr(&output).contains("more than 10 redirections"), "{}", stderr(&output));
        assert_eq!(names(&site.out()), ["x.bin"]);
    }
}

#[test]
fn a_redirection_led_from_https_to_http() {
    for site in sites() {
        let site = site.insecure();
        let server = Server::start(|request, _| {
            let port = request.header("host").unwrap().rsplit(':').next().unwrap();
            let to = match request.path.as_str() {
                "/down.bin" => format!("http://127.0.0.1:{port}/x.bin"),
                "/file.bin" => "file:///etc/hostname".to_owned(),
                "/ftp.bin" => "ftp://127.0.0.1/x.bin".to_owned(),
                "/user.bin" => format!("https://me:secret@127.0.0.1:{port}/x.bin"),
                "/up.bin" => format!("https://127.0.0.1:{port}/x.bin"),
                _ => return file(request, b"hello", "\"1\""),
            };
            reply("302 Found", &format!("Location: {to}\r\nContent-Length: 0\r\n"), b"")
        });
        let secure = |path: &str| server.url(path).replace("http:", "https:");
        site.refused(&[&secure("/down.bin")], &["redirects from https to http"]);
        for path in ["/file.bin", "/ftp.bin"] {
            site.refused(&[&secure(path)], &["must begin with http:// or https://"]);
            site.refused(&[&server.url(path)], &["must begin with http:// or https://"]);
        }
        site.refused(&[&secure("/user.bin")], &["names and passwords in a URL are not sent"]);
        assert!(!stderr(&site.fetch(&[&secure("/user.bin")])).contains("secret"));
        assert!(server.requests().iter().all(|request| request.path != "/x.bin"), "{}", site.tool);
        expect_code(&site.fetch(&[&server.url("/up.bin")]), 0);
        assert_eq!(site.read("up.bin"), b"hello");
    }
}

#[test]
fn a_body_was_longer_or_shorter_than_promised() {
    for site in sites() {
        let server = Server::start(|request, _| match request.path.as_str() {
            "/short" => reply("200 OK", "Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n"),
            "/early" => reply("200 OK", "Content-Length: 9\r\n", b"hello"),
            "/flood" => reply("200 OK", "Transfer-Encoding: chunked\r\n", &chunked(&[7; 3_000_000], 60_000)),
            // Nothing says where it ends.
            "/open" => reply("200 OK", "", &[7; 3_000_000]),
            "/more" => reply("200 OK", "Content-Length: 5\r\n", b"hello and more"),
            _ => reply("200 OK", "Content-Length: 1000000000000000000\r\n", b"x"),
        });
        for path in ["/short", "/early"] {
            site.refused(&[&server.url(path)], &[path]);
        }
        for path in ["/flood", "/open"] {
            site.refused(&[&server.url(path), "--size", "1000"], &["more than the 1000 bytes that were promised"]);
        }
        site.refused(&[&server.url("/huge")], &["not enough space in "]);
        let few = ["has 1000000000000000000 bytes on the server instead of 9", "more than the 9 bytes"];
        site.refused(&[&server.url("/huge"), "--size", "9"], &few);
        expect_code(&site.fetch(&[&server.url("/more")]), 0);
        assert_eq!(site.read("more"), b"hello", "{}", site.tool);
        let open = site.fetch(&[&server.url("/open")]);
        expect_code(&open, 0);
        assert!(stderr(&open).contains("does not say how long it is"), "{}", stderr(&open));
    }
}

#[test]
fn two_lengths_or_an_encoding_were_taken() {
    for site in sites() {
        let server = Server::start(|request, _| match request.path.as_str() {
            "/two" => reply("200 OK", "Content-Length: 5\r\nContent-Length: 3\r\n", b"hello"),
            "/list" => reply("200 OK", "Content-Length: 5, 3\r\n", b"hello"),
            "/both" => reply("200 OK", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", &chunked(b"hello", 9)),
            "/gzip" => reply("200 OK", "Content-Encoding: gzip\r\nContent-Length: 5\r\n", b"hello"),
            "/br" => reply("200 OK", "content-encoding: identity, br\r\nContent-Length: 5\r\n", b"hello"),
            "/part" => reply("206 Partial Content", "Content-Range: bytes 0-4/9\r\nContent-Length: 5\r\n", b"hello"),
            "/odd" => Reply { bytes: b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(), hold: false },
            _ => reply("204 No Content", "", b""),
        });
        // What one of the tools refuses itself is refused in its words.
        for path in ["/two", "/list", "/both"] {
            site.refused(&[&server.url(path)], &["two lengths", "curl: (", "gives its length as"]);
        }
        for path in ["/gzip", "/br"] {
            site.refused(&[&server.url(path)], &["which was not asked for"]);
        }
        site.refused(&[&server.url("/part")], &["the whole was asked for", "curl: (", "no answer"]);
        site.refused(&[&server.url("/odd")], &["the answer is not HTTP"]);
        site.refused(&[&server.url("/nothing")], &["the server says 204"]);
    }
}

#[test]
fn what_is_not_what_was_asked_for_is_not_kept() {
    for site in sites() {
        let server = Server::start(|request, _| match request.path.as_str() {
            "/gone" => reply("404 Not Found", "Content-Length: 4\r\n", b"gone"),
            _ => file(request, b"hello", "\"1\""),
        });
        site.refused(&[&server.url("/gone")], &["/gone: the server says 404 Not Found"]);
        site.refused(&[&server.url("/x"), "--size", "6"], &["has 5 bytes on the server instead of 6"]);
        site.refused(&[&server.url("/x"), "--sha256", &sha256(b"other")], &["nothing was kept"]);
        site.refused(&[&server.url("/")], &["does not end in the name of a file"]);
        for url in ["ftp://x/y", "file:///etc/hostname", "scp://x/y", "/etc/hostname", "-K/etc/passwd"] {
            let output = site.fetch(&["--", url]);
            expect_code(&output, 2);
            assert!(stderr(&output).contains("must begin with http:// or https://"), "{}", stderr(&output));
        }
        site.refused(&[&server.url("/x"), "--sha256", "12"], &["64 hexadecimal digits"]);
        site.refused(&[&server.url("/x"), &server.url("/y"), "--size", "5"], &["--size is given 1 times for 2 URLs"]);
        site.refused(&[&server.url("/x"), &server.url("/a/x")], &["a second file called x"]);
        site.refused(&["http://127.0.0.1:1/x"], &["onnect"]);
    }
}

#[test]
fn secrets_in_a_url_were_printed() {
    for site in sites() {
        let server = Server::start(|_, _| reply("403 Forbidden", "Content-Length: 0\r\n", b""));
        for url in [
            server.url("/x.bin?X-Amz-Signature=secret"),
            "http://me:secret@127.0.0.1:1/x.bin".to_owned(),
            "ftp://me:secret@127.0.0.1/x.bin".to_owned(),
            "http://127.0.0.1:1/x.bin?key=secret".to_owned(),
        ] {
            let output = site.fetch(&[&url, "--json"]);
            expect_code(&output, 2);
            assert!(!stderr(&output).contains("secret") && !stdout(&output).contains("secret"), "{}", stderr(&output));
        }
        // The note beside a part is not for keys either.
        let server =
            Server::start(|request, _| cut(file(request, b"hello", "\"1\""), usize::from(request.from.is_none())));
        expect_code(&site.fetch(&[&server.url("/y.bin?key=secret")]), 2);
        let note = fs::read_to_string(site.out().join("y.bin.part.json")).unwrap();
        assert!(!note.contains("secret"), "{note}");
    }
}

#[test]
fn a_configuration_file_changed_what_was_fetched() {
    for site in sites() {
        let server = Server::start(|request, _| file(request, b"hello", "\"1\""));
        let home = site.place.path("home");
        fs::create_dir(&home).unwrap();
        let stolen = home.join("stolen");
        let curlrc = format!("user-agent = evil\noutput = {0}\ndump-header = {0}\ninclude\n", stolen.display());
        let wgetrc = format!("user_agent = evil\noutput_document = {0}\nsave_headers = on\n", stolen.display());
        for (name, text) in [(".curlrc", &curlrc), ("curlrc", &curlrc), (".wgetrc", &wgetrc)] {
            fs::write(home.join(name), text).unwrap();
        }
        fs::write(home.join(".netrc"), "machine 127.0.0.1 login me password secret\n").unwrap();
        let mut command = site.command(&[&server.url("/x.bin")]);
        command.env("HOME", &home).env("CURL_HOME", &home).env("XDG_CONFIG_HOME", &home);
        command.env("WGETRC", home.join(".wgetrc")).env("SYSTEM_WGETRC", home.join(".wgetrc"));
        expect_code(&command.output().unwrap(), 0);
        assert_eq!(site.read("x.bin"), b"hello", "{}", site.tool);
        let request = &server.requests()[0];
        assert!(request.header("user-agent").unwrap().starts_with("prony/"), "{request:?}");
        assert_eq!(request.header("authorization"), None, "{request:?}");
        assert!(!stolen.exists());
        assert_eq!(names(&home), [".curlrc", ".netrc", ".wgetrc", "curlrc"], "nothing was written there");
    }
}

#[test]
fn proxies_are_used() {
    for site in sites() {
        let proxy = Server::start(|request, _| file(request, b"through the proxy", "\"1\""));
        let mut command = site.command(&["http://example.invalid/x.bin"]);
        expect_code(&command.env("http_proxy", proxy.url("")).output().unwrap(), 0);
        assert_eq!(site.read("x.bin"), b"through the proxy");
        assert_eq!(proxy.requests()[0].path, "http://example.invalid/x.bin", "{}", site.tool);

        let server = Server::start(|request, _| file(request, b"direct", "\"1\""));
        let mut command = site.command(&[&server.url("/y.bin")]);
        command.env("http_proxy", proxy.url("")).env("no_proxy", "127.0.0.1");
        expect_code(&command.output().unwrap(), 0);
        assert_eq!(site.read("y.bin"), b"direct", "{}", site.tool);
    }
}

#[test]
fn without_curl_and_wget_the_next_step_is_named() {
    for url in ["https://127.0.0.1:1/x", "http://127.0.0.1:1/x"] {
        let place = Place::new();
        let mut command = prony();
        command.args(["data", "fetch", url, "--out"]).arg(place.path("out"));
        // One in the current folder is not taken.
        fs::write(place.path("curl"), "#!/bin/sh\ntouch planted\n").unwrap();
        fs::set_permissions(place.path("curl"), fs::Permissions::from_mode(0o755)).unwrap();
        let output = command.env("PATH", ".::bin").current_dir(place.dir.path()).output().unwrap();
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains("needs curl or wget, and neither is installed; install one"), "{said}");
        assert!(names(&place.path("out")).is_empty());
        assert!(!place.path("planted").exists());
    }
}

#[test]
fn a_tool_that_lacks_the_options_is_named() {
    for site in sites() {
        let script = site.place.path("bin").join(site.tool);
        fs::remove_file(&script).unwrap();
        fs::write(&script, "#!/bin/sh\necho \"$0: unrecognized option '--no-config'\" >&2\necho Usage: >&2\nexit 1\n")
            .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        site.refused(&["http://127.0.0.1:1/x"], &["lacks options that are needed here; install curl"]);
    }
}

#[test]
fn links_and_pipes_in_the_way_are_not_followed() {
    for site in sites() {
        let server = Server::start(|request, _| file(request, b"hello", "\"1\""));
        fs::create_dir(site.out()).unwrap();
        let victim = site.place.path("victim");
        fs::write(&victim, b"mine").unwrap();
        symlink(&victim, site.out().join("a.part")).unwrap();
        symlink(&victim, site.out().join("b.part.json")).unwrap();
        let output = site.fetch(&[&server.url("/a")]);
        expect_code(&output, 2);
        assert!(stderr(&output).contains("symbolic link"), "{}", stderr(&output));
        expect_code(&site.fetch(&[&server.url("/b")]), 0);
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        for name in ["c", "d.part"] {
            fifo(&site.out().join(name));
            let url = server.url(&format!("/{}", &name[..1]));
            let output = site.fetch(&[&url, "--sha256", &sha256(b"hello")]);
            expect_code(&output, 2);
            assert!(stderr(&output).contains("is a FIFO"), "{}", stderr(&output));
        }
    }
}

#[test]
fn of_several_files_those_that_can_be_had_are() {
    for site in sites() {
        let server = Server::start(|request, _| match request.path.as_str() {
            "/b" => reply("403 Forbidden", "Content-Length: 0\r\n", b""),
            _ => file(request, request.path.as_bytes(), "\"1\""),
        });
        let output = site.fetch(&[&server.url("/a"), &server.url("/b"), &server.url("/c")]);
        expect_code(&output, 1);
        assert!(stderr(&output).contains("/b: the server says 403 Forbidden"), "{}", stderr(&output));
        assert_eq!(names(&site.out()), ["a", "c"]);
    }
}

#[test]
fn https_has_the_same_checks() {
    for site in sites() {
        let site = site.insecure();
        let body = content(10, 150_000);
        let served = body.clone();
        let server = Server::start(move |request, _| {
            let whole = file(request, &served, "\"1\"");
            match (request.path.as_str(), request.from) {
                ("/gone", _) => reply("404 Not Found", "Content-Length: 0\r\n", b""),
                (_, None) => cut(whole, 60_000),
                _ => whole,
            }
        });
        let secure = |path: &str| server.url(path).replace("http:", "https:");
        expect_code(&site.fetch(&[&secure("/x.bin"), "--sha256", &sha256(&body), "--size", "150000"]), 0);
        assert!(site.read("x.bin") == body, "{}", site.tool);
        assert!(server.requests().iter().any(|request| request.from == Some(60_000)), "{} went on", site.tool);
        let wrong = site.fetch(&[&secure("/y.bin"), "--size", "7"]);
        expect_code(&wrong, 2);
        let gone = site.fetch(&[&secure("/gone")]);
        expect_code(&gone, 2);
        assert!(stderr(&gone).contains("the server says 404"), "{}: {}", site.tool, stderr(&gone));
        assert_eq!(names(&site.out()), ["x.bin"], "{}", site.tool);
    }
}

#[test]
fn json_names_every_file_and_what_became_of_it() {
    let Some(site) = sites().into_iter().next() else { return };
    let server = Server::start(|request, _| match request.path.as_str() {
        "/a.bin" => file(request, b"abc", "\"1\""),
        _ => reply("404 Not Found", "Content-Length: 0\r\n", b""),
    });
    let output = site.fetch(&[&server.url("/a.bin"), &server.url("/b.bin"), "--json"]);
    expect_code(&output, 1);
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let statuses: Vec<&str> = all["files"].as_array().unwrap().iter().map(|f| f["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["fetched", "failed"]);
    assert_eq!((&all["files"][0]["bytes"], &all["files"][0]["sha256"]), (&3.into(), &sha256(b"abc").into()));
    assert!(stderr(&output).contains("error: "), "{}", stderr(&output));
}
