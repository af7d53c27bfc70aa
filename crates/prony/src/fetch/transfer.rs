//! Bytes from a server into a part, over as many connections as it takes.

use std::env;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::http::{self, Answer, Rest};
use super::part::{Part, Stamp};
use super::tally::Tally;
use super::url::Scheme;
use super::{Errand, Url, child};
use crate::runtime::megabytes;

/// Connections that may break without bringing anything new.
const FRUITLESS: u32 = 5;
/// Redirections that are followed.
const REDIRECTIONS: u32 = 10;
/// Room that is left on a disk.
const SPARE: u64 = 16 << 20;

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Stopped,
}

/// Fills the part up.
pub(super) fn transfer(errand: &Errand<'_>, part: &mut Part, name: &str) -> anyhow::Result<End> {
    if errand.url.scheme == Scheme::Https || is_proxied(errand.url) {
        return child::transfer(errand, errand.url, part, name);
    }
    let (mut most, mut fruitless) = (part.len()?, 0);
    loop {
        let outcome = connection(errand, part, name)?;
        if errand.interrupt.asked() {
            return Ok(End::Stopped);
        }
        let why = match outcome {
            Outcome::Whole => return Ok(End::Whole),
            Outcome::Secure(url) => return child::transfer(errand, &url, part, name),
            Outcome::Again => continue,
            Outcome::Broken(why) => why,
        };
        let have = part.len()?;
        fruitless = if have > most { 1 } else { fruitless + 1 };
        most = most.max(have);
        if fruitless >= FRUITLESS {
            let kept = if have > 0 {
                format!("; {} are kept, the same command goes on", megabytes(have))
            } else {
                String::new()
            };
            bail!("{}: {why}{kept}", errand.url);
        }
        pause(errand, fruitless);
    }
}

/// Whether the user wants a proxy for this host; curl and wget know how, and heed `no_proxy`.
fn is_proxied(url: &Url) -> bool {
    let wanted =
        ["http_proxy", "HTTP_PROXY"].iter().any(|name| env::var_os(name).is_some_and(|proxy| !proxy.is_empty()));
    let here = url.host == "localhost" || url.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    wanted && !here
}

/// What one connection brought.
enum Outcome {
    Whole,
    /// The part was not of this file and is empty now: once more from the beginning.
    Again,
    /// It leads to https.
    Secure(Url),
    /// Why it ended early.
    Broken(String),
}

fn connection(errand: &Errand<'_>, part: &mut Part, name: &str) -> anyhow::Result<Outcome> {
    let have = part.len()?;
    let older = part.stamp().filter(|stamp| have > 0 && stamp.url == errand.url.to_string());
    if older.is_none() && have > 0 {
        part.clear()?;
        return Ok(Outcome::Again);
    }
    let rest = older.as_ref().map(|stamp| Rest { from: have, condition: stamp.condition() });
    let answer = match ask(errand, rest.as_ref())? {
        Asked::Answer(answer) => *answer,
        Asked::Secure(url) => return Ok(Outcome::Secure(url)),
        Asked::Failed(why) => return Ok(Outcome::Broken(why)),
    };
    let (begin, whole_length) = answer.headers.content_range();
    let total = if answer.status == 200 { answer.headers.content_length() } else { whole_length };
    let stamp = answer.headers.stamp(&errand.url.to_string(), total);
    match (answer.status, &older) {
        (200, older) => {
            if older.is_some() {
                errand.view.say(&format!("{name}: has changed, or cannot be resumed; from the beginning"));
            }
            part.clear()?;
        }
        (206, Some(older)) if begin == Some(have) && older.is_same(&stamp) => {}
        (416, Some(older)) if total == Some(have) && older.is_same(&stamp) => return Ok(Outcome::Whole),
        (206 | 416, Some(_)) => {
            errand.view.say(&format!("{name}: has changed; from the beginning"));
            part.clear()?;
            return Ok(Outcome::Again);
        }
        (429 | 500..=599, _) => return Ok(Outcome::Broken(format!("the server says {}", answer.words))),
        _ => {
            if have == 0 {
                part.discard()?;
            }
            bail!("{}: the server says {}", errand.url, answer.words);
        }
    }
    preflight(errand, part, total)?;
    part.mark(&stamp)?;
    receive(errand, part, name, answer, total)
}

/// An answer that is no redirection.
enum Asked {
    Answer(Box<Answer>),
    Secure(Url),
    Failed(String),
}

fn ask(errand: &Errand<'_>, rest: Option<&Rest<'_>>) -> anyhow::Result<Asked> {
    let mut url = errand.url.clone();
    for _ in 0..REDIRECTIONS {
        if url.scheme == Scheme::Https {
            return Ok(Asked::Secure(url));
        }
        let answer = match http::get(&url, rest, errand.interrupt) {
            Ok(answer) => answer,
            Err(e) => return Ok(Asked::Failed(e.to_string())),
        };
        match (answer.status, answer.headers.get("location")) {
            (301 | 302 | 303 | 307 | 308, Some(location)) => url = url.join(location)?,
            _ => return Ok(Asked::Answer(Box::new(answer))),
        }
    }
    bail!("{}: more than {REDIRECTIONS} redirections", errand.url)
}

fn receive(
    errand: &Errand<'_>,
    part: &mut Part,
    name: &str,
    mut answer: Answer,
    total: Option<u64>,
) -> anyhow::Result<Outcome> {
    let mut have = part.len()?;
    let tally = Tally::new(errand.view, name, total).from(have);
    let mut buffer = vec![0; 256 << 10];
    loop {
        if errand.interrupt.asked() {
            return Ok(Outcome::Broken("asked to stop".to_owned()));
        }
        let got = match answer.body.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Ok(Outcome::Broken(e.to_string())),
        };
        part.write(&buffer[..got]).with_context(|| format!("{}: cannot write the file", part.path().display()))?;
        have += got as u64;
        tally.at(have);
    }
    Ok(match total.filter(|total| *total != have) {
        Some(total) => Outcome::Broken(format!("ended after {have} of {total} bytes")),
        None => Outcome::Whole,
    })
}

/// Before the first byte: is it the size that was asked for, and is there room?
pub(super) fn preflight(errand: &Errand<'_>, part: &Part, total: Option<u64>) -> anyhow::Result<()> {
    let Some(total) = total else { return Ok(()) };
    if let Some(size) = errand.size.filter(|size| *size != total) {
        part.discard()?;
        bail!("{}: has {total} bytes on the server instead of {size}; nothing was fetched", errand.url);
    }
    let missing = total.saturating_sub(part.len()?);
    let Some(free) = free_bytes(errand.folder) else { return Ok(()) };
    if missing.saturating_add(SPARE) > free {
        if part.len()? == 0 {
            part.discard()?;
        }
        let (folder, missing, free) = (errand.folder.display(), megabytes(missing), megabytes(free));
        bail!(
            "{}: {missing} are to come and {folder} has room for {free}; make room, or use --out on another disk",
            errand.url
        );
    }
    Ok(())
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(folder).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Longer after every break, and over at once when the user wants to stop.
pub(super) fn pause(errand: &Errand<'_>, breaks: u32) {
    for _ in 0..1_u32 << breaks.min(6) {
        if errand.interrupt.asked() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Whether what is there of a file is a part of what the server has now; if not, it is cleared.
pub(super) fn reconcile(errand: &Errand<'_>, part: &Part, now: &Stamp, name: &str) -> anyhow::Result<()> {
    if part.len()? == 0 {
        return Ok(());
    }
    if !part.stamp().is_some_and(|older| older.url == now.url && older.is_same(now)) {
        errand.view.say(&format!("{name}: has changed, or cannot be resumed; from the beginning"));
        part.clear()?;
    }
    Ok(())
}
