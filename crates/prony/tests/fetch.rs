//! `prony data fetch` against a server on loopback that behaves, and that does not.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/server.rs"]
mod server;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;
use server::{Reply, Server, cut, file, reply};
use sha2::{Digest as _, Sha256};
use support::{Place, expect_code, has_tool, prony, signal, stderr, stdout, until};

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

fn command(out: &Path, words: &[&str]) -> Command {
    let mut command = prony();
    command.args(["data", "fetch", "--out"]).arg(out).args(words);
    command
}

fn fetch(out: &Path, words: &[&str]) -> Output {
    command(out, words).output().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Refused with exit code 2 and these words, and nothing left behind.
#[track_caller]
fn refused(out: &Path, words: &[&str], said: &str) {
    let output = fetch(out, words);
    expect_code(&output, 2);
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    assert!(names(out).is_empty(), "{:?}", names(out));
}

#[test]
fn a_file_is_fetched_checked_and_not_fetched_again() {
    let body = content(1, 300_000);
    let (hash, size) = (sha256(&body), body.len().to_string());
    let served = body.clone();
    let server = Server::start(move |request, _| file(request, &served, "\"1\""));
    let place = Place::new();
    let out = place.path("data/new");
    let url = server.url("/sets/val%20one.zip?token=1");
    let output = fetch(&out, &[&url, "--sha256", &hash.to_uppercase(), "--size", &size]);
    expect_code(&output, 0);
    assert_eq!(fs::read(out.join("val one.zip")).unwrap(), body);
    assert_eq!(names(&out), ["val one.zip"]);
    assert!(stdout(&output).contains(&format!("0.3 MB, sha256 {hash}")), "{}", stdout(&output));

    let again = fetch(&out, &[&url, "--sha256", &hash]);
    expect_code(&again, 0);
    assert!(stdout(&again).contains("was there already"), "{}", stdout(&again));
    assert_eq!(server.requests().len(), 1, "the second time needed no server");

    let other = fetch(&out, &[&url, "--sha256", &sha256(b"other")]);
    expect_code(&other, 2);
    assert!(stderr(&other).contains("move it away"), "{}", stderr(&other));
    assert_eq!(fs::read(out.join("val one.zip")).unwrap(), body, "left alone");
}

#[test]
fn a_cut_connection_is_resumed_where_it_broke() {
    let body = content(2, 200_000);
    let served = body.clone();
    let server = Server::start(move |request, before| match before {
        0 => cut(file(request, &served, "\"1\""), 50_000),
        1 => cut(file(request, &served, "\"1\""), 70_000),
        _ => file(request, &served, "\"1\""),
    });
    let place = Place::new();
    let output = fetch(place.dir.path(), &[&server.url("/x.bin"), "--sha256", &sha256(&body)]);
    expect_code(&output, 0);
    assert_eq!(fs::read(place.path("x.bin")).unwrap(), body);
    let requests = server.requests();
    assert_eq!(requests.iter().map(|r| r.from).collect::<Vec<_>>(), [None, Some(50_000), Some(120_000)]);
    assert_eq!(requests[1].if_range.as_deref(), Some("\"1\""));
    assert_eq!(names(place.dir.path()), ["x.bin"]);
}

#[test]
fn a_server_that_cannot_resume_sends_it_all_again() {
    let body = content(3, 90_000);
    let served = body.clone();
    let server = Server::start(move |_, before| {
        let whole = reply("200 OK", &format!("Content-Length: {}\r\n", served.len()), &served);
        if before < 2 { cut(whole, 40_000) } else { whole }
    });
    let place = Place::new();
    expect_code(&fetch(place.dir.path(), &[&server.url("/x.bin")]), 0);
    assert_eq!(fs::read(place.path("x.bin")).unwrap(), body);
}

#[test]
fn a_connection_that_always_breaks_ends_in_an_error_and_the_part_is_kept() {
    let body = content(4, 90_000);
    let server = Server::start(move |request, _| {
        let whole = file(request, &body, "\"1\"");
        // The same third every time, and no more.
        if request.from.is_some() { cut(whole, 0) } else { cut(whole, 30_000) }
    });
    let place = Place::new();
    let output = fetch(place.dir.path(), &[&server.url("/x.bin")]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("the same command goes on"), "{}", stderr(&output));
    assert_eq!(names(place.dir.path()), ["x.bin.part", "x.bin.part.json"]);
    assert_eq!(fs::metadata(place.path("x.bin.part")).unwrap().len(), 30_000);
}

/// Fetches with Ctrl-C in the middle: what is there then is `keep` bytes of `body`.
fn interrupted(out: &Path, server: &Server, keep: u64) {
    let child = command(out, &[&server.url("/x.bin")]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let part = out.join("x.bin.part");
    until("the first half", || fs::metadata(&part).ok().filter(|meta| meta.len() == keep));
    signal(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    expect_code(&output, 130);
    assert!(stderr(&output).contains("the same command goes on"), "{}", stderr(&output));
    assert_eq!(fs::metadata(&part).unwrap().len(), keep);
}

#[test]
fn ctrl_c_keeps_the_part_and_the_same_command_goes_on() {
    let body = content(5, 120_000);
    let served = body.clone();
    let server = Server::start(move |request, before| match before {
        0 => Reply { hold: true, ..cut(file(request, &served, "\"1\""), 60_000) },
        _ => file(request, &served, "\"1\""),
    });
    let place = Place::new();
    interrupted(place.dir.path(), &server, 60_000);
    expect_code(&fetch(place.dir.path(), &[&server.url("/x.bin"), "--sha256", &sha256(&body)]), 0);
    assert_eq!(server.requests()[1].from, Some(60_000));
}

#[test]
fn a_file_that_changed_in_between_is_fetched_from_the_beginning() {
    let (old, new) = (content(6, 120_000), content(7, 120_000));
    // One server heeds If-Range; the other goes on with the new file as if it were the old one.
    for honest in [true, false] {
        let (old, served) = (old.clone(), new.clone());
        let server = Server::start(move |request, before| match before {
            0 => Reply { hold: true, ..cut(file(request, &old, "\"old\""), 60_000) },
            _ if honest => file(request, &served, "\"new\""),
            _ => file(&server::Request { if_range: None, ..request.clone() }, &served, "\"new\""),
        });
        let place = Place::new();
        interrupted(place.dir.path(), &server, 60_000);
        let output = fetch(place.dir.path(), &[&server.url("/x.bin")]);
        expect_code(&output, 0);
        assert!(fs::read(place.path("x.bin")).unwrap() == new, "honest: {honest}");
        assert!(stderr(&output).contains("from the beginning"), "{}", stderr(&output));
    }
}

#[test]
fn a_part_that_is_whole_already_is_only_checked() {
    let body = content(8, 50_000);
    let served = body.clone();
    let server = Server::start(move |request, before| match before {
        // Everything arrives, but the connection stays open and the length is not said.
        0 => Reply { hold: true, ..reply("200 OK", "ETag: \"1\"\r\n", &served) },
        _ => file(request, &served, "\"1\""),
    });
    let place = Place::new();
    interrupted(place.dir.path(), &server, 50_000);
    expect_code(&fetch(place.dir.path(), &[&server.url("/x.bin"), "--sha256", &sha256(&body)]), 0);
    assert_eq!(server.requests()[1].from, Some(50_000));
}

#[test]
fn pieces_and_redirections_are_followed() {
    let body = content(9, 10_000);
    let served = body.clone();
    let server = Server::start(move |request, _| match request.path.as_str() {
        "/start/x.bin" => reply("302 Found", "Location: ../moved?to=1\r\nContent-Length: 0\r\n", b""),
        "/start/../moved?to=1" => reply("301 Moved Permanently", "location: /pieces\r\n", b"<html>"),
        "/pieces" => {
            let mut pieces = Vec::new();
            for piece in served.chunks(999) {
                pieces.extend(format!("{:x};name=\"x\"\r\n", piece.len()).bytes());
                pieces.extend(piece);
                pieces.extend(b"\r\n");
            }
            pieces.extend(b"0\r\n\r\n");
            reply("200 OK", "Transfer-Encoding: chunked\r\n", &pieces)
        }
        _ => reply("302 Found", "Location: /round\r\n", b""),
    });
    let place = Place::new();
    expect_code(&fetch(place.dir.path(), &[&server.url("/start/x.bin"), "--size", "10000"]), 0);
    assert_eq!(fs::read(place.path("x.bin")).unwrap(), body);
    let output = fetch(place.dir.path(), &[&server.url("/round")]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("more than 10 redirections"), "{}", stderr(&output));
}

#[test]
fn pieces_that_end_too_early_are_no_file() {
    let server = Server::start(|_, _| reply("200 OK", "Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n"));
    let place = Place::new();
    let output = fetch(place.dir.path(), &[&server.url("/x.bin")]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("the connection was cut"), "{}", stderr(&output));
    assert!(!place.path("x.bin").exists());
}

#[test]
fn what_is_not_what_was_asked_for_is_not_kept() {
    let server = Server::start(|request, _| match request.path.as_str() {
        "/gone" => reply("404 Not Found", "Content-Length: 4\r\n", b"gone"),
        "/odd" => Reply { bytes: b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(), hold: false },
        "/huge" => reply("200 OK", "Content-Length: 1000000000000000000\r\n", b"x"),
        _ => file(request, b"hello", "\"1\""),
    });
    let place = Place::new();
    let out = place.path("out");
    refused(&out, &[&server.url("/gone")], "/gone: the server says 404 Not Found");
    refused(&out, &[&server.url("/huge")], "are to come and");
    refused(&out, &[&server.url("/x"), "--size", "6"], "has 5 bytes on the server instead of 6");
    refused(&out, &[&server.url("/x"), "--sha256", &sha256(b"other")], "nothing was kept");
    refused(&out, &[&server.url("/")], "does not end in the name of a file");
    refused(&out, &["ftp://x/y"], "begins with http:// or https://");
    refused(&out, &[&server.url("/x"), "--sha256", "12"], "64 hexadecimal digits");
    refused(&out, &[&server.url("/x"), &server.url("/y"), "--size", "5"], "--size is given 1 times for 2 URLs");
    refused(&out, &[&server.url("/x"), &server.url("/a/x")], "a second file called x");
    let odd = fetch(&out, &[&server.url("/odd")]);
    expect_code(&odd, 2);
    assert!(stderr(&odd).contains("the answer is not HTTP"), "{}", stderr(&odd));
}

#[test]
fn of_several_files_those_that_can_be_had_are() {
    let server = Server::start(|request, _| match request.path.as_str() {
        "/b" => reply("403 Forbidden", "", b""),
        _ => file(request, request.path.as_bytes(), "\"1\""),
    });
    let place = Place::new();
    let output = fetch(place.dir.path(), &[&server.url("/a"), &server.url("/b"), &server.url("/c")]);
    expect_code(&output, 1);
    assert!(stderr(&output).contains("/b: the server says 403 Forbidden"), "{}", stderr(&output));
    assert_eq!(names(place.dir.path()), ["a", "c"]);
}

#[test]
fn https_without_curl_and_wget_says_what_is_missing() {
    let place = Place::new();
    let output =
        command(&place.path("out"), &["https://127.0.0.1:1/x"]).env("PATH", place.dir.path()).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("needs curl or wget, and neither is installed"), "{}", stderr(&output));
    assert!(names(&place.path("out")).is_empty());
}

/// The real tool, alone in `bin`, but the loopback server has no certificate.
fn insecure(place: &Place, tool: &str) {
    let script = place.path("bin").join(tool);
    fs::create_dir(place.path("bin")).unwrap();
    let path = std::env::var("PATH").unwrap();
    fs::write(&script, format!("#!/bin/bash\nPATH='{path}'\nexec {tool} \"${{@/#https:/http:}}\"\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn https_is_left_to_curl_or_wget_with_the_same_checks() {
    for tool in ["curl", "wget"] {
        if !has_tool(tool) {
            continue;
        }
        let body = content(10, 150_000);
        let served = body.clone();
        let server = Server::start(move |request, _| {
            let whole = file(request, &served, "\"1\"");
            match (request.method.as_str(), request.path.as_str(), request.from) {
                (_, "/gone", _) => reply("404 Not Found", "Content-Length: 0\r\n", b""),
                ("HEAD", ..) => cut(whole, 0),
                (_, _, None) => cut(whole, 60_000),
                _ => whole,
            }
        });
        let place = Place::new();
        insecure(&place, tool);
        let run = |words: &[&str]| command(&place.path("out"), words).env("PATH", place.path("bin")).output().unwrap();
        let secure = |path: &str| server.url(path).replace("http:", "https:");

        let output = run(&[&secure("/x.bin"), "--sha256", &sha256(&body), "--size", "150000"]);
        expect_code(&output, 0);
        assert!(fs::read(place.path("out/x.bin")).unwrap() == body, "{tool}");
        assert!(server.requests().iter().any(|request| request.from == Some(60_000)), "{tool} went on");
        let wrong = run(&[&secure("/y.bin"), "--size", "7"]);
        expect_code(&wrong, 2);
        assert!(stderr(&wrong).contains("has 150000 bytes on the server instead of 7"), "{}", stderr(&wrong));
        let gone = run(&[&secure("/gone")]);
        expect_code(&gone, 2);
        assert!(stderr(&gone).contains("404"), "{tool}: {}", stderr(&gone));
        assert_eq!(names(&place.path("out")), ["x.bin"], "{tool}");
    }
}

#[test]
fn https_from_a_server_that_cannot_resume_begins_again_once() {
    for tool in ["curl", "wget"] {
        if !has_tool(tool) {
            continue;
        }
        for breaks in [1, usize::MAX] {
            let body = content(11, 150_000);
            let served = body.clone();
            let gets = std::sync::atomic::AtomicUsize::new(0);
            let server = Server::start(move |request, _| {
                let headers = format!("ETag: \"1\"\r\nContent-Length: {}\r\n", served.len());
                let whole = reply("200 OK", &headers, &served);
                if request.method == "HEAD" {
                    return cut(whole, 0);
                }
                // Those that ask for the rest are answered with the whole.
                let broken = request.from.is_none() && gets.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < breaks;
                if broken { cut(whole, 60_000) } else { whole }
            });
            let place = Place::new();
            insecure(&place, tool);
            let url = server.url("/x.bin").replace("http:", "https:");
            let output = command(&place.path("out"), &[&url, "--sha256", &sha256(&body)])
                .env("PATH", place.path("bin"))
                .output()
                .unwrap();
            let said = stderr(&output);
            if breaks == 1 || tool == "wget" {
                // Wget passes over what it has.
                expect_code(&output, 0);
                assert!(fs::read(place.path("out/x.bin")).unwrap() == body, "{tool}");
                assert_eq!(said.contains("x.bin: cannot be resumed; from the beginning"), tool == "curl", "{said}");
            } else {
                expect_code(&output, 2);
                assert_eq!(said.matches("from the beginning").count(), 1, "{said}");
                assert_eq!(names(&place.path("out")), ["x.bin.part", "x.bin.part.json"]);
            }
        }
    }
}

#[test]
fn json_names_every_file_and_what_became_of_it() {
    let server = Server::start(|request, _| match request.path.as_str() {
        "/a.bin" => file(request, b"abc", "\"1\""),
        _ => reply("404 Not Found", "Content-Length: 0\r\n", b""),
    });
    let place = Place::new();
    let output = fetch(&place.path("data"), &[&server.url("/a.bin"), &server.url("/b.bin"), "--json"]);
    expect_code(&output, 1);
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let statuses: Vec<&str> = all["files"].as_array().unwrap().iter().map(|f| f["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["fetched", "failed"]);
    assert_eq!((&all["files"][0]["bytes"], &all["files"][0]["sha256"]), (&3.into(), &sha256(b"abc").into()));
    assert!(stderr(&output).contains("error: "), "{}", stderr(&output));
}
