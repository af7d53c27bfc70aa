//! `https://`, and whatever goes through a proxy, by curl or wget: they have the certificates, the proxies and the user's settings.

use std::env;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use super::headers::Headers;
use super::part::Part;
use super::tally::Tally;
use super::transfer::{End, pause, preflight, reconcile};
use super::{Errand, Url};
use crate::runtime::megabytes;

/// Attempts that may end without bringing anything new.
const FRUITLESS: u32 = 3;

/// A program that downloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Curl,
    Wget,
}

impl Tool {
    fn find() -> Option<Tool> {
        let path = env::var_os("PATH")?;
        let has = |name: &str| env::split_paths(&path).any(|folder| folder.join(name).is_file());
        [Tool::Curl, Tool::Wget].into_iter().find(|tool| has(tool.name()))
    }

    fn name(self) -> &'static str {
        match self {
            Tool::Curl => "curl",
            Tool::Wget => "wget",
        }
    }

    /// Asks for headers alone.
    fn head(self, url: &str) -> Command {
        match self {
            Tool::Curl => command([
                "curl",
                "--silent",
                "--fail",
                "--show-error",
                "--location",
                "--globoff",
                "--head",
                "--connect-timeout",
                "15",
                url,
            ]),
            Tool::Wget => {
                command(["wget", "--spider", "--server-response", "--no-verbose", "--tries=2", "--timeout=30", url])
            }
        }
    }

    /// Goes on with a file from where it ends.
    fn get(self, url: &str, part: &Path) -> Command {
        let mut command = match self {
            Tool::Curl => command([
                "curl",
                "--silent",
                "--show-error",
                "--fail",
                "--location",
                "--globoff",
                "--connect-timeout",
                "15",
                "--speed-limit",
                "1",
                "--speed-time",
                "60",
                "--continue-at",
                "-",
                "--output",
            ]),
            Tool::Wget => {
                command(["wget", "--no-verbose", "--continue", "--tries=1", "--timeout=60", "--output-document"])
            }
        };
        command.arg(part).arg(url);
        command
    }

    /// Whether it failed because the server sends files from their beginning only.
    fn cannot_resume(self, status: ExitStatus) -> bool {
        // CURLE_RANGE_ERROR. Wget passes over what it has.
        self == Tool::Curl && status.code() == Some(33)
    }
}

/// A child that the kernel ends with its parent.
fn command<const N: usize>(words: [&str; N]) -> Command {
    let program = env::current_exe().unwrap_or_else(|_| "prony".into());
    let mut command = Command::new(program);
    command.arg(prony_bench::CHILD_VERB).args(words.map(OsStr::new)).stdin(Stdio::null()).process_group(0);
    command
}

/// Fills the part up from an `https://` address.
pub(super) fn transfer(errand: &Errand<'_>, url: &Url, part: &Part, name: &str) -> anyhow::Result<End> {
    let Some(tool) = Tool::find() else {
        if part.len()? == 0 {
            part.discard()?;
        }
        bail!(
            "{url}: https, or a proxy, needs curl or wget, and neither is installed; install one, or fetch it elsewhere"
        );
    };
    let address = url.to_string();
    let (mut most, mut fruitless, mut restarted) = (part.len()?, 0, false);
    loop {
        let headers = head(errand, tool, &address)?;
        if errand.interrupt.asked() {
            return Ok(End::Stopped);
        }
        let words = match attempt(errand, tool, &address, part, name, headers)? {
            Ran::Well => return Ok(End::Whole),
            Ran::Stopped => return Ok(End::Stopped),
            // Once: a server that breaks off every time would otherwise send the beginning for ever.
            Ran::CannotResume(_) if !restarted => {
                errand.view.say(&format!("{name}: cannot be resumed; from the beginning"));
                part.clear()?;
                (most, fruitless, restarted) = (0, 0, true);
                continue;
            }
            Ran::Badly(words) | Ran::CannotResume(words) => words,
        };
        let have = part.len()?;
        fruitless = if have > most { 1 } else { fruitless + 1 };
        most = most.max(have);
        if fruitless >= FRUITLESS || have == 0 {
            let kept = if have > 0 {
                format!("; {} are kept, the same command goes on", megabytes(have))
            } else {
                String::new()
            };
            if have == 0 {
                part.discard()?;
            }
            bail!("{url}: {words}{kept}");
        }
        pause(errand, fruitless);
    }
}

/// One download, or the rest of one.
fn attempt(
    errand: &Errand<'_>,
    tool: Tool,
    address: &str,
    part: &Part,
    name: &str,
    headers: Option<Headers>,
) -> anyhow::Result<Ran> {
    let known = part.stamp().is_some_and(|stamp| stamp.condition().is_some() || stamp.total.is_some());
    if headers.is_none() && known && part.len()? > 0 {
        // It answered before: what is there is not given up because it does not answer now.
        return Ok(Ran::Badly("the server does not say whether the file is still the same".to_owned()));
    }
    let headers = headers.unwrap_or_default();
    let total = headers.content_length();
    let stamp = headers.stamp(&errand.url.to_string(), total);
    reconcile(errand, part, &stamp, name)?;
    preflight(errand, part, total)?;
    part.mark(&stamp)?;
    if total == Some(part.len()?) {
        return Ok(Ran::Well);
    }
    run(errand, tool, address, part, name, total)
}

/// What the server says about the file; `None` where it does not answer that.
fn head(errand: &Errand<'_>, tool: Tool, address: &str) -> anyhow::Result<Option<Headers>> {
    let mut command = tool.head(address);
    let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()), tool)?;
    let said = thread::scope(|scope| {
        let out = child.0.stdout.take().map(|pipe| scope.spawn(|| text(pipe)));
        let err = child.0.stderr.take().map(|pipe| scope.spawn(|| text(pipe)));
        let ended = child.wait(errand, &mut || {});
        drop(child);
        let [out, err] = [out, err].map(|reader| reader.and_then(|reader| reader.join().ok()).unwrap_or_default());
        ended.map(|status| status.filter(ExitStatus::success).map(|_| out + "\n" + &err))
    })?;
    // Of a chain of redirections the last answer counts.
    let Some(said) = said else { return Ok(None) };
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let last = lines.iter().rposition(|line| line.starts_with("HTTP/")).unwrap_or(lines.len());
    Ok(Some(Headers::parse(lines[last..].iter().skip(1).take_while(|line| !line.is_empty()).copied())))
}

enum Ran {
    Well,
    Stopped,
    /// The last thing that it said.
    Badly(String),
    /// The same, where the server has only the whole.
    CannotResume(String),
}

fn run(
    errand: &Errand<'_>,
    tool: Tool,
    address: &str,
    part: &Part,
    name: &str,
    total: Option<u64>,
) -> anyhow::Result<Ran> {
    let tally = Tally::new(errand.view, name, total).from(part.len()?);
    let mut command = tool.get(address, part.path());
    let mut child = Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()), tool)?;
    thread::scope(|scope| {
        let words = child.0.stderr.take().map(|pipe| scope.spawn(|| last_line(pipe)));
        let ended = child.wait(errand, &mut || tally.at(part.len().unwrap_or(0)));
        drop(child);
        let words = words.and_then(|reader| reader.join().ok()).unwrap_or_default();
        Ok(match ended? {
            None => Ran::Stopped,
            Some(status) if status.success() => Ran::Well,
            Some(status) if tool.cannot_resume(status) => Ran::CannotResume(words),
            Some(_) if words.is_empty() => Ran::Badly(format!("{} failed", tool.name())),
            Some(_) => Ran::Badly(words),
        })
    })
}

/// A child; dropping it ends it.
struct Running(Child);

impl Running {
    fn start(command: &mut Command, tool: Tool) -> anyhow::Result<Running> {
        Ok(Running(command.spawn().with_context(|| format!("cannot start {}", tool.name()))?))
    }

    /// How it ended; `None` when the user asked to stop.
    fn wait(&mut self, errand: &Errand<'_>, glance: &mut dyn FnMut()) -> anyhow::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            if errand.interrupt.asked() {
                return Ok(None);
            }
            glance();
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

fn text(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_line(pipe: impl Read) -> String {
    let lines = BufReader::new(pipe).lines().map_while(Result::ok);
    lines.filter(|line| !line.trim().is_empty()).last().unwrap_or_default().trim().to_owned()
}
