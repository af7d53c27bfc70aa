//! How much memory is left: that of the machine or of a control group, whichever leaves less; and what the kernel does when
//! none is.

use std::path::Path;

use crate::cgroup;

/// What the kernel says about memory, in bytes: that of the machine or of a control group, whichever leaves less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRoom {
    /// All there is.
    pub total: u64,
    /// What could be taken without swapping.
    pub available: u64,
    /// Swap that is left.
    pub swap_free: u64,
    /// Whether a control group is what limits it.
    pub of_cgroup: bool,
}

impl MemoryRoom {
    /// Reads `proc/meminfo` and the control groups under a root.
    pub fn read(root: &Path) -> Option<MemoryRoom> {
        let machine = MemoryRoom::of_machine(root)?;
        Some(match cgroup::tightest(root) {
            Some(room) if room.left < machine.available => MemoryRoom {
                total: room.limit.min(machine.total),
                available: room.left,
                swap_free: room.swap_left.unwrap_or(u64::MAX).min(machine.swap_free),
                of_cgroup: true,
            },
            _ => machine,
        })
    }

    fn of_machine(root: &Path) -> Option<MemoryRoom> {
        let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
        };
        let (total, available) = (value("MemTotal")?, value("MemAvailable")?);
        Some(MemoryRoom { total, available, swap_free: value("SwapFree").unwrap_or(0), of_cgroup: false })
    }
}

/// The most that this process and its children may take, in bytes, and whether a control group says so.
pub fn memory_limit(root: &Path) -> Option<(u64, bool)> {
    let machine = MemoryRoom::of_machine(root)?.total;
    Some(match cgroup::smallest_limit(root) {
        Some(limit) if limit < machine => (limit, true),
        _ => (machine, false),
    })
}

/// How often the kernel killed for want of memory: in this process's control group where that is counted, else on the whole
/// machine. Only a difference of two readings says something.
pub fn oom_kills(root: &Path) -> Option<u64> {
    let of_machine = || {
        let text = std::fs::read_to_string(root.join("proc/vmstat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    };
    cgroup::oom_kills(root).or_else(of_machine)
}

/// Highest memory of a process so far that no other shares, in bytes: without the pages of files, libraries among them.
pub fn private_peak_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(value("VmHWM:")?.saturating_sub(value("RssFile:").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tests::tree;

    const MIB: u64 = 1 << 20;

    fn meminfo(total: u64, available: u64, swap: u64) -> String {
        let line = |key: &str, mib: u64| format!("{key}:  {} kB\n", mib << 10);
        line("MemTotal", total) + &line("MemFree", 1) + &line("MemAvailable", available) + &line("SwapFree", swap)
    }

    #[test]
    fn the_kernel_s_words_are_read() {
        let root = tree(&[("proc/meminfo", &meminfo(8000, 900, 0))]);
        let read = MemoryRoom::read(root.path()).unwrap();
        assert_eq!(read, MemoryRoom { total: 8000 * MIB, available: 900 * MIB, swap_free: 0, of_cgroup: false });
        assert_eq!(MemoryRoom::read(Path::new("/no/such")), None);
        assert!(MemoryRoom::read(Path::new("/")).unwrap().available > 0);
        assert!(private_peak_bytes(std::process::id()).unwrap() > 0);
        assert_eq!(private_peak_bytes(u32::MAX), None);
    }

    #[test]
    fn the_smaller_of_machine_and_group_is_the_limit() {
        let of = |max: &str| {
            let root = tree(&[
                ("proc/meminfo", &meminfo(8000, 4000, 0)),
                ("proc/self/cgroup", "0::/"),
                ("sys/fs/cgroup/memory.max", max),
                ("sys/fs/cgroup/memory.current", "0"),
            ]);
            memory_limit(root.path()).unwrap()
        };
        assert_eq!(of("1048576"), (MIB, true));
        assert_eq!(of("max"), (8000 * MIB, false));
        assert_eq!(of("9223372036854771712"), (8000 * MIB, false), "as the first version writes none");
    }

    #[test]
    fn without_a_group_that_counts_the_machine_does() {
        let root = tree(&[("proc/vmstat", "pgfault 1\noom_kill 5\nswap_ra 0"), ("proc/self/cgroup", "0::/")]);
        assert_eq!(oom_kills(root.path()), Some(5));
        assert_eq!(oom_kills(Path::new("/no/such")), None);
    }
}
