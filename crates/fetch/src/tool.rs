//! curl or wget as they are called here: one address, no redirection, no configuration file, the file to stdout, and the
//! answer's headers and the tool's own words to stderr.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use prony_files::find_program;
use prony_work::mortal;

use super::url::{Scheme, Url};

/// Longest wait for a connection, in seconds.
const CONNECT_S: u32 = 15;
/// Longest silence, in seconds.
pub(super) const SILENCE_S: u64 = 60;
/// Least bytes per second over that time.
pub(super) const LEAST_RATE: u64 = 1024;
/// Longest download, in seconds.
const LONGEST_S: u32 = 86_400;

/// Which program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Curl,
    Wget,
}

/// A program that downloads.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) program: Program,
    path: PathBuf,
}

/// What is asked for.
pub(super) struct Request<'a> {
    pub(super) url: &'a Url,
    /// From this byte on, if the file is still this version.
    pub(super) rest: Option<(u64, &'a str)>,
    /// Most bytes of the file: where the version has changed, the whole is sent instead of the rest.
    pub(super) limit: u64,
    /// Who asks.
    pub(super) agent: &'a str,
}

impl Tool {
    /// The first of the two that may be run here, or why neither.
    pub(super) fn find() -> Result<Tool, String> {
        let found = |program: Program| find_program(program.name()).map(|path| Tool { program, path });
        found(Program::Curl).or_else(|curl| found(Program::Wget).map_err(|wget| format!("{curl}; {wget}")))
    }

    /// Whether it ended with this code because the server announced more than the limit.
    pub(super) fn is_too_long(&self, code: i32) -> bool {
        // CURLE_FILESIZE_EXCEEDED.
        self.program == Program::Curl && code == 63
    }

    /// The command for one request. It is a child that the kernel ends with its parent.
    pub(super) fn command(&self, request: &Request<'_>) -> Command {
        let mut command = mortal(&self.path);
        command.args(match self.program {
            Program::Curl => curl(request),
            Program::Wget => wget(request),
        });
        for variable in ["CURL_HOME", "WGETRC", "SYSTEM_WGETRC"] {
            command.env_remove(variable);
        }
        // Its words are read here.
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Program::Curl => "curl",
            Program::Wget => "wget",
        }
    }
}

fn curl(request: &Request<'_>) -> Vec<OsString> {
    // -q must stand first: no .curlrc.
    let plain = "-q --silent --show-error --fail --no-buffer --globoff --max-redirs 0 --proto-redir -all \
                 --suppress-connect-headers --dump-header /dev/stderr --output -";
    let mut words: Vec<String> = plain.split_ascii_whitespace().map(str::to_owned).collect();
    let scheme = match request.url.scheme {
        Scheme::Http => "=http",
        Scheme::Https => "=https",
    };
    words.extend(["--proto".into(), scheme.into()]);
    words.extend(["--connect-timeout".into(), CONNECT_S.to_string()]);
    words.extend(["--speed-limit".into(), LEAST_RATE.to_string(), "--speed-time".into(), SILENCE_S.to_string()]);
    words.extend(["--max-time".into(), LONGEST_S.to_string()]);
    words.extend(["--max-filesize".into(), request.limit.to_string()]);
    words.extend(["--user-agent".into(), request.agent.to_owned()]);
    words.extend(["--header".into(), "Accept-Encoding: identity".into()]);
    if let Some((from, version)) = request.rest {
        words.extend(["--header".into(), format!("Range: bytes={from}-")]);
        words.extend(["--header".into(), format!("If-Range: {version}")]);
    }
    words.push(request.url.address());
    words.into_iter().map(OsString::from).collect()
}

fn wget(request: &Request<'_>) -> Vec<OsString> {
    let plain = "--no-config --no-verbose --server-response --tries=1 --max-redirect=0 --no-netrc --no-hsts --no-cookies \
                 --compression=none --output-document=-";
    let mut words: Vec<String> = plain.split_ascii_whitespace().map(str::to_owned).collect();
    if request.url.scheme == Scheme::Https {
        words.push("--https-only".into());
    }
    words.push(format!("--connect-timeout={CONNECT_S}"));
    words.push(format!("--dns-timeout={CONNECT_S}"));
    words.push(format!("--read-timeout={SILENCE_S}"));
    words.push(format!("--user-agent={}", request.agent));
    words.push("--header=Accept-Encoding: identity".into());
    if let Some((from, version)) = request.rest {
        words.push(format!("--start-pos={from}"));
        words.push(format!("--header=If-Range: {version}"));
    }
    words.push(request.url.address());
    words.into_iter().map(OsString::from).collect()
}
