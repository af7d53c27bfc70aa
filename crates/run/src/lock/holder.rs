//! Who holds an abstract socket. The kernel says which process listens on it to whoever connects; where nobody listens,
//! it is looked for among the open files of all processes.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Ticks per second in /proc, the same for every Linux that is shipped for.
const TICKS: u64 = 100;
/// Most characters of a command line that are shown.
const LONGEST_COMMAND: usize = 80;

/// A process that holds the lock, as far as it can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder(Option<Process>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    command: String,
    /// Ticks from the start of the machine to that of the process.
    started: u64,
    /// Whether it was stopped by a signal, or by a debugger.
    stopped: bool,
    /// The user, where it is another one.
    user: Option<u32>,
}

impl Holder {
    /// The holder of the socket of that name.
    pub(super) fn find(name: &str) -> Holder {
        Holder(listener(name).and_then(Process::read).or_else(|| Process::read(owner(name)?)))
    }

    /// The same holder as it is now; another one where that has gone. A listener is asked no more often than that, because
    /// its queue is limited.
    pub(super) fn again(&self, name: &str) -> Holder {
        let same = self.0.as_ref().and_then(|before| Some((before, Process::read(before.pid)?)));
        match same {
            Some((before, now)) if before.started == now.started => Holder(Some(now)),
            _ => Holder::find(name),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Process { pid, command, started, stopped, user }) = &self.0 else {
            return f.write_str("a process that cannot be seen from here (another user's, or in another container)");
        };
        write!(f, "PID {pid} ({command})")?;
        if let Some(user) = user {
            write!(f, " of user {user}")?;
        }
        if let Some(since) = wall_clock(*started) {
            write!(f, ", running since {since}")?;
        }
        if *stopped {
            write!(f, ", stopped: `kill -CONT {pid}` lets it continue, `kill -KILL {pid}` ends it")?;
        }
        Ok(())
    }
}

/// The process that listens, by connecting to it. It need not answer, and is not waited for.
fn listener(name: &str) -> Option<u32> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
            .ok()?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?).ok()?;
    u32::try_from(socket_peercred(&socket).ok()?.pid.as_raw_nonzero().get()).ok()
}

/// A process that has the socket open, of those whose open files can be seen.
fn owner(name: &str) -> Option<u32> {
    let sockets = fs::read_to_string("/proc/net/unix").ok()?;
    let inodes = sockets.lines().filter_map(|line| inode(line, name));
    let links: Vec<PathBuf> = inodes.map(|inode| format!("socket:[{inode}]").into()).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| links.contains(&target))
    };
    { processes }.find(has)
}

/// `ffff…: 00000002 00000000 00010000 0001 01 48213 @prony.measuring`: a stream socket and its inode. Connections that nobody
/// has accepted have the name too, and no inode.
fn inode<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let mut words = line.split_ascii_whitespace();
    let (kind, inode, path) = (words.nth(4)?, words.nth(1)?, words.next()?);
    (kind == "0001" && inode != "0" && path.strip_prefix('@') == Some(name)).then_some(inode)
}

impl Process {
    fn read(pid: u32) -> Option<Process> {
        let stat = beginning(pid, "stat")?;
        let (name, state, started) = parse_stat(&stat)?;
        let words = beginning(pid, "cmdline").unwrap_or_default();
        let words = words.trim_end_matches('\0').replace('\0', " ");
        let command = if words.is_empty() { name } else { shown(&words) };
        let owner = {
            use std::os::unix::fs::MetadataExt as _;
            fs::metadata(format!("/proc/{pid}")).ok().map(|folder| folder.uid())
        };
        let user = owner.filter(|&uid| uid != rustix::process::geteuid().as_raw());
        Some(Process { pid, command, started, stopped: matches!(state, 'T' | 't'), user })
    }
}

/// The beginning of a file in /proc: a command line may have megabytes.
fn beginning(pid: u32, file: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/{file}")).ok()?.take(4096).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Name, state and start of a process. The name may hold anything, brackets and blanks too.
fn parse_stat(stat: &str) -> Option<(String, char, u64)> {
    let (front, back) = stat.rsplit_once(')')?;
    let name = front.split_once('(')?.1;
    let mut fields = back.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((shown(name), state, fields.nth(18)?.parse().ok()?))
}

/// A text of somebody else's on our terminal.
fn shown(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    match clean.char_indices().nth(LONGEST_COMMAND) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

/// When a process started that many ticks after the machine did.
fn wall_clock(started: u64) -> Option<String> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let ago = (uptime - started as f64 / TICKS as f64).max(0.0);
    let start = jiff::Timestamp::now().checked_sub(jiff::SignedDuration::try_from_secs_f64(ago).ok()?).ok()?;
    Some(start.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use rustix::net::bind;

    use super::*;

    #[test]
    fn a_name_with_brackets_is_read() {
        let stat = "42 (a) R) (b c) T 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9137 1 2 3";
        assert_eq!(parse_stat(stat), Some(("a) R) (b c".to_owned(), 'T', 9137)));
        assert_eq!(parse_stat("42 (x"), None);
    }

    #[test]
    fn a_command_line_reached_the_terminal_as_it_was() {
        assert_eq!(shown("a\x1b[2Jb\nc\u{9b}31m"), "a?[2Jb?c?31m");
        assert_eq!(shown(&"å".repeat(500)).chars().count(), LONGEST_COMMAND + 1);
    }

    #[test]
    fn a_socket_is_found_by_its_whole_name() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 48213 @prony.measuring";
        assert_eq!(inode(line, "prony.measuring"), Some("48213"));
        assert_eq!(inode(line, "prony"), None);
        assert_eq!(inode(&line.replace(" 0001 ", " 0002 "), "prony.measuring"), None);
        assert_eq!(inode("Num       RefCount Protocol Flags    Type St Inode Path", "prony.measuring"), None);
    }

    #[test]
    fn whoever_binds_the_socket_is_found_whether_it_listens_or_not() {
        let me = std::process::id();
        let name = format!("prony.test.listening.{me}");
        let listening = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let said = Holder::find(&name).to_string();
        assert!(said.starts_with(&format!("PID {me} (")) && said.contains(", running since 2"), "{said}");
        assert!(!said.contains("stopped"), "{said}");
        assert_eq!(Holder::find(&name).again(&name), Holder::find(&name));
        drop(listening);
        assert_eq!(Holder::find(&name), Holder(None));

        let name = format!("prony.test.silent.{me}");
        let silent = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&silent, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        assert_eq!(listener(&name), None);
        assert!(Holder::find(&name).to_string().starts_with(&format!("PID {me} (")));
    }

    #[test]
    fn a_full_queue_was_waited_for() {
        let me = std::process::id();
        let name = format!("prony.test.full.{me}");
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        let stream = |flags| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let socket = stream(SocketFlags::CLOEXEC);
        bind(&socket, &address).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let mut queue = Vec::new();
        loop {
            let next = stream(SocketFlags::NONBLOCK | SocketFlags::CLOEXEC);
            if connect(&next, &address).is_err() {
                break;
            }
            queue.push(next);
        }
        assert!(Holder::find(&name).to_string().starts_with(&format!("PID {me} (")));
    }
}
