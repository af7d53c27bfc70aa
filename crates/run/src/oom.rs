//! What the kernel does when memory runs out: it kills a worker with a signal that anyone could have sent, and counts that.

use std::cell::Cell;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;

use prony_probe::{memory_limit, oom_kills};
use prony_types::OutOfMemory;
use rustix::process::Signal;

/// Where the kernel's figures about memory are. Debug builds can be given another machine's, for tests.
pub(crate) fn memory_root() -> PathBuf {
    let told = if cfg!(debug_assertions) { std::env::var_os("PRONY_TEST_MEMORY_ROOT") } else { None };
    told.map_or_else(|| "/".into(), PathBuf::from)
}

/// Tells a worker that the kernel killed from one that somebody killed.
#[derive(Debug)]
pub(crate) struct OomWatch {
    root: PathBuf,
    /// Kills that are accounted for.
    known: Cell<u64>,
}

impl OomWatch {
    /// Kills up to now are not ours.
    pub(crate) fn new(root: PathBuf) -> OomWatch {
        let known = Cell::new(oom_kills(&root).unwrap_or(0));
        OomWatch { root, known }
    }

    /// Whether the kernel killed this process for want of memory: it died by the kernel's signal, and the kernel has counted
    /// a kill that no other process accounts for.
    pub(crate) fn claims(&self, status: ExitStatus) -> bool {
        if status.signal() != Some(Signal::KILL.as_raw()) {
            return false;
        }
        let counted = oom_kills(&self.root).unwrap_or(0);
        let one_more = counted > self.known.get();
        if one_more {
            self.known.set(self.known.get() + 1);
        }
        one_more
    }

    /// What there is to say about such a death.
    pub(crate) fn describe(&self, doing: &str, used_bytes: Option<u64>, beside: usize) -> OutOfMemory {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let limit = memory_limit(&self.root);
        OutOfMemory {
            doing: doing.to_owned(),
            used_mib: used_bytes.map(mib),
            limit_mib: limit.map(|(bytes, _)| mib(bytes)),
            of_cgroup: limit.is_some_and(|(_, of_cgroup)| of_cgroup),
            beside: u32::try_from(beside).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_that_the_kernel_did_not_count_is_somebody_s() {
        let root = tempfile::tempdir().unwrap();
        let count = |kills: u32| {
            let proc = root.path().join("proc");
            std::fs::create_dir_all(&proc).unwrap();
            std::fs::write(proc.join("vmstat"), format!("oom_kill {kills}\n")).unwrap();
        };
        let (killed, crashed, ended) = (ExitStatus::from_raw(9), ExitStatus::from_raw(11), ExitStatus::from_raw(0));
        count(4);
        let watch = OomWatch::new(root.path().to_owned());
        assert!(!watch.claims(killed), "kills before this run are others'");
        count(6);
        assert!(!watch.claims(crashed) && !watch.claims(ended), "the kernel kills with SIGKILL");
        assert!(watch.claims(killed) && watch.claims(killed), "two were counted");
        assert!(!watch.claims(killed), "a third was not");
    }
}
