//! CPU time and memory of the timed worker, from `/proc/<pid>`.

use crate::tree::Tree;

/// Remembers the last reading of one process.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    pid: u32,
    t_ns: u64,
    ticks: u64,
}

/// What a process takes. A process that is gone is absent, not a failed sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) rss_bytes: Option<u64>,
}

impl Worker {
    pub(crate) fn read(&mut self, tree: &Tree, pid: u32, t_ns: u64) -> Usage {
        let now = ticks(tree, pid).map(|ticks| Last { pid, t_ns, ticks });
        let last = std::mem::replace(&mut self.last, now);
        let cpu_percent = match (last, now) {
            (Some(last), Some(now)) if last.pid == pid && t_ns > last.t_ns => {
                let seconds = (t_ns - last.t_ns) as f64 / 1e9;
                let cpu_s = now.ticks.saturating_sub(last.ticks) as f64 / procfs::ticks_per_second() as f64;
                Some(cpu_s / seconds * 100.0)
            }
            _ => None,
        };
        Usage { cpu_percent, rss_bytes: status_bytes(tree, &pid.to_string(), "VmRSS:") }
    }
}

/// User and system time of all threads.
fn ticks(tree: &Tree, pid: u32) -> Option<u64> {
    let text = tree.text(&format!("proc/{pid}/stat"))?;
    // The second field is the name in brackets and may hold anything, brackets too; fields count from after it.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// A size from `/proc/<pid>/status`.
pub(crate) fn status_bytes(tree: &Tree, pid: &str, key: &str) -> Option<u64> {
    let text = tree.text(&format!("proc/{pid}/status"))?;
    let line = text.lines().find_map(|l| l.strip_prefix(key))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
