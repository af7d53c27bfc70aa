//! Bytes from a server into a part, over as many connections as it takes.

use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use prony_work::{Length, Step, Watcher, megabytes};

use super::answer::{Heard, Verdict, heard};
use super::download::Download;
use super::part::{Part, Stamp};
use super::process::{Running, Stall};
use super::tool::{LEAST_RATE, Program, Request, SILENCE_S, Tool};
use super::url::{Scheme, Url};

/// Connections that may break without bringing anything new.
const FRUITLESS: u32 = 5;
/// Redirections that are followed.
const REDIRECTIONS: u32 = 10;
/// Room that is left on a disk.
const SPARE: u64 = 16 << 20;
/// How often a download is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Stopped,
}

/// What one connection brought.
enum Outcome {
    Whole,
    Stopped,
    Moved(Url),
    /// The part is not of this file: once more from the beginning.
    Restart(&'static str),
    /// Why it ended early, and whether the server had answered.
    Broken {
        why: String,
        answered: bool,
    },
}

/// Fills the part up.
pub(super) fn transfer(download: &Download<'_>, part: &Part, name: &str) -> anyhow::Result<End> {
    let tool = match Tool::find() {
        Ok(tool) => tool,
        Err(why) => bail!(
            "{}: downloading needs curl or wget, and neither is installed; install one (apt install curl), or download \
             the file elsewhere and put it into {} ({why})",
            download.url,
            download.folder.display()
        ),
    };
    let mut url = download.url.clone();
    let (mut most, mut fruitless, mut redirections, mut restarted) = (part.len()?, 0, 0, false);
    loop {
        let (why, answered) = match attempt(download, &tool, &url, part, name)? {
            Outcome::Whole => return Ok(End::Whole),
            Outcome::Stopped => return Ok(End::Stopped),
            Outcome::Moved(to) => {
                redirections += 1;
                if redirections > REDIRECTIONS {
                    bail!("{}: more than {REDIRECTIONS} redirections", download.url);
                }
                if url.scheme == Scheme::Https && to.scheme == Scheme::Http {
                    bail!("{url}: redirects from https to http ({to}), which is not followed");
                }
                url = to;
                continue;
            }
            // Once: a server that breaks off every time would otherwise send the beginning for ever.
            Outcome::Restart(why) if !restarted => {
                download.watcher.say(&format!("{name}: {why}; from the beginning"));
                part.clear()?;
                url = download.url.clone();
                (most, fruitless, redirections, restarted) = (0, 0, 0, true);
                continue;
            }
            Outcome::Restart(why) => (format!("the file {why}"), true),
            Outcome::Broken { why, answered } => (why, answered),
        };
        let have = part.len()?;
        fruitless = if have > most { 1 } else { fruitless + 1 };
        most = most.max(have);
        // A host that does not answer at all will not answer at once.
        if fruitless >= FRUITLESS || !answered && have == 0 {
            match part.stamp().filter(|_| have > 0) {
                Some(_) => bail!("{}: {why}; {} are kept, the same command goes on", download.url, megabytes(have)),
                None => bail!("{}: {why}", download.url),
            }
        }
        (url, redirections) = (download.url.clone(), 0);
        pause(download, fruitless);
        if download.interrupt.asked() {
            return Ok(End::Stopped);
        }
    }
}

/// A step that begins where an earlier one broke off.
fn begun(watcher: &dyn Watcher, name: &str, total: Option<u64>, have: u64) -> Box<dyn Step> {
    let step = watcher.step(name, Length::Bytes(total));
    step.begin_at(have);
    step
}

/// One connection.
fn attempt(download: &Download<'_>, tool: &Tool, url: &Url, part: &Part, name: &str) -> anyhow::Result<Outcome> {
    let have = part.len()?;
    let older = part.stamp().filter(|_| have > 0);
    let rest = older.as_ref().and_then(|stamp| Some((have, stamp.condition()?)));
    let limit = limit(download, older.as_ref(), have)?;
    let request = Request { url, rest, limit: limit.bytes, agent: download.agent };
    older.iter().try_for_each(|stamp| part.expect_rest(stamp))?;
    let before = older.as_ref().map(|stamp| (stamp, have));
    let judge = |heard: &Heard| heard.answer.as_ref().map(|answer| answer.judge(download.url, url, before));

    // One byte more, to tell a file that is too long from one that is just right.
    let mut running = Running::start(tool.command(&request), tool.program.name(), part.file(), limit.bytes + 1)?;
    let mut step = begun(download.watcher, name, older.as_ref().and_then(|stamp| stamp.total), have);
    let mut stall = Stall::new(Instant::now(), have);
    let mut accepted = false;
    let mut said_before = String::new();
    let (mut stopped, mut stalled) = (false, false);
    let ended = loop {
        let ended = running.ended()?;
        let length = part.len()?;
        if ended.is_some() || length > limit.bytes {
            break ended;
        }
        if !accepted {
            let said = running.said();
            let heard = heard(tool.program, &said);
            // Wget does not say where headers end: they have when the file begins, and nothing more comes.
            let whole = heard.whole || tool.program == Program::Wget && length > have && said == said_before;
            match judge(&heard).filter(|_| whole) {
                Some(Verdict::File(stamp)) => {
                    check_size(download, &stamp)?;
                    check_room(download, stamp.total, length)?;
                    part.mark(&stamp)?;
                    step = begun(download.watcher, name, stamp.total, length);
                    accepted = true;
                }
                Some(_) => break None,
                None => said_before = said,
            }
        }
        stopped = download.interrupt.asked();
        stalled = stall.is_stalled(Instant::now(), length);
        if stopped || stalled {
            break None;
        }
        step.at(length);
        thread::sleep(LOOK_EVERY);
    };
    running.kill();
    drop(step);
    let heard = heard(tool.program, &running.said());
    if ended.and_then(|status| status.code()).is_some_and(|code| tool.is_too_long(code)) {
        if older.is_some() && download.size.is_none() {
            // Longer than it was: another version.
            return Ok(Outcome::Restart("has changed"));
        }
        bail!("{}: {}", download.url, limit.why);
    }
    // Now that everything has been printed, what was decided under way is decided again.
    let Some(verdict) = judge(&heard) else {
        part.cut(have)?;
        return Ok(match stopped {
            true => Outcome::Stopped,
            false => Outcome::Broken { why: no_answer(tool, ended, &running.said(), heard.words), answered: false },
        });
    };
    let Verdict::File(stamp) = verdict else {
        part.cut(have)?;
        older.iter().try_for_each(|stamp| part.mark(stamp))?;
        return match verdict {
            _ if stopped => Ok(Outcome::Stopped),
            Verdict::Complete => Ok(Outcome::Whole),
            Verdict::Moved(to) => Ok(Outcome::Moved(to)),
            Verdict::Restart(why) => Ok(Outcome::Restart(why)),
            Verdict::Retry(why) => Ok(Outcome::Broken { why, answered: true }),
            Verdict::Refused(why) => bail!("{}: {why}", download.url),
            Verdict::File(_) => bail!("{}: no verdict", download.url),
        };
    };
    check_size(download, &stamp)?;
    let length = part.len()?;
    check_room(download, stamp.total, length)?;
    part.mark(&stamp)?;
    let most = stamp.total.unwrap_or(limit.bytes).min(limit.bytes);
    if length > most {
        part.clear()?;
        bail!("{}: {}", download.url, if most < limit.bytes { too_long(most) } else { limit.why });
    }
    let well = ended.is_some_and(|status| status.success());
    if well && stamp.total.is_none_or(|total| total == length) {
        if stamp.total.is_none() && download.size.is_none() && download.sha256.is_none() {
            download
                .watcher
                .say(&format!("{name}: the server does not say how long it is; --size or --sha256 would check it"));
        }
        return Ok(Outcome::Whole);
    }
    if stamp.condition().is_none() {
        // Nothing could tell a rest from that of another version.
        part.clear()?;
    }
    let why = match stamp.total {
        _ if stopped => return Ok(Outcome::Stopped),
        _ if stalled => format!("less than {LEAST_RATE} bytes per second for {SILENCE_S} s"),
        Some(total) => format!("the connection ended after {length} of {total} bytes"),
        None if heard.words.is_empty() => "the connection ended early".to_owned(),
        None => heard.words,
    };
    Ok(Outcome::Broken { why, answered: true })
}

/// Why there is no answer, from what the tool said.
fn no_answer(tool: &Tool, ended: Option<ExitStatus>, said: &str, words: String) -> String {
    let name = tool.program.name();
    if ["unrecognized option", "unknown option", "is unknown"].iter().any(|complaint| said.contains(complaint)) {
        return format!("this {name} lacks options that are needed here; install curl 7.54 or GNU Wget 1.20, or later");
    }
    if ended.is_some_and(|status| status.success()) || words.contains("HTTP/0.9") {
        return "the answer is not HTTP".to_owned();
    }
    if words.is_empty() { format!("no answer ({name} gives no reason)") } else { words }
}

/// How long the file may become.
struct Limit {
    bytes: u64,
    /// What is wrong with one that is longer.
    why: String,
}

fn limit(download: &Download<'_>, older: Option<&Stamp>, have: u64) -> anyhow::Result<Limit> {
    let promised = download.size.or(older.and_then(|stamp| stamp.total));
    check_room(download, promised, have)?;
    let free = free_bytes(download.folder).unwrap_or(u64::MAX / 2);
    Ok(match promised {
        Some(bytes) => Limit { bytes: bytes.max(have), why: too_long(bytes) },
        None => Limit { bytes: have + free.saturating_sub(SPARE), why: no_room(download, "more", free) },
    })
}

fn too_long(promised: u64) -> String {
    format!("the server sends more than the {promised} bytes that were promised; nothing was kept")
}

fn no_room(download: &Download<'_>, needed: &str, free: u64) -> String {
    let (folder, free) = (download.folder.display(), megabytes(free));
    format!("not enough space in {folder}: need {needed}, {free} free; free some, or use --out on another disk")
}

/// Is it the size that was asked for?
fn check_size(download: &Download<'_>, stamp: &Stamp) -> anyhow::Result<()> {
    match (download.size, stamp.total) {
        (Some(size), Some(total)) if size != total => {
            bail!("{}: has {total} bytes on the server instead of {size}; nothing was fetched", download.url)
        }
        _ => Ok(()),
    }
}

/// Is there room for what is missing?
fn check_room(download: &Download<'_>, total: Option<u64>, have: u64) -> anyhow::Result<()> {
    let missing = total.unwrap_or(0).saturating_sub(have);
    match free_bytes(download.folder) {
        Some(free) if missing > 0 && missing.saturating_add(SPARE) > free => {
            bail!("{}: {}", download.url, no_room(download, &megabytes(missing), free))
        }
        _ => Ok(()),
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(folder).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Longer after every break, and over at once when the user wants to stop.
fn pause(download: &Download<'_>, breaks: u32) {
    for _ in 0..1_u32 << breaks.min(6) {
        if download.interrupt.asked() {
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
}
